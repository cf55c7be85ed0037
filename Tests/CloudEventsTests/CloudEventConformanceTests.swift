import CloudEvents
import Foundation
import Testing

/// The public cases, where MILLRACE_CONFORMANCE names a directory with them.
@Suite struct CloudEventConformanceTests {
    static let directory = ProcessInfo.processInfo.environment["MILLRACE_CONFORMANCE"].map { $0 + "/cloudevents" }
    static let skip: Comment =
        "SKIPPED: MILLRACE_CONFORMANCE is not set, and the public cases are not in this repository"

    private static func tests(_ name: String) throws -> [[String: Any]] {
        let bytes = try Data(contentsOf: URL(filePath: try #require(directory)).appending(path: name))
        let file = try #require(try JSONSerialization.jsonObject(with: bytes) as? [String: Any])
        return try #require(file["tests"] as? [[String: Any]])
    }

    private static func bytes(_ value: Any?) throws -> [UInt8] {
        Array(try JSONSerialization.data(withJSONObject: try #require(value)))
    }

    @Test(.enabled(if: directory != nil, skip)) func `every valid event is read, and comes back the same in each mode`()
        throws
    {
        let tests = try Self.tests("valid-events.json")
        #expect(tests.count >= 10)
        for test in tests {
            let event = try CloudEvent(json: try Self.bytes(test["event"]))
            let given = try #require(test["event"] as? [String: Any])
            for (name, value) in [("id", event.id), ("source", event.source), ("type", event.type)] {
                #expect(given[name] as? String == value)
            }
            #expect(event.subject == given["subject"] as? String && event.time == given["time"] as? String)
            #expect(try CloudEvent(json: event.json) == event)
            let structured = try ReceivedEvents(EventMessage(event, .structured))
            #expect(structured.mode == .structured && structured.events == [event])
            let binary = try ReceivedEvents(EventMessage(event, .binary))
            var plain = event
            plain.extensions = event.extensions.mapValues { .string($0.text) }
            if case .text(let text)? = event.data { plain.data = .bytes(Array(text.utf8)) }
            #expect(binary.mode == .binary && binary.events == [plain])
        }
    }

    @Test(.enabled(if: directory != nil, skip)) func `no invalid event is read`() throws {
        let tests = try Self.tests("invalid-events.json")
        #expect(tests.count >= 25)
        for test in tests {
            let bytes = try Self.bytes(test["event"])
            #expect(throws: CloudEventError.self, "\(test["id"] ?? "?")") { try CloudEvent(json: bytes) }
        }
    }

    @Test(.enabled(if: directory != nil, skip)) func `batches are read whole or not at all`() throws {
        let valid = try Self.tests("valid-batches.json")
        #expect(valid.count >= 5)
        for test in valid {
            let events = try CloudEvent.batch(json: try Self.bytes(test["batch"]))
            #expect(events.count == (test["batch"] as? [Any])?.count)
            let received = try ReceivedEvents(EventMessage(batch: events))
            #expect(received.mode == .batch && received.events == events)
        }
        let invalid = try Self.tests("invalid-batches.json")
        #expect(invalid.count >= 3)
        for test in invalid {
            let bytes = try Self.bytes(test["batch"])
            #expect(throws: CloudEventError.self, "\(test["id"] ?? "?")") { try CloudEvent.batch(json: bytes) }
        }
    }

    @Test(.enabled(if: directory != nil, skip)) func `every scenario of the HTTP binding is read as it says`() throws {
        let text = try String(
            contentsOf: URL(filePath: try #require(Self.directory)).appending(path: "http-protocol-binding.feature"),
            encoding: .utf8)
        let outlines = text.components(separatedBy: "Scenario Outline:").dropFirst()
        var seen = 0
        for outline in outlines {
            for example in Self.cells(after: "Examples:", in: outline).dropFirst() {
                let scenario = outline.replacing("<contentType>", with: example[0])
                let quoted = scenario.components(separatedBy: "\"\"\"")
                let received = try ReceivedEvents(Self.message(Self.outdented(quoted[1])))
                let event = try #require(received.events.first)
                var found = [
                    "id": event.id, "specversion": CloudEvent.version, "type": event.type, "source": event.source,
                ]
                found["time"] = event.time
                found["datacontenttype"] = event.dataContentType
                let expected = Self.cells(after: "the attributes are:", in: scenario).dropFirst()
                #expect(found == Dictionary(uniqueKeysWithValues: expected.map { ($0[0], $0[1]) }))
                guard case .json(let data)? = event.data else {
                    Issue.record("the data are no JSON")
                    continue
                }
                let values = try [Array(Self.outdented(quoted[3]).utf8), data].map {
                    try JSONSerialization.jsonObject(with: Data($0)) as? [String: String]
                }
                #expect(values[0] == values[1] && values[0] != nil)
                seen += 1
            }
        }
        #expect(seen >= 4)
    }

    private static func outdented(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropFirst().dropLast()
        return lines.map { String($0.dropFirst(8)) }.joined(separator: "\n")
    }

    private static func cells(after mark: String, in text: String) -> [[String]] {
        let rows = text.components(separatedBy: mark).last?.split(separator: "\n").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        return (rows ?? []).prefix { $0.hasPrefix("|") }.map { row in
            row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    private static func message(_ text: String) -> EventMessage {
        let halves = text.components(separatedBy: "\n\n")
        let fields = halves[0].split(separator: "\n").dropFirst().map { line in
            let colon = line.firstIndex(of: ":") ?? line.endIndex
            return EventMessage.Field(
                String(line[..<colon]), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
        }
        return EventMessage(fields: fields, body: Array(halves[1...].joined(separator: "\n\n").utf8))
    }
}
