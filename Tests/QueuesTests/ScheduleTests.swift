import Postgres
import TestSupport
import Testing

extension Connection {
    /// Makes a schedule whose next time is the beginning of 2020; its id and revision.
    fileprivate func planned(_ more: String = "", name: String = "s") async throws -> (id: Int, revision: Int) {
        _ = try await value("select millrace.schedule_set('\(name)', '0 * * * *', 'test' \(more))")
        try await run("update millrace.schedule set next_at = '2020-01-01T00:00Z' where name = '\(name)'")
        return (
            try await int("select id from millrace.schedule where name = '\(name)'"),
            try await int("select revision from millrace.schedule where name = '\(name)'")
        )
    }

    /// Fires at the given hours of 2020-01-01; how many jobs, or nil when it no longer held.
    fileprivate func advance(
        _ schedule: (id: Int, revision: Int), hours: [Int] = [0], expected: Int? = 0, next: Int = 23
    ) async throws -> Int? {
        func time(_ hour: Int) -> String { "'2020-01-01T\(hour < 10 ? "0" : "")\(hour):00Z'::timestamptz" }
        return try await value(
            """
            select millrace.schedule_advance(\(schedule.id), \(schedule.revision), \(expected.map(time) ?? "null"),
                array[\(hours.map(time).joined(separator: ","))]::timestamptz[], null, null, 0, \(time(next)))
            """
        ).flatMap { Int($0) }
    }

    fileprivate var jobs: Int {
        get async throws { try await int("select count(*) from millrace.job") }
    }
}

@Suite struct ScheduleTests {
    @Test func `setting a schedule makes it, changes it, or leaves it`() async throws {
        try await withConnection { connection in
            func set(_ more: String = "") async throws -> String? {
                try await connection.value(
                    "select millrace.schedule_set('nightly', '0 2 * * *', 'test', '{\"a\": 1}' \(more))")
            }
            func revision() async throws -> Int { try await connection.int("select revision from millrace.schedule") }
            #expect(try await set() == "created")
            #expect(try await set() == "unchanged")
            #expect(try await revision() == 1)
            try await connection.run("update millrace.schedule set next_at = '2020-01-01T02:00Z'")
            // The job changes, its times do not.
            #expect(try await set(", overlap => 'skip', priority => 2") == "changed")
            #expect(try await connection.bool("select next_at is not null and revision = 2 from millrace.schedule"))
            // Its times change, so the planned time is void.
            #expect(try await set(", zone => 'Europe/Berlin'") == "changed")
            #expect(try await connection.bool("select next_at is null and overlap = 'allow' from millrace.schedule"))
            #expect(try await set(", zone => 'Europe/Berlin', paused => true") == "changed")
            #expect(try await set(", zone => 'Europe/Berlin'") == "unchanged")  // a pause stays
            #expect(try await connection.bool("select paused_at is not null from millrace.schedules"))
        }
    }

    @Test(arguments: [
        ("'', '* * * * *', 'k'", "name"), ("'a b', '* * * * *', 'k'", "name"), ("null, '* * * * *', 'k'", "name"),
        ("'a', '', 'k'", "expression"), ("'a', null, 'k'", "expression"), ("'a', '@daily', 'k k'", "kind"),
        ("'a', '@daily', 'k', zone => '../etc'", "zone"), ("'a', '@daily', 'k', zone => null", "zone"),
        ("'a', '@daily', 'k', null", "args"), ("'a', '@daily', 'k', priority => 10", "priority"),
        ("'a', '@daily', 'k', queue => 'q q'", "queue"), ("'a', '@daily', 'k', catch_up => 'some'", "catch_up"),
        ("'a', '@daily', 'k', catch_up_limit => 0", "catch_up_limit"),
        ("'a', '@daily', 'k', overlap => 'maybe'", "overlap"), ("'a', '@daily', 'k', jitter => '-1 s'", "jitter"),
        ("'a', '@daily', 'k', jitter => '2 days'", "jitter"), ("'a', '@daily', 'k', tenant => ''", "tenant"),
        ("'a', '@daily', 'k', anchor => 'infinity'", "anchor"),
    ])
    func `a malformed schedule is refused with its field`(arguments: String, field: String) async throws {
        try await withConnection { connection in
            let error = try await connection.refusal(of: "select millrace.schedule_set(\(arguments))")
            #expect(error?.sqlState == "22023", "\(error?.message ?? "allowed")")
            #expect(error?.detail?.contains("\"field\" : \"\(field)\"") == true, "\(error?.detail ?? "")")
            #expect(try await connection.int("select count(*) from millrace.schedule") == 0)
        }
    }

