import Foundation
import Postgres
import TestSupport
import Testing

@testable import Console

/// Selecting jobs in a list, JSON as a tree, the newest lines of a log, and failures since a build.
@Suite(.timeLimit(.minutes(10))) struct WorkListTests {
    private static let dead = "array(select id from millrace.jobs where state = 'dead' order by id)"

    @Test func `jobs are selected in a list, and an action reaches these alone`() async throws {
        try await ConsoleWorld.with { world in
            try await world.connection.run(
                "select count(*) from (select millrace.enqueue('image.resize', queue => 'mail') from generate_series(1, 4)) x"
            )
            let list = try await world.get("/console/jobs?state=ready&queue=mail&kind=image.resize").body
            let ids = try await world.connection.column(
                "select id from millrace.jobs where state = 'ready' and kind = 'image.resize' and queue = 'mail' order by id"
            )
            #expect(ids.count == 4)
            for id in ids { #expect(list.contains("form=\"pick\" name=\"id\" value=\"\(id)\"")) }
            let preview = try await world.get(
                "/console/operations/new?picked=ready&id=\(ids[0])&id=\(ids[2])&action=cancel")
            #expect(preview.body.contains("cancel would reach 2 jobs."), "\(preview.body)")
            #expect(preview.body.contains("\(ids[0]), \(ids[2])"))
            #expect(preview.body.contains("Start: cancel 2 jobs"))
            let answer = try await world.post(
                "/console/act/operation.start",
                [
                    ("form_token", try await world.formToken()), ("back", "/console/jobs"), ("action", "cancel"),
                    ("filter", "{\"ids\":[\(ids[0]),\(ids[2])]}"), ("key", "picked"),
                ], [("Origin", world.origin)])
            #expect(answer.status == 303, "\(answer.body)")
            while try await world.connection.int("select count(*) from millrace.operation where state = 'running'") > 0
            {
                try await world.connection.run("select millrace.operation_step()")
            }
            let states = try await world.connection.column(
                "select state from unnest('{\(ids.joined(separator: ","))}'::bigint[]) i, millrace.job(i) j order by i")
            #expect(states == ["cancelled", "ready", "cancelled", "ready"])
            let nothing = try await world.get("/console/operations/new?picked=ready&action=cancel")
            #expect(nothing.status == 400 && nothing.body.contains("no job is selected"))
            #expect(try await world.get("/console/operations/new?id=7x&picked=ready&action=cancel").status == 400)
        }
    }

    @Test func `who may not act has no boxes`() async throws {
        try await ConsoleWorld.with({ $0.access.localRole = .viewer }) { world in
            let list = try await world.get("/console/jobs?state=dead").body
            #expect(list.contains("/console/jobs/") && !list.contains("type=\"checkbox\""))
        }
    }

    @Test(.enabled(if: Browser.program != nil, "SKIPPED: no browser; apt-get install chromium-headless-shell"))
    func `rows are selected with the mouse and by a key, and the button takes them along`() async throws {
        try await ConsoleWorld.with { world in
            try await withBrowser { browser in
                let page = try await browser.page()
                try await page.setSize(width: 1280, height: 844, isPhone: false)
                try await page.go(to: "\(world.origin)/console/jobs?state=ready&queue=mail")
                let first = try await page.evaluate("document.querySelector('.pick').value", as: String.self)
                try await page.click("tbody tr:nth-child(1) .pick")
                _ = try await page.evaluate(
                    "['j', 'j', 'x'].forEach(key => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))) || true",
                    as: Bool.self)
                let second = try await page.evaluate(
                    "document.querySelector('tbody tr:nth-child(2) .pick').value", as: String.self)
                try await page.follow("#pick button")
                let text = try await page.text()
                #expect(
                    text.contains("would reach 2 jobs.") && text.contains("\(first), \(second)"), "\(text.prefix(800))")
            }
        }
    }

    // MARK: JSON

    @Test func `JSON folds, and its text is the JSON as it was`() throws {
        let text = """
            {
                "n": 12345678901234567890,
                "rows": [
                    {
                        "a": "x {",
                        "b": []
                    },
                    1
                ],
                "<b>": {
                    "c": null
                }
            }
            """
        let html = try #require(JSONTree.html(text))
        func plain(_ html: String) -> String {
            html.replacing(#/<[^>]*>/#, with: "").replacing("&lt;", with: "<").replacing("&gt;", with: ">")
                .replacing("&quot;", with: "\"").replacing("&amp;", with: "&")
        }
        #expect(plain(html) == text)
        #expect(html.components(separatedBy: "<details open>").count == 4, "\(html)")
        #expect(html.contains("data-count=\"2\"") && !html.contains("<b>"))
        for other in ["{}", "plain", "{\n  \"a\": 1\n}", "{\n \"a\": [\n", "[\n  {\n  }\n]\n]", ""] {
            #expect(JSONTree.html(other) == nil, "\(other)")
        }
        let long = "[\n" + (1...100).map { "  [\n    \($0)\n  ]" }.joined(separator: ",\n") + "\n]"
        let folded = try #require(JSONTree.html(long))
        #expect(!folded.contains("<details open>") && plain(folded) == long)
    }

    @Test func `arguments stand on a job's page as a tree`() async throws {
        try await ConsoleWorld.with({ $0.addition = nil }) { world in
            let id = try await world.connection.value(
                "select millrace.enqueue('work', '{\"rows\": [{\"password\": \"hunter2\", \"n\": 7}], \"name\": \"<i>\"}')"
            )
            let page = try await world.get("/console/jobs/\(try #require(id))").body
            #expect(page.contains("<div class=\"tree\" tabindex=\"0\" role=\"region\" aria-label=\"Arguments\">"))
            #expect(page.contains("<details open><summary data-count=\"1\">"))
            #expect(page.contains("[redacted]") && !page.contains("hunter2") && !page.contains("<i>"))
        }
    }

    // MARK: the log

    @Test func `the newest lines of a running job come to its page, without secrets`() async throws {
        try await ConsoleWorld.with { world in
            let job = try await world.job("running")
            let page = try await world.get("/console/jobs/\(job)").body
            #expect(page.contains("data-live=\"job.\(job).tail\""))
            let reader = try EventReader(world, topic: "job:\(job):running")
            _ = try #require(await reader.next())
            try await world.connection.run(
                "insert into millrace.log_line (job, n, at, level, session, number, attempt, line) select \(job), n, '2026-01-02 03:04:05Z', 2, 1, 33, 1, 'line ' || n || ' token=abc' from generate_series(10, 60) n"
            )
            var tail = ""
            while !tail.contains("line 60") {
                guard let event = await reader.next() else { break }
                tail = event.texts["job.\(job).tail"] ?? ""
            }
            let lines = tail.split(separator: "\n")
            #expect(lines.count == JobStory.tailed)
            #expect(lines.last == "03:04:05Z warning line 60 token=[redacted]")
            #expect(lines.first == "03:04:05Z warning line 31 token=[redacted]")
            let ended = try await world.get("/console/jobs/\(try await world.job("dead"))").body
            #expect(!ended.contains(".tail\""))
        }
    }

    // MARK: failures

    @Test func `failures are shown since a build began`() async throws {
        try await ConsoleWorld.with { world in
            let connection = world.connection
            try await connection.run(
                "update millrace.process set started_at = now() - interval '2 hours' where version like '1.4.0%'; update millrace.process set started_at = now() + interval '1 hour' where version = '1.5.0'"
            )
            let page = try await world.get("/console/failures").body
            #expect(page.contains("<option>1.5.0</option>") && page.contains("the printer # does not answer"))
            let later = try await world.get("/console/failures?build=1.5.0").body
            #expect(later.contains("Nothing has failed since then."))
            #expect(later.contains("<option selected>1.5.0</option>"))
            let before = try await world.get("/console/failures?build=1.4.0").body
            #expect(before.contains("the printer # does not answer"))
            #expect(before.contains("Retry all jobs that died since then") && !before.contains("name=\"build\" value"))
            #expect(try await world.get("/console/failures?build=9").status == 400)
        }
    }
}
