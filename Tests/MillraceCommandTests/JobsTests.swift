import TestSupport
import Testing

@testable import MillraceCommand

private func enqueue(_ kind: String, _ more: String..., url: String) async throws -> Int {
    let capture = Capture()
    let code = await Application.run(
        arguments: ["enqueue", kind, "--json", "--database-url", url] + more, surroundings: .fake(),
        console: capture.console)
    #expect(code == .done, "\(capture.errors)")
    return try #require(try JSONValue.read(capture.output)["id"]?.integer)
}

@Suite struct JobsTests {
    @Test func `jobs are listed newest first, by state, kind and tag, a page at a time`() async throws {
        try await withDatabase { database in
            let url = database.url
            let first = try await enqueue("a.one", "--tag", "red", url: url)
            let second = try await enqueue("a.two", "--in", "1h", url: url)
            let third = try await enqueue("a.one", "--priority", "0", url: url)
            func ids(_ words: String...) async throws -> [Int] {
                let capture = Capture()
                let code = await Application.run(
                    arguments: ["jobs", "list", "--jsonl", "--database-url", url] + words, surroundings: .fake(),
                    console: capture.console)
                #expect(code == .done, "\(capture.errors)")
                return try capture.output.split(separator: "\n").compactMap {
                    try JSONValue.read(String($0))["id"]?.integer
                }
            }
            #expect(try await ids() == [third, second, first])
            #expect(try await ids("--state", "scheduled") == [second])
            #expect(try await ids("--kind", "a.one") == [third, first])
            #expect(try await ids("--tag", "red") == [first])
            #expect(try await ids("--limit", "1") == [third])
            #expect(try await ids("--after", "\(third)", "--limit", "5") == [second, first])
            #expect(try await ids("--queue", "nowhere") == [])
            #expect(await millrace("jobs", "list", "--state", "lost", "--database-url", url).code == .misused)
        }
    }

    @Test func `a job that is not there is 3, everywhere`() async throws {
        try await withDatabase { database in
            let url = database.url
            for verb in ["show", "watch", "retry", "cancel", "delete"] {
                let outcome = await millrace("jobs", verb, "4711", "--database-url", url)
                #expect(outcome.code == .notFound && outcome.errors.contains("there is no job 4711"), "\(verb)")
            }
        }
    }

    @Test func `a cancelled job can be retried, and deleted`() async throws {
        try await withDatabase { database in
            let url = database.url
            let id = "\(try await enqueue("a.b", url: url))"
            #expect(await millrace("jobs", "retry", id, "--database-url", url).code == .conflict)
            #expect(await millrace("jobs", "cancel", id, "--database-url", url).code == .done)
            #expect(await millrace("jobs", "cancel", id, "--database-url", url).code == .done)
            #expect(await millrace("jobs", "watch", id, "--database-url", url).code == .jobDied)
            #expect(await millrace("jobs", "retry", id, "--database-url", url).code == .done)
            #expect(await millrace("jobs", "show", id, "--database-url", url).output.contains("ready"))
            #expect(await millrace("jobs", "delete", id, "--database-url", url).code == .done)
            #expect(await millrace("jobs", "show", id, "--database-url", url).code == .notFound)
        }
    }

    @Test func `a retry of a job whose key is taken is a conflict`() async throws {
        try await withDatabase { database in
            let url = database.url
            let id = "\(try await enqueue("a.b", "--unique", "k", url: url))"
            #expect(await millrace("jobs", "cancel", id, "--database-url", url).code == .done)
            _ = try await enqueue("a.b", "--unique", "k", url: url)
            let outcome = await millrace("jobs", "retry", id, "--database-url", url)
            #expect(outcome.code == .conflict && outcome.errors.contains("holds the unique key"))
        }
    }

