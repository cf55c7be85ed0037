import MillraceQueues
import Postgres

extension Client {
    /// Every job of this job's flow, including itself: all that it waits for, directly or not, and all that wait for it.
    public func flow(of id: Int64) async throws(QueueError) -> [Int64] {
        try await using { connection throws(PostgresError) in try await Queue.flow(of: id, on: connection) }
    }

    /// Cancels all jobs of a job's flow that have not ended, and returns how many. Running ones are told within a second.
    @discardableResult
    public func cancelFlow(of id: Int64) async throws(QueueError) -> Int {
        try await using { connection throws(PostgresError) in try await Queue.cancelFlow(of: id, on: connection) }
    }

    /// Runs all dead and cancelled jobs of a job's flow again, and returns how many. Those that can run start at once, the others wait for
    /// them as before.
    @discardableResult
    public func retryFlow(of id: Int64) async throws(QueueError) -> Int {
        try await using { connection throws(PostgresError) in try await Queue.retryFlow(of: id, on: connection) }
    }
}
