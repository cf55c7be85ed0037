import Testing
import Traces

@testable import MillraceJobs

@Suite struct CarriedTraceTests {
    private static let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    private func metadata(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func `the place that metadata carries is read`() throws {
        let text = #"{"order": 7, "traceparent": "\#(Self.given)", "tracestate": "a=b"}"#
        let place = try #require(TraceContext.carried(by: metadata(text)))
        #expect(place.traceparent == Self.given)
        #expect(place.state == "a=b")
        for other in ["{}", #"{"traceparent": 1}"#, #"{"traceparent": "x"}"#, #"{"a": "traceparent"}"#] {
            #expect(TraceContext.carried(by: metadata(other)) == nil, "\(other)")
        }
        #expect(TraceContext.carried(by: nil) == nil)
    }

    @Test func `metadata carries a place on, beside what it has, unless it names one`() throws {
        let place = try #require(TraceContext(traceparent: Self.given, tracestate: #"a="b\c""#))
        for before in [nil, "{}", "{ }", "{\n}", "{\r\n\t}", #"{"order": 7}"#, #" {"order": 7}"#] {
            let after = place.carried(in: before.map(metadata))
            let isObject = before?.hasPrefix(" ") != true
            #expect(TraceContext.carried(by: after) == (isObject ? place : nil), "\(before ?? "nothing")")
        }
        let own = metadata(#"{"traceparent": "own"}"#)
        #expect(place.carried(in: own) == own)
    }
}
