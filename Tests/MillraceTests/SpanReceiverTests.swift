import Foundation
import Millrace
import Synchronization
import TestSupport
import Testing

private struct Pack: Job {
    static let kind = "pack"
    static let retries = RetryPolicy(attempts: 1)
    var fails = false
}

private struct Torn: Error {}

/// Another tracing system, which numbers its spans itself.
private final class Kept: SpanReceiver {
    @TaskLocal static var current: String?

    final class Open: OpenSpan {
        let begun: WorkerSpan
        let number: Int
        private let over = Mutex<WorkerSpan.End?>(nil)
        var end: WorkerSpan.End? { over.withLock { $0 } }

        init(_ begun: WorkerSpan, _ number: Int) {
            self.begun = begun
            self.number = number
        }

        var place: WorkerSpan.Place? {
            let trace = begun.parentPlace.map { $0.traceparent.split(separator: "-")[1] } ?? Substring(Kept.trace)
            return WorkerSpan.Place(traceparent: "00-\(trace)-000000000000000\(number)-01")
        }

        nonisolated(nonsending) func within(_ body: () async -> Void) async {
            await Kept.$current.withValue(begun.name) { await body() }
        }

        func end(_ end: WorkerSpan.End) {
            over.withLock { $0 = end }
        }
    }

    static let trace = "11111111111111111111111111111111"
    private let spans = Mutex<[Open]>([])
    var all: [Open] { spans.withLock { $0 } }

    func begin(_ span: WorkerSpan) -> any OpenSpan {
        spans.withLock { spans in
            let open = Open(span, spans.count + 1)
            spans.append(open)
            return open
        }
    }
}

@Suite struct SpanReceiverTests {
    private static let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @Test func `runs and steps are spans of the receiver's, and what they enqueue belongs to them`() async throws {
        try await withDatabase { database in
            let kept = Kept()
            let seen = Mutex<[String]>([])
            let millrace = try Client(database: .url(database.url))
            let worker = Worker(database: .url(database.url), log: .silent, spans: kept)
            worker.handle(Pack.self, queue: "port") { job, context in
                seen.withLock { $0 += [Kept.current ?? "-", context.traceparent ?? "-"] }
                try await context.step("wrap") {
                    seen.withLock { $0 += [Kept.current ?? "-", context.traceparent ?? "-"] }
                }
                if job.fails { throw Torn() }
                return .done
            }
            let bench = try TestBench(worker: worker, database: .url(database.url))
            let id = try await millrace.enqueue(
                Pack(), options: EnqueueOptions(queue: "port", traceparent: Self.given, tracestate: "a=b"))
            #expect(try await bench.drain().finished == 1)
            let trace = Self.given.dropFirst(3).prefix(32)
            #expect(
                seen.withLock { $0 } == [
                    "process port", "00-\(trace)-0000000000000001-01", "step wrap", "00-\(trace)-0000000000000002-01",
                ])
            let (run, step) = (try #require(kept.all.first), try #require(kept.all.last))
            #expect(kept.all.count == 2 && run.begun.kind == .consumer && step.begun.kind == .internal)
            #expect(run.begun.parent == nil)
            #expect(run.begun.parentPlace == WorkerSpan.Place(traceparent: Self.given, tracestate: "a=b"))
            #expect((step.begun.parent as? Kept.Open)?.number == 1)
            let end = try #require(run.end)
            #expect(end.attributes["messaging.message.id"] == .text("\(id)"))
            #expect(end.attributes["millrace.job.attempt"] == .int(1))
            #expect(end.attributes["millrace.job.outcome"] == .text("succeeded"))
            #expect(end.links == [WorkerSpan.Place(traceparent: Self.given, tracestate: "a=b")])
            #expect(end.failure == nil && step.end?.failure == nil)
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `a run that fails says so, and one without a caller begins a trace`() async throws {
        try await withDatabase { database in
            let kept = Kept()
            let millrace = try Client(database: .url(database.url))
            let worker = Worker(database: .url(database.url), log: .silent, spans: kept)
            worker.handle(Pack.self) { _, context in
                try await context.step("wrap") { throw Torn() }
                return .done
            }
            let bench = try TestBench(worker: worker, database: .url(database.url))
            let id = try await millrace.enqueue(Pack(fails: true))
            _ = try await bench.drain()
            #expect(try await millrace.job(id)?.state == .dead)
            let (run, step) = (try #require(kept.all.first), try #require(kept.all.last))
            #expect(run.begun.parentPlace == nil && run.end?.failure == "dead" && run.end?.links == [])
            #expect(step.end?.failure == "Torn")
            await bench.close()
            await millrace.close()
        }
    }
}
