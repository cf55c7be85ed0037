import Foundation

/// When calls stop for a while because the gateway does not answer.
public struct BreakerRules: Sendable, Hashable {
    /// After this number of failures in a row. 0: never.
    public var failures = 5
    /// How long no call is made then. The first one afterwards tries; while it does, the others still fail at once.
    public var firstPause = Duration.seconds(5)
    /// The pause doubles with each try that fails, up to this.
    public var longestPause = Duration.seconds(30)

    /// The defaults.
    public init() {}

    /// Every call is made.
    public static var off: BreakerRules {
        var rules = BreakerRules()
        rules.failures = 0
        return rules
    }
}

/// Decides whether a call is made: closed, open, or trying with one call.
struct BreakerMachine: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// What a call has said of the gateway.
    enum Word: Sendable {
        case answered, silent, nothing
    }
    /// How a call was let through. Each one that was ends in `ended`.
    enum Pass: Sendable, Equatable {
        case plain
        /// The one that tries, by its number: one of before says nothing of a later pause.
        case probe(Int)
        /// It goes whatever the state is.
        case urgent
    }
    enum Answer: Sendable, Equatable {
        case go(Pass)
        case wait(Duration)
    }
    enum State: Sendable, Equatable {
        case closed(failures: Int)
        case open(until: Instant, pause: Duration)
        case probing(pause: Duration, number: Int)
    }

    private(set) var state = State.closed(failures: 0)
    private var probes = 0
    let rules: BreakerRules

    init(_ rules: BreakerRules) { self.rules = rules }

    mutating func begins(isUrgent: Bool, at now: Instant) -> Answer {
        switch state {
        case _ where isUrgent: return .go(.urgent)
        case .closed: return .go(.plain)
        case .probing(let pause, _): return .wait(pause)
        case .open(let until, _) where until > now: return .wait(now.duration(to: until))
        case .open(_, let pause):
            probes += 1
            state = .probing(pause: pause, number: probes)
            return .go(.probe(probes))
        }
    }

    mutating func ended(_ pass: Pass, _ word: Word, at now: Instant) {
        switch (word, state) {
        case (.answered, _): state = .closed(failures: 0)
        case (.silent, .closed(let failures)) where rules.failures > 0:
            let all = failures + 1
            state = all < rules.failures ? .closed(failures: all) : opened(rules.firstPause, now)
        case (.silent, .probing(let pause, let number)) where pass == .probe(number):
            state = opened(min(pause * 2, rules.longestPause), now)
        case (.nothing, .probing(let pause, let number)) where pass == .probe(number):
            state = .open(until: now, pause: pause)  // it said nothing: the next one tries
        default: break  // a call from before, which says nothing new
        }
    }

    private func opened(_ pause: Duration, _ now: Instant) -> State {
        .open(until: now.advanced(by: pause), pause: pause)
    }
}

/// The breaker of one client, for all its calls.
final class CircuitBreaker: Sendable {
    // Mutex needs iOS 18. The machine is read and written under the lock only.
    private let lock = NSLock()
    nonisolated(unsafe) private var machine: BreakerMachine
    private let now: @Sendable () -> ContinuousClock.Instant

    init(_ rules: BreakerRules, now: @escaping @Sendable () -> ContinuousClock.Instant) {
        machine = BreakerMachine(rules)
        self.now = now
    }

    /// Throws where the call is not to be made.
    func begin(isUrgent: Bool) throws -> BreakerMachine.Pass {
        switch lock.withLock({ machine.begins(isUrgent: isUrgent, at: now()) }) {
        case .go(let pass): return pass
        case .wait(let pause):
            throw AppError(
                .unavailable, "the gateway has not answered, and is called again in a moment",
                hint: "Check-ins and calls for help are made all the same; AppConfiguration.breaker has the figures.",
                retryAfter: pause, isBarred: true)
        }
    }

    func end(_ pass: BreakerMachine.Pass, _ word: BreakerMachine.Word) {
        lock.withLock { machine.ended(pass, word, at: now()) }
    }
}

extension BreakerMachine.Word {
    /// A refusal is an answer. A device without a network says nothing of the gateway, and fails at once anyway.
    init(_ error: any Error) {
        switch error {
        case let error as URLError:
            switch error.code {
            case .cancelled, .notConnectedToInternet, .dataNotAllowed, .internationalRoamingOff, .callIsActive:
                self = .nothing
            default: self = .silent
            }
        case let error as AppError:
            switch error.errorClass {
            case .timeout, .unavailable, .unknown: self = .silent
            default: self = error.isFromGateway ? .answered : .nothing
            }
        default: self = .nothing
        }
    }
}
