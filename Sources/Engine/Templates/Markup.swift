/// Walks through HTML byte by byte and knows at each place what a value would mean there.
struct Markup: Equatable {
    enum Attribute: Equatable {
        case plain, address, style
        /// Not known to be visible text: no value can be made safe there.
        case closed
    }
    enum State: Equatable {
        case text
        case tagOpen
        case tagName
        case beforeAttribute
        case attributeName
        case afterAttributeName
        case beforeValue
        case value(quote: UInt8?)
        /// After `<!`: the number of dashes so far.
        case markupOpen(Int)
        /// In a comment: the number of dashes of its end so far.
        case comment(Int)
        case bogus
        /// Up to the end tag of the element's name, of which this many bytes were seen.
        case raw(Int)
    }
    /// What the check of a template reports to its author.
    enum Notice: Equatable {
        case element(String)
        case handler(String)
        case remote(String)
        case address(String)
        case imageWithoutText
    }

    var state = State.text
    private(set) var element: [UInt8] = []
    private(set) var isClosing = false
    private(set) var attribute: [UInt8] = []
    private(set) var kind = Attribute.plain
    private var link = LinkPlace.start
    private var style = StylePlace()
    /// Open elements of other languages: their attributes and their text have other meanings.
    private var foreign = 0
    private var value: [UInt8] = []
    private var hasText = false
    private(set) var notices: [(Notice, at: Int)] = []

    static func == (left: Markup, right: Markup) -> Bool {
        left.state == right.state && left.element == right.element && left.kind == right.kind
            && left.link == right.link && left.style == right.style && left.foreign == right.foreign
            && (left.attribute == right.attribute || left.state == .text || left.state == .beforeAttribute)
    }

    private static let shut: Set<String> = [
        "script", "xmp", "iframe", "noembed", "noframes", "plaintext", "noscript", "template",
    ]
    private static let raw: Set<String> = shut.union(["style", "title", "textarea"])
    private static let addresses: Set<String> = [
        "href", "src", "action", "formaction", "background", "cite", "poster", "longdesc", "xlink:href", "data",
        "manifest", "icon", "profile", "classid", "codebase", "usemap", "dynsrc", "lowsrc",
    ]
    /// Attributes with links that may hold a value.
    private static let links: Set<String> = ["href", "src", "background", "cite", "poster", "longdesc"]
    /// Attributes with visible text or measures. An attribute that is not listed here takes no value.
    private static let texts: Set<String> = [
        "title", "alt", "summary", "abbr", "label", "placeholder", "value", "datetime", "id", "class", "lang", "dir",
        "role", "align",
        "valign", "width", "height", "border", "cellpadding", "cellspacing", "colspan", "rowspan", "headers", "scope",
        "start",
        "span", "hspace", "vspace", "bgcolor", "bordercolor", "color", "face", "size", "text", "link", "vlink", "alink",
    ]
    /// Elements whose attributes decide what they do.
    private static let closedElements: Set<String> = [
        "script", "iframe", "frame", "object", "embed", "applet", "param", "base", "meta", "link", "svg", "math",
    ]

    private var name: String { String(decoding: element, as: UTF8.self) }
    private var isRaw: Bool { !isClosing && Self.raw.contains(name) }

    /// - Parameter offset: the place of the bytes in the source.
    mutating func take(_ bytes: ArraySlice<UInt8>, at offset: Int) {
        for (index, byte) in bytes.enumerated() { take(byte, at: offset + index) }
    }

