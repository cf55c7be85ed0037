import Faults
import Postgres
import Supervision
import Templates
import TestSupport
import Testing
import Transfers

@testable import Mail

@Suite struct SendTests {
    @Test func `what could break out of its place is refused, with the field and a class`() async throws {
        try await withMail { bench in
            func refusal(_ call: String) async throws -> PostgresError.ServerError? {
                try await bench.connection.refusal(of: "select millrace.\(call)")
            }
            for address in [
                #"a@b.example\r\nBcc: eve@example.org"#, #"a@b.example\n"#, "a@b.example>,<eve@example.org", "<>",
                "a b@c.example",
                "a@b@c.example", "a@", "@b", "a@b..c", "eve@example.org <ada@example.org>", #"A\u202e <a@b.example>"#,
                #"a@b.example\x01"#,
                "a@b.example, c@d.example", #"A\\" <a@b.example>"#, "",
            ] {
                for field in ["recipients", "cc", "bcc"] {
                    let call =
                        field == "recipients"
                        ? "mail_send(array[E'\(address)'], 's', 't')"
                        : "mail_send(array['a@b.example'], 's', 't', \(field) => array[E'\(address)'])"
                    let error = try await refusal(call)
                    #expect(
                        error?.sqlState == "22023" && error?.detail?.contains(#""field" : "\#(field)""#) == true,
                        "\(call)")
                }
                #expect(
                    try await refusal("mail_send(array['a@b.example'], 's', 't', reply_to => E'\(address)')") != nil)
                #expect(try await refusal("mail_welcome(E'\(address)', 'x')") != nil)
                #expect(try await refusal("mail_suppress(E'\(address)', 'x')") != nil)
            }
            for more in [
                #"'a\r\nBcc: eve@example.org', 't'"#, "'', 't'", "'s'", "'s', 't', template => 'welcome'",
                "null, null, template => E'a\\nb'",
                #"'s', 't', headers => '{"X-A": "1\r\nBcc: eve@example.org"}'"#,
                #"'s', 't', headers => '{"X A": "1"}'"#,
                #"'s', 't', headers => '{"bcc": "eve@example.org"}'"#, #"'s', 't', headers => '{"Content-Type": "x"}'"#,
                "'s', 't', headers => '[]'",
                #"'s', 't', tags => '{"a b": "c"}'"#, #"'s', 't', tags => '["a b"]'"#, "'s', 't', priority => 'asap'",
                "'s', 't', purpose => 'spam'",
                "'s', 't', on_unknown => 'x'",
                "'s', 't', expires_at => now() - interval '1 s'", "'s', 't', scheduled_at => 'infinity'",
                #"'s', 't', attachments => '[{"filename": "../x", "content_type": "a/b", "data": ""}]'"#,
                #"'s', 't', attachments => '[{"filename": "x", "content_type": "a/b\r\nX: y", "data": ""}]'"#,
                #"'s', 't', attachments => '[{"filename": "x", "content_type": "a/b"}]'"#,
                #"'s', 't', attachments => '[{"filename": "x", "content_type": "a/b", "data": "*"}]'"#,
            ] {
                let error = try await refusal(
                    "mail_send(array['a@b.example'], \(more.hasPrefix("\'a") ? "E" + more : more))"
                )
                #expect(
                    error?.sqlState == "22023" && error?.detail?.contains("invalid") == true,
                    "\(more): \(error?.message ?? "taken")")
            }
            #expect(try await bench.connection.int("select count(*) from millrace.mail") == 0)
            #expect(try await bench.connection.int("select count(*) from millrace.job") == 0)
        }
    }

    @Test func `what each live version of a template requires is asked for when a message is handed in`() async throws {
        try await withMail { bench in
            func publish(_ locale: String, _ variables: String) async throws {
                _ = try await bench.connection.value(
                    """
                    select millrace.template_publish('bill', 'Bill', null, 'x', '\(variables)', locale => '\(locale)')::text
                    """)
                _ = try await bench.connection.value(
                    "select count(millrace.template_checked(name, locale, version)) from millrace.template_unchecked()")
            }
            func refusal(_ data: String) async throws -> PostgresError.ServerError? {
                try await bench.connection.refusal(
                    of: "select millrace.mail_send(array['a@b.example'], template => 'bill', data => '\(data)')")
            }
            #expect(try await refusal("{}")?.sqlState == "P0002")
            try await publish(
                "en", #"{"sum": {"type": "number", "required": true}, "name": {"required": true}, "no": {}}"#)
            let error = try await refusal(#"{"name": " "}"#)
            #expect(error?.sqlState == "22023" && error?.message == "the template bill requires name, sum")
            #expect(try await refusal(#"{"name": "Ada", "sum": null}"#)?.message == "the template bill requires sum")
            #expect(try await refusal(#"{"name": "Ada", "sum": 0}"#) == nil)
            try await publish("de", #"{"sum": {"type": "number", "required": true}}"#)
            #expect(try await refusal(#"{"sum": 7}"#) == nil)
            #expect(try await refusal("{}")?.message == "the template bill requires sum")
        }
    }

    @Test func `what a built-in template requires is asked for, once the workers have said what they add`() async throws
    {
        try await withMail { bench in
            func refusal(_ call: String) async throws -> String? {
                let error = try await bench.connection.refusal(of: "select millrace.\(call)")
                return error.map { "\($0.sqlState) \($0.message)" }
            }
            let reset = "mail_password_reset('a@b.example', 't', 'u')"
            let welcome = "mail_send(array['a@b.example'], template => 'welcome')"
            #expect(try await refusal(reset) == nil)
            #expect(try await refusal(welcome) == "22023 the template welcome requires user_name")
            func tell(_ change: (inout MailOptions) -> Void) async throws {
                var options = MailOptions()
                change(&options)
                try await MailStore(pool: bench.pool).tellDefaults(options)
            }
            try await tell { _ in }
            #expect(try await refusal(reset) == "22023 the template password_reset requires app_name, url")
            #expect(try await bench.connection.bool("select millrace.app_name_set('Shop')"))
            #expect(try await refusal(reset) == "22023 the template password_reset requires url")
            let options = #"'{"data": {"url": "https://x.example"}}'"#
            #expect(try await refusal("mail_password_reset('a@b.example', 't', 'u', \(options))") == nil)
            try await tell { $0.resetURL = "https://x.example/{token}" }
            try await tell { _ in }
            #expect(try await refusal(reset) == nil)
            #expect(
                try await refusal("mail_account_verification('a@b.example', 't')")
                    == "22023 the template account_verification requires url")
            let service = bench.service([ScriptedMailProvider("resend")])
            _ = try await service.run(try await bench.jobs())
            #expect(
                try await bench.connection.int(
                    "select count(*) from millrace.mail_content where body_text like '%Shop%'")
                    == 3)
        }
    }

    @Test func `what SQL says built-in templates require is what they require`() async throws {
        try await withMail { bench in
            for name in BuiltIn.names {
                let source = try #require(BuiltIn.source(name, locales: ["en"]))
                let variables = try Variables(json: source.variables).all.filter(\.value.required).map(\.key).sorted()
                #expect(
                    try await bench.connection.column(
                        "select unnest(millrace.template_built_in_requires('\(name)'))") == variables)
            }
        }
    }

    @Test func `the error table of the database is that of the program, and a message says what its user is told`()
        async throws
    {
        try await withMail { bench in
            let rows = try await bench.connection.column(
                """
                select concat_ws('|', error_class, severity, retry, authentication_error, app_error, user_message)
                  from millrace.error_map()
                """)
            let ours = ErrorClass.allCases.map { kind in
                [
                    kind.rawValue, kind.severity.rawValue, kind.retry.rawValue, kind.authenticationError, kind.appError,
                    kind.sentence,
                ].joined(separator: "|")
            }
            #expect(rows == ours)
            let id = try await bench.send(#"tags => '["spring", "vip"]'"#)
            #expect(
                try await bench.connection.value("select tags::text from millrace.mail_content")
                    == #"{"vip": "true", "spring": "true"}"#)
            try await bench.connection.run("update millrace.mail set error_class = 'quota'")
            #expect(
                try await bench.connection.value("select user_message from millrace.mail_message('\(id)')")
                    == ErrorClass.quota.sentence)
            // What the app's sign-in makes of it stands beside it, and the code of the last answer.
            try await bench.connection.run(
                """
                update millrace.mail set error_class = 'transient';
                insert into millrace.mail_attempt (message, n, provider, outcome, error, code, batch, key, at)
                select id, n, 'resend', 'unknown', 'transient', (500 + n)::text, 1, 'k', now() from millrace.mail, generate_series(1, 3) n
                """)
            #expect(
                try await bench.connection.value(
                    "select authentication_error || ' ' || code || ' ' || app_error from millrace.mail_message('\(id)')"
                )
                    == "serverError 503 unavailable")
        }
    }

    @Test func `what people did with mail can be read, newest first`() async throws {
        try await withMail { bench in
            let first = try await bench.send()
            try await bench.connection.run("select millrace.mail_cancel('\(first)')")
            try await bench.connection.run("select millrace.mail_suppress('ada@example.org', 'asked by letter')")
            func audit(what: String? = nil, message: String? = nil, after: Int64? = nil) async throws -> [MailAdmin
                .AuditEntry]
            {
                try await MailAdmin.audit(
                    what: what, by: nil, message: message, since: nil, after: after, page: 50, on: bench.connection)
            }
            let all = try await audit()
            #expect(all.map(\.what) == ["suppress", "cancel"])
            #expect(!all.contains { $0.detail.contains("ada@") })
            #expect(try await audit(what: "cancel").map(\.message) == [first])
            #expect(try await audit(message: first).count == 1)
            #expect(try await audit(after: all[0].id).map(\.what) == ["cancel"])
        }
    }

    @Test
    func `the flag of the database steers the roll-out, and what no fallback can carry goes by the chosen service`()
        async throws
    {
        try await withMail { bench in
            let chosen = ScriptedMailProvider("resend")
            let other = ScriptedMailProvider("smtp")
            func service(_ id: String) async throws -> String? {
                try await bench.connection.value("select service from millrace.mail_messages where id = '\(id)'")
            }
            try await bench.connection.run("select millrace.flag_set('mail.rollout', 0, array['eve@example.org'])")
            let outside = try await bench.send()
            let inside = try await bench.send(to: "Eve@example.org")
            _ = try await bench.service([chosen, other]).run(try await bench.jobs())
            #expect(try await service(outside) == "smtp")
            #expect(try await service(inside) == "resend")
            try await bench.connection.run("select millrace.flag_set('mail.rollout', 100)")
            let back = try await bench.send()
            _ = try await bench.service([chosen, other]) { $0.routes.rollout.percent = 0 }.run(try await bench.jobs())
            #expect(try await service(back) == "resend")
            try await bench.connection.run("select millrace.flag_set('mail.rollout', 0)")
            let spare = try await bench.send()
            let auth = SupabaseProvider(.init(url: "https://x.example", key: "k"), client: HTTPClient())
            _ = try await bench.service([chosen, auth]).run(try await bench.jobs())
            #expect(try await service(spare) == "resend")
        }
    }

    @Test func `attachments are kept once by their hash, and more than 40 MB after base64 is refused before queueing`()
        async throws
    {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend")
            let attachment =
                #"[{"filename": "a.txt", "content_type": "Text/Plain", "data": "aGVsbG8=", "content_id": "c1"}]"#
            let id = try await bench.send("attachments => '\(attachment)'")
            try await bench.send("attachments => '\(attachment)'")
            #expect(try await bench.connection.column("select size from millrace.blob") == ["5"])
            #expect(try await bench.connection.int("select count(*) from millrace.blob_reference") == 2)
            _ = try await bench.service([provider]).run(try await bench.jobs())
            let kept = try #require(provider.seen.letters[id]?.attachments.first)
            #expect(
                kept.filename == "a.txt" && kept.contentType == "text/plain" && kept.size == 5 && kept.contentID == "c1"
            )
            let error = try await bench.connection.refusal(
                of: """
                    select millrace.mail_send(array['a@b.example'], 's', 't', attachments =>
                        jsonb_build_array(jsonb_build_object('filename', 'a', 'content_type', 'a/b', 'data', repeat('AAAA', 5000001)),
                                          jsonb_build_object('filename', 'holiday.mov', 'content_type', 'a/b', 'data', repeat('AAAA', 5000001))))
                    """)
            #expect(error?.sqlState == "53400" && error?.detail?.contains("too_large") == true)
            // Which file it is, whether it comes with the message or was put before.
            #expect(error?.message.hasSuffix("in base64: holiday.mov is too much") == true, "\(error?.message ?? "")")
            try await bench.connection.run("update millrace.blob set size = 29999998")
            let blob = try await bench.connection.value("select encode(id, 'hex') from millrace.blob") ?? ""
            let stored = #"{"filename": "kept.zip", "content_type": "a/b", "blob": "\#(blob)"}"#
            let other = try await bench.connection.refusal(
                of: """
                    select millrace.mail_send(array['a@b.example'], 's', 't',
                        attachments => '[\(attachment.dropFirst().dropLast()), \(stored)]')
                    """)
            #expect(other?.message.hasSuffix("kept.zip is too much") == true, "\(other?.message ?? "")")
            #expect(try await bench.connection.int("select count(*) from millrace.mail") == 2)
        }
    }

    @Test func `the same id and content is the first answer again, other content a conflict`() async throws {
        try await withMail { bench in
            let id = "0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e"
            for _ in 0..<2 { #expect(try await bench.send("id => '\(id)', data => '{\"a\": null}'") == id) }
            #expect(try await bench.connection.int("select count(*) from millrace.job") == 1)
            for other in ["id => '\(id)', priority => 'low'", "id => '\(id)', cc => array['x@y.example']"] {
                let error = try await bench.connection.refusal(
                    of: "select millrace.mail_send(array['ada@example.org'], 'Hello', 'text', \(other))")
                #expect(error?.sqlState == "23505", "\(other)")
            }
        }
    }

    @Test func `a rollback leaves neither message nor job, and the queue follows the priority`() async throws {
        try await withMail { bench in
            try await bench.connection.run("begin; select millrace.mail_welcome('a@b.example', 'A'); rollback")
            #expect(try await bench.connection.int("select count(*) from millrace.mail") == 0)
            for priority in ["low", "normal", "high", "urgent"] { try await bench.send("priority => '\(priority)'") }
            try await bench.connection.run("select millrace.mail_password_reset('a@b.example', 'tok', 'u1')")
            #expect(
                try await bench.connection.column("select queue || ' ' || priority from millrace.jobs order by id")
                    == ["mail 7", "mail 4", "mail.urgent 2", "mail.urgent 1", "mail.urgent 2"])
        }
    }

    @Test func `a reset's token is in the link, and nowhere once the message is frozen`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend")
            let id =
                try await bench.connection.value("select millrace.mail_password_reset('a@b.example', 'to ken', 'u1')")
                ?? ""
            _ = try await bench.service([provider]) { $0.resetURL = "https://app.example/r?t={token}" }.run(
                try await bench.jobs())
            #expect(provider.seen.letters[id]?.text?.contains("https://app.example/r?t=to%20ken") == true)
            #expect(
                try await bench.connection.int("select count(*) from millrace.mail_content where data is not null") == 0
            )
            #expect(
                try await bench.connection.int("select count(*) from millrace.job where args::text like '%ken%'") == 0)
        }
    }

    @Test func `an attempt and an audit row can be neither changed nor taken away`() async throws {
        try await withMail { bench in
            try await bench.send()
            _ = try await bench.service([ScriptedMailProvider("resend")]).run(try await bench.jobs())
            try await bench.connection.run("select millrace.mail_suppress('a@b.example', 'asked')")
            for table in ["mail_attempt", "mail_audit"] {
                for statement in [
                    "delete from millrace.\(table)", "truncate millrace.\(table)",
                    "update millrace.\(table) set at = now()",
                ] {
                    #expect(try await bench.connection.refusal(of: statement)?.sqlState == "55000", "\(statement)")
                }
            }
            #expect(try await bench.connection.column("select what from millrace.mail_audit") == ["suppress"])
        }
    }
}
