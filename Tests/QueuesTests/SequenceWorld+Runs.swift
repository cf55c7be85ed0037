import Postgres
import TestSupport

/// What workers and handlers do.
extension SequenceWorld {
    struct Run {
        var session: Int
        var number: Int
        var job: Int
        /// The job whose step this run undoes.
        var undoes: Int?

        var token: String { "\(String(session, radix: 16))-\(number)-\(job)" }
    }

    static let unfinished = """
        select l.session, l.number, u as job from millrace.lease l cross join lateral unnest(l.ids) u
         where not exists (select from millrace.history h where h.id = u and h.session = l.session and h.number = l.number)
        """

    /// One of the runs that have not ended.
    mutating func running(_ condition: String = "true") async throws -> Run? {
        let rows = try await worker.column(
            """
            select concat_ws(' ', r.session, r.number, r.job, j.options #>> '{undo,job}') from (\(Self.unfinished)) r join millrace.job j on j.id = r.job
             where \(condition) order by 1
            """)
        guard !rows.isEmpty else { return nil }
        let fields = rows[random.below(rows.count)].split(separator: " ").compactMap { Int($0) }
        return Run(session: fields[0], number: fields[1], job: fields[2], undoes: fields.count > 3 ? fields[3] : nil)
    }

    /// One that does work of its own.
    private mutating func working() async throws -> Run? {
        guard let run = try await running(), run.undoes == nil else { return nil }
        return run
    }

    @discardableResult
    mutating func claim(wanted: Int? = nil) async throws -> [String] {
        number += 8
        let wanted = wanted ?? 1 + random.below(3)
        if random.chance(0.2) { return try await claimPlainly() }
        let taken = try await worker.column(
            """
            with lines as (select q.id, l from millrace.queue q, generate_series(0, 39) l order by l, q.id)
            select c.id || case when c.expired then ' expired' else '' end from millrace.claim_limited(\(session), \(number), array(select id from millrace.kind),
                array(select id from lines), array(select l from lines), array(select 0::bigint from lines),
                array(select 9223372036854775807 from lines), array(select \(wanted) from lines), \(wanted), '{}', '{}') c
             where c.number is not null
            """)
        story.append("worker: claim \(number): \(taken.joined(separator: ", "))")
        for id in taken where id.hasSuffix("expired") {
            // As a worker does.
            let job = Int(id.split(separator: " ")[0]) ?? 0
            if try await worker.bool(
                "select exists (select from millrace.step where job = \(job)) or exists (select from millrace.history where id = \(job) and outcome in (4, 5, 8))"
            ) {
                wrong.append("job \(job) has begun, and has expired")
            }
            let lease = try await worker.int("select r.number from (\(Self.unfinished)) r where r.job = \(job)")
            try await end(Run(session: session, number: lease, job: job), outcome: 2)
        }
        return taken
    }

    /// In the other two ways.
    private mutating func claimPlainly() async throws -> [String] {
        let taken =
            try await random.chance(0.5)
            ? worker.claim(session, number: number, wanted: 2).map(String.init)
            : worker.column(
                """
                select c.id from (select r.queue, r.lane from millrace.ready r order by r.seq limit 1) r
                 cross join lateral millrace.claim_one(\(session), \(number + 1), array(select id from millrace.kind), r.queue, r.lane, 0, false) c where c.id is not null
                """)
        story.append("worker: claim \(number) plainly: \(taken.joined(separator: ", "))")
        return taken
    }

    mutating func endSome() async throws {
        guard let run = try await running() else { return }
        if run.undoes != nil {
            try await endUndo(run, outcome: random.pick([(1, 6), (3, 1), (4, 3), (6, 1)]))
            return random.chance(0.5) ? try await retryUndone(by: random.below(callers.count)) : ()
        }
        try await end(run, outcome: random.pick([(1, 4), (3, 4), (4, 3), (5, 1), (6, 1), (2, 1)]))
    }

    /// A run that undoes. Sometimes its worker has died before the end is on record.
    mutating func endUndo(_ run: Run, outcome: Int) async throws {
        if outcome == 1 {
            try await giveBack(run)
            if random.chance(0.25) { return try await end(run, outcome: 4) }
        }
        try await end(run, outcome: outcome)
    }

