import Supervision
import TestSupport
import Testing

@testable import AI

@Suite struct EventStreamTests {
    private let text =
        "event: a\ndata: one\n\n: a comment\r\ndata: two\r\ndata:three\r\n\r\nid: 7\n\ndata: {\"x\": \"é\"}\n\n"

    @Test func `events come out the same, wherever their bytes are cut`() throws {
        var whole = EventStreamReader()
        let expected = try whole.take(Array(text.utf8))
        #expect(expected.map(\.data) == ["one", "two\nthree", "{\"x\": \"é\"}"])
        #expect(expected.map(\.name) == ["a", nil, nil])
        for seed in 0..<200 {
            var random = SeededRandom(seed)
            var reader = EventStreamReader()
            var rest = Array(text.utf8)[...]
            var found: [EventStreamReader.Event] = []
            while !rest.isEmpty {
                let piece = rest.prefix(random.below(7) + 1)
                rest = rest.dropFirst(piece.count)
                found += try reader.take(Array(piece))
            }
            #expect(found == expected, "seed \(seed)")
        }
    }

    @Test(arguments: ["\n", "\r\n", "\r"])
    func `a line ends in each of the three ways, and a mark of the byte order is no text`(end: String) throws {
        let lines = ["\u{FEFF}data: one", "", "data", "data:  two", "", ""]
        let bytes = Array(lines.joined(separator: end).utf8)
        var whole = EventStreamReader()
        #expect(try whole.take(bytes).map(\.data) == ["one", "\n two"])
        var cut = EventStreamReader()
        var found: [String] = []
        for byte in bytes { found += try cut.take([byte]).map(\.data) }
        #expect(found == ["one", "\n two"])
    }

    @Test func `an event without end is refused`() {
        var reader = EventStreamReader(most: 1000)
        #expect(throws: EventStreamReader.TooLong.self) {
            for _ in 0..<100 { _ = try reader.take(Array(repeating: 0x61, count: 100)) }
        }
    }

    @Test func `spans of headers are read in all their forms`() {
        #expect(AIPace.span("6m0s", now: 0) == .seconds(360))
        #expect(AIPace.span("20ms", now: 0) == .milliseconds(20))
        #expect(AIPace.span("1.5s", now: 0) == .milliseconds(1500))
        #expect(AIPace.span("12", now: 0) == .seconds(12))
        #expect(AIPace.span("1970-01-01T00:01:00Z", now: 20) == .seconds(40))
        #expect(AIPace.span("soon", now: 0) == nil)
    }

    @Test func `tokens that are used up pause the calls, and requests set the pace`() {
        let notes = AIPace.notes(
            [
                ("anthropic-ratelimit-requests-limit", "50"), ("anthropic-ratelimit-requests-remaining", "49"),
                ("anthropic-ratelimit-tokens-remaining", "0"),
                ("anthropic-ratelimit-tokens-reset", "1970-01-01T00:00:30Z"),
            ], now: 0)
        #expect(notes.limit == 50 && notes.remaining == 49 && notes.retryAfter == .seconds(30))
    }

    @Test func `the wanted model is asked first, and the usual ones stand in`() {
        let providers = [(name: "openai", model: "small"), (name: "anthropic", model: "large")]
        func routes(_ wanted: String?) -> [String] {
            AIRoutes(providers, wanted: wanted).routes.map { "\(providers[$0.provider].name):\($0.model)" }
        }
        #expect(routes(nil) == ["openai:small", "anthropic:large"])
        #expect(routes("anthropic:huge") == ["anthropic:huge", "openai:small", "anthropic:large"])
        #expect(routes("tiny") == ["openai:tiny", "openai:small", "anthropic:large"])
        #expect(routes("small") == ["openai:small", "anthropic:large"])
    }

    @Test func `a fence around JSON is taken off, and nothing else`() {
        #expect(AIRun.bare("```json\n{\"a\": 1}\n```") == "{\"a\": 1}")
        #expect(AIRun.bare("{\"a\": 1}") == "{\"a\": 1}")
        #expect(AIRun.bare("Here: {\"a\": 1}") == "Here: {\"a\": 1}")
        #expect(AIRun.complaint("{\"a\": 1, \"a\": 2}") != nil)
        #expect(AIRun.complaint(String(repeating: "[", count: 1000)) != nil)
    }
}
