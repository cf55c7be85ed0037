import Encodings

/// How a value is escaped at its place.
enum Escape: Sendable, Equatable {
    case none
    /// As in the Mustache specification.
    case plain
    /// The text of HTML, or an attribute in quotes.
    case markup
    /// The beginning of an address.
    case address
    /// A later part of an address.
    case component
    /// A style's value.
    case style
}

extension Escape {
    /// Appends the value; false when it must not be here at all.
    func append(_ bytes: UnsafeBufferPointer<UInt8>, to out: inout [UInt8]) -> Bool {
        switch self {
        case .none: out.append(contentsOf: bytes)
        case .plain, .markup: Self.markup(bytes, to: &out)
        case .address:
            guard bytes.isEmpty || Address.isSafe(bytes) else { return false }
            Self.markup(bytes, to: &out)
        case .component: Self.percent(bytes, to: &out)
        case .style:
            guard bytes.allSatisfy(Self.isStyle) else { return false }
            out.append(contentsOf: bytes)
        }
        return true
    }

    private static let special: [Bool] = {
        var table = [Bool](repeating: false, count: 256)
        for byte in "&<>\"'`".utf8 { table[Int(byte)] = true }
        table[0] = true
        return table
    }()

    private static func markup(_ bytes: UnsafeBufferPointer<UInt8>, to out: inout [UInt8]) {
        var start = 0
        special.withUnsafeBufferPointer { special in
            for index in 0..<bytes.count where special[Int(bytes[index])] {
                out.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[start..<index]))
                start = index + 1
                switch bytes[index] {
                case UInt8(ascii: "&"): out.append(contentsOf: "&amp;".utf8)
                case UInt8(ascii: "<"): out.append(contentsOf: "&lt;".utf8)
                case UInt8(ascii: ">"): out.append(contentsOf: "&gt;".utf8)
                case UInt8(ascii: "\""): out.append(contentsOf: "&quot;".utf8)
                case UInt8(ascii: "'"): out.append(contentsOf: "&#39;".utf8)
                case UInt8(ascii: "`"): out.append(contentsOf: "&#96;".utf8)
                default: out.append(contentsOf: "\u{FFFD}".utf8)
                }
            }
        }
        out.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[start...]))
    }

    private static func percent(_ bytes: UnsafeBufferPointer<UInt8>, to out: inout [UInt8]) {
        for byte in bytes {
            if PercentEncoding.isUnreserved(byte) {
                out.append(byte)
            } else {
                PercentEncoding.append(byte, to: &out)
            }
        }
    }

    private static func isStyle(_ byte: UInt8) -> Bool {
        isLetterOrDigit(byte) || " #%.,+-".utf8.contains(byte)
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 97 < 26 || byte &- 48 < 10
    }
}
