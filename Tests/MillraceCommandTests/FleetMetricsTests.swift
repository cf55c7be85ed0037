import Health
import MillraceQueues
import Supervision
import Testing
import Workers

@testable import MillraceCommand

@Suite struct FleetMetricsTests {
    private func page(_ gauges: [RoomGauge]) -> String { "\n" + gauges.map(\.text).joined() }

    @Test func `the fleet's numbers stand with their labels, and what a newer schema brings is left out`() {
        let text = page(
            FleetMetrics([
                FleetMeasure(name: "room_waiting", labels: ["notices", "alarms"], value: 3),
                FleetMeasure(name: "storage_bytes", labels: ["jo\"b"], value: 1.5e9),
                FleetMeasure(name: "workers_slots", value: 40),
                FleetMeasure(name: "workers_slots", labels: ["one", "too many"], value: 1),
                FleetMeasure(name: "from_the_future", value: 1),
            ]).gauges)
        for line in [
            #"millrace_room_waiting{room="notices",lane="alarms"} 3"#,
            #"millrace_storage_bytes{relation="jo\"b"} 1500000000"#,
            "millrace_workers_slots 40", "# TYPE millrace_workers_slots gauge",
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line) is not in\(text)")
        }
        #expect(!text.contains("future") && !text.contains("too many"))
    }

    @Test func `what was counted long ago, or not at all, is left out`() {
        let old = FleetMeasure(name: "workers_slots", value: 1, age: 61)
        #expect(FleetMetrics([old]).gauges.isEmpty && FleetMetrics(nil).gauges.isEmpty)
    }

    @Test func `a queue's oldest runnable job is the oldest of its kinds; a paused queue has none`() {
        let rows = [
            MeasureRow(queue: "mail", kind: "a", state: "ready", jobs: 7, oldest: 12, age: 3),
            MeasureRow(queue: "mail", kind: "b", state: "ready", jobs: 7, oldest: 90, age: 3),
            MeasureRow(queue: "held", kind: "b", state: "ready", jobs: 7, oldest: 900, age: 3),
        ]
        let queues = FleetMetrics.queues(of: [
            FleetMeasure(name: "queue_paused", labels: ["held"], value: 1),
            FleetMeasure(name: "queue_paused", labels: ["idle"], value: 0),
        ])
        let text = page(JobMetrics(measures: rows, queues: queues).gauges)
        for line in [
            #"millrace_queue_oldest_runnable_seconds{queue="mail"} 90"#,
            #"millrace_queue_oldest_runnable_seconds{queue="held"} 0"#,
            #"millrace_queue_oldest_runnable_seconds{queue="idle"} 0"#,
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line) is not in\(text)")
        }
    }

    @Test func `waits stand beside run times, by queue and kind`() {
        var counts = RunCounts()
        counts.add(.succeeded, milliseconds: 3, waited: 40)
        counts.add(.succeeded, milliseconds: 3, waited: 90_000)
        counts.add(.retried, milliseconds: 3, waited: nil)
        counts.add(.released, milliseconds: nil, waited: 5)  // no run
        let text = page(JobMetrics(runs: [NamedRunCounts(queue: "q", kind: "k", counts: counts)]).gauges)
        for line in [
            "# TYPE millrace_worker_wait_duration_seconds histogram",
            #"millrace_worker_wait_duration_seconds_bucket{queue="q",kind="k",le="0.025"} 0"#,
            #"millrace_worker_wait_duration_seconds_bucket{queue="q",kind="k",le="0.05"} 1"#,
            #"millrace_worker_wait_duration_seconds_bucket{queue="q",kind="k",le="+Inf"} 2"#,
            #"millrace_worker_wait_duration_seconds_sum{queue="q",kind="k"} 90.04"#,
            #"millrace_worker_wait_duration_seconds_count{queue="q",kind="k"} 2"#,
            #"millrace_worker_run_duration_seconds_count{queue="q",kind="k"} 3"#,
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line) is not in\(text)")
        }
    }

    @Test func `beyond the first hundred providers the rest is counted as one`() {
        var totals = Circuit.Totals()
        totals.ok = 2
        var standings = (0..<150).map {
            ProviderStanding(
                provider: "webhook:\($0)", slots: 8, taken: 1, waiting: 0,
                classes: [.init(name: "default", isOpen: $0 == 149, totals: totals)])
        }
        standings.append(ProviderStanding(provider: "smtp", slots: 8, taken: 1, waiting: 0, classes: []))
        let text = page(ProviderMetrics(standings).gauges)
        #expect(text.split(separator: "\n").count { $0.hasPrefix("millrace_provider_calls_running{") } == 101)
        for line in [
            #"millrace_provider_calls_running{provider="smtp"} 1"#,
            #"millrace_provider_calls_running{provider="other"} 51"#,
            #"millrace_provider_open{provider="other",class="default"} 1"#,
            #"millrace_provider_calls_total{provider="other",class="default",outcome="ok"} 102"#,
        ] {
            #expect(text.contains("\n\(line)\n"), "\(line) is not in\(text)")
        }
    }
}
