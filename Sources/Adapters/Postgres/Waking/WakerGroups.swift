/// Which workers look for jobs by themselves, so that the others can sleep and writers need not notify. Workers that take the same jobs
/// are a group. As long as one of a group looks, nothing is missed; two do, for one may be busy for a moment.
///
/// Where none of a group looks, and some sleep, the waker holds the locks that make writers notify. Notes are dear in a stream of jobs,
/// because commits with a note wait for one another; then two of each group are asked to look. Pure.
struct WakerGroups {
    typealias Orders = [(id: Int, order: WakerOrder)]

    private struct Worker {
        var takes = ""
        /// nil: it has said nothing yet.
        var state: WakerState?
        /// When it last said that it looks, or that it can take nothing more.
        var since: ContinuousClock.Instant
        /// It looked until it could take nothing more.
        var hasLooked = false
        /// It looks, and was told that it need not.
        var isRelieved = false
        var isCovered = false
    }

    /// One that looks says so every 50 ms. Without a word for so long it counts as stuck.
    static let patience = Duration.milliseconds(250)
    /// One that can take nothing more is likely to look again soon.
    static let grace = Duration.milliseconds(10)
    /// As many notes within `span` are a stream.
    static let stream = (notes: 20, span: Duration.milliseconds(250))
    /// For so long nobody else is asked to look.
    private static let pause = Duration.milliseconds(50)

    private var workers: [Int: Worker] = [:]
    /// The groups of which one looked when that was last seen to.
    private var looking: Set<String> = []
    /// The groups in which one must look for what nobody was told of, as soon as writers notify.
    private var owed: Set<String> = []
    private var asked: [String: ContinuousClock.Instant] = [:]
    private var notes = (count: 0, since: ContinuousClock.now)
    /// Who of a group was chosen last.
    private var last: [String: Int] = [:]

    /// The waker hears what is notified.
    var isHeard = false
    /// The waker holds the locks that make writers notify.
    private(set) var isHeld = false

    mutating func came(_ id: Int, at now: ContinuousClock.Instant) {
        workers[id] = Worker(since: now)
    }

    mutating func left(_ id: Int) {
        guard let worker = workers.removeValue(forKey: id) else { return }
        forget(worker.takes)
    }

    mutating func takes(_ id: Int, _ what: String, at now: ContinuousClock.Instant) -> Orders {
        guard let before = workers[id]?.takes else { return [] }
        workers[id]?.takes = what
        forget(before)
        return settle(at: now)
    }

    /// Of a group that has nobody any more.
    private mutating func forget(_ group: String) {
        guard !workers.values.contains(where: { $0.takes == group }) else { return }
        asked[group] = nil
        last[group] = nil
        owed.remove(group)
        looking.remove(group)
    }

    mutating func said(_ id: Int, _ state: WakerState, at now: ContinuousClock.Instant) -> Orders {
        guard let worker = workers[id] else { return [] }
        let others = workers.filter { $0.key != id && $0.value.takes == worker.takes && looks($0.value, at: now) }
        let isStill = state == .full && worker.state == .full
        workers[id]?.hasLooked = state == .full && (worker.state == .awake || isStill && worker.hasLooked)
        workers[id]?.state = state
        if !isStill { workers[id]?.since = now }
        // It may have left something behind.
        if state == .full, !isStill, others.isEmpty { owed.insert(worker.takes) }
        let isOneTooMany = state == .awake && others.values.count { !$0.isRelieved } >= WakerTurns.few
        workers[id]?.isRelieved = isOneTooMany
        return settle(at: now) + (isOneTooMany ? [(id, .enough)] : [])
    }

    /// Writers notify from now on. What was written before, nobody was told of.
    mutating func holds(at now: ContinuousClock.Instant) -> Orders {
        if !isHeld { owed.formUnion(workers.values.map(\.takes)) }
        isHeld = true
        return settle(at: now)
    }

    /// Some writers notify, and others do not: one of each group must look meanwhile.
    mutating func waits(at now: ContinuousClock.Instant) -> Orders {
        settle(at: now) + owed.sorted().flatMap { inTurn(of: $0) }.map { ($0, .look) }
    }

    /// To be called before the locks are given back.
    mutating func gives() { isHeld = false }

    private func looks(_ worker: Worker, at now: ContinuousClock.Instant) -> Bool {
        switch worker.state {
        case .awake: worker.since.duration(to: now) < Self.patience
        case .full: worker.hasLooked && worker.since.duration(to: now) < Self.grace
        case .asleep, nil: false
        }
    }

    private func groupsThatLook(at now: ContinuousClock.Instant) -> Set<String> {
        Set(workers.values.filter { looks($0, at: now) }.map(\.takes))
    }

    /// Those that must be told of new jobs: none of their groups looks.
    func uncovered(at now: ContinuousClock.Instant) -> [Int] {
        let looking = groupsThatLook(at: now)
        return workers.filter { !looking.contains($0.value.takes) }.map(\.key)
    }

    /// Whether writers must notify.
    func needsNotes(at now: ContinuousClock.Instant) -> Bool {
        let looking = groupsThatLook(at: now)
        return workers.values.contains { $0.state == .asleep && !looking.contains($0.takes) }
    }

    /// Something was notified.
    mutating func noted(at now: ContinuousClock.Instant) -> Orders {
        if notes.since.duration(to: now) > Self.stream.span { notes = (0, now) }
        notes.count += 1
        guard notes.count >= Self.stream.notes else { return [] }
        let looking = groupsThatLook(at: now)
        var orders: Orders = []
        for group in Set(workers.values.map(\.takes)).subtracting(looking).sorted() {
            if let before = asked[group], before.duration(to: now) < Self.pause { continue }
            asked[group] = now
            orders += inTurn(of: group).map { ($0, .watch) }
        }
        return orders
    }

    /// What is to be told, after any change and when `due` has come.
    mutating func settle(at now: ContinuousClock.Instant) -> Orders {
        let active = groupsThatLook(at: now)
        let waiting = Set(workers.values.filter { $0.state == .asleep }.map(\.takes)).subtracting(active)
        // Also where nobody sleeps now: one that looked may have begun its last look before.
        owed.formUnion(looking)
        if !isHeld { owed.formUnion(waiting) }
        owed.subtract(active)
        looking = active
        var orders: Orders = []
        if isHeld {
            for group in owed.intersection(waiting).sorted() { orders += inTurn(of: group).map { ($0, .look) } }
            owed.subtract(waiting)
        }
        for (id, worker) in workers {
            let isCovered = isHeard && (isHeld || active.contains(worker.takes))
            guard isCovered != worker.isCovered else { continue }
            workers[id]?.isCovered = isCovered
            orders.append((id, isCovered ? .covered : .uncovered))
        }
        return orders
    }

    /// When one that looks will count as stuck, or as busy.
    func due(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        workers.values.filter { looks($0, at: now) }
            .map { $0.since + ($0.state == .full ? Self.grace : Self.patience) }.min()
    }

    private mutating func inTurn(of group: String) -> [Int] {
        let asleep = workers.filter { $0.value.takes == group && $0.value.state == .asleep }.map(\.key).sorted()
        guard !asleep.isEmpty else { return [] }
        let from = asleep.firstIndex { $0 > last[group] ?? 0 } ?? 0
        let chosen = (0..<min(WakerTurns.few, asleep.count)).map { asleep[(from + $0) % asleep.count] }
        last[group] = chosen.last
        return chosen
    }
}
