import CommandKit

/// Judges a run of the ledger from what producers and jobs have written down, and from history where an end has to be explained.
/// Pure.
struct LedgerChecker: Sendable {
    var intents: [LedgerIntent] = []
    var entries: [LedgerEntry] = []
    var runs: [LedgerRun] = []
    var jobs: [LedgerJob] = []
    var faults: [LedgerFault] = []
    var sessions: [Int64: LedgerSession] = [:]
    /// How many jobs may hold a limit key at once.
    var limit = 3
    /// The times for which the schedule made jobs, two seconds apart.
    var ticks: [Double] = []
    var signals: [LedgerSignal] = []

    struct Finding: Sendable, Equatable {
        var rule: String
        var detail: String
    }

    struct Verdict: Sendable {
        var findings: [Finding] = []
        /// Runs beyond each job's first, by the event before them.
        var again: [String: Int] = [:]
        var ended: [String: Int] = [:]
        var committed = 0
        var rolledBack = 0
        var unknown = 0
        /// Effects of runs whose end was not accepted: the expected duplicates of at-least-once.
        var spentEffects = 0
        /// Runs whose claim a crash of the server undid.
        var undone = 0
    }

    func check() -> Verdict {
        var verdict = Verdict()
        let byJob = Dictionary(grouping: runs, by: \.job).mapValues {
            $0.sorted { ($0.started, $0.finished) < ($1.started, $1.finished) }
        }
        let written = Dictionary(grouping: entries, by: \.job)
        let known = Dictionary(jobs.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        let byNumber = Dictionary(grouping: jobs.filter { $0.n != nil }, by: { $0.n ?? 0 })
        func find(_ rule: String, _ detail: String) { verdict.findings.append(Finding(rule: rule, detail: detail)) }

        for intent in intents {
            switch intent.outcome {
            case .committed:
                verdict.committed += intent.numbers.count
                for n in intent.numbers where byNumber[n] == nil && intent.shape.keepsNumbers {
                    find("nothing committed is lost", "number \(n) (\(intent.shape.rawValue)) is gone")
                }
                for id in intent.ids where known[id] == nil {
                    find("nothing committed is lost", "job \(id) (\(intent.shape.rawValue)) is gone")
                }
            case .rolledBack:
                verdict.rolledBack += intent.numbers.count
                // A crash of the server may give out once more the ids of what was rolled back: it is one of these by its number.
                for id in intent.ids
                where known[id].map({ $0.n.map(intent.numbers.contains) ?? false }) ?? (written[id] != nil) {
                    find("nothing rolled back runs", "job \(id)")
                }
                for n in intent.numbers where byNumber[n] != nil { find("nothing rolled back runs", "number \(n)") }
            case .unknown: verdict.unknown += intent.numbers.count
            }
        }
        let deleted = intents.reduce(into: [:]) { $0.merge($1.deleted) { one, _ in one } }
        for (id, at) in deleted {
            if known[id] != nil { find("a deleted job is gone", "job \(id)") }
            if let late = written[id]?.first(where: { $0.at > at }) {
                find("no running job is deleted", "job \(id): \(late.what) \(late.at - at) s after its deletion")
            }
        }
        for entry in entries where known[entry.job] == nil && deleted[entry.job] == nil && entry.what == "effect" {
            find("nothing rolled back runs", "an effect of job \(entry.job), which does not exist")
        }
        for job in jobs {
            judge(job, byJob[job.id] ?? [], written[job.id] ?? [], &verdict)
        }
        due(known, written, find)
        cancels(byJob, find)
        limits(known, byJob, find)
        keys(known, byJob, find)
        flows(byJob, find)
        waits(byJob, written, find)
        undos(written, find)
        for (one, next) in zip(ticks.sorted(), ticks.sorted().dropFirst()) where next - one != 2 {
            find("a schedule fires once for each time", "\(next - one) s after \(one)")
        }
        return verdict
    }

    /// One job's story: every run ended, each beyond the first follows from the one before, and the accepted end had its effect.
    private func judge(_ job: LedgerJob, _ runs: [LedgerRun], _ written: [LedgerEntry], _ verdict: inout Verdict) {
        func find(_ rule: String, _ detail: String) {
            verdict.findings.append(Finding(rule: rule, detail: "job \(job.id): \(detail)"))
        }
        verdict.ended[job.state, default: 0] += 1
        guard ["succeeded", "cancelled", "dead"].contains(job.state) else {
            find("nothing committed is lost", "still \(job.state) at the end")
            return
        }
        let finals = runs.filter { $0.outcome <= 3 }
        if finals.count > 1 { find("a job ends once", "\(finals.count) ends: \(spell(runs))") }
        if job.state == "succeeded", finals.first?.outcome != 1 { find("an end is explained by history", spell(runs)) }
        if let last = runs.last, last.outcome > 3, job.state != "cancelled" {
            find("an end is explained by history", spell(runs))
        }
        for (before, after) in zip(runs, runs.dropFirst()) {
            verdict.again[Self.cause(before.outcome), default: 0] += 1
            if before.outcome <= 3 {
                find("each further run is explained", "it ran again after its end: \(spell(runs))")
            }
            if after.started < before.finished - 0.001, before.token != after.token {
                find("an accepted end held the live token", "two leases at once: \(spell(runs))")
            }
        }
        if Set(runs.map(\.token)).count < runs.count {
            find("an accepted end held the live token", "a token ended twice: \(spell(runs))")
        }
        for run in runs where run.outcome == 7 && !isExplained(run) {
            find("each further run is explained", "taken from a worker that nothing had happened to: \(spell(runs))")
        }
        if job.state == "dead", job.order?.refused != true || job.isUndo, !runs.contains(where: { $0.outcome == 7 }) {
            find("an end is explained by history", "dead, and never lost: \(spell(runs))")
        }

        let effects = Set(written.filter { $0.what == "effect" }.map(\.token))
        if let accepted = finals.first, accepted.outcome == 1 {
            if !effects.contains(accepted.token), !job.isUndo { find("an accepted end had its effect", spell(runs)) }
            verdict.spentEffects += effects.subtracting([accepted.token]).count
        }
        let ended = Set(runs.map(\.token))
        for began in written where began.what == "began" && !ended.contains(began.token) {
            if isUndone(began) {
                verdict.undone += 1
            } else {
                find(
                    "each run is accounted for",
                    "a run of \(sessions[began.token.session]?.worker ?? "?") that began at \(began.at) has no end in history"
                )
            }
        }
        steps(written, runs, find)
    }

    /// A step that was recorded, as its run then wrote down, is done by no later run.
    private func steps(_ written: [LedgerEntry], _ runs: [LedgerRun], _ find: (String, String) -> Void) {
        for kept in written where kept.what.hasPrefix("kept ") {
            let step = "step " + kept.what.dropFirst(5)
            for again in written where again.what == step && again.token != kept.token {
                guard let run = runs.first(where: { $0.token == again.token }), run.started > kept.at else { continue }
                find("a recorded step is not repeated", "\(step) by a run that started after it was kept")
            }
        }
    }

    private func due(
        _ known: [Int64: LedgerJob], _ written: [Int64: [LedgerEntry]], _ find: (String, String) -> Void
    ) {
        for intent in intents {
            guard let due = intent.due else { continue }
            for id in intent.ids {
                if let early = written[id]?.filter({ $0.what == "began" }).map(\.at).min(), early < due - 0.001 {
                    find("nothing runs before its time", "job \(id) began \(due - early) s early")
                }
            }
        }
    }

    private func cancels(_ byJob: [Int64: [LedgerRun]], _ find: (String, String) -> Void) {
        for intent in intents where intent.wasCancelled {
            for id in intent.ids where byJob[id]?.contains(where: { $0.outcome == 1 }) == true {
                find("a cancelled job does not succeed", "job \(id)")
            }
        }
    }

    /// Never more than the limit at any instant among holders of live leases: from a run's own first word to its own last, or
    /// to the moment at which its lease was given up.
    private func limits(_ known: [Int64: LedgerJob], _ byJob: [Int64: [LedgerRun]], _ find: (String, String) -> Void) {
        var began: [LedgerToken: [Int64: Double]] = [:]
        var said: [LedgerToken: [Int64: Double]] = [:]
        for entry in entries where known[entry.job]?.limitKey != nil {
            if entry.what == "began" {
                began[entry.token, default: [:]][entry.job] = min(entry.at, began[entry.token]?[entry.job] ?? .infinity)
            } else {
                said[entry.token, default: [:]][entry.job] = max(entry.at, said[entry.token]?[entry.job] ?? 0)
            }
        }
        var moments: [String: [(at: Double, step: Int)]] = [:]
        for job in jobs {
            guard let key = job.limitKey else { continue }
            for run in byJob[job.id] ?? [] {
                guard let start = began[run.token]?[job.id] else { continue }
                var end = run.finished
                if run.outcome != 7, let last = said[run.token]?[job.id] { end = min(end, last) }
                guard end > start else { continue }
                moments[key, default: []] += [(start, 1), (end, -1)]
            }
        }
        for (key, moments) in moments {
            var held = 0
            for moment in moments.sorted(by: { ($0.at, $0.step) < ($1.at, $1.step) }) {
                held += moment.step
                if held > limit { find("limits hold at every instant", "\(held) of \(key)") }
            }
        }
    }

    /// A key's next job is made only after the last one has ended.
    private func keys(_ known: [Int64: LedgerJob], _ byJob: [Int64: [LedgerRun]], _ find: (String, String) -> Void) {
        var answered: [Int64: Double] = [:]
        for intent in intents where intent.key != nil && intent.outcome == .committed {
            for id in intent.ids { answered[id] = min(answered[id] ?? .infinity, intent.answered) }
        }
        for (key, holders) in Dictionary(grouping: jobs.filter { $0.key != nil }, by: { $0.key ?? "" }) {
            let holders = holders.sorted { $0.id < $1.id }
            for (one, next) in zip(holders, holders.dropFirst()) {
                guard let made = answered[next.id], let end = byJob[one.id]?.map(\.finished).max(), end > made else {
                    continue
                }
                find(
                    "a unique key has one holder",
                    "\(key): job \(next.id) was made \(end - made) s before \(one.id) ended")
            }
        }
    }

    private func flows(_ byJob: [Int64: [LedgerRun]], _ find: (String, String) -> Void) {
        for intent in intents where !intent.after.isEmpty && intent.outcome == .committed {
            let ends = intent.after.map { byJob[$0]?.first { $0.outcome == 1 }?.finished ?? .infinity }
            for id in intent.ids {
                guard let first = byJob[id]?.map(\.started).min() else { continue }
                if first < (ends.max() ?? 0) - 0.001 {
                    find("a flow goes on when all have succeeded", "job \(id) began before")
                }
            }
        }
        // A fan's last job comes once for each run that was accepted, and that is one.
        let gathers = jobs.filter { $0.kind == LedgerGather.kind }
        let followed = Set(gathers.compactMap(\.n))
        for (n, twins) in Dictionary(grouping: gathers, by: { $0.n ?? -1 }) where twins.count > 1 {
            find("a flow goes on exactly once", "\(twins.count) jobs after the fan \(n)")
        }
        for intent in intents where intent.shape == .fan && intent.outcome == .committed {
            for (n, id) in zip(intent.numbers, intent.ids) where byJob[id]?.contains(where: { $0.outcome == 1 }) == true
            {
                if !followed.contains(n) {
                    find("a flow goes on exactly once", "nothing came after the fan \(n)")
                }
            }
        }
    }

    /// Something had happened to its worker, or to everybody, while that session stood, and not too long ago.
    private func isExplained(_ run: LedgerRun) -> Bool {
        let session = sessions[run.token.session]
        return faults.contains { fault in
            fault.from <= run.finished && run.finished <= fault.until + fault.aftermath
                && (session.map { $0.started <= fault.until } ?? true)
                && (fault.workers.map { names in session.map { names.contains($0.worker) } ?? true } ?? true)
        }
    }

    /// A claim does not wait for the disk, so a crash within a moment undoes it: its runs have begun and are nowhere in history, their ends
    /// are refused, and the jobs run again. What waited for a slot, or could not write that it began, does so when the database is back, and
    /// finds no lease. The session is from before the crash: under a later one a run without an end is a fault.
    private func isUndone(_ began: LedgerEntry) -> Bool {
        guard let session = sessions[began.token.session] else { return false }
        return faults.contains { fault in
            fault.undoesClaims && session.started <= fault.from && fault.from - Self.unwritten <= began.at
                && (began.at <= fault.until || !began.isLeased)
        }
    }

    /// Postgres writes what nobody waits for after three of its pauses, here of a second; the rest is for a busy machine.
    private static var unwritten: Double { 5 }

    private static func cause(_ outcome: Int) -> String {
        switch outcome {
        case 4: "retry"
        case 5: "snooze"
        case 6: "handed back"
        case 7: "crash or lost lease"
        case 8: "wait"
        default: "unexplained"
        }
    }

    private func spell(_ runs: [LedgerRun]) -> String {
        runs.map { "\($0.token.number)@\(sessions[$0.token.session]?.worker ?? "?"):\($0.outcome)" }.joined(
            separator: ", ")
    }
}
