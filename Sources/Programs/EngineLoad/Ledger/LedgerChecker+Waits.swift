import CommandKit

/// Jobs that wait, and what is undone.
extension LedgerChecker {
    func waits(
        _ byJob: [Int64: [LedgerRun]], _ written: [Int64: [LedgerEntry]], _ find: (String, String) -> Void
    ) {
        takers(find)
        let byNumber = Dictionary(grouping: jobs.filter { $0.kind == LedgerWork.kind }, by: { $0.n ?? 0 })
        let sent = Dictionary(signals.map { ($0.n, $0) }, uniquingKeysWith: { first, _ in first })
        for job in jobs {
            guard let wait = job.wait else { continue }
            let said = written[job.id] ?? []
            let began = said.filter { $0.what == "began" }.map(\.at).min() ?? .infinity
            let told = said.filter { $0.what.hasPrefix("took ") || $0.what == "timed out" }
            let answers = said.filter { $0.what == "yes" || $0.what == "no" }
            let joined = said.filter { $0.what.hasPrefix("joined ") }
            func early(_ what: String, _ seconds: Double) {
                if let first = said.filter({ $0.what == what }).map(\.at).min(), first < began + seconds - 0.001 {
                    find(
                        "a wait that ends by time is not early",
                        "job \(job.id) \(what) \(began + seconds - first) s early")
                }
            }
            if let seconds = wait.sleep { early("woke", seconds) }
            if let seconds = wait.timeout { early("timed out", seconds) }
            if told.contains(where: { $0.what == "timed out" }), let one = wait.key, one.hasPrefix("t"),
                let signal = sent[wait.n], signal.sent < began
            {
                find(
                    "a signal that came in time is taken",
                    "job \(job.id) timed out, and \(signal.n) was there before it")
            }
            for what in [told, answers, joined] where Set(what.map(\.what)).count > 1 {
                find("a wait has one end", "job \(job.id): \(Set(what.map(\.what)).sorted().joined(separator: ", "))")
            }
            if let wrong = answers.first(where: { $0.what != (LedgerWait.answer(to: job.id) ? "yes" : "no") }) {
                find("an answer reaches who asked", "job \(job.id) was told \(wrong.what)")
            }
            if let children = wait.children {
                self.children(of: job, wait, children, joined, byNumber, byJob, find)
            }
            guard job.state == "succeeded" else { continue }
            let missing =
                wait.sleep != nil && !said.contains { $0.what == "woke" } || wait.key != nil && told.isEmpty
                || wait.asks == true && answers.isEmpty || wait.children != nil && joined.isEmpty
            if missing {
                find("a job goes on behind its wait", "job \(job.id) has succeeded without what it waited for")
            }
        }
    }

    /// Each signal was taken by one job of its key, and somebody has sent it.
    private func takers(_ find: (String, String) -> Void) {
        let sent = Dictionary(signals.map { ($0.n, $0) }, uniquingKeysWith: { first, _ in first })
        let keys = Dictionary(jobs.map { ($0.id, $0.wait?.key) }, uniquingKeysWith: { first, _ in first })
        var takers: [Int: Set<Int64>] = [:]
        for entry in entries where entry.what.hasPrefix("took ") {
            guard let n = Int(entry.what.dropFirst(5)) else { continue }
            takers[n, default: []].insert(entry.job)
            // A deleted job's key is not known any more.
            if let signal = sent[n], let key = keys[entry.job], key != signal.key {
                find("a signal is taken for its key", "\(n) of \(signal.key) by job \(entry.job)")
            }
            if sent[n] == nil { find("a signal is taken that was sent", "\(n) by job \(entry.job)") }
        }
        for (n, jobs) in takers where jobs.count > 1 {
            find("a signal is taken once", "\(n) by the jobs \(jobs.sorted().map { "\($0)" }.joined(separator: ", "))")
        }
        for signal in signals where signal.wasNewAgain { find("a signal's id is known", "\(signal.n) was new again") }
    }

    private func children(
        of job: LedgerJob, _ wait: LedgerWait, _ count: Int, _ joined: [LedgerEntry],
        _ byNumber: [Int: [LedgerJob]], _ byJob: [Int64: [LedgerRun]], _ find: (String, String) -> Void
    ) {
        let first = joined.map(\.at).min() ?? .infinity
        for place in 0..<count {
            let made = byNumber[wait.child(place)] ?? []
            if made.count > 1 { find("a child is made once", "\(made.count) as number \(place) of job \(job.id)") }
            guard let ended = joined.first, let child = made.first else { continue }
            if ended.what != "joined \(count)" {
                find("children are waited for", "job \(job.id): \(ended.what) of \(count)")
            }
            if let end = byJob[child.id]?.first(where: { $0.outcome == 1 })?.finished, end > first + 0.001 {
                find("children are waited for", "job \(job.id) went on \(end - first) s before job \(child.id) ended")
            }
        }
        if job.state == "succeeded", (0..<count).contains(where: { byNumber[wait.child($0)] == nil }) {
            find("a child is made once", "job \(job.id) has succeeded without one of its children")
        }
    }

    /// What an order had on record is undone exactly if it has not succeeded, the last step first.
    func undos(_ written: [Int64: [LedgerEntry]], _ find: (String, String) -> Void) {
        let undoing = Dictionary(grouping: jobs.filter { $0.order != nil && $0.isUndo }, by: { $0.order?.n ?? 0 })
        for job in jobs where !job.isUndo {
            guard let order = job.order, job.state != "unfinished" else { continue }
            let undos = undoing[order.n] ?? []
            let undone = undos.flatMap { written[$0.id] ?? [] }.filter { $0.what.hasPrefix("undid ") }
            if job.state == "succeeded" {
                if let wrong = undone.first {
                    find("a job that has succeeded is not undone", "job \(job.id): \(wrong.what)")
                } else if !undos.isEmpty {
                    find("a job that has succeeded is not undone", "job \(job.id) still has undos to come")
                }
                continue
            }
            let said = written[job.id] ?? []
            var later = -Double.infinity
            for number in (1...LedgerOrder.steps).reversed() {
                let first = undone.filter { $0.what == "undid s\(number)" }.map(\.at).min()
                if let first {
                    if !said.contains(where: { $0.what == "step s\(number)" }) {
                        find("only what was done is undone", "job \(job.id): s\(number)")
                    }
                    if first < later { find("the last step is undone first", "job \(job.id): s\(number) too soon") }
                    later = first
                } else if said.contains(where: { $0.what == "kept s\(number)" }) {
                    find(
                        "a job that has not succeeded is undone", "job \(job.id) is \(job.state), and s\(number) stays")
                }
            }
        }
    }
}
