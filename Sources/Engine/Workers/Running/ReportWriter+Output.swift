import MillraceJobs
import MillraceQueues
import Postgres

extension ReportWriter {
    /// Asked again after a lost answer, the database knows the call by its number.
    func publish(_ context: Context, _ value: [UInt8], key: String?, call: Int64) async throws {
        let token = context.token
        try await put(context, value) { connection throws(PostgresError) in
            try await Queue.publish(value, key: key, call: call, token: token, on: connection)
        }
    }

    func putState(_ context: Context, _ value: [UInt8]) async throws {
        let token = context.token
        try await put(context, value) { connection throws(PostgresError) in
            try await Queue.putState(value, token: token, on: connection)
        }
    }

    private func put(
        _ context: Context, _ value: [UInt8], _ body: @Sendable (Connection) async throws(PostgresError) -> Void
    ) async throws {
        do throws(PostgresError) {
            try await patiently(context, body)
        } catch {
            if error == .cancelled { throw CancellationError() }
            let why = Self.explain(error, bytes: value.count)
            if why == .leaseLost { lose(context) }
            throw why
        }
    }

    private static func explain(_ error: PostgresError, bytes: Int) -> OutputError {
        guard case .server(let server) = error else { return .refused(reason: error.description) }
        switch server.sqlState {
        case "55000" where server.detail?.contains("lease_lost") == true: return .leaseLost
        // As the database writes JSON it may be larger than as it was sent.
        case "53400" where server.detail?.contains("value") == true: return .tooLarge(bytes: bytes)
        case "53400": return .full
        default: return .refused(reason: error.description)
        }
    }
}
