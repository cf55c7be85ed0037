import Foundation
import MillraceWorker
import Postgres
import Synchronization
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct Greet: Job {
    static let kind = "greet"
    var name: String
}

private final class Heard: LogReceiver {
    private let state = Mutex<[WorkerLogLine]>([])

    var messages: [String] { state.withLock { $0.map(\.message) } }
    func log(_ event: WorkerLogLine) { state.withLock { $0.append(event) } }
}

@Suite struct CompleteWorkerTests {
    private static func options(_ database: TestDatabase, outbox: String) -> CompleteWorker.Options {
        var options = CompleteWorker.Options(settings: ["MILLRACE_MAIL_OUTBOX": outbox])
        options.readsEnvironment = false
        options.database = .url(database.url)
        options.listen = "off"
        options.slots = 8
        options.drainTimeout = .seconds(20)
        return options
    }

    @Test func `a program's worker runs its own jobs and sends mail, and ends in order when it is cancelled`()
        async throws
    {
        try await withDatabase { database in
            let outbox = FileManager.default.temporaryDirectory.appending(path: "outbox-\(UUID().uuidString)").path
            defer { try? FileManager.default.removeItem(atPath: outbox) }
            let heard = Heard()
            var options = Self.options(database, outbox: outbox)
            options.name = "shop"
            options.logReceiver = heard
            let worker = try CompleteWorker(options)
            let greeted = Mutex<[String]>([])
            worker.handle(Greet.self) { job, _ in
                greeted.withLock { $0.append(job.name) }
                return .done
            }
            try worker.schedule("daily", "@daily", Greet(name: "everybody"))
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.enqueue('greet', '{"name": "ada"}');
                select millrace.mail_send('{ada@example.org}', 'Hello', 'Hello Ada')
                """)
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("the job has run and the mail is in the outbox") {
                let isSent = try await connection.value("select max(status) from millrace.mail_messages") == "accepted"
                return isSent && greeted.withLock { $0 } == ["ada"]
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: outbox).count == 1)
            #expect(try await connection.value("select name from millrace.process where ended_at is null") == "shop")
            #expect(try await connection.value("select name from millrace.schedules") == "daily")
            running.cancel()
            let report = try await running.value
            #expect(report.finished >= 2 && report.abandoned == 0 && report.unrecorded == 0, "\(report)")
            #expect(
                try await connection.int(
                    "select count(*) from millrace.process where ending is distinct from 'stopped'") == 0)
            #expect(heard.messages.contains("worker started") && heard.messages.contains("worker stopped"))
            await connection.close()
        }
    }

    @Test func `it serves the rooms that it is told to serve, and no others`() async throws {
        try await withDatabase { database in
            var options = Self.options(database, outbox: "/tmp/never")
            options.rooms = [.quests]
            options.log = .silent
            let worker = try CompleteWorker(options)
            let running = Task { try await worker.run(handlesSignals: false) }
            let connection = try await database.connect()
            try await eventually("it has started") {
                try await connection.int("select count(*) from millrace.process") == 1
            }
            let kinds = try await connection.column("select name from millrace.kind order by name")
            #expect(kinds.contains("quests.rollover"))
            #expect(!kinds.contains { $0.hasPrefix("mail.") || $0.hasPrefix("document") }, "\(kinds)")
            worker.drain()
            _ = try await running.value
            await connection.close()
        }
    }

    @Test func `of the rooms that it is not told to serve, nothing listens and nothing is measured`() async throws {
        try await withDatabase { database in
            var options = Self.options(database, outbox: "/tmp/never")
            let port = Int.random(in: 20_000...29_999)
            options.listen = "127.0.0.1:\(port)"
            options.log = .silent
            options.settings["STRIPE_WEBHOOK_SECRET"] = "whsec_0123456789abcdefghijklmnop"
            options.rooms = [.checkIns]
            var shown = try await Self.answers(options, port)
            #expect(shown == ["checkins_expired_total", "404"])
            options.rooms = [.subscriptions]
            shown = try await Self.answers(options, port)
            #expect(shown == ["subscription_messages_total", "401"])
        }
    }

    /// Which rooms' numbers a worker shows, and how it answers a message of Stripe without a signature.
    private static func answers(_ options: CompleteWorker.Options, _ port: Int) async throws -> [String] {
        let worker = try CompleteWorker(options)
        let running = Task { try await worker.run(handlesSignals: false) }
        let base = "http://127.0.0.1:\(port)"
        let metrics = try #require(URL(string: base + "/metrics"))
        let page = Mutex("")
        try await eventually("it is ready") {
            // Not by a call that holds a thread of the pool: the worker needs one to answer.
            guard let (data, _) = try? await URLSession.shared.data(from: metrics) else { return false }
            let text = String(decoding: data, as: UTF8.self)
            page.withLock { $0 = text }
            return text.contains("millrace_worker_ready 1")
        }
        var request = URLRequest(url: try #require(URL(string: base + "/v1/webhooks/stripe")))
        request.httpMethod = "POST"
        request.httpBody = Data("{}".utf8)
        let (_, response) = try await URLSession.shared.data(for: request)
        worker.drain()
        _ = try await running.value
        let told = ["checkins_expired_total", "notices_total", "webhook_events_total", "subscription_messages_total"]
        let shown = page.withLock { page in told.filter { page.contains("# TYPE millrace_\($0) ") } }
        return shown + ["\((response as? HTTPURLResponse)?.statusCode ?? 0)"]
    }

    @Test func `it answers probes where it is told to listen`() async throws {
        try await withDatabase { database in
            var options = Self.options(database, outbox: "/tmp/never")
            let port = Int.random(in: 20_000...29_999)
            options.listen = "127.0.0.1:\(port)"
            options.log = .silent
            let worker = try CompleteWorker(options)
            worker.handle(Greet.self) { _, _ in .done }
            let running = Task { try await worker.run(handlesSignals: false) }
            let url = try #require(URL(string: "http://127.0.0.1:\(port)/metrics"))
            try await eventually("it is ready") {
                guard let page = try? String(contentsOf: url, encoding: .utf8) else { return false }
                return page.contains("millrace_worker_ready 1") && page.contains("millrace_mail_messages_total")
            }
            worker.drain()
            _ = try await running.value
        }
    }

    @Test func `all that is wrong with its settings is told at once`() {
        let error = #expect(throws: QueueError.self) {
            var options = CompleteWorker.Options(settings: ["MILLRACE_POLL": "never", "MILLRACE_TOKEN": "short"])
            options.readsEnvironment = false
            options.slots = 0
            _ = try CompleteWorker(options)
        }
        #expect(error?.errorClass == .misconfigured)
        for name in ["MILLRACE_POLL", "MILLRACE_TOKEN", "MILLRACE_SLOTS"] {
            #expect(error?.description.contains(name) == true, "\(String(describing: error))")
        }
    }
}