    /// It gives back what is on record, and says so.
    mutating func giveBack(_ run: Run) async throws {
        try await tell(
            """
            insert into public.ledger select (j.options #>> '{undo,job}')::bigint, 'refunded'
              from millrace.job j cross join lateral millrace.steps_to_undo('\(run.token)') s where j.id = \(run.job) and s.name = j.options #>> '{undo,step}';
            select millrace.step_undone('\(run.token)')
            """)
    }

    mutating func end(_ run: Run, outcome: Int) async throws {
        try await tell(
            """
            select millrace.finish(l.session, array[j.id], array[l.number], array[\(outcome)::smallint], array[j.kind], array[j.queue],
                array[(coalesce(l.attempts[array_position(l.ids, j.id)], 0) + 1)::smallint], array[0::smallint], array[5], case when r.n > 1 then array[l.number] else '{}' end,
                case when r.n > 1 then '{}' else array[l.number] end, case when r.n > 1 then '{}' else array[1] end,
                array[case when \(outcome) in (3, 4) then 'because' end], array[\(outcome == 4 ? 5 : 0)::float8],
                case when j.unique_hash is not null then array[j.id] end, s.numbers, s.gates, s.counts)
              from millrace.lease l
              join millrace.job j on j.id = \(run.job)
             cross join lateral (select count(*) as n from (\(Self.unfinished)) u where u.session = l.session and u.number = l.number) r
             cross join lateral (
                select array_agg(\(run.number)::bigint) as numbers, array_agg(g.gate) as gates, array_agg(1) as counts
                  from (select g.gate from unnest(coalesce(l.slot_jobs, l.ids), l.slot_gates) g(job, gate) where g.gate is not null and g.job = j.id
                        union all select unnest(l.slot_all)) g) s
             where l.session = \(run.session) and l.number = \(run.number)
            """, "end \(run.token) with \(outcome)")
    }

    /// A worker whose last job has recorded its own end gives up the empty lease.
    private mutating func closeLeases() async throws {
        try await tell(
            """
            select millrace.leases_return(l.session, array[l.number]) from millrace.lease l
             where not exists (select from (\(Self.unfinished)) u where u.session = l.session and u.number = l.number)
            """, "close the leases that are empty")
    }

    mutating func complete(by caller: Int) async throws {
        guard let run = try await working() else { return }
        try await say(caller, "select millrace.complete('\(run.token)')", begins: true)
        if !callers[caller].isOpen { try await closeLeases() }
    }

    /// What a handler does beside its steps.
    mutating func handle(by caller: Int) async throws {
        guard let run = try await working() else { return }
        let token = run.token
        let call = random.pick([
            ("select millrace.step('\(token)', 'plain', '1')", 2), ("select millrace.changed('\(token)', 'way')", 1),
            ("select millrace.publish('\(token)', '1')", 1), ("select millrace.state_put('\(token)', '1')", 1),
            (
                "select millrace.report('[{\"session\": \(run.session), \"number\": \(run.number), \"job\": \(run.job), \"attempt\": 1, \"age\": 0, \"fraction\": 0.5}]')",
                1
            ),
        ])
        try await say(caller, call, begins: true)
    }

    /// A step with an undo, and the charge itself, in one transaction. A value that was on record charges nothing.
    mutating func charge(by caller: Int) async throws {
        guard let run = try await working() else { return }
        try await charge(run, by: caller)
    }

    mutating func charge(_ run: Run, by caller: Int) async throws {
        count += 1
        try await say(
            caller,
            "insert into public.ledger select \(run.job), 'charged' where millrace.step_undoable('\(run.token)', 'charge', '\(count)') = '\(count)'",
            begins: true)
    }

