import Mail
import Postgres
import TestSupport
import Testing

@Suite struct TrackTests {
    private func sent(_ bench: MailBench, to address: String = "ada@example.org") async throws -> String {
        let id = try await bench.send(to: address)
        _ = try await bench.service([ScriptedMailProvider("resend")]).run(try await bench.jobs())
        return id
    }

    @Test func `events count once, and a status never falls, in whatever order they come`() async throws {
        try await withMail { bench in
            var random = SeededRandom(11)
            let types = [
                "email.sent", "email.delivery_delayed", "email.delivered", "email.opened", "email.bounced",
                "email.complained",
            ]
            let ranks = ["accepted", "delayed", "delivered", "delivered", "bounced", "complained"]
            let order = ["accepted", "delayed", "delivered", "bounced", "complained"]
            for round in 0..<12 {
                let id = try await sent(bench, to: "a\(round)@example.org")
                var best = 0
                for step in 0..<6 {
                    let which = random.below(types.count)
                    let call =
                        "select millrace.mail_event('resend', 'e\(round)-\(step)', '\(types[which])', now(), null, '{\"email_id\": \"resend-\(id)\"}')"
                    #expect(try await bench.connection.bool(call))
                    #expect(try await bench.connection.bool(call) == false)
                    best = max(best, order.firstIndex(of: ranks[which]) ?? 0)
                    #expect(try await bench.status(id) == order[best])
                }
                #expect(
                    try await bench.connection.int("select count(*) from millrace.mail_events where message = '\(id)'")
                        == 6)
            }
        }
    }

    @Test func `an event that comes before the answer settles what was not known`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend") { call, _ in call == 1 ? .acceptAndLose : .accept }
            let id = try await bench.send()
            let service = bench.service([provider]) { $0.sendRules.tries = 1 }
            _ = try await service.run(try await bench.jobs())
            #expect(try await bench.status(id) == "unknown")
            try await bench.connection.run(
                "select millrace.mail_event('resend', 'e1', 'email.delivered', now(), null, '{\"email_id\": \"x7\", \"tags\": {\"millrace_message\": \"\(id)\"}}')"
            )
            #expect(try await bench.status(id) == "delivered")
            #expect(try await bench.connection.column("select state from millrace.mail_batch") == ["settled"])
            #expect(try await bench.jobs().isEmpty && provider.seen.calls.count == 1)
            // And one that comes before we know the provider's name for it waits for that.
            let next = try await bench.send(to: "bob@example.org")
            try await bench.connection.run(
                "select millrace.mail_event('resend', 'e2', 'email.delivered', now(), null, '{\"email_id\": \"resend-\(next)\"}')"
            )
            _ = try await service.run(try await bench.jobs())
            #expect(try await bench.status(next) == "delivered")
        }
    }

    @Test func `a lasting bounce suppresses an address for all, a complaint not for what it needs`() async throws {
        try await withMail { bench in
            let one = try await sent(bench)
            let two = try await sent(bench, to: "bob@example.org")
            let three = try await sent(bench, to: "eve@example.org")
            for (id, type, bounce) in [
                (one, "bounced", "Permanent"), (two, "complained", ""), (three, "bounced", "Transient"),
            ] {
                try await bench.connection.run(
                    "select millrace.mail_event('resend', '\(id)', 'email.\(type)', now(), null, '{\"email_id\": \"resend-\(id)\", \"bounce\": {\"type\": \"\(bounce)\"}}')"
                )
            }
            #expect(
                try await bench.connection.column(
                    "select address || ' ' || purpose from millrace.mail_suppressions() order by 1")
                    == ["ada@example.org *", "bob@example.org marketing", "bob@example.org transactional"])
        }
    }

    @Test func `the feed tells every change in the order in which it came to be seen`() async throws {
        try await withMail { bench in
            let id = try await sent(bench)
            let seen = try await bench.connection.column("select change from millrace.mail_changes(0, 50) order by seq")
            #expect(seen == ["created", "accepted"])
            let last = try await bench.connection.int("select max(seq) from millrace.mail_changes(0, 50)")
            try await bench.connection.run(
                "select millrace.mail_event('resend', 'e', 'email.opened', now(), null, '{\"email_id\": \"resend-\(id)\"}')"
            )
            #expect(
                try await bench.connection.column(
                    "select change || ' ' || (data ->> 'status') from millrace.mail_changes(\(last), 50)")
                    == ["opened delivered"])
        }
    }

    @Test func `after an erasure no table holds the address or the words, and it stays suppressed`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend", batch: 10) { _, letters in
                letters[0].to[0].address.hasPrefix("later") ? .lose : .accept
            }
            let service = bench.service([provider])
            let address = "zelda.secret@example.org"
            let sent = try await bench.send(
                "cc => array['Zelda <Zelda.Secret@Example.org>'], tags => '{\"who\": \"zelda\"}'",
                to: "bob@example.org", subject: "For zelda")
            _ = try await service.run(try await bench.jobs())
            // One that waits, one whose arguments lie in its job, one of which its job has left traces.
            let waits = try await bench.send("scheduled_at => now() + interval '1 day'", to: address)
            try await bench.connection.run(
                """
                select millrace.enqueue('mail.welcome', '{"recipient": "Zelda.Secret@example.org", "user_name": "zelda"}', run_at => now() + interval '1 day',
                    tags => array['zelda.secret@example.org']);
                select millrace.enqueue('mail.welcome', '{"recipient": "Zelda.Secret@example.org", "user_name": "zelda"}')
                """)
            let direct = try await bench.connection.int("select max(id) from millrace.job")
            _ = try await service.run([
                MailJob(
                    job: Int64(direct), kind: "mail.welcome",
                    args: Array(#"{"recipient": "Zelda.Secret@example.org", "user_name": "zelda"}"#.utf8), session: 7,
                    isLast: false)
            ])
            let job = try await bench.connection.int("select job from millrace.mail where id = '\(sent)'")
            try await bench.connection.run(
                """
                insert into millrace.log_line (job, n, at, level, session, number, attempt, line) values (\(job), 1, now(), 1, 1, 1, 1, 'to zelda.secret@example.org');
                insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
                    select j.id, 1, 1, now(), now(), j.kind, j.queue, 1, 4, 1, 0, 'no zelda.secret@example.org' from millrace.job j where j.id = \(job);
                insert into millrace.progress (job, stage, note) values (\(job), 'zelda.secret@example.org', 'zelda');
                select millrace.mail_event('resend', 'e1', 'email.bounced', now(), 'Zelda.Secret@example.org', '{"email_id": "resend-\(sent)", "bounce": {"message": "no zelda.secret@example.org"}}');
                select millrace.mail_suppress('zelda.secret@example.org', 'asked', 'marketing')
                """)
            let found = try await search(bench.connection, for: "zelda")
            #expect(found.count >= 6, "\(found)")
            let answer =
                try await bench.connection.value("select millrace.mail_erase('Zelda.Secret@example.org')") ?? ""
            #expect(answer.contains("\"messages\": 3"), "\(answer)")
            let left = try await search(bench.connection, for: "zelda")
            #expect(left.isEmpty, "\(left)")
            #expect(try await bench.status(sent) == "bounced")
            #expect(try await bench.status(waits) == "cancelled")
            #expect(try await bench.connection.int("select count(*) from millrace.mail_attempts") == 2)
            let again = try await bench.send(to: address)
            _ = try await service.run(try await bench.jobs())
            #expect(try await bench.status(again) == "suppressed")
        }
    }

    /// Every table of the schema that holds the text anywhere.
    private func search(_ connection: Connection, for text: String) async throws -> [String] {
        var found: [String] = []
        for table in try await connection.column(
            "select oid::regclass from pg_class where relnamespace = 'millrace'::regnamespace and relkind = 'r'")
        where try await connection.int("select count(*) from \(table) t where lower(t::text) like '%\(text)%'") > 0 {
            found.append(table)
        }
        return found
    }
}
