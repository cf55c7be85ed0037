import MillraceQueues
import Postgres
import Telemetry

extension Composer {
    /// The database's counts of jobs and of everything else, for metrics; nil when it does not answer soon.
    func measures(_ pool: Pool) async -> Measures? {
        do {
            return try await pool.withConnection { connection throws(PostgresError) in
                // The second finds what the first has counted.
                Measures(
                    jobs: try await Queue.measures(on: connection, deadline: .seconds(2)),
                    fleet: try await Queue.fleetMeasures(on: connection, deadline: .seconds(2)))
            }
        } catch {
            log.debug("cannot count jobs for /metrics", [("error", "\(error)")])
            return nil
        }
    }
}