    mutating func wait(by caller: Int) async throws {
        guard let run = try await working() else { return }
        let key = "k\(random.below(3))"
        let (what, options) = random.pick([
            (("time", #"{"seconds": 10}"#), 2), (("signal", "{\"name\": \"s\(random.below(2))\"}"), 4),
            (("signal", "{\"name\": \"own\", \"key\": \"millrace.job.\(run.job)\"}"), 1),
            (("approval", #"{"request": 1}"#), 2), (("jobs", #"{"jobs": [{"kind": "test"}]}"#), 3),
            (
                (
                    "jobs",
                    "{\"jobs\": [{\"kind\": \"test\", \"unique_key\": \"\(key)\"}, {\"kind\": \"test\", \"unique_key\": \"\(key)\", \"on_conflict\": \"replace\"}]}"
                ), 2
            ),
        ])
        // A handler comes to its waits in one order: what it waits for is said by the step's name.
        try await say(caller, "select millrace.wait('\(run.token)', '\(what)', '\(what)', '\(options)')", begins: true)
        if !callers[caller].isOpen { try await closeLeases() }
    }

    /// Few jobs happen to wait when somebody acts on those that do.
    mutating func waitForSignal(by caller: Int) async throws {
        var run = try await working()
        if run == nil {
            try await claim(wanted: 20)
            run = try await working()
        }
        guard let run else { return }
        try await say(
            caller, "select millrace.wait('\(run.token)', 'signal', 'signal', '{\"name\": \"s\(random.below(2))\"}')")
        try await closeLeases()
    }

    mutating func spawn(by caller: Int) async throws {
        guard let run = try await working() else { return }
        try await say(caller, "select millrace.spawn('\(run.token)', 'test', array['{}', '{}'])", begins: true)
    }

    /// What a worker does once a second.
    mutating func house() async throws {
        for call in [
            "millrace.heed_cancels()", "millrace.flows_check()", "millrace.signals_tell()", "millrace.gates_open()",
            "millrace.slots_sweep()", "millrace.promote(null, 5000)", "millrace.unique_expire()",
        ] {
            do {
                try await tell("select \(call)")
            } catch let error as PostgresError where Self.usual.contains(error.sqlState ?? "") {
                story.append("it was refused: \(error)")
            }
        }
        while try await worker.bool("select more from millrace.flows_advance()") {}
        if random.chance(0.03) { try await tell("select ran from millrace.maintain()") }
        try await closeLeases()
    }

    /// Lets everything run to its end; returns what cannot.
    mutating func settle() async throws -> [String] {
        for caller in callers.indices where callers[caller].isOpen {
            do {
                try await end(caller, random.chance(0.8) ? "commit" : "rollback")
            } catch let error as PostgresError where ["40001", "55P03"].contains(error.sqlState) {
                // A commit that waits too long for a lock, or cannot be put in an order, is a rollback.
            }
        }
        try await tell("set lock_timeout = 0")
        let sofar = story
        defer { story = sofar + ["all comes to its end"] }
        try await tell("select millrace.operation_resume(id) from millrace.operation where state = 'paused'")
        // What has begun does not expire any more.
        try await tell("select millrace.test_clock_advance('20 s')")
        for _ in 0..<200 {
            try await tell(Self.waived)
            while try await worker.value("select operation from millrace.operation_step()") != nil {}
            try await house()
            let stuck = try await deaf()
            if !stuck.isEmpty { return stuck }
            try await tell("select millrace.test_clock_advance('3 s')")
            while let run = try await running() {
                if run.undoes != nil { try await endUndo(run, outcome: 1) } else { try await end(run, outcome: 1) }
            }
            let taken = try await claim(wanted: 50)
            guard taken.isEmpty else { continue }
            // Nobody waits in vain.
            try await tell(
                """
                select millrace.signal(w.name, w.key, keep => '1 hour') from millrace.wait w join millrace.timer d on d.job = w.job and d.due = w.place where w.what = 2 and w.name <> 'own';
                select millrace.signal_job(w.job, 'own') from millrace.wait w join millrace.timer d on d.job = w.job and d.due = w.place where w.name = 'own';
                select count(millrace.approval_answer(id, true)) from millrace.approval where answered_at is null;
                select millrace.retry(d.job) from millrace.timer d where d.due > millrace.now() + interval '1 minute' and not exists (select from millrace.wait w where w.job = d.job and w.what <> 1 and w.place = d.due)
                """)
            let open = try await worker.bool(
                "select exists (select from millrace.ready) or exists (select from millrace.timer) or exists (select from millrace.parked) or exists (select from millrace.ending) or exists (select from millrace.blocked where fresh)"
            )
            if !open { break }
        }
        try await house()
        return try await worker.endless()
    }
}
