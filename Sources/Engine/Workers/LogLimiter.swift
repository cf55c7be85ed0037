import Postgres
import Synchronization
import Telemetry

/// The same trouble every second is one line a minute.
final class LogLimiter: Sendable {
    private struct Entry {
        var at: ContinuousClock.Instant
        var unsaid = 0
    }

    private static let pause = Duration.seconds(60)

    private let log: Log
    private let entries = Mutex<[String: Entry]>([:])

    init(log: Log) {
        self.log = log
    }

    /// An outage has its own line, unless the database is there and short of something; a cancelled statement is no trouble.
    func say(_ what: StaticString, _ error: PostgresError) {
        guard !error.isOutage || error.isShortage, error != .cancelled else { return }
        guard let unsaid = due("\(what) \(error.sqlState ?? "")") else { return }
        log.error(
            what, [("error", error.description), ("sqlstate", error.sqlState ?? "none")] + Self.repeated(unsaid))
    }

    /// Something that a kind of job does.
    func say(_ what: StaticString, about kind: String) {
        guard let unsaid = due("\(what) \(kind)") else { return }
        log.warning(what, [("job.kind", kind)] + Self.repeated(unsaid))
    }

    private static func repeated(_ unsaid: Int) -> [(String, String)] {
        unsaid > 0 ? [("times_since", "\(unsaid)")] : []
    }

    /// How often it was not said since it was said last; nil: it is not to be said now.
    private func due(_ key: String) -> Int? {
        let now = ContinuousClock.now
        return entries.withLock { entries in
            if let entry = entries[key], entry.at.duration(to: now) < Self.pause {
                entries[key]?.unsaid += 1
                return nil
            }
            defer { entries[key] = Entry(at: now) }
            return entries[key]?.unsaid ?? 0
        }
    }
}
