/// Reads JSON strictly (RFC 8259), and keeps values as they were written: a number keeps its digits.
struct StrictJSONReader {
    enum Value: Equatable {
        case null
        case boolean(Bool)
        case number(String)
        case string(String)
        /// Lists and objects, by their place in the text.
        case compound
    }

    struct Member {
        var name: String
        var value: Value
        /// The place of the value.
        var range: Range<Int>
    }

    private static let deepest = 64

    let bytes: [UInt8]
    private var at = 0

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Throws unless it is one JSON document.
    static func check(_ bytes: [UInt8]) throws(CloudEventError) {
        var text = StrictJSONReader(bytes)
        _ = try text.value(depth: 0)
        try text.end()
    }

    /// The members of an object.
    static func object(_ bytes: [UInt8]) throws(CloudEventError) -> [Member] {
        var text = StrictJSONReader(bytes)
        text.skip()
        guard text.peek == UInt8(ascii: "{") else { throw CloudEventError("it is not a JSON object") }
        var members: [Member] = []
        try text.members(depth: 1) { members.append($0) }
        try text.end()
        var names: Set<String> = []
        for member in members where !names.insert(member.name).inserted {
            throw CloudEventError("a member of the JSON object stands there twice")
        }
        return members
    }

    /// The elements of a list, as they are written.
    static func elements(_ bytes: [UInt8]) throws(CloudEventError) -> [[UInt8]] {
        var text = StrictJSONReader(bytes)
        text.skip()
        guard text.peek == UInt8(ascii: "[") else { throw CloudEventError("it is no JSON list") }
        var found: [[UInt8]] = []
        try text.elements(depth: 1) { found.append(Array(bytes[$0])) }
        try text.end()
        return found
    }

    private var peek: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func skip() {
        while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { at += 1 }
    }

    private mutating func end() throws(CloudEventError) {
        skip()
        guard at == bytes.count else { throw broken }
    }

    private var broken: CloudEventError { CloudEventError("malformed JSON at byte \(at)") }

    private mutating func take(_ sign: Character) throws(CloudEventError) {
        guard let byte = sign.asciiValue, peek == byte else { throw broken }
        at += 1
    }

    private mutating func value(depth: Int) throws(CloudEventError) -> Value {
        skip()
        switch peek {
        case UInt8(ascii: "{"):
            try members(depth: depth + 1) { _ in }
            return .compound
        case UInt8(ascii: "["):
            try elements(depth: depth + 1) { _ in }
            return .compound
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .boolean(true))
        case UInt8(ascii: "f"): return try word("false", .boolean(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return .number(try number())
        }
    }

    private mutating func members(depth: Int, _ take: (Member) -> Void) throws(CloudEventError) {
        guard depth <= Self.deepest else { throw CloudEventError("the JSON is nested too deeply") }
        at += 1
        skip()
        if peek == UInt8(ascii: "}") {
            at += 1
            return
        }
        while true {
            skip()
            let name = try string()
            skip()
            try self.take(":")
            skip()
            let start = at
            let value = try value(depth: depth)
            take(Member(name: name, value: value, range: start..<at))
            skip()
            if peek == UInt8(ascii: "}") { break }
            try self.take(",")
        }
        at += 1
    }

    private mutating func elements(depth: Int, _ found: (Range<Int>) -> Void) throws(CloudEventError) {
        guard depth <= Self.deepest else { throw CloudEventError("the JSON is nested too deeply") }
        at += 1
        skip()
        if peek == UInt8(ascii: "]") {
            at += 1
            return
        }
        while true {
            skip()
            let start = at
            _ = try value(depth: depth)
            found(start..<at)
            skip()
            if peek == UInt8(ascii: "]") { break }
            try take(",")
        }
        at += 1
    }

    private mutating func word(_ word: StaticString, _ value: Value) throws(CloudEventError) -> Value {
        let expected = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard bytes[at...].starts(with: expected) else { throw broken }
        at += expected.count
        return value
    }

    private mutating func number() throws(CloudEventError) -> String {
        let start = at
        if peek == UInt8(ascii: "-") { at += 1 }
        if peek == UInt8(ascii: "0") {
            at += 1
        } else {
            try digits()
        }
        if peek == UInt8(ascii: ".") {
            at += 1
            try digits()
        }
        if let byte = peek, byte | 0x20 == UInt8(ascii: "e") {
            at += 1
            if peek == UInt8(ascii: "+") || peek == UInt8(ascii: "-") { at += 1 }
            try digits()
        }
        return String(decoding: bytes[start..<at], as: UTF8.self)
    }

    private mutating func digits() throws(CloudEventError) {
        let start = at
        while let byte = peek, Rules.isDigit(byte) { at += 1 }
        guard at > start else { throw broken }
    }

    private mutating func string() throws(CloudEventError) -> String {
        try take("\"")
        var units: [UInt8] = []
        while let byte = peek {
            at += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: units, as: UTF8.self) else { throw broken }
                return text
            case UInt8(ascii: "\\"): try escape(&units)
            case 0..<0x20: throw broken
            default: units.append(byte)
            }
        }
        throw broken
    }

    private mutating func escape(_ units: inout [UInt8]) throws(CloudEventError) {
        guard let byte = peek else { throw broken }
        at += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): units.append(byte)
        case UInt8(ascii: "b"): units.append(0x08)
        case UInt8(ascii: "f"): units.append(0x0C)
        case UInt8(ascii: "n"): units.append(0x0A)
        case UInt8(ascii: "r"): units.append(0x0D)
        case UInt8(ascii: "t"): units.append(0x09)
        case UInt8(ascii: "u"):
            var code = try unit()
            if (0xD800...0xDBFF).contains(code) {
                try take("\\")
                try take("u")
                let low = try unit()
                guard (0xDC00...0xDFFF).contains(low) else { throw broken }
                code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw broken }
            units.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
        default: throw broken
        }
    }

    private mutating func unit() throws(CloudEventError) -> UInt32 {
        guard at + 4 <= bytes.count else { throw broken }
        var code: UInt32 = 0
        for byte in bytes[at..<(at + 4)] {
            guard let digit = Rules.hex(byte) else { throw broken }
            code = code << 4 | UInt32(digit)
        }
        at += 4
        return code
    }
}
