import Encodings

/// The spelling of a text in JSON: the only place that escapes.
package enum JSONText {
    package static func quoted(_ text: String, forTerminal isForTerminal: Bool = false) -> String {
        var out: [UInt8] = []
        appendQuoted(text, to: &out, forTerminal: isForTerminal)
        return String(decoding: out, as: UTF8.self)
    }

    /// Without the quotes around it.
    package static func escaped(_ text: String) -> String { String(quoted(text).dropFirst().dropLast()) }

    package static func appendQuoted(
        _ text: String, to out: inout [UInt8], forTerminal isForTerminal: Bool = false
    ) {
        out.append(UInt8(ascii: "\""))
        append(text, to: &out, forTerminal: isForTerminal)
        out.append(UInt8(ascii: "\""))
    }

    /// A repeated request must be the same byte for byte, so these escapes never change.
    /// `forTerminal`: also escapes what is legal in JSON, but what a terminal may act on: the C1 controls and the separators of lines.
    private static func append(_ text: String, to out: inout [UInt8], forTerminal isForTerminal: Bool = false) {
        var text = text
        text.withUTF8 { bytes in
            var start = 0
            var at = 0
            func copyPlain() { out.append(contentsOf: bytes[start..<at]) }
            while at < bytes.count {
                let byte = bytes[at]
                if byte >= 0x20, byte < 0x7f, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
                    at += 1
                    continue
                }
                if byte >= 0x80 {
                    let length = isForTerminal ? activeLength(bytes, at) : 0
                    if length > 0 {
                        copyPlain()
                        // Two bytes: U+0080 to U+009F. Three: U+2028 and U+2029.
                        appendCode(
                            length == 2 ? UInt32(bytes[at + 1]) : 0x2000 | UInt32(bytes[at + 2] & 0x3f), to: &out)
                        start = at + length
                    }
                    at += max(1, length)
                    continue
                }
                copyPlain()
                appendEscape(byte, to: &out)
                at += 1
                start = at
            }
            copyPlain()
        }
    }

    /// How many bytes the character here has if a terminal may act on it; 0 if not.
    private static func activeLength(_ bytes: UnsafeBufferPointer<UInt8>, _ at: Int) -> Int {
        if bytes[at] == 0xc2, bytes[at + 1] < 0xa0 { return 2 }
        if bytes[at] == 0xe2, bytes[at + 1] == 0x80, bytes[at + 2] & 0xfe == 0xa8 { return 3 }
        return 0
    }

    private static func appendEscape(_ byte: UInt8, to out: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): out += [UInt8(ascii: "\\"), byte]
        case 0x0a: out += "\\n".utf8
        case 0x0d: out += "\\r".utf8
        case 0x09: out += "\\t".utf8
        default: appendCode(UInt32(byte), to: &out)
        }
    }

    private static func appendCode(_ code: UInt32, to out: inout [UInt8]) {
        out += "\\u".utf8
        out += Hexadecimal.text([UInt8(code >> 8), UInt8(code & 0xff)]).utf8
    }

    /// An object whose values are already JSON, in this order.
    package static func object(_ members: [(String, String)]) -> String {
        "{" + members.map { "\(quoted($0.0)):\($0.1)" }.joined(separator: ",") + "}"
    }
}
