/// One tag of a template, with its place and what else is in its line.
struct Tag {
    enum Kind {
        case escaped, raw, section, inverted, close, comment, partial, parent, block, delimiters
    }

    var kind: Kind
    /// The name in the source, without spaces.
    var name: Range<Int>
    var isDynamic = false
    /// Includes the delimiters; grows to the whole line where the tag stands alone.
    var range: Range<Int>
    /// The white space before it, if nothing else precedes it in its line.
    var lead: Range<Int>?
    var standsAlone = false
    /// For an opening tag the closing one, and vice versa.
    var partner: Int?
    /// Which of the delimiters hold inside a section.
    var delimiters = 0
}

struct Delimiters: Equatable {
    var open: [UInt8]
    var close: [UInt8]

    static let standard = Delimiters(open: Array("{{".utf8), close: Array("}}".utf8))
}

/// Finds the tags of a source, pairs them, and notes which stand alone in their lines.
struct Tags {
    let source: [UInt8]
    private(set) var tags: [Tag] = []
    private(set) var delimiters: [Delimiters]
    private var open: [Int] = []

    init(_ source: [UInt8], delimiters: Delimiters) throws(TemplateError) {
        self.source = source
        self.delimiters = [delimiters]
        try scan()
        standAlone()
    }

    private mutating func scan() throws(TemplateError) {
        var at = 0
        while let start = find(current.open, from: at) {
            at = try read(from: start)
        }
        if let last = open.last {
            throw problem(
                "the section \(text(tags[last].name)) is never closed", at: tags[last].range.lowerBound,
                hint: "close it with {{/\(text(tags[last].name))}}")
        }
    }

    private var current: Delimiters { delimiters[delimiters.count - 1] }

    /// Reads the tag that opens here; returns where it ends.
    private mutating func read(from start: Int) throws(TemplateError) -> Int {
        var at = start + current.open.count
        guard at < source.count else { throw unclosed(start) }
        var kind = Tag.Kind.escaped
        var close = current.close
        switch source[at] {
        case UInt8(ascii: "{"):
            kind = .raw
            close = [UInt8(ascii: "}")] + close
        case UInt8(ascii: "&"): kind = .raw
        case UInt8(ascii: "#"): kind = .section
        case UInt8(ascii: "^"): kind = .inverted
        case UInt8(ascii: "/"): kind = .close
        case UInt8(ascii: "!"): kind = .comment
        case UInt8(ascii: ">"): kind = .partial
        case UInt8(ascii: "<"): kind = .parent
        case UInt8(ascii: "$"): kind = .block
        case UInt8(ascii: "="):
            kind = .delimiters
            close = [UInt8(ascii: "=")] + close
        default: break
        }
        if kind != .escaped { at += 1 }
        guard let end = find(close, from: at) else { throw unclosed(start) }
        var tag = Tag(kind: kind, name: trimmed(at..<end), range: start..<(end + close.count))
        switch kind {
        case .comment: break
        case .delimiters: try change(tag)
        case .escaped, .raw, .section, .inverted, .close, .partial, .parent, .block:
            if kind == .partial || kind == .parent || kind == .close, source[tag.name].first == UInt8(ascii: "*") {
                tag.isDynamic = true
                tag.name = trimmed((tag.name.lowerBound + 1)..<tag.name.upperBound)
            }
            try check(tag)
        }
        tag.delimiters = delimiters.count - 1
        try pair(&tag)
        tags.append(tag)
        return tag.range.upperBound
    }

    private func check(_ tag: Tag) throws(TemplateError) {
        let at = tag.range.lowerBound
        guard !tag.name.isEmpty else { throw problem("a tag has no name", at: at) }
        guard !source[tag.name].contains(where: { Self.isSpace($0) || $0 == 0 }) else {
            throw problem("the name in a tag has a space in it", at: at, hint: "is a closing delimiter missing?")
        }
    }

    private mutating func pair(_ tag: inout Tag) throws(TemplateError) {
        switch tag.kind {
        case .section, .inverted, .parent, .block: open.append(tags.count)
        case .close:
            guard let opening = open.popLast() else {
                throw problem("{{/\(text(tag.name))}} closes nothing", at: tag.range.lowerBound)
            }
            guard source[tags[opening].name] == source[tag.name], tags[opening].isDynamic == tag.isDynamic else {
                throw problem(
                    "{{/\(text(tag.name))}} stands where \(text(tags[opening].name)) of line \(SourcePosition(source, tags[opening].range.lowerBound).line) should be closed",
                    at: tag.range.lowerBound, hint: "close the inner one first")
            }
            tag.partner = opening
            tags[opening].partner = tags.count
        case .escaped, .raw, .comment, .partial, .delimiters: break
        }
    }

