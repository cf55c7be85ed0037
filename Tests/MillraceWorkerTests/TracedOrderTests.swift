import Fakes
import Foundation
import MillraceWorker
import Postgres
import Synchronization
import TestSupport
import Testing

private struct Pack: Job {
    static let kind = "pack"
    var order: Int
}

private struct Label: Job {
    static let kind = "label"
    var order: Int
}

private final class Heard: LogReceiver {
    let lines = Mutex<[WorkerLogLine]>([])

    func log(_ event: WorkerLogLine) { lines.withLock { $0.append(event) } }
}

/// A tracing system of the program's own.
private final class Kept: SpanReceiver {
    struct Ended: Sendable {
        let span: WorkerSpan
        let end: WorkerSpan.End
    }

    final class Open: OpenSpan {
        let span: WorkerSpan
        let place: WorkerSpan.Place?
        let kept: Kept

        init(_ span: WorkerSpan, _ place: WorkerSpan.Place, _ kept: Kept) {
            self.span = span
            self.place = place
            self.kept = kept
        }

        nonisolated(nonsending) func within(_ body: () async -> Void) async { await body() }
        func end(_ end: WorkerSpan.End) { kept.ended.withLock { $0.append(Ended(span: span, end: end)) } }
    }

    let ended = Mutex<[Ended]>([])
    private let begun = Mutex(0)

    func begin(_ span: WorkerSpan) -> any OpenSpan {
        let number = begun.withLock { begun in
            begun += 1
            return begun
        }
        let trace = span.parentPlace.map { $0.traceparent.split(separator: "-")[1] } ?? "nothing"
        return Open(span, .init(traceparent: "00-\(trace)-000000000000000\(number)-01"), self)
    }
}

/// A message in the wire format of protobuf: its fields with a length.
private struct WireMessage {
    var fields: [(number: UInt64, bytes: [UInt8])] = []

    init(_ bytes: [UInt8]) {
        var rest = bytes[...]
        func varint() -> UInt64 {
            var value: UInt64 = 0
            var shift: UInt64 = 0
            while let byte = rest.popFirst() {
                value |= UInt64(byte & 0x7F) << shift
                shift += 7
                if byte < 0x80 { break }
            }
            return value
        }
        while !rest.isEmpty {
            let key = varint()
            switch key & 7 {
            case 0: _ = varint()
            case 1: rest = rest.dropFirst(8)
            case 2:
                let length = Int(varint())
                fields.append((key >> 3, Array(rest.prefix(length))))
                rest = rest.dropFirst(length)
            default: rest = rest.dropFirst(4)
            }
        }
    }

