import FoundationEssentials
import Glibc
import JSON
import Listeners
import MillraceQueues
import Postgres
import Telemetry
import TestSupport

@testable import Gateway

/// A gateway's streams on a port, and a database with the clients' role.
struct StreamKit: Sendable {
    let database: TestDatabase
    let role: String
    /// The owner's.
    let connection: Connection
    let gateways: [StreamGateway]

    var hub: FeedHub { gateways[0].hub }
    var port: UInt16 { gateways[0].listener.address.port }

    static func with(
        gateways count: Int = 1, options: FeedHub.Options = FeedHub.Options(),
        limits: EventStream.Limits = EventStream.Limits(), _ body: @escaping @Sendable (StreamKit) async throws -> Void
    ) async throws {
        try await withDatabase(template) { database in
            let connection = try await database.connect()
            try await serve(database, sharedRole, connection, gateways: count, options, limits, body)
            await connection.close()
        }
    }

    private static let sharedRole = "app_streams"
    private static let template = Template.migrated.adding("streams") { database in
        let connection = try await database.connect()
        try await connection.run("create role \(sharedRole)")
        try await prepare(connection, for: sharedRole)
        await connection.close()
    }

    private static func prepare(_ connection: Connection, for role: String) async throws {
        _ = try await Migrator.ofAllRooms(roles: [("client", role)]).migrate(on: connection)
        try await connection.run("select millrace.trust_claims(session_user)")
    }

    /// Over a database that is there already, with a role of its own.

    static func with(
        _ database: TestDatabase, gateways count: Int = 1, options: FeedHub.Options = FeedHub.Options(),
        limits: EventStream.Limits = EventStream.Limits(), _ body: @escaping @Sendable (StreamKit) async throws -> Void
    ) async throws {
        let role = TestCluster.name("app")
        let connection = try await database.connect()
        try await connection.run("create role \(role)")
        try await prepare(connection, for: role)
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(
                try await serve(database, role, connection, gateways: count, options, limits, body))
        } catch {
            outcome = .failure(error)
        }
        let last = try await database.connect()
        try await last.run("drop owned by \(role); drop role \(role)")
        await last.close()
        await connection.close()
        try outcome.get()
    }

    private static func serve(
        _ database: TestDatabase, _ role: String, _ connection: Connection, gateways count: Int,
        _ options: FeedHub.Options, _ limits: EventStream.Limits,
        _ body: @escaping @Sendable (StreamKit) async throws -> Void
    ) async throws {
        var gateways: [StreamGateway] = []
        for _ in 0..<count {
            gateways.append(try StreamGateway(database, role: role, options: options, limits: limits))
        }
        let kit = StreamKit(database: database, role: role, connection: connection, gateways: gateways)
        let outcome: Result<Void, any Error>
        do {
            try await withThrowingTaskGroup { group in
                for gateway in gateways { group.addTask { try await gateway.run() } }
                try await body(kit)
                for gateway in gateways { gateway.listener.stop() }
                group.cancelAll()
                try await group.waitForAll()
            }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        for gateway in gateways { await gateway.pool.close() }
        try outcome.get()
    }

    /// Writes one change, as the triggers do.
    func say(
        _ ref: String, to person: String? = nil, tenant: String? = nil, topic: String = "documents",
        lesson: String? = nil, data: String = "{}", on given: Connection? = nil
    ) async throws {
        try await (given ?? connection).execute(
            """
            with f as (insert into millrace.feed (at, topic, person, tenant, lesson, ref, change, data)
                       values (millrace.now(), $1, $2, $3, $4, $5, 'changed', $6) returning place)
            select millrace.feed_wake() from f
            """, [.text(topic), .text(person), .text(tenant), .text(lesson), .text(ref), .json(data)])
    }

    func stream(
        _ path: String = "/v1/me/events", as claims: String = #"{"sub":"ada"}"#, after position: Int64? = nil,
        on gateway: Int = 0
    ) throws -> StreamClient {
        try StreamClient(
            to: gateways[gateway].listener.address.port, path, claims: claims,
            position.map { "Last-Event-ID: \($0)\r\n" } ?? "")
    }

    /// All seqs of a person, as they stand in the database when everything has been numbered.
    func seqs(of person: String) async throws -> [Int] {
        _ = try await connection.query("select millrace.feed_number()") { _ throws(PostgresError) in true }
        return try await connection.column(
            "select seq from millrace.feed where person = '\(person)' order by seq"
        ).compactMap { Int($0) }
    }
}

struct StreamGateway: Sendable {
    let hub: FeedHub
    let jobs: JobHub
    let pool: Pool
    let listener: Listener

    init(_ database: TestDatabase, role: String, options: FeedHub.Options, limits: EventStream.Limits) throws {
        pool = Pool(database.options, size: 4)
        let gateway = GatewayDatabase(pool: pool, role: role)
        hub = FeedHub(
            gateway, connecting: database.options, hearing: NotificationHub(database.options), options: options,
            log: .silent)
        jobs = JobHub(pool: pool, log: .silent)
        let streams = StreamRoutes(
            feed: FeedStreams(hub: hub, limits: limits), jobs: JobStreams(hub: jobs, database: gateway))
        guard let address = ListenAddress("127.0.0.1:0") else { throw StreamClient.Refused() }
        var listening = Listener.Options(address: address)
        listening.headPatience = .seconds(300)
        listening.stallPatience = .seconds(300)
        listening.grace = .seconds(300)
        var served = GatewayService.Options(access: { try Self.caller(of: $0) }, role: role, version: "0")
        served.rates.subject = nil
        served.rates.address = nil
        served.routes = streams.table
        let service = GatewayService(served, pool: pool, own: pool, log: .silent)
        listener = try service.listener(listening)
    }

