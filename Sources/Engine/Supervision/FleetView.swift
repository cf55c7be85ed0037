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
        case refused(until: Moment)
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
    /// The latest moment at which a refused caller was told to come back; nil: nobody was refused in this generation.
    private var awaited: Moment?
    /// Probes for callers that come back. After `reservedUntil` another worker may have them, if it asks.
    private var lent: [(lease: Int64, reservedUntil: Moment)] = []
    /// Lease numbers only grow. A lease that is not above this one was lent before: the answer that names it was on its way when it came
    /// back.
    private var lastLease: Int64 = 0
    package private(set) var out: Set<Int64> = []
    package private(set) var results: [Result] = []
    private let comeBack: Duration

    /// - Parameter comeBack: a caller that a probe is asked for comes back after this time.
    package init(comeBack: Duration) {
        self.comeBack = comeBack
    }

    package mutating func decide(at now: Moment) -> Decision {
        switch state {
        case .closed: return .ask
        case .forcedOpen(let until): return now < until ? .refused(until: until) : .ask
        case .forcedClosed(let until), .observing(let until): return now < until ? .override : .ask
        case .open(let until):
            if now >= until { wantsProbe = true }
            return refused(until: now < until ? until : now + comeBack)
        case .probing:
            guard let probe = lent.popLast() else {
                wantsProbe = true
                return refused(until: now + comeBack)
            }
            out.insert(probe.lease)
            return .go(Permit(right: .fleetProbe(lease: probe.lease), generation: generation))
        case .ramping(var ramp):
            guard ramp.step(at: now) != nil else { return .ask }
            let goes = ramp.admits(at: now)
            state = .ramping(ramp)
            return goes
                ? .go(Permit(right: .fleetRamp, generation: generation)) : .refused(until: ramp.nextStep(after: now))
        }
    }

    private mutating func refused(until moment: Moment) -> Decision {
        awaited = max(awaited ?? moment, moment)
        return .refused(until: moment)
    }

    /// When a probe will be due for callers that were told to come back then; nil: nobody waits for one.
    package var due: Moment? {
        guard awaited != nil, !wantsProbe, case .open(let until) = state else { return nil }
        return until
    }

    /// Asks for a probe once the open time is over, so that callers find one when they come back as they were told.
    package mutating func askIfDue(at now: Moment) {
        if let due, due <= now { wantsProbe = true }
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

    /// The call was not made. A probe stays here, for the same call may only be waiting for its turn.
    package mutating func giveBack(_ permit: Permit, at now: Moment) {
        guard case .fleetProbe(let lease) = permit.right else {
            _ = record(permit, .neutral)
            return
        }
        guard out.remove(lease) != nil else { return }
        if permit.generation == generation, case .probing = state {
            lent.append((lease, now + comeBack * 2))
        } else {
            results.append(Result(lease: lease, passed: nil))
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
        awaited = nil
        // Probes lent under the last generation are void. Those still under way come back without a result.
        for probe in lent { results.append(Result(lease: probe.lease, passed: nil)) }
        lent = []
        return true
    }

    /// `leases` are all that the fleet lends to this process. One that is not among them any more went to another worker.
    package mutating func lend(_ leases: [Int64], generation: Int64, at now: Moment) {
        if generation == self.generation { lent.removeAll { !leases.contains($0.lease) } }
        for lease in leases.sorted() where lease > lastLease {
            lastLease = lease
            if generation == self.generation, case .probing = state {
                lent.append((lease, max(now, awaited ?? now) + comeBack * 2))
                wantsProbe = false
            } else {
                results.append(Result(lease: lease, passed: nil))
            }
        }
    }

    /// The fleet counts this circuit's generations separately.
    mutating func becomeOwn() {
        generation = 0
        results = []
        lent = []
        out = []
        awaited = nil
    }

    /// The probes that nobody else may have: those under way, and those whose caller is still expected.
    package func held(at now: Moment) -> [Int64] { lent.filter { $0.reservedUntil > now }.map(\.lease) + out }
    /// The probes whose caller is late. They can still be used here until another worker's callers ask.
    package func idle(at now: Moment) -> [Int64] { lent.filter { $0.reservedUntil <= now }.map(\.lease) }
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
