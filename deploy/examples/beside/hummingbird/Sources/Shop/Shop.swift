public import Hummingbird
public import Logging
public import Millrace
import MillraceServiceLifecycle
import MillraceSwiftLog

/// Tells a customer what they bought.
public struct SendReceipt: Job {
    /// The name its jobs are stored under.
    public static let kind = "receipt.send"
    /// What was bought.
    public var order: Int
}

/// What the server answers to an order: the job that it has made.
public struct Accepted: ResponseEncodable, Codable {
    /// Its number.
    public var job: Int64
}

/// How a job stands.
public struct Standing: ResponseEncodable, Codable {
    /// In the words of `JobState`.
    public var state: String
}

/// A server that takes orders, and the worker that sends their receipts, in one program.
public struct Shop: Sendable {
    let database: Database
    let client: Client
    let logger: Logger

    /// Of this database, in which the schema is.
    public init(database: Database = .environment, logger: Logger) throws {
        self.database = database
        self.logger = logger
        client = try Client(database: database)
    }

    /// Makes the schema, or brings it up to date.
    public func prepare() async throws {
        try await client.migrate()
    }

    /// The server with the worker beside it: `runService` puts both into one `ServiceGroup`. SIGTERM stops both: the worker lets its jobs end.
    public func application(
        port: Int, send: @escaping @Sendable (SendReceipt) async throws -> Void
    ) -> some ApplicationProtocol {
        Application(
            router: router(), configuration: .init(address: .hostname("127.0.0.1", port: port)),
            services: [WorkerService(worker(send: send))], logger: logger)
    }

    /// The worker alone.
    public func worker(send: @escaping @Sendable (SendReceipt) async throws -> Void) -> Worker {
        let worker = Worker(database: database, slots: 20, logReceiver: SwiftLogReceiver(logger))
        worker.handle(SendReceipt.self, queue: "receipts") { receipt, _ in
            try await send(receipt)
            return .done
        }
        return worker
    }

    private func router() -> Router<BasicRequestContext> {
        let router = Router()
        router.post("orders/:order/receipt") { _, context -> EditedResponse<Accepted> in
            let order = try context.parameters.require("order", as: Int.self)
            // A second press of the button finds the same job.
            let job = try await client.enqueue(
                SendReceipt(order: order), unique: "receipt-\(order)", uniqueFor: .seconds(86_400))
            return EditedResponse(status: .accepted, response: Accepted(job: job))
        }
        router.get("jobs/:job") { _, context -> Standing in
            let number = try context.parameters.require("job", as: Int64.self)
            guard let job = try await client.job(number) else { throw HTTPError(.notFound) }
            return Standing(state: job.state.rawValue)
        }
        return router
    }
}
