import Postgres
import Telemetry

/// What workers do for the console while none is running: samples of the past, and the next chunks of bulk actions.
struct WorkerStandIn: Sendable {
    let pool: Pool
    let log: Log

    func run() async {
        while !Task.isCancelled {
            var pause = 10.0
            do {
                pause = try await pool.withConnection { connection throws(PostgresError) in
                    let alone =
                        try await connection.query(
                            "select not exists (select from millrace.workers w where w.beat_at > millrace.now() - interval '30 s')",
                            deadline: ConsoleReader.patience
                        ) { row throws(PostgresError) in try row.bool(0) }.first ?? false
                    guard alone else { return 10 }
                    let sample =
                        try await connection.query(
                            "select next_s from millrace.sample_take()", deadline: ConsoleReader.patience
                        ) { row throws(PostgresError) in row.optionalDouble(0) }.first ?? nil
                    let step =
                        try await connection.query(
                            "select wait from millrace.operation_step() where operation is not null",
                            deadline: .seconds(30)
                        ) { row throws(PostgresError) in row.optionalDouble(0) }.first ?? nil
                    return min(step ?? 2, sample ?? 10)
                }
            } catch {
                log.debug("the console's house-keeping failed", [("error", "\(error)")])
            }
            try? await Task.sleep(for: .seconds(max(0.01, pause)))
        }
    }
}