    private mutating func take(_ byte: UInt8, at place: Int) {
        switch state {
        case .text: if byte == 0x3C { state = .tagOpen }
        case .tagOpen: openTag(byte)
        case .tagName:
            if Self.isSpace(byte) || byte == 0x2F { state = .beforeAttribute; noteElement(place); return }
            if byte == 0x3E { noteElement(place); return endTag(place) }
            element.append(Self.lower(byte))
        case .beforeAttribute:
            if Self.isSpace(byte) || byte == 0x2F { return }
            if byte == 0x3E { return endTag(place) }
            attribute = [Self.lower(byte)]
            state = .attributeName
        case .attributeName, .afterAttributeName: inName(byte, at: place)
        case .beforeValue:
            if Self.isSpace(byte) { return }
            if byte == 0x3E { return endTag(place) }
            beginValue(quote: byte == 0x22 || byte == 0x27 ? byte : nil, at: place)
            if byte != 0x22, byte != 0x27 { inValue(byte) }
        case .value(let quote): takeValue(byte, quote: quote, at: place)
        case .markupOpen(let dashes):
            if byte == 0x2D {
                state = dashes == 1 ? .comment(2) : .markupOpen(1)
            } else {
                state = byte == 0x3E ? .text : .bogus
            }
        case .comment(let dashes):
            if byte == 0x3E, dashes >= 2 {
                state = .text
            } else {
                state = .comment(byte == 0x2D ? min(dashes + 1, 2) : 0)
            }
        case .bogus: if byte == 0x3E { state = .text }
        case .raw(let seen): takeRaw(byte, seen: seen)
        }
    }

    private mutating func openTag(_ byte: UInt8) {
        switch byte {
        case 0x21: state = .markupOpen(0)
        case 0x3F: state = .bogus
        case 0x2F where !isClosing || element != [0x2F]:
            isClosing = true
            element = [0x2F]  // marks that the name is still to come
        case _ where (byte | 0x20) &- 97 < 26:
            isClosing = element == [0x2F] && isClosing
            element = [Self.lower(byte)]
            state = .tagName
            hasText = false
        case 0x3C: break
        default:
            state = isClosing && element == [0x2F] ? .bogus : .text
            if byte == 0x3E { state = .text }
        }
        if state == .text || state == .bogus || state == .markupOpen(0) {
            element = []
            isClosing = false
        }
    }

    private mutating func inName(_ byte: UInt8, at place: Int) {
        switch byte {
        case 0x3D: state = .beforeValue
        case 0x3E:
            classify(at: place)
            endTag(place)
        case 0x2F:
            classify(at: place)
            state = .beforeAttribute
        case _ where Self.isSpace(byte): state = .afterAttributeName
        default:
            if state == .afterAttributeName {
                classify(at: place)
                attribute = []
                state = .attributeName
            }
            attribute.append(Self.lower(byte))
        }
    }

    /// A value begins, either text or a variable.
    mutating func beginValue(quote: UInt8?, at place: Int) {
        classify(at: place)
        state = .value(quote: quote)
        link = .start
        style = StylePlace()
        value = []
    }

    private mutating func classify(at place: Int) {
        let name = String(decoding: attribute, as: UTF8.self)
        kind =
            if name == "style" { .style } else if Self.addresses.contains(name) {
                .address
            } else if Self.texts.contains(name)
                || name.hasPrefix("aria-") || name.hasPrefix("data-")
            { .plain } else { .closed }
        if name.hasPrefix("on") { notices.append((.handler(name), place)) }
        if name == "alt" { hasText = true }
    }

    private mutating func inValue(_ byte: UInt8) {
        if value.count < 64 { value.append(byte) }
        switch kind {
        case .address: link.take(byte)
        case .style: style.take(byte)
        case .plain, .closed: break
        }
    }

    private mutating func takeValue(_ byte: UInt8, quote: UInt8?, at place: Int) {
        guard quote.map({ byte == $0 }) ?? (Self.isSpace(byte) || byte == 0x3E) else { return inValue(byte) }
        noteValue(place)
        state = .beforeAttribute
        attribute = []
        link = .start
        style = StylePlace()
        if quote == nil, byte == 0x3E { endTag(place) }
    }

