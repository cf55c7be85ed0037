import Faults
import FoundationEssentials
import JSON
package import MillraceJobs
import Postgres
import Supervision
import Telemetry

/// Jobs of the kind `ai.forget`: what batches asked and answered does not stay with the provider. What cannot be deleted is tried again, for two weeks.
extension AIService {
    package func runForget(_ args: [UInt8], _ context: Context) async throws -> Verdict {
        guard let name = (try? JSONValue.read(args))?["provider"]?.text else {
            return .discard("the arguments name no provider")
        }
        guard let provider = providers.first(where: { $0.name == name }) as? any AIBatching else {
            return .snooze(for: .seconds(300))  // another worker may be able to ask it
        }
        let token = context.token
        let due = try await pool.withConnection { try await AILeftoverStore.due(token, name, on: $0) }
        for leftover in due {
            try Task.checkCancellation()
            let problem: String?
            do {
                problem = try await self.problem(of: leftover, at: provider)
            } catch let refusal as CallRefusal {
                return .snooze(for: refusal.pause(atMost: .seconds(300)))
            }
            let next = try await pool.withConnection {
                try await AILeftoverStore.tried(token, name, leftover.remote, error: problem, on: $0)
            }
            guard let problem else { continue }
            log.warning(
                next == nil
                    ? "what was asked could not be deleted at the provider within two weeks; delete it there"
                    : "what was asked could not be deleted at the provider; it is tried again",
                [("ai.provider", name), ("ai.remote", leftover.remote), ("error", problem)])
        }
        try await pool.withConnection { try await AILeftoverStore.later(token, name, on: $0) }
        return .done
    }

    /// nil: it is gone.
    /// - Throws: a `CallRefusal` when the provider is not called now, which is no try.
    private func problem(of leftover: AILeftoverStore.Leftover, at provider: any AIBatching) async throws -> String? {
        do {
            try await supervisor.call(provider.name, deadline: .seconds(300), isRetry: false) { call in
                switch leftover.what {
                case .batch: try await provider.forget(leftover.remote, call: call)
                case .file: try await provider.forgetFile(leftover.remote, call: call)
                }
            }
            return nil
        } catch let fault as Fault {
            if Task.isCancelled { throw CancellationError() }
            return fault.description
        }
    }
}

/// The SQL of what is to be deleted at providers.
enum AILeftoverStore {
    struct Leftover: Sendable {
        enum What: String, Sendable { case batch, file }

        var remote: String
        var what: What
    }

    static func due(
        _ token: String, _ provider: String, on connection: Connection
    ) async throws(PostgresError) -> [Leftover] {
        try await connection.query(
            "select remote, what from millrace.ai_leftovers_due($1, $2)", [.text(token), .text(provider)]
        ) { row throws(PostgresError) in
            Leftover(remote: try row.string(0), what: .init(rawValue: try row.string(1)) ?? .batch)
        }
    }

    /// When it is tried again; nil: it is gone, or given up.
    static func tried(
        _ token: String, _ provider: String, _ remote: String, error: String?, on connection: Connection
    ) async throws(PostgresError) -> Date? {
        try await connection.query(
            "select millrace.ai_leftover_tried($1, $2, $3, $4)",
            [.text(token), .text(provider), .text(remote), .text(error)]
        ) { row throws(PostgresError) in try row.optionalDate(0) }.first ?? nil
    }

    static func later(_ token: String, _ provider: String, on connection: Connection) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.ai_leftovers_later($1, $2)", [.text(token), .text(provider)])
    }
}
