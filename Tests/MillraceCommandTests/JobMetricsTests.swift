import Health
import Listeners
import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import TestSupport
import Testing
import Workers

@testable import MillraceCommand

@Suite struct JobMetricsTests {
    @Test func `runs and jobs stand by queue and kind, in the words and units of Prometheus`() {
        var counts = RunCounts()
        for milliseconds: Int32 in [3, 5, 6, 90_000] { counts.add(.succeeded, milliseconds: milliseconds) }
        counts.add(.retried, milliseconds: 2_000_000)
        counts.add(.cancelled, milliseconds: nil)
        counts.add(.released, milliseconds: 5)  // no run
        let metrics = JobMetrics(
            runs: [
                NamedRunCounts(queue: "mail", kind: "a\"b", counts: counts),
                NamedRunCounts(queue: nil, kind: nil, counts: RunCounts()),
            ],
            measures: [
                MeasureRow(queue: "mail", kind: "k", state: "ready", jobs: 7, oldest: 12.5, age: 3),
                MeasureRow(queue: "mail", kind: "k", state: "retrying", jobs: 2, oldest: nil, age: 3),
            ])
        let page = metrics.gauges.map(\.text).joined()
        for line in [
            "# TYPE millrace_worker_runs_total counter", "# TYPE millrace_worker_run_duration_seconds histogram",
            #"millrace_worker_runs_total{queue="mail",kind="a\"b",outcome="succeeded"} 4"#,
            #"millrace_worker_runs_total{queue="mail",kind="a\"b",outcome="retried"} 1"#,
            #"millrace_worker_runs_total{queue="mail",kind="a\"b",outcome="cancelled"} 1"#,
            #"millrace_worker_runs_total{queue="other",kind="other",outcome="dead"} 0"#,
            #"millrace_worker_run_duration_seconds_bucket{queue="mail",kind="a\"b",le="0.005"} 2"#,
            #"millrace_worker_run_duration_seconds_bucket{queue="mail",kind="a\"b",le="0.01"} 3"#,
            #"millrace_worker_run_duration_seconds_bucket{queue="mail",kind="a\"b",le="300"} 4"#,
            #"millrace_worker_run_duration_seconds_bucket{queue="mail",kind="a\"b",le="+Inf"} 5"#,
            #"millrace_worker_run_duration_seconds_count{queue="mail",kind="a\"b"} 5"#,
            #"millrace_worker_run_duration_seconds_sum{queue="mail",kind="a\"b"} 2090.014"#,
            #"millrace_jobs{queue="mail",kind="k",state="ready"} 7"#,
            #"millrace_jobs{queue="mail",kind="k",state="retrying"} 2"#,
            #"millrace_jobs_oldest_ready_seconds{queue="mail",kind="k"} 12.5"#,
            "millrace_jobs_counted_seconds 3",
        ] {
            #expect("\n\(page)".contains("\n\(line)\n"), "\(line) is not in\n\(page)")
        }
    }

    @Test func `what was counted long ago, or not at all, is left out`() {
        let old = MeasureRow(queue: "q", kind: "k", state: "ready", jobs: 7, oldest: 1, age: 61)
        for measures in [[old], nil] {
            let page = JobMetrics(measures: measures).gauges.map(\.text).joined()
            #expect(!page.contains("millrace_jobs"))
        }
    }

    @Test func `the number of a collector's series is bounded, whatever names there are`() {
        let rows = (0..<2000).map {
            MeasureRow(queue: "q\($0)", kind: "k", state: "ready", jobs: 1, oldest: Double($0), age: 0)
        }
        let page = JobMetrics(measures: rows).gauges.map(\.text).joined()
        #expect(page.split(separator: "\n").count { $0.hasPrefix("millrace_jobs{") } == JobMetrics.most + 1)
        #expect(page.contains(#"millrace_jobs{queue="other",kind="other",state="ready"} 1500"#))
        #expect(page.contains(#"millrace_jobs_oldest_ready_seconds{queue="other",kind="other"} 1999"#))
        var meter = RunMeter()
        for kind in 0..<1000 { meter.add(.succeeded, milliseconds: 1, to: TallyKey(queue: 1, kind: Int32(kind))) }
        #expect(meter.counts.count == RunMeter.most)
        #expect(meter.others.succeeded == 1000 - RunMeter.most)
        meter.add(.dead, milliseconds: 1, to: TallyKey(queue: 1, kind: 3))
        #expect(meter.counts[TallyKey(queue: 1, kind: 3)]?.dead == 1)
    }

    @Test func `a worker counts its own runs by name`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.enqueue('practice.nothing', queue => 'mail'), millrace.enqueue('practice.nothing', queue => 'mail', tenant => 'acme'),
                       millrace.enqueue('practice.fail', '{"times": 1}', queue => 'mail', run_at => null)
                """)
            let worker = JobWorker(
                options: JobWorker.Options(database: database.options, name: "counts"), handlers: Practice.handlers,
                log: .silent)
            async let running = worker.run()
            try await eventually("three runs are counted") {
                worker.runCounts.reduce(0) { $0 + $1.counts.buckets.reduce(0, +) } >= 3
            }
            let counts = worker.runCounts
            #expect(counts.first { $0.queue == "mail" && $0.kind == "practice.nothing" }?.counts.succeeded == 2)
            #expect(counts.first { $0.queue == "mail" && $0.kind == "practice.fail" }?.counts.retried == 1)
            worker.drain()
            _ = try await running
            await connection.close()
        }
    }
}
