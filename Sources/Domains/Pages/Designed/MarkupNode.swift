/// An element of the small HTML that pages are made from, or a text.
package indirect enum MarkupNode: Sendable, Equatable {
    case element(MarkupElement)
    case text(String, line: Int)
}

package struct MarkupElement: Sendable, Equatable {
    package var name: String
    package var attributes: [String: String] = [:]
    package var children: [MarkupNode] = []
    package var line: Int

    package init(name: String, line: Int) {
        self.name = name
        self.line = line
    }

    func refusal(_ complaint: String) -> DocumentRefusal {
        DocumentRefusal(.unsupported, "line \(line): \(complaint)")
    }
}

/// Reads the small HTML into elements. Each element that is opened is closed by name: nobody guesses where a paragraph ends.
package struct MarkupReader {
    private static let void: Set<String> = [
        "br", "hr", "img", "meta", "page-break", "page-number", "page-count",
    ]
    private static let deepest = 40

    private let bytes: [UInt8]
    private var at = 0
    private var line = 1
    private var open: [MarkupElement]
    private var text: [UInt8] = []
    private var textLine = 1

    private init(_ html: String) {
        bytes = Array(html.utf8)
        open = [MarkupElement(name: "", line: 1)]
    }

    package static func read(_ html: String) throws(DocumentRefusal) -> [MarkupNode] {
        var reader = MarkupReader(html)
        try reader.run()
        return reader.open[0].children
    }

    private func problem(_ complaint: String) -> DocumentRefusal {
        DocumentRefusal(.unsupported, "line \(line): \(complaint)")
    }

    private mutating func run() throws(DocumentRefusal) {
        while at < bytes.count {
            if bytes[at] == UInt8(ascii: "<"), at + 1 < bytes.count, Self.opensTag(bytes[at + 1]) {
                endText()
                try tag()
            } else if bytes[at] == UInt8(ascii: "&") {
                if text.isEmpty { textLine = line }
                text += try reference()
            } else {
                if text.isEmpty { textLine = line }
                text.append(take())
            }
        }
        endText()
        if open.count > 1 { throw open[open.count - 1].refusal("<\(open[open.count - 1].name)> is not closed") }
    }

    private mutating func take() -> UInt8 {
        defer { at += 1 }
        if bytes[at] == 10 { line += 1 }
        return bytes[at]
    }

    private static func opensTag(_ byte: UInt8) -> Bool {
        isLetter(byte) || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "!") || byte == UInt8(ascii: "?")
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 97 < 26 }
    private static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || byte &- 9 < 5 }
    private static func isName(_ byte: UInt8) -> Bool {
        isLetter(byte) || byte &- 48 < 10 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ":")
    }

    private mutating func endText() {
        guard !text.isEmpty else { return }
        open[open.count - 1].children.append(.text(String(decoding: text, as: UTF8.self), line: textLine))
        text = []
    }

    private mutating func tag() throws(DocumentRefusal) {
        at += 1
        switch bytes[at] {
        case UInt8(ascii: "!"), UInt8(ascii: "?"): try skipDeclaration()
        case UInt8(ascii: "/"):
            at += 1
            let name = word()
            skipSpace()
            guard at < bytes.count, bytes[at] == UInt8(ascii: ">") else { throw problem("</\(name)> has no >") }
            at += 1
            try close(name)
        default: try openElement()
        }
    }

    /// A comment, or what says that this is HTML.
    private mutating func skipDeclaration() throws(DocumentRefusal) {
        let began = line
        let isComment = bytes[at...].starts(with: "!--".utf8)
        let end = Array((isComment ? "-->" : ">").utf8)
        at += isComment ? 3 : 1
        while at < bytes.count {
            if bytes[at...].starts(with: end) {
                at += end.count
                return
            }
            _ = take()
        }
        throw DocumentRefusal(.unsupported, "line \(began): a comment is not closed")
    }

    private mutating func close(_ name: String) throws(DocumentRefusal) {
        guard !Self.void.contains(name) else { throw problem("<\(name)> has no end tag") }
        guard open.count > 1, let last = open.last, last.name == name else {
            let within =
                open.count > 1
                ? "within <\(open[open.count - 1].name)> of line \(open[open.count - 1].line)" : "and nothing is open"
            throw problem("</\(name)> closes what is not open, \(within)")
        }
        open.removeLast()
        open[open.count - 1].children.append(.element(last))
    }

    private mutating func openElement() throws(DocumentRefusal) {
        var element = MarkupElement(name: "", line: line)
        element.name = word()
        var closes = Self.void.contains(element.name)
        while true {
            skipSpace()
            guard at < bytes.count else { throw element.refusal("<\(element.name)> has no >") }
            if bytes[at] == UInt8(ascii: ">") {
                at += 1
                break
            }
            if bytes[at] == UInt8(ascii: "/") {
                at += 1
                guard at < bytes.count, bytes[at] == UInt8(ascii: ">") else { continue }
                closes = true
                continue
            }
            guard Self.isLetter(bytes[at]) else { throw element.refusal("<\(element.name)> has a malformed attribute") }
            let name = word()
            skipSpace()
            var value: [UInt8] = []
            if at < bytes.count, bytes[at] == UInt8(ascii: "=") {
                at += 1
                skipSpace()
                value = try attributeValue(of: element)
            }
            guard element.attributes.updateValue(String(decoding: value, as: UTF8.self), forKey: name) == nil else {
                throw element.refusal("<\(element.name)> has \(name) twice")
            }
        }
        guard !closes else {
            open[open.count - 1].children.append(.element(element))
            return
        }
        guard open.count < Self.deepest else {
            throw element.refusal("elements are nested deeper than \(Self.deepest)")
        }
        open.append(element)
    }

    private mutating func attributeValue(of element: MarkupElement) throws(DocumentRefusal) -> [UInt8] {
        var value: [UInt8] = []
        let quote = at < bytes.count && (bytes[at] == 0x22 || bytes[at] == 0x27) ? take() : nil
        while at < bytes.count {
            if let quote {
                if bytes[at] == quote {
                    at += 1
                    return value
                }
            } else if Self.isSpace(bytes[at]) || bytes[at] == UInt8(ascii: ">") {
                return value
            }
            if bytes[at] == UInt8(ascii: "&") { value += try reference() } else { value.append(take()) }
        }
        throw element.refusal("an attribute of <\(element.name)> is not closed")
    }

    /// A name, in small letters; no more of it than fits into a sentence.
    private mutating func word() -> String {
        var name: [UInt8] = []
        while at < bytes.count, Self.isName(bytes[at]) {
            let byte = take()
            if name.count < 32 { name.append(byte &- 65 < 26 ? byte | 0x20 : byte) }
        }
        return String(decoding: name, as: UTF8.self)
    }

    private mutating func skipSpace() {
        while at < bytes.count, Self.isSpace(bytes[at]) { _ = take() }
    }

    private static let named: [String: String] = [
        "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": "\u{a0}", "shy": "\u{ad}", "ndash": "–",
        "mdash": "—", "hellip": "…", "bull": "•", "middot": "·", "copy": "©", "reg": "®", "trade": "™", "euro": "€",
        "pound": "£", "yen": "¥", "cent": "¢", "sect": "§", "deg": "°", "plusmn": "±", "times": "×", "frac12": "½",
        "lsquo": "‘", "rsquo": "’", "ldquo": "“", "rdquo": "”", "laquo": "«", "raquo": "»", "rarr": "→", "larr": "←",
        "lrm": "\u{200e}", "rlm": "\u{200f}", "ensp": "\u{2002}", "emsp": "\u{2003}", "thinsp": "\u{2009}",
    ]

    private mutating func reference() throws(DocumentRefusal) -> [UInt8] {
        let rest = bytes[(at + 1)...].prefix(12)
        guard let end = rest.firstIndex(of: UInt8(ascii: ";")), end > at + 1 else { return [take()] }
        let name = String(decoding: bytes[(at + 1)..<end], as: UTF8.self)
        let text: String
        if let known = Self.named[name] {
            text = known
        } else if name.hasPrefix("#") {
            let digits = name.dropFirst()
            let isHex = digits.first == "x" || digits.first == "X"
            guard let number = UInt32(isHex ? digits.dropFirst() : digits, radix: isHex ? 16 : 10), number > 0,
                let scalar = Unicode.Scalar(number)
            else { throw problem("&\(name); is not a character") }
            text = String(Character(scalar))
        } else if name.utf8.allSatisfy({ Self.isLetter($0) || $0 &- 48 < 10 }) {
            throw problem("&\(name); is not known: write the character itself, or &#…;")
        } else {
            return [take()]
        }
        at = end + 1
        return Array(text.utf8)
    }
}
