import JSON
package import Listeners
package import MillraceQueues
package import RoomKit
package import Supervision
import Synchronization
package import Workers

/// The routes for health probes and metrics.
package enum HealthRoutes {
    package static func all(
        of worker: JobWorker, metrics: @escaping @Sendable (Listener.Counts?) async -> String,
        counts: @escaping @Sendable () -> Listener.Counts
    ) -> [Route] {
        [
            // The process answers. That the database is unreachable is no reason to kill it: its handlers go on.
            Route(.get, "/livez", access: .everyone) { _ in .json("{\"live\":true}\n") },
            Route(.get, "/readyz", access: .everyone) { _ in
                let (isReady, reason) = readiness(worker.health)
                let body: JSONValue = ["ready": .bool(isReady), "reason": JSONValue(reason)]
                return .json(body.compact + "\n", status: isReady ? 200 : 503)
            },
            Route(.get, "/metrics", access: .token) { _ in
                .text(await metrics(counts()), type: metricsType)
            },
        ]
    }

    package static let metricsType = "text/plain; version=0.0.4; charset=utf-8"

    /// - Parameter counts: nil: the listener is not this worker's alone.
    package static func metrics(
        of worker: JobWorker, supervisor: Supervisor?, rooms: @Sendable () async -> [RoomGauge],
        measures: @Sendable () async -> Measures?, counts: Listener.Counts?
    ) async -> String {
        let counted = await measures()
        let jobs = JobMetrics(
            runs: worker.runCounts, measures: counted?.jobs, queues: FleetMetrics.queues(of: counted?.fleet))
        let gauges = jobs.gauges + FleetMetrics(counted?.fleet).gauges + (await rooms())
        return Metrics.page(worker.health, counts, supervisor?.standings ?? [], rooms: gauges)
    }

    package static func readiness(_ health: JobWorker.Health) -> (isReady: Bool, reason: String?) {
        if health.isDraining { return (false, "draining") }
        if !health.hasStarted {
            return (false, "starting: waiting for the database" + (health.refusal.map { ": \($0)" } ?? ""))
        }
        if health.cutOff != nil { return (false, "cut off from the database") }
        if let stall = health.stall {
            return (false, "\(stall.activity.rawValue) for \(Int(stall.lasts / .seconds(1))) s")
        }
        return (true, nil)
    }
}

/// The routes are made before the listener that counts.
package final class HeldListener: Sendable {
    private let listener = Mutex<Listener?>(nil)

    package init() {}

    package var counts: Listener.Counts { listener.withLock { $0 }?.counts ?? Listener.Counts() }

    package func set(_ listener: Listener) {
        self.listener.withLock { $0 = listener }
    }
}
