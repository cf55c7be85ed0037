public import Millrace

/// A message to somebody. In vapor/queues: a job and its payload.
public struct Message: Job {
    /// The name its jobs are stored under.
    public static let kind = "message.send"
    /// Three more tries after the first.
    public static let retries = RetryPolicy(attempts: 4)
    /// Who gets it.
    public var to: String
    /// What it says.
    public var text: String

    /// A message.
    public init(to: String, text: String) {
        (self.to, self.text) = (to, text)
    }
}

/// What vapor/queues calls dequeue and error: the work, and what is told of each failure.
public func workerOfMessages(
    on database: Database, send: @escaping @Sendable (Message) async throws -> Void,
    failed: @escaping @Sendable (_ kind: String, _ attempt: Int, any Error) -> Void
) -> Worker {
    let worker = Worker(database: database)
    worker.use { context, next in
        do {
            return try await next()
        } catch let end as RunHasEnded {
            throw end  // it waits, and has not failed
        } catch {
            failed(context.kind, context.attempt, error)
            throw error
        }
    }
    worker.handle(Message.self, queue: "messages") { message, _ in
        try await send(message)
        return .done
    }
    return worker
}

/// A dispatch that waits for its time.
public func remind(_ person: String, in delay: Duration, by client: Client) async throws {
    _ = try await client.enqueue(Message(to: person, text: "It is time."), in: delay)
}
