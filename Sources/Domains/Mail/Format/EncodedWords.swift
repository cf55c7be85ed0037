import Encodings

/// RFC 2047: text beyond ASCII in a header.
enum EncodedWords {
    /// Encoded words of at most 75 bytes, none of which cuts a character in two. The caller joins them with folds.
    static func encode(_ text: String) -> [String] {
        let bytes = Array(text.utf8)
        // Q grows by three for each byte beyond ASCII, B by a third in all.
        let beyond = bytes.count { !isPlain($0) && $0 != 0x20 }
        let isQ = beyond * 6 < bytes.count * 2
        var words: [String] = []
        var piece: [UInt8] = []
        var size = 0
        let most = isQ ? 63 : 45
        for scalar in text.unicodeScalars {
            let more = Array(String(scalar).utf8)
            let cost = isQ ? more.reduce(0) { $0 + (isPlain($1) || $1 == 0x20 ? 1 : 3) } : more.count
            if size + cost > most {
                words.append(word(piece, isQ))
                (piece, size) = ([], 0)
            }
            piece += more
            size += cost
        }
        if !piece.isEmpty { words.append(word(piece, isQ)) }
        return words
    }

    private static func word(_ bytes: [UInt8], _ isQ: Bool) -> String {
        guard isQ else { return "=?utf-8?B?\(String(decoding: Base64.encode(bytes), as: UTF8.self))?=" }
        var text: [UInt8] = []
        for byte in bytes {
            if byte == 0x20 {
                text.append(UInt8(ascii: "_"))
            } else if isPlain(byte) {
                text.append(byte)
            } else {
                text.append(UInt8(ascii: "="))
                Hexadecimal.appendUpper(byte, to: &text)
            }
        }
        return "=?utf-8?Q?\(String(decoding: text, as: UTF8.self))?="
    }

    /// Bytes that need no escape in an encoded word, not even in a name (RFC 2047, 5 (3)).
    private static func isPlain(_ byte: UInt8) -> Bool {
        isLetterOrDigit(byte) || "!*+-/".utf8.contains(byte)
    }
}
