import CloudEvents
import Testing

@Suite struct EventHeaderTests {
    private static func event(_ change: (inout CloudEvent) -> Void = { _ in }) -> CloudEvent {
        var event = CloudEvent(id: "1", source: "/shop", type: "com.example.paid")
        change(&event)
        return event
    }

    private static func read(_ members: String) throws -> CloudEvent {
        try CloudEvent(json: Array(#"{"specversion":"1.0","id":"1","source":"/s","type":"t"\#(members)}"#.utf8))
    }

    @Test func `what a header cannot hold is percent-encoded, and comes back`() throws {
        let subject = "Euro € 😀 100% \"quoted\" ~!"
        let message = EventMessage(Self.event { $0.subject = subject }, .binary)
        let value = message.fields.first { $0.name == "ce-subject" }?.value
        #expect(value == "Euro%20%E2%82%AC%20%F0%9F%98%80%20100%25%20%22quoted%22%20~!")
        #expect(try ReceivedEvents(message).events[0].subject == subject)
    }

    @Test func `a header in quotes is unquoted, and lone percent signs stand for themselves`() throws {
        func subject(_ value: String) throws -> String? {
            var message = EventMessage(Self.event(), .binary)
            message.fields.append(.init("CE-Subject", value))
            return try ReceivedEvents(message).events[0].subject
        }
        #expect(try subject(#""a \"b\" %c3%A9""#) == "a \"b\" é")
        #expect(try subject("50%") == "50%" && subject("%zz") == "%zz")
        #expect(throws: CloudEventError.self) { try subject("%FF") }
        #expect(throws: CloudEventError.self) { try subject("") }
    }

    @Test func `a header twice, or of no attribute, is refused`() {
        for (name, value) in [("ce-id", "2"), ("ce-data", "x"), ("ce-datacontenttype", "a/b"), ("ce-a_b", "x")] {
            var message = EventMessage(Self.event(), .binary)
            message.fields.append(.init(name, value))
            #expect(throws: CloudEventError.self, "\(name)") { try ReceivedEvents(message) }
        }
        var message = EventMessage(Self.event(), .structured)
        message.fields = [.init("Content-Type", "application/cloudevents+avro")]
        #expect(throws: CloudEventError.self) { try ReceivedEvents(message) }
    }

    @Test func `JSON data keep their digits, and bytes travel as base64`() throws {
        let number = "123456789012345678901234567890.000100"
        let event = try Self.read(#","data":{"n":\#(number)}"#)
        #expect(event.data == .json(Array(#"{"n":\#(number)}"#.utf8)))
        #expect(String(decoding: EventMessage(event, .binary).body, as: UTF8.self) == #"{"n":\#(number)}"#)
        let bytes = Self.event {
            $0.dataContentType = "image/png"
            $0.data = .bytes([0, 255, 10])
        }
        #expect(String(decoding: bytes.json, as: UTF8.self).hasSuffix(#""data_base64":"AP8K"}"#))
        #expect(try CloudEvent(json: bytes.json) == bytes)
        #expect(EventMessage(bytes, .binary).body == [0, 255, 10])
        let received = try ReceivedEvents(EventMessage(bytes, .binary))
        #expect(received.events == [bytes])
    }

    @Test func `data in a header without a type are said to be JSON`() throws {
        let message = EventMessage(Self.event { $0.data = .json(Array("null".utf8)) }, .binary)
        #expect(message.fields.last == .init("Content-Type", "application/json"))
        #expect(!EventMessage(Self.event(), .binary).fields.contains { $0.name == "Content-Type" })
        #expect(try Self.read(#","data":null"#).data == .json(Array("null".utf8)))
    }

    @Test(arguments: [
        #","Big":"x""#, #","a_b":"x""#, #","n":2147483648"#, #","n":1e0"#, #","n":[]"#, #","subject":7"#,
        #","subject":"a\u0000b""#, #","subject":"a\nb""#, #","subject":"\uFFFE""#,
        #","subject":"\uD800""#, #","id":"2""#,
        #","dataschema":"relative""#, #","dataschema":"1x:y""#, #","datacontenttype":"a/""#, #","data_base64":"*""#,
        #","time":"2023-02-29T00:00:00Z""#, #","time":"2023-01-01 00:00:00Z""#, #","time":"2023-01-01T00:00:00.Z""#,
        #","time":"2023-01-01T24:00:00Z""#, #",""#, #","n":01"#, #","n":"a"#, #"} {"#, #","n":nul"#,
    ]) func `is no event`(members: String) {
        #expect(throws: CloudEventError.self) { try Self.read(members) }
    }

    @Test(arguments: [
        #","n":-2147483648,"b":true"#, #","time":"2024-02-29t23:59:60.5-23:59""#, #","dataschema":"urn:x:1""#,
        #","datacontenttype":"multipart/mixed; boundary=\"a b\"""#, #","subject":"\ud83d\ude00\/\u00e9x""#,
        #" , "x" : null , "data" : [ 1.5e3 , {"a":[]} , false ]  "#,
    ]) func `is an event`(members: String) {
        #expect(throws: Never.self) { try Self.read(members) }
    }

    @Test func `JSON that is nested without end is refused, and not followed`() {
        let deep = String(repeating: "[", count: 100_000)
        let error = #expect(throws: CloudEventError.self) { try Self.read(#","data":\#(deep)"#) }
        #expect(error?.description.hasSuffix("more than 64 levels of nesting") == true)
    }

    @Test func `what is built wrong has its complaint`() {
        #expect(Self.event().complaint == nil)
        #expect(Self.event { $0.source = "a b" }.complaint?.description == "source is not a URI reference")
        #expect(Self.event { $0.source = "%4" }.complaint != nil)
        #expect(Self.event { $0.extensions = ["time": .string("x")] }.complaint != nil)
        #expect(Self.event { $0.extensions = ["tenant": .string("a\u{7f}")] }.complaint != nil)
    }
}
