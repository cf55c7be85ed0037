import MillraceJobs
package import MillraceQueues
import Telemetry

/// What a worker no longer owns, because the database does not know a lease of its own: others have its jobs.
package struct LostLeases: Sendable {
    /// Runs that go on, and are to stop.
    package var runs: [Run] = []
    /// Ends that will not be recorded.
    package var refused: [Ended] = []

    package var isEmpty: Bool { runs.isEmpty && refused.isEmpty }

    /// Stops the runs, and says what becomes of the ends.
    func settle(session: Int64, log: Log) {
        for run in runs { run.cancel(.leaseLost) }
        for end in refused.prefix(5) {
            log.warning(
                "a finish was refused: the lease is lost, and another worker has the job",
                [
                    ("job.id", "\(end.job.id)"), ("job.outcome", "\(end.outcome)"),
                    ("job.token", LeaseToken(session: session, number: end.job.number).description),
                ])
        }
        if refused.count > 5 { log.warning("more finishes were refused", [("count", "\(refused.count - 5)")]) }
    }
}
