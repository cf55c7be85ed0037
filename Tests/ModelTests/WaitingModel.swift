/// Waits, signals, timeouts and cancels, as the schema's functions carry them out: `wait` (a run that waits, or finds what it waits for),
/// `signal`, `signals_tell`, the timer, a rescue and a cancel. All orders are tried.
///
/// A transaction that looks first and writes afterwards is two steps. Between them others go on, unless they need the turn that it holds.
struct WaitingModel {
    enum Broken: CaseIterable {
        case nothing
        /// `wait` and `signals_tell` look and write without the turn of the name and key.
        case noTurn
        /// A run whose lease was lost may wait, and take.
        case noFence
    }

    struct World: Hashable {
        enum Place: Hashable {
            case ready
            case running(run: Int)
            /// In the timer.
            case waiting
            case ended
        }

        struct Job: Hashable {
            var place = Place.ready
            var runs = 0
            /// What its step has on record: a signal, or -1 for a timeout.
            var value: Int?
            var isCancelled = false
        }

        /// Within `wait`: it has looked, and goes on to write.
        struct Looking: Hashable {
            var job: Int
            var run: Int
            /// What it has found.
            var signal: Int?
            var isOver: Bool
        }

        enum Signal: Hashable {
            case unsent, fresh, kept
            case taken(job: Int)
        }

        var jobs: [Job]
        var signals: [Signal]
        /// Runs that go on: those that have lost their lease do not know it.
        var going: Set<[Int]> = []
        var looking: [Looking] = []
        /// Within `signals_tell`: the signal, and the job that it has found.
        var telling: [Int]?
        var rescues: Int
        var cancels: Int
        /// The time that they wait for at most is over.
        var isLate = false
        var broken: String?
    }

    struct Event {
        var label: String
        var world: World
        var isFault = false
    }

    var broken = Broken.nothing
    var hasTimeout = false

    var start: World {
        World(
            jobs: [World.Job(), World.Job()], signals: [.unsent, .unsent], rescues: 1, cancels: hasTimeout ? 0 : 1)
    }

    /// Somebody holds the turn.
    private func isHeld(_ world: World) -> Bool {
        broken != .noTurn && (!world.looking.isEmpty || world.telling != nil)
    }

