import Faults
import FoundationEssentials
import Postgres
import Supervision
import Synchronization
import Telemetry
import TestSupport

@testable import Notices

/// The notices in their own database.
struct NoticeBench: Sendable {
    let database: TestDatabase
    let connection: Connection
    let pool: Pool

    /// Runs a notice service beside `body`, and ends it.
    func withService<Value: Sendable>(
        _ providers: [any NoticeProvider], supervisor: Supervisor = NoticeBench.supervisor(),
        _ change: (inout NoticeService.Options) -> Void = { _ in }, _ body: (NoticeService) async throws -> Value
    ) async throws -> Value {
        var options = NoticeService.Options(database: database.options)
        options.app = "Shop"
        change(&options)
        let service = NoticeService(options, providers: providers, supervisor: supervisor, log: .silent)
        let running = Task { await service.run() }
        do {
            let value = try await body(service)
            running.cancel()
            await running.value
            return value
        } catch {
            running.cancel()
            await running.value
            throw error
        }
    }

    static func supervisor(_ change: (inout Supervisor.Options) -> Void = { _ in }) -> Supervisor {
        var options = Supervisor.Options()
        options.retryShare = 1
        change(&options)
        return Supervisor(options, log: .silent)
    }

    func addDevice(_ token: String, of person: String = "ada", platform: String = "apns") async throws {
        try await connection.run("select millrace.device_add('\(person)', '\(platform)', '\(token)')")
    }

    func prefer(
        _ channels: String, person: String = "ada", from: String = "00:00", to: String = "00:00", locale: String = "en"
    ) async throws {
        try await connection.run(
            "select millrace.notice_preferences('\(person)', 'UTC', '\(from)', '\(to)', '\(channels)', '\(locale)')")
    }

    @discardableResult
    func send(_ kind: String = "note", to person: String = "ada", _ more: String = "") async throws -> String {
        try await connection.value(
            "select millrace.notice_send('\(person)', '\(kind)'\(more.isEmpty ? "" : ", \(more)"))") ?? ""
    }

    /// One sending to one address, as rooms above write it.
    @discardableResult
    func put(
        _ channel: String, _ address: String, key: String, alarm: Bool = true, kind: String = "alarm.raised"
    ) async throws -> String {
        try await connection.value(
            """
            select millrace.notice_put('ada', '\(kind)', '\(channel)', '\(address)', '{"name": "Ben"}', '\(key)', millrace.now(), null, \(alarm))
            """) ?? ""
    }

    func take(alarms: Bool, holder: Int64 = 1, most: Int = 100, lease: Duration = .seconds(30)) async throws
        -> [Sending]
    {
        try await NoticeStore.take(alarms: alarms, most: most, holder: holder, lease: lease, on: connection)
    }

    func record(_ sending: Sending, _ delivery: NoticeOutcome, holder: Int64 = 1, provider: String = "apns")
        async throws
    {
        try await NoticeStore.record(
            [NoticeStore.Result(sending, provider: provider, delivery, took: .milliseconds(3))], holder: holder,
            on: connection)
    }

    /// "status" and other columns of a notice.
    func look(_ id: String, _ what: String = "status") async throws -> String? {
        try await connection.value("select (\(what))::text from millrace.notices where id = '\(id)'")
    }

    func settled(_ id: String, as status: String) async throws {
        try await eventually("the notice is \(status)") { try await look(id) == status }
    }
}

func withNotices<Value: Sendable>(_ body: (NoticeBench) async throws -> Value) async throws -> Value {
    try await withDatabase(.movableClock) { database in
        let connection = try await database.connect()
        let pool = Pool(database.options, size: 4)
        let value = try await body(NoticeBench(database: database, connection: connection, pool: pool))
        await pool.close()
        await connection.close()
        return value
    }
}

/// Takes sendings, and answers as scripted.
final class ScriptedNoticeProvider: NoticeProvider {
    let name: String
    private let brought = Mutex<[Sending]>([])
    private let answer: @Sendable (Sending, Int) async -> NoticeOutcome

    init(
        _ name: String = "apns",
        _ answer: @escaping @Sendable (Sending, Int) async -> NoticeOutcome = { _, _ in .accepted(id: "1") }
    ) {
        self.name = name
        self.answer = answer
    }

    var sendings: [Sending] { brought.withLock { $0 } }

    func send(_ sending: Sending, _ words: NoticeWords, call: Call) async -> NoticeOutcome {
        let number = brought.withLock { brought in
            brought.append(sending)
            return brought.count
        }
        return await answer(sending, number)
    }
}

let unavailable = Fault(.unavailable, code: "503", "it is away")
