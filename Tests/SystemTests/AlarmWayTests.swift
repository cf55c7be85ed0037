import Foundation
import Postgres
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The whole way of an alarm, by the parts that people have: SQL, a worker, the mails it sends, and the links in them.
@Suite struct AlarmWayTests {
    private static let base = "https://alarms.example"

    /// 0 when nobody answers.
    private static func ask(_ link: String, at port: Int, answer: String? = nil) async -> (status: Int, body: String) {
        let place = link.replacing(base, with: "http://127.0.0.1:\(port)")
        guard let url = URL(string: place) else { return (0, "") }
        var request = URLRequest(url: url, timeoutInterval: 60)
        if let answer {
            request.httpMethod = "POST"
            request.setValue("application/x-www-form-urlencoded", forHTTPHeaderField: "Content-Type")
            request.httpBody = Data("answer=\(answer)".utf8)
        }
        guard let (data, response) = try? await URLSession.shared.data(for: request) else { return (0, "") }
        return ((response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self))
    }

    /// Of the newest mail whose subject has these words.
    private static func link(in subject: String, on connection: Connection) async throws -> String {
        var found: String?
        try await eventually("a mail about “\(subject)” was sent") {
            found = try await connection.value(
                """
                select substring(c.body_text from '\(base)/v1/alarms/[0-9a-f]+') from millrace.mail m
                  join millrace.mail_content c on c.message = m.id
                 where m.status = 'accepted' and c.subject like '%\(subject)%' order by m.seq desc limit 1
                """)
            return found != nil
        }
        return found ?? ""
    }

    @Test func `a contact says yes, is told of an alarm, and answers it, all by the links in mails`() async throws {
        try await withDatabase(.movableClock) { database in
            let owner = try await database.connect()
            let port = try freePort()
            let outbox = FileManager.default.temporaryDirectory.appending(path: "alarms-\(UUID().uuidString)").path
            defer { try? FileManager.default.removeItem(atPath: outbox) }
            let worker = try await MillraceProcess.worker(
                "watch", database: database.url, ["--checkins", "--listen", "127.0.0.1:\(port)"],
                environment: [
                    "MILLRACE_MAIL_OUTBOX": outbox, "MILLRACE_PUBLIC_URL": Self.base,
                    "MILLRACE_SECRET": "a secret that is long enough",
                ])
            try await owner.run(
                #"select millrace.check_in_contact('anna', 'mum', 1, '{"mail": "mum@example.com"}', actor => 'anna')"#)
            let asked = try await Self.link(in: "wants you as an emergency contact", on: owner)
            #expect(await Self.ask(asked, at: port).body.contains("anna wants you as an emergency contact"))
            #expect(
                try await owner.refusal(of: "select millrace.check_in_arm('anna', actor => 'anna')")?.sqlState
                    == "55000", "looking has changed nothing")
            #expect(await Self.ask(asked, at: port, answer: "yes").status < 400)
            try await owner.run(
                "select millrace.check_in_arm('anna', every => '1 hour', warnings => '{}', actor => 'anna')")
            try await owner.run("select millrace.test_clock_advance('61 minutes')")
            let told = try await Self.link(in: "has not checked in", on: owner)
            let page = await Self.ask(told, at: port)
            #expect(page.status == 200 && page.body.contains("anna should have checked in by"), "\(page.body)")
            #expect(try await owner.value("select state from millrace.alarms") == "open")
            #expect(await Self.ask(told, at: port, answer: "on_my_way").status < 400)
            #expect(
                try await owner.value("select state || ' ' || acknowledged_by from millrace.alarms")
                    == "acknowledged mum")
            #expect(try await owner.bool("select first_accepted_at is not null from millrace.alarms"))
            try await owner.run("select millrace.check_in('anna', actor => 'anna')")
            #expect(try await owner.value("select state from millrace.alarms") == "resolved")
            #expect(try await Self.link(in: "is over", on: owner) == told)
            // Never again, by the link of a contact who was removed before it was opened.
            try await owner.run(
                #"select millrace.check_in_contact('eve', 'victim', 1, '{"mail": "victim@example.com"}', actor => 'eve')"#
            )
            let unwanted = try await Self.link(in: "eve wants you as an emergency contact", on: owner)
            #expect(await Self.ask(unwanted, at: port).body.contains("Never ask me again"))
            try await owner.run("select millrace.check_in_contact_remove('eve', 'victim', 'eve')")
            let over = await Self.ask(unwanted, at: port)
            #expect(
                over.status == 200 && over.body.contains("no longer open") && !over.body.contains("contact of"),
                "\(over.body)")
            #expect(await Self.ask(unwanted, at: port, answer: "yes").status == 404)
            #expect(
                await Self.ask(unwanted, at: port, answer: "never").body.contains("You will not be asked again"))
            try await owner.run(
                #"select millrace.check_in_contact('anna', 'v', 1, '{"mail": "Victim+x@example.com"}', actor => 'anna')"#
            )
            #expect(
                try await owner.bool(
                    "select declined_at is not null and asked_at is null from millrace.watch_address where contact = 'v'"
                ))
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await owner.close()
        }
    }
}
