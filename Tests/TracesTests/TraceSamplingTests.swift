import Testing
import Traces

@Suite struct TraceSamplingTests {
    @Test func `the names of OpenTelemetry are known, and others are refused`() {
        for name in TraceSampling.names { #expect(TraceSampling(sampler: name, argument: "0.5") != nil, "\(name)") }
        #expect(TraceSampling(sampler: "jaeger_remote", argument: nil) == nil)
        for wrong in ["1.1", "-0.1", "half", "nan"] {
            #expect(TraceSampling(sampler: "traceidratio", argument: wrong) == nil, "\(wrong)")
        }
        #expect(TraceSampling(sampler: "parentbased_always_on", argument: nil) == .standard)
    }

    @Test func `a share takes about its share, and the same traces each time`() throws {
        let sampling = try #require(TraceSampling(sampler: "traceidratio", argument: "0.25"))
        var generator = SystemRandomNumberGenerator()
        let traces = (0..<10_000).map { _ in TraceID.random(using: &generator) }
        let taken = traces.filter { sampling.takes($0, under: nil) }
        #expect((2000...3000).contains(taken.count))  // 11 standard deviations
        #expect(taken == traces.filter { sampling.takes($0, under: nil) })
        let more = TraceSampling(share: 0.5, heedsParent: false)
        #expect(taken.allSatisfy { more.takes($0, under: nil) })  // a larger share keeps what a smaller one keeps
    }

    @Test func `all and none are all and none`() throws {
        let highest = try #require(TraceID(high: 1, low: .max))
        let lowest = try #require(TraceID(high: 1, low: 0))
        for trace in [highest, lowest] {
            #expect(TraceSampling(share: 1, heedsParent: false).takes(trace, under: nil))
            #expect(!TraceSampling(share: 0, heedsParent: false).takes(trace, under: nil))
        }
    }

    @Test func `a parent decides where parents count`() throws {
        let trace = try #require(TraceID(high: 1, low: 7))
        let span = try #require(SpanID(1))
        let wanted = TraceContext(trace: trace, span: span, isSampled: true)
        let unwanted = TraceContext(trace: trace, span: span, isSampled: false)
        let off = TraceSampling(share: 0, heedsParent: true)
        #expect(off.takes(trace, under: wanted))
        #expect(!off.takes(trace, under: nil))
        #expect(!TraceSampling.standard.takes(trace, under: unwanted))
        #expect(TraceSampling(share: 1, heedsParent: false).takes(trace, under: unwanted))
    }
}
