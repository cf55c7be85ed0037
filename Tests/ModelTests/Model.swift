import MillraceQueues
import Workers

/// A step's name, put into words only where it is shown.
struct Label: CustomStringConvertible {
    let text: StaticString
    let who: Int?
    let what: Int?

    init(_ text: StaticString, who: Int? = nil, what: Int? = nil) {
        self.text = text
        self.who = who
        self.what = what
    }

    var description: String {
        (who.map { "worker \($0): " } ?? "") + "\(text)" + (what.map { " \($0)" } ?? "")
    }
}

struct Event {
    var label: Label
    var world: World
    /// Nobody may count on it.
    var isFault: Bool
}

/// The protocol of claim, finish, rescue and resume, as sql/core/queue/*.sql and Workers have it, with their transactions as steps.
struct Model {
    let scope: Scope
    let broken: Broken

    init(_ scope: Scope, _ broken: Broken = .nothing) {
        self.scope = scope
        self.broken = broken
    }

    var jobs: Range<Int> { 0..<scope.jobs }
    static let lane = Lane(queue: 1, priority: 4, line: .normal)

    var start: World {
        var base = Base(attempts: Array(repeating: 0, count: scope.jobs))
        var undrawn: Set<Int> = []
        for job in jobs {
            if scope.late { undrawn.insert(job) } else { base.ready[job] = 0 }
        }
        var processes: [Process] = []
        for _ in 0..<scope.workers { processes.append(opened(in: &base)) }
        return World(
            base: base, processes: processes, undrawn: undrawn, cancelling: scope.cancels ? .notYet : .done,
            faults: scope.faults)
    }

    func opened(in base: inout Base) -> Process {
        base.lastSession += 1
        base.sessions.insert(base.lastSession)
        var process = Process(session: base.lastSession)
        if scope.late { process.floors.hint(Self.lane) }
        return process
    }

    func isEnd(_ world: World) -> Bool {
        guard world.undrawn.isEmpty, world.base.leases.isEmpty, world.base.cancels.isEmpty else { return false }
        if case .looked = world.cancelling { return false }
        return jobs.allSatisfy { world.base.end(of: $0) != nil }
    }

    /// What must hold in every state.
    func fault(in world: World) -> String? {
        if let broken = world.broken { return broken }
        let base = world.base
        for job in jobs where !world.undrawn.contains(job) {
            let places = base.places(of: job)
            if places != 1 { return "job \(job) is in \(places) places instead of one" }
        }
        for (run, outcome) in base.history where outcome == .succeeded && !world.acted.contains(run) {
            let owed = world.processes.contains { $0.going.contains { $0.run == run } }
            if !owed { return "job \(run.job) has succeeded, and its work was never done" }
        }
        if let job = world.promised, base.end(of: job) == nil, !base.cancels.contains(where: { $0.job == job }) {
            return "the cancellation of job \(job) was promised and is forgotten"
        }
        if isEnd(world) {
            for run in world.acted where base.outcome(of: run) == nil && !world.takenBack.contains(run) {
                return "nothing explains a run of job \(run.job)"
            }
        }
        return nil
    }

    func describe(_ world: World) -> String {
        jobs.map { job in
            if world.undrawn.contains(job) { return "job \(job) to come" }
            if let end = world.base.end(of: job) { return "job \(job) \(end)" }
            if let token = world.base.holder(of: job) { return "job \(job) held by \(token.session).\(token.number)" }
            if let place = world.base.ready[job] { return "job \(job) ready at \(place)" }
            return "job \(job) scheduled or being written"
        }.joined(separator: ", ")
            + (world.base.cancels.isEmpty ? "" : ", a cancel unheeded")
            + (world.base.leases.isEmpty ? "" : ", \(world.base.leases.count) leases")
    }

    func events(in world: World) -> [Event] {
        var events: [Event] = []
        for who in world.processes.indices {
            if world.processes[who].isAlive {
                workEvents(of: who, in: world, into: &events)
                askEvents(of: who, in: world, into: &events)
                houseEvents(of: who, in: world, into: &events)
                faultEvents(of: who, in: world, into: &events)
            } else {
                add(Label("starts again", who: who), to: &events, world) { $0.processes[who] = opened(in: &$0.base) }
            }
        }
        callerEvents(in: world, into: &events)
        return events
    }

    func add(
        _ label: Label, fault: Bool = false, to events: inout [Event], _ world: World, _ change: (inout World) -> Void
    ) {
        var next = world
        change(&next)
        if next.base.loose == world.base.loose, next.base != world.base { next.base.loose = [] }
        next.base.leases.sort { ($0.token.session, $0.token.number) < ($1.token.session, $1.token.number) }
        next.tidy()
        events.append(Event(label: label, world: next, isFault: fault))
    }
}
