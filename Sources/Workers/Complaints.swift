import Postgres
import Synchronization
import Telemetry

/// The same trouble every second is one line a minute.
final class Complaints: Sendable {
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

    /// An outage has its own line, and a cancelled statement is no trouble.
    func say(_ what: StaticString, _ error: PostgresError) {
        guard !error.isOutage, error != .cancelled else { return }
        let key = "\(what) \(error.sqlState ?? "")"
        let now = ContinuousClock.now
        let unsaid: Int? = entries.withLock { entries in
            if let entry = entries[key], entry.at.duration(to: now) < Self.pause {
                entries[key]?.unsaid += 1
                return nil
            }
            defer { entries[key] = Entry(at: now) }
            return entries[key]?.unsaid ?? 0
        }
        guard let unsaid else { return }
        var data = [("error", error.description), ("sqlstate", error.sqlState ?? "none")]
        if unsaid > 0 { data.append(("times_since", "\(unsaid)")) }
        log.error(what, data)
    }
}
