import Postgres
import TestSupport
import Testing

/// The troubles that `status` reports, and the counts for metrics.
@Suite struct TroubleTests {
    @Test func `a kind fails from ten runs on of which half failed, and not on a few`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            try await connection.tally(succeeded: 0, failed: 9)
            #expect(try await connection.troubles() == [])
            try await connection.tally(succeeded: 1, failed: 0)
            #expect(try await connection.troubles() == ["failing default test 9/10 300"])
            try await connection.tally(succeeded: 9, failed: 0)
            #expect(try await connection.troubles() == [])  // 9 of 19
            try await connection.tally(succeeded: 0, failed: 1)
            #expect(try await connection.troubles() == ["failing default test 10/20 300"])
        }
    }

    @Test func `the last five minutes decide where ten ended in them, and else the last hour`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            try await connection.tally(succeeded: 0, failed: 20)
            try await connection.run("select millrace.test_clock_advance('10 min')")
            #expect(try await connection.troubles() == ["failing default test 20/20 3600"])
            try await connection.tally(succeeded: 9, failed: 0)
            #expect(try await connection.troubles() == ["failing default test 20/29 3600"])
            try await connection.tally(succeeded: 1, failed: 0)
            #expect(try await connection.troubles() == [])  // it has recovered
            try await connection.run("select millrace.test_clock_advance('1 hour')")
            #expect(try await connection.troubles() == [])
        }
    }

    @Test func `a queue of many kinds of which each fails seldom is named as a whole`() async throws {
        try await withConnection { connection in
            try await connection.run(
                "select millrace.register_kinds(array(select 'k.' || n from generate_series(1, 5) n), array_fill(null::text, array[5]))"
            )
            try await connection.openSession()
            for kind in 1...5 { try await connection.tally(kind: "k.\(kind)", succeeded: 0, failed: 3) }
            #expect(try await connection.troubles() == ["failing default - 15/15 300"])
        }
    }

    @Test func `a newest build that fails many kinds is named beside a kind that always fails`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run(
                "select millrace.register_kinds(array(select 'k.' || n from generate_series(1, 5) n), array_fill(null::text, array[5]))"
            )
            try await connection.open(1, version: "0.1.0+old")
            try await connection.run("select millrace.test_clock_advance('1 min')")
            try await connection.open(2, version: "0.1.0+new")
            for kind in 1...4 {
                try await connection.tally(session: 1, kind: "k.\(kind)", succeeded: 20, failed: 0)
                try await connection.tally(session: 2, kind: "k.\(kind)", succeeded: 0, failed: 3)
            }
            try await connection.tally(session: 1, kind: "k.5", succeeded: 0, failed: 400)
            try await connection.tally(session: 2, kind: "k.5", succeeded: 0, failed: 40)
            #expect(
                try await connection.troubles()
                    == ["build default - 12/12 3600", "failing default k.5 440/440 300"])
        }
    }

    @Test func `jobs at which workers ended, and the longest runs of a stuck worker, are named up to a bound`()
        async throws
    {
        try await withConnection { connection in
            try await connection.openSession()
            let runs = try await [connection.enqueue(), connection.enqueue()]
            try await connection.claim()
            let poison = try await connection.enqueue()
            _ = try await connection.enqueue()
            let rows = "select concat_ws(' ', trouble, job, kind, queue, worker, crashes) from millrace.run_troubles()"
            #expect(try await connection.column(rows) == [])
            try await connection.run(
                "update millrace.ready set crashes = 2 where job = \(poison); select millrace.beat(1, 'working', 2, 0, 1)"
            )
            #expect(
                try await connection.column(rows)
                    == ["crashes \(poison) test default 2", "stuck \(runs[0]) test default worker-1"])
        }
    }

    @Test func `a newest build that fails where the earlier one did not is named, though most runs are well`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.run("select millrace.register_kinds('{test}', '{null}')")
            try await connection.open(1, version: "0.1.0+old")
            try await connection.run("select millrace.test_clock_advance('1 min')")
            try await connection.open(2, version: "0.1.0+new")
            try await connection.tally(session: 1, succeeded: 200, failed: 2)
            try await connection.tally(session: 2, succeeded: 3, failed: 6)
            #expect(try await connection.troubles() == [])
            try await connection.tally(session: 2, succeeded: 0, failed: 1)
            #expect(try await connection.troubles() == ["build default test 7/10 3600"])
            #expect(try await connection.value("select build from millrace.troubles()") == "0.1.0+new")
            // If the old build fails as well, the build is not the reason.
            try await connection.tally(session: 1, succeeded: 0, failed: 200)
            #expect(try await connection.troubles().map { $0.hasPrefix("failing") } == [true])
        }
    }

    @Test func `retries pile up from ten jobs on that wait, when fewer succeed`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            try await connection.fail(9, error: "attempt 1 of 20: upstream 502 at 10.0.0.7\nmore")
            // With their pauses they hide from every count of runs.
            try await connection.run("select millrace.test_clock_advance('2 hours')")
            #expect(try await connection.troubles() == [])
            try await connection.fail(1, error: "another")
            #expect(try await connection.troubles() == ["retrying default test 0/0 3600"])
            #expect(
                try await connection.records("select retrying, error from millrace.troubles()")
                    == ["(10,\"upstream # at #.#.#.#\")"])
            #expect(try await connection.records("select * from millrace.retrying()") == ["(default,test,10)"])
            try await connection.tally(succeeded: 10, failed: 0)
            #expect(try await connection.troubles() == [])
        }
    }

    @Test func `the dead say what they died of where nothing waits for another attempt`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            for number in 1...3 {
                let id = try await connection.enqueue()
                try await connection.claim(number: 8 * number)
                try await connection.finish(
                    [
                        .init(
                            id: id, outcome: 3, number: 8 * number + 1, error: number == 1 ? "rare" : "often \(number)")
                    ],
                    complete: [8 * number + 1: 1])
            }
            try await connection.tally(succeeded: 0, failed: 10)
            #expect(try await connection.value("select error from millrace.troubles()") == "often #")
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `a room where something waits and that no worker serves is told`()
        async throws
    {
        try await withConnection { connection in
            #expect(try await connection.records("select * from millrace.rooms()") == [])
            try await connection.run("select millrace.mail_send(array['a@b.example'], 's', 't')")
            try await connection.run("select millrace.notice_send('anna', 'k')")
            try await connection.run("select millrace.session_open(1, 'w', 'h', 1, '0', null, '{}', 1, false, '{}')")
            func rooms() async throws -> [String] {
                try await connection.records(
                    "select room, waiting, servers, unsure from millrace.rooms() order by room")
            }
            #expect(try await rooms() == ["(mail,1,0,0)", "(notices,1,0,0)"])
            // A worker of an earlier version does not say, and may serve them.
            try await connection.run("select millrace.session_open(2, 'w', 'h', 1, '0', null, '{}', 1, false)")
            #expect(try await rooms() == ["(mail,1,0,0)", "(notices,1,0,1)"])
            try await connection.run(
                """
                select millrace.session_open(3, 'w', 'h', 1, '0', null, array(select id from millrace.kind), 1, false,
                                             '{"mail": "files", "notices": "on"}')
                """)
            #expect(try await rooms() == ["(mail,,1,1)", "(notices,1,1,1)"])
            #expect(try await connection.value("select how from millrace.rooms() where room = 'mail'") == "{files}")
        }
    }

    @Test func `jobs are counted by queue, kind and state, and not more often than asked`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            let first = try await connection.enqueue()
            try await connection.claim(wanted: 1)
            try await connection.fail(1, number: 16)
            for _ in 0..<3 { try await connection.enqueue("'other', queue => 'mail', tenant => 'acme'") }
            try await connection.enqueue("'test', run_at => millrace.now() + interval '1 day'")
            try await connection.run("select millrace.test_clock_advance('20 s')")
            func measures() async throws -> [String] {
                try await connection.records(
                    "select queue, kind, state, jobs, round(oldest_s::numeric) from millrace.measures('10 s') order by 1, 2, 3"
                )
            }
            #expect(first > 0)
            let counted = [
                "(default,test,retrying,1,)", "(default,test,running,1,)", "(default,test,scheduled,1,)",
                "(mail,other,ready,3,20)",
            ]
            #expect(try await measures() == counted)
            try await connection.enqueue("'test', queue => 'late'")
            try await connection.run("select millrace.test_clock_advance('9 s')")
            #expect(try await measures().map { $0.hasPrefix("(late") }.contains(true) == false)
            #expect(try await connection.value("select max(round(age_s)) from millrace.measures()") == "9")
            try await connection.run("select millrace.test_clock_advance('2 s')")
            #expect(try await measures().contains("(late,test,ready,1,11)"))
        }
    }

    @Test func `while one counts, the others are given what was counted before`() async throws {
        try await withDatabase { database in
            let one = try await database.connect()
            let other = try await database.connect()
            try await one.enqueue()
            #expect(try await one.int("select count(*) from millrace.measures('0 s')") == 1)
            try await one.run("begin; update millrace.measured set value = value")
            // It neither waits nor fails.
            #expect(try await other.int("select count(*) from millrace.measures('0 s')") == 1)
            try await one.run("rollback")
            await one.close()
            await other.close()
        }
    }

    @Test func `names beyond the first hundred queues and two hundred kinds are counted as other`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.register_queues(array(select 'q' || lpad(n::text, 3, '0') from generate_series(1, 120) n));
                select millrace.register_kinds(array(select 'k' || lpad(n::text, 3, '0') from generate_series(1, 220) n), array_fill(null::text, array[220]));
                """)
            try await connection.enqueue("'k001', queue => 'q001'")
            try await connection.enqueue("'k001', queue => 'q119'")
            try await connection.enqueue("'k001', queue => 'q120'")
            try await connection.enqueue("'k219', queue => 'q001'")
            #expect(
                try await connection.records("select queue, kind, jobs from millrace.measures() order by 1, 2")
                    == ["(other,k001,2)", "(q001,k001,1)", "(q001,other,1)"])
        }
    }
}

extension Connection {
    fileprivate func troubles() async throws -> [String] {
        try await column(
            "select format('%s %s %s %s/%s %s', trouble, queue, coalesce(kind, '-'), failed, runs, span_s) from millrace.troubles()"
        )
    }

    fileprivate func open(_ session: Int, version: String) async throws {
        try await run(
            "select millrace.session_open(\(session), 'w', 'h', 1, '\(version)', null, array(select id from millrace.kind), 10, false)"
        )
    }

    /// A worker's tally with a beat.
    fileprivate func tally(session: Int = 1, kind: String = "test", succeeded: Int, failed: Int) async throws {
        try await run(
            """
            select millrace.register_queues('{default}');
            select millrace.beat(\(session), 'working', 0, 0, 0, array[q.id], array[k.id], '{\(succeeded)}', '{\(failed)}', '{0}', '{0}', '{0}', '{0}')
              from millrace.queue q, millrace.kind k where q.name = 'default' and k.name = '\(kind)'
            """)
    }

    /// `count` jobs run once, fail, and wait for a day.
    fileprivate func fail(_ count: Int, number: Int = 8, error: String = "no") async throws {
        for index in 0..<count {
            let id = try await enqueue()
            let number = number + 8 * index
            try await claim(number: number)
            try await finish(
                [.init(id: id, outcome: 4, number: number + 1, error: error, wait: 86_400)], complete: [number + 1: 1])
        }
    }
}
