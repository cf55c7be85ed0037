import Encryption
import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import Traces

extension ReportWriter {
    /// Not tried again when its answer is lost: the jobs may be there, and would be there twice. The run fails instead, and with it
    /// whatever it has spawned.
    func spawn(_ context: Context, _ spawned: Spawned) async throws -> Int64 {
        var args = spawned.args
        if spawned.encrypted { args = try args.map { try keys.seal($0, kind: spawned.kind) } }
        let token = context.token
        let sealed = args
        let trace = context.place
        do {
            return try await pool.withConnection { connection throws(PostgresError) in
                try await Queue.spawn(
                    token: token, kind: spawned.kind, args: sealed, queue: spawned.queue, priority: spawned.priority,
                    before: spawned.before, version: spawned.version, trace: trace, on: connection)
            }
        } catch let error as PostgresError where error.sqlState == "55000" {
            workerState.lose([context.number]).settle(session: workerState.session, log: log)
            log.warning("spawned jobs were refused: the lease is lost, and its runs are cancelled", context.data)
            throw error
        }
    }

    func earlier(_ context: Context, after: Int64) async throws -> [EarlierJob] {
        let id = context.id
        return try await pool.withConnection { connection throws(PostgresError) in
            try await Queue.predecessors(of: id, after: after, page: 500, on: connection)
        }.map { EarlierJob(id: $0.job, succeeded: $0.outcome == "succeeded", result: $0.result) }
    }
}