    func run() async throws {
        await withDiscardingTaskGroup { group in
            group.addTask { await hub.run() }
            group.addTask { await jobs.run() }
            group.addTask { try? await listener.run() }
        }
    }

    /// The claims themselves are the token.
    private static func caller(of request: Request) throws -> GatewayCaller {
        let claims = String((request.headers["Authorization"] ?? "").dropFirst("Bearer ".count))
        guard let value = try? JSONValue.read(claims), let subject = value["sub"]?.text else {
            throw ErrorAnswer(.authentication, "no token")
        }
        let expires = value["exp"]?.integer.map { Date(timeIntervalSince1970: Double($0)) } ?? .distantFuture
        return GatewayCaller(subject: subject, claims: Array(claims.utf8), expires: expires)
    }
}

/// Reads server-sent events by the rules of the standard.
final class StreamClient: Sendable {
    struct Refused: Error {}

    struct Event: Sendable, Equatable {
        var name = "message"
        var id = ""
        var data = ""
        var seq: Int? { Int(id) }
    }

    private struct State {
        var raw: [UInt8] = []
        var text: [UInt8] = []
        var head: String?
        var lastID = ""
        var comments = 0
        var isOver = false
    }

    private let descriptor: Int32
    private let state = Locked(State())

    init(to port: UInt16, _ path: String, claims: String, _ headers: String = "", room: Int32? = nil) throws {
        descriptor = try LocalSocket.connect(to: port, room: room)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        let bytes = Array(
            "GET \(path) HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(claims)\r\n\(headers)\r\n".utf8)
        _ = send(descriptor, bytes, bytes.count, Int32(truncatingIfNeeded: MSG_NOSIGNAL))
    }

    deinit { Glibc.close(descriptor) }

    /// How often a comment came.
    var comments: Int { state.withLock { $0.comments } }

    /// The head of the answer.
    func head() async throws -> String {
        try await eventually("an answer comes") {
            read()
            return state.withLock { $0.head != nil }
        }
        return state.withLock { $0.head ?? "" }
    }

    /// The next event; nil at the end of the stream.
    func next() async throws -> Event? {
        var found: Event?
        try await eventually("an event comes") {
            read()
            found = take()
            return found != nil || state.withLock { $0.isOver }
        }
        return found
    }

    /// The events up to the one with this number, or as many as `count`.
    func events(_ count: Int) async throws -> [Event] {
        var events: [Event] = []
        while events.count < count, let event = try await next() { events.append(event) }
        return events
    }

    /// The whole answer of a request that ends.
    func body() async throws -> String {
        try await eventually("the answer is whole") {
            read()
            return state.withLock { state in
                guard let head = state.head?.lowercased() else { return state.isOver }
                let length = head.split(separator: "content-length: ").dropFirst().first?.prefix { $0.isNumber }
                return state.isOver || Int(length ?? "").map { state.raw.count + state.text.count >= $0 } ?? false
            }
        }
        return state.withLock { String(decoding: $0.text + $0.raw, as: UTF8.self) }
    }

    /// Whatever has come.
    private func read() {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while case let count = recv(descriptor, &bytes, bytes.count, 0), count >= 0 {
            let isEnd = count == 0
            state.withLock { state in
                state.raw += bytes.prefix(count)
                if isEnd { state.isOver = true }
                Self.unpack(&state)
            }
            if isEnd { return }
        }
        if errno != EAGAIN { state.withLock { $0.isOver = true } }
    }

    private static func unpack(_ state: inout State) {
        if state.head == nil, let end = state.raw.firstRange(of: Array("\r\n\r\n".utf8)) {
            state.head = String(decoding: state.raw[..<end.upperBound], as: UTF8.self)
            state.raw.removeSubrange(..<end.upperBound)
        }
        guard state.head?.lowercased().contains("transfer-encoding: chunked") == true else { return }
        while let end = state.raw.firstRange(of: [13, 10]),
            let size = Int(String(decoding: state.raw[..<end.lowerBound], as: UTF8.self), radix: 16),
            state.raw.count >= end.upperBound + size + 2
        {
            if size == 0 { state.isOver = true }
            state.text += state.raw[end.upperBound..<end.upperBound + size]
            state.raw.removeSubrange(..<(end.upperBound + size + 2))
        }
    }

    private func take() -> Event? {
        state.withLock { state in
            while let end = state.text.firstRange(of: [10, 10]) {
                let lines = String(decoding: state.text[..<end.lowerBound], as: UTF8.self).split(separator: "\n")
                state.text.removeSubrange(..<end.upperBound)
                var event = Event()
                for line in lines {
                    if line.hasPrefix(":") { state.comments += 1 }
                    if line.hasPrefix("id: ") { state.lastID = String(line.dropFirst(4)) }
                    if line.hasPrefix("event: ") { event.name = String(line.dropFirst(7)) }
                    if line.hasPrefix("data: ") { event.data += line.dropFirst(6) }
                }
                event.id = state.lastID
                if !event.data.isEmpty { return event }
            }
            // A comment may stand alone.
            while state.text.starts(with: Array(": alive\n".utf8)) {
                state.text.removeFirst(8)
                state.comments += 1
            }
            return nil
        }
    }
}
