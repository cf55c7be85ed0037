import FoundationEssentials

extension CloudEvent {
    /// From the JSON format.
    package init(json bytes: [UInt8]) throws(CloudEventError) {
        var texts: [String: String] = [:]
        var extensions: [String: Value] = [:]
        var data: (value: StrictJSONReader.Value, bytes: [UInt8])?
        var base64: String?
        for member in try StrictJSONReader.object(bytes) {
            if member.name == "data" {
                data = (member.value, Array(bytes[member.range]))
                continue
            }
            // An attribute that is null counts as absent; so does data_base64.
            if member.value == .null { continue }
            if member.name == "data_base64" {
                guard case .string(let text) = member.value else { throw CloudEventError("data_base64 is not text") }
                base64 = text
            } else if Rules.taken.contains(member.name) {
                guard case .string(let text) = member.value else {
                    throw CloudEventError("\(member.name) is not text")
                }
                texts[member.name] = text
            } else {
                guard Rules.isName(member.name) else {
                    throw CloudEventError("an extension's name takes lower-case letters and digits")
                }
                extensions[member.name] = try Self.value(member)
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

    private static func value(_ member: StrictJSONReader.Member) throws(CloudEventError) -> Value {
        switch member.value {
        case .string(let text): return .string(text)
        case .boolean(let isTrue): return .boolean(isTrue)
        case .number(let digits):
            guard let number = Int32(digits) else {
                throw CloudEventError("the number of an extension is no whole one of 32 bits")
            }
            return .integer(number)
        case .null, .compound: throw CloudEventError("an extension is not a text, a whole number or a truth value")
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
        for element in try StrictJSONReader.elements(bytes) { events.append(try CloudEvent(json: element)) }
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
        var out: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
            case 0..<0x20:
                let digits = Array("0123456789abcdef".utf8)
                out += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            default: out.append(byte)
            }
        }
        return out + [UInt8(ascii: "\"")]
    }
}
