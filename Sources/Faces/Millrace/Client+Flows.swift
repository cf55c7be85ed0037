import Postgres
import Queues

extension Client {
    /// Every job that hangs together with this one, itself included: what it waits for and what waits for it, to the last.
    public func flow(of id: Int64) async throws(QueueError) -> [Int64] {
        try await using { connection throws(PostgresError) in try await Queue.flow(of: id, on: connection) }
    }

    /// Cancels whatever of a job's flow has not ended, and returns how many that was. What runs is told within a second.
    @discardableResult
    public func cancelFlow(of id: Int64) async throws(QueueError) -> Int {
        try await using { connection throws(PostgresError) in try await Queue.cancelFlow(of: id, on: connection) }
    }

    /// Runs again whatever of a job's flow is dead or cancelled, and returns how many that was: what can run at once does, the rest
    /// waits for it as before.
    @discardableResult
    public func retryFlow(of id: Int64) async throws(QueueError) -> Int {
        try await using { connection throws(PostgresError) in try await Queue.retryFlow(of: id, on: connection) }
    }
}
