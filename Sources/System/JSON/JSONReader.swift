import Encodings

/// Why a document is not JSON, and where; lines and columns count from one, columns in characters of the file.
package struct JSONProblem: Error, Equatable {
    package let complaint: String
    package let line: Int
    package let column: Int
    /// In bytes from the beginning.
    package let offset: Int

    package init(complaint: String, line: Int, column: Int, offset: Int = 0) {
        self.complaint = complaint
        self.line = line
        self.column = column
        self.offset = offset
    }

    package var sentence: String { "line \(line), column \(column): \(complaint)" }
}

extension JSONValue {
    /// Reads a whole document, strictly: RFC 8259, and nothing Postgres would refuse in a `jsonb`.
    package static func read(_ bytes: [UInt8]) throws(JSONProblem) -> JSONValue {
        var reader = JSONReader(bytes)
        return try reader.document()
    }

    package static func read(_ text: String) throws(JSONProblem) -> JSONValue { try read(Array(text.utf8)) }
}

/// The only reader of JSON whose shape is not known beforehand, and strict: RFC 8259. What a type describes is read by `JSONDecoder`, and the
/// short arguments of a claimed job by `FastArgumentDecoder`, because that was measured.
package struct JSONReader {
    package struct Rules: Sendable {
        /// Lists and objects within one another.
        package var deepest = 128
        /// Legal, but no text of Postgres has it.
        package var allowsNUL = false
        /// Legal, and read differently by different readers: what is signed must not have it.
        package var allowsRepeatedKeys = true

        package init(deepest: Int = 128, allowsNUL: Bool = false, allowsRepeatedKeys: Bool = true) {
            self.deepest = deepest
            self.allowsNUL = allowsNUL
            self.allowsRepeatedKeys = allowsRepeatedKeys
        }
    }

    package static let repeatedKey = "a key appears twice in this object"

    private let bytes: [UInt8]
    private let rules: Rules
    package private(set) var position = 0

    package init(_ bytes: [UInt8], rules: Rules = Rules()) {
        self.bytes = bytes
        self.rules = rules
    }

    package mutating func document() throws(JSONProblem) -> JSONValue {
        try begin()
        let value = try value(depth: 1)
        try end()
        return value
    }

    /// The members of a document that is an object, each with the place of its value, also those whose key comes twice; nil: it is none.
    package mutating func members() throws(JSONProblem) -> [(key: String, value: JSONValue, place: Range<Int>)]? {
        try begin()
        guard peek == UInt8(ascii: "{") else { return nil }
        var members: [(key: String, value: JSONValue, place: Range<Int>)] = []
        try descend(1)
        while try !closes(UInt8(ascii: "}"), after: members.count) {
            let key = try self.key()
            let start = position
            let value = try value(depth: 2)
            members.append((key, value, start..<position))
        }
        try end()
        return members
    }

    /// The places of the elements of a document that is a list; nil: it is none.
    package mutating func elements() throws(JSONProblem) -> [Range<Int>]? {
        try begin()
        guard peek == UInt8(ascii: "[") else { return nil }
        var places: [Range<Int>] = []
        try descend(1)
        while try !closes(UInt8(ascii: "]"), after: places.count) {
            let start = position
            _ = try value(depth: 2)
            places.append(start..<position)
        }
        try end()
        return places
    }

    private mutating func begin() throws(JSONProblem) {
        if let bad = Self.invalidUTF8(bytes) { throw problem("this is not UTF-8", at: bad) }
        if bytes.starts(with: [0xef, 0xbb, 0xbf]) { throw problem("a byte order mark does not belong here", at: 0) }
        skipSpace()
    }

    private mutating func end() throws(JSONProblem) {
        skipSpace()
        guard position == bytes.count else { throw problem("there is more after the end of the document") }
    }

    private mutating func value(depth: Int) throws(JSONProblem) -> JSONValue {
        guard let byte = peek else { throw problem("the document ends where a value is expected") }
        switch byte {
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case UInt8(ascii: "'"): throw problem("text must be in double quotes")
        default: throw problem("a value is expected here")
        }
    }

    private mutating func object(depth: Int) throws(JSONProblem) -> JSONValue {
        try descend(depth)
        var members: [JSONValue.Member] = []
        var places: [String: Int] = [:]
        while try !closes(UInt8(ascii: "}"), after: members.count) {
            let key = try self.key()
            let member = JSONValue.Member(key: key, value: try value(depth: depth + 1))
            if let place = places[key] {
                guard rules.allowsRepeatedKeys else { throw problem(Self.repeatedKey) }
                members[place] = member  // the last one wins, as in Postgres
            } else {
                places[key] = members.count
                members.append(member)
            }
        }
        return .object(members)
    }

    /// Up to the value.
    private mutating func key() throws(JSONProblem) -> String {
        guard peek == UInt8(ascii: "\"") else { throw problem("a key in double quotes is expected here") }
        let key = try string()
        skipSpace()
        guard peek == UInt8(ascii: ":") else { throw problem("a colon should follow the key") }
        position += 1
        skipSpace()
        return key
    }

    private mutating func array(depth: Int) throws(JSONProblem) -> JSONValue {
        try descend(depth)
        var values: [JSONValue] = []
        while try !closes(UInt8(ascii: "]"), after: values.count) { values.append(try value(depth: depth + 1)) }
        return .array(values)
    }

    private mutating func descend(_ depth: Int) throws(JSONProblem) {
        guard depth <= rules.deepest else { throw problem("more than \(rules.deepest) levels of nesting") }
        position += 1
    }

    /// True after the closing bracket; otherwise it moves past the comma to the next element.
    private mutating func closes(_ bracket: UInt8, after count: Int) throws(JSONProblem) -> Bool {
        skipSpace()
        if peek == bracket {
            position += 1
            return true
        }
        guard count > 0 else { return false }
        let close = bracket == UInt8(ascii: "}") ? "}" : "]"
        guard let byte = peek else { throw problem("the document ends before the closing \(close)") }
        guard byte == UInt8(ascii: ",") else { throw problem("a comma or \(close) is expected here") }
        position += 1
        skipSpace()
        guard peek != bracket else { throw problem("a comma before \(close) leads nowhere") }
        return false
    }

    private mutating func word(_ word: String, _ value: JSONValue) throws(JSONProblem) -> JSONValue {
        guard bytes[position...].starts(with: word.utf8) else { throw problem("a value is expected here") }
        position += word.utf8.count
        return value
    }

    private mutating func number() throws(JSONProblem) -> String {
        let start = position
        if peek == UInt8(ascii: "-") { position += 1 }
        if peek == UInt8(ascii: "0") {
            position += 1
            if let next = peek, Self.isDigit(next) { throw problem("a number must not start with 0", at: start) }
        } else {
            try digits()
        }
        if peek == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        if peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E") {
            position += 1
            if peek == UInt8(ascii: "+") || peek == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func digits() throws(JSONProblem) {
        guard let first = peek, Self.isDigit(first) else { throw problem("a digit is expected here") }
        while let next = peek, Self.isDigit(next) { position += 1 }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

extension JSONReader {
    private mutating func string() throws(JSONProblem) -> String {
        let opening = position
        position += 1
        let start = position
        while let byte = peek, byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { position += 1 }
        var text = Array(bytes[start..<position])
        while let byte = peek {
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): text += try escape()
            case 0: throw problem("a text must not contain NUL")
            case 1..<0x20: throw problem("a control character in a text is written as \\n, \\t or \\u00..")
            default:
                text.append(byte)
                position += 1
            }
        }
        throw problem("this text has no closing quote", at: opening)
    }

    private mutating func escape() throws(JSONProblem) -> [UInt8] {
        let start = position
        position += 2
        guard start + 1 < bytes.count else { throw problem("this text has no closing quote", at: start) }
        switch bytes[start + 1] {
        case UInt8(ascii: "n"): return [0x0a]
        case UInt8(ascii: "r"): return [0x0d]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0c]
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [bytes[start + 1]]
        case UInt8(ascii: "u"): return try unicode(from: start)
        default: throw problem("JSON has no such escape", at: start)
        }
    }

    private mutating func unicode(from start: Int) throws(JSONProblem) -> [UInt8] {
        var code = try hex(from: start)
        if (0xd800..<0xdc00).contains(code), bytes[position...].starts(with: "\\u".utf8) {
            position += 2
            let low = try hex(from: start)
            guard (0xdc00..<0xe000).contains(low) else { throw problem("half of a surrogate pair", at: start) }
            code = 0x10000 + (code - 0xd800) << 10 + (low - 0xdc00)
        }
        guard code != 0 || rules.allowsNUL else { throw problem("a text must not contain NUL", at: start) }
        guard let scalar = Unicode.Scalar(code) else { throw problem("half of a surrogate pair", at: start) }
        return Array(String(scalar).utf8)
    }

    private mutating func hex(from start: Int) throws(JSONProblem) -> UInt32 {
        var code: UInt32 = 0
        for place in position..<position + 4 {
            guard place < bytes.count, let digit = Hexadecimal.digit(bytes[place]) else {
                throw problem("four hexadecimal digits should follow \\u", at: start)
            }
            code = code << 4 | UInt32(digit)
        }
        position += 4
        return code
    }
}

extension JSONReader {
    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { position += 1 }
    }

    private func problem(_ complaint: String, at place: Int? = nil) -> JSONProblem {
        let before = bytes[..<min(place ?? position, bytes.count)]
        let line = before.count { $0 == 0x0a } + 1
        let lineStart = before.lastIndex(of: 0x0a).map { $0 + 1 } ?? 0
        // Characters and not bytes: every byte but the ones that continue one.
        let column = before[lineStart...].count { $0 & 0xc0 != 0x80 } + 1
        return JSONProblem(complaint: complaint, line: line, column: column, offset: before.count)
    }

    /// The first byte that cannot belong to UTF-8.
    private static func invalidUTF8(_ bytes: [UInt8]) -> Int? {
        guard String(validating: bytes, as: UTF8.self) == nil else { return nil }
        var parser = Unicode.UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        var place = 0
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .valid(let scalar): place += scalar.count
            case .error: return place
            case .emptyInput: return nil
            }
        }
    }
}
