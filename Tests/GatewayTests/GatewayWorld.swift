import Faults
import Foundation
import Gateway
import JSON
import Listeners
import MillraceQueues
import Postgres
import Telemetry
import TestSupport
import Testing

/// A database, and a gateway in front of it. The token of a test is the person's name, or `person@tenant`.
struct GatewayWorld: Sendable {
    let database: TestDatabase
    /// Of the schema's owner.
    let owner: Connection
    let service: GatewayService
    let role: String
    let port: UInt16

    struct Setup: Sendable {
        var template = GatewayWorld.migrated
        var log = Log.silent
        var isPooled = false
        /// Run by the owner before the gateway starts; ROLE in it becomes the clients' role.
        var script: String?
        var change: @Sendable (inout GatewayService.Options) -> Void = { _ in }
    }

    private static let role = "app_client"
    private static let login = "app_gateway"
    private static let creatingRoles = Task {
        let office = try await TestCluster.office()
        try await office.run("create role \(role); create role \(login) login in role \(role)")
        await office.close()
    }

    static let migrated = granted(.migrated, "gateway")
    static let movableClock = granted(.movableClock, "gateway_clock")
    static let planted = granted(.planted, "gateway_planted")

    private static func granted(_ template: Template, _ name: String) -> Template {
        template.adding(name) { database in
            let owner = try await database.connect()
            try await creatingRoles.value
            _ = try await Migrator.ofAllRooms(roles: [("client", role), ("gateway", login)]).migrate(on: owner)
            await owner.close()
        }
    }

    static func with(
        _ setup: Setup = Setup(), _ body: @Sendable (GatewayWorld) async throws -> Void
    ) async throws {
        try await withDatabase(setup.template) { database in
            let owner = try await database.connect()
            if let script = setup.script {
                try await owner.run(script.replacing("ROLE", with: role))
                try await owner.run(openToApps(role))
            }
            if setup.isPooled {
                try await withPooler(to: database, as: login, servers: 8) { place in
                    try await serve(database, owner, role, place, setup, body)
                }
            } else {
                let place = ConnectionOptions(
                    location: database.url.replacing("//millrace@", with: "//\(login)@"))
                try await serve(database, owner, role, place, setup, body)
            }
            await owner.close()
        }
    }

    /// Says that the functions which the script has made, and which the role may call, are doors of apps.
    private static func openToApps(_ role: String) -> String {
        """
        select millrace.door_is('tests', p.proname::text, 'client', 'open', 'Of a test.') from pg_proc p
         where p.pronamespace = 'millrace'::regnamespace and has_function_privilege('\(role)', p.oid, 'execute')
           and not exists (select from millrace.door d where d.name = p.proname)
        """
    }

    private static func serve(
        _ database: TestDatabase, _ owner: Connection, _ role: String, _ place: ConnectionOptions, _ setup: Setup,
        _ body: @Sendable (GatewayWorld) async throws -> Void
    ) async throws {
        var options = GatewayService.Options(access: access, role: role, version: "1.2.3")
        setup.change(&options)
        let pool = Pool(place, size: 8)
        let own = Pool(place, size: 2)
        let service = GatewayService(options, pool: pool, own: own, log: setup.log)
        var listening = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
        listening.grace = .seconds(1)
        listening.headPatience = .seconds(300)
        listening.stallPatience = .seconds(300)
        let listener = try service.listener(listening)
        let world = GatewayWorld(
            database: database, owner: owner, service: service, role: role, port: listener.address.port)
        async let answering: Void = listener.run()
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body(world))
        } catch {
            outcome = .failure(error)
        }
        listener.stop()
        try await answering
        await pool.close()
        await own.close()
        try outcome.get()
    }

    @Sendable static func access(_ request: Request) async throws -> GatewayCaller {
        let given = request.headers["Authorization"] ?? ""
        let isDevice = given.hasPrefix("Device ")
        guard isDevice || given.hasPrefix("Bearer ") else {
            throw GatewayProblem(.authentication, "a token is needed", field: "Authorization")
        }
        let parts = given.dropFirst(7).split(separator: "@").map(String.init)
        guard let subject = parts.first, !subject.isEmpty else {
            throw GatewayProblem(.authentication, "the token is not good", field: "Authorization")
        }
        var claims = [("sub", JSONText.quoted(subject))]
        if parts.count > 1 { claims.append(("tenant", JSONText.quoted(parts[1]))) }
        return GatewayCaller(
            subject: subject, claims: Array(JSONText.object(claims).utf8), expires: .distantFuture,
            device: isDevice ? "phone" : nil)
    }

    // MARK: asking

    struct Answer: Sendable {
        let status: Int
        let headers: [String: String]
        let text: String

        init(_ whole: String) throws {
            let head = try #require(whole.range(of: "\r\n\r\n"), "no answer: \(whole.prefix(200))")
            var lines = whole[..<head.lowerBound].split(separator: "\r\n")
            status = try #require(Int(lines.removeFirst().split(separator: " ")[1]))
            var found: [String: String] = [:]
            for line in lines {
                let halves = line.split(separator: ":", maxSplits: 1)
                found[halves[0].lowercased()] = halves[1].trimmingCharacters(in: .whitespaces)
            }
            headers = found
            text = String(whole[head.upperBound...])
        }

        func header(_ name: String) -> String? { headers[name.lowercased()] }
        var json: JSONValue { (try? JSONValue.read(text)) ?? .null }
        func word(_ key: String) -> String? { json[key]?.text }
    }

    func ask(
        _ method: String, _ path: String, as person: String? = "ada", _ body: String? = nil,
        headers: [String: String] = [:]
    ) async throws -> Answer {
        var all = ["Host": "127.0.0.1:\(port)", "Connection": "close"]
        if let person { all["Authorization"] = "Bearer \(person)" }
        if let body {
            all["Content-Type"] = "application/json"
            all["Content-Length"] = "\(body.utf8.count)"
        }
        all.merge(headers) { _, given in given }
        let lines = ["\(method) \(path) HTTP/1.1"] + all.map { "\($0): \($1)" }
        let text = lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")
        let bytes = try await LocalSocket.exchange(Array(text.utf8), port: port)
        return try Answer(String(decoding: bytes, as: UTF8.self))
    }

    func call(
        _ function: String, _ body: String? = nil, as person: String? = "ada", headers: [String: String] = [:]
    ) async throws -> Answer {
        try await ask("POST", "/v1/rpc/\(function)", as: person, body ?? "{}", headers: headers)
    }
}
