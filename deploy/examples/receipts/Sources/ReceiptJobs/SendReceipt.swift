public import Millrace

/// Tells a customer what they bought.
public struct SendReceipt: Job {
    /// The name its jobs are stored under.
    public static let kind = "receipt.send"
    /// Five runs, from two seconds apart.
    public static let retries = RetryPolicy(attempts: 5, base: .seconds(2), cap: .seconds(600))

    /// What was bought.
    public var order: Int

    /// A receipt for one order.
    public init(order: Int) {
        self.order = order
    }
}

/// An order that does not exist will not exist later either.
public struct NoSuchOrder: JobFailure, CustomStringConvertible {
    let order: Int
    /// Never.
    public var retry: Retry { .never }
    /// What the operator reads.
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
