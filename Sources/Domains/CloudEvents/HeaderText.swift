import Encodings

/// A value in a header: everything but printable ASCII is percent-encoded, and so are spaces, quotes and percent signs.
enum HeaderText {
    static func encode(_ text: String) -> String {
        PercentEncoding.encoded(text) {
            (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "%")
        }
    }

    /// nil: the decoded bytes are not a text.
    static func decode(_ value: String) -> String? {
        var left = Array(value.utf8)[...]
        if left.count >= 2, left.first == UInt8(ascii: "\""), left.last == UInt8(ascii: "\"") {
            left = unquoted(left.dropFirst().dropLast())[...]
        }
        var out: [UInt8] = []
        while let byte = left.popFirst() {
            guard byte == UInt8(ascii: "%"), left.count >= 2, let high = Hexadecimal.digit(left[left.startIndex]),
                let low = Hexadecimal.digit(left[left.startIndex + 1])
            else {
                out.append(byte)
                continue
            }
            out.append(high << 4 | low)
            left = left.dropFirst(2)
        }
        return String(validating: out, as: UTF8.self)
    }

    private static func unquoted(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var out: [UInt8] = []
        var isEscaped = false
        for byte in bytes {
            if byte == UInt8(ascii: "\\"), !isEscaped {
                isEscaped = true
                continue
            }
            isEscaped = false
            out.append(byte)
        }
        return out
    }
}
