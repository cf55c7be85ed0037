import Postgres
import TestSupport
import Testing

extension Connection {
    /// A worker's report of one run; returns the jobs to report again.
    @discardableResult
    func report(
        _ id: Int, session: Int = 1, number: Int = 9, fraction: Double? = nil, lines: [String] = [], skipped: Int = 0
    ) async throws -> String? {
        let said = lines.map { "{\"level\": 1, \"age\": 0, \"line\": \"\($0)\"}" }.joined(separator: ",")
        let progress = fraction.map { "\"age\": 0, \"fraction\": \($0), \"stage\": \"s\", \"note\": \"n\"," } ?? ""
        return try await value(
            """
            millrace.report('[{"session": \(session), "number": \(number), "job": \(id), "attempt": 1, \(progress)
                "skipped": \(skipped), "lines": [\(said)]}]')
            """)
    }

    func fraction(_ id: Int) async throws -> String? {
        try await value("select progress ->> 'fraction' from millrace.job(\(id))")
    }

    /// Ends a job that stands alone in lease 9, with a result; the leases that were live.
    func finish(_ id: Int, outcome: Int, result: String) async throws -> String? {
        try await value(
            """
            select millrace.finish(1, array[\(id)::bigint], array[9::bigint], array[\(outcome)::smallint], array[1], array[1],
                array[1::smallint], array[0::smallint], array[5], '{}', array[9::bigint], array[1], array['why'], array[0::float8], null,
                result_ids => array[\(id)::bigint], results => array['\(result)'])
            """)
    }
}