    private mutating func change(_ tag: Tag) throws(TemplateError) {
        let parts = source[tag.name].split(whereSeparator: Self.isSpace)
        guard parts.count == 2, parts.allSatisfy({ !$0.contains(UInt8(ascii: "=")) && $0.count <= 16 }) else {
            throw problem("the new delimiters are malformed", at: tag.range.lowerBound, hint: "such as {{=<% %>=}}")
        }
        delimiters.append(Delimiters(open: Array(parts[0]), close: Array(parts[1])))
    }

    private func find(_ needle: [UInt8], from start: Int) -> Int? {
        guard source.count >= needle.count else { return nil }
        var at = start
        let last = source.count - needle.count
        while at <= last {
            if source[at] == needle[0], source[at..<(at + needle.count)].elementsEqual(needle) { return at }
            at += 1
        }
        return nil
    }

    private func trimmed(_ range: Range<Int>) -> Range<Int> {
        var (low, high) = (range.lowerBound, range.upperBound)
        while low < high, Self.isSpace(source[low]) { low += 1 }
        while low < high, Self.isSpace(source[high - 1]) { high -= 1 }
        return low..<high
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (9...13).contains(byte) }

    private func text(_ range: Range<Int>) -> String { String(decoding: source[range].prefix(64), as: UTF8.self) }

    private func unclosed(_ at: Int) -> TemplateError {
        problem("a tag is never closed", at: at, hint: "\(String(decoding: current.close, as: UTF8.self)) is missing")
    }

    private func problem(_ sentence: String, at place: Int, hint: String? = nil) -> TemplateError {
        let place = SourcePosition(source, place)
        return TemplateError(.syntax, sentence, hint: hint, line: place.line, column: place.column)
    }
}

extension Tags {
    /// A tag that is alone in its line takes the line with it. Parents and blocks may share theirs.
    private mutating func standAlone() {
        var first = 0
        while first < tags.count {
            var last = first
            while last + 1 < tags.count, isBlank(tags[last].range.upperBound..<tags[last + 1].range.lowerBound) {
                last += 1
            }
            settle(first...last)
            first = last + 1
        }
    }

    private mutating func settle(_ group: ClosedRange<Int>) {
        var start = tags[group.lowerBound].range.lowerBound
        let tagStart = start
        while start > 0, source[start - 1] == 0x20 || source[start - 1] == 0x09 { start -= 1 }
        guard start == 0 || source[start - 1] == 0x0A else { return }
        tags[group.lowerBound].lead = start..<tagStart
        guard group.count == 1 ? canStandAlone(group.lowerBound) : areFrame(group) else { return }
        var end = tags[group.upperBound].range.upperBound
        while end < source.count, source[end] == 0x20 || source[end] == 0x09 { end += 1 }
        if end < source.count, source[end] == 0x0D, end + 1 < source.count, source[end + 1] == 0x0A { end += 1 }
        guard end == source.count || source[end] == 0x0A else { return }
        if end < source.count { end += 1 }
        for index in group {
            tags[index].standsAlone = true
            let low = index == group.lowerBound ? start : tags[index].range.lowerBound
            let high = index == group.upperBound ? end : tags[index + 1].range.lowerBound
            tags[index].range = low..<high
        }
    }

    private func canStandAlone(_ index: Int) -> Bool {
        switch tags[index].kind {
        case .escaped, .raw: false
        case .section, .inverted, .close, .comment, .partial, .parent, .block, .delimiters: true
        }
    }

    private func areFrame(_ group: ClosedRange<Int>) -> Bool {
        var hasParent = false
        for index in group {
            let opening = tags[index].kind == .close ? tags[index].partner ?? index : index
            switch tags[opening].kind {
            case .parent: hasParent = true
            case .block: if let partner = tags[index].partner, group.contains(partner) { return false }
            case .escaped, .raw, .section, .inverted, .close, .comment, .partial, .delimiters: return false
            }
        }
        return hasParent
    }

    private func isBlank(_ range: Range<Int>) -> Bool {
        source[range].allSatisfy { $0 == 0x20 || $0 == 0x09 }
    }
}

/// Line and column of a byte, both from 1; columns are characters.
struct SourcePosition {
    let line: Int
    let column: Int

    init(_ source: [UInt8], _ offset: Int) {
        let before = source[..<min(offset, source.count)]
        line = before.count { $0 == 0x0A } + 1
        let start = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        column = before[start...].count { $0 & 0xC0 != 0x80 } + 1
    }
}
