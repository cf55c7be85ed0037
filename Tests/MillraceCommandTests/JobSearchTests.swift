import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

private func ids(_ words: String..., url: String) async throws -> [Int] {
    let capture = Capture()
    let code = await Application.run(
        arguments: ["jobs", "list", "--jsonl", "--database-url", url] + words, surroundings: .fake(),
        console: capture.console)
    #expect(code == .done, "\(words): \(capture.errors)")
    return try capture.output.split(separator: "\n").compactMap { try JSONValue.read(String($0))["id"]?.integer }
}

/// Dead jobs, and some that wait for a retry, each with a tenant, a limit key and an error.
private func fill(_ database: TestDatabase) async throws {
    try await database.change(
        """
        select millrace.enqueue('mail', tenant => 'acme', limit_key => 'k' || n % 2) from generate_series(1, 6) n;
        select millrace.enqueue('mail', unique_key => 'u');
        delete from millrace.ready;
        insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
        select id, 0, id, now(), now() - id * interval '1 min', kind, queue, 1, case when id <= 3 then 3 else 4 end, 1, 0,
               case when id % 2 = 0 then 'timed out after ' || id || ' s' else 'refused' end from millrace.job;
        insert into millrace.timer (due, job, queue, kind, lane, attempt)
        select now() + interval '1 hour', id, queue, kind, lane, 1 from millrace.job where id > 3;
        select millrace.enqueue('mail', run_at => now() + interval '1 day', tenant => 'acme')
        """)
}

@Suite struct JobSearchTests {
    @Test func `jobs are found by tenant, keys and error, and those that wait for a retry`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await fill(database)
            #expect(try await ids("--state", "retrying", url: url) == [7, 6, 5, 4])
            #expect(try await ids("--state", "retrying", "--error", "TIMED", url: url) == [6, 4])
            #expect(try await ids("--state", "dead", "--tenant", "acme", url: url) == [3, 2, 1])
            #expect(try await ids("--tenant", "acme", url: url) == [8, 6, 5, 4, 3, 2, 1])
            #expect(try await ids("--tenant", "acme", "--limit", "2", "--after", "6", url: url) == [5, 4])
            #expect(try await ids("--unique", "u", url: url) == [7])
            #expect(try await ids("--limit-key", "k0", url: url) == [6, 4, 2])
            #expect(try await ids("--state", "dead", "--tenant", "other", url: url) == [])
        }
    }

    @Test func `retrying jobs run again at once, those that the filters leave`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await fill(database)
            let dry = await millrace(
                "jobs", "retry", "--state", "retrying", "--error", "timed", "--dry-run", "--database-url", url)
            #expect(dry.output.hasPrefix("would retry 2 jobs\n") && dry.output.contains("timed out after # s"))
            let done = await millrace(
                "jobs", "retry", "--state", "retrying", "--error", "timed", "--yes", "--json", "--database-url", url)
            #expect(try JSONValue.read(done.output)["retried"]?.integer == 2, "\(done.errors)")
            #expect(try await ids("--state", "retrying", url: url) == [7, 5])
            #expect(try await ids("--state", "ready", url: url) == [6, 4])
            let dead = await millrace("jobs", "retry", "--dead", "--limit-key", "k1", "--yes", "--database-url", url)
            #expect(dead.output == "retried 2 jobs\n")
            for words in [
                ["--tenant", "a"], ["--dead", "--state", "retrying"], ["--state", "scheduled", "--error", "x"],
            ] {
                let capture = Capture()
                let code = await Application.run(
                    arguments: ["jobs", "retry", "--yes", "--database-url", url] + words, surroundings: .fake(),
                    console: capture.console)
                #expect(code == .misused, "\(words): \(capture.errors)")
            }
        }
    }

    @Test func `alike errors are one line, with how many, since when, and an example`() async throws {
        try await withDatabase { database in
            try await fill(database)
            let outcome = await millrace("jobs", "errors", "--json", "--database-url", database.url)
            guard case .array(let errors)? = try JSONValue.read(outcome.output)["errors"] else {
                Issue.record("no errors in \(outcome.output) \(outcome.errors)")
                return
            }
            let lines = errors.map {
                "\($0["state"]?.text ?? "") \($0["error"]?.text ?? "") \($0["jobs"]?.integer ?? 0) \($0["example"]?.integer ?? 0)"
            }
            #expect(
                lines.sorted() == [
                    "dead refused 2 3", "dead timed out after # s 1 2", "retrying refused 2 7",
                    "retrying timed out after # s 2 6",
                ])
            #expect(errors.allSatisfy { ($0["first_at"]?.text ?? "z") <= ($0["last_at"]?.text ?? "") })
            let text = await millrace("jobs", "errors", "--state", "dead", "--database-url", database.url)
            #expect(text.output.contains("refused") && !text.output.contains("retrying"))
        }
    }

    @Test func `a search looks at a bounded number of jobs in each call, and finds all in the end`() async throws {
        try await withDatabase { database in
            try await database.change(
                """
                select millrace.enqueue('mail', tenant => case when n in (1, 1700) then 'acme' end) from generate_series(1, 1700) n;
                delete from millrace.ready;
                insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
                select id, 0, id, now(), now(), kind, queue, 1, 3, 1, 0, 'x' from millrace.job
                """)
            let connection = try await database.connect()
            #expect(
                try await connection.value(
                    "select row(ids, looked, next)::text from millrace.jobs_find('dead', the_tenant => 'acme', most => 500)"
                )
                    == "({1700},500,1201)")
            await connection.close()
            #expect(try await ids("--state", "dead", "--tenant", "acme", url: database.url) == [1700, 1])
        }
    }

    @Test func `many ended jobs are deleted with a few statements, and others as before`() async throws {
        try await withDatabase { database in
            try await fill(database)
            let connection = try await database.connect()
            let before = try await connection.column(
                "select id || ' ' || outcome from millrace.jobs_do('delete', array[1, 2, 8, 99]::bigint[])")
            #expect(before == ["1 done", "2 done", "8 done", "99 P0002"])
            #expect(try await connection.column("select id from millrace.job order by 1") == ["3", "4", "5", "6", "7"])
            #expect(try await connection.int("select count(*) from millrace.history where id in (1, 2)") == 0)
            #expect(
                try await connection.column("select millrace.jobs_delete_ended(array[3, 4, 7]::bigint[])") == ["{3}"])
            await connection.close()
        }
    }
}
