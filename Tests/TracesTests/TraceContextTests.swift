import Testing
import Traces

@Suite struct TraceContextTests {
    private static let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @Test func `a traceparent is read and written as it was`() throws {
        let context = try #require(TraceContext(traceparent: Self.given, tracestate: "rojo=00f067,congo=t61"))
        #expect(context.trace.text == "0af7651916cd43dd8448eb211c80319c")
        #expect(context.span.text == "b7ad6b7169203331")
        #expect(context.isSampled)
        #expect(context.state == "rojo=00f067,congo=t61")
        #expect(context.traceparent == Self.given)
        let unsampled = try #require(TraceContext(traceparent: String(Self.given.dropLast(2)) + "00"))
        #expect(!unsampled.isSampled)
        #expect(unsampled.state == nil)
    }

    @Test(arguments: [
        "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
        "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01more",
        "00-0af7651916cd43dd8448eb211c80319é-b7ad6b7169203331-01",
    ])
    func `a malformed traceparent stands for no caller`(text: String) {
        #expect(TraceContext(traceparent: text) == nil)
    }

    @Test func `a later version is read as far as it is known`() throws {
        let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-09-what-comes"
        let context = try #require(TraceContext(traceparent: later))
        #expect(context.isSampled)
        #expect(context.traceparent == Self.given)
    }

    @Test(arguments: ["", "rojo", "=1", "rojo=", "Rojo=1", "a=b=c", "a=\n", String(repeating: "a", count: 513) + "=1"])
    func `a malformed tracestate is left out, and the caller stays`(state: String) throws {
        let context = try #require(TraceContext(traceparent: Self.given, tracestate: state))
        #expect(context.state == nil)
    }

    @Test func `what runs within a place knows it, and nothing else does`() async throws {
        let context = try #require(TraceContext(traceparent: Self.given))
        #expect(TraceContext.current == nil)
        await TraceContext.within(context) {
            #expect(TraceContext.current == context)
            await TraceContext.within(nil) { #expect(TraceContext.current == context) }
        }
        #expect(TraceContext.current == nil)
    }
}
