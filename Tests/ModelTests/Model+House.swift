import MillraceQueues
import Workers

extension Model {
    /// The housekeeping, and what other workers do for a lost one.
    func houseEvents(of who: Int, in world: World, into events: inout [Event]) {
        let process = world.processes[who]
        guard !process.isSilent else {
            add(Label("is heard again", who: who), to: &events, world) { $0.processes[who].isSilent = false }
            return
        }
        let base = world.base
        if !base.sessions.contains(process.session) {
            add(Label("learns that its session is gone", who: who), to: &events, world) {
                $0.processes[who].lose(Set(process.leases.map(\.token)))
                $0.processes[who].session = opened(in: &$0.base).session
            }
        }
        for session in base.sessions.sorted() where session != process.session {
            let lives = world.processes.contains { $0.isAlive && !$0.isSilent && $0.session == session }
            if !lives {
                add(Label("rescues a session that is silent", who: who), to: &events, world) {
                    rescue(session, in: &$0.base)
                }
            } else if world.faults.earlyRescues > 0 {
                add(Label("rescues a session that still lives", who: who), fault: true, to: &events, world) {
                    $0.faults.earlyRescues -= 1
                    rescue(session, in: &$0.base)
                }
            }
        }
        if process.claiming == .idle {
            let orphans = Set(base.leases.map(\.token).filter { $0.session == process.session && !process.holds($0) })
            if process.mustReconcile || (!orphans.isEmpty && broken != .neverReconciles) {
                add(Label("gives back what it does not know of", who: who), to: &events, world) {
                    giveBack(orphans, in: &$0)
                    $0.processes[who].mustReconcile = false
                    if scope.late { $0.processes[who].floors.reset() }
                }
            }
        }
        for job in base.timer.sorted() {
            add(Label("promotes job", who: who, what: job), to: &events, world) {
                $0.base.timer.remove(job)
                putInLine(job, in: &$0.base)
            }
        }
        for cancel in base.cancels
        where base.outcome(of: cancel) != nil || (base.lease(cancel.token) == nil && broken != .rescueForgetsCancel) {
            add(Label("heeds the cancel of job", who: who, what: cancel.job), to: &events, world) {
                heed(cancel, in: &$0)
            }
        }
        if scope.late, broken != .noSweeper, process.horizon == nil {
            add(Label("looks at the horizon", who: who), to: &events, world) {
                $0.processes[who].horizon = Horizon(
                    seq: Int64(base.drawn), writers: Set(base.writing.keys.map { UInt64($0) }))
            }
        }
        if process.isDraining, process.isIdle {
            add(Label("closes its session", who: who), to: &events, world) {
                giveBack(Set(base.leases.map(\.token).filter { $0.session == process.session }), in: &$0)
                rescue(process.session, in: &$0.base)
                $0.processes[who] = Process(isAlive: false)
            }
        }
    }

    func faultEvents(of who: Int, in world: World, into events: inout [Event]) {
        let process = world.processes[who]
        if world.faults.kills > 0 {
            die(who, in: world, into: &events)
        }
        if world.faults.silences > 0, !process.isSilent {
            add(Label("falls silent", who: who), fault: true, to: &events, world) {
                $0.faults.silences -= 1
                $0.processes[who].isSilent = true
            }
        }
        if world.faults.cuts > 0, !process.isSilent {
            cut(who, in: world, into: &events)
        }
        if world.faults.drains > 0, !process.isDraining {
            add(Label("drains", who: who), fault: true, to: &events, world) {
                $0.faults.drains -= 1
                $0.processes[who].isDraining = true
                $0.processes[who].pending += process.going.map { Process.End(run: $0.run, outcome: .released) }
                $0.processes[who].going = []
            }
        }
    }