    private mutating func noteValue(_ place: Int) {
        guard kind == .address else { return }
        let text = String(decoding: value, as: UTF8.self)
        if Address.isForbidden(value) { notices.append((.address(text), place)) }
        let lower = text.lowercased()
        let attribute = String(decoding: attribute, as: UTF8.self)
        if attribute != "href" || name == "link" {
            if lower.hasPrefix("http:") || lower.hasPrefix("https:") || lower.hasPrefix("//") {
                notices.append((.remote(name), place))
            }
        }
    }

    private mutating func noteElement(_ place: Int) {
        if !isClosing { notices.append((.element(name), place)) }
    }

    private mutating func endTag(_ place: Int) {
        if name == "img", !isClosing, !hasText { notices.append((.imageWithoutText, place)) }
        if name == "svg" || name == "math" { foreign = isClosing ? max(foreign - 1, 0) : foreign + 1 }
        style = StylePlace()
        state = isRaw ? .raw(0) : .text
        if state == .text {
            element = []
            isClosing = false
        }
        attribute = []
    }

    private mutating func takeRaw(_ byte: UInt8, seen: Int) {
        let end = [0x3C, 0x2F] + element
        if seen == end.count {
            if Self.isSpace(byte) || byte == 0x2F || byte == 0x3E {
                isClosing = true
                state = .beforeAttribute
                if byte == 0x3E { endTag(0) }
                return
            }
            state = .raw(0)
            return takeRaw(byte, seen: 0)
        }
        if name == "style" { style.take(byte) }
        state = .raw(Self.lower(byte) == end[seen] ? seen + 1 : byte == 0x3C ? 1 : 0)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (9...13).contains(byte) }
    private static func lower(_ byte: UInt8) -> UInt8 { byte &- 65 < 26 ? byte | 0x20 : byte }
}

extension Markup {
    /// How a value must be escaped here; nil and a reason where no value is allowed.
    mutating func escape(at place: Int) -> (Escape?, why: String) {
        if foreign > 0 { return (nil, "inside <svg> or <math>") }
        switch state {
        case .text: return (.markup, "")
        case .raw(let seen):
            guard seen == 0 else { return (nil, "in the middle of a tag") }
            if name == "style" { return style.takesValue ? (.style, "") : (nil, Self.withinStyle) }
            if name == "title" || name == "textarea" { return (.markup, "") }
            return (nil, "inside <\(name)>")
        case .tagOpen, .tagName: return (nil, "as the name of a tag")
        case .beforeAttribute, .attributeName, .afterAttributeName: return (nil, "as the name of an attribute")
        case .beforeValue:
            beginValue(quote: nil, at: place)
            return escapeInValue(quote: nil)
        case .value(let quote): return escapeInValue(quote: quote)
        case .markupOpen, .comment, .bogus: return (nil, "inside a comment")
        }
    }

    private static let withinStyle = "in brackets, quotes or a comment of a style"

    private mutating func escapeInValue(quote: UInt8?) -> (Escape?, why: String) {
        let name = String(decoding: attribute, as: UTF8.self)
        // An empty value would swallow the next attribute, and a space would end the value.
        guard quote != nil else { return (nil, "in an attribute without quotes") }
        guard !Self.closedElements.contains(self.name) else { return (nil, "in an attribute of <\(self.name)>") }
        switch kind {
        case .plain: return (.markup, "")
        case .style: return style.takesValue ? (.style, "") : (nil, Self.withinStyle)
        case .closed: return (nil, "in the attribute \(name)")
        case .address:
            guard Self.links.contains(name) else { return (nil, "in the attribute \(name)") }
            if Address.isForbidden(value) { return (nil, "in an address that runs code") }
            let found = link.takeValue()
            return (found, found == nil ? "in an address whose scheme and host are not certain before it" : "")
        }
    }

    /// The state after a section that may be left out; nil when the text after it would have two meanings.
    func joined(with other: Markup) -> Markup? {
        if self == other { return self }
        var (left, right) = (self, other)
        if case .value = state, kind == .address {
            left.link = link.joined(with: other.link)
            right.link = left.link
        }
        return left == right ? left : nil
    }
}
