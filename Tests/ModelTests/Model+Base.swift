import MillraceQueues

extension Model {
    /// millrace.claim: nil when the session is gone, which the lease's reference to it refuses.
    func claim(_ token: Token, take: Int?, from ranges: [ClaimRange], in base: inout Base) -> (
        jobs: [Int], places: [Int]
    )? {
        guard base.sessions.contains(token.session) else { return nil }
        var jobs: [Int] = []
        var places: [Int] = []
        if scope.late {
            for range in ranges {
                let here = base.ready.filter { $0.value > range.floor && $0.value <= range.ceiling }
                for (job, place) in here.sorted(by: { $0.value < $1.value }).prefix(Int(range.limit))
                where jobs.count < scope.batch && !jobs.contains(job) {
                    jobs.append(job)
                    places.append(place)
                }
            }
        } else {
            jobs = Array(base.ready.keys.sorted().prefix(take ?? scope.batch))
        }
        for job in jobs { base.ready[job] = nil }
        if scope.claimsEnd {
            for job in jobs { base.history[RunKey(token: token, job: job)] = .dead }
            return (jobs, places)
        }
        if !jobs.isEmpty {
            base.leases.append(Base.Lease(token: token, jobs: jobs.sorted()))
            if scope.faults.crashes > 0 { base.loose.append(token) }
        }
        return (jobs, places)
    }

    /// A crash of the server: claims that had not reached the disk were never made, and no connection is left.
    func crash(forgetting count: Int, in world: inout World) {
        for token in world.base.loose.suffix(count) {
            for job in world.base.lease(token)?.jobs ?? [] {
                world.base.ready[job] = 0
                world.takenBack.insert(RunKey(token: token, job: job))
            }
            world.base.leases.removeAll { $0.token == token }
        }
        world.base.loose = []
        world.strays = []
        if case .looked = world.cancelling { world.cancelling = .notYet }
        for who in world.processes.indices where world.processes[who].isAlive {
            world.processes[who].mustReconcile = true
        }
    }

    func putInLine(_ job: Int, in base: inout Base) {
        if scope.late { base.drawn += 1 }
        base.ready[job] = scope.late ? base.drawn : 0
    }

    /// millrace.finish: the leases that were live; nil when the index of history refuses the whole.
    func finish(_ flush: Process.Flush, in world: inout World) -> Set<Token>? {
        let before = world.base
        var live: Set<Token> = []
        for token in Set(flush.ends.map(\.run.token)) {
            let isLast = flush.complete.contains(token)
            guard let lease = before.lease(token) else {
                if broken == .noTokenCheck { live.insert(token) }
                continue
            }
            if isLast {
                let told = flush.ends.count { $0.run.token == token }
                let recorded = lease.jobs.count { before.outcome(of: RunKey(token: token, job: $0)) != nil }
                guard [told, told + recorded].contains(lease.jobs.count) else { continue }
                world.base.leases.removeAll { $0.token == token }
            }
            live.insert(token)
        }
        let ends = flush.ends.filter { live.contains($0.run.token) }
        if ends.contains(where: { before.outcome(of: $0.run) != nil }), broken != .noTokenCheck {
            world.base = before
            return nil
        }
        for end in ends {
            let run = end.run
            if before.holder(of: run.job) != run.token {
                world.broken = "an end of job \(run.job) was accepted whose token was no longer live"
            }
            let again = end.outcome == .retried || end.outcome == .released
            let outcome = again && before.cancels.contains(run) ? .cancelled : end.outcome
            world.base.history[run] = outcome
            if outcome == .retried {
                world.base.attempts[run.job] += 1
                world.base.timer.insert(run.job)
            } else if outcome == .released {
                putInLine(run.job, in: &world.base)
            }
        }
        return live
    }

    private func unfinished(_ lease: Base.Lease, in base: Base) -> [RunKey] {
        lease.jobs.map { RunKey(token: lease.token, job: $0) }.filter { base.outcome(of: $0) == nil }
    }

    /// millrace.rescue: the session's jobs go back into line, the session is gone.
    func rescue(_ session: Int, in base: inout Base) {
        for lease in base.leases where lease.token.session == session {
            for run in unfinished(lease, in: base) {
                let isCancelled = base.cancels.contains(run)
                if broken != .rescueLeavesLease { base.history[run] = isCancelled ? .cancelled : .crashed }
                if !isCancelled { putInLine(run.job, in: &base) }
            }
        }
        if broken != .rescueLeavesLease { base.leases.removeAll { $0.token.session == session } }
        base.sessions.remove(session)
        if broken == .rescueForgetsCancel { base.cancels.removeAll { $0.token.session == session } }
    }

    /// millrace.leases_return: nothing of them has started, as far as the worker knows.
    func giveBack(_ tokens: Set<Token>, in world: inout World) {
        for lease in world.base.leases where tokens.contains(lease.token) {
            for run in unfinished(lease, in: world.base) {
                if world.base.cancels.contains(run) {
                    world.base.history[run] = .cancelled
                } else {
                    world.takenBack.insert(run)
                    putInLine(run.job, in: &world.base)
                }
            }
        }
        world.base.leases.removeAll { tokens.contains($0.token) }
    }

    /// millrace.cancel_now, except that for a running job it returns the run.
    func cancelWaiting(_ job: Int, in world: inout World) -> RunKey? {
        if world.base.ready[job] != nil || world.base.timer.contains(job) {
            world.base.ready[job] = nil
            world.base.timer.remove(job)
            world.base.history[RunKey(token: Token(session: 0, number: 0), job: job)] = .cancelled
            return nil
        }
        return world.base.holder(of: job).map { RunKey(token: $0, job: job) }
    }

    /// millrace.heed_cancels, for one of the cancels.
    func heed(_ cancel: RunKey, in world: inout World) {
        world.base.cancels.removeAll { $0 == cancel }
        let outcome = world.base.outcome(of: cancel)
        let over: Bool
        switch outcome {
        case .succeeded, .cancelled, .dead: over = true
        case .crashed: over = broken == .rescueForgetsCancel
        case .retried, .released, nil: over = false
        }
        if !over, let run = cancelWaiting(cancel.job, in: &world) { world.base.cancels.append(run) }
    }
}
