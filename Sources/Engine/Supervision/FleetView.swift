/// The fleet's decision, as this process last heard it, and the probes that were lent to this process.
package struct FleetView: Sendable {
    package enum State: Sendable, Equatable {
        /// The process's own breaker decides. → any
        case closed
        /// → probing, ramping, closed
        case open(until: Moment)
        /// → open, ramping
        case probing
        /// → open, closed
        case ramping(Ramp)
        /// Forced by an operator, until then. → any
        case forcedOpen(until: Moment)
        case forcedClosed(until: Moment)
        case observing(until: Moment)
    }

    package enum Decision: Sendable, Equatable {
        case go(Permit)
        case refused(until: Moment?)
        /// The fleet has no objection; our own breaker decides.
        case ask
        /// Let through even if our own breaker objects.
        case override
    }

    /// A probe that has come back: passed, failed, or nil: nothing was learned.
    package struct Result: Sendable, Equatable {
        package var lease: Int64
        package var passed: Bool?

        package init(lease: Int64, passed: Bool?) {
            self.lease = lease
            self.passed = passed
        }
    }

    package private(set) var state = State.closed
    package private(set) var generation: Int64 = 0
    package private(set) var reason: String?
    /// Calls came while a probe was due, so a probe would be used.
    package private(set) var wantsProbe = false
    private var lent: [(lease: Int64, until: Moment)] = []
    /// Lease numbers only grow. A lease that is not above this one was lent before: the answer that names it was on its way when it came
    /// back.
    private var lastLease: Int64 = 0
    package private(set) var out: Set<Int64> = []
    package private(set) var results: [Result] = []

    package init() {}

    package mutating func decide(at now: Moment) -> Decision {
        switch state {
        case .closed: return .ask
        case .forcedOpen(let until): return now < until ? .refused(until: until) : .ask
        case .forcedClosed(let until), .observing(let until): return now < until ? .override : .ask
        case .open(let until):
            if now >= until { wantsProbe = true }
            return now < until ? .refused(until: until) : .refused(until: nil)
        case .probing:
            lent.removeAll { $0.until <= now }
            guard let probe = lent.popLast() else {
                wantsProbe = true
                return .refused(until: nil)
            }
            out.insert(probe.lease)
            return .go(Permit(right: .fleetProbe(lease: probe.lease), generation: generation))
        case .ramping(var ramp):
            guard ramp.step(at: now) != nil else { return .ask }
            let goes = ramp.admits(at: now)
            state = .ramping(ramp)
            return goes ? .go(Permit(right: .fleetRamp, generation: generation)) : .refused(until: nil)
        }
    }

    /// True when the fleet should hear of it at once.
    package mutating func record(_ permit: Permit, _ mark: CallOutcome) -> Bool {
        switch permit.right {
        case .fleetProbe(let lease):
            guard out.remove(lease) != nil else { return false }
            let passed: Bool? =
                switch mark {
                case .healthy: true
                case .failing, .refusing: false
                case .neutral: nil
                }
            results.append(Result(lease: lease, passed: passed))
            return true
        case .fleetRamp:
            if permit.generation == generation, case .ramping(var ramp) = state {
                ramp.leave()
                state = .ramping(ramp)
            }
            return false
        case .plain, .probe, .ramp: return false
        }
    }

    /// True when the state changed.
    package mutating func adopt(_ next: State, generation: Int64, reason: String?) -> Bool {
        guard generation > self.generation else {
            // The same state again, but its end may have moved.
            if generation == self.generation, case .ramping = state { return false }
            guard generation == self.generation, state != next else { return false }
            state = next
            return true
        }
        state = next
        self.generation = generation
        self.reason = reason
        wantsProbe = false
        // Probes lent under the last generation are void. Those still under way come back without a result.
        for probe in lent { results.append(Result(lease: probe.lease, passed: nil)) }
        lent = []
        return true
    }

    package mutating func lend(_ leases: [Int64], generation: Int64, until: Moment) {
        for lease in leases.sorted() where lease > lastLease {
            lastLease = lease
            if generation == self.generation, case .probing = state {
                lent.append((lease, until))
                wantsProbe = false
            } else {
                results.append(Result(lease: lease, passed: nil))
            }
        }
    }

    /// Returns unused probes, so that another worker can use them.
    package mutating func returnIdle(at now: Moment) {
        for probe in lent where probe.until <= now { results.append(Result(lease: probe.lease, passed: nil)) }
        lent.removeAll { $0.until <= now }
    }

    /// The fleet counts this circuit's generations separately.
    mutating func becomeOwn() {
        generation = 0
        results = []
        lent = []
        out = []
    }

    package var held: [Int64] { lent.map(\.lease) + out }
    package var lentCount: Int { lent.count }

    package mutating func told(_ sent: [Result], asked: Bool) {
        results.removeAll { sent.contains($0) }
        if asked { wantsProbe = false }
    }

    /// The database cannot be reached any more. Returns until when the circuit was to stay open, if it was.
    package mutating func detach(at now: Moment) -> Moment? {
        lent = []
        defer {
            switch state {
            case .open, .probing: state = .closed
            case .closed, .ramping, .forcedOpen, .forcedClosed, .observing: break
            }
        }
        switch state {
        case .open(let until): return until
        case .probing: return now
        case .closed, .ramping, .forcedOpen, .forcedClosed, .observing: return nil
        }
    }
}
