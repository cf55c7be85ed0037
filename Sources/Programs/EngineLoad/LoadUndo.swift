package import CommandKit
import FoundationEssentials
import LoadKit
import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import Workers

extension Command {
    package static let loadUndo = scenario(
        "undo",
        summary: "Cancel many jobs by a filter, undo it while workers run, and judge each job",
        discussion: """
            Enqueues jobs of all sorts (waiting, scheduled, retried, with keys, limits and flows), and reads with plain \
            SQL where each stands. Then workers run, an operation cancels all of one queue, some of the cancelled jobs \
            are retried, deleted or lose their key to another, and the operation is undone. Every job must be as it \
            was, or have gone on from there, or be listed as moved on; jobs of another queue are untouched; and the \
            audit has both actions.
            """,
        flags: [
            .count("jobs", 100...10_000_000, 100_000, "How many jobs."),
            .count("workers", 1...20, 2, "How many workers."),
        ],
        examples: [Example("millrace load undo --strict", "100,000 jobs, cancelled and undone")]
    ) { invocation in
        try await UndoScenario(invocation: invocation).run()
    }
}

private struct UndoScenario: Sendable {
    let invocation: Invocation

    static let kind = "load.undo"

    func run() async throws -> ExitCode {
        let jobs = invocation.count("jobs")
        let options = try invocation.connectionOptions()
        let connection = try await Connection.open(options, name: "load")
        try await fill(connection, jobs: jobs)
        try await connection.run(Self.snapshot("public.undo_before"))
        let workers = (1...(invocation.count("workers"))).map { worker(options, number: $0) }
        let running = workers.map { worker in Task { try await worker.run() } }  // awaited below
        for worker in workers { await worker.hasStarted() }

        let operation = try await Queue.startOperation(
            "cancel", filter: #"{"queue": "load.undo"}"#, args: "{}", pace: nil, key: nil, on: connection)
        let cancel = try await wait(for: operation, on: connection)
        try await connection.run(Self.meanwhile)
        _ = try await Queue.change(operation, .undo, on: connection)
        let undo = try await wait(for: operation, on: connection)
        guard let row = try await Queue.operation(operation, on: connection) else {
            throw Failure("operation \(operation) has gone")
        }
        // The workers have gone on with what came back.
        try await Task.sleep(for: .seconds(2))
        for worker in workers { worker.drain() }
        for task in running { _ = try await task.value }
        try await connection.run(Self.snapshot("public.undo_after"))
        let verdicts = try await judge(operation, on: connection)
        let code = try await report(row, jobs, cancel: cancel, undo: undo, verdicts, on: connection)
        await connection.close()
        return code
    }

    // MARK: what happens

    /// Nine of ten in the queue that is cancelled.
    private func fill(_ connection: Connection, jobs: Int) async throws {
        _ = try await connection.query(
            "select millrace.register_kinds(array[$1], array[null]::text[])", [.text(Self.kind)]
        ) { _ in }
        try await connection.run(
            #"select millrace.limit_set('key', 'load.undo.*', '{"concurrency": 2}')"#)
        let chunk = 10_000
        for start in stride(from: 0, to: jobs, by: chunk) {
            _ = try await connection.query(
                """
                select count(millrace.enqueue($1, jsonb_build_object('n', i), queue => case when i % 10 = 0 then 'load.other' else 'load.undo' end,
                    priority => (i % 10)::int,
                    run_at => case when i % 7 = 0 then now() + interval '1 hour' when i % 11 = 0 then now() + interval '15 s' * (1 + i % 4) end,
                    unique_key => case when i % 13 = 0 then 'key ' || i end,
                    limit_key => case when i % 17 = 0 then 'load.undo.' || i % 3 end,
                    tenant => case when i % 19 = 0 then 'tenant ' || i % 5 end))
                  from generate_series($2::bigint + 1, $2::bigint + $3::bigint) i
                """,
                [.text(Self.kind), .int8(Int64(start)), .int8(Int64(min(chunk, jobs - start)))],
                deadline: .seconds(300)
            ) { _ in }
            invocation.console.note("enqueued \(min(start + chunk, jobs)) of \(jobs)")
        }
        try await connection.run(Self.retried)
        try await connection.run(Self.flows)
    }

    /// One of 23 is waited for by another job.
    private static let flows = """
        select count(millrace.enqueue('load.undo', queue => 'load.undo', options => jsonb_build_object('after', jsonb_build_object(
            'jobs', jsonb_build_array(j.id), 'any_dead', case when j.id % 2 = 0 then 'wait' else 'cancel' end))))
          from millrace.job j join millrace.queue q on q.id = j.queue where q.name = 'load.undo' and j.id % 23 = 0
        """

    /// One of 29 has been tried before, and waits for its next attempt.
    private static let retried = """
        with moved as (delete from millrace.ready r where r.job % 29 = 0 returning r.*),
        noted as (
            insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
            select m.job, 1, nextval('millrace.seq'), now(), now(), m.kind, m.queue, 1, 4, 1, 0, 'refused' from moved m)
        insert into millrace.timer (due, job, queue, kind, lane, attempt, crashes)
        select now() + interval '40 s', m.job, m.queue, m.kind, m.lane, 1, 0 from moved m
        """

    private func worker(_ options: ConnectionOptions, number: Int) -> JobWorker {
        var settings = JobWorker.Options(database: options, name: "undo-\(number)")
        settings.slots = 20
        settings.drainDeadline = .seconds(30)
        let handler = Handler(kind: Self.kind) { _, _ in
            try await Task.sleep(for: .milliseconds(Int.random(in: 20...120)))
            return .done
        }
        return JobWorker(options: settings, handlers: [handler], log: .silent)
    }

    /// Somebody retries some of the cancelled jobs, deletes some, and takes the keys of some.
    private static let meanwhile = """
        select count(millrace.retry(i.job)) from (
            select i.job from millrace.operation_item i where i.was in ('ready', 'timer') and i.job % 97 = 1 limit 200) i;
        select count(millrace.job_delete(i.job)) from (
            select i.job from millrace.operation_item i where i.was in ('ready', 'timer') and i.job % 97 = 2 limit 100) i;
        select count(millrace.enqueue('load.undo', queue => 'load.holder', unique_key => j.unique_key, run_at => now() + interval '1 hour'))
          from (select j.unique_key from millrace.job j join millrace.queue q on q.id = j.queue
                 where j.unique_key is not null and q.name = 'load.undo' and j.id % 5 = 1 limit 50) j
        """

    /// Seconds until it has ended; the workers take its steps.
    private func wait(for operation: Int64, on connection: Connection) async throws -> Double {
        let began = ContinuousClock.now
        while began.duration(to: .now) < .seconds(1800) {
            guard let row = try await Queue.operation(operation, on: connection) else { break }
            if !row.isOpen { return began.duration(to: .now) / .seconds(1) }
            try await Task.sleep(for: .milliseconds(100))
        }
        throw Failure("operation \(operation) has not ended")
    }

    // MARK: the outside count

    /// Where each job stands, with its row and its key, by plain SQL.
    private static func snapshot(_ table: String) -> String {
        """
        create table \(table) as
        select j.id, q.name as queue, p.was, p.lane, p.due, p.attempt, p.place, (to_jsonb(j)::text) as job,
               (select jsonb_build_array(u.job, u.next, u.due, u.ended, u.until)::text from millrace.unique_lock u
                 where u.hash = j.unique_hash order by u.round desc limit 1) as key
          from millrace.job j
          join millrace.queue q on q.id = j.queue
          left join (
            select d.job, 'timer' as was, d.lane, d.due, d.attempt::int, to_jsonb(d)::text as place from millrace.timer d
            union all select r.job, 'ready', r.lane, null, r.attempt, to_jsonb(r)::text from millrace.ready r
            union all select p.job, 'parked', p.lane, null, p.attempt, to_jsonb(p)::text from millrace.parked p
            union all select b.job, 'blocked', null, b.due, 0, (to_jsonb(b) - 'fresh')::text from millrace.blocked b) p on p.job = j.id;
        create index on \(table) (id);
        analyze \(table)
        """
    }

    private func judge(
        _ operation: Int64, on connection: Connection
    ) async throws(PostgresError) -> [String: Int] {
        let rows = try await connection.query(
            """
            select x.verdict, count(*) from (
                select case
                    when i.undo = 2 or i.outcome > 1 then
                        case when a.place = b.place and a.key is not distinct from b.key and not c.is_cancelled then 'listed wrongly' else 'listed' end
                    when c.is_by_flow then 'as before, and its flow has ended'
                    when c.is_cancelled then 'wrong: still cancelled'
                    when a.id is null then 'wrong: gone'
                    when a.job <> b.job then 'wrong: changed'
                    when a.place = b.place and a.key is not distinct from b.key then 'as before'
                    when r.attempt is not null then case when r.attempt = b.attempt + 1 then 'as before, and ran on' else 'wrong: lost attempts' end
                    when a.was in ('ready', 'parked') and b.was in ('ready', 'parked') and a.attempt = b.attempt
                        and (a.lane = b.lane or b.job::jsonb ->> 'limit_key' is not null and a.lane >> 2 = b.lane >> 2) then 'as before, held by its limit'
                    when a.was = 'ready' and b.was in ('ready', 'parked') and a.attempt = b.attempt and a.lane = b.lane & ~3
                        then 'as before, and was handed back by a worker that stopped'
                    when b.was = 'timer' and b.due <= now() and a.was in ('ready', 'parked') and a.attempt = b.attempt then 'as before, and came due'
                    when b.was = 'blocked' and e.has_ended then 'as before, and was released'
                    else 'wrong: elsewhere' end as verdict
                  from public.undo_before b
                  left join public.undo_after a on a.id = b.id
                  left join millrace.operation_item i on i.operation = $1 and i.job = b.id
                 cross join lateral (
                    select count(*) > 0 as is_cancelled, coalesce(bool_or(h.error like 'job %, which it waits for, %'), false) as is_by_flow
                      from millrace.history h where h.id = b.id and h.session = 0 and h.outcome = 2) c
                 cross join lateral (
                    select min(h.attempt) as attempt from millrace.history h
                     where h.id = b.id and h.session > 1) r
                 cross join lateral (select exists (
                    select from millrace.edge e where e.succ = b.id and e.outcome is not null) as has_ended) e
                 where b.queue = 'load.undo') x
             group by x.verdict
            """, [.int8(operation)], deadline: .seconds(600)
        ) { row throws(PostgresError) in (try row.string(0), Int(try row.int(1))) }
        return Dictionary(rows, uniquingKeysWith: +)
    }

    private func report(
        _ row: OperationRow, _ jobs: Int, cancel: Double, undo: Double, _ verdicts: [String: Int],
        on connection: Connection
    ) async throws -> ExitCode {
        func count(_ sql: SQL) async throws(PostgresError) -> Int {
            try await connection.int(sql, deadline: .seconds(60))
        }
        let touched = try await count(
            """
            select count(*) from public.undo_before b where b.queue = 'load.other'
               and exists (select from millrace.history h where h.id = b.id and h.outcome = 2)
            """)
        let audited = try await count(
            "select count(distinct a.action) from millrace.audit a where a.action in ('operation.start', 'operation.undo')"
        )
        let judged = verdicts.values.reduce(0, +)
        let wrong = verdicts.filter { $0.key.hasPrefix("wrong") }.values.reduce(0, +)
        let before = verdicts.filter { $0.key.hasPrefix("as before") }.values.reduce(0, +)
        for (verdict, jobs) in verdicts.sorted(by: { $0.value > $1.value }) {
            invocation.console.note("\(verdict): \(Humane.count(jobs))")
        }
        return invocation.report(
            "undo",
            [
                .atMost(
                    "\(Humane.count(row.done, "job")): seconds until they were cancelled", 60, measured: cancel,
                    unit: "s"),
                .atMost(
                    "\(Humane.count(row.undone, "job")): seconds until they were back", 60, measured: undo, unit: "s"),
                .atMost(
                    "of \(Humane.count(judged, "job")), neither as before nor listed as moved on", 0,
                    measured: Double(wrong), unit: ""),
                .atMost(
                    "listed as moved on, and yet as before", 0, measured: Double(verdicts["listed wrongly"] ?? 0),
                    unit: ""),
                .atLeast("as before, or gone on from there", Double(judged) / 2, measured: Double(before), unit: ""),
                .atMost("jobs of another queue that were cancelled", 0, measured: Double(touched), unit: ""),
                .atLeast("actions in the audit", 2, measured: Double(audited), unit: ""),
            ],
            figures: [
                ("jobs", .init(jobs)), ("cancelled", .init(row.done)), ("undone", .init(row.undone)),
                ("past", .init(row.past)), ("refused", .init(row.refused)), ("nothing", .init(row.nothing)),
                ("cancel_seconds", .double(cancel)), ("undo_seconds", .double(undo)), ("as_before", .init(before)),
                (
                    "verdicts",
                    .object(verdicts.sorted { $0.key < $1.key }.map { .init(key: $0.key, value: .int($0.value)) })
                ),
            ])
    }
}

extension Connection {
    /// A script of this scenario's own.
    fileprivate func run(_ script: String) async throws(PostgresError) {
        try await run(script: .shipped(Array(script.utf8)), deadline: .seconds(300))
    }
}
