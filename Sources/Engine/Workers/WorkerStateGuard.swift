import MillraceJobs
import MillraceQueues
import Postgres
import Synchronization
import Threads

/// The worker's jobs behind a lock, with the signals that its loops sleep on.
///
/// A lock and no actor. Measured with `millrace-load drain --jobs 300000`, medians of five rounds taken by turns: a job costs the worker
/// 2.9 µs of processor time, and 3.4 µs when claims, starts and ends go through an actor. Rate and latency differed less than they scatter.
final class WorkerStateGuard: Sendable {
    private struct State {
        var jobs: WorkerState
        var demand = ClaimDemand()
        var session: Int64 = 0
        var counter: Int64
        var draining = false
        var reconcile = false
        let share: SlotShare?
        /// Other workers of the process that are to go on.
        var called: [Int] = []

        /// How many to claim now, if it were for the slots and what they leave behind.
        var wanted: Int { demand.wanted(slots: jobs.slots, held: jobs.atHand + jobs.owed) }

        /// How many slots it may use now, where others use them too.
        mutating func settle() {
            guard let share else { return }
            let (cap, others) = share.settle(running: jobs.runningCount, held: jobs.held)
            jobs.slots = cap
            called += others
        }

        /// The same when jobs are about to be looked for.
        mutating func look() {
            guard let share else { return }
            let (cap, others) = share.look(running: jobs.runningCount, held: jobs.held)
            jobs.slots = cap
            called += others
        }

        /// Stops until there are more slots for it.
        mutating func stop() {
            guard let share else { return }
            called += share.stops(at: jobs.slots)
        }

        /// The next job, if a slot is free. It counts before it is taken, so that nobody else takes its slot.
        mutating func next() -> Claimed? {
            guard let share, jobs.hasWaiting else {
                settle()
                return jobs.next()
            }
            let running = jobs.runningCount
            let (cap, others) = share.take(running: running, held: jobs.held)
            jobs.slots = cap
            called += others
            guard running < cap else {
                stop()
                return nil
            }
            let job = jobs.next()
            if job == nil { settle() }
            return job
        }
    }

    private let state: Mutex<State>
    private let share: SlotShare?
    /// A slot is free, or the drain has begun.
    let room = Wakeup()
    /// Something waits to be recorded.
    let flush = Wakeup()
    /// The jobs of a loose claim are to be read.
    let unreadLeases = Wakeup()
    /// The contents of jobs are to be read.
    let unread = Wakeup()
    /// Nothing is held any more.
    let changed = Wakeup()

    init(slots: Int, share: SlotShare? = nil) {
        self.share = share
        // The counter starts anywhere: together with the session's random number a token never comes again.
        state = Mutex(State(jobs: WorkerState(slots: slots), counter: Int64.random(in: 1..<(1 << 40)), share: share))
    }

    /// Changes what is held, and calls the workers that may go on by that, without the lock.
    private func change<Value: Sendable>(_ body: (inout sending State) -> Value) -> Value {
        guard let share else { return state.withLock { body(&$0) } }
        let (value, called) = state.withLock { state in
            let value = body(&state)
            defer { state.called = [] }
            return (value, state.called)
        }
        if !called.isEmpty { share.call(called) }
        return value
    }

    var session: Int64 { state.withLock { $0.session } }
    var isDraining: Bool { state.withLock { $0.draining } }
    var totals: WorkerState.Totals { state.withLock { $0.jobs.totals } }
    var runMeter: RunMeter { state.withLock { $0.jobs.meter } }
    var counts: (running: Int, waiting: Int) { state.withLock { ($0.jobs.runningCount, $0.jobs.waitingCount) } }
    var isEmpty: Bool { state.withLock { $0.jobs.isEmpty } }
    var unrecorded: Int { state.withLock { $0.jobs.pendingCount + $0.jobs.inFlight } }
    var runs: [Run] { state.withLock { $0.jobs.running } }
    var leaseNumbers: Set<Int64> { state.withLock { $0.jobs.leaseNumbers } }
    var allowance: ClaimPlan.Allowance { state.withLock { $0.jobs.allowance } }
    func takeReturned() -> [Int32: Int] { state.withLock { $0.jobs.takeReturned() } }
    var roomPerQueue: [Int32: Int] { state.withLock { $0.jobs.room } }

