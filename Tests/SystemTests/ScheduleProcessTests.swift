import Foundation
import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import TestSupport
import Testing
import Workers

@Suite struct ScheduleProcessTests {
    /// 1. A worker plans three schedules, each its own way to catch up. 2. The whole fleet is away for three hours, in which three
    /// times pass. 3. Five workers come back at the same moment.
    @Test func `after three hours without workers none, latest and all do what they say, once each`() async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            for way in ["none", "latest", "all"] {
                // The last time lies ten minutes back when they return: missed, and not just late.
                try await connection.run(
                    "select millrace.schedule_set('\(way)', 'every 1h', 'practice.nothing', catch_up => '\(way)', anchor => millrace.now() - interval '10 min')"
                )
            }
            let planner = try await MillraceProcess.worker("planner", database: database.url)
            try await eventually("all are planned") {
                try await connection.int("select count(*) from millrace.schedules where next_at is not null") == 3
            }
            planner.signal(SIGTERM)
            #expect(try await planner.ended() == 0)
            #expect(try await connection.int("select count(*) from millrace.schedule_fire") == 0)
            try await connection.run("select millrace.test_clock_advance('3 hours')")

            let workers = try (1...5).map { number in
                try MillraceProcess(["worker", "--practice", "--name", "w\(number)"], database: database.url)
            }
            try await eventually("all five are up, nothing is due, and all jobs are done") {
                try await connection.bool(
                    """
                    select (select count(*) = 5 from millrace.workers)
                       and (select next_at > now from millrace.schedule_wait())
                       and (select count(*) = 4 from millrace.history where outcome = 1)
                    """)
            }
            #expect(
                try await connection.records(
                    "select name, fired, skipped, missed from millrace.schedules order by name")
                    == ["(all,3,0,0)", "(latest,1,0,2)", "(none,0,0,3)"])
            #expect(
                try await connection.records(
                    "select metadata ->> 'schedule', count(*), count(distinct metadata ->> 'fire_at') from millrace.job group by 1 order by 1"
                ) == ["(all,3,3)", "(latest,1,1)"])
            // The missed ones are in one row: how many, from when to when.
            #expect(
                try await connection.records(
                    """
                    select s.name, f.missed, (f.fire_at - s.anchor)::text, (f.until - s.anchor)::text
                      from millrace.schedule_fire f join millrace.schedule s on s.id = f.schedule where f.what = 'missed' order by 1
                    """) == ["(latest,2,01:00:00,02:00:00)", "(none,3,01:00:00,03:00:00)"])
            #expect(
                try await connection.bool(
                    "select bool_and(next_at = anchor + interval '4 hours') from millrace.schedules"))
            for worker in workers { worker.signal(SIGTERM) }
            for worker in workers { #expect(try await worker.ended() == 0) }
            await connection.close()
        }
    }

    /// Workers of one process here, so that all of them are surely awake when time jumps.
    @Test func `five workers on a schedule of every second fire each second once, also when time jumps`() async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            let workers = (1...5).map { makeWorker("w\($0)", database) }
            let running = workers.map { worker in Task { try await worker.run() } }
            for worker in workers { await worker.hasStarted() }
            try await connection.run("select millrace.schedule_set('tick', 'every 1s', 'tick', catch_up => 'all')")
            try await eventually("it fires") { try await connection.int("select fired from millrace.schedules") > 2 }
            try await connection.run("select millrace.test_clock_advance('5 minutes')")
            try await eventually("all of it is fired") {
                try await connection.int("select fired from millrace.schedules") > 305
            }
            try await connection.run("select millrace.schedule_pause('tick')")
            // As many jobs as fires as seconds from the first to the last.
            #expect(
                try await connection.bool(
                    """
                    select count(*) = s.fired and count(distinct f.fire_at) = s.fired and s.missed = 0
                       and count(*) = extract(epoch from max(f.fire_at) - min(f.fire_at)) + 1
                       and count(distinct f.job) = (select count(*) from millrace.job)
                      from millrace.schedule_fire f, millrace.schedule s group by s.id
                    """))
            for worker in workers { worker.drain() }
            for run in running { _ = try await run.value }
            await connection.close()
        }
    }

    @Test func `a change is taken up by workers that are asleep, and a killed one is not missed`() async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            let doomed = try await MillraceProcess.worker("doomed", database: database.url)
            let other = try await MillraceProcess.worker("other", database: database.url)
            try await connection.run("select millrace.schedule_set('s', '@yearly', 'practice.nothing')")
            try await eventually("it is planned") {
                try await connection.bool("select next_at is not null from millrace.schedules")
            }
            let before = try await connection.value("select next_at from millrace.schedules")
            try await connection.run("select millrace.schedule_set('s', 'every 1h', 'practice.nothing')")
            try await eventually("the change is planned") {
                try await connection.bool("select next_at < '\(before ?? "")' from millrace.schedules")
            }
            doomed.signal(SIGKILL)
            #expect(try await doomed.ended() == -SIGKILL)
            try await connection.run("select millrace.test_clock_advance('1 hour')")
            try await eventually("the other fires") {
                try await connection.int("select fired from millrace.schedules") == 1
            }
            try await connection.run("select millrace.schedule_remove('s')")
            #expect(try await connection.int("select count(*) from millrace.schedule_fire") == 0)
            other.signal(SIGTERM)
            #expect(try await other.ended() == 0)
            await connection.close()
        }
    }

    @Test func `what no worker understands says so, and the others fire on, of any kind`() async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            let worker = makeWorker("w", database)
            let running = Task { try await worker.run() }
            try await connection.run(
                """
                select millrace.schedule_set('zone', '@daily', 'tick', zone => 'Europe/Atlantis');
                select millrace.schedule_set('cron', '61 * * * *', 'tick');
                select millrace.schedule_set('foreign', 'every 1h', 'somebody.elses')
                """)
            try await eventually("all are looked at") {
                try await connection.int(
                    "select count(*) from millrace.schedules where problem is not null or next_at is not null") == 3
            }
            #expect(
                try await connection.value("select problem from millrace.schedules where name = 'zone'")
                    == "there is no time zone \"Europe/Atlantis\"")
            #expect(
                try await connection.value("select problem from millrace.schedules where name = 'cron'")
                    == "minute: 61 is out of range; give 0 to 59")
            try await connection.run("select millrace.test_clock_advance('1 hour')")
            try await eventually("a kind that nobody here runs is enqueued all the same") {
                try await connection.int("select fired from millrace.schedules where name = 'foreign'") == 1
            }
            try await connection.run("select millrace.schedule_set('cron', '1 * * * *', 'tick')")
            try await eventually("what was put right is planned") {
                try await connection.bool(
                    "select next_at is not null and problem is null from millrace.schedules where name = 'cron'")
            }
            worker.drain()
            _ = try await running.value
            await connection.close()
        }
    }

    @Test func `a worker without time zones says so, and does not speak for one that has them`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let poor = try await MillraceProcess.worker(
                "poor", database: database.url, environment: ["TZDIR": "/nonexistent"])
            try await connection.run(
                "select millrace.schedule_set('s', '0 2 * * *', 'practice.nothing', zone => 'Europe/Berlin')")
            try await eventually("it says so") {
                try await connection.value("select problem from millrace.schedules")?.contains("tzdata") == true
            }
            let rich = try await MillraceProcess.worker("rich", database: database.url)
            try await eventually("the other plans it") {
                try await connection.bool("select next_at is not null and problem is null from millrace.schedules")
            }
            for worker in [poor, rich] {
                worker.signal(SIGTERM)
                #expect(try await worker.ended() == 0)
            }
            await connection.close()
        }
    }

    private func makeWorker(_ name: String, _ database: TestDatabase) -> JobWorker {
        JobWorker(
            options: JobWorker.Options(database: database.options, name: name),
            handlers: [Handler(kind: "tick") { _, _ in .done }], log: .silent)
    }
}
