import Composition
import Foundation
import Listeners
import MillraceQueues
import Postgres
import Telemetry
import TestSupport
import Testing

@testable import Console

/// A database with something in every room, and a console that shows it.
struct ConsoleWorld: Sendable {
    let database: TestDatabase
    /// Of the schema's owner.
    let connection: Connection
    let service: ConsoleService
    let port: UInt16
    let roles: [ConsoleRole: String]

    var host: String { "127.0.0.1:\(port)" }
    var origin: String { "http://\(host)" }

    struct Setup {
        var access = ConsoleAccess(key: Array("a key of thirty-two bytes for tests".utf8))
        /// Stands at the end of each text that a user can fill; nil: nothing is filled in at all.
        var addition: String? = ""
        var keepsHouse = false
        var roles = Roles.shared
        /// Of a world with roles of its own, or none.
        var template = Template.migrated
        var log = Log.silent
        var frames: String?
        var livePagesOfVisitor: Int?
        /// What the console connects with in place of the database's owner.
        var options: ConnectionOptions?
    }

    enum Roles {
        /// One for each role of the console, for all tests.
        case shared
        /// Of the test alone, which may drop them.
        case own
        case none
    }

    private static let sharedRoles = Dictionary(
        uniqueKeysWithValues: ConsoleRole.allCases.map { ($0, "console_\($0.rawValue)") })
    private static let template = Template.migrated.adding("console") { database in
        let connection = try await database.connect()
        try await create(sharedRoles, connection)
        try await grant(sharedRoles, connection)
        await connection.close()
    }

    private static func create(_ roles: [ConsoleRole: String], _ connection: Connection) async throws {
        for name in roles.values { try await connection.run("create role \(name) login") }
    }

    private static func grant(_ roles: [ConsoleRole: String], _ connection: Connection) async throws {
        _ = try await Migrator.ofAllRooms(roles: roles.map { ($0.rawValue, $1) }).migrate(on: connection)
    }

    /// Changes the setup, then runs `body` with a console of its own.
    static func with(
        _ change: (inout Setup) throws -> Void = { _ in }, _ body: @Sendable (ConsoleWorld) async throws -> Void
    ) async throws {
        var setup = Setup()
        try change(&setup)
        let chosen = setup
        if setup.roles == .shared { return try await fill(template, chosen, sharedRoles, body) }
        let roles = Dictionary(
            uniqueKeysWithValues: ConsoleRole.allCases.map { ($0, TestCluster.name("console_\($0.rawValue)")) })
        if setup.roles == .none { return try await fill(setup.template, chosen, roles, body) }
        let office = try await TestCluster.office()
        try await create(roles, office)
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await fill(setup.template, chosen, roles, body))
        } catch {
            outcome = .failure(error)
        }
        for name in roles.values { try await office.run("drop role \(name)") }
        await office.close()
        try outcome.get()
    }

    private static func fill(
        _ template: Template, _ setup: Setup, _ roles: [ConsoleRole: String],
        _ body: @Sendable (ConsoleWorld) async throws -> Void
    ) async throws {
        try await withDatabase(template) { database in
            let connection = try await database.connect()
            if setup.roles == .own { try await grant(roles, connection) }
            if let addition = setup.addition { try await Seed.fill(connection, adding: addition) }
            try await serve(database, connection, setup, roles, body)
            await connection.close()
        }
    }

    /// A console over a database that is there already.
    static func serve(
        _ database: TestDatabase, _ connection: Connection, _ setup: Setup, _ roles: [ConsoleRole: String],
        _ body: @Sendable (ConsoleWorld) async throws -> Void
    ) async throws {
        var options = ConsoleService.Options(access: setup.access, roles: roles, version: "1.2.3")
        options.keepsHouse = setup.keepsHouse
        if let frames = setup.frames { options.frameAncestors = frames }
        if let most = setup.livePagesOfVisitor { options.livePagesOfVisitor = most }
        let pool = ConsoleService.connections(setup.options ?? database.options, size: 8)
        let service = try ConsoleService(options, pool: pool, log: setup.log) { connection in
            let report = try await StatusReport.read(on: connection, cap: 50, patience: .seconds(20))
            return ConsoleService.Verdict(of: report)
        }
        var listening = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
        listening.isGuarded = true
        listening.grace = .seconds(1)
        listening.headPatience = .seconds(300)
        listening.stallPatience = .seconds(300)
        let listener = try Listener(listening, routes: service.routes, log: .silent)
        let world = ConsoleWorld(
            database: database, connection: connection, service: service, port: listener.address.port, roles: roles)
        let running = Task { await service.run() }
        async let answering: Void = listener.run()
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body(world))
        } catch {
            outcome = .failure(error)
        }
        listener.stop()
        try await answering
        running.cancel()
        await running.value
        await pool.close()
        try outcome.get()
    }

    // MARK: asking without a browser

    func get(_ path: String, _ headers: [(String, String)] = []) async throws -> RawAnswer {
        try await RawAnswer.get(path, host: host, headers, port: port)
    }

    func post(
        _ path: String, _ form: [(String, String)], _ headers: [(String, String)] = []
    ) async throws -> RawAnswer {
        let body = form.map { "\(PageAddress.encoded($0.0))=\(PageAddress.encoded($0.1))" }.joined(separator: "&")
        return try await RawAnswer.ask(
            "POST \(path) HTTP/1.1", host: host,
            headers + [
                ("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "\(body.utf8.count)"),
            ], body: body, port: port)
    }

    /// The form token that a page gives its visitor.
    func formToken(_ headers: [(String, String)] = []) async throws -> String {
        let page = try await get("/console/queue?name=slow", headers).body
        let mark = "name=\"form_token\" value=\""
        guard let start = page.range(of: mark)?.upperBound else { return "" }
        return String(page[start...].prefix { $0 != "\"" })
    }

    /// The cookie of somebody who signs in.
    func cookie(_ name: String, _ secret: String) async throws -> String {
        let answer = try await post("/console/signin", [("name", name), ("secret", secret)])
        let set = try #require(answer.header("Set-Cookie"), "\(answer.status) \(answer.body.prefix(400))")
        return String(set.prefix { $0 != ";" })
    }

    func job(_ state: String, kind: String = "report.build") async throws -> String {
        try #require(
            try await connection.value(
                "select min(id) from millrace.jobs where state = '\(state)' and kind = '\(kind)'"),
            "no job of \(kind) is \(state)")
    }

    /// The job that waits for a signal.
    func signalled() async throws -> String {
        try #require(try await connection.value("select min(job) from millrace.wait where what = 2"))
    }

    func alarm() async throws -> String {
        try #require(try await connection.value("select min(id::text) from millrace.alarms"))
    }
}
