import Fakes
import Glibc
import Postgres
import TestSupport
import Testing

/// Workers of their own processes, and a service for texts.
@Suite struct NoticeWorkerTests {
    @Test func `an alarm outlives the worker that was sending it`() async throws {
        try await withDatabase(.movableClock) { database in
            let owner = try await database.connect()
            let fake = try FakePush { _, number in
                number == 1 ? PushAnswer(reaction: .keepSilent) : PushAnswer(200, #"{"id": "x"}"#)
            }
            defer { fake.stop() }
            let environment = ["MILLRACE_SMS_URL": "\(fake.url)/{{channel}}"]
            let first = try await MillraceProcess.worker("one", database: database.url, environment: environment)
            try await owner.run(
                #"select millrace.notice_put('ada', 'alarm.raised', 'sms', '+4930123456', '{"name": "Ben"}', 'a', millrace.now(), null, true)"#
            )
            try await eventually("the first worker is sending") { fake.requests.count == 1 }
            first.signal(SIGKILL)
            _ = try await first.ended()
            let second = try await MillraceProcess.worker("two", database: database.url, environment: environment)
            try await owner.run("select millrace.test_clock_advance('31 seconds')")
            try await eventually("the second has sent it") {
                try await owner.bool("select status = 'accepted' from millrace.notices")
            }
            #expect(try await owner.value("select duplicates || ' ' || attempts from millrace.notices") == "1 2")
            #expect(fake.requests.count == 2)
            #expect(fake.requests[0]["idempotency-key"] == fake.requests[1]["idempotency-key"])
            #expect(fake.requests[1].body.contains("Ben may need help"))
            second.signal(SIGTERM)
            #expect(try await second.ended() == 0)
            await owner.close()
        }
    }

    @Test func `words that an operator has published are sent, and the usual ones where those cannot be rendered`()
        async throws
    {
        try await withDatabase { database in
            let owner = try await database.connect()
            let fake = try FakePush { _, _ in PushAnswer(200, #"{"id": "x"}"#) }
            defer { fake.stop() }
            try await owner.run(
                #"""
                select millrace.template_publish('notice.alarm.raised', 'Help for {{name}}', null, 'Look after {{name}} now{{#stage}}, {{stage}}{{/stage}}.',
                    '{"name": {"type": "text", "required": true}, "stage": {"type": "text"}}');
                select millrace.template_publish('notice.alarm.raised', 'Hilfe', null, '{{name}} braucht dich.', '{"name": {"type": "text", "required": true}}', 'de');
                select millrace.notice_preferences('eva', 'UTC', '0:00', '0:00', '{}', 'de');
                """#)
            let worker = try await MillraceProcess.worker(
                "one", database: database.url, environment: ["MILLRACE_SMS_URL": "\(fake.url)/{{channel}}"])
            func put(_ person: String, _ data: String, key: String) async throws -> String {
                let before = fake.requests.count
                try await owner.run(
                    "select millrace.notice_put('\(person)', 'alarm.raised', 'sms', '+4930123456', '\(data)', '\(key)', millrace.now(), null, true)"
                )
                try await eventually("it is sent") { fake.requests.count == before + 1 }
                return fake.requests[before].body
            }
            // The data's own words are replaced as well: those of an alarm always have some.
            let own = try await put("ada", #"{"name": "Ben", "title": "T", "body": "B", "stage": "please"}"#, key: "a")
            #expect(own.contains("Help for Ben\\nLook after Ben now, please."), "\(own)")
            #expect(try await put("eva", #"{"name": "Ben"}"#, key: "b").contains(#"Hilfe\nBen braucht dich."#))
            // The template's data are missing.
            #expect(try await put("ada", #"{"title": "T", "body": "B"}"#, key: "c").contains(#"T\nB"#))
            try await eventually("the worker says so; it says: \(worker.output)") {
                worker.output.contains("sending the built-in words")
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await owner.close()
        }
    }

    @Test
    func
        `an alarm by mail leaves the worker as a file when there is no service, and a worker may be told to send none`()
        async throws
    {
        try await withDatabase { database in
            let owner = try await database.connect()
            let silent = try await MillraceProcess.worker("none", database: database.url, ["--no-notices"])
            try await owner.run(
                "select millrace.notice_put('ada', 'alarm.raised', 'mail', 'ada@example.org', '{}', 'a', millrace.now(), null, true)"
            )
            let outbox = "/tmp/millrace-notices-\(getpid())"
            let worker = try await MillraceProcess.worker(
                "one", database: database.url, environment: ["MILLRACE_MAIL_OUTBOX": outbox])
            try await eventually("the mail was sent") {
                try await owner.bool(
                    "select coalesce(bool_and(status = 'accepted'), false) from millrace.mail_messages")
            }
            #expect(try await owner.value("select status || ' ' || provider from millrace.notices") == "accepted mail")
            #expect(try await owner.value("select purpose || ' ' || on_unknown from millrace.mail") == "alarm again")
            for process in [silent, worker] {
                process.signal(SIGTERM)
                #expect(try await process.ended() == 0)
            }
            _ = system("rm -rf \(outbox)")
            await owner.close()
        }
    }
}
