/// A template as a flat list of steps over its own source.
struct Program: Sendable {
    enum Step: Sendable {
        case text(Int, Int, startsLine: Bool)
        /// A line begins with a tag.
        case lineStart
        case value(Int, Escape)
        /// Up to, not including, `end`; the raw source is for lambdas.
        case section(Int, end: Int, raw: Range<Int>, delimiters: Int)
        case inverted(Int, end: Int)
        case partial(Int)
        case parent(Int, end: Int)
        case block(Int, end: Int)
    }

    /// Without parts it is the implicit iterator.
    struct Path: Sendable, Hashable {
        var parts: [String]
        /// Where it is first used, for messages.
        var place: Int

        var text: String { parts.isEmpty ? "." : parts.joined(separator: ".") }

        static func == (left: Path, right: Path) -> Bool { left.parts == right.parts }
        func hash(into hasher: inout Hasher) { hasher.combine(parts) }
    }

    /// A call of another template.
    struct Call: Sendable {
        var name: String
        /// The path of a dynamic name.
        var path: Int?
        var indent: Range<Int>
        var blocks: [Int] = []
        var place: Int
    }

    struct Block: Sendable {
        var name: String
        var body: Range<Int>
        var standsAlone: Bool
        var lead: Range<Int>
        /// The white space before the first line of its content, if that has its own line.
        var indent: Range<Int>?
    }

    let source: [UInt8]
    var steps: [Step] = []
    private(set) var paths: [Path] = []
    private(set) var calls: [Call] = []
    private(set) var blocks: [Block] = []
    let delimiters: [Delimiters]
    /// The place of each step in the source.
    private(set) var places: [Int] = []
    private var known: [Path: Int] = [:]

    init(_ source: [UInt8], delimiters: Delimiters = .standard, limits: Limits) throws(TemplateError) {
        guard source.count <= limits.source else {
            throw TemplateError(.limit, "the template has more than \(limits.source) bytes")
        }
        let found = try Tags(source, delimiters: delimiters)
        self.source = source
        self.delimiters = found.delimiters
        try compile(found.tags, limits: limits)
        known = [:]
    }

    private mutating func compile(_ tags: [Tag], limits: Limits) throws(TemplateError) {
        var open: [(tag: Tag, step: Int, item: Int)] = []
        var at = 0
        for tag in tags {
            emitText(at..<tag.range.lowerBound)
            at = tag.range.upperBound
            if !tag.standsAlone, startsLine(tag.range.lowerBound) { emit(.lineStart, tag) }
            switch tag.kind {
            case .comment, .delimiters: break
            case .escaped: emit(.value(path(tag), .plain), tag)
            case .raw: emit(.value(path(tag), .none), tag)
            case .partial:
                calls.append(call(tag))
                emit(.partial(calls.count - 1), tag)
            case .section, .inverted:
                open.append((tag, steps.count, path(tag)))
                emit(.inverted(0, end: 0), tag)
            case .parent:
                calls.append(call(tag))
                open.append((tag, steps.count, calls.count - 1))
                emit(.parent(calls.count - 1, end: 0), tag)
            case .block:
                blocks.append(block(tag, closedBy: tag.partner.map { tags[$0] } ?? tag))
                if let outer = open.last, outer.tag.kind == .parent {
                    calls[outer.item].blocks.append(blocks.count - 1)
                }
                open.append((tag, steps.count, blocks.count - 1))
                emit(.block(blocks.count - 1, end: 0), tag)
            case .close:
                guard let opening = open.popLast() else { continue }  // the tags are paired
                close(opening, with: tag)
            }
            guard open.count <= limits.depth else {
                throw TemplateError(
                    .limit, "sections are nested more than \(limits.depth) deep",
                    line: SourcePosition(source, tag.range.lowerBound).line)
            }
        }
        emitText(at..<source.count)
    }

    private mutating func close(_ opening: (tag: Tag, step: Int, item: Int), with tag: Tag) {
        let end = steps.count
        switch opening.tag.kind {
        case .section:
            let raw = opening.tag.range.upperBound..<max(tag.range.lowerBound, opening.tag.range.upperBound)
            steps[opening.step] = .section(opening.item, end: end, raw: raw, delimiters: opening.tag.delimiters)
        case .inverted: steps[opening.step] = .inverted(opening.item, end: end)
        case .parent: steps[opening.step] = .parent(opening.item, end: end)
        case .block:
            steps[opening.step] = .block(opening.item, end: end)
            blocks[opening.item].body = (opening.step + 1)..<end
        case .escaped, .raw, .close, .comment, .partial, .delimiters: break
        }
    }

    private mutating func emit(_ step: Step, _ tag: Tag) {
        steps.append(step)
        places.append(tag.range.lowerBound)
    }

    private mutating func emitText(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        steps.append(.text(range.lowerBound, range.upperBound, startsLine: startsLine(range.lowerBound)))
        places.append(range.lowerBound)
    }

    private func startsLine(_ place: Int) -> Bool { place == 0 || source[place - 1] == 0x0A }

    private mutating func path(_ tag: Tag) -> Int {
        let name = source[tag.name]
        let parts =
            name.elementsEqual([UInt8(ascii: ".")])
            ? []
            : name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map {
                String(decoding: $0, as: UTF8.self)
            }
        let path = Path(parts: parts, place: tag.name.lowerBound)
        if let index = known[path] { return index }
        paths.append(path)
        known[path] = paths.count - 1
        return paths.count - 1
    }

    private mutating func call(_ tag: Tag) -> Call {
        let indent = tag.standsAlone ? tag.lead ?? 0..<0 : 0..<0
        return Call(
            name: String(decoding: source[tag.name], as: UTF8.self), path: tag.isDynamic ? path(tag) : nil,
            indent: indent, place: tag.range.lowerBound)
    }

    private func block(_ tag: Tag, closedBy close: Tag) -> Block {
        let body = tag.range.upperBound..<max(close.range.lowerBound, tag.range.upperBound)
        var indent: Range<Int>?
        if tag.standsAlone, !body.isEmpty {
            let end = source[body].firstIndex { $0 != 0x20 && $0 != 0x09 } ?? body.upperBound
            indent = body.lowerBound..<end
        }
        return Block(
            name: String(decoding: source[tag.name], as: UTF8.self), body: 0..<0, standsAlone: tag.standsAlone,
            lead: tag.lead ?? 0..<0, indent: indent)
    }
}
