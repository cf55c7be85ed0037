import MillraceWorker
import Postgres
import TestSupport
import Testing

/// Jobs of the kind `template.render`.
@Suite struct TemplateJobTests {
    private static func withWorker(_ body: (Connection) async throws -> Void) async throws {
        try await withDatabase { database in
            var options = CompleteWorker.Options(settings: ["MILLRACE_MAIL_OUTBOX": "/tmp/never"])
            options.readsEnvironment = false
            options.database = .url(database.url)
            options.listen = "off"
            options.slots = 4
            options.rooms = [.mail]
            options.log = .silent
            let worker = try CompleteWorker(options)
            let running = Task { try await worker.run(handlesSignals: false) }
            let connection = try await database.connect()
            let outcome: Result<Void, any Error>
            do {
                outcome = .success(try await body(connection))
            } catch {
                outcome = .failure(error)
            }
            running.cancel()
            _ = try await running.value
            await connection.close()
            try outcome.get()
        }
    }

    private static func ended(_ job: Int, on connection: Connection) async throws -> [String?] {
        try await eventually("job \(job) has ended") {
            try await ["succeeded", "dead"].contains(
                connection.value("select state from millrace.jobs where id = \(job)") ?? "")
        }
        return [
            try await connection.value("select state from millrace.jobs where id = \(job)"),
            try await connection.value("select attempt from millrace.jobs where id = \(job)"),
            try await connection.value("select errors -> -1 ->> 'error' from millrace.job(\(job))"),
        ]
    }

    @Test func `a worker renders what is built in and what is published, and the job keeps what came of it`()
        async throws
    {
        try await Self.withWorker { connection in
            let built = try await connection.int(
                """
                select millrace.template_render('welcome', '{"app_name": "Shop", "user_name": "Ada", "other": 7}', 'de-AT')
                """)
            #expect(try await Self.ended(built, on: connection)[0] == "succeeded")
            let result = "select result from millrace.jobs where id = \(built)"
            #expect(
                try await connection.column(
                    "select k from jsonb_object_keys((\(result))) k order by k collate \"C\"")
                    == ["html", "locale", "subject", "template", "text", "version"])
            #expect(
                try await connection.bool(
                    """
                    select r ->> 'template' = 'welcome' and r ->> 'locale' = 'de' and r -> 'version' = '0' and r ->> 'text' like '%Ada%'
                           and r ->> 'subject' like '%Shop%' and r ->> 'html' like '%Ada%' from (\(result)) x(r)
                    """))
            // Published, and of text alone. It is not live yet: the worker checks it first.
            try await connection.run(
                """
                select millrace.template_publish('bill', 'Bill {{number}}', null, 'Pay {{number}}!', '{"number": {"required": true}}')
                """)
            let own = try await connection.int("select millrace.template_render('bill', '{\"number\": \"4711\"}')")
            #expect(try await Self.ended(own, on: connection)[0] == "succeeded")
            #expect(
                try await connection.bool(
                    """
                    select result = '{"template": "bill", "locale": "en", "version": 1, "subject": "Bill 4711", "text": "Pay 4711!", "html": null}'
                      from millrace.jobs where id = \(own)
                    """))
        }
    }

    @Test func `what can never be rendered is dead after one run, and says why`() async throws {
        try await Self.withWorker { connection in
            for (args, reason) in [
                (#"{"template": "nosuch", "data": {}}"#, "template nosuch: no version of that name can be used"),
                (#"{"template": "welcome", "data": {"app_name": "Shop"}}"#, "template welcome: the variable user_name"),
                (#"{"template": "welcome", "data": []}"#, "template welcome: the data are not an object"),
                (#"{"data": {}}"#, "the arguments name no template"),
                (#"{"template": "welcome", "locale": 7}"#, "the locale is not a text"),
                (#"{"template": "welcome", "to": "a"}"#, "the arguments have more than template, locale and data"),
                ("[]", "the arguments are not an object"),
            ] {
                let job = try await connection.int("select millrace.enqueue('template.render', '\(args)')")
                let ended = try await Self.ended(job, on: connection)
                #expect(ended[0] == "dead" && ended[1] == "1", "\(ended)")
                #expect(ended[2]?.contains(reason) == true, "\(ended)")
            }
        }
    }

    @Test func `what cannot be rendered is refused when it is handed in`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.template_publish('bill', 'S', null, 'T {{number}}', '{"number": {"required": true}, "note": {}}')
                """)
            let accepted = try await connection.int("select millrace.template_render('bill', '{\"number\": 1}')")
            #expect(
                try await connection.value("select kind from millrace.jobs where id = \(accepted)") == "template.render"
            )
            for (call, state, sentence) in [
                ("'nosuch'", "P0002", "there is no template nosuch"),
                ("'bill'", "22023", "the template bill requires number"),
                (#"'bill', '{"number": " ", "note": "x"}'"#, "22023", "the template bill requires number"),
                ("'welcome', '{}'", "22023", "the template welcome requires app_name, user_name"),
                ("'bill', '[1]'", "22023", "data is not a JSON object"),
                ("'bill', null", "22023", "data is not a JSON object"),
                ("'Bill'", "22023", "the template's name 'Bill' is malformed"),
                (#"'bill', '{"number": 1}', 'German'"#, "22023", "the locale 'German' is malformed"),
                (
                    "'bill', jsonb_build_object('number', repeat('x', 262145))", "53400",
                    "more than the 262144 allowed"
                ),
            ] {
                let refusal = try await connection.refusal(of: "select millrace.template_render(\(call))")
                #expect(refusal?.sqlState == state, "\(call)")
                #expect(refusal?.message.contains(sentence) == true, "\(call): \(refusal?.message ?? "-")")
            }
            #expect(try await connection.int("select count(*) from millrace.job") == 1)
        }
    }
}