    /// Its last statement may still be executed.
    private func die(_ who: Int, in world: World, into events: inout [Event]) {
        func kill(_ label: Label, _ leave: (inout World) -> Void) {
            add(label, fault: true, to: &events, world) {
                $0.faults.kills -= 1
                leave(&$0)
                $0.processes[who] = Process(isAlive: false)
            }
        }
        kill(Label("is killed", who: who)) { _ in }
        guard !world.processes[who].isSilent else { return }
        if mayClaim(who, in: world) {
            kill(Label("is killed in the middle of a claim", who: who)) { world in
                let (token, ranges) = order(of: &world.processes[who])
                world.strays.append(.claim(token, from: ranges))
            }
        }
        if case .idle = world.processes[who].flushing, !world.processes[who].pending.isEmpty {
            kill(Label("is killed while it sends its ends", who: who)) { world in
                let flush = nextFlush(of: &world.processes[who])
                world.strays.append(.finish(flush))
            }
        }
    }

    /// A connection is lost while an answer is owed on it: before or after the statement was carried out, or with it under way.
    private func cut(_ who: Int, in world: World, into events: inout [Event]) {
        if mayClaim(who, in: world) {
            for isStray in [true, false] {
                let what: StaticString =
                    isStray ? "loses its connection in the middle of a claim" : "loses the answer of its claim"
                add(Label(what, who: who), fault: true, to: &events, world) { world in
                    world.faults.cuts -= 1
                    let (token, ranges) = order(of: &world.processes[who])
                    if isStray {
                        world.strays.append(.claim(token, from: ranges))
                    } else {
                        _ = claim(token, take: nil, from: ranges, in: &world.base)
                    }
                    world.processes[who].mustReconcile = true
                }
            }
        }
        let process = world.processes[who]
        guard process.flushing == .idle, !process.pending.isEmpty || !process.halves.isEmpty else { return }
        for isStray in [true, false] {
            let what: StaticString =
                isStray ? "loses its connection while it sends its ends" : "loses the answer about its ends"
            add(Label(what, who: who), fault: true, to: &events, world) { world in
                world.faults.cuts -= 1
                let flush = nextFlush(of: &world.processes[who])
                if isStray { world.strays.append(.finish(flush)) } else { _ = finish(flush, in: &world) }
                world.processes[who].flushing = .unsure(flush)
            }
        }
    }

    /// Those who enqueue and cancel, and statements that outlived their connection.
    func callerEvents(in world: World, into events: inout [Event]) {
        for job in world.undrawn.sorted() {
            add(Label("an enqueue draws a place for job", what: job), to: &events, world) {
                $0.undrawn.remove(job)
                $0.base.drawn += 1
                $0.base.writing[job] = $0.base.drawn
            }
        }
        for (job, place) in world.base.writing.sorted(by: { $0.key < $1.key }) {
            add(Label("the enqueue commits job", what: job), to: &events, world) {
                $0.base.writing[job] = nil
                $0.base.ready[job] = place
            }
        }
        if world.faults.crashes > 0 {
            for count in 1..<(world.base.loose.count + 1) {
                add(Label("the server crashes; claims forgotten:", what: count), fault: true, to: &events, world) {
                    $0.faults.crashes -= 1
                    crash(forgetting: count, in: &$0)
                }
            }
        }
        for (place, stray) in world.strays.enumerated() {
            add(Label("a statement of a lost connection is carried out"), fault: true, to: &events, world) { world in
                world.strays.remove(at: place)
                switch stray {
                case .claim(let token, let ranges):
                    _ = claim(token, take: nil, from: ranges, in: &world.base)
                case .finish(let flush):
                    _ = finish(flush, in: &world)
                }
            }
        }
        switch world.cancelling {
        case .notYet:
            add(Label("a caller cancels job", what: 0), fault: true, to: &events, world) { world in
                guard !world.undrawn.contains(0), world.base.writing[0] == nil else { return }
                world.cancelling = cancelWaiting(0, in: &world).map { .looked($0) } ?? .done
            }
        case .looked(let run):
            add(Label("the cancel commits for job", what: 0), to: &events, world) {
                $0.base.cancels.append(run)
                $0.promised = 0
                $0.cancelling = .done
            }
        case .done: break
        }
    }
}