    func all(_ number: UInt64) -> [[UInt8]] { fields.filter { $0.number == number }.map(\.bytes) }
    func hex(_ number: UInt64) -> String {
        (all(number).first ?? []).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

private struct SeenSpan {
    var trace, id, parent, name: String

    /// Of all requests that a collector has got.
    static func all(in requests: [FakeReceiver.Request]) -> [SeenSpan] {
        requests.flatMap { WireMessage($0.body).all(1) }.flatMap { WireMessage($0).all(2) }
            .flatMap { WireMessage($0).all(2) }.map { bytes in
                let message = WireMessage(bytes)
                return SeenSpan(
                    trace: message.hex(1), id: message.hex(2), parent: message.hex(4),
                    name: String(decoding: message.all(5).first ?? [], as: UTF8.self))
            }
    }
}

@Suite struct TracedOrderTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c"
    private static let caller = "b7ad6b7169203331"

    private static func options(
        _ database: TestDatabase, _ collector: String, _ heard: Heard
    ) -> CompleteWorker.Options {
        var options = CompleteWorker.Options(
            settings: ["OTEL_EXPORTER_OTLP_ENDPOINT": collector, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=not-for-logs"])
        options.readsEnvironment = false
        options.database = .url(database.url)
        options.listen = "off"
        options.rooms = []
        options.logReceiver = heard
        return options
    }

    @Test func `a run is a span of its caller's trace, and its steps and the jobs that it enqueues are beneath it`()
        async throws
    {
        try await withDatabase { database in
            let collector = try FakeReceiver()
            defer { collector.stop() }
            let heard = Heard()
            let worker = try CompleteWorker(Self.options(database, collector.allowance, heard))
            let client = try Client(database: .url(database.url))
            let named = Mutex<[String]>([])
            worker.handle(Pack.self) { job, context in
                let weight = try await context.step("weigh") { () -> Int in
                    named.withLock { $0.append(context.traceparent ?? "") }
                    return job.order * 3
                }
                context.log("packed")
                try await client.enqueue(Label(order: weight))
                try await context.spawn([Label(order: job.order)])
                return .done
            }
            worker.handle(Label.self) { _, _ in .done }
            let options = EnqueueOptions(traceparent: "00-\(Self.trace)-\(Self.caller)-01")
            try await client.enqueue(Pack(order: 7), options: options)
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("four spans have come") { SeenSpan.all(in: collector.posts).count >= 4 }
            running.cancel()
            _ = try await running.value
            await client.close()

            let spans = SeenSpan.all(in: collector.posts)
            #expect(spans.allSatisfy { $0.trace == Self.trace })
            let run = try #require(spans.first { $0.parent == Self.caller })
            #expect(run.name == "process default")
            let beneath = spans.filter { $0.parent == run.id }.map(\.name).sorted()
            #expect(beneath == ["process default", "process default", "step weigh"])
            let step = try #require(spans.first { $0.name == "step weigh" })
            #expect(named.withLock { $0 } == ["00-\(Self.trace)-\(step.id)-01"])
            let line = try #require(heard.lines.withLock { $0 }.first { $0.message == "packed" })
            #expect(line.metadata["trace_id"] == Self.trace && line.metadata["span_id"] == run.id)
        }
    }

    @Test func `a receiver has the spans in place of the collector`() async throws {
        try await withDatabase { database in
            let collector = try FakeReceiver()
            defer { collector.stop() }
            var options = Self.options(database, collector.allowance, Heard())
            let kept = Kept()
            options.spans = kept
            let worker = try CompleteWorker(options)
            let seen = Mutex<[String]>([])
            worker.handle(Pack.self) { job, context in
                _ = try await context.step("weigh") { () -> Int in
                    seen.withLock { $0.append(context.traceparent ?? "") }
                    return job.order
                }
                return .done
            }
            let client = try Client(database: .url(database.url))
            let caller = "00-\(Self.trace)-\(Self.caller)-01"
            let id = try await client.enqueue(Pack(order: 7), options: EnqueueOptions(traceparent: caller))
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("the run's span is over") { kept.ended.withLock { $0.count } == 2 }
            running.cancel()
            _ = try await running.value
            await client.close()

            let ended = kept.ended.withLock { $0 }
            #expect(ended.map(\.span.name) == ["step weigh", "process default"])
            let (step, run) = (ended[0], ended[1])
            #expect(run.span.kind == .consumer && run.span.parentPlace?.traceparent == caller)
            #expect(run.end.attributes["messaging.message.id"] == .text("\(id)") && run.end.failure == nil)
            let parent = try #require(step.span.parent as? Kept.Open)
            #expect(parent.span.name == "process default")
            #expect(seen.withLock { $0 } == ["00-\(Self.trace)-0000000000000002-01"])
            #expect(collector.posts.isEmpty)
        }
    }

    @Test func `while the collector is away jobs run as ever, and the log says what is lost`() async throws {
        try await withDatabase { database in
            let collector = try FakeReceiver()
            let address = collector.allowance
            collector.stop()
            let heard = Heard()
            let worker = try CompleteWorker(Self.options(database, address, heard))
            let done = Mutex(0)
            worker.handle(Label.self) { _, _ in
                done.withLock { $0 += 1 }
                return .done
            }
            let client = try Client(database: .url(database.url))
            try await client.enqueue(contentsOf: (0..<50).map { Label(order: $0) })
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("all jobs are done, and the log has a line about the collector") {
                let isSaid = heard.lines.withLock { lines in
                    lines.contains { $0.message == "spans could not be sent to the collector" }
                }
                return isSaid && done.withLock { $0 } == 50
            }
            running.cancel()
            let report = try await running.value
            await client.close()
            #expect(report.finished == 50 && report.unrecorded == 0)
            let said = heard.lines.withLock { $0 }
            #expect(!said.contains { "\($0.metadata)".contains("not-for-logs") })
        }
    }
}
