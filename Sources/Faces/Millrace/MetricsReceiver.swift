import MillraceQueues
package import Workers

/// Takes a worker's metrics, for a program with its own metrics system. The product `MillraceSwiftMetrics` has one for swift-metrics.
///
/// | name | | labels |
/// |---|---|---|
/// | `millrace_runs` | counter | kind, queue, outcome: succeeded, retried, snoozed, cancelled, dead, released, lost |
/// | `millrace_run_duration` | duration | kind, queue |
/// | `millrace_worker_ready` | gauge, 1 or 0 | |
/// | `millrace_worker_database_connected` | gauge, 1 or 0 | |
/// | `millrace_worker_slots`, `millrace_worker_jobs_running`, `millrace_worker_jobs_waiting` | gauges | |
/// | `millrace_worker_ends_unrecorded` | gauge | |
///
/// Counters and durations come with the end of each run, gauges with each heartbeat, every two seconds.
public protocol MetricsReceiver: Sendable {
    /// More of something. Called by many threads at once; it must not take long.
    func add(_ count: Int, to counter: String, labels: [String: String])
    /// Sets a gauge to its present value.
    func set(_ gauge: String, to value: Double, labels: [String: String])
    /// How long something took.
    func record(_ duration: Duration, of timer: String, labels: [String: String])
}

extension Workers.JobWorker.Observer {
    package init(_ receiver: any MetricsReceiver) {
        self.init(
            ended: { context, outcome, duration in
                let labels = ["kind": context.kind, "queue": context.queue]
                receiver.record(duration, of: "millrace_run_duration", labels: labels)
                let outcome = outcome.map { "\($0)" } ?? "lost"
                receiver.add(1, to: "millrace_runs", labels: labels.merging(["outcome": outcome]) { $1 })
            },
            lives: { health in
                func set(_ name: String, _ value: Int) {
                    receiver.set("millrace_worker_\(name)", to: Double(value), labels: [:])
                }
                set("ready", health.isReady ? 1 : 0)
                set("database_connected", health.cutOff == nil ? 1 : 0)
                set("slots", health.slots)
                set("jobs_running", health.running)
                set("jobs_waiting", health.waiting)
                set("ends_unrecorded", health.unrecorded)
            })
    }
}
