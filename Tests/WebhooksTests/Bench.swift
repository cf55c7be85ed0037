import CloudEvents
import Encryption
import Fakes
import Foundation
import Postgres
import Signatures
import Supervision
import Telemetry
import TestSupport
import Transfers
import Webhooks

/// A database whose clock the test moves, and senders of its own.
struct Bench {
    let database: TestDatabase
    let connection: Connection

    /// - Parameter allow: nil: nothing but the public internet.
    func dispatch(
        _ receivers: [FakeReceiver], keys: Keyring = .empty, timeout: Duration = .seconds(60), knowsOrigin: Bool = true,
        supervisor: Supervisor? = nil,
        change: (inout WebhookService.Options) -> Void = { _ in }
    ) throws -> WebhookService {
        let allowed = try AllowedHosts(receivers.map(\.allowance).joined(separator: ","))
        var options = WebhookService.Options()
        options.keys = keys
        change(&options)
        var supervision = Supervisor.Options()
        supervision.breaker.failures = 1_000_000  // the breaker has tests of its own
        let caller = WebhookClient(
            client: HTTPClient(.strict(allowed)), supervisor: supervisor ?? Supervisor(supervision, log: .silent),
            origin: "events.example", knowsOrigin: knowsOrigin, timeout: timeout)
        return WebhookService(
            pool: Pool(database.options, size: 4), caller: caller, options: options, log: .silent)
    }

    /// What `webhook_add` gives.
    @discardableResult
    func add(
        _ url: String, types: String = "{*}", mode: String = "binary", tenant: String? = nil, handshake: Bool = true
    ) async throws -> (id: String, secret: String) {
        let tenant = tenant.map { "'\($0)'" } ?? "null"
        return try await connection.query(
            .pasted(
                "select id::text, secret from millrace.webhook_add('\(url)', '\(types)', '\(mode)', \(tenant), \(handshake))"
            )
        ) { row throws(PostgresError) in (id: try row.string(0), secret: try row.string(1)) }[0]
    }

    @discardableResult
    func publish(
        _ type: String = "com.example.paid", data: String = #"{"order": 7}"#, tenant: String? = nil
    ) async throws -> String {
        let tenant = tenant.map { "'\($0)'" } ?? "null"
        return try await connection.value(
            "select millrace.event_publish('\(type)', '/shop', '\(data)', 'order/7', \(tenant))") ?? ""
    }

    func deliveries(_ columns: String = "state") async throws -> [String] {
        try await connection.column("select \(columns) from millrace.webhook_deliveries order by seq, webhook")
    }

    func state(_ id: String) async throws -> String? {
        try await connection.value("select state from millrace.webhooks where id = '\(id)'")
    }

    func reason(_ id: String) async throws -> String {
        try await connection.value("select reason from millrace.webhooks where id = '\(id)'") ?? ""
    }

    func advance(_ interval: String) async throws {
        try await connection.run("select millrace.test_clock_advance('\(interval)')")
    }
}

func withBench(_ body: (Bench) async throws -> Void) async throws {
    try await withDatabase(.movableClock) { database in
        let connection = try await database.connect()
        try await body(Bench(database: database, connection: connection))
        await connection.close()
    }
}

extension FakeReceiver.Request {
    var message: EventMessage {
        EventMessage(fields: headers.map { .init($0.name, $0.value) }, body: body)
    }

    /// Which of these secrets have signed it.
    func signers(among secrets: [String]) throws -> [String] {
        let signed = Webhook.Signed { self[$0] }
        return try secrets.filter { secret in
            let one = try Webhook.Secret(secret)
            return (try? Webhook.verify(body, signed, with: [one], at: Date())) != nil
        }
    }
}
