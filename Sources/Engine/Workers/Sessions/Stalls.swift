import Synchronization

/// What a worker's loops have been trying in vain, and for how long: whether it is ready is what they find, not what a connection of its own would.
package final class Stalls: Sendable {
    package enum Activity: String, Sendable, CaseIterable {
        case beating = "no sign of life has reached the database"
        case claiming = "no claim of jobs has succeeded"
        case reading = "no claimed jobs could be read"
        case recording = "no end of a job could be recorded"
    }

    private let since = Mutex<[Activity: ContinuousClock.Instant]>([:])

    package init() {}

    /// A try begins. One that follows others that were in vain changes nothing.
    package func began(_ activity: Activity, at now: ContinuousClock.Instant = .now) {
        since.withLock { $0[activity] = $0[activity] ?? now }
    }

    /// It has succeeded, or there is nothing to try.
    package func ended(_ activity: Activity) {
        since.withLock { $0[activity] = nil }
    }

    /// What has been tried in vain for longest, if for so long at least.
    package func longest(atLeast limit: Duration, at now: ContinuousClock.Instant = .now) -> (
        activity: Activity, lasts: Duration
    )? {
        let first = since.withLock { $0.min { ($0.value, $0.key.rawValue) < ($1.value, $1.key.rawValue) } }
        guard let first else { return nil }
        let lasts = first.value.duration(to: now)
        return lasts >= limit ? (first.key, lasts) : nil
    }
}
