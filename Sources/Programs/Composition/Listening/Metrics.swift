package import Listeners
package import Supervision
package import Workers

/// A number that a room brings, or one for each of some labels.
package struct RoomGauge: Sendable {
    package var name: String
    /// gauge or counter.
    package var kind = "gauge"
    package var help: String
    /// A histogram's values carry the end of their names.
    package var values: [(labels: String, value: Double, suffix: String)]

    package init(name: String, kind: String = "gauge", help: String, value: Double) {
        self.init(name: name, kind: kind, help: help, values: [("", value)])
    }

    package init(name: String, kind: String = "gauge", help: String, values: [(labels: String, value: Double)]) {
        self.name = name
        self.kind = kind
        self.help = help
        self.values = values.map { ($0.labels, $0.value, "") }
    }

    package var text: String {
        let lines = values.map { labels, value, suffix in
            let number = Int(exactly: value).map(String.init) ?? "\(value)"
            return "millrace_\(name)\(suffix)\(labels) \(number)\n"
        }
        return "# HELP millrace_\(name) \(help)\n# TYPE millrace_\(name) \(kind)\n" + lines.joined()
    }
}

/// The text that Prometheus reads.
package enum Metrics {
    package static func page(
        _ health: JobWorker.Health, _ listener: Listener.Counts, _ providers: [ProviderStanding] = [],
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
            [(labels([("name", health.name), ("version", health.version)]), 1)])
        add("worker_ready", "gauge", "1 when the worker takes jobs.", HealthRoutes.readiness(health).isReady ? 1 : 0)
        add("worker_database_connected", "gauge", "0 while cut off from the database.", health.cutOff == nil ? 1 : 0)
        add("worker_slots", "gauge", "Jobs at once at most.", health.slots)
        add("worker_jobs_running", "gauge", "Jobs whose handlers run.", health.running)
        add("worker_jobs_waiting", "gauge", "Jobs that were claimed and have not begun.", health.waiting)
        add("worker_ends_unrecorded", "gauge", "Ends that the database does not know yet.", health.unrecorded)
        add("worker_jobs_finished_total", "counter", "Runs whose end was recorded.", health.totals.finished)
        add("worker_jobs_handed_back_total", "counter", "Jobs given back without a run.", health.totals.handedBack)
        add("worker_jobs_refused_total", "counter", "Ends refused because their lease was lost.", health.totals.refused)
        add(
            "worker_jobs_abandoned_total", "counter", "Handlers that ignored their cancellation.",
            health.totals.abandoned)
        add("http_connections", "gauge", "Open connections.", listener.connections)
        add(
            "http_requests_total", "counter", "Requests answered, by the class of their status.",
            (1...5).map { (labels: labels([("status", "\($0)xx")]), value: listener.answered[$0] ?? 0) })
        add("http_requests_broken_total", "counter", "Requests that broke off.", listener.broken)
        for gauge in rooms { page += gauge.text }
        page += ProviderMetrics(providers).gauges.map(\.text).joined()
        return page
    }

    /// `{queue="mail",kind="k"}`; nothing where there are none.
    package static func labels(_ pairs: [(String, String)]) -> String {
        guard !pairs.isEmpty else { return "" }
        return "{" + pairs.map { "\($0.0)=\"\(escaped($0.1))\"" }.joined(separator: ",") + "}"
    }

    /// Escapes a label's value.
    static func escaped(_ text: String) -> String {
        // Names of queues and kinds hold nothing that needs it, and there are thousands of labels.
        guard text.utf8.contains(where: { $0 == 0x5C || $0 == 0x22 || $0 == 0x0A }) else { return text }
        return text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
