import Faults
import Synchronization

/// All that is known of one provider, behind one lock: what a call asks on its way out and tells on its way back.
final class ProviderGate: Sendable {
    struct Limits: Sendable {
        var slots = 64
        var rate: Double?
        var timeout: Duration?
        var retryShare = 0.2
    }

    struct State {
        var circuits: [String: Circuit] = [:]
        var bulkhead: Bulkhead
        var bucket: Bucket
        var budget: RetryBudget
        var longestReset: Duration?
        var waiters: [Int64: CheckedContinuation<Bool, Never>] = [:]
        /// Got their slot, or gave up, before they were in line.
        var early: [Int64: Bool] = [:]
        var quota: (used: Int64, until: Moment?)?
        var news = PaceNews()
        var sent: [String: CircuitReport] = [:]

        mutating func circuit(_ name: String, _ settings: Breaker.Settings) -> Circuit {
            if let circuit = circuits[name] { return circuit }
            // A new class begins as all of its provider were told to.
            var circuit = circuits["*"] ?? Circuit(settings)
            circuit.becomeOwn()
            return circuit
        }
    }

    /// What was learned of the pace since the last flush.
    struct PaceNews: Sendable, Equatable {
        var rate: Double?
        var blockedUntil: Moment?
        var quotaUsed: Int64?
        var quotaLimit: Int64?
        var quotaResets: Duration?
    }

    enum Entrance: Sendable {
        case go(Permit)
        /// The bulkhead is full.
        case line(Int64)
        /// The place in the pace is taken; come back then.
        case pace(Moment)
        /// `asks`: the fleet should hear at once that a probe would be used.
        case refused(CallRefusal.Why, until: Moment, reason: String?, asks: Bool = false)
    }

    let name: String
    let limits: Limits
    let settings: Breaker.Settings
    private let state: Mutex<State>

    init(_ name: String, limits: Limits, settings: Breaker.Settings) {
        self.name = name
        self.limits = limits
        self.settings = settings
        state = Mutex(
            State(
                bulkhead: Bulkhead(slots: limits.slots), bucket: Bucket(cap: limits.rate),
                budget: RetryBudget(share: limits.retryShare)))
    }

    func withState<Value: Sendable>(_ body: (inout sending State) -> sending Value) -> sending Value {
        state.withLock(body)
    }

    /// - Parameters:
    ///   - hasSlot: Whether we have a slot of the bulkhead, from before or, if it goes well, from now on.
    ///   - place: Our place in the pace, if we have waited for one.
    func enter(
        _ name: String, at now: Moment, hasSlot: inout Bool, place: Moment?, until deadline: Moment?
    ) -> Entrance {
        let held = hasSlot
        let (entrance, holds, next): (Entrance, Bool, CheckedContinuation<Bool, Never>?) = state.withLock { state in
            if state.circuits[name] == nil { state.circuits[name] = state.circuit(name, settings) }
            let permit: Permit
            switch state.circuits[name, default: Circuit(settings)].admit(at: now) {
            case .go(let given): permit = given
            case .refused(let until):
                let circuit = state.circuits[name, default: Circuit(settings)]
                let entrance = Entrance.refused(
                    circuit.refusal, until: until, reason: circuit.told, asks: circuit.mirror.wantsProbe)
                return (entrance, false, held ? state.leaveSlot() : nil)
            }
            var holds = held
            if !holds {
                guard state.bulkhead.enter() else {
                    state.circuits[name]?.giveBack(permit, at: now)
                    return (.line(state.bulkhead.queue()), false, nil)
                }
                holds = true
            }
            // A call that has waited for its place goes now, unless the provider has asked for a pause meanwhile.
            if place == nil || state.bucket.blocked > now {
                let turn = state.bucket.peek(at: now)
                if let deadline, turn > deadline {
                    state.circuits[name]?.giveBack(permit, at: now)
                    return (.refused(.pace, until: turn, reason: nil), false, state.leaveSlot())
                }
                _ = state.bucket.take(at: now)
                if turn > now {
                    state.circuits[name]?.giveBack(permit, at: now)
                    return (.pace(turn), holds, nil)
                }
            }
            return (.go(permit), holds, nil)
        }
        next?.resume(returning: true)
        hasSlot = holds
        return entrance
    }

    /// For calls that must not wait, whatever breaker, bulkhead, pace and operator say. It takes a slot and a place in the pace, so that
    /// other calls make room.
    func enterVital(_ name: String, at now: Moment) -> Permit {
        state.withLock { state in
            var circuit = state.circuit(name, settings)
            let permit = circuit.admitVital(at: now)
            state.circuits[name] = circuit
            state.bulkhead.enterAnyway()
            _ = state.bucket.take(at: now)
            return permit
        }
    }

