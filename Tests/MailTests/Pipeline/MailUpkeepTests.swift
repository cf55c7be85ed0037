import Mail
import Postgres
import TestSupport
import Testing

@Suite struct MailUpkeepTests {
    /// Ends a message's job without a run that could tell the message: as quarantine does, or a hand.
    private func end(_ id: String, as outcome: Int, _ bench: MailBench) async throws {
        try await bench.connection.run(
            """
            with gone as (delete from millrace.ready r using millrace.mail m where m.id = '\(id)' and r.job = m.job returning r.job)
            insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
            select j.id, 0, 0, now(), now(), j.kind, j.queue, 1, \(outcome), 1, 2, 'quarantined: it ran alone when its worker crashed'
              from gone join millrace.job j on j.id = gone.job
            """)
    }

    private func forsaken(_ bench: MailBench) async throws -> Int {
        try await bench.connection.int("select millrace.mail_forsaken()")
    }

    @Test func `a message is told when its job ended without a word`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend") { _, _ in .lose }
            let service = bench.service([provider])
            let doubtful = try await bench.send()
            _ = try await service.run(try await bench.jobs())
            #expect(try await bench.status(doubtful) == "unknown")
            let dead = try await bench.send()
            let cancelled = try await bench.send()
            let alive = try await bench.send()
            let revived = try await bench.send()
            for id in [doubtful, dead, revived] { try await end(id, as: 3, bench) }
            try await bench.connection.run(
                """
                select millrace.cancel(m.job) from millrace.mail m where m.id = '\(cancelled)';
                select millrace.retry(m.job) from millrace.mail m where m.id = '\(revived)'
                """)
            #expect(try await forsaken(bench) == 3)
            #expect(try await bench.status(doubtful) == "parked")
            #expect(try await bench.status(dead) == "failed")
            #expect(try await bench.status(cancelled) == "cancelled")
            #expect(try await bench.status(alive) == "queued")
            #expect(try await bench.status(revived) == "queued")
            let error = try await bench.connection.value(
                "select error from millrace.mail_messages where id = '\(dead)'")
            #expect(error?.contains("ran alone when its worker crashed") == true)
            #expect(try await forsaken(bench) == 0, "each is told once")
        }
    }

    @Test func `a message in doubt to which nobody comes back is parked`() async throws {
        try await withMail { bench in
            let left = try await bench.send()
            let alive = try await bench.send()
            try await end(left, as: 1, bench)
            try await bench.connection.run("update millrace.mail set status = 'unknown'")
            #expect(try await forsaken(bench) == 0, "its job may just have ended")
            try await bench.connection.run("update millrace.mail set changed_at = now() - interval '2 minutes'")
            #expect(try await forsaken(bench) == 1)
            #expect(try await bench.status(left) == "parked")
            #expect(try await bench.status(alive) == "unknown")
        }
    }

    @Test func `a job that came first tells its message too`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend") { _, _ in .lose }
            try await bench.connection.run(
                """
                select millrace.enqueue('mail.welcome', '{"recipient": "ada@example.org", "user_name": "Ada"}')
                """)
            let job = try await bench.connection.int("select max(id) from millrace.job")
            _ = try await bench.service([provider]).run([
                MailJob(
                    job: Int64(job), kind: "mail.welcome",
                    args: Array(#"{"recipient": "ada@example.org", "user_name": "Ada"}"#.utf8), session: 7,
                    isLast: false)
            ])
            let id = try await bench.connection.value("select id from millrace.mail") ?? ""
            #expect(try await bench.status(id) == "unknown")
            try await end(id, as: 3, bench)
            #expect(try await forsaken(bench) == 1)
            #expect(try await bench.status(id) == "parked")
        }
    }

    @Test func `contents of old messages go, what says that they were sent stays`() async throws {
        try await withMail { bench in
            let service = bench.service([ScriptedMailProvider("resend")]) { $0.keep = .seconds(86_400) }
            let attached = #"[{"filename": "a.txt", "content_type": "text/plain", "data": "aGVsbG8="}]"#
            let old = try await bench.send("attachments => '\(attached)'")
            let fresh = try await bench.send()
            _ = try await service.run(try await bench.jobs())
            let waits = try await bench.send("scheduled_at => now() + interval '1 year'")
            try await bench.connection.run(
                """
                update millrace.mail set created_at = now() - interval '2 days' where id in ('\(old)', '\(waits)');
                update millrace.mail_batch b set first_at = now() - interval '2 days' where '\(old)' = any (b.messages);
                update millrace.mail_change set at = now() - interval '15 days' where message = '\(old)'
                """)
            _ = try await bench.connection.value("select count(*) from millrace.mail_changes(0, 50)")  // numbers them
            try await service.tidy()
            let contents = try await bench.connection.column("select message from millrace.mail_content order by 1")
            #expect(contents == [fresh, waits].sorted())
            #expect(try await bench.status(old) == "accepted")
            #expect(try await bench.outcomes(old) == ["resend accepted"])
            #expect(try await bench.connection.int("select count(*) from millrace.mail_batch") == 1)
            #expect(
                try await bench.connection.int("select count(*) from millrace.mail_change where message = '\(old)'")
                    == 0)
            #expect(try await bench.connection.int("select count(*) from millrace.blob_reference") == 0)
            try await service.tidy()
            #expect(try await bench.connection.int("select count(*) from millrace.mail_content") == 2)
        }
    }
}
