import Foundation
import MillraceQueues
import MillraceWorker
import Postgres
import RoomSchemas
import Synchronization
import TestSupport
import Testing

@testable import MillraceCommand

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

private struct Greet: Job {
    static let kind = "greet"
}

private final class Heard: LogReceiver {
    private let state = Mutex<[String]>([])

    var lines: [String] { state.withLock { $0 } }
    func log(_ event: WorkerLogLine) { state.withLock { $0.append("\(event.message) \(event.metadata)") } }
}

/// A database with the core, one room and what that room needs, and nothing else: each is one that somebody may choose.
@Suite struct RoomAloneTests {
    /// Something that the room does, and a question that is true when it is done. Where a worker does it, that is a complete one.
    private struct Work {
        var calls: String
        var done: String
    }

    private static let work: [String: Work] = [
        "blobs": Work(
            calls: "select millrace.blob_put(sha256('x'), 'x')",
            done: "select octet_length(millrace.blob_piece(sha256('x'), 0)) = 1"),
        "events": Work(
            calls: "select millrace.event_publish('order.paid', '/tests', '1')",
            done: "select count(*) = 1 from millrace.event_list()"),
        "people": Work(
            calls: """
                select millrace.family_create('fam', 'UTC');
                select millrace.family_join('fam', 'ada', 'parent');
                select millrace.person_profile('ada', 'Ada', actor => 'ada')
                """, done: "select millrace.person_show('ada', 'ada') ->> 'display_name' = 'Ada'"),
        "quotas": Work(
            calls: "select millrace.quota_set('acme', 'pages', 100)",
            done: "select \"limit\" = 100 from millrace.quotas where tenant = 'acme'"),
        "feed": Work(
            calls: """
                select millrace.feed_say(array[millrace.feed_change(now(), 'documents', '1', 'changed', '{}', person => 'ada')])
                """, done: "select exists (select from millrace.feed where person = 'ada')"),
        "templates": Work(
            calls: "select millrace.template_publish('hello', 'Hello', '<p>Hello</p>', 'Hello', '{}')",
            done: "select exists (select from millrace.template_version where name = 'hello')"),
        "webhooks": Work(
            calls: """
                select millrace.webhook_add('https://127.0.0.1:1/hook', '{order.*}', handshake => false);
                select millrace.event_publish('order.paid', '/tests', '1')
                """, done: "select exists (select from millrace.webhook_delivery)"),
        "mail": Work(
            calls: "select millrace.mail_send('{ada@example.org}', 'Hello', 'Hello Ada')",
            done: "select max(status) = 'accepted' from millrace.mail_messages"),
        "notices": Work(
            calls: "select millrace.notice_send('ada', 'water')",
            done: "select status <> 'pending' from millrace.notice"),
        "ai": Work(
            calls: """
                select millrace.ai_providers_tell('[{"name": "fake", "wire": "openai", "model": "m"}]');
                select millrace.ai_switch('tenant', 'acme', true);
                select millrace.ai_ask('sentiment', '{"text": "x"}', tenant => 'acme')
                """, done: "select exists (select from millrace.ai_question where tenant = 'acme')"),
        "documents": Work(
            calls: "select millrace.document_register('https://127.0.0.1:1/a.pdf', actor => 'ada')",
            done:
                "select exists (select from millrace.job j join millrace.kind k on k.id = j.kind where k.name = 'document.receive')"
        ),
        "media": Work(
            calls: "select millrace.template_render('welcome', '{\"app_name\": \"Shop\", \"user_name\": \"Ada\"}')",
            done: "select millrace.result(1) ->> 'subject' <> ''"),
        "lessons": Work(
            calls: "select millrace.lesson_put('l1', 'Sums', actor => 'ada')",
            done: "select count(*) = 1 from millrace.lesson_list(actor => 'ada')"),
        "subscriptions": Work(
            calls: """
                select millrace.subscription_plan_set('pro', '{"pages": 10}', 1);
                select millrace.subscription_set('pro', 'ada')
                """, done: "select millrace.subscription_mine('ada') ->> 'plan' = 'pro'"),
        "quests": Work(
            calls: """
                select millrace.family_create('fam', 'UTC');
                select millrace.family_join('fam', 'ada', 'parent')
                """, done: "select millrace.quest_today('fam', 'ada') ->> 'state' = 'open'"),
        "checkins": Work(
            calls: """
                select millrace.check_in_contact('ada', 'bob', 1, '{"push": true}', actor => 'ada');
                select millrace.check_in_confirm('ada', 'bob');
                select millrace.check_in_arm('ada', actor => 'ada')
                """, done: "select millrace.check_in('ada', actor => 'ada') is not null"),
        "chat": Work(
            calls: """
                select millrace.family_create('fam', 'UTC');
                select millrace.family_join('fam', 'ada', 'parent');
                select millrace.chat_send(millrace.chat_thread_create(family => 'fam', actor => 'ada'), 'hello', actor => 'ada')
                """, done: "select count(*) = 1 from millrace.chat_search('hello', actor => 'ada')"),
        "gateway": Work(
            calls: "select millrace.gateway_beat('one', '127.0.0.1:1')",
            done: "select count(*) = 1 from millrace.gateways_shown()"),
        "console": Work(
            calls: "select millrace.console_sign_out(sha256('x'), now() + interval '1 day')",
            done: "select millrace.console_signed_out(sha256('x'))"),
    ]

