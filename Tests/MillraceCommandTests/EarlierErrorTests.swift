import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

@Suite struct EarlierErrorTests {
    @Test func `the error of a job that has succeeded since is labelled as an earlier one`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let id = try #require(try await connection.value("select millrace.enqueue('demo.hello')"))
            func record(outcome: Int, attempt: Int, error: String) async throws {
                try await connection.run(
                    """
                    insert into millrace.history
                        (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
                    select id, 0, \(attempt * 4), now() + interval '\(attempt) s', now() + interval '\(attempt) s', kind, queue,
                           0, \(outcome), \(attempt), 0, \(error) from millrace.job where id = \(id)
                    """)
            }
            try await record(outcome: 4, attempt: 1, error: "'no route to host'")
            let failed = await millrace("jobs", "show", id, "--database-url", database.url)
            #expect(failed.output.contains("\nerrors\n") && !failed.output.contains("earlier"), "\(failed.output)")
            try await connection.run("delete from millrace.ready")
            try await record(outcome: 1, attempt: 2, error: "null")
            let shown = await millrace("jobs", "show", id, "--database-url", database.url)
            #expect(shown.code == .done && shown.output.contains("succeeded"), "\(shown.output)\(shown.errors)")
            #expect(shown.output.contains("\nearlier errors\n  attempt 1, "), "\(shown.output)")
            #expect(shown.output.contains("no route to host") && !shown.output.contains("\nerrors\n"))
            await connection.close()
        }
    }
}
