import Foundation
package import Postgres

extension Duration {
    /// How long a test waits for what should happen at once. Only a test that fails waits that long, and a busy machine never needs it.
    package static let ample = Duration.seconds(120)
}

/// A condition that did not come to hold.
package struct NeverHappened: Error, CustomStringConvertible {
    package let what: String
    package let within: Duration

    package var description: String { "did not happen within \(within): \(what)" }
}

/// How long something has waited on a machine that had a processor for it. Time in which work stood in line for a processor counts for nothing, up to
/// fifteen minutes: so a test that fails ends soon after the machine is free again, and a busy machine fails none.
package struct FreeTime {
    private let start = ContinuousClock.now
    private let shortage = FreeTime.shortage()

    package init() {}

    /// What the kernel counts as time in which some work lacked a processor. Zero where it does not count.
    private static func shortage() -> Duration {
        guard let text = try? String(contentsOfFile: "/proc/pressure/cpu", encoding: .utf8),
            let total = text.prefix(while: { $0 != "\n" }).split(separator: "=").last.flatMap({ Int64($0) })
        else { return .zero }
        return .microseconds(total)
    }

    /// Without a look at the kernel's count.
    package var waited: Duration { ContinuousClock.now - start }

    package func exceeds(_ limit: Duration) -> Bool {
        let waited = waited
        guard waited >= limit else { return false }
        return waited - min(Self.shortage() - shortage, .seconds(900)) >= limit
    }
}

/// Looks again and again until `condition` holds; throws when it does not within `limit`, counted as `FreeTime`. The longer it waits the less often it
/// looks, because each look takes processor time from the work that it waits for.
package func eventually(
    _ what: String, within limit: Duration = .ample, _ condition: () async throws -> Bool
) async throws {
    let time = FreeTime()
    while try await !condition() {
        guard !time.exceeds(limit) else { throw NeverHappened(what: what, within: limit) }
        try await Task.sleep(for: min(max(time.waited / 10, .milliseconds(3)), .milliseconds(40)))
    }
}

/// Waits until another session's statement stands still for a lock.
package func waitUntilBlocked(_ process: Int, seenBy connection: Connection) async throws {
    try await eventually("process \(process) waits for a lock") {
        try await connection.bool(
            "select coalesce(bool_or(wait_event_type = 'Lock'), false) from pg_stat_activity where pid = \(process)")
    }
}

/// Tries again while the server answers with one of these codes.
func retrying(sqlStates: Set<String>, _ body: () async throws -> Void) async throws {
    for _ in 0..<200 {
        do {
            return try await body()
        } catch let error as PostgresError where sqlStates.contains(error.sqlState ?? "") {
            try await Task.sleep(for: .milliseconds(20))
        }
    }
    try await body()
}

/// The error that `body` ends with; nil when it ends well. An error of another type is thrown on.
package func failure<Failure: Error>(
    as type: Failure.Type = PostgresError.self, _ body: () async throws -> Void
) async throws -> Failure? {
    do {
        try await body()
        return nil
    } catch let error as Failure {
        return error
    }
}
