import Foundation
import Postgres
import TestSupport
import Testing

@Suite struct LimitProcessTests {
    /// Counted from what the jobs themselves recorded. A run that could not record its end, because it was killed or had no connection,
    /// ends with its rescue or its retry.
    @Test func `of a key never more run at once than its limit, though workers are killed, and no slot leaks`()
        async throws
    {
        let environment = ProcessInfo.processInfo.environment
        let given = environment["LIMITED_JOBS"].flatMap { Int($0) } ?? (environment["MILLRACE_LONG"] == nil ? nil : 800)
        let (fleet, jobs, mostKills) = given.map { (8, $0, 6) } ?? (4, 300, 3)
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                create table public.practice_record (job bigint, token text, what text, at timestamptz default clock_timestamp());
                select millrace.limit_set('key', 'k', '{"concurrency": 3}')
                """)
            var workers: [Supervised] = []
            for number in 1...fleet {
                let keeper = Supervised { life in
                    try await MillraceProcess.worker("w\(number)-\(life)", database: database.url, slots: 10)
                }
                try await keeper.begin()
                workers.append(keeper)
            }
            // When all are there, or the first would be done before one is killed.
            try await connection.run(
                "select millrace.enqueue_bulk('practice.record', array(select '{\"ms\": 5}' from generate_series(1, \(jobs))), the_limit_key => 'k')"
            )
            var random = SystemRandomNumberGenerator()
            var kills = 0
            let limit = ContinuousClock.now + .seconds(60 + jobs / 50)
            while try await connection.int("select count(*) from millrace.history where outcome = 1") < jobs {
                try #require(ContinuousClock.now < limit, "not done in time")
                // One of those that run something, so that a slot is held by the dead.
                if kills < mostKills,
                    let name = try await connection.value(
                        "select s.name from millrace.lease l join millrace.session s on s.id = l.session order by random() limit 1"
                    ),
                    let number = Int(name.dropFirst().prefix { $0 != "-" })
                {
                    await workers[number - 1].kill()
                    kills += 1
                }
                try await Task.sleep(for: .milliseconds(Int.random(in: 100...300, using: &random)))
            }
            for worker in workers { try await worker.stop() }
            let most = try await connection.int(
                """
                with runs as (
                    select b.token, b.at as began, coalesce(e.at, h.finished) as ended
                      from public.practice_record b
                      left join public.practice_record e on e.token = b.token and e.what = 'ended'
                      left join millrace.history h on h.id = b.job
                           and to_hex(h.session) || '-' || h.number || '-' || h.id = b.token
                     where b.what = 'began'
                )
                select max(running) from (
                    select sum(e.step) over (order by e.at, e.step) as running
                      from runs r cross join lateral (values (r.began, 1), (r.ended, -1)) e(at, step) where e.at is not null) x
                """)
            let crashed = try await connection.int("select count(*) from millrace.history where outcome = 7")
            print(
                "limit 3, \(fleet) workers, \(jobs) jobs, \(kills) kills, \(crashed) runs lost: at most \(most) at once"
            )
            #expect(most <= 3)
            #expect(kills > 0)
            #expect(
                try await connection.int("select count(distinct id) from millrace.history where outcome = 1") == jobs)
            #expect(try await connection.int("select count(*) from millrace.slots_audit()") == 0)
            #expect(try await connection.int("select coalesce(sum(n), 0) from millrace.slot") == 0)
            await connection.close()
        }
    }
}
