import Foundation
import Millrace
import MillraceMail
import Postgres
import TestSupport
import Testing

@Suite struct MailCatcherTests {
    private struct Scene {
        let mails: MailCatcher
        let bench: TestBench
        let connection: Connection
        let database: TestDatabase
    }

    private func withScene(_ body: (Scene) async throws -> Void) async throws {
        try await withDatabase(.empty) { database in
            let place = Database.url(database.url)
            let worker = Worker(database: place, slots: 4, keys: .none, log: .silent)
            let mails = try MailCatcher(database: place, appName: "Shop")
            mails.attach(to: worker)
            let bench = try TestBench(worker: worker, database: place)
            try await bench.prepare(for: mails)
            let connection = try await database.connect()
            try await body(Scene(mails: mails, bench: bench, connection: connection, database: database))
            await connection.close()
            await bench.close()
            await mails.close()
        }
    }

    @Test func `what code sends is caught as a provider would have had it`() async throws {
        try await withScene { scene in
            try await scene.connection.run(
                """
                select millrace.mail_welcome('Ada <ada@example.org>', 'Ada');
                select millrace.mail_password_reset('bob@example.org', 'a/b', null);
                select millrace.mail_send(array['eve@example.org'], 'Your bill', 'See https://shop.example/bills/7.',
                    cc => array['copy@example.org'], headers => '{"X-Bill": "7"}', tags => '{"kind": "bill"}',
                    attachments => '[{"filename": "bill.txt", "content_type": "text/plain", "data": "aGVsbG8="}]')
                """)
            #expect(throws: WrongMail.self) { try scene.mails.only(to: "ada@example.org") }
            _ = try await scene.bench.drain(timeout: .seconds(240))
            let welcome = try scene.mails.only(to: "ADA@example.org")
            #expect(welcome.subject == "Welcome to Shop!" && welcome.html?.contains("Ada") == true)
            let reset = try scene.mails.only(to: "bob@example.org")
            #expect(reset.links.contains("https://app.example/reset?token=a%2Fb"))
            let bill = try scene.mails.only(to: "copy@example.org", subject: "Your bill")
            #expect(bill.to == ["eve@example.org"] && bill.links == ["https://shop.example/bills/7"])
            #expect(bill.headers["X-Bill"] == "7" && bill.tags["kind"] == "bill")
            #expect(bill.attachments.map(\.filename) == ["bill.txt"])
            #expect(bill.attachments.first.map { String(decoding: $0.bytes, as: UTF8.self) } == "hello")
            #expect(scene.mails.all.count == 3)
            scene.mails.clear()
            try scene.mails.none(to: "ada@example.org")
        }
    }

    @Test func `an expectation that fails says what there was`() async throws {
        try await withScene { scene in
            try await scene.connection.run("select millrace.mail_send(array['ada@example.org'], 'Hello', 'there')")
            _ = try await scene.bench.drain(timeout: .seconds(240))
            let error = #expect(throws: WrongMail.self) {
                try scene.mails.only(to: "ada@example.org", subject: "Goodbye")
            }
            #expect(error?.description.contains("“Hello” to ada@example.org") == true)
            #expect(throws: WrongMail.self) { try scene.mails.none(to: "ada@example.org") }
        }
    }

    @Test func `a message from Swift waits for its time, and one that cannot be says why`() async throws {
        try await withScene { scene in
            let client = try Client(database: .url(scene.database.url), keys: .none)
            var later = SendMail(to: ["ada@example.org"], subject: "Later", text: "now")
            later.priority = "high"
            let now = try await scene.bench.advance(by: .seconds(1))
            later.scheduledAt = now.addingTimeInterval(3600)
            let id = try await client.enqueue(later)
            var german = SendMail(to: ["anna@example.org"], template: "welcome", data: ["user_name": "Anna"])
            german.person = "anna"
            try await scene.connection.run("select millrace.person_profile('anna', locale => 'de', actor => 'anna')")
            let bad = try await client.enqueue(SendMail(to: ["nobody"], template: "welcome"))
            #expect(
                try await scene.bench.enqueued(SendMail.self).map(\.job.recipients) == [
                    ["ada@example.org"], ["nobody"],
                ])
            _ = try await scene.bench.drain(timeout: .seconds(240))
            #expect(scene.mails.all.isEmpty)
            #expect(try await client.job(bad)?.state == .dead)
            _ = try await client.enqueue(german)
            _ = try await scene.bench.drain(timeout: .seconds(240))
            #expect(try scene.mails.only(to: "anna@example.org").subject == "Willkommen bei Shop!")
            try await scene.bench.advance(by: .seconds(3601))
            _ = try await scene.bench.drain(timeout: .seconds(240))
            let mail = try scene.mails.only(to: "ada@example.org")
            #expect(mail.subject == "Later")
            #expect(try await client.job(id)?.state == .succeeded)
            #expect(try await scene.mails.error(of: mail.id) == nil)
            await client.close()
        }
    }

    @Test func `a provider fails as often as the test says, or for good, and its calls are counted`() async throws {
        try await withScene { scene in
            let client = try Client(database: .url(scene.database.url), keys: .none)
            func send(_ name: String) async throws -> Int64 {
                try await client.enqueue(SendMail(to: ["\(name)@example.org"], subject: "Hello", text: "there"))
            }
            scene.mails.failNext(2, .unavailable)
            _ = try await send("ada")
            for _ in 0..<4 where scene.mails.all.isEmpty {
                _ = try await scene.bench.drain(timeout: .seconds(240))
                try await scene.bench.advance(by: .seconds(3600))
            }
            _ = try scene.mails.only(to: "ada@example.org")
            #expect(scene.mails.attempts == 3)
            scene.mails.failAlways(.refused)
            let refused = try await send("bob")
            _ = try await scene.bench.drain(timeout: .seconds(240))
            try scene.mails.none(to: "bob@example.org")
            #expect(try await client.job(refused)?.state == .dead && scene.mails.attempts == 4)
            scene.mails.recover()
            _ = try await send("eve")
            _ = try await scene.bench.drain(timeout: .seconds(240))
            _ = try scene.mails.only(to: "eve@example.org")
            await client.close()
        }
    }
}
