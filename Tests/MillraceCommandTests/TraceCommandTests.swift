import MillraceJobs
import MillraceQueues
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

@Suite struct TraceCommandTests {
    @Test func `a job's steps, result, progress and last lines are shown, and its log is printed`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await withWorker(at: url) {
                let awaited = await millrace(
                    "enqueue", "practice.steps", "{\"steps\": 7, \"ms\": 1}", "--wait", "--timeout", "30s",
                    "--database-url", url)
                #expect(awaited.code == .done, "\(awaited.errors)")
                let id = String(awaited.output.dropLast())
                #expect(Int(id) != nil && awaited.output.hasSuffix("\n"), "the id alone: \(awaited.output)")
                let told = awaited.errors.split(separator: "\n").map(String.init)
                // On a busy machine a line before says what it waits for.
                #expect(told.dropLast().last?.contains("succeeded") == true, "\(told)")
                #expect(try told.last.map { try JSONValue.read($0) }?["sum"]?.integer == 28)
                let shown = await millrace("jobs", "show", id, "--database-url", url).output
                for part in [
                    "progress      100 %, done", "result\n", "\"sum\": 28", "steps\n  step-1  attempt 1",
                    "log, the last of 7 lines\n", "step 7 runs",
                ] { #expect(shown.contains(part), "\(part) in: \(shown)") }
                #expect(!shown.contains("step 2 runs") && shown.contains("step 3 runs"))
                let json = try JSONValue.read(
                    await millrace("jobs", "show", id, "--json", "--database-url", url).output)
                #expect(json["result"]?["sum"]?.integer == 28 && json["progress"]?["stage"]?.text == "done")
                guard case .array(let steps)? = json["steps"], case .array(let log)? = json["log"] else {
                    Issue.record("no lists in \(json)")
                    return
                }
                #expect(steps.count == 7 && steps[2]["value"]?.integer == 3 && log.count == Traces.lastLines)
                let logs = await millrace("jobs", "logs", id, "--jsonl", "--database-url", url)
                let texts = try logs.output.split(separator: "\n").map { try JSONValue.read(String($0))["text"]?.text }
                #expect(texts == (1...7).map { "step \($0) runs" })
                let waited = await millrace(
                    "enqueue", "practice.steps", "{\"steps\": 1, \"ms\": 1}", "--wait", "--json", "--database-url", url)
                #expect(try JSONValue.read(waited.output)["job"]?["result"]?["sum"]?.integer == 1)
                let dead = await millrace(
                    "enqueue", "practice.steps", "{\"steps\": 0}", "--wait", "--database-url", url)
                #expect(dead.code == .jobDied && dead.errors.contains("steps must be 1 to 1000"))
            }
        }
    }

    @Test func `a log is followed to the end of its job, or to the timeout`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await withWorker(at: url) {
                let id = await millrace(
                    "enqueue", "practice.steps", "{\"steps\": 3, \"ms\": 50}", "--database-url", url
                )
                .output.split(separator: "\n").joined()
                let followed = await millrace("jobs", "logs", id, "--follow", "--database-url", url)
                #expect(followed.code == .done)
                #expect(followed.output.split(separator: "\n").count == 3, "\(followed.output)")
                let json = try JSONValue.read(
                    await millrace("jobs", "logs", id, "--follow", "--json", "--database-url", url).output)
                guard case .array(let lines)? = json["lines"] else {
                    Issue.record("no lines in \(json)")
                    return
                }
                #expect(lines.count == 3 && json["version"]?.integer == 1)
            }
            let waits = await millrace("enqueue", "a.b", "--json", "--database-url", url)
            let id = try #require(try JSONValue.read(waits.output)["id"]?.integer)
            let late = await millrace("jobs", "logs", "\(id)", "-f", "--timeout", "1ms", "--database-url", url)
            #expect(late.code == .timedOut)
            let none = await millrace("jobs", "logs", "\(id)", "--database-url", url)
            #expect(none.code == .done && none.errors.contains("has logged nothing") && none.output.isEmpty)
            #expect(await millrace("jobs", "logs", "4242", "--database-url", url).code == .notFound)
        }
    }

    @Test func `lines that were cut are counted, and what a line says moves no cursor`() async throws {
        try await withDatabase { database in
            let id = await millrace("enqueue", "a.b", "--database-url", database.url).output
                .split(separator: "\n").joined()
            try await database.change(
                """
                insert into millrace.log_line (job, n, at, level, session, number, attempt, line)
                values (\(id), 57, now(), 3, 1, 9, 2, E'red \\x1b[31m alert')
                """)
            let logs = await millrace("jobs", "logs", id, "--database-url", database.url)
            #expect(logs.errors.contains("… 56 lines before these were cut"))
            #expect(logs.output.contains("attempt 2 error") && !logs.output.contains("\u{1b}"), "\(logs.output)")
        }
    }

    @Test func `what a job has published is printed from a number on, and its state is shown`() async throws {
        try await withDatabase { database in
            let url = database.url
            let id = await millrace("enqueue", "a.b", "--database-url", url).output.split(separator: "\n").joined()
            let none = await millrace("jobs", "tail", id, "--database-url", url)
            #expect(none.code == .done && none.errors.contains("has published nothing") && none.output.isEmpty)
            try await database.change(
                """
                insert into millrace.output (job, state, state_attempt, state_at, last) values (\(id), '{"pages": 7, "token": "t"}', 1, now(), 600);
                insert into millrace.published (job, n, key, value, session, number, attempt, at)
                select \(id), n, case n when 2 then 'two' end, to_jsonb(n), 1, 9, 1, now() from generate_series(1, 600) n
                """)
            let all = await millrace("jobs", "tail", id, "--jsonl", "--database-url", url)
            let numbers = try all.output.split(separator: "\n").map {
                try JSONValue.read(String($0))["number"]?.integer
            }
            #expect(numbers == (1...600).map { $0 })
            let some = await millrace("jobs", "tail", id, "--from", "599", "--json", "--database-url", url)
            guard case .array(let values)? = try JSONValue.read(some.output)["values"] else {
                Issue.record("no values in \(some.output)")
                return
            }
            #expect(values.map { $0["value"]?.integer } == [599, 600])
            let shown = await millrace("jobs", "show", id, "--database-url", url).output
            #expect(shown.contains("given state\n  {") && shown.contains("published  600 values"), "\(shown)")
            let json = try JSONValue.read(
                await millrace("jobs", "show", id, "--redacted", "--json", "--database-url", url).output)
            #expect(json["state_value"]?["pages"]?.integer == 7 && json["state_value"]?["token"]?.text == "[redacted]")
            #expect(json["published"]?.integer == 600)
            let late = await millrace("jobs", "tail", id, "-f", "--timeout", "1ms", "--database-url", url)
            #expect(late.code == .timedOut)
            #expect(await millrace("jobs", "tail", "4242", "--database-url", url).code == .notFound)
        }
    }

    @Test func `a fresh retry forgets the steps`() async throws {
        try await withDatabase { database in
            let url = database.url
            let id = await millrace("enqueue", "a.b", "--database-url", url).output.split(separator: "\n").joined()
            let record =
                "insert into millrace.step (job, name, value, session, number, attempt, at) values (\(id), 'one', '1', 1, 9, 1, now())"
            try await database.change(record)
            _ = await millrace("jobs", "cancel", id, "--database-url", url)
            #expect(await millrace("jobs", "retry", id, "--database-url", url).code == .done)
            #expect(await millrace("jobs", "show", id, "--database-url", url).output.contains("steps\n  one"))
            _ = await millrace("jobs", "cancel", id, "--database-url", url)
            #expect(await millrace("jobs", "retry", id, "--fresh", "--database-url", url).code == .done)
            #expect(await !millrace("jobs", "show", id, "--database-url", url).output.contains("steps"))
        }
    }

    @Test func `progress is a sentence of what is known`() {
        #expect(JobProgress(fraction: 0.4, stage: "ocr", note: "page 3 of 7").sentence == "40 %, ocr: page 3 of 7")
        #expect(JobProgress(stage: "ocr").sentence == "ocr")
        #expect(JobProgress(fraction: 1).sentence == "100 %")
    }
}
