/// Bytes as hexadecimal digits, and back.
package enum Hexadecimal {
    private static let digits = Array("0123456789abcdef".utf8)
    private static let upperDigits = Array("0123456789ABCDEF".utf8)

    /// In lower case.
    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Nil for an odd number of digits, and for anything but lower-case digits.
    package static func bytes(_ text: some StringProtocol) -> [UInt8]? {
        guard text.utf8.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count / 2)
        var high: UInt8?
        for character in text.utf8 {
            guard let digit = digit(character), !isUpper(character) else { return nil }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        return bytes
    }

    /// Sixteen bytes as a UUID is written.
    package static func uuid(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array(text(bytes))
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
    }

    /// Two digits in upper case, as mail and addresses have them.
    package static func appendUpper(_ byte: UInt8, to out: inout [UInt8]) {
        out.append(upperDigits[Int(byte >> 4)])
        out.append(upperDigits[Int(byte & 15)])
    }

    /// The value of a digit in either case.
    package static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    private static func isUpper(_ byte: UInt8) -> Bool { byte < UInt8(ascii: "a") && byte > UInt8(ascii: "9") }
}
