import Postgres
import TestSupport
import Testing

extension Connection {
    /// Takes the steps of all open operations, seven jobs at a time.
    func stepOperations() async throws {
        while try await value("select operation from millrace.operation_step(most => 7)") != nil {}
    }

    func start(_ action: String, _ filter: String, _ args: String = "{}") async throws -> Int {
        try await int("select millrace.operation_start('\(action)', '\(filter)', '\(args)')")
    }

    func undo(_ operation: Int) async throws {
        #expect(try await bool("select millrace.operation_undo(\(operation))"))
        try await stepOperations()
    }

    /// Done, nothing, refused, undone, past.
    func counts(of operation: Int) async throws -> String? {
        try await value(
            "select concat_ws(' ', done, nothing, refused, undone, past) from millrace.operation(\(operation))")
    }

    /// Why these jobs could not go back.
    func past(_ operation: Int) async throws -> [String] {
        try await column(
            "select job || ': ' || undo_reason from millrace.operation_items(\(operation), 'past') order by job")
    }

    /// Everything that is known of jobs, table by table, read with plain SQL; what a restored row must not repeat is left out: the round
    /// of a key, and whether a blocked job is to be looked at again.
    func snapshot() async throws -> [String: String] {
        let tables = [
            "timer": "select * from millrace.timer", "ready": "select * from millrace.ready",
            "parked": "select * from millrace.parked",
            "blocked": "select job, due, starts, waits from millrace.blocked", "job": "select * from millrace.job",
            "key": "select hash, job, next, due, ended, until from millrace.unique_lock",
            "edge": "select * from millrace.edge", "ending": "select pred, outcome from millrace.ending",
            "history": "select * from millrace.history", "step": "select * from millrace.step",
            "result": "select * from millrace.result", "progress": "select * from millrace.progress",
            "line": "select * from millrace.log_line", "output": "select * from millrace.output",
            "published": "select * from millrace.published",
            "wait": "select job, step, what, name, key, since, due, place, attempt, crashes, jobs from millrace.wait",
            "approval": "select * from millrace.approval", "person": "select * from millrace.approval_person",
            "undo": "select * from millrace.undo", "fork": "select * from millrace.fork",
            "old way": "select * from millrace.old_way", "field": "select * from millrace.job_field",
        ]
        var all: [String: String] = [:]
        for (name, select) in tables {
            all[name] = try await records(select).sorted().joined(separator: "\n")
        }
        return all
    }
}

@Suite struct OperationTests {
    /// Eleven waiting jobs in queue q, each in another way, and three dead ones in queue d, which a blocked one waits for.
    static func fill(_ connection: Connection) async throws {
        try await connection.openSession()
        try await connection.run(
            """
            select millrace.register_kinds(array['a'], array[null]::text[]);
            select count(millrace.enqueue('a', queue => 'q')) from generate_series(1, 5) i;
            select count(millrace.enqueue('a', queue => 'q', run_at => now() + interval '1h', unique_key => 'k' || i)) from generate_series(1, 3) i;
            select millrace.enqueue('a', queue => 'q', options => '{"after": [1]}');
            select millrace.enqueue('a', queue => 'q', options => '{"after": {"jobs": [9], "any_dead": "wait"}}');
            select millrace.enqueue('a', queue => 'q', unique_key => 'z', options => '{"unique_for": 60}');
            insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
            select id, 0, nextval('millrace.seq'), now(), now(), kind, queue, 1, 4, 1, 0, 'bad' from millrace.job where id = 2;
            delete from millrace.ready where job in (2, 3, 4);
            insert into millrace.timer (due, job, queue, kind, lane, attempt)
            select now() + interval '5 min', id, queue, kind, lane, 1 from millrace.job where id = 2;
            insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes)
            select 77, lane, id, queue, kind, 0, 1 from millrace.job where id = 3;
            insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes)
            select nextval('millrace.seq'), id, queue, kind, lane - 1, 2, 1 from millrace.job where id = 4;
            create temporary table dead (id bigint);
            insert into pg_temp.dead select millrace.enqueue('a', queue => 'd', unique_key => case when i = 2 then 'dk' end) from generate_series(1, 3) i;
            delete from millrace.ready where job in (select id from pg_temp.dead);
            insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
            select id, 0, nextval('millrace.seq'), now(), now(), kind, queue, 1, 3, 5, 1, 'dead' from millrace.job where id in (select id from pg_temp.dead);
            select millrace.unique_end(array(select id from pg_temp.dead));
            insert into millrace.step select id, 's1', '{"x": 1.50}', 1, 9, 1, now() from pg_temp.dead;
            insert into millrace.progress (job, session, number, fraction, note, at, lines)
            select id, 1, 9, 0.3333333333333333, 'n', now(), 1 from pg_temp.dead;
            insert into millrace.log_line select id, 1, now(), 1::smallint, 1, 9, 1::smallint, 'hello' from pg_temp.dead;
            insert into millrace.step select id, 's2', 'null', 1, 9, 1, now() from pg_temp.dead;
            insert into millrace.output select id, '{"n": null}', 1, now(), 3, 2, 9 from pg_temp.dead;
            insert into millrace.published select id, n, case n when 2 then 'k' end, '{"v": null}', 1, 9, nullif(n, 2), 1, now() from pg_temp.dead, generate_series(2, 3) n;
            insert into millrace.result select min(id), '{"r": 1e300}' from pg_temp.dead;
            select millrace.enqueue('a', queue => 'd', options => jsonb_build_object('after',
                jsonb_build_object('jobs', jsonb_build_array((select min(id) from pg_temp.dead)), 'any_dead', 'wait')));
            select millrace.flows_check()
            """)
    }