    /// The database may hold leases for us that we do not know: the claim loop gives them back before it claims again.
    func requestReconcile() {
        state.withLock { $0.reconcile = true }
        room.fire()
    }

    func takeReconcile() -> Bool {
        state.withLock { state in
            defer { state.reconcile = false }
            return state.reconcile
        }
    }

    /// What was held under the session before is lost with it: a run that starts later would have a token that names no lease.
    func begin(session: Int64) -> LostLeases {
        defer { changed.fire() }
        return state.withLock { state in
            state.session = session
            return state.jobs.lose(state.jobs.leaseNumbers)
        }
    }

    func setBound(_ bound: Int, line: Int32, of queue: Int32) {
        state.withLock { $0.jobs.setBound(bound, line: line, of: queue) }
    }

    struct Order {
        var wanted = 0
        var session: Int64
        var number: Int64 = 0
        var patience: Duration?
        var isLoose = false
        var gathering: Duration?
        var enough = 0
    }

    /// How many to claim now, under which session and number.
    func order() -> Order {
        change { state in
            guard !state.draining else { return Order(session: state.session) }
            state.look()
            state.counter += 1
            let (slots, held) = (state.jobs.slots, state.jobs.atHand)
            let wanted = state.wanted
            if wanted == 0 { state.stop() }
            return Order(
                wanted: wanted, session: state.session, number: state.counter * 8,
                patience: state.demand.patience(slots: slots, held: held),
                isLoose: state.demand.isLoose(wanted: wanted, slots: slots, held: held),
                gathering: state.demand.gathering, enough: state.demand.enough)
        }
    }

    /// Takes in what was claimed under a session. False: another has begun since, and the jobs are not ours any more. They were given to
    /// others before the session could end.
    func accept(_ jobs: [Claimed], gates: [Int64], of session: Int64) -> Bool {
        let (isOurs, hasUnread) = state.withLock { state in
            guard state.session == session else { return (false, false) }
            state.jobs.accept(jobs, gates: gates)
            return (true, state.jobs.hasUnread)
        }
        if hasUnread { unread.fire() }
        return isOurs
    }

    /// See `WorkerState`.
    var narrow: [Int32: Int] { state.withLock { $0.jobs.narrow } }
    func nextUnread(most: Int) -> [Claimed] { state.withLock { $0.jobs.nextUnread(most: most) } }

    func read(_ jobs: [Claimed], refused: [(job: Claimed, error: String)]) -> Set<Lane> {
        let (opened, isDraining) = state.withLock { state in
            (state.jobs.read(jobs).union(state.jobs.refuse(refused)), state.draining)
        }
        if isDraining || !refused.isEmpty { flush.fire() }
        room.fire()
        changed.fire()
        return opened
    }

    func expect(_ taken: [UnreadLease], gates: [Int64], of session: Int64) -> Bool {
        let isOurs = state.withLock { state in
            guard state.session == session else { return false }
            state.jobs.expect(taken, gates: gates)
            return true
        }
        if isOurs { unreadLeases.fire() }
        return isOurs
    }

    var expected: [UnreadLease] { state.withLock { $0.jobs.expected } }

    func arrived(_ jobs: [Claimed], of asked: Set<Int64>) -> Set<Int64> {
        let (forgotten, isDraining, hasUnread) = state.withLock { state in
            (state.jobs.arrived(jobs, of: asked), state.draining, state.jobs.hasUnread)
        }
        if isDraining { flush.fire() }
        if hasUnread { unread.fire() }
        room.fire()
        return forgotten
    }

