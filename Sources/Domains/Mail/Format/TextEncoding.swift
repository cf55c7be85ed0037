import Encodings

/// How a text part is encoded to survive every server: unchanged, quoted-printable, or base64.
enum TextEncoding: String {
    case sevenBit = "7bit"
    case quotedPrintable = "quoted-printable"
    case base64 = "base64"

    /// Every line ended by CR LF, the last one too.
    static func canonical(_ text: String) -> [UInt8] {
        var text = text
        return text.withUTF8 { source in
            var out: [UInt8] = []
            out.reserveCapacity(source.count + source.count / 16 + 2)
            var start = 0
            while start < source.count {
                let end = source[start...].firstIndex { $0 == 0x0a || $0 == 0x0d } ?? source.count
                out.append(contentsOf: source[start..<end])
                out.append(0x0d)
                out.append(0x0a)
                let isPair = end + 1 < source.count && source[end] == 0x0d && source[end + 1] == 0x0a
                start = end + (isPair ? 2 : 1)
            }
            if source.isEmpty { out += [0x0d, 0x0a] }
            return out
        }
    }

    /// - Parameter bytes: in canonical form.
    static func choose(for bytes: [UInt8]) -> TextEncoding {
        bytes.withUnsafeBufferPointer { bytes in
            var beyond = 0
            var controls = 0
            for byte in bytes {  // no branches, so the compiler handles several bytes at a time
                beyond += Int(byte >> 7)
                controls += byte < 0x20 ? 1 : 0
            }
            if beyond * 3 > bytes.count { return .base64 }
            guard beyond == 0 else { return .quotedPrintable }
            var start = 0
            while start < bytes.count {
                let end = bytes[start...].firstIndex(of: 0x0a) ?? bytes.count
                let line = bytes[start..<end]
                controls -= 2  // its own end
                // "From ", a single dot, a possible boundary, and blanks at the end, which servers strip.
                if let first = line.first, first == 0x2e || first == 0x46 || first == 0x2d { return .quotedPrintable }
                if let last = line.dropLast().last, last == 0x20 || last == 0x09 { return .quotedPrintable }
                if line.count > 79 { return .quotedPrintable }
                start = end + 1
            }
            // The other control characters: tabs, or worse.
            let isRisky = controls > 0 && bytes.contains { $0 < 0x20 && $0 != 0x0d && $0 != 0x0a && $0 != 0x09 }
            return isRisky ? .quotedPrintable : .sevenBit
        }
    }

    func encode(_ bytes: [UInt8]) -> [UInt8] {
        switch self {
        case .sevenBit: return bytes
        case .quotedPrintable: return Self.quotedPrintable(bytes)
        case .base64:
            var encoder = Base64(width: 76)
            return encoder.add(bytes[...]) + encoder.end()
        }
    }

    private static func quotedPrintable(_ bytes: [UInt8]) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count + bytes.count / 8)
        var column = 0
        var index = 0
        func isEnd(_ at: Int) -> Bool { at + 1 < bytes.count && bytes[at] == 0x0d && bytes[at + 1] == 0x0a }
        while index < bytes.count {
            if isEnd(index) {
                out += [0x0d, 0x0a]
                column = 0
                index += 2
                continue
            }
            let byte = bytes[index]
            let isLast = isEnd(index + 1)
            let isPlain =
                ((0x21...0x7e).contains(byte) && byte != UInt8(ascii: "=")
                    && !(column == 0 && (byte == UInt8(ascii: ".") || byte == UInt8(ascii: "F"))))
                || ((byte == 0x20 || byte == 0x09) && !isLast)
            let size = isPlain ? 1 : 3
            if column + size > (isLast ? 76 : 75) {
                out += [UInt8(ascii: "="), 0x0d, 0x0a]
                column = 0
                continue  // a character that is plain within a line may need an escape at its start
            }
            if isPlain {
                out.append(byte)
            } else {
                out.append(UInt8(ascii: "="))
                Hexadecimal.appendUpper(byte, to: &out)
            }
            column += size
            index += 1
        }
        return out
    }
}
