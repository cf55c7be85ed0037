public import Millrace

/// Tells a customer what they bought.
public struct SendReceipt: Job {
    public static let kind = "receipt.send"
    public static let retries = RetryPolicy(attempts: 5, base: .seconds(2), cap: .minutes(10))

    public var order: Int

    public init(order: Int) {
        self.order = order
    }
}

/// An order that does not exist will not exist later either.
public struct NoSuchOrder: JobFailure, CustomStringConvertible {
    let order: Int
    public var retry: Retry { .never }
    public var description: String { "there is no order \(order)" }
}

/// What the worker and its tests share: which kinds there are, and what they do.
public func register(on worker: Worker, send: @escaping @Sendable (Int) async throws -> Void) {
    worker.use { context, next in
        let verdict = try await next()
        if context.attempt > 1 { print("job \(context.id) needed \(context.attempt) attempts") }
        return verdict
    }
    worker.handle(SendReceipt.self, queue: "mail") { job, _ in
        guard job.order > 0 else { throw NoSuchOrder(order: job.order) }
        try await send(job.order)
        return .done
    }
}