    @Test func `a blocked job shows whom it waits for, and status counts it`() async throws {
        try await withDatabase { database in
            let url = database.url
            let first = try await enqueue("a.b", "--unique", "k", url: url)
            try await database.change(
                """
                select millrace.session_open(1, 'w', 'h', 1, '0', null, array(select id from millrace.kind), 10, false);
                select millrace.claim(1, 8, array(select id from millrace.kind), array[1], array[17], array[0::bigint],
                    array[9223372036854775807], array[10], 10, '{}', '{}')
                """)
            let next = try await enqueue("a.b", "--unique", "k", "--on-conflict", "replace", url: url)
            let shown = await millrace("jobs", "show", "\(next)", "--database-url", url)
            #expect(shown.output.contains("blocked") && shown.output.contains("unique key    k"), "\(shown.output)")
            #expect(shown.output.contains("waits for     job \(first), which holds the key"))
            let json = try JSONValue.read(
                await millrace("jobs", "show", "\(next)", "--json", "--database-url", url).output)
            #expect(json["waits_for"] == .array([.number("\(first)")]))
            let list = await millrace("jobs", "list", "--state", "blocked", "--database-url", url)
            #expect(list.output.contains("waits for job \(first)"), "\(list.output)")
            let status = await millrace("status", "--database-url", url)
            #expect(status.output.contains("1 job waits for other jobs"), "\(status.output)")
            #expect(await millrace("jobs", "cancel", "\(next)", "--database-url", url).code == .done)
            #expect(
                await millrace("jobs", "list", "--state", "blocked", "--database-url", url).output.contains("no jobs"))
        }
    }

    @Test func `bulk deeds count first, ask, and touch only what the filters leave`() async throws {
        try await withDatabase { database in
            let url = database.url
            let lines = (0..<1200).map { "{\"kind\":\"\($0 < 1100 ? "a.many" : "a.other")\"}" }.joined(separator: "\n")
            #expect(
                await millrace("enqueue", "--batch", "-", "--database-url", url, files: ["-": lines]).code == .done)
            let dry = await millrace("jobs", "cancel", "--kind", "a.many", "--dry-run", "--database-url", url)
            #expect(dry.code == .done && dry.output == "would cancel 1,100 jobs\n")
            let unasked = await millrace("jobs", "cancel", "--kind", "a.many", "--database-url", url)
            #expect(unasked.code == .misused && unasked.errors.contains("--yes"))
            let done = await millrace("jobs", "cancel", "--kind", "a.many", "--yes", "--json", "--database-url", url)
            let cancelled = try JSONValue.read(done.output)["cancelled"]?.integer
            #expect(cancelled == 1100)
            let left = await millrace("jobs", "cancel", "--queue", "default", "--dry-run", "--database-url", url)
            #expect(left.output == "would cancel 100 jobs\n")
            let gone = await millrace("jobs", "delete", "--kind", "a.many", "--yes", "--database-url", url)
            #expect(gone.output == "deleted 1,100 jobs\n")
        }
    }

    @Test func `ids and filters exclude each other, and one of them is needed`() async throws {
        try await withDatabase { database in
            let url = database.url
            for verb in ["cancel", "delete", "retry"] {
                #expect(await millrace("jobs", verb, "--yes", "--database-url", url).code == .misused)
                #expect(await millrace("jobs", verb, "--dry-run", "--database-url", url).code == .misused)
                #expect(
                    await millrace("jobs", verb, "1", "--kind", "a", "--yes", "--database-url", url).code == .misused)
            }
            #expect(await millrace("jobs", "retry", "--kind", "a", "--yes", "--database-url", url).code == .misused)
        }
    }

    @Test func `a dead job shows every error, and dead ones are retried together`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await withWorker(at: url) {
                let id = try await enqueue("practice.fail", "{\"times\":1}", "--max-attempts", "1", url: url)
                #expect(
                    await millrace("jobs", "watch", "\(id)", "--timeout", "30s", "--database-url", url).code == .jobDied
                )
                let shown = await millrace("jobs", "show", "\(id)", "--database-url", url).output
                #expect(shown.contains("attempt 1, dead, 2") && shown.contains("failing on purpose"))
                let dry = await millrace("jobs", "retry", "--dead", "--dry-run", "--database-url", url)
                #expect(dry.output.hasPrefix("would retry 1 job\n"))
                let all = await millrace("jobs", "retry", "--dead", "--yes", "--json", "--database-url", url)
                let answer1 = try JSONValue.read(all.output)
                #expect(answer1["retried"]?.integer == 1)
            }
        }
    }
}
