package import Faults
package import Supervision

/// What to do about one provider request after each answer. Pure.
///
/// Doubt is the hard part: after an unknown answer only two things end the doubt. One is an acceptance. The other is a refusal of this
/// very letter, by a provider that would repeat its first answer to the same key. Until then no other provider is called.
package struct SendMachine: Sendable {
    package struct Rules: Sendable {
        /// Attempts of one run.
        package var tries = 3
        package var delay = Duration.seconds(2)
        /// We stop trusting the provider's key this much sooner than the provider promises.
        package var caution = Duration.seconds(3600)

        package init() {}
    }

    /// What an answer means for one message of the request.
    package enum Resolution: Sendable, Equatable {
        case accepted(id: String?)
        /// Never to be sent.
        case failed(Fault)
        /// Certainly not taken: another provider may be tried.
        case elsewhere(Fault)
        /// Certainly not taken: try this provider again, under a new key.
        case later(Fault, uses: Bool)
        /// Certainly not taken, perhaps because of another message in the request: send it alone.
        case alone
        /// Unknown, and a duplicate is acceptable: send it again.
        case resend
        /// Unknown, and a duplicate is not acceptable: a human decides.
        case parked(Fault)
        /// Not known yet: the request stays as it is. `wait`: it was not made now, and may be made after that.
        case doubtful(Fault, wait: Duration? = nil)
    }

    package enum Step: Sendable, Equatable {
        /// The same request after a pause.
        case again(after: Duration)
        /// It is over, or rests until its jobs come back.
        case rest([Resolution])
        /// Ask the provider for the message's status.
        case ask
    }

    private let rules: Rules
    private let count: Int
    private let holds: Duration?
    private let canAsk: Bool
    private let mayRepeat: Bool
    private var tries = 0
    package private(set) var isDoubtful: Bool

    /// - Parameters:
    ///   - holds: how long the same key makes the same request happen only once; nil: it does not.
    ///   - canAsk: the provider can tell the message's status, and we know its id there.
    ///   - mayRepeat: a duplicate is acceptable.
    ///   - isDoubtful: an earlier attempt had no certain result.
    package init(
        rules: Rules, count: Int, holds: Duration?, canAsk: Bool, mayRepeat: Bool, isDoubtful: Bool
    ) {
        self.rules = rules
        self.count = count
        self.holds = holds
        self.canAsk = canAsk
        self.mayRepeat = mayRepeat
        self.isDoubtful = isDoubtful
    }

    /// Whether the request may be made (again); nil: it may. `age` counts from its first attempt.
    package func begin(age: Duration) -> Step? {
        guard isDoubtful, !isHeld(age) else { return nil }
        if canAsk { return .ask }
        return .rest(
            give(Fault(.unknown, "nobody knows whether the provider took it, and it would not recognise a repetition")))
    }

    /// The provider has answered the status question: it knows the message, or does not.
    package func asked(found: String?) -> Step {
        if let found { return .rest(Array(repeating: .accepted(id: found), count: count)) }
        return .rest(give(Fault(.unknown, "the provider does not know it, and may have taken it all the same")))
    }

    package mutating func answered(_ answers: [SendOutcome], age: Duration, left: Duration) -> Step {
        tries += 1
        let wasDoubtful = isDoubtful
        if answers.contains(where: Self.isUnknown) { isDoubtful = true }
        if isDoubtful, let fault = firstDoubt(answers, was: wasDoubtful) {
            if isHeld(age) {
                let pause = fault.wait ?? rules.delay
                if tries < rules.tries, pause < left { return .again(after: pause) }
                return .rest(answers.map { resolution($0, was: wasDoubtful) ?? .doubtful(fault) })
            }
            if canAsk { return .ask }
            return .rest(answers.map { resolution($0, was: wasDoubtful) ?? give(fault)[0] })
        }
        if let pause = pause(answers), tries < rules.tries, pause < left { return .again(after: pause) }
        let isWhole = answers.count > 1 && answers.allSatisfy(Self.isForItsOwnSake)
        return .rest(
            answers.map {
                isWhole ? .alone : resolution($0, was: wasDoubtful) ?? .parked(Fault(.internal, "no answer"))
            })
    }

    /// The call was not made: nothing has left this process.
    package mutating func notCalled(_ refusal: CallRefusal) -> Step {
        let resolution: Resolution =
            if isDoubtful {
                .doubtful(refusal.fault, wait: refusal.wait)
            } else {
                switch refusal.why {
                case .open, .forced, .ramping, .reserve: .elsewhere(refusal.fault)
                case .pace, .busy, .retries: .later(refusal.fault, uses: false)
                }
            }
        return .rest(Array(repeating: resolution, count: count))
    }

    private func isHeld(_ age: Duration) -> Bool {
        guard let holds else { return false }
        return age < max(.zero, holds - min(rules.caution, holds / 4))
    }

    private func give(_ fault: Fault) -> [Resolution] {
        Array(repeating: mayRepeat ? .resend : .parked(fault), count: count)
    }

    /// What keeps a message in doubt; nil when the answers settle all of them.
    private func firstDoubt(_ answers: [SendOutcome], was: Bool) -> Fault? {
        for answer in answers where resolution(answer, was: was) == nil {
            return answer.fault ?? Fault(.unknown, "no answer")
        }
        return nil
    }

    /// nil: in doubt.
    private func resolution(_ answer: SendOutcome, was: Bool) -> Resolution? {
        switch answer {
        case .accepted(let id): return .accepted(id: id)
        case .unknown: return nil
        case .throttled(let fault):
            if was { return nil }
            return fault.kind.retry == .elsewhere ? .elsewhere(fault) : .later(fault, uses: false)
        case .refused(let fault):
            switch fault.kind.retry {
            case .sameKey: return nil
            case .elsewhere: return was ? nil : .elsewhere(fault)
            case .after: return was ? nil : .later(fault, uses: true)
            case .never:
                // A conflict under our own key says that an earlier request of ours arrived, but not what became of it.
                if was, holds == nil || fault.kind == .conflict || fault.kind == .cancelled { return nil }
                return fault.kind == .cancelled ? .later(fault, uses: false) : .failed(fault)
            }
        }
    }

    /// How long to wait before the same request is tried again in this run, when it was certainly not taken; nil: do not try again.
    private func pause(_ answers: [SendOutcome]) -> Duration? {
        var longest = Duration.zero
        for answer in answers {
            guard case .later(let fault, _)? = resolution(answer, was: false), fault.kind != .cancelled else {
                return nil
            }
            longest = max(longest, fault.wait ?? rules.delay)
        }
        return answers.isEmpty ? nil : longest
    }

    private static func isUnknown(_ answer: SendOutcome) -> Bool {
        switch answer {
        case .unknown: true
        case .refused(let fault): fault.kind.retry == .sameKey
        case .accepted, .throttled: false
        }
    }

    private static func isForItsOwnSake(_ answer: SendOutcome) -> Bool {
        guard case .refused(let fault) = answer else { return false }
        return fault.kind.retry == .never && fault.kind != .cancelled
    }
}