    @Test(arguments: [
        ("cancel", #"{"queue": "q"}"#, "{}", 11),
        ("reschedule", #"{"queue": "q"}"#, #"{"run_at": "2090-01-01T00:00:00Z"}"#, 11),
        ("reschedule", #"{"queue": "q"}"#, #"{"run_at": "2020-01-01T00:00:00Z"}"#, 11),
        ("priority", #"{"queue": "q"}"#, #"{"priority": 0}"#, 11),
        ("retry", #"{"queue": "d"}"#, "{}", 3),
        ("retry_fresh", #"{"queue": "d"}"#, "{}", 3),
        ("retry", #"{"queue": "q", "state": "scheduled"}"#, "{}", 4),
        ("retry_fresh", #"{"queue": "q", "state": "retrying"}"#, "{}", 1),
        ("delete", #"{"queue": "d"}"#, "{}", 3),
        ("delete", #"{"queue": "q", "state": "ready"}"#, "{}", 5),
        ("delete", #"{"queue": "q", "state": "scheduled"}"#, "{}", 4),
        ("delete", #"{"queue": "q", "state": "blocked"}"#, "{}", 2),
        ("cancel", #"{"ids": [1, 9, 10]}"#, "{}", 3),
        ("cancel", #"{"ids": [1]}"#, "{}", 1),
    ])
    func `an undone operation leaves every job as it was`(
        action: String, filter: String, args: String, jobs: Int
    ) async throws {
        try await withConnection { connection in
            try await Self.fill(connection)
            let before = try await connection.snapshot()
            let operation = try await connection.start(action, filter, args)
            try await connection.stepOperations()
            // What others do in the meantime: those who wait are told.
            try await connection.run("select millrace.flows_advance(); select millrace.flows_check()")
            #expect(try await connection.counts(of: operation) == "\(jobs) 0 0 0 0")
            #expect(try await connection.snapshot() != before)
            try await connection.expectOnePlaceEach()
            try await connection.undo(operation)
            try await connection.run("select millrace.flows_advance(); select millrace.flows_check()")
            #expect(try await connection.counts(of: operation) == "\(jobs) 0 0 \(jobs) 0")
            #expect(try await connection.value("select state from millrace.operation(\(operation))") == "undone")
            let after = try await connection.snapshot()
            for (table, rows) in before { #expect(after[table] == rows, "\(table)") }
        }
    }

    @Test func `jobs that have moved on are left alone, and listed with the reason`() async throws {
        try await withConnection { connection in
            try await Self.fill(connection)
            let operation = try await connection.start("cancel", #"{"queue": "q"}"#)
            try await connection.stepOperations()
            try await connection.run("select millrace.retry(1); select millrace.job_delete(5)")
            let holder = try await connection.enqueue("'a', queue => 'other', unique_key => 'k2'")
            let places = try await connection.records("select * from millrace.ready")
            try await connection.undo(operation)
            #expect(
                try await connection.past(operation) == [
                    "1: it has moved on since: ready", "5: it has been deleted, or its retention has passed",
                    "7: job \(holder) holds its unique key",
                ])
            #expect(try await connection.state(7) == "cancelled")
            #expect(try await connection.counts(of: operation) == "11 0 0 8 3")
            for place in places {
                #expect(try await connection.records("select * from millrace.ready").contains(place))
            }
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `a job that comes back does not start when the one that it waited for was cancelled and deleted`()
        async throws
    {
        try await withConnection { connection in
            let first = try await connection.enqueue("'a', run_at => now() + interval '1 hour'")
            let second = try await connection.enqueue(
                #"'a', options => '{"after": {"jobs": [\#(first)], "any_dead": "cancel"}}'"#)
            let tell = "select millrace.flows_check(); select millrace.flows_advance(); select millrace.flows_expire()"
            try await connection.run(tell)
            let operation = try await connection.start("cancel", #"{"kind": "a"}"#)
            try await connection.stepOperations()
            try await connection.run(tell)
            #expect(try await connection.bool("select millrace.job_delete(\(first))"))
            try await connection.run(tell)
            try await connection.undo(operation)
            try await connection.run(tell)
            #expect(try await connection.state(second) == "cancelled")
            #expect(try await connection.int("select count(*) from millrace.ready") == 0)
        }
    }

    @Test func `a job that runs is told to stop, and is not undone`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let (first, second) = (try await connection.enqueue(), try await connection.enqueue())
            #expect(try await connection.claim(wanted: 1) == [first])
            let operation = try await connection.start("cancel", #"{"kind": "test"}"#)
            try await connection.stepOperations()
            #expect(try await connection.column("select job from millrace.cancel") == ["\(first)"])
            #expect(try await connection.state(second) == "cancelled")
            try await connection.undo(operation)
            #expect(try await connection.past(operation) == ["\(first): it was running, and was told to stop"])
            #expect(try await connection.state(second) == "ready")
        }
    }

    @Test func `a deleted job that a worker runs is refused`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let id = try await connection.enqueue()
            try await connection.claim()
            let operation = try await connection.start("delete", "{\"ids\": [\(id)]}")
            try await connection.stepOperations()
            #expect(try await connection.counts(of: operation) == "0 0 1 0 0")
            #expect(
                try await connection.column("select reason from millrace.operation_items(\(operation), 'refused')")
                    == ["it is running: cancel it first"])
            #expect(try await connection.state(id) == "running")
        }
    }

    @Test func `a job that waits for its key's holder waits for it again`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let first = try await connection.enqueue("'test', unique_key => 'k'")
            try await connection.claim()
            let next = try await connection.enqueue("'test', unique_key => 'k', on_conflict => 'replace'")
            let before = try await connection.snapshot()
            for action in ["cancel", "delete"] {
                let operation = try await connection.start(action, #"{"state": "blocked"}"#)
                try await connection.stepOperations()
                #expect(try await connection.counts(of: operation) == "1 0 0 0 0", "\(action)")
                try await connection.undo(operation)
                #expect(try await connection.snapshot() == before, "\(action)")
            }
            let operation = try await connection.start("cancel", #"{"state": "blocked"}"#)
            try await connection.stepOperations()
            try await connection.finish([.init(id: first, outcome: 1)], complete: [9: 1])
            try await connection.undo(operation)
            #expect(
                try await connection.past(operation) == [
                    "\(next): job \(first), whose end it waited for, has ended or has another successor"
                ])
        }
    }

    @Test func `a job that was moved or has run since keeps its new time and priority`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let (moved, run) = (try await connection.enqueue(), try await connection.enqueue())
            let later = try await connection.start("reschedule", #"{"kind": "test"}"#, #"{"run_at": "2090-01-01"}"#)
            try await connection.stepOperations()
            try await connection.run("select millrace.reschedule(\(moved), '2091-01-01')")
            try await connection.undo(later)
            #expect(try await connection.past(later) == ["\(moved): it has been moved to another time since"])
            #expect(
                try await connection.value("select due::date from millrace.timer where job = \(moved)") == "2091-01-01")
            #expect(try await connection.state(run) == "ready")

            let first = try await connection.start("priority", #"{"state": "ready"}"#, #"{"priority": 1}"#)
            try await connection.stepOperations()
            #expect(try await connection.claim() == [run])
            try await connection.undo(first)
            #expect(try await connection.past(first) == ["\(run): it is running now"])
            #expect(try await connection.value("select lane from millrace.job where id = \(run)") == "5")
        }
    }

    @Test func `it reaches only jobs that were there when it was started, and ends`() async throws {
        try await withConnection { connection in
            for _ in 1...10 { try await connection.enqueue() }
            let operation = try await connection.start("cancel", #"{"kind": "test"}"#)
            let late = try await connection.enqueue()
            try await connection.stepOperations()
            #expect(try await connection.counts(of: operation) == "10 0 0 0 0")
            #expect(try await connection.state(late) == "ready")
            #expect(try await connection.value("select state from millrace.operation(\(operation))") == "finished")
        }
    }
}
