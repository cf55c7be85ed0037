/// Writes JSON with the members in the order of the calls, so that the bytes depend only on the contents. An encoder may change its order
/// and escapes in its next version, and a repeated request with other bytes is refused.
struct OrderedJSONWriter {
    private(set) var bytes: [UInt8] = []

    mutating func raw(_ text: String) { bytes += text.utf8 }

    mutating func string(_ text: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
            case 0x0a: raw("\\n")
            case 0x0d: raw("\\r")
            case 0x09: raw("\\t")
            case 0..<0x20, 0x7f:
                raw("\\u00")
                bytes += [Hex.lower[Int(byte >> 4)], Hex.lower[Int(byte & 15)]]
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

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