    private static let core = Template.empty.adding("core_alone") { database in
        let connection = try await database.connect()
        _ = try await Migrator(rooms: RoomSchemas.all).migrate(on: connection)
        await connection.close()
    }

    /// What a room needs, and what that needs, in order.
    private static func withNeeds(_ name: String) -> [String] {
        var wanted: Set<String> = [name]
        for room in RoomSchemas.all.reversed() where wanted.contains(room.name) { wanted.formUnion(room.needs) }
        return RoomSchemas.names.filter(wanted.contains)
    }

    @Test(arguments: RoomSchemas.names)
    func `a room works with what it needs alone, and the commands and a worker keep to what is there`(room: String)
        async throws
    {
        let work = try #require(Self.work[room])
        try await withDatabase(Self.core) { database in
            let connection = try await database.connect()
            let report = try await Migrator(rooms: RoomSchemas.all, adding: [room]).migrate(on: connection)
            #expect(report.rooms == Self.withNeeds(room))
            try await connection.run(work.calls)
            try await Self.withWorker(database, console: room == "console") { page in
                try await connection.run("select millrace.enqueue('greet')")
                try await eventually("a job of the program is done") {
                    try await connection.bool("select exists (select from millrace.history where outcome = 1)")
                }
                try await eventually("the work of \(room) is done") { try await connection.bool(work.done) }
                try await Self.look(at: database)
                if room == "console" {
                    try await Self.walk(page)
                }
            }
            #expect(try await connection.int("select count(*) from millrace.hook_troubles()") == 0)
            await connection.close()
        }
    }

    /// Every page that the console's navigation leads to. One is about a room that this database has not.
    private static func walk(_ console: URL) async throws {
        func read(_ address: URL) async throws -> (status: Int?, text: String) {
            let (data, answer) = try await URLSession.shared.data(from: address)
            return ((answer as? HTTPURLResponse)?.statusCode, String(decoding: data, as: UTF8.self))
        }
        let first = try await read(console)
        #expect(first.status == 200 && first.text.contains("data-live=\"verdict\">OK</p>"))
        let paths = Set(first.text.matches(of: /href="(\/console\/[a-z]+)"/).map { String($0.1) })
        #expect(paths.count >= 20, "\(paths)")
        for path in paths.sorted() {
            let page = try await read(try #require(URL(string: path, relativeTo: console)))
            if path == "/console/webhooks" {
                #expect(page.status == 503 && page.text.contains("millrace rooms add webhooks"), "\(page)")
            } else {
                #expect(page.status == 200, "\(path): \(page)")
            }
        }
    }

    /// What people look at.
    private static func look(at database: TestDatabase) async throws {
        let environment = ["DATABASE_URL": database.url]
        let check = await millrace("rooms", "check", environment: environment)
        #expect(check.code == .done, "\(check)")
        let doctor = await millrace("doctor", environment: environment)
        #expect(doctor.output.contains("rooms: each is as this program has it"), "\(doctor)")
        for outcome in [
            doctor, await millrace("status", environment: environment),
            await millrace("status", "--json", environment: environment),
            await millrace("queues", "list", environment: environment),
            await millrace("why", "1", environment: environment),
        ] {
            #expect(outcome.code != .failed && outcome.code != .schemaMismatch, "\(outcome)")
            #expect(!(outcome.output + outcome.errors).contains("does not exist"), "\(outcome)")
        }
    }

    /// A complete worker while the body runs, which gets the address of its console.
    private static func withWorker(
        _ database: TestDatabase, console: Bool, _ body: (URL) async throws -> Void
    ) async throws {
        let outbox = FileManager.default.temporaryDirectory.appending(path: "outbox-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: outbox) }
        let port = Int.random(in: 20_000...29_999)
        var options = CompleteWorker.Options(settings: ["MILLRACE_MAIL_OUTBOX": outbox])
        if console { options.settings["MILLRACE_CONSOLE"] = "on" }
        options.readsEnvironment = false
        options.database = .url(database.url)
        options.listen = console ? "127.0.0.1:\(port)" : "off"
        options.slots = 4
        options.drainTimeout = .seconds(20)
        let heard = Heard()
        options.logReceiver = heard
        let worker = try CompleteWorker(options)
        worker.handle(Greet.self) { _, _ in .done }
        let running = Task { try await worker.run(handlesSignals: false) }
        let outcome: Result<Void, any Error>
        do {
            let page = try #require(URL(string: "http://127.0.0.1:\(port)/console"))
            outcome = .success(try await body(page))
        } catch {
            outcome = .failure(error)
        }
        worker.drain()
        #expect(try await running.value.unrecorded == 0)
        #expect(heard.lines.filter { $0.contains("does not exist") } == [])
        try outcome.get()
    }
}
