import MillraceJobs
package import MillraceQueues

/// Everything a worker process holds: what waits to start, what runs, what has ended and is not recorded yet, and what is left
/// of each lease. Pure; `WorkerStateGuard` puts a lock around it.
package struct WorkerState: Sendable {
    struct LeaseEntry: Sendable {
        var total: Int32
        var recorded: Int32 = 0
        /// Its first ends have been kept for the next flush.
        var hasWaited = false
        /// Gates at which each of its jobs holds a slot.
        var gates: [Int64] = []
    }

    struct SlotKey: Hashable {
        let number: Int64
        let gate: Int64
    }

    static let mostOfFlush = 4000

    /// Less than all that the worker has while others use some of them.
    var slots: Int
    private var bounds: [Int32: Int]
    /// The queues that the lines with a bound belong to: a queue's bound is one for all its lines.
    private var mains: [Int32: Int32] = [:]
    private var waiting: [Claimed] = []
    private var head = 0
    /// Claimed loosely: their leases are to reach the disk, and they to be read. By lease.
    private var unreadLeases: [Int64: [UnreadLease]] = [:]
    private var unreadInLeases = 0
    private var unread = UnreadJobs()
    /// Each run knows its place.
    private(set) var running: [Run] = []
    private var queues = QueueCounts()
    var leases: [Int64: LeaseEntry] = [:]
    /// One of them, the last that was asked for.
    private var liveLease: Int64?
    var pending: [Ended] = []
    var inFlight = 0
    /// Taken by `next`, not yet handed to `started`.
    private var starting = 0
    /// How many had been taken, and how many waited, at the last look for hoarded ones.
    private var taken = 0
    private var seen = (taken: 0, waiting: 0)
    /// Claimed and handed back without a start, by line, since the claims were last told.
    private var returned: [Int32: Int] = [:]
    private var suspects = 0
    private var lone = 0
    var tallies: [TallyKey: RunTally] = [:]
    var failures = FailureTallies()
    var meter = RunMeter()
    package internal(set) var totals = Totals()
    var stopped = false

    /// What the last line of a worker says.
    package struct Totals: Sendable, Equatable {
        package var finished = 0
        package var handedBack = 0
        package var refused = 0
        package var abandoned = 0
    }

    package init(slots: Int, bounds: [Int32: Int] = [:]) {
        self.slots = slots
        self.bounds = bounds
    }

    var waitingCount: Int { waiting.count - head + unreadInLeases + unread.count }
    package var held: Int { waitingCount + starting + running.count }
    /// What is held and can be worked on. Jobs that are still to be read, up to two claims of them, do not keep the next claim from following;
    /// nor do those whose contents are, for their lines get no more of them, and others' jobs must not wait.
    var atHand: Int { held - unread.count - min(unreadInLeases, 2 * ClaimDemand.most) }
    /// Ends that wait to be recorded, beyond those of two flushes: they count as work at hand, or a database that claims faster than it records
    /// would leave more and more of them to a crash.
    var owed: Int { max(0, pending.count + inFlight - 2 * Self.mostOfFlush) }
    var runningCount: Int { starting + running.count }
    var pendingCount: Int { pending.count }
    /// Some wait that can start, if a slot is free and their queues have room.
    var hasWaiting: Bool { !stopped && head < waiting.count }
    var isEmpty: Bool { held == 0 && pending.isEmpty && inFlight == 0 }

    package var allowance: ClaimPlan.Allowance {
        ClaimPlan.Allowance(suspects: lone > 0 ? 0 : max(0, 16 - suspects), lone: lone == 0 && suspects == 0)
    }

    mutating func setBound(_ bound: Int, line: Int32, of queue: Int32) {
        bounds[queue] = bound
        if line != queue { mains[line] = queue }
    }

    private func queue(of job: Claimed) -> Int32 { queue(of: job.lane) }

    private func queue(of lane: Lane) -> Int32 {
        mains.isEmpty ? lane.queue : mains[lane.queue] ?? lane.queue
    }

    /// For the queues with a bound of their own: how many more of them may be taken.
    package var room: [Int32: Int] {
        Dictionary(uniqueKeysWithValues: bounds.map { ($0.key, max(0, $0.value - queues.held(of: $0.key))) })
    }

    /// Takes in a claim's jobs, in the order in which they should start.
    package mutating func accept(_ jobs: [Claimed], gates: [Int64] = []) {
        // Those of a lease and a lane come one behind the other: looked up once for all of them.
        var start = 0
        while start < jobs.count {
            let job = jobs[start]
            let end = jobs[start...].firstIndex { $0.number != job.number || $0.lane != job.lane } ?? jobs.count
            leases[job.number, default: LeaseEntry(total: 0, gates: gates)].total += Int32(end - start)
            count(job.lane, end - start)
            start = end
        }
        let whole = unread.sort(out: jobs)
        line(whole ?? jobs)
    }

    /// What a loose claim has taken: its leases are ours from now on, its jobs when they have been read.
    package mutating func expect(_ taken: [UnreadLease], gates: [Int64] = []) {
        for lease in taken {
            leases[lease.number, default: LeaseEntry(total: 0, gates: gates)].gates = gates
            unreadLeases[lease.number, default: []].append(lease)
            unreadInLeases += lease.ids.count
            count(lease.lane, lease.ids.count)
        }
    }

    package var expected: [UnreadLease] { unreadLeases.values.flatMap(\.self) }

    private mutating func unpack(_ number: Int64) -> Bool {
        guard let lost = unreadLeases.removeValue(forKey: number) else { return false }
        for lease in lost {
            unreadInLeases -= lease.ids.count
            count(lease.lane, -lease.ids.count)
        }
        return true
    }

    /// The database was asked for the jobs of these leases, and has brought those of the live ones. Returns the others, which a crash of the
    /// server has made undone.
    package mutating func arrived(_ jobs: [Claimed], of asked: Set<Int64>) -> Set<Int64> {
        let found = asked.filter { unpack($0) }
        accept(found == asked ? jobs : jobs.filter { found.contains($0.number) })
        let forgotten = found.filter { leases[$0]?.total == 0 }
        _ = lose(forgotten)
        if stopped { handBack() }
        return forgotten
    }

    /// Whose contents to read next, and how many more of a line may be claimed where some wait for that.
    func nextUnread(most: Int) -> [Claimed] { unread.next(most) }
    package var narrow: [Int32: Int] { unread.room }
    var hasUnread: Bool { unread.count > 0 }

    /// What was read of the contents of these. One that was handed back or lost meanwhile is not wanted any more. Returns the lanes of lines
    /// that had no room for another until now.
    package mutating func read(_ jobs: [Claimed]) -> Set<Lane> {
        let (wanted, opened) = unread.take(jobs)
        line(wanted)
        if stopped { handBack() }
        return opened
    }

    /// These cannot be read, for these reasons: they end without a run.
    package mutating func refuse(_ jobs: [(job: Claimed, error: String)]) -> Set<Lane> {
        let (wanted, opened) = unread.take(jobs.map(\.job))
        let errors = Dictionary(jobs.map { ($0.job.id, $0.error) }, uniquingKeysWith: { first, _ in first })
        for job in wanted {
            leave(job)
            pending.append(Ended(job: job, outcome: .dead, error: errors[job.id]))
        }
        return opened
    }

    private mutating func line(_ jobs: [Claimed]) {
        if head > 0, head == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            head = 0
        }
        waiting.append(contentsOf: jobs)
    }

    /// The next job to start, if a slot is free. Jobs of a queue that is at its bound are passed over.
    package mutating func next() -> Claimed? {
        guard !stopped, running.count + starting < slots, head < waiting.count else { return nil }
        var index = head
        while index < waiting.count, let bound = bounds[queue(of: waiting[index])],
            queues.running(of: queue(of: waiting[index])) >= bound
        {
            index += 1
        }
        guard index < waiting.count else { return nil }
        let job = waiting[index]
        if index == head {
            head += 1
            if head > 512, head * 2 > waiting.count {
                waiting.removeFirst(head)
                head = 0
            }
        } else {
            waiting.remove(at: index)
        }
        starting += 1
        taken += 1
        queues.add(running: 1, to: queue(of: job))
        return job
    }

    /// False when the lease was lost between the two: the run must not begin.
    mutating func started(_ run: Run) -> Bool {
        starting -= 1
        run.place = running.count
        running.append(run)
        return isLive(run.job.number)
    }

    /// False: it is not among them, somebody has abandoned it.
    private mutating func remove(_ run: Run) -> Bool {
        let place = run.place
        guard running.indices.contains(place), running[place] === run else { return false }
        let last = running.removeLast()
        if last !== run {
            running[place] = last
            last.place = place
        }
        return true
    }

    private mutating func isLive(_ number: Int64) -> Bool {
        if number == liveLease { return true }
        guard leases[number] != nil else { return false }
        liveLease = number
        return true
    }

    mutating func forget(_ number: Int64) {
        leases[number] = nil
        if liveLease == number { liveLease = nil }
    }

    /// A run is over; its end, if there is one to tell, waits for the next flush. True when its queue was at its bound until now:
    /// claims have passed it over.
    @discardableResult mutating func ended(_ run: Run, _ end: Ended?) -> Bool {
        guard remove(run) else { return false }
        let queue = queue(of: run.job)
        let wasFull = bounds[queue].map { queues.held(of: queue) == $0 } ?? false
        leave(run.job)
        queues.add(running: -1, to: queue)
        if let end, isLive(run.job.number) {
            pending.append(end)
        } else {
            totals.refused += 1
        }
        return wasFull
    }

    private mutating func leave(_ job: Claimed) {
        count(job.lane, -1)
    }

    private mutating func count(_ lane: Lane, _ step: Int) {
        queues.add(held: step, to: queue(of: lane))
        switch lane.line {
        case .putBack, .normal: break
        case .suspect: suspects += step
        case .lone: lone += step
        }
    }

    /// Everything that has not started goes back, in its turn to be flushed; what is still to be read, when it has been.
    package mutating func handBack() {
        release(waiting[head...])
        waiting = []
        head = 0
        if stopped { release(unread.removeAll()[...]) }
    }

    private mutating func release(_ jobs: ArraySlice<Claimed>) {
        for job in jobs {
            leave(job)
            returned[job.lane.queue, default: 0] += 1
            if leases[job.number] != nil { pending.append(Ended(job: job, outcome: .released, wait: .zero)) }
        }
    }

    package mutating func takeReturned() -> [Int32: Int] {
        defer { returned = [:] }
        return returned
    }

    /// What was claimed ahead for a pace that has not lasted goes back, so that others may start it: not all that waited at the last look
    /// has been taken since. True when anything did.
    package mutating func handBackHoarded() -> Bool {
        let isHoard = !stopped && seen.waiting > taken - seen.taken
        if isHoard { handBack() }
        let excess = unread.removeExcess()
        release(excess[...])
        seen = (taken, waitingCount - unread.count)
        return isHoard || !excess.isEmpty
    }

    /// Runs that ignore their cancellation end as if they had heeded it: at their time limit they have used their attempt, on request they are
    /// cancelled, and only those that the drain itself cancelled go back as they were. What they report later is refused.
    /// - Parameter jitter: which share of the longest pause the next attempts wait.
    mutating func abandon(jitter: Double) -> [Run] {
        let runs = running
        for run in runs {
            leave(run.job)
            if isLive(run.job.number) { pending.append(run.abandoned(jitter: jitter)) }
        }
        totals.abandoned += runs.count
        running = []
        return runs
    }

    /// These leases are gone: what has not started is dropped, and what is running or has ended is returned.
    package mutating func lose(_ numbers: Set<Int64>) -> LostLeases {
        guard !numbers.isEmpty else { return LostLeases() }
        for number in numbers { forget(number) }
        let kept = waiting[head...].filter { !numbers.contains($0.number) }
        for job in waiting[head...] where numbers.contains(job.number) { leave(job) }
        waiting = Array(kept)
        head = 0
        for number in numbers { _ = unpack(number) }
        for job in unread.remove(leases: numbers) { leave(job) }
        let dropped = pending.filter { numbers.contains($0.job.number) }
        if !dropped.isEmpty {
            totals.refused += dropped.count
            pending.removeAll { numbers.contains($0.job.number) }
        }
        return LostLeases(runs: running.filter { numbers.contains($0.job.number) }, refused: dropped)
    }

    func run(number: Int64, id: Int64) -> Run? {
        running.first { $0.job.id == id && $0.job.number == number }
    }

    package var leaseNumbers: Set<Int64> { Set(leases.keys) }

    mutating func takeTallies() -> [TallyKey: RunTally] {
        defer { tallies = [:] }
        return tallies
    }

    mutating func putBack(tallies old: [TallyKey: RunTally]) {
        for (key, tally) in old { tallies[key, default: RunTally()].add(tally) }
    }
}
