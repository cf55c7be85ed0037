#if SwiftMetrics
    import Metrics
    import MetricsTestKit
    import Millrace
    import MillraceSwiftMetrics
    import Testing

    @Suite struct SwiftMetricsTests {
        @Test func `runs are counted and timed in swift-metrics`() async throws {
            let metrics = TestMetrics()
            MetricsSystem.bootstrap(metrics)
            try await withQueue("metrics") { database, client in
                let worker = Worker(database: database, log: .silent, metrics: SwiftMetricsReceiver())
                worker.handle(Receipt.self, queue: "mail") { _, _ in .done }
                for order in 0..<3 { try await client.enqueue(Receipt(order: order), options: EnqueueOptions(queue: "mail")) }
                let last = try await client.enqueue(Receipt(order: 3), options: EnqueueOptions(queue: "mail"))
                async let report = worker.run(handlesSignals: false)
                #expect(try await client.end(of: last) == .succeeded)
                worker.drain()
                #expect(try await report.finished == 4)
            }
            let labels = [("kind", "receipt.send"), ("outcome", "succeeded"), ("queue", "mail")]
            let runs = try metrics.expectCounter("millrace_runs", labels)
            #expect(runs.values.reduce(0, +) == 4)
            let durations = try metrics.expectTimer(
                "millrace_run_duration", [("kind", "receipt.send"), ("queue", "mail")])
            #expect(durations.values.count == 4 && durations.values.allSatisfy { $0 > 0 })
            #expect(try metrics.expectGauge("millrace_worker_slots").lastValue == 100)
        }
    }
#endif
