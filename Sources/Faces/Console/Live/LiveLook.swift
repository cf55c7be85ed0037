import FoundationEssentials
import Postgres
import Synchronization
import Telemetry
import Templates
import Threads

/// One look at the database every two seconds for all open pages together, and none while no page is open.
actor LiveLook {
    struct Look: Sendable {
        let number: Int
        /// The text of each live element, by its name.
        let texts: [String: String]
        let began: ContinuousClock.Instant
        /// The database did not answer.
        var isLost = false
        /// What has changed since the look before, as the event for pages of no job, encoded once for all of them; empty when nothing has.
        /// nil: the look before is not known.
        var change: [UInt8]?
    }

    private let pool: Pool
    private let log: Log
    private let judge: @Sendable (Connection) async throws -> ConsoleService.Verdict
    private var viewers = 0
    private var latest: Look?
    private var latestAt = ContinuousClock.now
    /// How often the database was looked at; for tests.
    private(set) var looks = 0
    /// With the time at which its reading began.
    private var verdict: (said: ConsoleService.Verdict, at: ContinuousClock.Instant)?
    /// However many pages ask for it, one reads it.
    private var judging: (task: Task<ConsoleService.Verdict, any Error>, began: ContinuousClock.Instant)?
    private var actedAt = ContinuousClock.now
    private let started = Int(Date().timeIntervalSince1970)
    private var number = 0
    private var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    private var nextWaiter = 0
    private let wanted = Wakeup()
    /// Jobs whose pages are open, with how many pages.
    private var jobs: [Int64: Int] = [:]
    static let pause = Duration.seconds(2)

    init(
        pool: Pool, log: Log, verdict: @escaping @Sendable (Connection) async throws -> ConsoleService.Verdict
    ) {
        self.pool = pool
        self.log = log
        judge = verdict
    }

    func run() async {
        while !Task.isCancelled {
            guard viewers > 0 else {
                await wanted.wait(for: .seconds(5))
                continue
            }
            let began = ContinuousClock.now
            await look()
            // Looks are rarer where the database is slow, so that they take no more than a twentieth of its time.
            let pause = min(began.duration(to: .now) * 20, .seconds(10))
            await wanted.wait(for: max(Self.pause, pause))
        }
        for waiter in waiting.values { waiter.resume() }
        waiting = [:]
    }

    private func look() async {
        looks += 1
        let began = ContinuousClock.now
        do {
            let watched = Array(jobs.keys.prefix(500))
            let (texts, said) = try await pool.withConnection { [judge] connection in
                let said = try await judge(connection)
                return (try await LiveTexts.read(on: connection, jobs: watched), said)
            }
            verdict = (said, began)
            var all = texts
            all["verdict"] = said.word
            number += 1
            var found = Look(number: number, texts: all, began: began)
            if let latest, latest.number == number - 1, !latest.isLost {
                let changed = all.filter { !$0.key.hasPrefix("job.") && latest.texts[$0.key] != $0.value }
                found.change = changed.isEmpty ? [] : LiveEvent.bytes(changed, id: "\(epoch)-\(number)")
            }
            latest = found
        } catch {
            log.warning("the live look failed", [("error", "\(error)")])
            number += 1
            latest = Look(number: number, texts: ["verdict": "UNKNOWN"], began: began, isLost: true)
        }
        latestAt = .now
        let held = waiting
        waiting = [:]
        for waiter in held.values { waiter.resume() }
    }

    /// The verdict of the last seconds, or a new one. An older one is given while the new one is made: with thousands of queues that takes a second.
    func currentVerdict(
        pause: Duration = LiveLook.pause, patience: Duration = .seconds(10)
    ) async throws -> ConsoleService.Verdict {
        if let verdict, verdict.at > actedAt {
            let age = verdict.at.duration(to: .now)
            if age < pause { return verdict.said }
            if age < patience {
                if judging == nil { beginJudging() }
                return verdict.said
            }
        }
        if let judging, judging.began > actedAt { return try await judging.task.value }
        return try await beginJudging().value
    }

    /// Somebody has acted: what was judged before is not to be shown.
    func acted() { actedAt = .now }

    @discardableResult
    private func beginJudging() -> Task<ConsoleService.Verdict, any Error> {
        let began = ContinuousClock.now
        // It ends with the reading, also when the page that began it has gone.
        let task = Task<ConsoleService.Verdict, any Error> {
            defer { if judging?.began == began { judging = nil } }
            let said = try await pool.withConnection { [judge] connection in try await judge(connection) }
            if verdict.map({ $0.at < began }) ?? true { verdict = (said, began) }
            return said
        }
        judging = (task, began)
        return task
    }

    func joined(watching job: Int64?) {
        // What was seen before the last page was closed is old.
        if viewers == 0, latestAt.duration(to: .now) > Self.pause { latest = nil }
        viewers += 1
        if let job { jobs[job, default: 0] += 1 }
        // Others share the coming look: however many pages open, it comes every two seconds.
        if viewers == 1 { wanted.fire() }
    }

    func left(watching job: Int64?) {
        viewers -= 1
        guard let job, let pages = jobs[job] else { return }
        jobs[job] = pages > 1 ? pages - 1 : nil
    }

    /// The look after this one; waits for it at most `limit`.
    func look(after number: Int, for limit: Duration) async -> Look? {
        if let latest, latest.number > number { return latest }
        let id = nextWaiter
        nextWaiter += 1
        let timer = Task {
            try await Task.sleep(for: limit)
            release(id)
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { continuation.resume() } else { waiting[id] = continuation }
            }
        } onCancel: {
            Task { await self.release(id) }  // ends at once: it only wakes the waiter
        }
        timer.cancel()
        guard let latest, latest.number > number else { return nil }
        return latest
    }

    private func release(_ id: Int) {
        waiting.removeValue(forKey: id)?.resume()
    }

    /// Names this process's looks, so that an id of an earlier one is not taken for one of ours.
    var epoch: Int { started }
}

