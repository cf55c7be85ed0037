import JSON

/// Writes JSON with the members in the order of the calls, so that the bytes depend only on the contents. An encoder may change its order
/// and escapes in its next version, and a repeated request with other bytes is refused.
struct OrderedJSONWriter {
    private(set) var bytes: [UInt8] = []

    mutating func raw(_ text: String) { bytes += text.utf8 }

    mutating func string(_ text: String) { JSONText.appendQuoted(text, to: &bytes) }

    mutating func strings(_ list: [String]) {
        raw("[")
        for (index, text) in list.enumerated() {
            if index > 0 { raw(",") }
            string(text)
        }
        raw("]")
    }

    mutating func member(_ name: String, _ value: String) {
        raw(",\"\(name)\":")
        string(value)
    }
}
