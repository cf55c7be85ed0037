/// Bytes as `%XX`.
package enum PercentEncoding {
    /// What a URI may hold as it is (RFC 3986): letters, digits and `-._~`.
    package static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    package static func encoded(_ text: String, keeping keeps: (UInt8) -> Bool = isUnreserved) -> String {
        var out: [UInt8] = []
        for byte in text.utf8 {
            if keeps(byte) {
                out.append(byte)
            } else {
                append(byte, to: &out)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// Strict: a broken escape is refused, never guessed, and so is a zero byte.
    package static func decoded(_ text: some StringProtocol, plusIsSpace: Bool = false) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8.makeIterator()
        while let byte = rest.next() {
            if byte == UInt8(ascii: "%") {
                guard let high = rest.next().flatMap(Hexadecimal.digit),
                    let low = rest.next().flatMap(Hexadecimal.digit)
                else { return nil }
                bytes.append(high << 4 | low)
            } else {
                bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
            }
        }
        guard !bytes.contains(0) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    package static func append(_ byte: UInt8, to out: inout [UInt8]) {
        out.append(UInt8(ascii: "%"))
        Hexadecimal.appendUpper(byte, to: &out)
    }
}
