package import MillraceQueues

/// The failures that the next beat tells. Bounded: beyond `most` groups errors share one by their plain words alone, and beyond as many of those the
/// errors of a queue and kind share one group without an error.
package struct FailureTallies: Sendable {
    package static let most = 100

    private struct Key: Hashable {
        let queue: Int32
        let kind: Int32
        let likeness: String?
    }

    private var groups: [Key: FailureTally] = [:]
    private var own = 0
    private var wide = 0
    /// Of the last error: mostly the next is the same.
    private var last: (error: String, likeness: String) = ("", "")

    package init() {}

    package var isEmpty: Bool { groups.isEmpty }

    package mutating func add(_ end: Ended) {
        guard end.outcome == .dead || end.outcome == .retried, let error = end.error else { return }
        if error != last.error { last = (error, Self.likeness(error)) }
        let key = place(queue: end.job.lane.queue, kind: end.job.kind, error: error, likeness: last.likeness)
        groups[key, default: FailureTally(queue: key.queue, kind: key.kind, error: key.likeness.map { _ in error })]
            .add(job: end.job.id, isDead: end.outcome == .dead)
    }

    /// What a beat could not tell, back among what has failed since.
    package mutating func putBack(_ earlier: [FailureTally]) {
        for tally in earlier {
            let key = place(
                queue: tally.queue, kind: tally.kind, error: tally.error, likeness: tally.error.map(Self.likeness))
            let mine = FailureTally(
                queue: tally.queue, kind: tally.kind, error: key.likeness.flatMap { _ in tally.error })
            groups[key, default: mine].add(earlier: tally)
        }
    }

    package mutating func take() -> [FailureTally] {
        defer { self = FailureTallies() }
        return Array(groups.values)
    }

    private mutating func place(queue: Int32, kind: Int32, error: String?, likeness: String?) -> Key {
        let key = Key(queue: queue, kind: kind, likeness: likeness)
        guard let error, groups[key] == nil else { return key }
        if own < Self.most {
            own += 1
            return key
        }
        let words = Key(queue: queue, kind: kind, likeness: "words: " + Self.words(error))
        if groups[words] != nil { return words }
        guard wide < Self.most else { return Key(queue: queue, kind: kind, likeness: nil) }
        wide += 1
        return words
    }

    /// The plain words of an error's first line: without what is quoted, and without identifiers, numbers, paths and names of things.
    static func words(_ error: String) -> String {
        var words: [Substring] = []
        var quote: Character?
        for token in error.prefix(1000).prefix(while: { !$0.isNewline }).split(separator: " ") {
            if let open = quote {
                if token.contains(open) { quote = nil }
                continue
            }
            if let first = token.first, "\"'`".contains(first) {
                if !token.dropFirst().contains(first) { quote = first }
                continue
            }
            var word = token
            while let last = word.last, ".,;:!?)".contains(last) { word.removeLast() }
            while let first = word.first, "([".contains(first) { word.removeFirst() }
            let rest = word.dropFirst()
            let isPlain =
                word.allSatisfy { $0.isASCII && $0.isLetter }
                && (rest.allSatisfy(\.isLowercase) || rest.allSatisfy(\.isUppercase))
            if isPlain, word.count < 20 { words.append(word) }
        }
        return words.joined(separator: " ")
    }

    /// What two errors of one group have in common, or a little more: the first line with # for numbers, UUIDs and long hexadecimal
    /// numbers, and without mail addresses. `millrace.failure_gist` has the last word.
    static func likeness(_ error: String) -> String {
        var line = Likeness(bytes: error.utf8.prefix(2000).prefix { $0 != UInt8(ascii: "\n") }.map { $0 })
        let text = String(decoding: line.reduced().prefix(480), as: UTF8.self)
        let attempt = "attempt # of #: "
        return text.hasPrefix(attempt) ? String(text.dropFirst(attempt.count)) : text
    }
}

/// Goes through a line once, from token to token.
private struct Likeness {
    let bytes: [UInt8]
    private var out: [UInt8] = []
    private var at = 0
    /// Where the current word, as mail addresses see it, begins in `out`.
    private var word = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func reduced() -> [UInt8] {
        while at < bytes.count {
            let byte = bytes[at]
            if byte == UInt8(ascii: "@"), out.count > word, let end = end(after: at + 1, while: Self.isOfAddress),
                end > at + 1
            {
                out.removeSubrange(word...)
                out += Array("<address>".utf8)
                at = end
                word = out.count
            } else if Self.isOfToken(byte) {
                token()
            } else {
                out.append(byte)
                at += 1
                if !Self.isOfAddress(byte) { word = out.count }
            }
        }
        return out
    }

    private mutating func token() {
        if isUUID {
            out.append(UInt8(ascii: "#"))
            at += 36
            return
        }
        let end = end(after: at, while: Self.isOfToken) ?? bytes.count
        let token = bytes[at..<end]
        if token.count >= 8, token.allSatisfy(Self.isHex), token.contains(where: Self.isDigit) {
            out.append(UInt8(ascii: "#"))
        } else {
            for byte in token {
                let shown = Self.isDigit(byte) ? UInt8(ascii: "#") : byte
                if shown != UInt8(ascii: "#") || out.last != shown { out.append(shown) }
            }
        }
        at = end
    }

    /// The text from here on begins with a UUID, and no letter follows it.
    private var isUUID: Bool {
        guard bytes.count - at >= 36, bytes.count - at == 36 || !Self.isOfToken(bytes[at + 36]) else { return false }
        return (0..<36).allSatisfy { place in
            switch place {
            case 8, 13, 18, 23: bytes[at + place] == UInt8(ascii: "-")
            default: Self.isHex(bytes[at + place])
            }
        }
    }

    private func end(after start: Int, while belongs: (UInt8) -> Bool) -> Int? {
        start < bytes.count ? bytes[start...].firstIndex { !belongs($0) } ?? bytes.count : nil
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    private static func isHex(_ byte: UInt8) -> Bool {
        isDigit(byte) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x66)
    }

    private static func isOfToken(_ byte: UInt8) -> Bool {
        isDigit(byte) || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || byte == 0x5F || byte >= 0x80
    }

    private static func isOfAddress(_ byte: UInt8) -> Bool {
        switch byte {
        case ...0x20, 0x22, 0x27, 0x28, 0x29, 0x2C, 0x3A, 0x3B, 0x3C, 0x3E, 0x40: false  // " ' ( ) , : ; < > @
        default: true
        }
    }
}
