/// A process's own verdict on a provider, from its own calls only.
package struct Breaker: Sendable {
    package struct Settings: Sendable, Equatable {
        package var failures = 3
        package var open = Duration.seconds(300)
        package var longestOpen = Duration.seconds(3600)
        package var window = Duration.seconds(30)
        package var probes = 2
        /// A probe that has not come back after this time counts as lost, and its place is free.
        package var probeLease = Duration.seconds(30)
        /// A caller that was refused because probes are under way, or not lent yet, comes back after this time.
        package var comeBack = Duration.seconds(1)
        package var rampStep = Duration.seconds(1)
        package var slow = Duration.seconds(10)
        /// A window's shares count only from this many calls on.
        package var enough: Int32 = 20
        package var failedShare = 0.5
        package var slowShare = 0.8

        package init() {}
    }

    package enum State: Sendable, Equatable {
        /// → open
        case closed(failures: Int)
        /// → probing
        case open(until: Moment)
        /// → ramping, open
        case probing(out: [Int64: Moment], passed: Int)
        /// → closed, open
        case ramping(Ramp, failures: Int)
    }

    package let settings: Settings
    package private(set) var state = State.closed(failures: 0)
    /// Grows with every change of state. A call that was let through under an earlier generation no longer counts.
    package private(set) var generation: Int64 = 0
    /// How often it has opened since the provider was last well.
    package private(set) var streak = 0
    package private(set) var opened: Moment?
    private var lastProbe: Int64 = 0

    package init(_ settings: Settings) {
        self.settings = settings
    }

    package mutating func admit(at now: Moment) -> Admission {
        switch state {
        case .closed:
            return .go(Permit(right: .plain, generation: generation))
        case .open(let until):
            guard now >= until else { return .refused(until: until) }
            become(.probing(out: [:], passed: 0))
            return admit(at: now)
        case .probing(var out, let passed):
            out = out.filter { $0.value > now }
            guard out.count + passed < settings.probes else {
                state = .probing(out: out, passed: passed)
                return .refused(until: now + settings.comeBack)
            }
            lastProbe += 1
            out[lastProbe] = now + settings.probeLease
            state = .probing(out: out, passed: passed)
            return .go(Permit(right: .probe(lastProbe), generation: generation))
        case .ramping(var ramp, let failures):
            guard ramp.step(at: now) != nil else {
                streak = 0
                become(.closed(failures: 0))
                return .go(Permit(right: .plain, generation: generation))
            }
            let goes = ramp.admits(at: now)
            state = .ramping(ramp, failures: failures)
            return goes ? .go(Permit(right: .ramp, generation: generation)) : .refused(until: ramp.nextStep(after: now))
        }
    }

    /// `hold` is how long the provider wants to be left alone, `jitter` a random number from 0 to 1.
    package mutating func record(
        _ permit: Permit, _ mark: CallOutcome, window: Window.Counts, hold: Duration? = nil, jitter: Double,
        at now: Moment
    ) {
        guard permit.generation == generation else { return }
        switch state {
        case .closed(let failures):
            switch mark {
            case .neutral: break
            case .refusing: open(hold: hold, jitter: jitter, at: now)
            case .healthy:
                if failures != 0 { state = .closed(failures: 0) }
                if isTooSlow(window) { open(hold: nil, jitter: jitter, at: now) }
            case .failing:
                state = .closed(failures: failures + 1)
                if failures + 1 >= settings.failures || isTooBad(window) || isTooSlow(window) {
                    open(hold: hold, jitter: jitter, at: now)
                }
            }
        case .open: break
        case .probing(var out, var passed):
            guard case .probe(let number) = permit.right, let lease = out.removeValue(forKey: number), lease > now
            else {
                return
            }
            switch mark {
            case .neutral: state = .probing(out: out, passed: passed)
            case .failing, .refusing: open(hold: hold, jitter: jitter, at: now)
            case .healthy:
                passed += 1
                if passed >= settings.probes {
                    become(.ramping(Ramp(began: now, stepLength: settings.rampStep), failures: 0))
                } else {
                    state = .probing(out: out, passed: passed)
                }
            }
        case .ramping(var ramp, let failures):
            ramp.leave()
            switch mark {
            case .neutral: state = .ramping(ramp, failures: failures)
            case .healthy: state = .ramping(ramp, failures: 0)
            case .refusing: open(hold: hold, jitter: jitter, at: now)
            case .failing:
                state = .ramping(ramp, failures: failures + 1)
                if failures + 1 >= settings.failures { open(hold: hold, jitter: jitter, at: now) }
            }
        }
    }

    /// The fleet's verdict replaces this breaker's own: it starts afresh.
    package mutating func reset() {
        streak = 0
        opened = nil
        become(.closed(failures: 0))
    }

    /// The fleet's decision goes on while the database cannot be reached.
    package mutating func take(over until: Moment) {
        become(.open(until: until))
    }

    private mutating func open(hold: Duration?, jitter: Double, at now: Moment) {
        let usual = settings.openTime(streak: streak, jitter: jitter)
        opened = now
        streak += 1
        become(.open(until: now + max(usual, min(hold ?? .zero, .seconds(86_400)))))
    }

    private mutating func become(_ next: State) {
        state = next
        generation += 1
    }

    private func isTooBad(_ counts: Window.Counts) -> Bool {
        counts.judged >= settings.enough && Double(counts.failed) >= Double(counts.judged) * settings.failedShare
    }

    private func isTooSlow(_ counts: Window.Counts) -> Bool {
        counts.judged >= settings.enough && Double(counts.slow) >= Double(counts.judged) * settings.slowShare
    }
}

extension Breaker.Settings {
    /// Doubles with each opening in a row, and varies by a fifth, so that the workers of a fleet do not come back at the same moment.
    package func openTime(streak: Int, jitter: Double) -> Duration {
        let base = Double(open.nanoseconds) * Double(1 << min(max(0, streak), 10))
        let bounded = min(base, Double(max(open, longestOpen).nanoseconds))
        return .nanoseconds(Int64(bounded * (0.8 + 0.4 * jitter)))
    }
}
