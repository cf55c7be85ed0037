import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// As ada, at a database.
private func run(_ words: [String], at url: String) async -> Outcome {
    let capture = Capture()
    let code = await Application.run(
        arguments: words + ["--database-url", url], surroundings: .fake(["USER": "ada"]), console: capture.console)
    return Outcome(code: code, output: capture.output, errors: capture.errors)
}

private func run(_ words: String..., at url: String) async -> Outcome { await run(words, at: url) }

private func json(_ words: String..., at url: String) async throws -> JSONValue {
    let outcome = await run(words + ["--json", "--yes"], at: url)
    #expect(outcome.code == .done, "\(words): \(outcome.errors)")
    return try JSONValue.read(outcome.output)
}

@Suite struct OperationCommandTests {
    private static let fill = "select count(millrace.enqueue('mail', queue => 'mail')) from generate_series(1, 5)"

    @Test func `an operation is looked at, carried out without a worker, undone, and stands in the audit`() async throws
    {
        try await withDatabase { database in
            let url = database.url
            try await database.change(Self.fill)
            let dry = await run("operations", "start", "cancel", "--queue", "mail", "--dry-run", at: url)
            #expect(dry.code == .done && dry.output == "cancel would reach 5 jobs\n", "\(dry)")
            let unasked = await run("operations", "start", "cancel", "--queue", "mail", at: url)
            #expect(unasked.code == .misused && unasked.errors.contains("cancel of 5 jobs needs --yes"), "\(unasked)")
            let started = try await json("operations", "start", "cancel", "--queue", "mail", at: url)
            #expect(started["state"]?.text == "running" && started["jobs"]?.integer == 5)
            #expect(started["said_by"]?.text?.hasPrefix("ada@") == true)
            let ended = try await json("operations", "run", "1", at: url)
            #expect(ended["state"]?.text == "finished" && ended["done"]?.integer == 5)
            try await database.change("select millrace.retry(2)")
            let undone = await run("operations", "undo", "1", "--wait", at: url)
            #expect(
                undone.output == """
                    operation 1 is undone
                    5 done of 5, 4 undone, 1 moved on

                    """, "\(undone)")
            let past = await run("operations", "show", "1", "--which", "past", at: url)
            #expect(past.output.contains("it has moved on since: ready"), "\(past)")
            let audit = try await json("audit", "list", "--who", started["said_by"]?.text ?? "", at: url)
            guard case .array(let entries)? = audit["entries"] else { throw Failure("no entries") }
            #expect(entries.map { $0["action"]?.text } == ["operation.undo", "operation.start"])
            #expect(await run("operations", "undo", "9", at: url).code == .notFound)
        }
    }

    @Test func `what an action needs and what it does not take is said`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await database.change(Self.fill)
            for words in [
                ["cancel"], ["cancel", "--queue", "mail", "--to", "3"], ["priority", "--queue", "mail"],
                ["reschedule", "--queue", "mail"], ["cancel", "--queue", "mail", "--in", "2h"],
                ["reschedule", "--queue", "mail", "--in", "2h", "--at", "2090-01-01T00:00:00Z"],
                ["cancel", "--queue", "mail", "--state", "dead"], ["burn", "--queue", "mail"],
            ] {
                let outcome = await run(["operations", "start"] + words + ["--yes"], at: url)
                #expect(outcome.code == .misused, "\(words): \(outcome)")
            }
            let unknown = await run("operations", "start", "cancel", "--queue", "mial", "--yes", at: url)
            #expect(unknown.code == .notFound && unknown.errors.contains("did you mean mail?"), "\(unknown)")
        }
    }

    @Test func `one job gets another time or priority, while it waits`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await database.change(Self.fill)
            let first = try await json("jobs", "priority", "1", "0", at: url)
            #expect(first["changed"]?.text == nil && first["priority"]?.integer == 0)
            #expect(await run("jobs", "priority", "1", "0", at: url).code == .conflict, "it has it already")
            #expect(await run("jobs", "priority", "99", "0", at: url).code == .notFound)
            #expect(await run("jobs", "priority", "1", "10", at: url).code == .misused)
            let later = try await json("jobs", "reschedule", "2", "--in", "2h", at: url)
            #expect(later["state"]?.text == "scheduled")
            #expect(await run("jobs", "reschedule", "2", at: url).code == .misused)
            try await database.change("select millrace.cancel(3)")
            let ended = await run("jobs", "reschedule", "3", "--in", "2h", at: url)
            #expect(ended.code == .conflict && ended.errors.contains("job 3 is cancelled"), "\(ended)")
        }
    }

    @Test func `the audit is exported line by line, beyond a page, and kept as long as was set`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await database.change(
                """
                insert into millrace.audit (at, who, action, object)
                select now() - make_interval(secs => 1300 - n), 'r', case when n % 2 = 0 then 'a' else 'b' end, 'o' || n from generate_series(1, 1201) n
                """)
            let lines = await run("audit", "list", "--limit", "100000", "--jsonl", at: url)
            #expect(lines.output.split(separator: "\n").count == 1201, "\(lines.errors)")
            let some = await run(
                "audit", "list", "--action", "a", "--since", "1h", "--limit", "3", "--jsonl", at: url)
            #expect(
                try some.output.split(separator: "\n").map { try JSONValue.read(String($0))["object"]?.text } == [
                    "o1200", "o1198", "o1196",
                ])
            #expect(try await json("audit", "keep", at: url)["days"]?.integer == 400)
            #expect(try await json("audit", "keep", "730", at: url)["days"]?.integer == 730)
            #expect(await run("audit", "keep", "7", at: url).code == .misused)
        }
    }
}
