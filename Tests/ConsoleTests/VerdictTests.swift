import Foundation
import TestSupport
import Testing

@testable import Console

/// The overview's verdict: since when, why, and what to press. And what one can do without script.
@Suite(.timeLimit(.minutes(10))) struct VerdictTests {
    private static func count(_ text: String, in page: String) -> Int { page.components(separatedBy: text).count - 1 }

    @Test func `many findings of one sort are one, at most five are shown, and a press resumes a queue`() async throws {
        try await ConsoleWorld.with { world in
            try await world.connection.run(
                """
                select millrace.enqueue('image.resize', queue => 'paused-' || n) from generate_series(1, 45) n;
                select millrace.pause('paused-' || n) from generate_series(1, 45) n
                """)
            let page = try await world.get("/console").body
            let verdict = try #require(
                page.components(separatedBy: "<section class=\"verdict").last?.components(separatedBy: "</section>")
                    .first)
            #expect((1...5).contains(Self.count("<li class=\"finding", in: verdict)), "\(verdict)")
            #expect(verdict.contains("46 paused queues have waiting jobs, the longest for "))
            #expect(verdict.contains("· began <time datetime="))
            #expect(!verdict.contains("millrace queues resume") && !verdict.contains("run: "), "no wall of commands")
            let all = try #require(verdict.firstMatch(of: /All ([0-9,]+) findings, with what to run/))
            #expect((Int(all.1.replacing(",", with: "")) ?? 0) > 46)
            let button = try #require(verdict.firstMatch(of: /<button>Resume ([a-z0-9-]+)<\/button>/))
            let token = try await world.formToken()
            let answer = try await world.post(
                "/console/act/queue.resume", [("form_token", token), ("queue", String(button.1)), ("back", "/console")])
            #expect(answer.status == 303)
            #expect(
                try await world.connection.bool(
                    "select paused_at is null from millrace.queue where name = '\(button.1)' and main is null"))

            let whole = try await world.get("/console/findings").body
            #expect(whole.contains("paused-45 has been paused") || whole.contains("paused-44 has been paused"))
            #expect(Self.count("has been paused", in: whole) >= 44)
            #expect(whole.contains("millrace queues resume") && whole.contains("On the command line"))
        }
    }

    @Test func `also what is shown whole leads to its commands`() async throws {
        let finding = VerdictFinding(
            isCritical: true, sentence: "no worker is running",
            items: [.init(sentence: "no worker is running", subject: nil, command: "systemctl start millrace")])
        func shown(_ findings: [VerdictFinding], most: Int?) -> String {
            "\(VerdictPart(word: "CRITICAL", tone: "bad", findings: findings, most: most).value(token: "", back: ""))"
        }
        #expect(shown([finding], most: 5).contains("What to run on the command line"))
        #expect(!shown([], most: 5).contains("What to run"))
        #expect(!shown([finding], most: nil).contains("What to run"))
    }

    @Test func `who may only read sees no buttons`() async throws {
        try await ConsoleWorld.with({ $0.access.localRole = .viewer }) { world in
            let page = try await world.get("/console").body
            #expect(page.contains("slow has been paused") && !page.contains("act/queue.resume"))
        }
    }

    @Test func `without script a deletion is asked once more, on a page of its own`() async throws {
        try await ConsoleWorld.with { world in
            let (token, job) = (try await world.formToken(), try await world.job("dead"))
            let form = [("form_token", token), ("id", job), ("back", "/console/jobs/\(job)")]
            let asked = try await world.post("/console/act/job.delete", form)
            #expect(asked.status == 200 && asked.body.contains("Delete job \(job) for good"), "\(asked.body)")
            #expect(asked.body.contains("href=\"/console/jobs/\(job)\""), "one can go back")
            #expect(try await world.connection.bool("select exists (select from millrace.jobs where id = \(job))"))
            let done = try await world.post("/console/act/job.delete", form + [("sure", "yes")])
            #expect(done.status == 303)
            #expect(try await world.connection.bool("select not exists (select from millrace.jobs where id = \(job))"))
        }
    }

    @Test func `a search that cannot be made keeps what was asked for`() async throws {
        try await ConsoleWorld.with { world in
            for query in [
                "state=dead&kind=report.build&queue=reports&field=nope&value=seven",
                "state=dead&queue=reports&field=customer&value=seven",
                "state=dead&queue=reports&value=seven&since=soon",
            ] {
                let answer = try await world.get("/console/jobs?\(query)")
                #expect(answer.status == 400, "\(query)")
                #expect(
                    answer.body.contains("value=\"reports\"") && answer.body.contains("value=\"seven\""),
                    "\(answer.body)")
                #expect(answer.body.contains("class=\"said bad\""))
            }
        }
    }

    @Test func `an operation shows how far it is while it runs, and comes again at its end`() async throws {
        try await ConsoleWorld.with { world in
            try await world.connection.run(
                "select millrace.operation_stop(id) from millrace.operation where state = 'running'")
            try await world.connection.run(
                "select millrace.enqueue('image.resize', queue => 'many') from generate_series(1, 10)")
            let operation = try await world.connection.int(
                "select millrace.operation_start('cancel', '{\"queue\": \"many\"}')")
            let page = try await world.get("/console/operations/\(operation)").body
            #expect(page.contains("<progress") && page.contains("data-live-value=\"operation.\(operation).percent\""))
            #expect(page.contains("data-live-topic=\"operation:\(operation):running\""))
            let reader = try EventReader(world, topic: "operation:\(operation):running")
            let begin = try #require(await reader.next())
            #expect(
                begin.texts["operation.\(operation).percent"] == "0"
                    && begin.texts["operation.\(operation).says"] == "0 of 10")
            try await world.connection.run("select millrace.operation_step(\(operation), most => 4)")
            let next = try #require(await reader.next(with: "operation.\(operation).percent"))
            #expect(
                next.texts["operation.\(operation).percent"] == "40"
                    && next.texts["operation.\(operation).says"] == "4 of 10")
            #expect(next.texts.keys.allSatisfy { $0 == "verdict" || $0.hasPrefix("operation.\(operation).") })
            while try await world.connection.value(
                "select operation from millrace.operation_step(\(operation)) where wait is not null") != nil
            {}
            var last = await reader.next()
            while let event = last, event.name != "reload" { last = await reader.next() }
            #expect(last?.data == "finished")
            #expect(try await !world.get("/console/operations/\(operation)").body.contains("<progress"))
        }
    }

    @Test func `encrypted arguments say so, and large ones are folded`() async throws {
        try await ConsoleWorld.with { world in
            let sealed = try #require(
                try await world.connection.value(
                    "select id from millrace.job where args ->> '$millrace' = 'sealed' order by id limit 1"))
            let page = try await world.get("/console/jobs/\(sealed)").body
            #expect(page.contains("They are sealed: encrypted with the key k1") && !page.contains("c2VjcmV0"))
            let large = try await world.connection.int(
                "select millrace.enqueue('image.resize', jsonb_build_object('names', array(select 'n' || i from generate_series(1, 2000) i)))"
            )
            let other = try await world.get("/console/jobs/\(large)").body
            #expect(other.contains("<details class=\"folded\"><summary>Arguments, "))
            let small = try await world.job("dead")
            #expect(try await !world.get("/console/jobs/\(small)").body.contains("class=\"folded\""))
        }
    }

    @Test func `pages are compressed where that is taken, and not for another site's request`() async throws {
        try await ConsoleWorld.with { world in
            for (headers, isPacked) in [
                ([("Accept-Encoding", "gzip, br")], true),
                ([("Accept-Encoding", "gzip"), ("Sec-Fetch-Site", "none")], true),
                ([], false), ([("Accept-Encoding", "br, gzip;q=0")], false),
                ([("Accept-Encoding", "gzip"), ("Sec-Fetch-Site", "cross-site")], false),
            ] as [([(String, String)], Bool)] {
                let answer = try await world.get("/console/jobs", headers)
                #expect((answer.header("Content-Encoding") == "gzip") == isPacked, "\(headers)")
                #expect(answer.status == 200 && answer.body.contains("<html") != isPacked)
                if isPacked { #expect(answer.header("Vary") == "Accept-Encoding") }
                let style = try await world.get("/console/console.css", headers)
                #expect((style.header("Content-Encoding") == "gzip") == headers.contains { $0.1.hasPrefix("gzip") })
            }
        }
    }
}
