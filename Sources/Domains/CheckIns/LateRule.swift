package import FoundationEssentials

/// When a check-in counts, from the caller's time and the database's. The database has the same rule, and its answer counts; tests compare
/// it with this one.
package struct LateRule: Sendable, Equatable {
    /// The time as of which it counts: never in the future.
    package var effective: Date
    /// The caller's time was believed, or there was none.
    package var isBelieved: Bool

    package static let ahead: TimeInterval = 120
    package static let oldest: TimeInterval = 86_400

    package init(at: Date?, lastCheckedIn: Date?, now: Date) {
        guard let at else {
            (effective, isBelieved) = (now, true)
            return
        }
        isBelieved =
            at >= lastCheckedIn ?? .distantPast && at <= now.addingTimeInterval(Self.ahead)
            && at >= now.addingTimeInterval(-Self.oldest)
        effective = isBelieved ? min(at, now) : now
    }
}

/// A watch as a machine without a database: how a check-in, the timer and a new interval change it.
package struct WatchMachine: Sendable, Equatable {
    package enum State: String, Sendable {
        /// Next: warned, expired.
        case armed
        /// Next: armed, expired.
        case warned
        /// Next: armed.
        case expired
    }

    package private(set) var state = State.armed
    package private(set) var every: TimeInterval
    package private(set) var lastCheckedIn: Date
    package private(set) var expires: Date
    private var warnedAt: Date?
    private let grace: TimeInterval
    private let warnings: [TimeInterval]

    package init(every: TimeInterval, grace: TimeInterval, warnings: [TimeInterval], now: Date) {
        self.every = every
        self.grace = grace
        self.warnings = warnings
        lastCheckedIn = now
        expires = now.addingTimeInterval(every)
    }

    /// True when it came too late: there is an alarm, or there was one.
    package mutating func checkIn(at: Date?, now: Date) -> Bool {
        let counted = LateRule(at: at, lastCheckedIn: lastCheckedIn, now: now).effective
        let isLate = state == .expired || expires <= now
        lastCheckedIn = counted
        let next = counted.addingTimeInterval(every)
        expires = isLate ? next : max(expires, next)
        state = expires > now ? .armed : .expired
        warnedAt = nil
        return isLate
    }

    /// What is due: nil for nothing.
    package mutating func look(now: Date) -> State? {
        guard state != .expired else { return nil }
        if expires <= now {
            state = .expired
            return .expired
        }
        let isDue = warnings.contains { warning in
            let at = expires.addingTimeInterval(-warning)
            return warning < every && at <= now && warnedAt.map { at > $0 } ?? true
        }
        guard isDue else { return nil }
        (state, warnedAt) = (.warned, now)
        return .warned
    }

    package mutating func change(every: TimeInterval, now: Date) {
        self.every = every
        guard state != .expired, expires > now else { return }
        expires = max(lastCheckedIn.addingTimeInterval(every), now.addingTimeInterval(grace))
        (state, warnedAt) = (.armed, nil)
    }
}
