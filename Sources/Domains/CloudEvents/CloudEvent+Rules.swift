import Encodings

extension CloudEvent {
    /// The first rule of the specification that the event breaks; nil when it is valid.
    package var complaint: CloudEventError? {
        for (name, value) in [("id", id), ("source", source), ("type", type)] where value.isEmpty {
            return CloudEventError("\(name) is empty")
        }
        if !Rules.isReference(source) { return CloudEventError("source is not a URI reference") }
        if let subject, subject.isEmpty { return CloudEventError("subject is empty") }
        if let time, !Rules.isTimestamp(time) { return CloudEventError("time is not a timestamp of RFC 3339") }
        if let dataSchema, !Rules.isURI(dataSchema) { return CloudEventError("dataschema is not a URI") }
        if let dataContentType, !Rules.isMediaType(dataContentType) {
            return CloudEventError("datacontenttype is not a media type")
        }
        for (name, value) in attributes {
            if case .string(let text) = value, !Rules.isString(text) {
                return CloudEventError("\(name) has control characters or invalid ones")
            }
        }
        for name in extensions.keys where !Rules.isName(name) || Rules.taken.contains(name) {
            return CloudEventError("an extension's name takes lower-case letters and digits")
        }
        return nil
    }
}

enum Rules {
    /// Names that no extension may have.
    static let taken: Set<String> = [
        "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data",
    ]

    static func isName(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { isDigit($0) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
    }

    /// The type String: no control characters, and no code points that Unicode reserves as noncharacters.
    static func isString(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x00...0x1F, 0x7F...0x9F, 0xFDD0...0xFDEF: false
            default: scalar.value & 0xFFFE != 0xFFFE
            }
        }
    }

    /// Checks the characters only (RFC 3986); the reader decides about the meaning.
    static func isReference(_ text: String) -> Bool {
        var left = Array(text.utf8)[...]
        guard !left.isEmpty else { return false }
        while let byte = left.popFirst() {
            if byte == UInt8(ascii: "%") {
                guard left.count >= 2, left.prefix(2).allSatisfy({ Hexadecimal.digit($0) != nil }) else { return false }
                left = left.dropFirst(2)
            } else if !isLetter(byte), !isDigit(byte), !"-._~:/?#[]@!$&'()*+,;=".utf8.contains(byte) {
                return false
            }
        }
        return true
    }

    static func isURI(_ text: String) -> Bool {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), isReference(text) else { return false }
        let scheme = text.utf8[..<colon]
        return scheme.first.map(isLetter) == true
            && scheme.allSatisfy { isLetter($0) || isDigit($0) || "+-.".utf8.contains($0) }
    }

    /// `type/subtype` and parameters (RFC 2046).
    static func isMediaType(_ text: String) -> Bool {
        let parts = text.split(separator: ";", omittingEmptySubsequences: false)
        let names = parts[0].split(separator: "/", omittingEmptySubsequences: false)
        guard names.count == 2, names.allSatisfy({ isToken(trimmed($0)) }) else { return false }
        return parts.dropFirst().allSatisfy { part in
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2, isToken(trimmed(pair[0])) else { return false }
            let value = trimmed(pair[1])
            return isToken(value)
                || value.utf8.count >= 2 && value.hasPrefix("\"") && value.hasSuffix("\"")
                    && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        }
    }

    /// The type and subtype, in lower case and without parameters.
    static func essence(_ mediaType: String) -> String {
        trimmed(mediaType.prefix { $0 != ";" }).lowercased()
    }

    static func isJSON(_ mediaType: String) -> Bool {
        let essence = essence(mediaType)
        return essence.hasSuffix("/json") || essence.hasSuffix("+json")
    }

    private static func isToken(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { isLetter($0) || isDigit($0) || "!#$%&'*+-.^_`|~".utf8.contains($0) }
    }

    static func trimmed(_ text: some StringProtocol) -> String {
        var rest = text[...]
        while rest.first == " " || rest.first == "\t" { rest = rest.dropFirst() }
        while rest.last == " " || rest.last == "\t" { rest = rest.dropLast() }
        return String(rest)
    }

    static func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
    static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