    func events(in world: World) -> [Event] {
        var events: [Event] = []
        func add(_ label: String, fault: Bool = false, _ change: (inout World) -> Void) {
            var next = world
            change(&next)
            events.append(Event(label: label, world: next, isFault: fault))
        }
        for (signal, state) in world.signals.enumerated() where state == .unsent {
            add("signal \(signal) is sent") { $0.signals[signal] = .fresh }
        }
        for (number, job) in world.jobs.enumerated() {
            if job.place == .ready {
                add("job \(number) is claimed") {
                    $0.jobs[number].runs += 1
                    $0.jobs[number].place = .running(run: $0.jobs[number].runs)
                    $0.going.insert([number, $0.jobs[number].runs])
                }
            }
            if case .running(let run) = job.place, world.rescues > 0 {
                add("job \(number) is rescued from run \(run), which goes on", fault: true) {
                    $0.rescues -= 1
                    $0.jobs[number].place = .ready
                }
            }
            if job.place == .waiting {
                if world.isLate { add("the time of job \(number) is over") { $0.jobs[number].place = .ready } }
                if world.cancels > 0, world.telling.map({ $0[1] != number }) ?? true {
                    add("job \(number) is cancelled", fault: true) {
                        $0.cancels -= 1
                        $0.jobs[number].place = .ended
                        $0.jobs[number].isCancelled = true
                    }
                }
            }
        }
        if hasTimeout, !world.isLate { add("time passes") { $0.isLate = true } }
        for going in world.going.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            run(going[0], going[1], in: world, add)
        }
        for looking in world.looking {
            add("run \(looking.run) of job \(looking.job) writes") { write(looking, in: &$0) }
        }
        tell(in: world, add)
        return events
    }

    /// `wait`, or the end of a run that has its value.
    private func run(
        _ number: Int, _ run: Int, in world: World, _ add: (String, Bool, (inout World) -> Void) -> Void
    ) {
        let job = world.jobs[number]
        guard !world.looking.contains(where: { $0.job == number && $0.run == run }) else { return }
        let isLive = job.place == .running(run: run)
        guard isLive || broken == .noFence else {
            return add("run \(run) of job \(number) hears that its lease is lost", false) {
                $0.going.remove([number, run])
            }
        }
        if job.value != nil {
            return add("run \(run) of job \(number) ends", false) {
                $0.going.remove([number, run])
                if isLive { $0.jobs[number].place = .ended }
            }
        }
        guard !isHeld(world) else { return }
        add("run \(run) of job \(number) looks for what it waits for", false) { world in
            let found = world.signals.firstIndex { $0 == .fresh || $0 == .kept }
            world.looking.append(.init(job: number, run: run, signal: found, isOver: world.isLate))
        }
    }

    private func write(_ looking: World.Looking, in world: inout World) {
        world.looking.removeAll { $0 == looking }
        let job = looking.job
        // The lease is locked from the look to the write, so a rescuer waits; without the fence nobody looks at it.
        guard world.jobs[job].place == .running(run: looking.run) || broken == .noFence else {
            world.going.remove([job, looking.run])
            return
        }
        if let signal = looking.signal {
            take(signal, by: job, in: &world)
        } else if looking.isOver {
            record(-1, of: job, in: &world)
        } else {
            world.going.remove([job, looking.run])
            world.jobs[job].place = .waiting
        }
    }

    private func tell(in world: World, _ add: (String, Bool, (inout World) -> Void) -> Void) {
        if let telling = world.telling {
            add("signal \(telling[0]) is told", false) { world in
                world.telling = nil
                let (signal, job) = (telling[0], telling[1])
                guard world.signals[signal] == .fresh || broken == .noTurn else { return }
                if job >= 0, world.jobs[job].place == .waiting {
                    take(signal, by: job, in: &world)
                    world.jobs[job].place = .ready
                } else if world.signals[signal] == .fresh {
                    world.signals[signal] = .kept
                }
            }
            return
        }
        guard !isHeld(world) else { return }
        for (signal, state) in world.signals.enumerated() where state == .fresh {
            add("the waiters for signal \(signal) are looked for", false) { world in
                world.telling = [signal, world.jobs.firstIndex { $0.place == .waiting } ?? -1]
            }
        }
    }

    private func take(_ signal: Int, by job: Int, in world: inout World) {
        if case .taken(let other) = world.signals[signal] {
            world.broken = "signal \(signal) was taken by jobs \(other) and \(job)"
        }
        world.signals[signal] = .taken(job: job)
        record(signal, of: job, in: &world)
    }

    private func record(_ value: Int, of job: Int, in world: inout World) {
        if let old = world.jobs[job].value { world.broken = "job \(job) has \(old) on record, and took \(value)" }
        if world.jobs[job].isCancelled { world.broken = "job \(job) was cancelled, and took \(value)" }
        world.jobs[job].value = value
    }

    /// nil: all is well.
    func fault(in world: World) -> String? {
        if let broken = world.broken { return broken }
        let isQuiet =
            world.looking.isEmpty && world.telling == nil && world.going.isEmpty
            && world.jobs.allSatisfy { $0.place == .waiting || $0.place == .ended }
            && world.signals.allSatisfy { $0 != .fresh && $0 != .unsent }
        guard isQuiet, !hasTimeout else { return nil }
        if world.jobs.contains(where: { $0.place == .waiting }), world.signals.contains(.kept) {
            return "a job waits for a signal that is kept, and nobody will look again"
        }
        return nil
    }

    /// All is done, or nothing comes that a job waits for.
    func isEnd(_ world: World) -> Bool {
        world.looking.isEmpty && world.telling == nil && world.going.isEmpty
            && world.signals.allSatisfy { $0 != .fresh && $0 != .unsent }
            && world.jobs.allSatisfy { $0.place == .ended || $0.place == .waiting && !hasTimeout }
    }

    func describe(_ world: World) -> String { "\(world.jobs), signals \(world.signals)" }
}

/// Explores every state, breadth first.
extension WaitingModel {
    func explore() -> Finding {
        var index: [World: Int] = [start: 0]
        var queue = [start]
        var parents: [(at: Int, label: String)] = [(-1, "")]
        var before: [[Int]] = [[]]
        var ends: [Int] = []
        func trace(_ last: Int) -> [String] {
            var (names, at): ([String], Int) = ([], last)
            while at > 0 {
                names.append(parents[at].label)
                at = parents[at].at
            }
            return names.reversed()
        }
        var at = 0
        while at < queue.count {
            let world = queue[at]
            if let what = fault(in: world) {
                return Finding(states: queue.count, ends: ends.count, failure: (what, trace(at)))
            }
            if isEnd(world) { ends.append(at) }
            for event in events(in: world) {
                let next = index[event.world] ?? queue.count
                if next == queue.count {
                    index[event.world] = next
                    queue.append(event.world)
                    parents.append((at, event.label))
                    before.append([])
                }
                if !event.isFault { before[next].append(at) }
            }
            at += 1
        }
        var saved = [Bool](repeating: false, count: queue.count)
        for end in ends { saved[end] = true }
        var stack = ends
        while let one = stack.popLast() {
            for earlier in before[one] where !saved[earlier] {
                saved[earlier] = true
                stack.append(earlier)
            }
        }
        var finding = Finding(states: queue.count, ends: ends.count)
        if let stuck = saved.firstIndex(of: false) {
            finding.failure = ("no end can be reached from here: \(describe(queue[stuck]))", trace(stuck))
        }
        return finding
    }
}
