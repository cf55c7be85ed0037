import Foundation
import Postgres
import TestSupport
import Testing

@testable import Console

/// Thousands of queues, and parts of pages that fail.
@Suite(.timeLimit(.minutes(10))) struct ManyQueuesTests {
    /// With the one that every database has.
    private static let queues = 4999

    /// Queues with three jobs each, and one with more; as a sample of the fleet says it.
    private static func fill(_ connection: Connection) async throws {
        try await connection.run(
            """
            select millrace.register_kinds('{work}', '{null}');
            insert into millrace.queue (name, created_at) select 'q' || to_char(n, 'FM0000'), now() from generate_series(1, \(queues)) n;
            select setval('millrace.seq', 100000);
            insert into millrace.job (id, kind, queue, lane, enqueued_at, args, owner)
            select row_number() over (), millrace.kind_id('work'), q.id, 17, now() - interval '1 minute', '{}', current_user
              from millrace.queue q cross join lateral generate_series(1, case when q.name = 'q4321' then 40 else 3 end) where q.name ~ '^q[0-9]{4}$';
            insert into millrace.ready (seq, job, queue, kind, lane) select j.id, j.id, j.queue, j.kind, j.lane from millrace.job j;
            analyze millrace.job; analyze millrace.ready; analyze millrace.queue;
            select millrace.sample_take()
            """)
    }

    private static func rows(_ page: String) -> Int { page.components(separatedBy: "<tr role=\"row\">").count - 2 }

    @Test func `with thousands of queues pages answer: totals of a sample, a page of queues, a search`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            try await Self.fill(world.connection)
            let overview = try await world.get("/console")
            #expect(overview.status == 200, "\(overview.body.prefix(400))")
            #expect(overview.body.contains("about 15,034"), "the total of the sample")
            #expect(overview.body.contains("There are 5,000 queues. Their totals are those of the sample at "))
            #expect(overview.body.contains("q4321"), "the one that has most to do")
            #expect(overview.body.contains("All 5,000 queues"))

            let first = try await world.get("/console/queues")
            #expect(first.status == 200 && Self.rows(first.body) == 100, "\(Self.rows(first.body))")
            #expect(first.body.contains("rel=\"next\" href=\"/console/queues?after=q0099\""))
            let last = try await world.get("/console/queues?after=q4990")
            #expect(Self.rows(last.body) == 9 && !last.body.contains("rel=\"next\""))
            let found = try await world.get("/console/queues?q=Q432")
            #expect(Self.rows(found.body) == 10 && found.body.contains("q4321") && !found.body.contains("q0001"))
            let none = try await world.get("/console/queues?q=nothing")
            #expect(none.status == 200 && none.body.contains("No queue has “nothing” in its name."))
            for address in [
                "/search?q=q432", "/queue?name=q4321", "/jobs?state=ready", "/limits", "/past", "/findings",
            ] {
                let answer = try await world.get("/console\(address)")
                #expect(answer.status == 200, "\(address): \(answer.body.prefix(600))")
            }
            let reader = try EventReader(world)
            #expect(await reader.next()?.texts["total.ready"] == "about 15,034")
        }
    }

    @Test func `what a page of queues reads does not grow with the queues`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            try await Self.fill(world.connection)
            for (statement, most) in [
                ("select millrace.queues_now(20)", 8_000), ("select * from millrace.queue_page(page => 100)", 20_000),
                ("select * from millrace.queue_page(names => '{q4321}')", 2_000),
                // All of them at once: some pages a queue, and not one for each pair.
                ("select * from millrace.depths(10)", 120_000),
            ] {
                _ = try await world.connection.pages(statement)
                let pages = try await world.connection.pages(statement)
                #expect(pages < most, "\(statement): \(pages)")
            }
            let depths = try await world.connection.records("select count(*), sum(ready) from millrace.depths(10)")
            #expect(depths == ["(5000,15004)"])
        }
    }

    @Test func `a part of a page that fails is shown as failed, and the rest is shown`() async throws {
        try await ConsoleWorld.with { world in
            func fail(_ function: String) async throws {
                let found = try await world.connection.value(
                    "select pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.proname = '\(function)'"
                )
                let head = try #require(found?.components(separatedBy: "\nAS $").first)
                    .replacing("LANGUAGE sql", with: "LANGUAGE plpgsql")
                try await world.connection.run(
                    "\(head) as $x$ begin raise exception 'canceling statement due to statement timeout' using errcode = '57014'; end $x$"
                )
            }
            try await fail("queues_now")
            let overview = try await world.get("/console")
            #expect(overview.status == 200)
            #expect(overview.body.contains("The queues cannot be shown now: "))
            for part in ["class=\"verdict", "class=\"chart\"", "class=\"tiles\"", "Lanes of notices"] {
                #expect(overview.body.contains(part), "\(part) is shown")
            }
            try await fail("rates")
            try await fail("room_lanes")
            let other = try await world.get("/console")
            #expect(other.status == 200 && other.body.contains("The figures cannot be shown now: "))
            #expect(other.body.contains("The lanes cannot be shown now: ") && other.body.contains("class=\"chart\""))
            try await fail("kind_list")
            let search = try await world.get("/console/search?q=report")
            #expect(search.status == 200 && search.body.contains("Queue reports"))
            #expect(search.body.contains("Kinds with this name cannot be shown now: "))
            try await fail("operation_preview")
            let preview = try await world.get("/console/operations/new?state=dead&action=retry")
            #expect(preview.status == 200 && preview.body.contains("The jobs could not be counted in time."))
            #expect(preview.body.contains("Start: retry all jobs that fit"))
        }
    }

    @Test func `a preview says exactly, or at least`() async throws {
        try await ConsoleWorld.with { world in
            let dead = try await world.connection.int("select count(*) from millrace.jobs where state = 'dead'")
            let exact = try await world.get("/console/operations/new?state=dead&action=retry")
            #expect(exact.body.contains("retry would reach \(dead) jobs."), "\(exact.body)")
            try await world.connection.run(
                "select count(*) from (select millrace.enqueue_bulk('image.resize', array_fill('{}'::text, array[21000]), 'mail')) x"
            )
            let least = try await world.get("/console/operations/new?state=ready&queue=mail&action=cancel")
            #expect(least.body.contains("cancel would reach at least 20,000 jobs."))
            #expect(least.body.contains("Start: cancel at least 20,000 jobs"))
        }
    }
}
