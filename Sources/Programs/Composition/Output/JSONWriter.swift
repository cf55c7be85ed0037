extension JSONValue {
    /// The document on one line.
    package var compact: String {
        var writer = JSONWriter(indented: false)
        writer.write(self, depth: 0)
        return writer.text
    }

    /// The document for eyes, two spaces a level.
    package var indented: String {
        var writer = JSONWriter(indented: true)
        writer.write(self, depth: 0)
        return writer.text
    }
}

package struct JSONWriter {
    package let indented: Bool
    package private(set) var text = ""

    package init(indented: Bool) { self.indented = indented }

    package mutating func write(_ value: JSONValue, depth: Int) {
        switch value {
        case .null: text += "null"
        case .bool(let bool): text += bool ? "true" : "false"
        case .int(let number): text += String(number)
        // JSON knows neither infinity nor NaN.
        case .double(let number): text += number.isFinite ? String(describing: number) : "null"
        case .number(let digits): text += digits
        case .string(let string): quote(string)
        // Outside of strings a line break is only space, and inside JSON forbids it; one line stays one line.
        case .raw(let json):
            text += String(String.UnicodeScalarView(json.unicodeScalars.map { Self.isBreak($0) ? " " : $0 }))
        case .array(let values):
            list("[", "]", values, depth: depth) { writer, value in writer.write(value, depth: depth + 1) }
        case .object(let members):
            list("{", "}", members, depth: depth) { writer, member in
                writer.quote(member.key)
                writer.text += writer.indented ? ": " : ":"
                writer.write(member.value, depth: depth + 1)
            }
        }
    }

    private mutating func list<Element>(
        _ open: String, _ close: String, _ elements: [Element], depth: Int, each: (inout JSONWriter, Element) -> Void
    ) {
        text += open
        for (index, element) in elements.enumerated() {
            if index > 0 { text += "," }
            lineBreak(depth + 1)
            each(&self, element)
        }
        if !elements.isEmpty { lineBreak(depth) }
        text += close
    }

    private mutating func lineBreak(_ depth: Int) {
        if indented { text += "\n" + String(repeating: "  ", count: depth) }
    }

    private mutating func quote(_ string: String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            // DEL and the C1 controls are legal, but a terminal may act on them.
            case "\u{0}"..."\u{1f}", "\u{7f}"..."\u{9f}", "\u{2028}", "\u{2029}":
                let hex = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }

    private static func isBreak(_ scalar: Unicode.Scalar) -> Bool { scalar == "\n" || scalar == "\r" }
}
