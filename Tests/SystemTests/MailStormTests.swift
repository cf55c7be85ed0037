import Fakes
import Foundation
import Postgres
import TestSupport
import Testing

/// Real workers, killed again and again, and a provider that loses answers, fails and limits: each message is taken once.
/// MILLRACE_STORM says how many messages; 10,000 take a few minutes.
@Suite struct MailStormTests {
    private static let messages = ProcessInfo.processInfo.environment["MILLRACE_STORM"].flatMap { Int($0) } ?? 600

    @Test func `no message is lost or sent twice, and none goes another way while in doubt`() async throws {
        var script = ResendScript()
        script.lost = 0.05
        script.failBefore = 0.025
        script.failAfter = 0.025
        script.rate = 40
        script.latencyMilliseconds = 30
        let fake = try FakeResend(script)
        defer { fake.stop() }
        try await withDatabase { database in
            let connection = try await database.connect()
            // A tenth has an attachment, and is sent alone; a message can have any priority.
            try await connection.run(
                """
                select millrace.mail_send(array['reader' || n || '@reader.example'], 'Number ' || n, 'The text of ' || n,
                           attachments => case when n % 10 = 0 then '[{"filename": "a.txt", "content_type": "text/plain", "data": "aGVsbG8="}]'::jsonb else '[]' end,
                           priority => (array['low', 'normal', 'high', 'urgent'])[n % 4 + 1])
                  from generate_series(1, \(Self.messages)) n
                """)
            // Nothing listens at the second provider's address, so a message that is sent there leaves a trace.
            let workers = (0..<3).map { number in
                Supervised { life in
                    try await MillraceProcess.worker(
                        "storm-\(number)-\(life)", database: database.url,
                        environment: [
                            "RESEND_API_KEY": "re_test", "RESEND_EMAIL_ENABLED": "true", "RESEND_BASE_URL": fake.url,
                            "EMAIL_FROM_ADDRESS": "shop@shop.example", "EMAIL_FALLBACK_ENABLED": "true",
                            "MILLRACE_MAIL_SMTP_URL": "smtp://127.0.0.1:1?tls=none", "MILLRACE_MAIL_EXERCISE": "0",
                            "MILLRACE_MAIL_DELAY": "300ms", "MILLRACE_MAIL_TIMEOUT": "5s", "MILLRACE_MAIL_TOTAL": "15s",
                            "MILLRACE_MAIL_TRIES": "5", "MILLRACE_BREAKER_FAILURES": "1000",
                            "MILLRACE_RETRY_BUDGET": "100%",
                        ])
                }
            }
            for worker in workers { try await worker.begin() }
            let killing = Task {
                for turn in 0..<(6 + Self.messages / 400) {
                    try await Task.sleep(for: .milliseconds(1500))
                    await workers[turn % workers.count].kill()
                }
            }
            let settled =
                "select count(*) from millrace.mail_messages where status not in ('accepted', 'delivered', 'parked')"
            try await eventually("every message is settled", within: .seconds(300 + Self.messages / 10)) {
                try await connection.int(settled) == 0
            }
            killing.cancel()
            _ = await killing.result
            for worker in workers { await worker.end() }

            let accepted = Dictionary(grouping: fake.accepted) { $0.tags["millrace_message"] ?? "" }
            #expect(accepted.values.allSatisfy { $0.count == 1 })
            let known = try await connection.column(
                "select id::text from millrace.mail_messages where status in ('accepted', 'delivered')")
            let parked = try await connection.column(
                "select id::text from millrace.mail_messages where status = 'parked'")
            #expect(known.count + parked.count == Self.messages)
            #expect(known.allSatisfy { accepted[$0] != nil }, "one is called accepted that nobody took")
            #expect(Set(accepted.keys).subtracting(known + parked).isEmpty)
            let unexplained = try await connection.int(
                "select count(*) from millrace.mail_messages where status = 'parked' and error is null")
            #expect(unexplained == 0)
            let astray = try await connection.int(
                """
                select count(*) from millrace.mail_attempts a
                 where a.provider <> 'resend'
                   and exists (select from millrace.mail_attempts u where u.message = a.message and u.n < a.n and u.outcome = 'unknown')
                """)
            #expect(astray == 0)
            let unknown = try await connection.int(
                "select count(*) from millrace.mail_attempts where outcome = 'unknown'")
            #expect(unknown > 0 && fake.figures.lost > 0 && fake.figures.replayed > 0)
            print(
                "storm: \(Self.messages) messages, \(fake.figures.requests) requests, \(fake.figures.lost) answers lost,",
                "\(fake.figures.replayed) repetitions recognised, \(fake.figures.answered), \(unknown) unknown outcomes,",
                "\(parked.count) parked; each accepted once")
            await connection.close()
        }
    }
}