/// The numbers that live pages show.
enum LiveTexts {
    static func read(on connection: Connection, jobs: [Int64]) async throws -> [String: String] {
        let found = try await connection.json(
            """
            select jsonb_build_object(
                'jobs', (select coalesce(jsonb_agg(jsonb_build_object('id', j.id, 'state', j.state, 'attempt', j.attempt, 'progress', j.progress,
                                       'lines', case when j.state = 'running' then (select coalesce(jsonb_agg(jsonb_build_object('at', l.at, 'level', l.level, 'line', left(l.line, 500)) order by l.n), '[]')
                                                                                      from millrace.logs_shown(j.id, 0, 30) l) end)), '[]')
                           from millrace.jobs_shown($1, true) j),
                'queues', millrace.queues_now(100),
                'operations', (select coalesce(jsonb_agg(to_jsonb(o) - array['filter', 'args', 'who', 'login', 'said_by']), '[]') from millrace.operation_list(null, 20) o),
                'workers', (select coalesce(jsonb_agg(jsonb_build_object('name', w.worker, 'state', case when w.beat_at < millrace.now() - interval '8 s' then 'silent' else w.state end, 'running', w.running, 'slots', w.slots)), '[]')
                              from millrace.workers w))
            """, [.int8s(jobs)])
        var texts: [String: String] = [:]
        let queues = found["queues"] ?? .null
        for queue in queues.list("rows") {
            let name = queue.text("queue") ?? ""
            texts["queue.\(name).ready"] = QueuePages.ready(queue)
            texts["queue.\(name).running"] = Figures.count(queue.int("running") ?? 0)
        }
        let totals = QueuePages.Totals(queues, now: Date())
        let workers = found.list("workers")
        texts["total.ready"] = totals.ready
        if let running = totals.running { texts["total.running"] = Figures.count(running) }
        texts["total.workers"] = Figures.count(workers.count { $0.text("state") != "silent" })
        for worker in workers {
            let name = worker.text("name") ?? ""
            texts["worker.\(name).running"] = Figures.count(worker.int("running") ?? 0)
            // The page itself says since when.
            if worker.text("state") != "silent" { texts["worker.\(name).state"] = worker.text("state") ?? "" }
        }
        for operation in found.list("operations") {
            let name = "operation.\(operation.text("id") ?? "")"
            let progress = OperationProgress(operation)
            texts["\(name).state"] = operation.text("state") ?? ""
            texts["\(name).done"] = Figures.count(operation.int("done") ?? 0)
            texts["\(name).percent"] = "\(Int((progress.share * 100).rounded(.down)))"
            texts["\(name).says"] = progress.says
        }
        for job in found.list("jobs") {
            let name = "job.\(job.text("id") ?? "")"
            texts["\(name).state"] = job.text("state") ?? ""
            texts["\(name).attempt"] = job.text("attempt") ?? ""
            texts["\(name).progress"] = JobPages.progress(job["progress"]) ?? "–"
            if job.text("state") == "running" { texts["\(name).tail"] = JobStory.tail(job.list("lines")) }
        }
        return texts
    }
}
