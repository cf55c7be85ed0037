extension TemplateValue {
    /// Reads a JSON document. Numbers keep their digits; if a key comes twice, the last one counts.
    package init(json bytes: [UInt8]) throws(TemplateError) {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw TemplateError(.data, "the data are not UTF-8")
        }
        var reader = Reader(bytes: bytes)
        self = try reader.document()
    }

    package init(json text: String) throws(TemplateError) {
        try self.init(json: Array(text.utf8))
    }
}

private struct Reader {
    let bytes: [UInt8]
    var at = 0

    mutating func document() throws(TemplateError) -> TemplateValue {
        let value = try value(depth: 0)
        skipSpace()
        guard at == bytes.count else { throw problem("nothing should follow the document") }
        return value
    }

    private mutating func value(depth: Int) throws(TemplateError) -> TemplateValue {
        guard depth < 64 else { throw problem("more than 64 levels of nesting") }
        skipSpace()
        guard at < bytes.count else { throw problem("a value is missing") }
        switch bytes[at] {
        case UInt8(ascii: "{"): return try object(depth)
        case UInt8(ascii: "["): return try list(depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
        default: throw problem("a value should stand here")
        }
    }

    private mutating func object(_ depth: Int) throws(TemplateError) -> TemplateValue {
        at += 1
        var members: [String: TemplateValue] = [:]
        while try !ends(UInt8(ascii: "}"), isFirst: members.isEmpty) {
            guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") else {
                throw problem("a key in double quotes should stand here")
            }
            let key = try string()
            skipSpace()
            guard at < bytes.count, bytes[at] == UInt8(ascii: ":") else {
                throw problem("a colon should follow the key")
            }
            at += 1
            members[key] = try value(depth: depth + 1)
        }
        return .object(members)
    }

    private mutating func list(_ depth: Int) throws(TemplateError) -> TemplateValue {
        at += 1
        var values: [TemplateValue] = []
        while try !ends(UInt8(ascii: "]"), isFirst: values.isEmpty) { values.append(try value(depth: depth + 1)) }
        return .list(values)
    }

    /// True after the closing bracket; otherwise it moves past the comma to the next element.
    private mutating func ends(_ bracket: UInt8, isFirst: Bool) throws(TemplateError) -> Bool {
        skipSpace()
        guard at < bytes.count else { throw problem("the document ends too early") }
        if bytes[at] == bracket {
            at += 1
            return true
        }
        guard !isFirst else { return false }
        guard bytes[at] == UInt8(ascii: ",") else { throw problem("a comma should stand here") }
        at += 1
        skipSpace()
        guard at < bytes.count, bytes[at] != bracket else { throw problem("a value should follow the comma") }
        return false
    }

    private mutating func word(_ word: StaticString, _ value: TemplateValue) throws(TemplateError) -> TemplateValue {
        let matches = word.withUTF8Buffer { bytes[at...].starts(with: $0) }
        guard matches else { throw problem("a value should stand here") }
        at += word.utf8CodeUnitCount
        return value
    }

    private mutating func number() throws(TemplateError) -> String {
        let start = at
        func isDigit(_ place: Int) -> Bool { place < bytes.count && bytes[place] &- 48 < 10 }
        if bytes[at] == UInt8(ascii: "-") { at += 1 }
        guard isDigit(at) else { throw problem("a digit should stand here") }
        if bytes[at] == 48, isDigit(at + 1) { throw problem("a number does not start with 0") }
        while isDigit(at) { at += 1 }
        if at < bytes.count, bytes[at] == UInt8(ascii: ".") {
            at += 1
            guard isDigit(at) else { throw problem("a digit should stand here") }
            while isDigit(at) { at += 1 }
        }
        if at < bytes.count, bytes[at] | 0x20 == UInt8(ascii: "e") {
            at += 1
            if at < bytes.count, bytes[at] == UInt8(ascii: "+") || bytes[at] == UInt8(ascii: "-") { at += 1 }
            guard isDigit(at) else { throw problem("a digit should stand here") }
            while isDigit(at) { at += 1 }
        }
        return String(decoding: bytes[start..<at], as: UTF8.self)
    }

    private mutating func string() throws(TemplateError) -> String {
        at += 1
        let start = at
        while at < bytes.count, bytes[at] != UInt8(ascii: "\""), bytes[at] != UInt8(ascii: "\\"), bytes[at] >= 0x20 {
            at += 1
        }
        var text = Array(bytes[start..<at])
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): try escape(into: &text)
            case 0..<0x20: throw problem("a control character stands in a text")
            default: text.append(byte)
            }
        }
        throw problem("a text has no closing quote")
    }

    private mutating func escape(into text: inout [UInt8]) throws(TemplateError) {
        guard at < bytes.count else { throw problem("a text has no closing quote") }
        let byte = bytes[at]
        at += 1
        switch byte {
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "u"):
            var code = try hex()
            if code & 0xFC00 == 0xD800, at + 1 < bytes.count, bytes[at] == UInt8(ascii: "\\"),
                bytes[at + 1] == UInt8(ascii: "u")
            {
                at += 2
                code = 0x10000 + (code - 0xD800) << 10 + (try hex() &- 0xDC00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw problem("half of a surrogate pair") }
            text.append(contentsOf: Array(String(scalar).utf8))
        default: throw problem("JSON knows no such escape")
        }
    }

    private mutating func hex() throws(TemplateError) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard at < bytes.count, let digit = Character(Unicode.Scalar(bytes[at])).hexDigitValue else {
                throw problem("four hexadecimal digits should follow \\u")
            }
            code = code << 4 | UInt32(digit)
            at += 1
        }
        return code
    }

    private mutating func skipSpace() {
        while at < bytes.count, bytes[at] == 0x20 || bytes[at] == 0x0A || bytes[at] == 0x0D || bytes[at] == 0x09 {
            at += 1
        }
    }

    private func problem(_ complaint: String) -> TemplateError {
        let before = bytes[..<min(at, bytes.count)]
        let line = before.count { $0 == 0x0A } + 1
        return TemplateError(.data, "malformed JSON in line \(line) of the data: \(complaint)")
    }
}