    /// The next run, made of the next job, if a slot is free.
    func next(_ make: (Claimed, _ session: Int64) -> Run) -> Run? {
        let (job, session) = change { ($0.next(), $0.session) }
        return job.map { begin(make($0, session)) }
    }

    private func begin(_ run: Run) -> Run {
        if !state.withLock({ $0.jobs.started(run) }) { run.cancel(.leaseLost) }
        return run
    }

    /// Takes the run's end in, and the next job for its slot. `wasFull`: the run's queue was at its bound until now.
    func ended(
        _ run: Run, _ end: Ended?, _ make: (Claimed, _ session: Int64) -> Run
    ) -> (next: Run?, wasFull: Bool) {
        let (job, session, isRoomNew, isFirst, isLast, wasFull) = change { state in
            let before = state.wanted
            let wasFull = state.jobs.ended(run, end)
            state.demand.ended(1, at: .now)
            let job = state.next()
            return (
                job, state.session, (before == 0 && state.wanted > 0) || state.draining,
                state.jobs.pendingCount == 1 || state.draining, state.jobs.isEmpty || state.draining, wasFull
            )
        }
        if isRoomNew { room.fire() }
        if isFirst { flush.fire() }
        if isLast { changed.fire() }
        return (job.map { begin(make($0, session)) }, wasFull)
    }

    func takeFlush() -> Flush? {
        state.withLock { $0.jobs.takeFlush() }
    }

    /// The same ends as a flush of their own.
    func regroup(_ ended: [Ended]) -> Flush {
        state.withLock { $0.jobs.flush(of: ended) }
    }

    func run(number: Int64, id: Int64) -> Run? {
        state.withLock { $0.jobs.run(number: number, id: id) }
    }

    var pending: Int { state.withLock { $0.jobs.pendingCount } }
    func flushed(_ flush: Flush, live: Set<Int64>) -> LostLeases {
        let (loss, isRoomNew) = state.withLock { state in
            let before = state.wanted
            let loss = state.jobs.flushed(flush, live: live)
            return (loss, before == 0 && state.wanted > 0)
        }
        if isRoomNew { room.fire() }
        changed.fire()
        return loss
    }

    func lose(_ numbers: Set<Int64>) -> LostLeases {
        defer { changed.fire() }
        return change { state in
            defer { state.settle() }
            return state.jobs.lose(numbers)
        }
    }

    /// No claims from here on; what has not started goes back.
    func drain() {
        change { state in
            state.draining = true
            state.jobs.stopped = true
            state.jobs.handBack()
            state.settle()
        }
        room.fire()
        flush.fire()
        changed.fire()
    }

    func abandon() -> [Run] {
        defer {
            flush.fire()
            changed.fire()
        }
        let jitter = Double.random(in: 0...1)
        return change { state in
            defer { state.settle() }
            return state.jobs.abandon(jitter: jitter)
        }
    }

    /// Jobs that came in although the drain had begun go back.
    func handBack() {
        state.withLock { $0.jobs.handBack() }
        flush.fire()
    }

    /// Once a beat: see `WorkerState`.
    func handBackHoarded() {
        let hasReturned = change { state in
            defer { state.settle() }
            return state.jobs.handBackHoarded()
        }
        guard hasReturned else { return }
        flush.fire()
        room.fire()
    }

    func takeTallies() -> [TallyKey: RunTally] {
        state.withLock { $0.jobs.takeTallies() }
    }

    /// Something has ended that no beat has told.
    var hasCounts: Bool {
        state.withLock { !$0.jobs.tallies.isEmpty || !$0.jobs.failures.isEmpty }
    }

    func takeFailures() -> [FailureTally] {
        state.withLock { $0.jobs.failures.take() }
    }

    func putBack(_ tallies: [TallyKey: RunTally], _ failures: [FailureTally]) {
        state.withLock {
            $0.jobs.putBack(tallies: tallies)
            $0.jobs.failures.putBack(failures)
        }
    }
}