@Suite struct TraceTests {
    @Test func `progress is shown while a job runs and after it, by view and look-up`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            #expect(try await connection.fraction(id) == nil)
            try await connection.report(id, fraction: 0.25)
            try await connection.report(id, fraction: 0.5)
            let shown = "progress - 'at' from millrace.job(\(id))"
            #expect(
                try await connection.value("select \(shown)") == #"{"note": "n", "stage": "s", "fraction": 0.5}"#)
            #expect(
                try await connection.bool(
                    "select (select to_jsonb(v) from millrace.jobs v) = (select to_jsonb(j) from millrace.job(\(id)) j)"
                ))
            for outcome in [5, 1] {
                if outcome == 1 { try await connection.claim(number: 16) }
                let number = outcome == 1 ? 17 : 9
                _ = try await connection.finish(
                    [.init(id: id, outcome: outcome, number: number, wait: 0)], complete: [number: 1])
                #expect(try await connection.fraction(id) == "0.5")
                #expect(
                    try await connection.bool(
                        "select (select to_jsonb(v) from millrace.jobs v) = (select to_jsonb(j) from millrace.job(\(id)) j)"
                    ))
                _ = try await connection.value("select moved from millrace.promote(null, 5)")
            }
            #expect(try await connection.state(id) == "succeeded")
        }
    }

    @Test func `progress of a lost or ended run changes nothing, nor does that of one there never was`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            let other = try await connection.claimedJob()
            try await connection.report(id, fraction: 0.25)
            _ = try await connection.finish([.init(id: other, outcome: 4, error: "no", wait: 60)], partial: [9])
            try await connection.report(other, fraction: 0.5)  // its lease lives, its run has ended
            #expect(try await connection.fraction(other) == nil)
            _ = try await connection.rescue()
            try await connection.report(id, fraction: 0.5)
            #expect(try await connection.fraction(id) == "0.25")
            try await connection.openSession(2)
            try await connection.claim(2, number: 16)
            try await connection.report(id, session: 2, number: 17, fraction: 0.75)
            try await connection.report(id, fraction: 0.5)
            #expect(try await connection.fraction(id) == "0.75")
            try await connection.report(4242, session: 2, number: 17, fraction: 0.5, lines: ["a"])
            #expect(try await connection.int("select count(*) from millrace.progress") == 1)
        }
    }

    @Test func `a fraction beyond its bounds is brought within, and none stays none`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            try await connection.report(id, fraction: 7)
            #expect(try await connection.fraction(id) == "1")
            try await connection.run(
                "select millrace.report('[{\"session\": 1, \"number\": 9, \"job\": \(id), \"attempt\": 1, \"age\": 3, \"note\": \"\(String(repeating: "x", count: 1500))\"}]')"
            )
            #expect(
                try await connection.records(
                    "select progress -> 'fraction', length(progress ->> 'note'), (progress ->> 'at')::timestamptz < now() from millrace.job(\(id))"
                ) == ["(null,1000,t)"])
        }
    }

    @Test func `of a job's lines the newest stay, and their numbers tell what was cut`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            try await connection.report(id, lines: ["first", "second"])
            #expect(
                try await connection.records("select n, level, attempt, token, line from millrace.logs(\(id))")
                    == ["(1,info,1,1-9-\(id),first)", "(2,info,1,1-9-\(id),second)"])
            #expect(try await connection.column("select line from millrace.logs(\(id), 1)") == ["second"])
            try await connection.report(id, lines: (3...150).map { "line \($0)" })
            try await connection.report(id, lines: (161...260).map { "line \($0)" }, skipped: 10)
            let kept = try await connection.records(
                "select count(*), min(n), max(n), min(line) filter (where n = 260) from millrace.logs(\(id))")
            #expect(kept == ["(190,61,260,\"line 260\")"])
            try await connection.report(id, lines: (0..<20).map { _ in String(repeating: "x", count: 4000) })
            let large = try await connection.records("select count(*), min(n), max(n) from millrace.logs(\(id))")
            #expect(large == ["(16,265,280)"])
        }
    }

    @Test func `lines of a lost run are kept, with its token`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            _ = try await connection.rescue()
            try await connection.report(id, fraction: 0.5, lines: ["last words"])
            #expect(
                try await connection.records("select token, line from millrace.logs(\(id))") == [
                    "(1-9-\(id),\"last words\")"
                ])
            #expect(try await connection.fraction(id) == nil)
        }
    }

    @Test func `a report waits for nobody's transaction, and says what to report again`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let caller = try await database.connect()
            let id = try await connection.enqueue()
            let other = try await connection.claimedJob()
            try await connection.report(id, fraction: 0.25)
            try await caller.run("begin; update millrace.progress set note = 'held'")
            #expect(try await connection.report(id, fraction: 0.5) == "{\(id)}")
            #expect(try await connection.report(other, fraction: 0.5) == "{}")
            try await caller.run("rollback")
            #expect(try await connection.report(id, fraction: 0.5) == "{}")
            #expect(try await connection.fraction(id) == "0.5")
            for connection in [connection, caller] { await connection.close() }
        }
    }

    @Test func `a result is kept with success alone, and under a live lease alone`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            #expect(try await connection.finish(id, outcome: 1, result: #"{"total": 12}"#) == "{9}")
            #expect(try await connection.value("select result from millrace.job(\(id))") == #"{"total": 12}"#)
            #expect(try await connection.value("select result from millrace.jobs") == #"{"total": 12}"#)
            for outcome in [2, 3, 4, 5, 6] {
                try await connection.run("delete from millrace.ready; delete from millrace.timer")
                let failed = try await connection.enqueue()
                try await connection.claim()
                #expect(try await connection.finish(failed, outcome: outcome, result: "1") == "{9}")
            }
            try await connection.run("delete from millrace.ready; delete from millrace.timer")
            let lost = try await connection.enqueue()
            try await connection.claim()
            _ = try await connection.rescue()
            #expect(try await connection.finish(lost, outcome: 1, result: "1") == "{}")
            #expect(try await connection.column("select job from millrace.result") == ["\(id)"])
        }
    }

    @Test func `a handler's own transaction may give a result, within its bound`() async throws {
        try await withConnection { connection in
            let id = try await connection.claimedJob()
            let large = try await connection.refusal(
                of: "select millrace.complete('1-9-\(id)', to_jsonb(repeat('x', 1048577)))")
            #expect(large?.sqlState == "53400")
            #expect(try await !connection.bool("select millrace.complete('2-9-\(id)', '1')"))
            #expect(try await connection.bool("select millrace.complete('1-9-\(id)', '[1, 2]')"))
            #expect(try await !connection.bool("select millrace.complete('1-9-\(id)', '3')"))
            #expect(try await connection.value("select result from millrace.job(\(id))") == "[1, 2]")
            try await connection.report(id, fraction: 1)  // it ended well: what it says last is welcome
            #expect(try await connection.fraction(id) == "1")
        }
    }

    @Test func `a client sees progress and result of its own jobs, and steps and lines of none`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run("select millrace.grant_enqueue('\(roles.client)')")
            let client = try await database.connect(as: roles.client)
            let neighbour = try await database.connect(as: roles.neighbour)
            let worker = try await database.connect(as: roles.worker)
            let id = try await client.enqueue()
            try await owner.openSession()
            try await owner.claim()
            #expect(try await worker.value("millrace.step('1-9-\(id)', 'one', '1')") == "1")
            #expect(try await worker.report(id, fraction: 0.5, lines: ["said"]) == "{}")
            #expect(try await worker.column("select value from millrace.steps(\(id))") == ["1"])
            #expect(try await worker.column("select line from millrace.logs(\(id))") == ["said"])
            #expect(try await worker.bool("select millrace.complete('1-9-\(id)', '7')"))
            #expect(
                try await client.records("select progress -> 'fraction', result from millrace.job(\(id))")
                    == ["(0.5,7)"])
            #expect(try await client.column("select result from millrace.own_jobs()") == ["7"])
            #expect(try await neighbour.records("select result from millrace.job(\(id))").isEmpty)
            for call in [
                "steps(\(id))", "logs(\(id))", "step('1-9-\(id)', 'two')", "result_of(\(id))", "retry_fresh(\(id))",
            ] {
                #expect(try await client.refusal(of: "select millrace.\(call)")?.sqlState == "42501", "\(call)")
            }
            let admin = try await database.connect(as: roles.admin)
            #expect(try await admin.records("select progress -> 'fraction', result from millrace.jobs") == ["(0.5,7)"])
            #expect(try await admin.column("select line from millrace.logs(\(id))") == ["said"])
        }
    }

    /// Steps, progress, lines and result of a job, as if it had run.
    private func leave(_ id: Int, on connection: Connection) async throws {
        try await connection.run(
            """
            insert into millrace.step (job, name, value, session, number, attempt, at) values (\(id), 'a', '1', 1, 9, 1, now());
            insert into millrace.progress (job) values (\(id));
            insert into millrace.log_line (job, n, at, level, session, number, attempt, line) values (\(id), 1, now(), 1, 1, 9, 1, 'x');
            insert into millrace.result (job, value) values (\(id), '1');
            insert into millrace.output (job) values (\(id));
            insert into millrace.published (job, n, value, session, number, attempt, at) values (\(id), 1, '1', 1, 9, 1, now())
            """)
    }

    private let counts = """
        select (select count(*) from millrace.step) || '/' || (select count(*) from millrace.progress) || '/'
            || (select count(*) from millrace.log_line) || '/' || (select count(*) from millrace.result) || '/'
            || (select count(*) from millrace.output) || '/' || (select count(*) from millrace.published)
        """

    @Test func `everything of a job goes when it is deleted`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            let other = try await connection.enqueue()
            for job in [id, other] { try await leave(job, on: connection) }
            #expect(try await connection.bool("select millrace.job_delete(\(id))"))
            #expect(try await connection.value(counts) == "1/1/1/1/1/1")
            for call in ["steps", "logs"] {
                #expect(try await connection.refusal(of: "select millrace.\(call)(\(id))")?.sqlState == "P0002")
            }
        }
    }

    @Test func `maintenance walks on to what retention left behind, and touches nothing else`() async throws {
        try await withConnection { connection in
            var ids: [Int] = []
            for _ in 0..<9 {
                ids.append(try await connection.enqueue())
                try await leave(ids.last ?? 0, on: connection)
            }
            #expect(try await connection.int("select millrace.trace_sweep(2)") == 0)
            try await connection.run("delete from millrace.job where id in (\(ids[0]), \(ids[6]), \(ids[8]))")
            // Part by part: the sweep continues where it stopped, and starts from the beginning when it has seen the end.
            var gone = 0
            for _ in 0..<10 { gone += try await connection.int("select millrace.trace_sweep(2)") }
            #expect(gone == 18)
            #expect(try await connection.value(counts) == "6/6/6/6/6/6")
            try await connection.run("delete from millrace.job")
            _ = try await connection.records("select * from millrace.maintain()")
            #expect(try await connection.value(counts) == "0/0/0/0/0/0")
        }
    }

    @Test func `waiting for a job holds no table while it sleeps, and ends with the job`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let waiting = try await database.connect()
            let id = try await connection.enqueue()
            #expect(try await connection.value("select millrace.wait_for(\(id), '0')") == "ready")
            let pid = try await waiting.int("select pg_backend_pid()")
            async let ended = {
                while true {
                    let state = try await waiting.value("select millrace.wait_for(\(id))")
                    if state != "ready" { return state }
                }
            }()
            try await eventually("it sleeps, and holds nothing") {
                try await connection.bool(
                    """
                    select exists (select from pg_stat_activity where pid = \(pid) and wait_event = 'PgSleep')
                       and not exists (select from pg_locks where pid = \(pid) and locktype = 'relation')
                    """)
            }
            try await connection.run("select millrace.cancel(\(id))")
            #expect(try await ended == "cancelled")
            #expect(try await connection.value("select millrace.result(\(id))") == nil)
            for (call, state) in [
                ("wait_for(4242)", "P0002"), ("result(4242)", "P0002"), ("wait_for(\(id), '6 s')", "22023"),
                ("wait_for(\(id), '-1 s')", "22023"), ("wait_for(\(id), null)", "22023"),
            ] {
                #expect(try await connection.refusal(of: "select millrace.\(call)")?.sqlState == state, "\(call)")
            }
            // Workers would not see what this transaction has enqueued.
            try await connection.run("begin; select millrace.enqueue('test')")
            #expect(try await connection.refusal(of: "select millrace.wait_for(\(id), '1 s')")?.sqlState == "55000")
            try await connection.run("rollback; begin isolation level repeatable read")
            #expect(try await connection.refusal(of: "select millrace.wait_for(\(id), '1 s')")?.sqlState == "55000")
            try await connection.run("rollback")
            await connection.close()
            await waiting.close()
        }
    }
}
