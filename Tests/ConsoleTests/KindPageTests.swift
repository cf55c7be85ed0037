import Postgres
import TestSupport
import Testing

@testable import Console

/// The page of a kind: how long its runs take, how often they fail, and what a new build changed.
@Suite(.timeLimit(.minutes(10))) struct KindPageTests {
    /// Two builds: of a hundred runs on the first ten failed, on the second fifty, and those took four times as long.
    private static func fill(_ connection: Connection) async throws {
        try await connection.run(
            """
            select millrace.register_kinds('{report.build,calm.kind,never.ran}', '{null,null,null}'::text[]);
            select millrace.session_open(1, 'worker-a', 'host', 1, '1.4.0', null, array(select id from millrace.kind), 10, false);
            select millrace.session_open(2, 'worker-b', 'host', 2, '1.5.0', null, array(select id from millrace.kind), 10, false);
            insert into millrace.tally (at, session, queue, kind, succeeded, failed, dead, cancelled, snoozed, ms, wait_ms, waits, times)
            select now() - interval '5 s', x.session, millrace.queue_id('default'), millrace.kind_id(x.kind), x.good, x.bad, x.bad, 0, 0, x.ms, 100, 100, x.times
              from (values (1, 'report.build', 90, 10, 9000, '14:100'), (2, 'report.build', 50, 50, 40000, '18:100'), (1, 'calm.kind', 7, 0, 70, '8:7')) x(session, kind, good, bad, ms, times);
            select millrace.sample_take();
            insert into millrace.history (id, session, number, started, finished, kind, queue, ms, class, outcome, attempt, crashes, error)
            select i, 1 + i % 2, 9, now() - interval '1 minute', now() - interval '30 s', millrace.kind_id('report.build'), millrace.queue_id('default'),
                   100 + i, 1, case when i % 10 = 0 then 3 else 1 end, 1, 0, case when i % 10 = 0 then 'the printer ' || i || ' does not answer' end
              from generate_series(1, 200) i;
            insert into millrace.failure_note (first_at, at, session, queue, kind, error, failed, dead, jobs, lo, hi)
            select now(), now(), 1, millrace.queue_id('default'), millrace.kind_id('report.build'), 'the printer 7 does not answer', 60, 60, '{10,20}', 10, 200;
            select millrace.failures_fold()
            """)
    }

    @Test func `the page of a kind has its figures, two builds with the difference, its slowest runs and its causes`()
        async throws
    {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            try await Self.fill(world.connection)
            let page = try await world.get("/console/kind?name=report.build&span=1h").body
            for text in [
                ">200</span>", "30 %", "60 runs, 60 jobs dead", "From samples between ", "Builds compared",
                ">1.4.0</th>", ">1.5.0</th>", "10 %", "50 %", "+40 points", "+323 ms, +300 %",
                "Of the newest 200 runs of all kinds, since ", "200 are of this kind.",
                "href=\"/console/jobs/200\"", ">300 ms</span>", "the printer # does not answer",
            ] {
                #expect(page.contains(text), "\(text)")
            }
            #expect(page.contains("<span class=\"bad\">+40 points</span>"), "more failures are bad")
            #expect(!page.contains("href=\"/console/jobs/190\""), "ten runs, the slowest")
            // A kind of one build has nothing to compare, and one that never ran says so.
            let calm = try await world.get("/console/kind?name=calm.kind&span=1h").body
            #expect(calm.contains("All of these runs were on build 1.4.0.") && !calm.contains(" points</span>"))
            #expect(calm.contains("None of these runs is of this kind."))
            let never = try await world.get("/console/kind?name=never.ran").body
            #expect(never.contains("The samples of the last 24h have no run of this kind."))
            #expect(try await world.get("/console/kind?name=nobody").status == 404)
            #expect(try await world.get("/console/kind").status == 400)
        }
    }

    @Test func `the list of kinds begins with the slowest, and sorts by what is asked for`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            try await Self.fill(world.connection)
            func names(_ sort: String) async throws -> [String] {
                let page = try await world.get("/console/kinds?sort=\(sort)").body
                return page.matches(of: /<th role="rowheader"[^>]*><a href="[^"]*">([^<]*)</).map { String($0.1) }
            }
            #expect(try await names("slowest") == ["report.build", "calm.kind"])
            #expect(try await names("runs") == ["report.build", "calm.kind"])
            #expect(try await names("name") == ["calm.kind", "report.build"])
            let page = try await world.get("/console/kinds").body
            #expect(page.contains("Runs that ended since ") && page.contains("60, 30 %"))
            #expect(page.contains("href=\"/console/kind?name=never.ran\""))
            #expect(try await world.get("/console/kinds?sort=nothing").status == 200)
        }
    }

    @Test func `what the pages of kinds read does not grow with what has ended`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            try await Self.fill(world.connection)
            try await world.connection.run(
                """
                insert into millrace.history (id, session, number, started, finished, kind, queue, ms, class, outcome, attempt, crashes)
                select i, 1, 9, now(), now(), millrace.kind_id('calm.kind'), millrace.queue_id('default'), 5, 1, 1, 1, 0 from generate_series(1000, 60000) i;
                insert into millrace.tally (at, session, queue, kind, succeeded, ms)
                select now() - interval '1 minute', 1, millrace.queue_id('default'), millrace.kind_id('calm.kind'), 1, 5 from generate_series(1, 20000);
                analyze millrace.history; analyze millrace.tally
                """)
            for (statement, most) in [
                ("select millrace.kind_slowest('report.build')", 6_000), ("select * from millrace.kinds_now()", 4_000),
                ("select * from millrace.kind_past('report.build', '1 hour')", 2_000),
            ] {
                _ = try await world.connection.pages(statement)
                let pages = try await world.connection.pages(statement)
                #expect(pages < most, "\(statement): \(pages)")
            }
            // What was not looked at is said, and the next part can be.
            let page = try await world.get("/console/kind?name=report.build&span=1h").body
            #expect(page.contains("Of the newest 20,000 runs of all kinds, since "))
            #expect(page.contains("runs_before=40001\">Look at older runs"))
            let older = try await world.get("/console/kind?name=report.build&runs_before=1000").body
            #expect(older.contains("Of the next older 200 runs of all kinds") && !older.contains("Look at older runs"))
        }
    }

    @Test func `a difference says how much, and whether it is worse`() {
        func said(_ before: Double?, _ after: Double?, _ measure: KindComparison.Measure) -> [String] {
            let cell = KindComparison.difference(before, after, measure)
            return [cell.text, cell.tone ?? ""]
        }
        #expect(said(10, 1234, .count) == ["+1,224", ""])
        #expect(said(10, 10, .count) == ["the same", "quiet"])
        #expect(said(0.1, 0.05, .share) == ["−5 points", "good"])
        #expect(said(0.1, 0.11, .share) == ["+1 points", ""])
        #expect(said(0, 0.2, .share) == ["+20 points", "bad"])
        #expect(said(0.1, 0.12, .span) == ["+20 ms, +20 %", ""])
        #expect(said(0.1, 0.2, .span) == ["+100 ms, +100 %", "bad"])
        #expect(said(2, 1, .span) == ["−1 s, −50 %", "good"])
        #expect(said(nil, 1, .span) == ["–", "quiet"])
    }
}
