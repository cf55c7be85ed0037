public import MillraceJobs
import MillraceQueues
import Postgres

extension Client {
    /// Makes a job that begins with the steps that another has on record, and goes on behind them: of the same kind, tenant, owner and tags, with the
    /// other's arguments. It has a number of its own, so what a handler does outside under a key made of ``Context/id`` is done again. The
    /// steps that it was given are not undone if it fails. For workers, operators and admins.
    ///
    /// - Parameters:
    ///   - step: The first step that it does itself; nil: it has all that are on record.
    ///   - queue: Its queue; nil: the other's.
    ///   - live: Also of a job that has not ended; both go on.
    /// - Returns: Its number.
    public func fork(
        _ id: Int64, from step: String? = nil, queue: String? = nil, live: Bool = false
    ) async throws(QueueError) -> Int64 {
        try await using { connection throws(PostgresError) in
            try await Queue.fork(id, from: step, queue: queue, live: live, on: connection)
        }
    }

    /// The same with other arguments.
    public func fork<Work: Job>(
        _ id: Int64, with job: Work, from step: String? = nil, queue: String? = nil, live: Bool = false
    ) async throws(QueueError) -> Int64 {
        let plain = try Self.encode(job)
        let args = Work.encrypted ? try seal(plain, kind: Work.kind) : plain
        return try await using { connection throws(PostgresError) in
            try await Queue.fork(id, from: step, args: args, queue: queue, live: live, on: connection)
        }
    }
}
