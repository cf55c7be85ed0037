import MillraceQueues
import Workers

extension Model {
    /// Runs, and answers that arrive.
    func workEvents(of who: Int, in world: World, into events: inout [Event]) {
        let process = world.processes[who]
        for (place, going) in process.going.enumerated() {
            let job = going.run.job
            if going.isOwed {
                add(Label("does the work of job", who: who, what: job), to: &events, world) {
                    $0.acted.insert(going.run)
                    $0.processes[who].going.remove(at: place)
                }
                continue
            }
            func end(_ outcome: Outcome, _ label: Label, optional: Bool = false) {
                add(label, fault: optional, to: &events, world) {
                    if broken == .finishBeforeEffect, outcome == .succeeded {
                        $0.processes[who].going[place].isOwed = true
                    } else {
                        $0.acted.insert(going.run)
                        $0.processes[who].going.remove(at: place)
                    }
                    if outcome == .retried || outcome == .dead { $0.faults.retries -= 1 }
                    $0.processes[who].pending.append(Process.End(run: going.run, outcome: outcome))
                    $0.processes[who].pending.sort {
                        ($0.run.token.number, $0.run.job) < ($1.run.token.number, $1.run.job)
                    }
                }
            }
            if broken == .finishBeforeEffect {
                end(.succeeded, Label("tells the end before the work of job", who: who, what: job))
            } else {
                end(.succeeded, Label("runs with success job", who: who, what: job))
            }
            if world.faults.retries > 0 {
                let isLast = world.base.attempts[job] + 1 >= scope.attempts
                end(isLast ? .dead : .retried, Label("fails in job", who: who, what: job), optional: true)
            }
            if !process.isSilent, world.base.cancels.contains(going.run) {
                end(.cancelled, Label("reads the cancel and stops job", who: who, what: job))
            }
        }
        if let horizon = process.horizon {
            add(Label("takes in the horizon", who: who), to: &events, world) {
                $0.processes[who].floors.sample(horizon)
                $0.processes[who].horizon = nil
            }
        }
        if case .answered(let token, let jobs, let places, let ranges) = process.claiming, !process.isSilent {
            add(Label("takes in what it has claimed", who: who), to: &events, world) {
                accept(jobs, places, token, ranges, in: &$0.processes[who])
            }
        }
    }

    func accept(
        _ jobs: [Int], _ places: [Int], _ token: Token, _ ranges: [ClaimRange], in process: inout Process
    ) {
        process.claiming = .idle
        if scope.late {
            process.floors.claimed(
                places.map { QueuePosition(lane: Self.lane, seq: Int64($0)) }, from: ranges, wanted: scope.batch)
        }
        guard !jobs.isEmpty, !scope.claimsEnd else {
            process.number -= 1  // nobody else has heard of it
            return
        }
        process.leases.append(Process.Entry(token: token, total: jobs.count))
        let runs = jobs.map { RunKey(token: token, job: $0) }
        if process.isDraining {
            process.pending += runs.map { Process.End(run: $0, outcome: .released) }
        } else {
            process.going += runs.map { Process.Going(run: $0) }
        }
    }

    /// WorkerState.flushed.
    private func settle(_ flush: Process.Flush, live: Set<Token>, in process: inout Process) {
        process.flushing = .idle
        var refused: Set<Token> = []
        for end in flush.ends {
            if !live.contains(end.run.token) {
                refused.insert(end.run.token)
            } else if let place = process.leases.firstIndex(where: { $0.token == end.run.token }) {
                process.leases[place].recorded += 1
            }
        }
        process.leases.removeAll { flush.complete.contains($0.token) && live.contains($0.token) }
        process.lose(refused)
    }

    /// WorkerState.flush(of:).
    private func group(_ ends: [Process.End], of process: Process) -> Process.Flush {
        var complete: Set<Token> = []
        for entry in process.leases {
            let told = ends.count { $0.run.token == entry.token }
            if told > 0, entry.recorded + told == entry.total { complete.insert(entry.token) }
        }
        return Process.Flush(ends: ends, complete: complete)
    }

    /// The worker's statements, and their effects in the database.
    func askEvents(of who: Int, in world: World, into events: inout [Event]) {
        let process = world.processes[who]
        guard !process.isSilent else { return }
        if mayClaim(who, in: world) {
            let choices: [Int?] = !scope.late && world.base.ready.count > 1 ? [nil, 1] : [nil]
            for take in choices {
                func ask(_ world: inout World) {
                    let (token, ranges) = order(of: &world.processes[who])
                    if let found = claim(token, take: take, from: ranges, in: &world.base) {
                        world.processes[who].claiming = .answered(
                            token, jobs: found.jobs, places: found.places, from: ranges)
                        if !scope.late {
                            accept(found.jobs, found.places, token, ranges, in: &world.processes[who])
                        }
                    } else {
                        world.processes[who].number -= 1
                    }
                }
                add(Label("claims", who: who, what: take ?? scope.batch), to: &events, world) { ask(&$0) }
            }
        }
        switch process.flushing {
        case .idle:
            if !process.halves.isEmpty || !process.pending.isEmpty {
                add(Label("sends its ends", who: who), to: &events, world) {
                    let flush = nextFlush(of: &$0.processes[who])
                    record(flush, of: who, in: &$0)
                }
            }
        case .again(let flush):
            add(Label("sends its ends again", who: who), to: &events, world) {
                $0.processes[who].flushing = .idle
                record(flush, of: who, in: &$0)
            }
        case .unsure(let flush):
            add(Label("asks which ends are recorded", who: who), to: &events, world) {
                // A rescuer's record of the same run is one as well, as in the database.
                let known = Set(flush.ends.filter { end in world.base.outcome(of: end.run) != nil }.map(\.run.token))
                if known.isEmpty {
                    $0.processes[who].flushing = .again(flush)
                } else {
                    settle(flush, live: known, in: &$0.processes[who])
                }
            }
        }
    }

    func mayClaim(_ who: Int, in world: World) -> Bool {
        let process = world.processes[who]
        guard process.claiming == .idle, !process.isDraining, !process.mustReconcile else { return false }
        return !world.base.ready.isEmpty || process.floors.pendingSweep(of: Self.lane) != nil
    }

    func order(of process: inout Process) -> (Token, [ClaimRange]) {
        process.number += 1
        return (Token(session: process.session, number: process.number), ranges(of: &process))
    }

    func nextFlush(of process: inout Process) -> Process.Flush {
        guard let half = process.halves.first else {
            defer { process.pending = [] }
            return group(process.pending, of: process)
        }
        process.halves.removeFirst()
        return group(half, of: process)
    }

    private func record(_ flush: Process.Flush, of who: Int, in world: inout World) {
        if let live = finish(flush, in: &world) {
            settle(flush, live: live, in: &world.processes[who])
        } else if flush.ends.count > 1 {
            world.processes[who].halves = flush.ends.map { [$0] } + world.processes[who].halves
        } else {
            settle(flush, live: [], in: &world.processes[who])
            world.processes[who].mustReconcile = true
        }
    }

    private func ranges(of process: inout Process) -> [ClaimRange] {
        guard scope.late else { return [] }
        process.floors.planned()
        let limit = Int32(scope.batch)
        let floor = process.floors.floor(of: Self.lane)
        let sweep = process.floors.pendingSweep(of: Self.lane).map {
            ClaimRange(lane: Self.lane, floor: $0.lower, ceiling: $0.upper, limit: limit)
        }
        return [sweep, ClaimRange(lane: Self.lane, floor: floor, limit: limit)].compactMap(\.self)
    }
}
