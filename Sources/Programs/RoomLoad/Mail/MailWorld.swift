import Clusters
import CommandKit
import Faults
import Glibc
import LoadKit
import Mail
import MillraceMail
import Postgres
import Supervision
import Telemetry
import Workers

/// A private Postgres, a worker with the mail kinds, and providers without a network.
final class MailWorld: Sendable {
    struct Words: Rendering {
        func render(_ template: String, locale: String?, data: [UInt8]) async throws(Fault) -> Rendered {
            Rendered(
                subject: template, text: String(decoding: data, as: UTF8.self), html: nil, version: 1, locale: "en")
        }
    }

    let cluster: Cluster
    let worker: JobWorker
    private let supervisor: Supervisor
    private let pool: Pool
    private let directory: String
    let rampStep: Duration

    /// - Parameter renderer: Made once there is a database.
    init(
        _ invocation: Invocation, _ providers: [any MailProvider], rate: Double?,
        renderer: (Pool) -> any Rendering = { _ in Words() }
    ) async throws {
        (directory, cluster) = try await Scratch.postgres("mail", invocation, settings: ["max_connections": "60"])
        let database = ConnectionOptions(location: cluster.url())
        var supervision = invocation.settings.supervision
        supervision.database = database
        supervision.name = "load"
        supervision.breaker.open = .seconds(5)
        rampStep = supervision.breaker.rampStep
        if let rate { supervision.providers[providers[0].name] = .init(rate: rate) }
        supervisor = Supervisor(supervision, log: .silent)
        pool = Pool(database, size: 8)
        var mail = MailOptions()
        mail.from = Mailbox(name: "Load", address: "load@example.net")
        mail.appName = "Load"
        mail.resetURL = "https://app.example/reset?token={token}"
        mail.routes = Routes(chosen: providers[0].name, fallbacks: providers.dropFirst().map(\.name))
        let service = MailService(
            pool: pool, options: mail, providers: providers, renderer: renderer(pool), supervisor: supervisor,
            log: .silent)
        var options = JobWorker.Options(database: database, name: "load")
        options.slots = invocation.parsed.integer("slots") ?? options.slots
        options.bounds = MailHandlers.bounds(slots: options.slots)
        worker = JobWorker(options: options, handlers: MailHandlers.of(service, slots: options.slots), log: .silent)
    }

    func connect() async throws -> Connection {
        try await Connection.open(ConnectionOptions(location: cluster.url()), name: "load")
    }

    /// Runs `body` beside the worker, and stops that.
    func working<Value: Sendable>(_ body: @Sendable @escaping () async throws -> Value) async throws -> Value {
        async let _: Void = supervisor.run()  // cancelled and awaited when we leave
        async let report = worker.run()
        let outcome: Result<Value, any Error>
        do { outcome = .success(try await body()) } catch { outcome = .failure(error) }
        worker.drain()
        worker.drain()
        _ = try? await report
        return try outcome.get()
    }

    func close() async {
        await pool.close()
        try? await cluster.remove(deadline: .seconds(60))
        rmdir(directory)
    }
}
