import Encodings

/// Writes header fields: CR LF, folded near 76 columns, ASCII only.
struct HeaderWriter {
    private(set) var bytes: [UInt8] = []

    /// Words that may stand on lines of their own.
    private mutating func write(_ name: String, words: [String]) {
        bytes += "\(name):".utf8
        var column = name.utf8.count + 1
        for (index, word) in words.enumerated() {
            if index > 0, column + 1 + word.utf8.count > 76 {
                bytes += "\r\n".utf8
                column = 0
            }
            bytes.append(0x20)
            bytes += word.utf8
            column += 1 + word.utf8.count
        }
        bytes += "\r\n".utf8
    }

    /// A value that programs read; it is folded only at its spaces.
    mutating func token(_ name: String, _ value: String) {
        write(name, words: value.split(separator: " ").map(String.init))
    }

    /// A text that people read.
    mutating func text(_ name: String, _ value: String) {
        write(
            name, words: Self.isPlain(value) ? value.split(separator: " ").map(String.init) : EncodedWords.encode(value)
        )
    }

    mutating func mailboxes(_ name: String, _ boxes: [Mailbox]) {
        var words: [String] = []
        for (index, box) in boxes.enumerated() {
            let end = index < boxes.count - 1 ? "," : ""
            guard let shown = box.name else {
                words.append(box.address + end)
                continue
            }
            words += Self.phrase(shown)
            words.append("<\(box.address)>\(end)")
        }
        write(name, words: words)
    }

    /// A value with parameters, each on a line of its own when there is no room.
    mutating func value(_ name: String, _ value: String, _ parameters: [(String, String)] = []) {
        var words = [value]
        for (key, text) in parameters {
            words[words.count - 1] += ";"
            words += Self.parameter(key, text)
        }
        write(name, words: words)
    }

    mutating func end() { bytes += "\r\n".utf8 }

    /// False where folding would lose repeated or outer spaces, where text looks like an encoded word and would be decoded, and where a
    /// long word would make a long line.
    private static func isPlain(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x20..<0x7f).contains($0) } && !text.contains("=?") && !text.contains("  ")
            && !text.hasPrefix(" ") && !text.hasSuffix(" ") && !text.isEmpty
            && text.split(separator: " ").allSatisfy { $0.utf8.count <= 200 }
    }

    static func phrase(_ name: String) -> [String] {
        guard isPlain(name) else { return EncodedWords.encode(name) }
        if name.utf8.allSatisfy({ isAtomByte($0) || $0 == 0x20 }) { return name.split(separator: " ").map(String.init) }
        return [quoted(name)]
    }

    static func quoted(_ text: String) -> String {
        "\"" + text.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : String($0) }.joined() + "\""
    }

    /// RFC 2231 for values that are not short ASCII.
    private static func parameter(_ key: String, _ text: String) -> [String] {
        if text.utf8.allSatisfy({ (0x20..<0x7f).contains($0) }), text.utf8.count <= 60, !text.contains("=?") {
            return ["\(key)=\(quoted(text))"]
        }
        var pieces = [""]
        // No character is cut in two, because some readers decode each piece separately.
        for scalar in text.unicodeScalars {
            let more = PercentEncoding.encoded(String(scalar)) {
                isLetterOrDigit($0) || "-._".utf8.contains($0)
            }
            if pieces[pieces.count - 1].utf8.count + more.utf8.count > 50 { pieces.append("") }
            pieces[pieces.count - 1] += more
        }
        guard pieces.count > 1 else { return ["\(key)*=utf-8''\(pieces[0])"] }
        return pieces.enumerated().map { index, piece in
            let end = index < pieces.count - 1 ? ";" : ""
            return index == 0 ? "\(key)*0*=utf-8''\(piece)\(end)" : "\(key)*\(index)*=\(piece)\(end)"
        }
    }
}
