import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// The id a verb printed with `--json`.
func printedID(_ outcome: Outcome) throws -> Int { try #require(try JSONValue.read(outcome.output)["id"]?.integer) }

@Suite struct EnqueueCommandTests {
    @Test func `a job is enqueued once for its key, and the answer tells whether it is new`() async throws {
        try await withDatabase { database in
            let url = database.url
            let first = await millrace("enqueue", "a.b", "{\"n\":1}", "--unique", "k", "--json", "--database-url", url)
            #expect(first.code == .done)
            let one = try JSONValue.read(first.output)
            #expect(one["version"]?.integer == 1 && one["created"] == .bool(true))
            let second = await millrace("enqueue", "a.b", "--unique", "k", "--json", "--database-url", url)
            #expect(second.code == .done)
            let other = try JSONValue.read(second.output)
            #expect(other["created"] == .bool(false) && other["id"] == one["id"])
            let third = await millrace(
                "enqueue", "a.b", "--unique", "k", "--on-conflict", "error", "--database-url", url)
            #expect(third.code == .conflict && third.errors.hasPrefix("millrace: the unique key 'k' is held by job "))
        }
    }

    @Test func `a waiting job takes the new work, and its key is held after its end`() async throws {
        try await withDatabase { database in
            let url = database.url
            let first = await millrace(
                "enqueue", "a.b", "1", "--in", "1h", "--unique", "k", "--on-conflict", "replace", "--unique-scope",
                "all",
                "--json", "--database-url", url)
            let second = await millrace(
                "enqueue", "a.b", "2", "--unique-for", "5m", "--option", "timeout=3", "--unique", "k", "--on-conflict",
                "replace", "--unique-scope", "all", "--database-url", url)
            #expect(second.output == "\(try printedID(first))\n", "\(second.errors)")
            #expect(second.errors.contains("already waited with the unique key; it has taken the new work"))
            let shown = await millrace("jobs", "show", "\(try printedID(first))", "--json", "--database-url", url)
            let job = try JSONValue.read(shown.output)
            #expect(job["state"]?.text == "ready" && job["args"]?.integer == 2 && job["unique_key"]?.text == "k")
            #expect(await millrace("jobs", "cancel", "\(try printedID(first))", "--database-url", url).code == .done)
            let held = await millrace(
                "enqueue", "c.d", "--unique", "k", "--unique-scope", "all", "--json", "--database-url", url)
            #expect(try printedID(held) == (try printedID(first)))
        }
    }

    @Test func `everything that is given is stored`() async throws {
        try await withDatabase { database in
            let url = database.url
            let outcome = await millrace(
                "enqueue", "a.b", "@args.json", "--queue", "mail", "--priority", "2", "--at",
                "2090-01-31T14:00:00+02:00",
                "--limit-key", "l", "--tenant", "t", "--tag", "x", "--tag", "y", "--max-attempts", "3", "--metadata",
                "{\"trace\":\"z\"}", "--option", "timeout=30", "--json", "--database-url", url,
                files: ["args.json": "{\"deep\": [1.000000000000000000001]}"])
            #expect(outcome.code == .done, "\(outcome.errors)")
            let id = try printedID(outcome)
            let shown = await millrace("jobs", "show", "\(id)", "--json", "--database-url", url)
            let job = try JSONValue.read(shown.output)
            #expect(job["state"]?.text == "scheduled" && job["queue"]?.text == "mail" && job["priority"]?.integer == 2)
            #expect(job["run_at"]?.text == "2090-01-31T12:00:00Z" && job["max_attempts"]?.integer == 3)
            #expect(job["tags"] == ["x", "y"] && job["tenant"]?.text == "t" && job["limit_key"]?.text == "l")
            #expect(job["args"]?["deep"] == .array([.number("1.000000000000000000001")]))
            #expect(job["metadata"]?["trace"]?.text == "z")
        }
    }

    @Test func `a job carries the place in a trace that is given, and a malformed one is left out`() async throws {
        try await withDatabase { database in
            let url = database.url
            let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            for (text, found) in [(given, given), ("00-x", nil)] as [(String, String?)] {
                let outcome = await millrace(
                    "enqueue", "a.b", "--metadata", "{\"n\": 1}", "--traceparent", text, "--json", "--database-url",
                    url)
                #expect(outcome.code == .done, "\(outcome.errors)")
                let id = try printedID(outcome)
                let shown = await millrace("jobs", "show", "\(id)", "--json", "--database-url", url)
                let metadata = try JSONValue.read(shown.output)["metadata"]
                #expect(metadata?["traceparent"]?.text == found)
                #expect(metadata?["n"]?.integer == 1)
            }
        }
    }

    @Test(arguments: [
        (["a.b", "{\"n\":}"], "line 1, column 6"),
        (["a.b", "@big.json"], "1048576"),
        (["a.b", "@nul.json"], "malformed JSON, line 1, column 8: a text must not contain NUL"),
        (["a.b", "@"], "name of a file is missing"),
        (["a.b", "@none.json"], "no such file"),
        (["a.b", "{\"n\":\"\\u0000\"}"], "NUL"),
        (["a b"], "takes a kind's name"),
        (["a.b", "--queue", "bad queue"], "takes a queue's name"),
        (["a.b", "--priority", "10"], "from 0 to 9"),
        (["a.b", "--priority", "-1"], "from 0 to 9"),
        (["a.b", "--at", "2030-01-31T12:00:00"], "has no time zone"),
        (["a.b", "--at", "2030-01-31T12:00:00 CET"], "has a time zone"),
        (["a.b", "--at", "tomorrow"], "2030-01-31T12:00:00Z"),
        (["a.b", "--at", "2030-02-30T12:00:00Z"], "does not have"),
        (["a.b", "--at", "2030-01-31T12:00:00Z", "--in", "5m"], "exclude each other"),
        (["a.b", "--option", "timeout"], "NAME=VALUE"),
        (["a.b", "--option", "nope=1"], "options.nope is unknown"),
        (["a.b", "--unique-for", "5m"], "--unique-for is given without --unique"),
        (["a.b", "--unique", "k", "--unique-for", "999ms"], "--unique-for"),
        (["a.b", "--unique", "k", "--unique-scope", "world"], "--unique-scope"),
        (["a.b", "--metadata", "[]"], "takes a JSON object"),
        ([], "<kind> is missing"),
    ])
    func `bad input is misuse, with a sentence that helps`(words: [String], says: String) async throws {
        let capture = Capture()
        let files = ["big.json": "\"" + String(repeating: "a", count: 1_048_576) + "\"", "nul.json": "{\"a\":\"x\0\"}"]
        let code = try await withDatabase { database in
            await Application.run(
                arguments: ["enqueue"] + words + ["--database-url", database.url],
                surroundings: .fake(files: files), console: capture.console)
        }
        #expect(code == .misused && capture.output.isEmpty)
        #expect(capture.errors.contains(says), "\(capture.errors)")
    }

    @Test func `waiting ends with the job, or with the timeout`() async throws {
        try await withDatabase { database in
            let url = database.url
            let late = await millrace("enqueue", "a.b", "--wait", "--timeout", "200ms", "--database-url", url)
            #expect(late.code == .timedOut && late.errors.contains("it is ready"))
            try await withWorker(at: url) {
                let good = await millrace(
                    "enqueue", "practice.nothing", "--wait", "--timeout", "30s", "--json", "--database-url", url)
                #expect(good.code == .done)
                let answer1 = try JSONValue.read(good.output)
                #expect(answer1["job"]?["state"]?.text == "succeeded")
                let bad = await millrace(
                    "enqueue", "practice.fail", "{\"times\":9}", "--max-attempts", "1", "--wait", "--timeout", "30s",
                    "--database-url", url)
                #expect(bad.code == .jobDied && bad.errors.contains("is dead") && bad.errors.contains("on purpose"))
                #expect(Int(bad.output.dropLast()) != nil, "the id alone: \(bad.output)")
            }
        }
    }

    @Test func `a batch is enqueued whole, blank lines aside`() async throws {
        try await withDatabase { database in
            let url = database.url
            let lines = "{\"kind\":\"a.b\",\"args\":{\"t\":\"a\\tb\\\\c\"}}\r\n\n  \n{\"kind\":\"a.c\",\"priority\":1}"
            let outcome = await millrace(
                "enqueue", "--batch", "jobs.jsonl", "--json", "--database-url", url, files: ["jobs.jsonl": lines])
            #expect(outcome.code == .done, "\(outcome.errors)")
            let answer = try JSONValue.read(outcome.output)
            #expect(answer["enqueued"]?.integer == 2)
            let list = await millrace("jobs", "list", "--kind", "a.b", "--jsonl", "--database-url", url)
            let job = try JSONValue.read(list.output)
            #expect(job["args"]?["t"]?.text == "a\tb\\c")
        }
    }

    @Test(arguments: [
        ("{\"kind\":\"a.b\"}\n\n{\"kind\":\"a.b\"\n{\"kind\":\"a.b\"}", "line 3, column 14"),
        ("{\"kind\":\"a.b\"}\n\n{\"kind\":\"a.b\",\"priority\":99}\n", "line 3: priority 99 is out of range"),
        ("{\"kind\":\"a.b\"}\n[]\n", "line 2, column 1: a job is an object"),
        ("{\"kind\":\"a.b\"}\n{\"args\":{}}\n", "line 2: it has no kind"),
        ("{\"kind\":\"a.b\"}\n{\"kind\":\"a.b\",\"nope\":1}", "line 2: the field 'nope' is unknown"),
    ])
    func `a batch with a bad line leaves nothing and names the line`(lines: String, says: String) async throws {
        try await withDatabase { database in
            let url = database.url
            let outcome = await millrace(
                "enqueue", "--batch", "-", "--database-url", url, files: ["-": lines])
            #expect(outcome.code == .misused && outcome.errors.contains(says), "\(outcome.errors)")
            #expect(await millrace("jobs", "list", "--jsonl", "--database-url", url).output.isEmpty)
        }
    }

    @Test func `a batch stands alone`() async {
        let outcome = await millrace(
            "enqueue", "--batch", "-", "--priority", "1", "--database-url", "postgresql:///x", files: ["-": ""])
        #expect(outcome.code == .misused && outcome.errors.contains("--priority belongs to a single job"))
    }

    @Test func `an unreachable database is 5, a missing schema 6`() async throws {
        try await withDatabase(.empty) { database in
            let bare = database.url
            for words in [
                ["enqueue", "a.b"], ["jobs", "list"], ["jobs", "show", "1"], ["queues", "list"], ["status"],
            ] {
                for (url, code) in [("postgresql://127.0.0.1:1/x", ExitCode.unreachable), (bare, .schemaMismatch)] {
                    let capture = Capture()
                    let found = await Application.run(
                        arguments: words + ["--database-url", url], surroundings: .fake(), console: capture.console)
                    #expect(found == code, "\(words): \(capture.errors)")
                }
            }
        }
    }

    @Test func `advice about a shell's quotes is for what came through a shell`() async {
        let typed = await millrace("enqueue", "a.b", "{n:1}", "--database-url", "postgresql:///x")
        #expect(typed.code == .misused && typed.errors.contains("single quotes"))
        let read = await millrace(
            "enqueue", "a.b", "@f.json", "--database-url", "postgresql:///x", files: ["f.json": "{n:1}"])
        #expect(read.code == .misused && !read.errors.contains("single quotes"))
    }

    @Test func `one job is not several`() async throws {
        try await withDatabase { database in
            let outcome = await millrace(
                "enqueue", "--batch", "-", "--database-url", database.url, files: ["-": "{\"kind\":\"a.b\"}"])
            #expect(outcome.output == "1 job enqueued\n")
            let status = await millrace("status", "--database-url", database.url)
            #expect(status.output.hasPrefix("CRITICAL  1 job waits and no worker is running"))
        }
    }

    @Test func `a read-only database says what it is`() async throws {
        try await withDatabase { database in
            try await database.change("alter database \(database.name) set default_transaction_read_only = on")
            let outcome = await millrace("enqueue", "a.b", "--database-url", database.url)
            #expect(outcome.code == .failed && outcome.errors.contains("target_session_attrs=read-write"))
            let doctor = await millrace("doctor", "--database-url", database.url)
            #expect(doctor.code == .critical && doctor.output.contains("problem  transaction_read_only: on"))
        }
    }

    @Test func `a schema from the future is 6`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await database.change("update millrace.setting set value = '9999' where name = 'oldest_worker'")
            let outcome = await millrace("enqueue", "a.b", "--database-url", url)
            #expect(outcome.code == .schemaMismatch && outcome.errors.contains("use a newer millrace"))
            let worker = await millrace("worker", "--practice", "--listen", "off", "--database-url", database.url)
            #expect(worker.code == .schemaMismatch && worker.errors.contains("serves workers from version 9999"))
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.refused_worker") == 1, "why can name it")
            await connection.close()
        }
    }

    @Test(arguments: [
        "1970-01-01T00:00:00Z", "2000-02-29T23:59:59Z", "2030-01-31T12:00:00.250Z", "1969-12-31T23:59:59.999Z",
    ])
    func `a time reads back as it was spelled`(text: String) throws {
        #expect(InstantText.spell(try InstantText.read(text)) == text)
        let east = try InstantText.read("2030-01-31T14:00+0200")
        #expect(try InstantText.read("2030-01-31T12:00:00Z") == east)
    }
}
