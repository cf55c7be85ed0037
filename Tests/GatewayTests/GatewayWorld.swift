import Foundation
import Gateway
import JSON
import Listeners
import Postgres
import Queues
import Telemetry
import TestSupport
import Testing

/// A database with roles of its own, and a gateway in front of it. The token of a test is the person's name, or `person@tenant`.
struct GatewayWorld: Sendable {
    let database: TestDatabase
    /// Of the schema's owner.
    let owner: Connection
    let service: GatewayService
    let role: String
    let port: UInt16
    let session: URLSession

    struct Setup: Sendable {
        var template = Template.migrated
        var log = Log.silent
        /// Run by the owner before the gateway starts; ROLE in it becomes the clients' role.
        var script: String?
        var change: @Sendable (inout GatewayService.Options) -> Void = { _ in }
    }

    static func with(
        _ setup: Setup = Setup(), _ body: @Sendable (GatewayWorld) async throws -> Void
    ) async throws {
        let office = try await TestCluster.office()
        let role = TestCluster.name("app_client")
        let login = TestCluster.name("app_gateway")
        try await office.run("create role \(role)")
        try await office.run("create role \(login) login in role \(role)")
        let outcome: Result<Void, any Error>
        do {
            try await withDatabase(setup.template) { database in
                let owner = try await database.connect()
                _ = try await Migrator(roles: [("client", role), ("gateway", login)]).migrate(on: owner)
                try await GatewayFixture.install(owner, client: role, gateway: login)
                if let script = setup.script { try await owner.run(script.replacing("ROLE", with: role)) }
                try await serve(database, owner, role, login, setup, body)
                await owner.close()
            }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        try await office.run("drop role \(login)")
        try await office.run("drop role \(role)")
        await office.close()
        try outcome.get()
    }

    private static func serve(
        _ database: TestDatabase, _ owner: Connection, _ role: String, _ login: String, _ setup: Setup,
        _ body: @Sendable (GatewayWorld) async throws -> Void
    ) async throws {
        var options = GatewayService.Options(access: access, role: role, version: "1.2.3")
        setup.change(&options)
        let place = ConnectionOptions(location: database.url.replacing("//millrace@", with: "//\(login)@"))
        let pool = Pool(place, size: 8)
        let own = Pool(place, size: 2)
        let service = GatewayService(options, pool: pool, own: own, log: setup.log)
        var listening = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
        listening.isGuarded = true
        listening.grace = .seconds(1)
        listening.headPatience = .seconds(300)
        listening.stallPatience = .seconds(300)
        let listener = try Listener(listening, routes: service.routes, log: setup.log)
        let session = URLSession(configuration: .ephemeral, delegate: NoRedirects(), delegateQueue: nil)
        let world = GatewayWorld(
            database: database, owner: owner, service: service, role: role, port: listener.address.port,
            session: session)
        async let answering: Void = listener.run()
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body(world))
        } catch {
            outcome = .failure(error)
        }
        session.invalidateAndCancel()
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

        func header(_ name: String) -> String? { headers[name.lowercased()] }
        var json: JSONValue { (try? JSONValue.read(text)) ?? .null }
        func word(_ key: String) -> String? { json[key]?.text }
    }

    func ask(
        _ method: String, _ path: String, as person: String? = "ada", _ body: String? = nil,
        headers: [String: String] = [:]
    ) async throws -> Answer {
        var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(port)\(path)")))
        request.httpMethod = method
        request.timeoutInterval = 120
        if let person { request.setValue("Bearer \(person)", forHTTPHeaderField: "Authorization") }
        if let body {
            request.httpBody = Data(body.utf8)
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        let (data, response) = try await session.data(for: request)
        let http = try #require(response as? HTTPURLResponse)
        var found: [String: String] = [:]
        for (name, value) in http.allHeaderFields { found["\(name)".lowercased()] = "\(value)" }
        return Answer(status: http.statusCode, headers: found, text: String(decoding: data, as: UTF8.self))
    }

    func call(
        _ function: String, _ body: String? = nil, as person: String? = "ada", headers: [String: String] = [:]
    ) async throws -> Answer {
        try await ask("POST", "/v1/rpc/\(function)", as: person, body ?? "{}", headers: headers)
    }
}

/// A redirect is an answer like others.
private final class NoRedirects: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? { nil }
}
