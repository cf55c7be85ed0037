package import Listeners
package import RoomKit
package import Supervision
package import Workers

/// The text that Prometheus reads.
package enum Metrics {
    package static func page(
        _ health: JobWorker.Health, _ listener: Listener.Counts?, _ providers: [ProviderStanding] = [],
        rooms: [RoomGauge] = []
    ) -> String {
        var page = ""
        func add(_ name: String, _ kind: String, _ help: String, _ values: [(labels: String, value: Int)]) {
            page += "# HELP millrace_\(name) \(help)\n# TYPE millrace_\(name) \(kind)\n"
            for (labels, value) in values { page += "millrace_\(name)\(labels) \(value)\n" }
        }
        func add(_ name: String, _ kind: String, _ help: String, _ value: Int) {
            add(name, kind, help, [("", value)])
        }
        add(
            "worker_info", "gauge", "1; its labels say which worker and which build this is.",
            [(RoomGauge.labels([("name", health.name), ("version", health.version)]), 1)])
        add("worker_ready", "gauge", readyHelp, HealthRoutes.readiness(health).isReady ? 1 : 0)
        add("worker_database_connected", "gauge", connectedHelp, health.cutOff == nil ? 1 : 0)
        add("worker_slots", "gauge", "The maximum number of jobs at once.", health.slots)
        add("worker_jobs_running", "gauge", "Jobs whose handlers run.", health.running)
        add("worker_jobs_waiting", "gauge", "Jobs that were claimed and have not begun.", health.waiting)
        add("worker_ends_unrecorded", "gauge", "Ends that the database does not know yet.", health.unrecorded)
        add("worker_jobs_finished_total", "counter", "Runs whose end was recorded.", health.totals.finished)
        add("worker_jobs_handed_back_total", "counter", "Jobs given back without a run.", health.totals.handedBack)
        add("worker_jobs_refused_total", "counter", "Ends refused because their lease was lost.", health.totals.refused)
        add(
            "worker_jobs_abandoned_total", "counter", "Handlers that ignored their cancellation.",
            health.totals.abandoned)
        if let listener { page += Self.page(of: listener) }
        for gauge in rooms { page += gauge.text }
        page += ProviderMetrics(providers).gauges.map(\.text).joined()
        return page
    }
    /// What the listener of a process has answered.
    package static func page(of listener: Listener.Counts) -> String {
        [
            RoomGauge(name: "http_connections", help: "Open connections.", value: Double(listener.connections)),
            RoomGauge(
                name: "http_requests_total", kind: "counter",
                help: "Requests answered, by the class of their status.",
                values: (1...5).map {
                    (labels: RoomGauge.labels([("status", "\($0)xx")]), value: Double(listener.answered[$0] ?? 0))
                }),
            RoomGauge(
                name: "http_requests_broken_total", kind: "counter", help: "Requests that were cut off.",
                values: [("", Double(listener.broken))]),
        ].map(\.text).joined()
    }

    /// Of a worker that has not begun.
    static var absent: String {
        [
            RoomGauge(name: "worker_ready", help: Self.readyHelp, value: 0),
            RoomGauge(name: "worker_database_connected", help: Self.connectedHelp, value: 0),
        ].map(\.text).joined()
    }

    private static let readyHelp = "1 when the worker takes jobs."
    private static let connectedHelp = "0 while cut off from the database."
}
