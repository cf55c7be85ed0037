import Listeners
import Mail
import PageKit
import Postgres
import Signatures
import Telemetry
import TestSupport
import Testing

@testable import MillraceCommand

@Suite struct MailCommandTests {
    @Test func `a message is handed in, shown, previewed and cancelled`() async throws {
        try await withDatabase { database in
            let url = database.url
            func run(_ words: [String], files: [String: String] = [:]) async -> Outcome {
                let capture = Capture()
                let code = await Application.run(
                    arguments: words + ["--database-url", url], surroundings: .fake(files: files),
                    console: capture.console, tree: Verbs.tree)
                return Outcome(code: code, output: capture.output, errors: capture.errors)
            }
            let files = ["hello.txt": "Hello\nAda", "bill.pdf": "%PDF-"]
            let send = [
                "mail", "send", "Ada <ada@example.org>", "--subject", "Hi", "--text", "hello.txt", "--attach",
                "bill.pdf",
            ]
            let sent = await run(send + ["--tag", "a=b", "--priority", "low"], files: files)
            let id = String(sent.output.dropLast())
            #expect(sent.code == .done && id.count == 36, "\(sent)")
            let rows = try JSONValue.read(await run(["mail", "list", "--json"]).output)
            guard case .array(let messages)? = rows["messages"] else {
                Issue.record("no messages in \(rows)")
                return
            }
            #expect(
                messages.count == 1 && messages[0]["priority"]?.text == "low" && messages[0]["status"]?.text == "queued"
            )
            let story = try JSONValue.read(await run(["mail", "show", id, "--json", "--raw"]).output)
            #expect(
                story["version"]?.integer == 1 && story["content"]?["recipients"] == .array(["Ada <ada@example.org>"]))
            let plain = await run(["mail", "show", id])
            #expect(plain.code == .done && !plain.output.contains("ada@example.org"), "\(plain)")
            #expect(await run(["mail", "preview", id]).output == "Subject: Hi\n\nHello\nAda\n")
            #expect(await run(["mail", "cancel", id]).output == "\(id)  cancelled\n")
            #expect(await run(["mail", "cancel", id]).output == "\(id)  cancelled already\n")
            #expect(await run(["mail", "resolve", id, "accepted"]).code == .conflict)
            #expect(await run(["mail", "show", "0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e"]).code == .notFound)
            let bad = await run(
                ["mail", "send", "a@b.example\r\nBcc: c@d.example", "--subject", "s", "--text", "hello.txt"],
                files: files)
            #expect(bad.code == .misused && bad.errors.contains("control characters"), "\(bad)")
            let waits = await run(
                [
                    "mail", "send", "a@b.example", "--subject", "s", "--text", "hello.txt", "--wait", "accepted",
                    "--timeout", "300ms",
                ], files: files)
            #expect(waits.code == .timedOut && waits.errors == "queued\n", "\(waits)")
            #expect(waits.output.count == 37 && waits.output.hasSuffix("\n"), "the id alone: \(waits)")
        }
    }

    @Test func `a tag is a name alone or a name and a value, and a person's profile chooses the language`() async throws
    {
        try await withDatabase { database in
            let url = database.url
            let connection = try await database.connect()
            try await connection.run("select millrace.person_profile('u-1', locale => 'de', actor => 'u-1')")
            let send = ["mail", "send", "ada@example.org", "--template", "welcome", "--data", #"{"user_name": "Ada"}"#]
            func run(_ more: String...) async -> Outcome {
                let capture = Capture()
                let code = await Application.run(
                    arguments: send + more + ["--database-url", url], surroundings: .fake(), console: capture.console,
                    tree: Verbs.tree)
                return Outcome(code: code, output: capture.output, errors: capture.errors)
            }
            let sent = await run("--tag", "vip", "--tag", "campaign=spring", "--person", "u-1")
            #expect(sent.code == .done, "\(sent)")
            #expect(
                try await connection.value("select tags::text from millrace.mail_content")
                    == #"{"vip": "true", "campaign": "spring"}"#)
            let shown = try JSONValue.read(
                await millrace("mail", "show", String(sent.output.dropLast()), "--json", "--database-url", url).output)
            #expect(shown["locale"]?.text == "de", "\(shown)")
            for wrong in ["=spring", "", "two words", "campaign="] {
                let refused = await run("--tag", wrong)
                #expect(refused.code == .misused && refused.errors.contains("tag"), "\(refused)")
            }
            #expect(try await connection.int("select count(*) from millrace.mail") == 1)
            await connection.close()
        }
    }

    @Test func `an address is suppressed, listed, and erased, first without doing it`() async throws {
        try await withDatabase { database in
            let url = database.url
            let first = await millrace(
                "mail", "suppress", "ada@example.org", "--reason", "asked", "--database-url", url)
            #expect(first.output == "gets no more mail\n", "\(first)")
            #expect(
                await millrace("mail", "suppress", "ada@example.org", "--database-url", url).output
                    == "gets no more mail, as before\n")
            #expect(
                await millrace("mail", "suppress", "--list", "--database-url", url).output.contains("ada@example.org"))
            #expect(await millrace("mail", "erase", "ada@example.org", "--database-url", url).code == .misused)
            let dry = await millrace("mail", "erase", "ada@example.org", "--dry-run", "--database-url", url)
            #expect(dry.code == .done && dry.output.hasPrefix("would erase 0 messages"), "\(dry)")
            #expect(
                await millrace("mail", "suppress", "--list", "--database-url", url).output.contains("ada@example.org"))
            #expect(await millrace("mail", "erase", "ada@example.org", "--yes", "--database-url", url).code == .done)
            let after = await millrace("mail", "suppress", "--list", "--database-url", url).output
            #expect(after.contains("erased") && !after.contains("ada"), "\(after)")
            #expect(
                await millrace("mail", "suppress", "ada@example.org", "--remove", "--database-url", url).output
                    == "gets mail again\n")
        }
    }

    @Test func `status tells that mail goes another way, or waits for a human`() async throws {
        try await withConnection { connection in
            try await connection.run("select millrace.mail_route_by('resend', 'resend', null)")
            let calm = try await StatusReport.read(on: connection, cap: 10, patience: .seconds(30))
            #expect(!calm.findings.contains { $0.alarm == .mailSwitched || $0.alarm == .mailParked })
            try await connection.run(
                """
                select millrace.mail_route_by('resend', 'smtp', 'quota');
                select millrace.mail_send(array['a@b.example'], 's', 't');
                update millrace.mail set status = 'parked'
                """)
            let report = try await StatusReport.read(on: connection, cap: 10, patience: .seconds(30))
            let found = report.findings.filter { $0.alarm == .mailSwitched || $0.alarm == .mailParked }
            #expect(found.map(\.severity) == [.degraded, .degraded])
            #expect(found[0].sentence == "mail goes through smtp, not through resend: quota")
            let view = StatusView(report, failIf: nil)
            #expect(view.json["mail"]?["current"]?.text == "smtp")
        }
    }

    @Test func `the service is chosen by what is configured, and a flag that is not exactly true is told`() {
        func settings(_ environment: [String: String]) -> Settings {
            Settings.load(parsed: nil, surroundings: .fake(environment))
        }
        #expect(settings([:]).mailChoice.provider == "outbox")
        var resend = ["RESEND_API_KEY": "re_1", "EMAIL_FROM_ADDRESS": "shop@example.com"]
        for flag in ["True", "1", "yes", ""] {
            resend["RESEND_EMAIL_ENABLED"] = flag
            let found = settings(resend)
            #expect(found.mailChoice.provider == "outbox")
            #expect(found.warnings.contains { $0.contains("RESEND_EMAIL_ENABLED") }, "\(flag)")
        }
        resend["EMAIL_SERVICE_PROVIDER"] = "resend"
        #expect(settings(resend).mailChoice.provider == "outbox")
        #expect(settings(resend).problems.contains { $0.contains("RESEND_EMAIL_ENABLED") })
        resend["MILLRACE_MAIL_SMTP_URL"] = "smtp://mail.example.com"
        #expect(settings(resend).mailChoice.provider == "smtp" && settings(resend).problems.isEmpty)
        #expect(settings(resend).warnings.contains { $0.contains("mail goes through smtp") })
        resend["EMAIL_SERVICE_PROVIDER"] = nil
        resend["MILLRACE_MAIL_SMTP_URL"] = nil
        resend["RESEND_EMAIL_ENABLED"] = "true"
        resend["MILLRACE_MAIL_ROLLOUT"] = "30"
        #expect(
            settings(resend).warnings.contains { $0.contains("there is no fallback: all mail goes through resend") })
        let supabase = [
            "SUPABASE_URL": "https://x.example", "SUPABASE_ANON_KEY": "k", "EMAIL_FALLBACK_ENABLED": "true",
        ].merging(resend) { $1 }
        #expect(settings(supabase).warnings.contains { $0.contains("the only fallback") })
        resend["MILLRACE_MAIL_ROLLOUT"] = nil
        #expect(settings(resend).mailOptions.appName == nil)
        resend["EMAIL_FROM_NAME"] = "Shop"
        #expect(settings(resend).mailOptions.appName == "Shop")
        resend["MILLRACE_APP_NAME"] = "The shop"
        #expect(settings(resend).mailOptions.appName == "The shop")
        #expect(settings(resend).mailChoice.provider == "resend" && settings(resend).problems.isEmpty)
        resend["MILLRACE_MAIL_SMTP_URL"] = "smtp://mail.example.com"
        #expect(settings(resend).mailFallbackNames.isEmpty)
        resend["EMAIL_FALLBACK_ENABLED"] = "true"
        #expect(settings(resend).mailFallbackNames == ["smtp"])
        resend["RESEND_DOMAIN"] = "other.example"
        #expect(settings(resend).problems.contains { $0.contains("RESEND_DOMAIN") })
        #expect(settings(["EMAIL_SERVICE_PROVIDER": "smtp"]).problems.count == 2)
        #expect(settings(["MILLRACE_MAIL_RESET_URL": "https://x.example"]).problems.contains { $0.contains("{token}") })
        #expect(settings(["MILLRACE_SECRET": "short"]).problems.count == 1)
    }

    @Test func `routes take what is signed, and a link unsubscribes only when it is posted`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let pool = Pool(database.options, size: 2)
            let links = Links(publicURL: "https://x.example", secrets: ["a secret of ours"])
            var routes = MailRoutes(
                pool: pool, log: .silent, links: links, resend: { _, headers in headers["svix-id"] },
                supabase: { _, headers in headers["webhook-id"] })
            routes.host = PageHost(name: "Ada & Co")
            var options = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
            options.grace = .seconds(1)
            let listener = try Listener(options, routes: routes.all, log: .silent)
            async let running: Void = listener.run()
            let base = "http://127.0.0.1:\(listener.address.port)"
            func curl(_ arguments: String) async throws -> String {
                try await Program.run("sh", ["-c", "curl -s -m 60 -w ' %{http_code}' \(arguments)"]).text
            }
            let hash = try await connection.query("select millrace.mail_hash('ada@example.org')") {
                row throws(PostgresError) in row.bytes(0).map { Array($0) } ?? []
            }[0]
            let path = try #require(links.unsubscribe(hash)).dropFirst("https://x.example".count)
            #expect(try await curl("\(base)\(path)").hasSuffix(" 200"))
            #expect(try await connection.int("select count(*) from millrace.mail_suppression") == 0)
            #expect(try await curl("\(base)\(path)0").hasSuffix(" 404"))
            #expect(try await curl("-X POST -d List-Unsubscribe=One-Click \(base)\(path)").hasSuffix(" 200"))
            #expect(try await connection.column("select purpose from millrace.mail_suppressions()") == ["marketing"])
            // The page says whose messages they are, in the reader's language, and takes a press back.
            let page = try await curl("-H 'Accept-Language: de' \(base)\(path)")
            #expect(page.contains("<h1>Nachrichten von <bdi>Ada &amp; Co</bdi> abbestellen?</h1>"))
            #expect(page.contains("<html lang=\"de\"") && page.contains("href=\"\(path)?language=ar\""))
            #expect(try await curl("'\(base)\(path)?language=ar'").contains("dir=\"rtl\""))
            #expect(try await curl("\(base)/v1/unsubscribe/page.css").contains("min-height: 52px"))
            #expect(try await curl("-d answer=stop \(base)\(path)").contains("value=\"again\""))
            #expect(try await curl("-d answer=again \(base)\(path)").hasSuffix(" 200"))
            #expect(try await connection.int("select count(*) from millrace.mail_suppression") == 0)
            try await connection.run("select millrace.mail_suppress('ada@example.org', 'complaint', 'marketing')")
            #expect(try await curl("-d answer=again \(base)\(path)").hasSuffix(" 200"))
            #expect(try await connection.int("select count(*) from millrace.mail_suppression") == 1)

            try await connection.run(
                "select millrace.mail_send(array['a@b.example'], 's', 't'); update millrace.mail set provider_message_id = 'p1', service = 'resend', status = 'accepted'"
            )
            let event =
                #"'{"type": "email.delivered", "created_at": "2026-01-02T03:04:05Z", "data": {"email_id": "p1", "to": ["a@b.example"]}}'"#
            #expect(try await curl("-d \(event) \(base)/v1/webhooks/resend").hasSuffix(" 401"))
            #expect(
                try await curl("-H 'svix-id: m1' -d \(event) \(base)/v1/webhooks/resend").contains(#"{"new":true}"#))
            #expect(
                try await curl("-H 'svix-id: m1' -d \(event) \(base)/v1/webhooks/resend").contains(#"{"new":false}"#))
            #expect(try await curl("-H 'svix-id: m2' -d '{}' \(base)/v1/webhooks/resend").hasSuffix(" 400"))
            #expect(try await connection.column("select status from millrace.mail_messages") == ["delivered"])

            let hook =
                #"'{"user": {"id": "u1", "email": "ada@example.org"}, "email_data": {"token_hash": "h 1", "redirect_to": "https://app.example", "email_action_type": "recovery", "site_url": "https://s.example/auth/v1"}}'"#
            for _ in 0..<2 {
                #expect(try await curl("-H 'webhook-id: w1' -d \(hook) \(base)/v1/webhooks/supabase-email") == "{} 200")
            }
            #expect(
                try await connection.column("select data ->> 'url' from millrace.mail_content where data is not null")
                    == [
                        "https://s.example/auth/v1/verify?token=h%201&type=recovery&redirect_to=https%3A%2F%2Fapp.example"
                    ])
            #expect(
                try await connection.bool("select not fallback from millrace.mail where kind = 'mail.password_reset'"))
            // Another body under the same id, of the same kind or of one with other words.
            for other in [hook.replacing("h 1", with: "h 2"), hook.replacing("recovery", with: "magiclink")] {
                let answer = try await curl("-H 'webhook-id: w1' -d \(other) \(base)/v1/webhooks/supabase-email")
                #expect(answer.contains("another mail was asked for under this id") && answer.hasSuffix(" 409"))
            }
            #expect(try await connection.int("select count(*) from millrace.mail where kind <> 'mail.send'") == 1)
            listener.stop()
            try await running
            await pool.close()
            await connection.close()
        }
    }

    @Test func `each kind of mail of Supabase has its own words, and a change of address asks both`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let pool = Pool(database.options, size: 2)
            let routes = MailRoutes(
                pool: pool, log: .silent, links: nil, resend: nil, supabase: { _, headers in headers["webhook-id"] })
            var options = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
            options.grace = .seconds(1)
            let listener = try Listener(options, routes: routes.all, log: .silent)
            async let running: Void = listener.run()
            let url = "http://127.0.0.1:\(listener.address.port)/v1/webhooks/supabase-email"
            let user = "3f9f9a52-6a7f-4a8e-9d0e-0d5f2b9d6c11"
            try await connection.run(
                "select millrace.person_profile('\(user)', 'Ada', 'de', 'Europe/Berlin', actor => '\(user)')")
            func send(_ id: String, _ type: String, _ more: String) async throws -> String {
                let hook =
                    #"'{"user": {"id": "\#(user)", "email": "ada@example.org", "new_email": "ada@new.example"}, "#
                    + #""email_data": {"email_action_type": "\#(type)", "redirect_to": "", "#
                    + #""site_url": "https://s.example/auth/v1/"\#(more)}}'"#
                return try await Program.run(
                    "sh", ["-c", "curl -s -m 60 -w ' %{http_code}' -H 'webhook-id: \(id)' -d \(hook) \(url)"]
                ).text
            }
            /// Template, recipient, and what it is to say, of each mail since the last call.
            func made() async throws -> [String] {
                let rows = try await connection.column(
                    """
                    select concat_ws(' ', m.template, c.recipients[1], c.data ->> 'url', c.data ->> 'code', c.data ->> 'email', m.locale, m.priority, m.purpose)
                      from millrace.mail m join millrace.mail_content c on c.message = m.id order by 1
                    """)
                try await connection.run("delete from millrace.mail_content; delete from millrace.mail")
                return rows
            }
            func link(_ hash: String, _ type: String) -> String {
                "https://s.example/auth/v1/verify?token=\(hash)&type=\(type)&redirect_to="
            }
            #expect(try await send("a", "magiclink", #", "token_hash": "h1", "token": "123456""#) == "{} 200")
            #expect(
                try await made()
                    == ["magic_link ada@example.org \(link("h1", "magiclink")) 123456 de high security"])
            #expect(try await send("b", "invite", #", "token_hash": "h2""#) == "{} 200")
            #expect(try await made() == ["invite ada@example.org \(link("h2", "invite")) de high security"])
            #expect(try await send("c", "reauthentication", #", "token": "654321""#) == "{} 200")
            #expect(try await made() == ["reauthentication ada@example.org 654321 de high security"])
            // The hash that Supabase calls new is that of the address that the user has now.
            let both = #", "token_hash": "h3", "token": "1", "token_hash_new": "h4", "token_new": "2""#
            for _ in 0..<2 { #expect(try await send("d", "email_change", both) == "{} 200") }
            #expect(try await send("d", "recovery", #", "token_hash": "h5""#).hasSuffix(" 409"))
            #expect(
                try await made() == [
                    "email_change ada@example.org \(link("h4", "email_change")) ada@new.example de high security",
                    "email_change ada@new.example \(link("h3", "email_change")) ada@new.example de high security",
                ])
            #expect(try await send("e", "email_change", #", "token_hash": "h6", "token_hash_new": """#) == "{} 200")
            #expect(
                try await made()
                    == ["email_change ada@new.example \(link("h6", "email_change")) ada@new.example de high security"])
            #expect(try await send("f", "signup", #", "token_hash": "h7""#) == "{} 200")
            #expect(try await made().first?.hasPrefix("account_verification ada@example.org") == true)
            for (type, more) in [
                ("something_new", #", "token_hash": "h8""#), ("invite", ""), ("reauthentication", ""),
            ] {
                #expect(try await send("g", type, more).hasSuffix(" 400"), "\(type)")
            }
            #expect(try await made().isEmpty)
            listener.stop()
            try await running
            await pool.close()
            await connection.close()
        }
    }
}
