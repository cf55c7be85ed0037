import Foundation
import TestSupport
import Testing

@testable import Console

/// Forms in which somebody writes: other arguments for a dead job, a signal, a schedule.
@Suite(.timeLimit(.minutes(10))) struct WorkbenchTests {
    private func press(
        _ action: String, _ form: [(String, String)], _ world: ConsoleWorld
    ) async throws -> RawAnswer {
        try await world.post("/console/act/\(action)", form + [("form_token", try await world.formToken())])
    }

    private func args(of job: String, _ world: ConsoleWorld) async throws -> String? {
        try await world.connection.value("select args from millrace.job where id = \(job)")
    }

    // MARK: arguments

    @Test func `a dead job gets other arguments, what is hidden stays, and the audit has old and new`() async throws {
        try await ConsoleWorld.with { world in
            let job = try await world.job("dead")
            let page = try await world.get("/console/jobs/\(job)").body
            #expect(page.contains("href=\"/console/jobs/\(job)/edit\""))
            let edit = try await world.get("/console/jobs/\(job)/edit").body
            #expect(edit.contains("the printer") && edit.contains("[redacted]") && !edit.contains("hunter2"))
            let given = #"{"customer": "c-new", "card": "[redacted]", "password": "[redacted]", "pages": [1, 2]}"#
            let answer = try await press("job.edit", [("id", job), ("args", given), ("fresh", "do all again")], world)
            #expect(answer.header("Location") == "/console/jobs/\(job)?said=done", "\(answer.body.suffix(900))")
            #expect(
                try await world.connection.bool(
                    """
                    select args = '{"customer": "c-new", "card": {"number": "4111111111111111"}, "password": "hunter2", "pages": [1, 2]}'
                      from millrace.job where id = \(job)
                    """))
            #expect(try await world.connection.value("select state from millrace.jobs where id = \(job)") == "ready")
            #expect(try await world.connection.int("select count(*) from millrace.step where job = \(job)") == 0)
            let row = try await world.connection.value(
                "select detail::text from millrace.audit where action = 'job.edit' and object = '\(job)'")
            #expect(row?.contains(#""at": "customer""#) == true && row?.contains("c-new") == true, "\(row ?? "")")
            #expect(row?.contains("hunter2") == false && row?.contains("4111") == false)
            // It can be found by what it has now, and no longer by what it had.
            let found = try await world.get("/console/jobs?state=ready&kind=report.build&field=customer&value=c-new")
            #expect(found.body.contains("/console/jobs/\(job)\""))
        }
    }

    /// What stands in the form, and what the answer says.
    private static let refused: [(args: String, sentence: String)] = [
        ("{\"customer\": ", "cannot be read as JSON: line 1"),
        (#"{"customer": "a", "customer": "b"}"#, "a key appears twice"),
        (#"{"customer": "a\u0000b"}"#, "cannot be read as JSON"),
        (#"{"customer": "x", "card": "4222", "password": "[redacted]"}"#, "the value at card is hidden"),
        (#"{"customer": "x", "card": "[redacted]"}"#, "the value at password is hidden"),
        (#"{"customer": "[redacted]", "card": "[redacted]", "password": "[redacted]"}"#, "where nothing was hidden"),
        (#"{"api_key": "x", "card": "[redacted]", "password": "[redacted]"}"#, "a rule hides a value"),
        (#"["x"]"#, "the object has hidden values"),
        (#"{"$millrace": "sealed"}"#, "args has a field $millrace"),
        (#"{"$millrace": "sealed", "v": 1, "key": "k", "data": "AAAA"}"#, "the arguments are not encrypted"),
        ("", "args is missing"),
    ]

    @Test func `what the form cannot take is said, and what was written stays in it`() async throws {
        try await ConsoleWorld.with { world in
            let job = try await world.job("dead")
            let before = try await args(of: job, world)
            for one in Self.refused {
                let answer = try await press("job.edit", [("id", job), ("args", one.args), ("fresh", "keep")], world)
                let shown = answer.body.replacing("&quot;", with: "\"")
                #expect(answer.status == 400 && shown.contains(one.sentence), "\(one.args): \(answer.body.suffix(900))")
                #expect(
                    shown.contains(">\(one.args)</textarea>") && shown.contains("<option selected>keep"), "\(shown)")
                #expect(shown.contains("class=\"act wide\""))
            }
            let large = "{\"a\": \"\(String(repeating: "x", count: 300_000))\"}"
            // The connection may end before the form has been sent.
            let refused = try await press("job.edit", [("id", job), ("args", large)], world)
            #expect([0, 413].contains(refused.status))
            #expect(try await args(of: job, world) == before)
            #expect(try await world.connection.value("select state from millrace.jobs where id = \(job)") == "dead")
        }
    }

    @Test func `of those who press at once one edits, and the others are told that the job is no longer dead`()
        async throws
    {
        try await ConsoleWorld.with { world in
            let job = try await world.job("dead")
            let token = try await world.formToken()
            let statuses = try await withThrowingTaskGroup(of: (Int, String).self) { group in
                for n in 1...4 {
                    group.addTask {
                        let answer = try await world.post(
                            "/console/act/job.edit",
                            [
                                ("form_token", token), ("id", job),
                                ("args", "{\"n\": \(n), \"card\": \"[redacted]\", \"password\": \"[redacted]\"}"),
                            ])
                        return (answer.status, answer.body)
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses.count { $0.0 == 303 } == 1, "\(statuses.map(\.0))")
            #expect(statuses.count { $0.0 == 409 && $0.1.contains("neither dead nor cancelled") } == 3)
            #expect(
                try await world.connection.int(
                    "select count(*) from millrace.audit where action = 'job.edit' and object = '\(job)'") == 1)
        }
    }

    @Test func `there is no form for a job that runs, for sealed arguments, and for who is no admin`() async throws {
        try await ConsoleWorld.with { world in
            let running = try await world.job("running")
            let sealed = try #require(
                try await world.connection.value("select min(id) from millrace.job where args ? '$millrace'"))
            let going = try await world.get("/console/jobs/\(running)/edit").body
            #expect(going.contains("is running. Only a dead or cancelled job") && !going.contains("<textarea"))
            try await world.connection.run("select millrace.cancel(\(sealed))")
            let page = try await world.get("/console/jobs/\(sealed)/edit").body
            #expect(page.contains("sealed with the key k1") && !page.contains("<textarea"))
            let answer = try await press("job.edit", [("id", sealed), ("args", "{}")], world)
            #expect(answer.status == 400 && answer.body.contains("the arguments are encrypted, and these are not"))
            #expect(try await world.get("/console/jobs/99999999/edit").status == 404)
        }
        try await ConsoleWorld.with({ $0.access.localRole = .operator }) { world in
            let job = try await world.job("dead")
            let page = try await world.get("/console/jobs/\(job)/edit").body
            #expect(page.contains("Only an admin may change the arguments") && !page.contains("<textarea"))
            #expect(try await !world.get("/console/jobs/\(job)").body.contains("/edit\""))
        }
    }

    // MARK: signals

    @Test func `a waiting job gets its signal, another that waits for the same waits on, and a stale form is refused`()
        async throws
    {
        try await ConsoleWorld.with { world in
            let job = try await world.signalled()
            // Another, which has waited for longer.
            try await world.connection.run(
                """
                insert into millrace.timer (job, due, queue, kind, lane, attempt, crashes)
                select millrace.enqueue('order.pay'), now() + interval '2 days', t.queue, t.kind, t.lane, 0, 0 from millrace.timer t where t.job = \(job);
                delete from millrace.ready r using millrace.timer t where r.job = t.job;
                insert into millrace.wait (job, step, what, name, key, since, due, place, attempt, crashes)
                select t.job, w.step, 2, w.name, w.key, w.since - interval '1 day', t.due, t.due, 0, 0
                  from millrace.timer t, millrace.wait w where w.job = \(job) and t.due > now() + interval '36 hours'
                """)
            let page = try await world.get("/console/jobs/\(job)").body
            #expect(page.contains("value=\"paid\"") && page.contains("With the key order-7. Only this job hears it."))
            let form = [("id", job), ("step", "await payment"), ("back", "/console/jobs/\(job)")]
            for (name, payload, status, sentence) in [
                ("other", "7", 409, "for the signal"), ("paid", "{", 400, "the payload cannot be read as JSON"),
                ("paid", "\"\(String(repeating: "x", count: 70_000))\"", 413, "more than the 65536 bytes"),
            ] {
                let answer = try await press("job.signal", form + [("name", name), ("payload", payload)], world)
                let shown = answer.body.replacing("&quot;", with: "\"")
                #expect(answer.status == status && shown.contains(sentence), "\(answer.status) \(shown.suffix(900))")
                #expect(shown.contains(">\(payload)</textarea>"), "what was written stays")
            }
            let sent = form + [("name", "paid"), ("payload", "{\"sum\": 12.50}")]
            let first = try await press("job.signal", sent, world)
            #expect(first.header("Location") == "/console/jobs/\(job)?said=done", "\(first.body.suffix(900))")
            let second = try await press("job.signal", sent, world)
            #expect(second.status == 409 && second.body.contains("is not waiting for a signal"))
            #expect(
                try await world.connection.column("select value from millrace.step where job = \(job)")
                    == [#"{"value": {"sum": 12.50}}"#])
            #expect(try await world.connection.int("select count(*) from millrace.wait where what = 2") == 1)
            #expect(
                try await world.connection.column(
                    "select detail::text from millrace.audit where action = 'job.signal' and object = '\(job)'"
                ) == [#"{"name": "paid", "step": "await payment", "bytes": 14}"#])
            #expect(try await !world.get("/console/jobs/\(job)").body.contains("id=\"signal\""))
        }
    }
}
