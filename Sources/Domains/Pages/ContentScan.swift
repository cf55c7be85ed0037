/// What the drawing instructions of a page, form or glyph use.
package struct ContentScan: Sendable, Equatable {
    /// The names in resources, by their kind: /Font, /XObject, /ExtGState, /ColorSpace, /Shading, /Pattern, /Properties.
    package private(set) var names: [String: Set<String>] = [:]
    /// Why an archive may not hold these instructions; nil: it may.
    package private(set) var problem: CopyFacts.Cause?

    private var operands: [Token] = []
    private var depth = 0

    private enum Token: Equatable {
        case name(String)
        case other
    }

    package init(_ bytes: UnsafeRawBufferPointer) {
        var scanner = Scanner(bytes: bytes)
        while let lexeme = scanner.next() {
            switch lexeme {
            case .name(let name): operands.append(.name(name))
            case .operand: operands.append(.other)
            case .word(let word):
                if word == "BI" {
                    picture(&scanner)
                } else {
                    apply(word)
                }
                operands.removeAll(keepingCapacity: true)
            }
            if operands.count > 1000 { operands.removeFirst(500) }
        }
    }

    private static let operators: Set<String> = [
        "b", "B", "b*", "B*", "BDC", "BMC", "BT", "BX", "c", "cm", "CS", "cs", "d", "d0", "d1", "Do", "DP", "EMC", "ET",
        "EX", "f", "F", "f*", "G", "g", "gs", "h", "i", "j", "J", "K", "k", "l", "m", "M", "MP", "n", "q", "Q", "re",
        "RG", "rg", "ri", "s", "S", "SC", "sc", "SCN", "scn", "sh", "T*", "Tc", "Td", "TD", "Tf", "Tj", "TJ", "TL",
        "Tm",
        "Tr", "Ts", "Tw", "Tz", "v", "w", "W", "W*", "y", "'", "\"",
    ]
    private static let kinds = [
        "Tf": "/Font", "Do": "/XObject", "gs": "/ExtGState", "CS": "/ColorSpace", "cs": "/ColorSpace", "sh": "/Shading",
        "SCN": "/Pattern", "scn": "/Pattern", "BDC": "/Properties", "DP": "/Properties",
    ]
    package static let intents: Set<String> = [
        "/AbsoluteColorimetric", "/RelativeColorimetric", "/Saturation", "/Perceptual",
    ]

    private mutating func apply(_ word: String) {
        guard Self.operators.contains(word) else { return found(.content) }
        if word == "q" {
            depth += 1
            if depth > 28 { found(.content) }
        } else if word == "Q" {
            depth -= 1
            if depth < 0 { found(.content) }
        } else if word == "k" || word == "K" {
            found(.colors)
        } else if word == "ri", case .name(let intent)? = operands.last, !Self.intents.contains(intent) {
            found(.content)
        }
        guard let kind = Self.kinds[word] else { return }
        // The font's name stands before its size; of marked content the properties stand last.
        let place = word == "Tf" ? operands.dropLast().last : operands.last
        guard case .name(let name)? = place else { return }
        if kind == "/ColorSpace" {
            if name == "/DeviceCMYK" { return found(.colors) }
            if ["/DeviceRGB", "/DeviceGray", "/Pattern"].contains(name) { return }
        }
        // One name alone is a tag, and properties may stand there themselves.
        if kind == "/Properties", operands.count < 2 { return }
        names[kind, default: []].insert(name)
    }

    private mutating func found(_ cause: CopyFacts.Cause) { problem = problem ?? cause }

    /// A picture among the instructions.
    private mutating func picture(_ scanner: inout Scanner) {
        var key: String?
        reading: while let lexeme = scanner.next() {
            switch lexeme {
            case .word("ID"): break reading
            case .name(let name):
                if name == "/CMYK" || name == "/DeviceCMYK" { found(.colors) }
                if ["/LZW", "/LZWDecode", "/Crypt"].contains(name) { found(.pictures) }
                if let last = key {
                    if last == "/CS" || last == "/ColorSpace", !Self.inlineSpaces.contains(name) {
                        names["/ColorSpace", default: []].insert(name)
                    }
                    if last == "/Intent", !Self.intents.contains(name) { found(.pictures) }
                    key = nil
                } else {
                    key = name
                }
            case .operand, .word: key = nil
            }
        }
        if !scanner.passPicture() { found(.content) }
    }

    private static let inlineSpaces: Set<String> = [
        "/G", "/RGB", "/CMYK", "/I", "/Indexed", "/DeviceGray", "/DeviceRGB", "/DeviceCMYK",
    ]
}

/// Takes instructions apart.
private struct Scanner {
    let bytes: UnsafeRawBufferPointer
    var at = 0

    enum Lexeme: Equatable {
        case name(String)
        /// A number, a string, a bracket.
        case operand
        case word(String)
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 32 || byte == 10 || byte == 13 || byte == 9 || byte == 12 || byte == 0
    }
    private static func isDelimiter(_ byte: UInt8) -> Bool { "()<>[]{}/%".utf8.contains(byte) }

    mutating func next() -> Lexeme? {
        while at < bytes.count {
            let byte = bytes[at]
            if Self.isSpace(byte) {
                at += 1
            } else if byte == UInt8(ascii: "%") {
                while at < bytes.count, bytes[at] != 10, bytes[at] != 13 { at += 1 }
            } else {
                break
            }
        }
        guard at < bytes.count else { return nil }
        switch bytes[at] {
        case UInt8(ascii: "("):
            string()
            return .operand
        case UInt8(ascii: "<"):
            at += 1
            if at < bytes.count, bytes[at] == UInt8(ascii: "<") {
                at += 1
            } else {
                while at < bytes.count, bytes[at] != UInt8(ascii: ">") { at += 1 }
                at += 1
            }
            return .operand
        case UInt8(ascii: "/"):
            at += 1
            return .name("/" + word())
        case UInt8(ascii: ">"), UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "{"), UInt8(ascii: "}"),
            UInt8(ascii: ")"):
            at += 1
            return .operand
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
            _ = word()
            return .operand
        default:
            let text = word()
            return ["true", "false", "null"].contains(text) ? .operand : .word(text)
        }
    }

    private mutating func string() {
        var depth = 0
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            if byte == UInt8(ascii: "\\") {
                at += 1
            } else if byte == UInt8(ascii: "(") {
                depth += 1
            } else if byte == UInt8(ascii: ")") {
                depth -= 1
                if depth == 0 { return }
            }
        }
    }

    private mutating func word() -> String {
        let start = at
        while at < bytes.count, !Self.isSpace(bytes[at]), !Self.isDelimiter(bytes[at]) { at += 1 }
        if at == start { at += 1 }
        return String(decoding: UnsafeRawBufferPointer(rebasing: bytes[start..<min(at, bytes.count)]), as: UTF8.self)
    }

    /// False if the picture does not end, or if readers may see its end at different places.
    mutating func passPicture() -> Bool {
        at += 1
        var isClear = true
        while at + 1 < bytes.count {
            if bytes[at] == UInt8(ascii: "E"), bytes[at + 1] == UInt8(ascii: "I"),
                at + 2 >= bytes.count || Self.isSpace(bytes[at + 2]),
                bytes[min(at + 2, bytes.count)..<min(at + 12, bytes.count)].allSatisfy({
                    $0 < 127 && ($0 >= 32 || Self.isSpace($0))
                })
            {
                if at > 0, Self.isSpace(bytes[at - 1]) {
                    at += 2
                    return isClear
                }
                // Within the pixels; some readers take it for the end.
                isClear = false
            }
            at += 1
        }
        return false
    }
}
