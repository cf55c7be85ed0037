package import Faults

/// One class of calls of one provider: the fleet's decision, this process's own verdict, and the counts.
package struct Circuit: Sendable {
    package private(set) var own: Breaker
    package private(set) var mirror: FleetView
    package private(set) var window: Window
    /// Why our own breaker opened last.
    package private(set) var reason: String?
    package private(set) var isAuthoritative = false
    package private(set) var hold: Duration?
    /// While the fleet could not be reached, our own probes found that the provider works.
    package private(set) var hasRecovered = false
    package private(set) var isDetached = false
    /// Calls that came since the last flush, let through or not.
    package var asked = 0
    package private(set) var totals = Totals()

    /// The outcomes of all calls since the process began.
    package struct Totals: Sendable, Equatable {
        package var ok = 0
        package var failed = 0
        package var throttled = 0
        package var unknown = 0
        /// Not let through.
        package var refused = 0
        /// Let through only because an operator wants to observe.
        package var wouldRefuse = 0

        package init() {}

        package static func + (left: Self, right: Self) -> Self {
            var sum = left
            sum.ok += right.ok
            sum.failed += right.failed
            sum.throttled += right.throttled
            sum.unknown += right.unknown
            sum.refused += right.refused
            sum.wouldRefuse += right.wouldRefuse
            return sum
        }
    }

    package init(_ settings: Breaker.Settings) {
        own = Breaker(settings)
        mirror = FleetView(comeBack: settings.comeBack)
        window = Window(length: settings.window)
    }

    package mutating func admit(at now: Moment) -> Admission {
        asked += 1
        let admission =
            switch mirror.decide(at: now) {
            case .go(let permit): Admission.go(permit)
            case .refused(let until): Admission.refused(until: until)
            case .override: overridden(at: now)
            case .ask: own.admit(at: now)
            }
        if case .refused = admission { totals.refused += 1 }
        return admission
    }

    /// For calls that must not be held back: the call goes as a probe if there is one, else without one, and then its outcome decides
    /// nothing.
    package mutating func admitVital(at now: Moment) -> Permit {
        if case .go(let permit) = admit(at: now) { return permit }
        return Permit(right: .plain, generation: -1)
    }

    /// While an operator observes, our own breaker keeps counting, but nobody obeys it.
    private mutating func overridden(at now: Moment) -> Admission {
        if case .observing = mirror.state {
            let admission = own.admit(at: now)
            if case .go = admission { return admission }
            totals.wouldRefuse += 1
        }
        return .go(Permit(right: .plain, generation: -1))
    }

    /// True when the fleet should hear of it at once.
    package mutating func record(
        _ permit: Permit, _ kind: ErrorClass?, code: String? = nil, hold: Duration? = nil, took: Duration,
        jitter: Double, at now: Moment
    ) -> Bool {
        let mark = CallOutcome(kind)
        var counts = Window.Counts()
        switch kind?.bearing {
        case nil, .healthy: counts.ok = 1
        case .failing, .refusing: counts.failed = 1
        case .pacing: counts.throttled = 1
        case .neutral: break
        }
        if kind == .unknown { counts.unknown = 1 }
        totals.ok += Int(counts.ok)
        totals.failed += Int(counts.failed)
        totals.throttled += Int(counts.throttled)
        totals.unknown += Int(counts.unknown)
        if took >= own.settings.slow, counts.ok + counts.failed > 0 { counts.slow = 1 }
        if counts.calls > 0 { window.add(counts, took: took.nanoseconds / 1000, at: now) }
        var tells = mirror.record(permit, mark)
        let before = own.state
        let generation = own.generation
        switch permit.right {
        case .plain, .probe, .ramp:
            own.record(permit, mark, window: window.counts, hold: hold, jitter: jitter, at: now)
        case .fleetRamp:
            // For our own breaker it is like a plain call: enough failures are a vote to open again.
            own.record(
                Permit(right: .plain, generation: own.generation), mark, window: window.counts, hold: hold,
                jitter: jitter, at: now)
        case .fleetProbe:
            if mark == .failing || mark == .refusing { remember(kind, code, hold) }
        }
        if own.generation != generation {
            switch own.state {
            case .open:
                remember(kind, code, hold)
                tells = true
            case .ramping:
                if isDetached, case .probing = before { hasRecovered = true }
            case .closed, .probing: break
            }
        }
        return tells
    }

    private mutating func remember(_ kind: ErrorClass?, _ code: String?, _ hold: Duration?) {
        let named = kind.map { $0.rawValue } ?? "slow"
        reason = code.map { "\(named) (\($0))" } ?? named
        isAuthoritative = kind?.bearing == .refusing
        self.hold = hold
    }

    /// The permit was not used: nothing was learned.
    package mutating func giveBack(_ permit: Permit, at now: Moment) {
        own.record(permit, .neutral, window: window.counts, jitter: 0, at: now)
        mirror.giveBack(permit, at: now)
    }

    /// Whether our own breaker has opened recently, under the fleet's present generation.
    package func votes(at now: Moment) -> Bool {
        guard case .open = own.state, let opened = own.opened else { return false }
        return now - opened < own.settings.window
    }

    package mutating func adopt(
        _ state: FleetView.State, generation: Int64, reason: String?, leases: [Int64], at now: Moment
    ) {
        if isDetached {
            isDetached = false
            hasRecovered = false
        }
        let isNewer = generation > mirror.generation
        _ = mirror.adopt(state, generation: generation, reason: reason)
        if isNewer {
            switch state {
            case .open, .probing, .ramping, .forcedOpen, .forcedClosed, .observing: own.reset()
            case .closed: break
            }
        }
        mirror.lend(leases, generation: generation, at: now)
    }

    /// The database has not answered for a while. Its last decision holds until its time is over; then our own breaker decides.
    package mutating func detach(at now: Moment) {
        guard !isDetached else { return }
        isDetached = true
        if let until = mirror.detach(at: now) { own.take(over: until) }
    }

    /// A copy of the circuit of all classes starts without counts of its own.
    mutating func becomeOwn() {
        asked = 0
        totals = Totals()
        mirror.becomeOwn()
    }

    package mutating func askIfDue(at now: Moment) { mirror.askIfDue(at: now) }
    package mutating func told(_ sent: [FleetView.Result], askedForProbe: Bool) {
        mirror.told(sent, asked: askedForProbe)
    }
    package mutating func advance(to now: Moment) { window.advance(to: now) }
}