    @Test func `job, fire and next time are written together or not at all`() async throws {
        try await withConnection { connection in
            let schedule = try await connection.planned()
            try await connection.run("begin")
            #expect(try await connection.advance(schedule, hours: [0, 1], next: 2) == 2)
            try await connection.run("rollback")
            #expect(try await connection.jobs == 0)
            #expect(try await connection.int("select count(*) from millrace.schedule_fire") == 0)
            #expect(try await connection.advance(schedule, hours: [0, 1], next: 2) == 2)
            #expect(
                try await connection.records(
                    "select fire_at at time zone 'UTC', what from millrace.schedule_fires('s')")
                    == [#"("2020-01-01 01:00:00",fired)"#, #"("2020-01-01 00:00:00",fired)"#])
            #expect(
                try await connection.column("select metadata from millrace.job order by id")
                    == [
                        #"{"fire_at": "2020-01-01T00:00:00Z", "schedule": "s"}"#,
                        #"{"fire_at": "2020-01-01T01:00:00Z", "schedule": "s"}"#,
                    ])
            #expect(
                try await connection.bool(
                    "select fired = 2 and last_fire_at = '2020-01-01T01:00Z' and next_at = '2020-01-01T02:00Z' and last_job = (select max(id) from millrace.job) from millrace.schedules"
                ))
        }
    }

    @Test func `what was worked out for another state of the schedule does not count`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let other = try await database.connect()
            let schedule = try await connection.planned()
            #expect(try await connection.advance((schedule.id, schedule.revision + 1)) == nil)
            #expect(try await connection.advance(schedule, expected: 1) == nil)
            #expect(try await connection.advance(schedule, expected: nil) == nil)
            // Another session holds the row and works on it, so nobody waits.
            try await other.run("begin; select from millrace.schedule for update")
            #expect(try await connection.advance(schedule) == nil)
            try await other.run("rollback")
            #expect(try await connection.bool("select millrace.schedule_pause('s')"))
            #expect(try await connection.advance(schedule) == nil)
            #expect(try await connection.jobs == 0)
            await other.close()
            await connection.close()
        }
    }

    @Test func `of many who fire at once one does`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let schedule = try await connection.planned()
            let fired = try await withThrowingTaskGroup(of: Int?.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        let mine = try await database.connect()
                        let jobs = try await mine.advance(schedule, hours: [0, 1, 2], next: 3)
                        await mine.close()
                        return jobs
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(fired.compactMap { $0 } == [3])
            #expect(try await connection.jobs == 3)
            await connection.close()
        }
    }

    @Test func `a time that has its record gets no second job, though the clock shows it again`() async throws {
        try await withConnection { connection in
            let schedule = try await connection.planned()
            #expect(try await connection.advance(schedule, hours: [0], next: 1) == 1)
            try await connection.run("update millrace.schedule set next_at = '2020-01-01T00:00Z'")
            #expect(try await connection.advance(schedule, hours: [0, 1], next: 2) == 1)
            #expect(try await connection.jobs == 2)
        }
    }

    @Test func `with skip no second job while the last one lives`() async throws {
        try await withConnection { connection in
            let schedule = try await connection.planned(", overlap => 'skip'")
            #expect(try await connection.advance(schedule, hours: [0, 1], next: 2) == 1)
            let id = try await connection.int("select last_job from millrace.schedules")
            try await connection.openSession()
            try await connection.claim()
            #expect(try await connection.advance(schedule, hours: [2], expected: 2, next: 3) == 0)
            #expect(
                try await connection.column("select what from millrace.schedule_fires('s')")
                    == ["skipped", "skipped", "fired"])
            _ = try await connection.finish([.init(id: id, outcome: 1)], complete: [9: 1])
            #expect(try await connection.state(id) == "succeeded")
            #expect(try await connection.advance(schedule, hours: [3], expected: 3, next: 4) == 1)
            #expect(try await connection.int("select skipped from millrace.schedules") == 2)
        }
    }

    @Test func `with replace the last job is cancelled, waiting or running`() async throws {
        try await withConnection { connection in
            let schedule = try await connection.planned(", overlap => 'replace'")
            #expect(try await connection.advance(schedule, hours: [0], next: 1) == 1)
            let first = try await connection.int("select last_job from millrace.schedules")
            #expect(try await connection.advance(schedule, hours: [1], expected: 1, next: 2) == 1)
            #expect(try await connection.state(first) == "cancelled")
            let second = try await connection.int("select last_job from millrace.schedules")
            try await connection.openSession()
            #expect(try await connection.claim() == [second])
            #expect(try await connection.advance(schedule, hours: [2], expected: 2, next: 3) == 1)
            // A running one is asked to end.
            #expect(try await connection.int("select job from millrace.cancel") == second)
            #expect(try await connection.jobs == 3)
        }
    }

    @Test func `jitter spreads, stays within its bound, and is the same for everybody`() async throws {
        try await withConnection { connection in
            func delays() async throws -> [String] {
                let schedule = try await connection.planned(", jitter => '10 min'")
                #expect(try await connection.advance(schedule, hours: Array(0...9), next: 10) == 10)
                let delays = try await connection.column(
                    "select extract(epoch from run_at - (metadata ->> 'fire_at')::timestamptz) from millrace.job order by id"
                )
                try await connection.run(
                    "select millrace.schedule_remove('s'); delete from millrace.job; delete from millrace.timer")
                return delays
            }
            let first = try await delays()
            #expect(Set(first).count > 5)
            #expect(first.compactMap { Double($0) }.allSatisfy { (0..<600).contains($0) })
            #expect(try await delays() == first)
        }
    }

    @Test func `by hand it fires now, paused or not, and nothing planned changes`() async throws {
        try await withConnection { connection in
            try await connection.run(
                "select millrace.schedule_set('s', '@daily', 'test', queue => 'q', priority => 1, paused => true)")
            let id = try await connection.int("select millrace.schedule_run('s')")
            #expect(try await connection.state(id) == "ready")
            #expect(
                try await connection.bool(
                    "select queue = 'q' and priority = 1 and metadata @> '{\"manual\": true, \"schedule\": \"s\"}' from millrace.jobs where state = 'ready'"
                ))
            #expect(try await connection.column("select what from millrace.schedule_fires('s')") == ["manual"])
            #expect(
                try await connection.bool("select last_job = \(id) and last_fire_at is null from millrace.schedules"))
        }
    }

    @Test func `a pause clears the next time, and resuming computes it from then on`() async throws {
        try await withConnection(.movableClock) { connection in
            _ = try await connection.planned()
            #expect(try await connection.bool("select millrace.schedule_pause('s')"))
            #expect(try await connection.bool("select millrace.schedule_pause('s')") == false)
            #expect(try await connection.value("select next_at from millrace.schedule_wait()") == nil)
            try await connection.run("select millrace.test_clock_advance('2 days')")
            #expect(try await connection.bool("select millrace.schedule_resume('s')"))
            #expect(try await connection.bool("select millrace.schedule_resume('s')") == false)
            #expect(
                try await connection.bool(
                    "select planned_from > millrace.now() - interval '1 minute' and next_at is null from millrace.schedules_due()"
                ))
        }
    }

    @Test func `what is not there is not found`() async throws {
        try await withConnection { connection in
            for verb in ["pause", "resume", "remove", "run"] {
                let error = try await connection.refusal(of: "select millrace.schedule_\(verb)('ghost')")
                #expect(error?.sqlState == "P0002", "\(verb)")
            }
        }
    }

    @Test func `a schedule with a problem is left alone for ten seconds, or until it is changed`() async throws {
        try await withConnection(.movableClock) { connection in
            let schedule = try await connection.planned()
            try await connection.run("update millrace.schedule set next_at = null")
            func due() async throws -> Int { try await connection.int("select count(*) from millrace.schedules_due()") }
            #expect(try await due() == 1)
            // Too early: another worker may understand it.
            #expect(
                try await connection.bool(
                    "select millrace.schedule_problem(\(schedule.id), \(schedule.revision), 'no')") == false)
            try await connection.run("select millrace.test_clock_advance('3 seconds')")
            // A report about another revision is ignored.
            #expect(try await connection.bool("select millrace.schedule_problem(\(schedule.id), 99, 'no')") == false)
            #expect(
                try await connection.bool(
                    "select millrace.schedule_problem(\(schedule.id), \(schedule.revision), 'there is no such zone')"))
            #expect(try await due() == 0)
            #expect(try await connection.value("select next_at from millrace.schedule_wait()") == nil)
            #expect(try await connection.value("select problem from millrace.schedules") == "there is no such zone")
            try await connection.run("select millrace.test_clock_advance('11 seconds')")
            #expect(try await due() == 1)
            try await connection.run(
                "select millrace.schedule_problem(\(schedule.id), \(schedule.revision), 'there is no such zone')")
            try await connection.run("select millrace.schedule_set('s', '1 * * * *', 'test')")
            #expect(try await due() == 1)
            #expect(try await connection.value("select problem from millrace.schedules") == nil)
        }
    }

    @Test func `fires are kept for fourteen days, ten thousand of each schedule`() async throws {
        try await withConnection { connection in
            _ = try await connection.planned()
            try await connection.run(
                """
                insert into millrace.schedule_fire (schedule, fire_at, what, fired_at)
                select s.id, millrace.now() - make_interval(secs => n), 'skipped', millrace.now()
                  from millrace.schedule s, generate_series(1, 10500) n;
                insert into millrace.schedule_fire (schedule, fire_at, what, fired_at)
                select s.id, millrace.now() - interval '15 days', 'skipped', millrace.now() from millrace.schedule s
                """)
            #expect(try await connection.int("select millrace.schedule_trim()") == 501)
            #expect(try await connection.int("select count(*) from millrace.schedule_fire") == 10_000)
            #expect(
                try await connection.bool(
                    "select max(fire_at) > millrace.now() - interval '1 minute' from millrace.schedule_fire"))
        }
    }

    @Test func `twenty workers that register the same schedule at once make one`() async throws {
        try await withDatabase { database in
            let changes = try await withThrowingTaskGroup(of: String?.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        let connection = try await database.connect()
                        let change = try await connection.value(
                            "select millrace.schedule_set('s', '@daily', 'test')")
                        await connection.close()
                        return change
                    }
                }
                return try await group.reduce(into: []) { $0.append($1 ?? "") }
            }
            #expect(changes.sorted() == ["created"] + Array(repeating: "unchanged", count: 19))
        }
    }
}
