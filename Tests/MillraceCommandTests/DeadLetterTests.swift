import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// Dead jobs of one kind, with an error each.
private func fill(_ database: TestDatabase, _ count: Int, error: String, kind: String = "mail") async throws {
    try await database.change(
        """
        select millrace.enqueue('\(kind)', tags => array['t']) from generate_series(1, \(count));
        delete from millrace.ready;
        insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
        select id, 0, id, now(), now(), kind, queue, 1, 3, 1, 0, '\(error)' from millrace.job j
         where not exists (select from millrace.history h where h.id = j.id)
        """)
}

@Suite struct DeadLetterTests {
    @Test func `a dry run tells how many, and what they died of`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await fill(database, 3, error: "timed out after 30 s")
            try await fill(database, 1, error: "refused", kind: "sms")
            let outcome = await millrace("jobs", "retry", "--dead", "--dry-run", "--database-url", url)
            #expect(outcome.code == .done)
            #expect(outcome.output.hasPrefix("would retry 4 jobs\n"))
            #expect(outcome.output.contains("timed out after # s") && outcome.output.contains("refused"))
            let json = try JSONValue.read(
                await millrace(
                    "jobs", "retry", "--dead", "--error", "TIMED", "--dry-run", "--json", "--database-url", url
                ).output)
            #expect(json["jobs"]?.integer == 3 && json["without_args"]?.integer == 0)
            #expect(
                json["causes"]
                    == [
                        [
                            "kind": "mail", "error": "timed out after # s", "jobs": .number("3"),
                            "without_args": .number("0"),
                        ]
                    ])
            let list = await millrace(
                "jobs", "list", "--state", "dead", "--error", "refused", "--since", "1h", "--jsonl", "--database-url",
                url)
            #expect(list.output.split(separator: "\n").count == 1 && list.output.contains("\"sms\""))
            let delete = await millrace(
                "jobs", "delete", "--state", "dead", "--error", "refused", "--dry-run", "--database-url", url)
            #expect(delete.output.hasPrefix("would delete 1 job\n"))
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 3") == 4)
            await connection.close()
        }
    }

    @Test func `a redrive takes what the filters leave, and counts what it cannot, with the reason`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await fill(database, 4, error: "timed out")
            try await fill(database, 1, error: "refused")
            let connection = try await database.connect()
            let ids = try await connection.column("select id from millrace.job order by id")
            // One has lost its arguments, and the key of another is held.
            try await connection.run(
                """
                delete from millrace.job where id = \(ids[0]);
                update millrace.job set unique_key = 'k', unique_hash = millrace.unique_hash('k', 'mail', 'default', null, null, null) where id = \(ids[1]);
                select millrace.enqueue('mail', unique_key => 'k')
                """)
            let off = await millrace("jobs", "retry", "--dead", "--error", "timed", "--database-url", url)
            #expect(off.code == .misused && off.errors.contains("retrying 4 jobs needs --yes"))
            let outcome = await millrace(
                "jobs", "retry", "--dead", "--error", "timed", "--yes", "--database-url", url)
            #expect(outcome.code == .done)
            #expect(
                outcome.output == """
                    retried 2 jobs
                    1 job refused: millrace operations show 1 --which refused
                    1 job cannot run again: their arguments are no longer kept

                    """)
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 3") == 3)
            let single = await millrace("jobs", "retry", ids[0], "--json", "--database-url", url)
            #expect(single.code == .conflict && single.output.contains("args_dropped"))
            #expect(single.errors.contains("the arguments of job \(ids[0]) are no longer kept"))
            let json = try JSONValue.read(
                await millrace("jobs", "retry", "--dead", "--yes", "--rate", "1000", "--json", "--database-url", url)
                    .output)
            #expect(json["retried"]?.integer == 1 && json["refused"]?.integer == 1)
            #expect(json["without_args"]?.integer == 1 && json["untouched"]?.integer == 2)
            // It is an operation, and is taken back.
            let operation = try #require(json["operation"]?.integer)
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 3") == 2)
            let undo = await millrace("operations", "undo", "\(operation)", "--wait", "--database-url", url)
            #expect(undo.code == .done, "\(undo.errors)")
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 3") == 3)
            await connection.close()
        }
    }

    @Test func `what is asked of dead jobs is refused of others, and times have to be times`() async throws {
        let url = "postgres://nobody@/nowhere"
        for words in [
            ["jobs", "list", "--error", "x"], ["jobs", "list", "--state", "ready", "--since", "1h"],
            ["jobs", "delete", "--error", "x", "--yes"],
            ["jobs", "delete", "--state", "ready", "--until", "1h", "--yes"],
            ["jobs", "retry", "--error", "x"], ["jobs", "retry", "--dead", "--since", "yesterday"],
            ["jobs", "retry", "--dead", "--since", "2030-01-31T12:00:00"], ["jobs", "cancel", "--error", "x"],
        ] {
            let capture = Capture()
            let code = await Application.run(
                arguments: words + ["--database-url", url], surroundings: .fake(), console: capture.console)
            #expect(code == .misused, "\(words): \(capture.errors)")
        }
    }

    @Test func `a queue's dead jobs can be kept longer than the others, and the list says so`() async throws {
        try await withDatabase { database in
            let url = database.url
            #expect(
                await millrace("queues", "retention", "mail", "short", "--create", "--database-url", url).code == .done)
            let set = await millrace("queues", "retention", "mail", "long", "--state", "dead", "--database-url", url)
            #expect(set.code == .done && set.output == "mail, dead jobs: long\n")
            let again = await millrace(
                "queues", "retention", "mail", "long", "--state", "dead", "--json", "--database-url", url)
            #expect(try JSONValue.read(again.output)["changed"] == false)
            let list = try JSONValue.read(await millrace("queues", "list", "--json", "--database-url", url).output)
            guard case .array(let queues)? = list["queues"] else {
                Issue.record("no queues in \(list)")
                return
            }
            #expect(queues[0]["retention"] == "short")
            #expect(
                queues[0]["retention_by_state"] == ["succeeded": "short", "cancelled": "short", "dead": "long"])
            #expect(await millrace("status", "--database-url", url).output.contains("short, dead long"))
            #expect(
                await millrace("queues", "retention", "mail", "long", "--state", "ready", "--database-url", url).code
                    == .misused)
        }
    }
}
