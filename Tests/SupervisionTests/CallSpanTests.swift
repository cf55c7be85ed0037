import Faults
import Supervision
import Telemetry
import Testing
import Traces

@Suite struct CallSpanTests {
    private func supervisor(_ tracer: Tracer?) -> Supervisor {
        var options = Supervisor.Options()
        options.tracer = tracer
        return Supervisor(options, log: .silent)
    }

    private func place(_ span: String) throws -> TraceContext {
        try #require(TraceContext(traceparent: "00-0af7651916cd43dd8448eb211c80319c-\(span)-01"))
    }

    @Test func `a call within a trace is a span of it, and one outside is none`() async throws {
        let tracer = Tracer()
        let supervisor = supervisor(tracer)
        let caller = try place("b7ad6b7169203331")
        let inside = try await TraceContext.within(caller) {
            try await supervisor.call("webhook:7") { _ in TraceContext.current }
        }
        _ = try await supervisor.call("resend") { _ in true }
        let spans = tracer.take(10)
        #expect(spans.map(\.name) == ["call webhook"])
        let span = try #require(spans.first)
        #expect(span.parent == caller.span && span.context == inside && span.kind == .client)
        #expect(span.attributes.contains(.text("millrace.provider", "webhook:7")))
    }

    @Test func `a call for several is a child of the first and linked to the others, and its fault is its status`()
        async throws
    {
        let tracer = Tracer()
        let supervisor = supervisor(tracer)
        let places = [try place("0000000000000001"), try place("0000000000000002")]
        await #expect(throws: Fault.self) {
            try await supervisor.call("resend", places: places) { _ -> Bool in
                throw Fault(.transient, "ada@example.org")
            }
        }
        let span = try #require(tracer.take(10).first)
        #expect(span.parent == places[0].span && span.links == [places[1]])
        #expect(span.status == .error("transient"))
    }

    @Test func `without a tracer the place is carried through`() async throws {
        let caller = try place("b7ad6b7169203331")
        let inside = try await supervisor(nil).call("resend", places: [caller]) { _ in TraceContext.current }
        #expect(inside == caller)
    }
}
