/// A part of a line without a wide gap: a line of a cell, or a whole line of prose.
struct Segment {
    var words: [Word]
    var box: Box
    /// Which line it is a part of, and its place in the order of words.
    var line: Int
    var order: Int
    var size: Double

    var middle: Double { (box.top + box.bottom) / 2 }
    var center: Double { (box.left + box.right) / 2 }

    /// A gap in a line that is wider than this many letter sizes separates cells.
    static let gap = 0.7

    static func all(of lines: [PlacedLine]) -> [Segment] {
        var segments: [Segment] = []
        var order = 0
        for (index, line) in lines.enumerated() {
            // The words of a line that runs to the left are joined as they stand, and are read in their order.
            let runsLeft = TextDirections.runLeft(line.words)
            let places =
                runsLeft
                ? line.words.indices.sorted { line.words[$0].box.left < line.words[$1].box.left }
                : Array(line.words.indices)
            var groups: [[Int]] = []
            var box = Box(0, 0, 0, 0)
            for place in places {
                let next = line.words[place].box
                let space = next.left - box.right
                if groups.isEmpty || space > gap * line.size || space < -3 * line.size {
                    groups.append([place])
                    box = next
                } else {
                    groups[groups.count - 1].append(place)
                    box = box.union(next)
                }
            }
            if runsLeft { groups = groups.map { $0.sorted() }.sorted { $0[0] < $1[0] } }
            for group in groups {
                let words = group.map { line.words[$0] }
                let whole = words.dropFirst().reduce(words[0].box) { $0.union($1.box) }
                segments.append(
                    Segment(words: words, box: whole, line: index, order: order + group[0], size: line.size))
            }
            order += line.words.count
        }
        return segments
    }
}

/// Segments at the same height, from left to right.
struct SegmentRow {
    var segments: [Segment]
    var top: Double
    var bottom: Double
    private var first: Segment

    init(_ segment: Segment) {
        segments = [segment]
        first = segment
        (top, bottom) = (segment.box.top, segment.box.bottom)
    }

    var left: Double { segments.reduce(.infinity) { min($0, $1.box.left) } }
    var right: Double { segments.reduce(-.infinity) { max($0, $1.box.right) } }
    var height: Double { bottom - top }

    private mutating func add(_ segment: Segment) -> Bool {
        guard segments.count < 100,
            abs(segment.middle - first.middle) < 0.45 * min(first.box.height, segment.box.height),
            segments.allSatisfy({ $0.box.right <= segment.box.left + 1 || segment.box.right <= $0.box.left + 1 })
        else { return false }
        segments.append(segment)
        (top, bottom) = (min(top, segment.box.top), max(bottom, segment.box.bottom))
        return true
    }

    static func all(of segments: [Segment]) -> [SegmentRow] {
        var rows: [SegmentRow] = []
        for segment in segments.sorted(by: { ($0.middle, $0.box.left) < ($1.middle, $1.box.left) }) {
            if rows.isEmpty || !rows[rows.count - 1].add(segment) { rows.append(SegmentRow(segment)) }
        }
        for index in rows.indices { rows[index].segments.sort { $0.box.left < $1.box.left } }
        return rows
    }
}

/// Joins the words of lines.
enum LineJoiner {
    /// Words that are written with a hyphen elsewhere on the page keep theirs at the end of a line.
    static func text(_ lines: [[Word]], hyphenated: Set<String> = []) -> String {
        var text = ""
        for line in lines {
            let next = line.map(\.text).joined(separator: " ")
            guard !next.isEmpty else { continue }
            if text.isEmpty {
                text = next
            } else if let stem = stem(text, before: next, hyphenated) {
                text = stem + next
            } else {
                text += " " + next
            }
        }
        return text
    }

    /// The text without its last hyphen, if the word goes on in the next line.
    static func stem(_ text: String, before next: String, _ hyphenated: Set<String>) -> String? {
        guard let last = text.last, let first = next.first else { return nil }
        if last == "\u{ad}" { return String(text.dropLast()) }
        guard last == "-" || last == "\u{2010}", first.isLowercase, text.dropLast().last?.isLetter == true else {
            return nil
        }
        let head = text.split(separator: " ").last ?? ""
        let tail = next.prefix { $0.isLetter || $0 == "-" || $0 == "\u{2010}" }
        return hyphenated.contains((head + tail).lowercased()) ? text : String(text.dropLast())
    }

    static func hyphenated(in lines: [PlacedLine]) -> Set<String> {
        var found: Set<String> = []
        for word in lines.lazy.flatMap(\.words) where word.text.contains(where: { $0 == "-" || $0 == "\u{2010}" }) {
            let plain = word.text.trimmingMarks
            if plain.last != "-" { found.insert(plain.lowercased()) }
        }
        return found
    }
}

extension String {
    /// Without marks before and behind.
    var trimmingMarks: String {
        let kept = drop { !$0.isLetter && !$0.isNumber }
        let end = kept.lastIndex { $0.isLetter || $0.isNumber || $0 == "-" }
        return end.map { String(kept[...$0]) } ?? ""
    }
}
