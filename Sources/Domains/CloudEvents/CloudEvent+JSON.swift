import FoundationEssentials
import JSON

extension CloudEvent {
    /// From the JSON format.
    package init(json bytes: [UInt8]) throws(CloudEventError) {
        var texts: [String: String] = [:]
        var extensions: [String: Value] = [:]
        var data: (value: JSONValue, bytes: [UInt8])?
        var base64: String?
        for member in try StrictJSON.members(bytes) {
            if member.key == "data" {
                data = (member.value, Array(bytes[member.place]))
                continue
            }
            // An attribute that is null counts as absent; so does data_base64.
            if member.value == .null { continue }
            if member.key == "data_base64" {
                guard case .string(let text) = member.value else { throw CloudEventError("data_base64 is not text") }
                base64 = text
            } else if Rules.taken.contains(member.key) {
                guard case .string(let text) = member.value else {
                    throw CloudEventError("\(member.key) is not text")
                }
                texts[member.key] = text
            } else {
                guard Rules.isName(member.key) else {
                    throw CloudEventError("an extension's name takes lower-case letters and digits")
                }
                extensions[member.key] = try Self.value(member.value)
            }
        }
        self = try Self.checked(texts, extensions)
        if let base64 {
            guard data == nil else { throw CloudEventError("data and data_base64 exclude each other") }
            guard let bytes = Data(base64Encoded: base64) else { throw CloudEventError("data_base64 is not base64") }
            self.data = .bytes(Array(bytes))
        } else if let data {
            // With a content type other than JSON the data are the string's text, not its JSON spelling.
            if case .string(let text) = data.value, let type = dataContentType, !Rules.isJSON(type) {
                self.data = .text(text)
            } else {
                self.data = .json(data.bytes)
            }
        }
    }

    private static func value(_ given: JSONValue) throws(CloudEventError) -> Value {
        switch given {
        case .string(let text): return .string(text)
        case .bool(let isTrue): return .boolean(isTrue)
        case .number(let digits):
            guard let number = Int32(digits) else {
                throw CloudEventError("the number of an extension is not a 32-bit integer")
            }
            return .integer(number)
        case .null, .int, .double, .array, .object, .raw:
            throw CloudEventError("an extension is not a text, a whole number or a boolean")
        }
    }

    static func checked(_ texts: [String: String], _ extensions: [String: Value]) throws(CloudEventError) -> CloudEvent
    {
        guard let version = texts["specversion"] else { throw CloudEventError("specversion is missing") }
        guard version == Self.version else { throw CloudEventError("specversion is not 1.0") }
        guard let id = texts["id"] else { throw CloudEventError("id is missing") }
        guard let source = texts["source"] else { throw CloudEventError("source is missing") }
        guard let type = texts["type"] else { throw CloudEventError("type is missing") }
        var event = CloudEvent(id: id, source: source, type: type)
        event.subject = texts["subject"]
        event.time = texts["time"]
        event.dataContentType = texts["datacontenttype"]
        event.dataSchema = texts["dataschema"]
        event.extensions = extensions
        if let complaint = event.complaint { throw complaint }
        return event
    }

    /// A list of events, each of which must be valid.
    package static func batch(json bytes: [UInt8]) throws(CloudEventError) -> [CloudEvent] {
        var events: [CloudEvent] = []
        for element in try StrictJSON.elements(bytes) { events.append(try CloudEvent(json: element)) }
        return events
    }

    /// In the JSON format.
    package var json: [UInt8] {
        var out: [UInt8] = []
        func add(_ name: String, _ value: [UInt8]) {
            out.append(UInt8(ascii: out.isEmpty ? "{" : ","))
            out += Self.quoted(name)
            out.append(UInt8(ascii: ":"))
            out += value
        }
        for (name, value) in attributes {
            switch value {
            case .string(let text): add(name, Self.quoted(text))
            case .integer, .boolean: add(name, Array(value.text.utf8))
            }
        }
        if let dataContentType { add("datacontenttype", Self.quoted(dataContentType)) }
        switch data {
        case .json(let bytes): add("data", bytes)
        case .text(let text): add("data", Self.quoted(text))
        case .bytes(let bytes): add("data_base64", Self.quoted(Data(bytes).base64EncodedString()))
        case nil: break
        }
        out.append(UInt8(ascii: "}"))
        return out
    }

    package static func json(batch events: [CloudEvent]) -> [UInt8] {
        var out: [UInt8] = []
        for event in events {
            out.append(UInt8(ascii: out.isEmpty ? "[" : ","))
            out += event.json
        }
        return out.isEmpty ? Array("[]".utf8) : out + [UInt8(ascii: "]")]
    }

    private static func quoted(_ text: String) -> [UInt8] {
        var out: [UInt8] = []
        JSONText.appendQuoted(text, to: &out)
        return out
    }
}

/// JSON as the rules of CloudEvents want it: numbers keep their digits, and no member stands there twice.
enum StrictJSON {
    private static let rules = JSONReader.Rules(deepest: 64, allowsNUL: true)

    /// Throws unless it is one JSON document.
    static func check(_ bytes: [UInt8]) throws(CloudEventError) {
        _ = try read(bytes) { reader throws(JSONProblem) in try reader.document() }
    }

    static func members(_ bytes: [UInt8]) throws(CloudEventError) -> [(
        key: String, value: JSONValue, place: Range<Int>
    )] {
        let members = try read(bytes) { reader throws(JSONProblem) in try reader.members() }
        guard let members else { throw CloudEventError("it is not a JSON object") }
        var names: Set<String> = []
        for member in members where !names.insert(member.key).inserted {
            throw CloudEventError("a member of the JSON object appears twice")
        }
        return members
    }

    /// The elements of a list, as they are written.
    static func elements(_ bytes: [UInt8]) throws(CloudEventError) -> [[UInt8]] {
        let places = try read(bytes) { reader throws(JSONProblem) in try reader.elements() }
        guard let places else { throw CloudEventError("it is not a JSON list") }
        return places.map { Array(bytes[$0]) }
    }

    private static func read<Value>(
        _ bytes: [UInt8], _ read: (inout JSONReader) throws(JSONProblem) -> Value
    ) throws(CloudEventError) -> Value {
        var reader = JSONReader(bytes, rules: rules)
        do throws(JSONProblem) {
            return try read(&reader)
        } catch {
            throw CloudEventError("malformed JSON at byte \(error.offset): \(error.complaint)")
        }
    }
}
