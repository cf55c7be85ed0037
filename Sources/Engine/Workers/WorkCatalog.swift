import MillraceQueues
import Postgres
import Synchronization

/// The kinds and queues that a worker knows, as the database last told them.
final class WorkCatalog: Sendable {
    private struct Kinds {
        /// Those of which it takes jobs now.
        var taken: [Int32: WorkedKind] = [:]
        /// The same, those first of which most jobs are.
        var order: [Int32] = []
        /// Of all that it has ever taken.
        var names: [Int32: String] = [:]
    }

    private let kinds = Mutex(Kinds())
    private let turn = Atomic(0)
    private let queues = Mutex(KnownQueues())
    /// How long the last walk over the lanes took.
    private let walk = Mutex(Duration.zero)
    private let options: JobWorker.Options
    private let link: LoopConnection
    private let state: WorkerStateGuard
    private let sleepLock: QueueSleepLock
    private let wakeups: Wakeups

    init(
        _ options: JobWorker.Options, _ link: LoopConnection, _ state: WorkerStateGuard, _ sleepLock: QueueSleepLock,
        _ wakeups: Wakeups
    ) {
        self.options = options
        self.link = link
        self.state = state
        self.sleepLock = sleepLock
        self.wakeups = wakeups
    }

    var kindIDs: [Int32] { kinds.withLock { $0.order } }
    var kindNames: [Int32: String] { kinds.withLock { $0.names } }
    /// Changes with the kinds of which it takes jobs.
    var kindTurn: Int { turn.load(ordering: .acquiring) }
    var known: KnownQueues { queues.withLock { $0 } }

    /// nil: it takes no jobs of this kind, or none any more.
    func kind(_ id: Int32) -> WorkedKind? { kinds.withLock { $0.taken[id] } }
    func name(of queue: Int32) -> String? { queues.withLock { $0.names[queue] } }
    func serves(_ queue: Int32) -> Bool { queues.withLock { $0.serves?.contains(queue) ?? true } }

    /// Which kinds were added and which are no longer among them.
    @discardableResult
    func take(_ known: [(id: Int32, kind: WorkedKind)]) -> (added: Set<Int32>, gone: Set<Int32>) {
        let before = kinds.withLock { kinds in
            defer {
                kinds.taken = Dictionary(known.map { ($0.id, $0.kind) }, uniquingKeysWith: { first, _ in first })
                kinds.order = known.map(\.id)
                for (id, kind) in known { kinds.names[id] = kind.handler.kind }
            }
            return Set(kinds.taken.keys)
        }
        let now = Set(known.map(\.id))
        if now != before { turn.add(1, ordering: .releasing) }
        tellTaken()
        return (now.subtracting(before), before.subtracting(now))
    }

    /// Which jobs it takes, so that workers that take the same may look for one another.
    private func tellTaken() {
        let taken = kinds.withLock { $0.taken.keys.sorted() }
        let served = queues.withLock { $0.serves?.sorted() }
        sleepLock.takes("\(taken) of \(served.map { "\($0)" } ?? "all") for \(options.buildText)")
    }

    var lastWalk: Duration {
        get { walk.withLock { $0 } }
        set { walk.withLock { $0 = newValue } }
    }

    /// Reads the queues again. A queue that was opened meanwhile is looked at at once.
    func refresh() async throws(PostgresError) {
        let infos = try await link.use { connection throws(PostgresError) in try await Queue.queues(on: connection) }
        let bounds = Dictionary(options.queues.map { ($0.name, $0.slots) }, uniquingKeysWith: { first, _ in first })
        var table = KnownQueues()
        for info in infos {
            table.names[info.id] = info.name
            table.lines[info.id] = FairShares.Line(main: info.main, weight: info.weight)
            if info.limited { table.limited.insert(info.id) }
            if info.retention == 0 { table.short.append(info.id) }
            if info.retention == 2 { table.long.append(info.id) }
            guard bounds.isEmpty || bounds[info.name] != nil else { continue }
            if !info.paused { table.open.append(info.id) }
            if let bound = (bounds[info.name] ?? nil) ?? options.bounds[info.name] {
                state.setBound(bound, line: info.id, of: info.main)
            }
        }
        if !bounds.isEmpty {
            table.serves = Set(infos.filter { bounds[$0.name] != nil }.map(\.id))
        }
        let before = queues.withLock { queues in
            defer { queues = table }
            return queues
        }
        sleepLock.serve(queues: table.serves.map { Array($0) })
        tellTaken()
        if Set(before.open) != Set(table.open) { wakeups.lookEverywhere() }
    }
}

/// What the worker knows of queues.
struct KnownQueues: Sendable {
    var names: [Int32: String] = [:]
    /// Those it serves and that are not paused.
    var open: [Int32] = []
    var lines: [Int32: FairShares.Line] = [:]
    /// More than the plan of a claim visits one by one.
    var hasManyLanes: Bool { open.count > ClaimPlan.fewQueues || lines.count > mains }
    /// How many queues the lines belong to.
    var mains: Int { lines.count { $0.key == $0.value.main } }
    var serves: Set<Int32>?
    var limited: Set<Int32> = []
    var short: [Int32] = []
    var long: [Int32] = []

    /// The low bits of its leases' numbers: the retention class of their jobs.
    func leaseClass(of queue: Int32) -> Int64 { short.contains(queue) ? 0 : long.contains(queue) ? 2 : 1 }
}
