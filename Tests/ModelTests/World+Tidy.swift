/// Two states are one if they differ only in things that nobody can ask for any more: runs that are over and that no lease, worker, stray
/// statement or cancel still names, and the names of sessions. Tokens are never reused, so a forgotten one does not matter.
extension World {
    mutating func tidy() {
        let named = namedTokens()
        forget(but: named)
        for who in processes.indices where processes[who].isAlive {
            let session = processes[who].session
            processes[who].number = named.lazy.filter { $0.session == session }.map(\.number).max() ?? 0
        }
        renameSessions(named)
    }

    private func namedTokens() -> Set<Token> {
        var named = Set(base.leases.map(\.token))
        for process in processes {
            for entry in process.leases { named.insert(entry.token) }
            for going in process.going { named.insert(going.run.token) }
            for end in process.pending { named.insert(end.run.token) }
            for half in process.halves { for end in half { named.insert(end.run.token) } }
            if case .answered(let token, _, _, _) = process.claiming { named.insert(token) }
            switch process.flushing {
            case .idle: break
            case .unsure(let flush), .again(let flush): for end in flush.ends { named.insert(end.run.token) }
            }
        }
        for stray in strays {
            switch stray {
            case .claim(let token, _): named.insert(token)
            case .finish(let flush): for end in flush.ends { named.insert(end.run.token) }
            }
        }
        for cancel in base.cancels { named.insert(cancel.token) }
        if case .looked(let run) = cancelling { named.insert(run.token) }
        return named
    }

    private mutating func forget(but named: Set<Token>) {
        for (run, outcome) in base.history where !named.contains(run.token) && run.token.session != 0 {
            base.history[run] = nil
            let acted = acted.remove(run) != nil
            if outcome.isFinal {
                let nobody = RunKey(token: Token(session: 0, number: 0), job: run.job)
                // A second end under this name shows in the count below it.
                if base.history.updateValue(outcome, forKey: nobody) != nil {
                    broken = "job \(run.job) has ended twice"
                }
                if acted { self.acted.insert(nobody) }
            }
        }
        for run in takenBack where !named.contains(run.token) {
            takenBack.remove(run)
            acted.remove(run)
        }
    }

    private mutating func renameSessions(_ named: Set<Token>) {
        var names: [Int: Int] = [0: 0]
        for process in processes where process.isAlive { names[process.session] = names.count }
        let others = base.sessions.union(named.map(\.session)).union(acted.map(\.token.session))
        for session in others.sorted() where names[session] == nil { names[session] = names.count }
        guard base.lastSession != names.count - 1 || names.contains(where: { $0.key != $0.value }) else { return }
        base.lastSession = names.count - 1
        func renamed(_ token: Token) -> Token { Token(session: names[token.session] ?? -1, number: token.number) }
        func renamed(_ run: RunKey) -> RunKey { RunKey(token: renamed(run.token), job: run.job) }
        func renamed(_ ends: [Process.End]) -> [Process.End] {
            ends.map { Process.End(run: renamed($0.run), outcome: $0.outcome) }
        }
        func renamed(_ flush: Process.Flush) -> Process.Flush {
            Process.Flush(ends: renamed(flush.ends), complete: Set(flush.complete.map { renamed($0) }))
        }
        base.leases = base.leases.map { Base.Lease(token: renamed($0.token), jobs: $0.jobs) }
        base.loose = base.loose.map { renamed($0) }
        base.history = Dictionary(uniqueKeysWithValues: base.history.map { (renamed($0.key), $0.value) })
        base.sessions = Set(base.sessions.map { names[$0] ?? -1 })
        base.cancels = base.cancels.map { renamed($0) }
        acted = Set(acted.map { renamed($0) })
        takenBack = Set(takenBack.map { renamed($0) })
        if case .looked(let run) = cancelling { cancelling = .looked(renamed(run)) }
        strays = strays.map { stray in
            switch stray {
            case .claim(let token, let ranges): .claim(renamed(token), from: ranges)
            case .finish(let flush): .finish(renamed(flush))
            }
        }
        for who in processes.indices {
            var process = processes[who]
            process.session = names[process.session] ?? -1
            process.leases = process.leases.map {
                Process.Entry(token: renamed($0.token), total: $0.total, recorded: $0.recorded)
            }
            process.going = process.going.map { Process.Going(run: renamed($0.run), isOwed: $0.isOwed) }
            process.pending = renamed(process.pending)
            process.halves = process.halves.map { renamed($0) }
            if case .answered(let token, let jobs, let places, let ranges) = process.claiming {
                process.claiming = .answered(renamed(token), jobs: jobs, places: places, from: ranges)
            }
            switch process.flushing {
            case .idle: break
            case .unsure(let flush): process.flushing = .unsure(renamed(flush))
            case .again(let flush): process.flushing = .again(renamed(flush))
            }
            processes[who] = process
        }
    }
}
