import Blobs
import Composition
import Foundation
import Gateway
import Listeners
import MillraceQueues
import Postgres
import Signatures
import Supervision
import TestSupport
import Testing

@testable import MillraceApp

/// A database, and a gateway as `millrace gateway` composes it, which a test starts and stops at one address.
struct AppWorld: Sendable {
    /// Of the schema's owner.
    let owner: Connection
    let url: URL
    private let composer: Composer

    static let secret = "a secret of thirty-two bytes: tests"

    /// - Parameter rates: of the gateway, as its setting has them.
    static func with(
        rates: String = "address=100000:100000,operations=100000:100000",
        _ body: @Sendable (AppWorld) async throws -> Void
    ) async throws {
        try await withDatabase(template) { database in
            let owner = try await database.connect()
            let world = try AppWorld(
                owner, client: client, database: database.url.replacing("//millrace@", with: "//\(login)@"),
                rates: rates)
            try await world.prepareLinks()
            try await body(world)
            await owner.close()
        }
    }

    private static let client = "app_people"
    private static let login = "app_login"
    private static let template = Template.migrated.adding("app") { database in
        let owner = try await database.connect()
        try await owner.run("create role \(client); create role \(login) login in role \(client)")
        _ = try await Migrator.ofAllRooms(roles: [("client", client), ("worker", login), ("gateway", login)]).migrate(
            on: owner)
        try await owner.run("select millrace.grant_enqueue('\(client)', 'document.receive', 'documents')")
        try await owner.run("select millrace.grant_enqueue('\(client)', 'media.process', 'media')")
        await owner.close()
    }

    private init(_ owner: Connection, client: String, database: String, rates: String) throws {
        self.owner = owner
        let address = "127.0.0.1:\(try freePort())"
        url = try #require(URL(string: "http://\(address)"))
        var surroundings = Surroundings.live()
        surroundings.environment = [
            "MILLRACE_GATEWAY_LISTEN": address, "MILLRACE_PUBLIC_URL": "http://\(address)",
            "MILLRACE_GATEWAY_JWT_SECRET": Self.secret, "MILLRACE_SECRET": "another secret of tests, for links",
            "MILLRACE_ROLE_CLIENT": client, "MILLRACE_DRAIN_TIMEOUT": "1s", "MILLRACE_LOG_LEVEL": "error",
            "MILLRACE_GATEWAY_RATES": rates, "MILLRACE_BLOBS_SWEEP": "off",
        ]
        let settings = Settings.load(surroundings: surroundings)
        try #require(settings.problems.isEmpty, "\(settings.problems)")
        composer = Composer(
            settings: settings, surroundings: surroundings, database: ConnectionOptions(location: database), direct: nil
        )
    }

    /// SQL makes links with the key that a worker writes.
    private func prepareLinks() async throws {
        let links = try #require(composer.settings.blobLinks)
        let key = try #require(links.newestKey)
        _ = try await owner.query(
            "select millrace.link_key_set($1, $2, $3)",
            [.bytea(key), .text(links.publicURL), .int8(Int64(composer.settings.largestDocument))]
        ) { _ throws(PostgresError) in true }
    }

    /// Runs a gateway while `body` runs.
    func serving<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
        let hearing = NotificationHub(composer.database)
        let supervisor = composer.supervisor(name: "gateway", hearing: hearing)
        let gateway = try composer.gateway(supervisor: supervisor, hearing: hearing, version: "1.2.3")
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await supervisor.run() }
            let serving = Task { try await gateway.run() }
            let outcome: Result<Value, any Error>
            do {
                outcome = .success(try await body())
            } catch {
                outcome = .failure(error)
            }
            gateway.listener.stop()
            try await serving.value
            group.cancelAll()
            return try outcome.get()
        }
    }

    /// Drains a queue while a gateway runs.
    func drain(_ queue: OfflineQueue) async throws -> OfflineQueue.Report {
        try await serving { try await queue.drain() }
    }

    /// Whether apps may call a function of this name.
    func has(_ door: String) async throws -> Bool {
        try await owner.bool("select exists (select from millrace.door where for_apps and name = '\(door)')")
    }

    // MARK: clients

    /// A token as Supabase issues them.
    static func token(of person: String, seconds: Double = 3600) -> String {
        let expiry = Int(Date(timeIntervalSinceNow: seconds).timeIntervalSince1970)
        let text = [#"{"alg":"HS256","typ":"JWT"}"#, #"{"sub":"\#(person)","exp":\#(expiry)}"#]
            .map { base64(Array($0.utf8)) }.joined(separator: ".")
        return text + "." + base64(HMAC.sha256(Array(text.utf8), key: Array(secret.utf8)))
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// Its pauses are short, and it gives up on nothing early.
    /// - Parameter asked: told how long each pause should have been.
    func calls(
        _ person: String, attempts: Int = 3, at place: URL? = nil, shift: Double = 0,
        token: (@Sendable (String?) async throws -> String)? = nil, breaker: BreakerRules = .off,
        piece: Int? = nil, observer: (@Sendable (AppCallReport) -> Void)? = nil,
        asked: @escaping @Sendable (Duration) -> Void = { _ in }
    ) -> AppCalls {
        var configuration = AppConfiguration(url: place ?? url, token: token ?? { _ in Self.token(of: person) })
        configuration.retry.attempts = attempts
        configuration.retry.firstPause = .milliseconds(5)
        configuration.retry.longestPause = .milliseconds(50)
        configuration.patience = .ample
        configuration.shortPatience = .ample
        configuration.heartbeatPatience = .ample
        configuration.breaker = breaker
        configuration.observer = observer
        if let piece { configuration.uploadPiece = piece }
        let pauses = Pauses(
            now: { Date(timeIntervalSinceNow: shift) },
            sleep: { pause in
                asked(pause)
                try await Task.sleep(for: min(pause, .milliseconds(50)))
            })
        return AppCalls(configuration, pauses: pauses)
    }

    func client(_ person: String, _ queue: OfflineQueue? = nil) -> AppClient {
        .live(calls(person), person, queue)
    }

    /// A client with a queue in a directory that is gone afterwards.
    func withQueue(
        _ person: String, _ calls: AppCalls? = nil, _ body: (AppClient, OfflineQueue, URL) async throws -> Void
    ) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "queue-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let calls = calls ?? self.calls(person)
        let queue = try await OfflineQueue(directory: directory, person: person, calls: calls)
        try await body(.live(calls, person, queue), queue, directory)
        await queue.close()
    }

    /// Three people of whom nobody else knows.
    func people(
        _ promise: Promise, shifted: @escaping @Sendable (String, Double) async throws -> AppClient,
        _ make: (String) async throws -> AppClient
    ) async rethrows -> People {
        let owner = owner
        return People(
            anna: try await make("anna-\(promise)"), ben: try await make("ben-\(promise)"),
            eve: try await make("eve-\(promise)"), family: "family-\(promise)",
            shifted: { try await shifted("anna-\(promise)", $0) }
        ) { contact, person in
            _ = try await owner.query("select millrace.check_in_confirm($1, $2)", [.text(person), .text(contact)]) {
                _ throws(PostgresError) in true
            }
        }
    }
}