    /// True: the slot is ours. False: cancelled, or the time is over.
    func waitInLine(_ ticket: Int64, for limit: Duration?) async -> Bool {
        let timer = limit.map { limit in
            Task {  // ends with the wait: it is cancelled on the way out
                try await Task.sleep(for: limit)
                self.giveUp(ticket)
            }
        }
        defer { timer?.cancel() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let early: Bool? = state.withLock { state in
                    if let early = state.early.removeValue(forKey: ticket) { return early }
                    state.waiters[ticket] = continuation
                    return nil
                }
                if let early { continuation.resume(returning: early) }
            }
        } onCancel: {
            self.giveUp(ticket)
        }
    }

    private func giveUp(_ ticket: Int64) {
        let waiter: CheckedContinuation<Bool, Never>? = state.withLock { state in
            guard state.bulkhead.giveUp(ticket) else { return nil }
            if let waiter = state.waiters.removeValue(forKey: ticket) { return waiter }
            state.early[ticket] = false
            return nil
        }
        waiter?.resume(returning: false)
    }

    /// The call was not made: slot and place are free again.
    func leave(hasSlot: Bool, place: Moment?) {
        let next: CheckedContinuation<Bool, Never>? = state.withLock { state in
            if let place { state.bucket.giveBack(place) }
            return hasSlot ? state.leaveSlot() : nil
        }
        next?.resume(returning: true)
    }

    /// True when the fleet should hear of it at once.
    func record(
        _ name: String, _ permit: Permit, _ kind: ErrorClass?, code: String?, hold: Duration?, took: Duration,
        at now: Moment
    ) -> Bool {
        let (tells, next): (Bool, CheckedContinuation<Bool, Never>?) = state.withLock { state in
            // A random number costs more than everything else here, and only a failure can open a breaker.
            let jitter = kind == nil ? 0.5 : Double.random(in: 0..<1)
            var tells =
                state.circuits[name]?.record(
                    permit, kind, code: code, hold: hold, took: took, jitter: jitter, at: now) ?? false
            switch kind {
            case .throttled:
                if let until = state.bucket.throttled(wait: hold, at: now) {
                    state.news.blockedUntil = until
                    tells = true
                }
            case nil: state.bucket.served()
            default: break
            }
            return (tells, state.leaveSlot())
        }
        next?.resume(returning: true)
        return tells
    }

    /// Takes what an answer's headers say. True when the fleet should hear of it at once.
    func heard(_ notes: RateNotes, at now: Moment) -> Bool {
        state.withLock { state in
            if let reset = notes.reset { state.longestReset = max(reset, state.longestReset ?? .zero) }
            // A long allowance is used up, by all callers together: nobody can call before it is full again.
            if notes.remaining == 0, let reset = notes.reset, reset > .seconds(2) {
                state.bucket.block(until: now + min(reset, .seconds(86_400)))
                state.news.blockedUntil = state.bucket.blocked
            }
            guard let rate = notes.rate(longestReset: state.longestReset), rate != state.bucket.learned else {
                return false
            }
            state.bucket.learn(rate: rate)
            state.news.rate = rate
            return true
        }
    }

    func heardQuota(used: Int64?, limit: Int64?, resets: Duration?, at now: Moment) {
        state.withLock { state in
            if let used { state.quota = (used, until: resets.map { now + $0 }) }
            state.news.quotaUsed = used
            state.news.quotaLimit = limit
            state.news.quotaResets = resets
        }
    }

    /// The provider's last statement of its quota, until the quota's next period begins.
    func quotaUsed(at now: Moment) -> (used: Int64, resets: Duration?)? {
        state.withLock { state in
            guard let quota = state.quota else { return nil }
            guard let until = quota.until else { return (quota.used, nil) }
            return until > now ? (quota.used, until - now) : nil
        }
    }

    func earn() { state.withLock { $0.budget.earn() } }
    func spendRetry(at now: Moment) -> Bool { state.withLock { $0.budget.spend(at: now) } }
}

extension ProviderGate.State {
    fileprivate mutating func leaveSlot() -> CheckedContinuation<Bool, Never>? {
        guard let ticket = bulkhead.leave() else { return nil }
        if let waiter = waiters.removeValue(forKey: ticket) { return waiter }
        early[ticket] = true
        return nil
    }
}

extension Circuit {
    /// Why it refuses.
    var refusal: CallRefusal.Why {
        switch mirror.state {
        case .forcedOpen: .forced
        case .open, .probing: .open
        case .ramping: .ramping
        case .closed, .forcedClosed, .observing:
            switch own.state {
            case .ramping: .ramping
            case .closed, .open, .probing: .open
            }
        }
    }

    /// The reason that was given when it opened.
    var told: String? {
        switch mirror.state {
        case .closed: reason
        case .open, .probing, .ramping, .forcedOpen, .forcedClosed, .observing: mirror.reason
        }
    }
}
