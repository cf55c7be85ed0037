extension JSONValue {
    /// The document on one line.
    package var compact: String {
        var writer = JSONWriter(indented: false)
        writer.write(self, depth: 0)
        return writer.text
    }

    /// The document on one line, with the keys of each object in order: however the same was written, this is the same text.
    package var canonical: String { ordered.compact }

    private var ordered: JSONValue {
        switch self {
        case .object(let members):
            .object(
                members.sorted { $0.key < $1.key }.map { Member(key: $0.key, value: $0.value.ordered) })
        case .array(let items): .array(items.map(\.ordered))
        case .null, .bool, .int, .double, .number, .string, .raw: self
        }
    }

    /// The document for eyes, two spaces a level.
    package var indented: String {
        var writer = JSONWriter(indented: true)
        writer.write(self, depth: 0)
        return writer.text
    }
}

private struct JSONWriter {
    let indented: Bool
    private var bytes: [UInt8] = []

    init(indented: Bool) { self.indented = indented }

    var text: String { String(decoding: bytes, as: UTF8.self) }

    mutating func write(_ value: JSONValue, depth: Int) {
        switch value {
        case .null: add("null")
        case .bool(let bool): add(bool ? "true" : "false")
        case .int(let number): add(String(number))
        // JSON knows neither infinity nor NaN.
        case .double(let number): add(number.isFinite ? String(describing: number) : "null")
        case .number(let digits): add(digits)
        case .string(let string): JSONText.appendQuoted(string, to: &bytes, forTerminal: true)
        // Outside of strings a line break is only space, and inside JSON forbids it; one line stays one line.
        case .raw(let json): bytes += json.utf8.map { $0 == 0x0a || $0 == 0x0d ? 0x20 : $0 }
        case .array(let values):
            list("[", "]", values, depth: depth) { writer, value in writer.write(value, depth: depth + 1) }
        case .object(let members):
            list("{", "}", members, depth: depth) { writer, member in
                JSONText.appendQuoted(member.key, to: &writer.bytes, forTerminal: true)
                writer.add(writer.indented ? ": " : ":")
                writer.write(member.value, depth: depth + 1)
            }
        }
    }

    private mutating func add(_ text: String) { bytes += text.utf8 }

    private mutating func list<Element>(
        _ open: String, _ close: String, _ elements: [Element], depth: Int, each: (inout JSONWriter, Element) -> Void
    ) {
        add(open)
        for (index, element) in elements.enumerated() {
            if index > 0 { add(",") }
            lineBreak(depth + 1)
            each(&self, element)
        }
        if !elements.isEmpty { lineBreak(depth) }
        add(close)
    }

    private mutating func lineBreak(_ depth: Int) {
        if indented { add("\n" + String(repeating: "  ", count: depth)) }
    }
}
