import Synchronization
import Testing
import Traces

@Suite struct TracerTests {
    private struct Failed: Error {}

    private static func span(_ number: UInt64) -> TraceSpan {
        var generator = SystemRandomNumberGenerator()
        let context = TraceContext(
            trace: .random(using: &generator), span: .random(using: &generator), isSampled: true)
        return TraceSpan(context: context, parent: nil, name: "\(number)", kind: .internal, start: number)
    }

    @Test func `a full buffer drops the oldest and counts them`() {
        var buffer = SpanBuffer(capacity: 3)
        for number in 1...5 { buffer.add(Self.span(UInt64(number))) }
        #expect(buffer.count == 3)
        #expect(buffer.dropped == 2)
        #expect(buffer.take(2).map(\.name) == ["3", "4"])
        buffer.add(Self.span(6))
        #expect(buffer.take(10).map(\.name) == ["5", "6"])
        #expect(buffer.take(10).isEmpty)
        #expect(buffer.dropped == 2)
    }

    @Test func `a tracer keeps sampled spans alone, within its bound`() {
        let tracer = Tracer(capacity: 4)
        for _ in 0..<6 { tracer.end(tracer.begin("run", .consumer, under: nil)) }
        #expect(tracer.waiting == 4)
        #expect(tracer.counts == Tracer.Counts(recorded: 6, sent: 0, dropped: 2, failed: 0))
        let silent = Tracer(TraceSampling(share: 0, heedsParent: true))
        silent.end(silent.begin("run", .consumer, under: nil))
        #expect(silent.waiting == 0)
        #expect(silent.counts == Tracer.Counts())
    }

    @Test func `a span belongs to its caller's trace, and what it does belongs to it`() async throws {
        let clock = Mutex<UInt64>(100)
        let tracer = Tracer(now: {
            clock.withLock { time in
                time += 10
                return time
            }
        })
        let caller = try #require(
            TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "a=b"))
        await #expect(throws: Failed.self) {
            try await tracer.span("outer", .consumer, under: caller) {
                let current = try #require(TraceContext.current)
                try await tracer.span("inner", .internal, under: current, [.int("n", 1)]) {}
                throw Failed()
            }
        }
        let spans = tracer.take(10)
        #expect(spans.map(\.name) == ["inner", "outer"])
        let (inner, outer) = (spans[0], spans[1])
        #expect(outer.context.trace == caller.trace)
        #expect(outer.parent == caller.span)
        #expect(outer.context.state == "a=b")
        #expect(outer.status == .error("Failed"))
        #expect(outer.attributes == [.text("error.type", "Failed")])
        #expect(inner.parent == outer.context.span)
        #expect(inner.attributes == [.int("n", 1)])
        #expect(inner.status == .unset)
        #expect(outer.start < inner.start)
        #expect(inner.start < inner.end)
        #expect(inner.end < outer.end)
    }
}
