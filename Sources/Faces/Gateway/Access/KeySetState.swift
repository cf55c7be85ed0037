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
    private var strangers = StrangeKeys()
    /// Since the last reading for which no more than time was needed.
    private var hasReadForMany = false

    /// From this age on the keys are read again in the background.
    static let freshAge = 3600.0
    /// Until this age they are used.
    static let lastAge = 86_400.0
    /// An unknown key is a reason to read no sooner than this after the last time.
    static let leastPause = 60.0

    /// After a failure it is sooner: nothing was learnt.
    private var pause: Double { failures == 0 ? Self.leastPause : min(Self.leastPause, Double(1 << min(failures, 6))) }

    /// Whether it may be read now. Then it counts as being read. An unknown id that many tokens name is a reason to read once more before the
    /// pause is over: the issuer has changed its keys in an emergency.
    mutating func mayBegin(at now: Date, for id: String? = nil) -> Bool {
        if askedAt.map({ Self.is(now, within: pause, of: $0) }) ?? false {
            guard let id, !hasReadForMany, failures == 0, strangers.isNamedByMany(id) else { return false }
            hasReadForMany = true
        } else {
            hasReadForMany = false
        }
        askedAt = now
        return true
    }

    mutating func succeeded(with keys: [WebTokenRules.Key], changed: Bool, at now: Date) {
        if changed { generation += 1 }
        let withdrawn = Set(self.keys.compactMap(\.id)).subtracting(keys.compactMap(\.id))
        strangers.settle(readingFrom: askedAt ?? now, withdrawn: withdrawn)
        self.keys = keys
        (readAt, failure, failures) = (now, nil, 0)
    }

    /// A token names an id that no key has.
    mutating func met(_ id: String, in token: [UInt8], at now: Date) { strangers.note(id, in: token, at: now) }

    /// Seconds until it may be read for this unknown id; nil: a reading has shown that no key has it.
    func wait(for id: String, at now: Date) -> Int? {
        guard strangers.mayExist(id), let askedAt else { return nil }
        return max(1, Int((pause - abs(now.timeIntervalSince(askedAt))).rounded(.up)))
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
