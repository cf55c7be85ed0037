import Synchronization

extension JobWorker {
    /// The state of the worker, for probes and pages.
    package struct Health: Sendable {
        package var name: String
        package var version: String
        /// Its session is open, and it takes jobs.
        package var hasStarted: Bool
        /// Why the database does not take it yet.
        package var refusal: String?
        package var isDraining: Bool
        /// How long the database has been away.
        package var cutOff: Duration?
        /// What it has tried in vain for longer than it should, and for how long.
        package var stall: (activity: Stalls.Activity, lasts: Duration)?
        package var running: Int
        package var waiting: Int
        package var slots: Int
        package var unrecorded: Int
        /// Since it started.
        package var totals: Report
    }
}

extension WorkerShared {
    var health: JobWorker.Health {
        let counts = state.counts
        let totals = state.totals
        let unrecorded = state.unrecorded
        return JobWorker.Health(
            name: options.name, version: options.versionText,
            hasStarted: isUp.withLock { $0 }, refusal: refusal.withLock { $0 },
            isDraining: state.isDraining || stops.count > 0, cutOff: outage.lasts,
            stall: stalls.longest(atLeast: options.stallsAfter),
            running: counts.running, waiting: counts.waiting, slots: options.slots, unrecorded: unrecorded,
            totals: JobWorker.Report(
                finished: totals.finished, handedBack: totals.handedBack, refused: totals.refused,
                abandoned: totals.abandoned, unrecorded: unrecorded))
    }
}
