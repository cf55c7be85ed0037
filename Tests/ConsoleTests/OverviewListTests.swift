import Foundation
import TestSupport
import Testing

@testable import Console

/// What is new since the last build, and which queues wait for somebody.
@Suite(.timeLimit(.minutes(10))) struct OverviewListTests {
    @Test func `the overview has the causes that were not seen before the newest build, and what failed since`()
        async throws
    {
        try await ConsoleWorld.with { world in
            // One cause is older than the newest build, and one is of it.
            try await world.connection.run(
                """
                update millrace.process set started_at = now() - interval '2 hours' where session = 1;
                update millrace.process set started_at = now() - interval '30 minutes' where session = 2;
                update millrace.failure_group set first_at = now() - interval '1 day' where gist like '%reset%';
                update millrace.failure_group set first_at = now() - interval '1 minute' where gist like '%printer%'
                """)
            let page = try await world.get("/console").body
            let part = try #require(page.components(separatedBy: "New causes since the last build").last)
                .components(separatedBy: "<h2>")[0]
            #expect(part.contains("the printer # does not answer") && !part.contains("was reset"))
            #expect(part.contains("All failures since 1.5.0 began"))
            let address = try #require(part.firstMatch(of: /href="(\/console\/failures\?since=[^"]+)"/)).1
            let failures = try await world.get(String(address)).body
            #expect(failures.contains("the printer # does not answer") && failures.contains("was reset"))
            #expect(failures.contains("Retry all jobs that died since then"))
            #expect(failures.contains("name=\"state\" value=\"dead\""))
            let later = try await world.get("/console/failures?since=2100-01-01T00:00").body
            #expect(later.contains("Nothing has failed since then."))
            #expect(try await world.get("/console/failures?since=never").status == 400)
            try await world.connection.run("update millrace.failure_group set first_at = now() - interval '1 day'")
            #expect(try await world.get("/console").body.contains("No new cause since 1.5.0 began, 30 min ago."))
            // With one build there is nothing that it is newer than.
            try await world.connection.run("update millrace.process set version = '1.4.0'")
            #expect(try await !world.get("/console").body.contains("New causes since"))
        }
    }

    @Test func `who may only read is not offered to retry`() async throws {
        try await ConsoleWorld.with({ $0.access.localRole = .viewer }) { world in
            let page = try await world.get("/console/failures?since=2020-01-01T00:00").body
            #expect(page.contains("the printer") && !page.contains("Retry all jobs that died"))
        }
    }

    @Test func `queues that are paused with jobs in them, or wait for long, are named with the reason`() async throws {
        try await ConsoleWorld.with { world in
            try await world.connection.run(
                "update millrace.job set enqueued_at = now() - interval '20 minutes' where kind = any (millrace.kind_ids('report.build'))"
            )
            let page = try await world.get("/console").body
            let part = try #require(page.components(separatedBy: "Queues that need you").last)
                .components(separatedBy: "<h2>")[0]
            #expect(part.contains("slow: paused, and ") && part.contains(" jobs wait"))
            #expect(
                part.contains("reports: the oldest of ") && part.contains(" ready jobs has waited for 20 min"),
                "\(part)")
            try await world.connection.run(
                "select millrace.resume('slow'); update millrace.job set enqueued_at = now(), run_at = null")
            #expect(try await !world.get("/console").body.contains("Queues that need you"))
        }
    }
}
