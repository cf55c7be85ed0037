import Encodings
import Testing
import Traces

@Suite struct SpanEncoderTests {
    /// What `opentelemetry-proto` 1.45.2 for Python makes of the same spans.
    private static let foreign =
        (before + [String(repeating: "78", count: 130)] + after).joined()

    private static let before = [
        "0ad4030a180a160a0c736572766963652e6e616d6512060a0473686f7012b7030a110a086d696c6c726163651205302e",
        "322e3012e3010a100af7651916cd43dd8448eb211c80319c1208b7ad6b71692033311a03763d31220800f067aa0ba902",
        "b72a0c70726f63657373206d61696c30053901002a36fe9c9717410065f753fe9c97174a100a086a6f622e6b696e6412",
        "040a02c3a94a0b0a05656d70747912020a004a100a016e120b18ffffffffffffffffff014a0a0a047a65726f12021800",
        "4a0a0a03626967120318ac024a090a03796573120210014a080a026e6f120210006a260a100af7651916cd43dd8448eb",
        "211c80319c120800f067aa0ba902b71a03763d3135010300007a0812044f6f7073180285010103000012bb010a100af7",
        "651916cd43dd8448eb211c80319c120800000000000000012a8201",
    ]

    private static let after = [
        "3001390100000000000000410200000000000000850100010000"
    ]

    @Test func `a request has the same bytes as those of the published definitions`() throws {
        let trace = try #require(TraceID("0af7651916cd43dd8448eb211c80319c"))
        let caller = try #require(SpanID(text: "00f067aa0ba902b7"))
        let own = try #require(SpanID(text: "b7ad6b7169203331"))
        let one = try #require(SpanID(1))
        var span = TraceSpan(
            context: TraceContext(trace: trace, span: own, isSampled: true, state: "v=1"), parent: caller,
            name: "process mail", kind: .consumer, start: 1_700_000_000_000_000_001, end: 1_700_000_000_500_000_000)
        span.isParentRemote = true
        span.attributes = [
            .text("job.kind", "é"), .text("empty", ""), .int("n", -1), .int("zero", 0), .int("big", 300),
            TraceSpan.Attribute("yes", .flag(true)), TraceSpan.Attribute("no", .flag(false)),
        ]
        span.links = [TraceContext(trace: trace, span: caller, isSampled: true, state: "v=1")]
        span.status = .error("Oops")
        let long = TraceSpan(
            context: TraceContext(trace: trace, span: one, isSampled: false), parent: nil,
            name: String(repeating: "x", count: 130), kind: .internal, start: 1, end: 2)
        let bytes = SpanEncoder.request(
            [span, long], resource: [.text("service.name", "shop")], scope: "millrace", version: "0.2.0")
        #expect(Hexadecimal.text(bytes) == Self.foreign)
    }
}
