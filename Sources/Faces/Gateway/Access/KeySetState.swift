import FoundationEssentials
import Signatures

/// What is known of a key set, and when it may be read again. Pure.
struct KeySetState: Sendable {
    private(set) var keys: [WebTokenRules.Key] = []
    /// Grows when other keys are there than before.
    private(set) var generation = 0
    private(set) var failure: String?
    private var readAt: Date?
    private var askedAt: Date?
    private var failures = 0

    /// From this age on the keys are read again in the background.
    static let freshAge = 3600.0
    /// Until this age they are used.
    static let lastAge = 86_400.0
    /// An unknown key is a reason to read no sooner than this after the last time.
    static let leastPause = 60.0

    /// After a failure it is sooner: nothing was learnt.
    private var pause: Double { failures == 0 ? Self.leastPause : min(Self.leastPause, Double(1 << min(failures, 6))) }

    /// Whether it may be read now. Then it counts as being read.
    mutating func mayBegin(at now: Date) -> Bool {
        guard (askedAt.map { !Self.is(now, within: pause, of: $0) }) ?? true else { return false }
        askedAt = now
        return true
    }

    mutating func succeeded(with keys: [WebTokenRules.Key], changed: Bool, at now: Date) {
        if changed { generation += 1 }
        self.keys = keys
        (readAt, failure, failures) = (now, nil, 0)
    }

    mutating func failed(_ why: String) {
        failure = why
        failures += 1
    }

    /// Nobody waited for the answer.
    mutating func gaveUp() { askedAt = nil }

    var isRead: Bool { readAt != nil }

    func usableKeys(at now: Date) -> [WebTokenRules.Key] {
        readAt.map { Self.is(now, within: Self.lastAge, of: $0) } == true ? keys : []
    }

    /// Seconds until the background reads it again.
    func wait(at now: Date) -> Double {
        if failures > 0 { return pause }
        guard let readAt else { return askedAt == nil ? 0 : 1 }
        return min(max(1, readAt.timeIntervalSince(now) + Self.freshAge), Self.freshAge)
    }

    func trouble(at now: Date, host: String) -> String? {
        guard usableKeys(at: now).isEmpty else { return nil }
        let why = failure.map { ": \($0)" } ?? ""
        return isRead
            ? "the keys of \(host) were last read more than a day ago\(why)"
            : "the keys of \(host) have not been read yet\(why)"
    }

    /// A clock that was set back makes nothing young again.
    private static func `is`(_ now: Date, within span: Double, of then: Date) -> Bool {
        abs(now.timeIntervalSince(then)) < span
    }
}
