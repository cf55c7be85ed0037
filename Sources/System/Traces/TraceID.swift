import Encodings

/// The number of a trace: everything that one cause has set off.
package struct TraceID: Sendable, Hashable {
    package let high: UInt64
    package let low: UInt64

    /// nil: all zero, which stands for no trace.
    package init?(high: UInt64, low: UInt64) {
        guard high != 0 || low != 0 else { return nil }
        self.high = high
        self.low = low
    }

    /// 32 lower-case hexadecimal digits.
    package init?(_ text: String) {
        let digits = Array(text.utf8)
        guard digits.count == 32, let high = HexDigits.number(digits[..<16]), let low = HexDigits.number(digits[16...])
        else { return nil }
        self.init(high: high, low: low)
    }

    package static func random(using generator: inout some RandomNumberGenerator) -> TraceID {
        while true {
            if let id = TraceID(high: generator.next(), low: generator.next()) { return id }
        }
    }

    package var text: String { HexDigits.text(high) + HexDigits.text(low) }
}

/// The number of a span within a trace.
package struct SpanID: Sendable, Hashable {
    package let number: UInt64

    /// nil: zero, which stands for no span.
    package init?(_ number: UInt64) {
        guard number != 0 else { return nil }
        self.number = number
    }

    /// 16 lower-case hexadecimal digits.
    package init?(text: String) {
        guard let number = HexDigits.number(Array(text.utf8)[...]) else { return nil }
        self.init(number)
    }

    package static func random(using generator: inout some RandomNumberGenerator) -> SpanID {
        while true {
            if let id = SpanID(generator.next()) { return id }
        }
    }

    package var text: String { HexDigits.text(number) }
}

/// W3C Trace Context takes lower-case digits only, as `Hexadecimal` does.
enum HexDigits {
    /// Sixteen digits.
    static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        guard digits.count == 16, let bytes = Hexadecimal.bytes(String(decoding: digits, as: UTF8.self)) else {
            return nil
        }
        return bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Two digits.
    static func byte(_ digits: ArraySlice<UInt8>) -> UInt8? {
        guard digits.count == 2 else { return nil }
        return Hexadecimal.bytes(String(decoding: digits, as: UTF8.self))?.first
    }

    static func text(_ number: UInt64) -> String {
        withUnsafeBytes(of: number.bigEndian) { Hexadecimal.text($0) }
    }
}
