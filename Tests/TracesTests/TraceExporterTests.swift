import Fakes
import Synchronization
import Telemetry
import TestSupport
import Testing
import TraceExport
import Traces

@Suite struct TraceExporterTests {
    private static func exporter(
        to address: String, _ tracer: Tracer, log: Log = .silent
    ) throws -> TraceExporter {
        let settings = try #require(
            CollectorSettings(
                endpoint: address, tracesEndpoint: nil, headers: "x-key=abc", serviceName: "shop", attributes: nil,
                sampler: nil, argument: nil))
        var options = TraceExporter.Options()
        options.batch = 2
        options.pause = .milliseconds(5)
        options.backoff = .milliseconds(5)
        options.tries = 3
        return TraceExporter(settings, tracer: tracer, version: "1", log: log, options: options)
    }

    private static func add(_ count: Int, to tracer: Tracer) {
        for _ in 0..<count { tracer.end(tracer.begin("run", .internal, under: nil)) }
    }

    @Test func `a collector that is busy gets the same batch again`() async throws {
        let collector = try FakeReceiver { _, before in FakeReceiver.Answer(before == 0 ? 503 : 200) }
        defer { collector.stop() }
        let tracer = Tracer()
        Self.add(3, to: tracer)
        let exporter = try Self.exporter(to: collector.allowance, tracer)
        let running = Task { await exporter.run() }
        try await eventually("all are sent") { tracer.counts.sent == 3 }
        running.cancel()
        await running.value
        let posts = collector.posts
        #expect(posts.count == 3)
        #expect(posts[0].body == posts[1].body)
        #expect(posts[0].path == "/v1/traces")
        #expect(posts[0]["content-type"] == "application/x-protobuf")
        #expect(posts[0]["x-key"] == "abc")
        #expect(tracer.counts == Tracer.Counts(recorded: 3, sent: 3, dropped: 0, failed: 0))
    }

    @Test func `what a collector refuses is not sent again`() async throws {
        let collector = try FakeReceiver { _, _ in FakeReceiver.Answer(400) }
        defer { collector.stop() }
        let tracer = Tracer()
        Self.add(2, to: tracer)
        let exporter = try Self.exporter(to: collector.allowance, tracer)
        let running = Task { await exporter.run() }
        try await eventually("they have failed") { tracer.counts.failed == 2 }
        running.cancel()
        await running.value
        #expect(collector.posts.count == 1)
    }

    @Test func `while a collector is away nobody waits, the buffer keeps its bound, and the log says it once`()
        async throws
    {
        let collector = try FakeReceiver()
        let address = collector.allowance
        collector.stop()
        let lines = Mutex<[Log.Line]>([])
        let tracer = Tracer(capacity: 4)
        let exporter = try Self.exporter(to: address, tracer, log: Log { line in lines.withLock { $0.append(line) } })
        Self.add(4, to: tracer)
        let running = Task { await exporter.run() }
        try await eventually("a batch is given up") { tracer.counts.failed >= 2 }
        Self.add(100, to: tracer)
        #expect(tracer.waiting <= 4)
        #expect(tracer.counts.dropped >= 90)
        running.cancel()
        await running.value
        let counts = tracer.counts
        #expect(counts.sent == 0 && counts.recorded == 104)
        let said = lines.withLock { $0 }
        #expect(said.map(\.message) == ["spans could not be sent to the collector"])
        #expect(!said.contains { $0.text.contains("abc") })
    }

    @Test func `what is left at the end of the process is sent`() async throws {
        let collector = try FakeReceiver()
        defer { collector.stop() }
        let tracer = Tracer()
        Self.add(5, to: tracer)
        let exporter = try Self.exporter(to: collector.allowance, tracer)
        let running = Task { await exporter.run() }
        running.cancel()
        await running.value
        #expect(tracer.counts.sent == 5)
        #expect(collector.posts.count == 3)
    }
}
