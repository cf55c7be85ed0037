/// Cuts the lines of a page that are in no table into headings, paragraphs and lists.
struct ParagraphFinder {
    private(set) var elements: [PageStructure.Element] = []
    private let hyphenated: Set<String>
    /// The usual size of letters.
    private var body = 0.0

    private enum Piece {
        case line(PlacedLine)
        case table(TableFinder.Found)
    }

    init(_ lines: [PlacedLine], _ tables: [TableFinder.Found]) {
        hyphenated = LineJoiner.hyphenated(in: lines)
        let pieces = Self.pieces(lines, tables)
        body = Self.usualSize(lines)
        var run: [PlacedLine] = []
        for piece in pieces {
            switch piece {
            case .line(let line): run.append(line)
            case .table(let found):
                addText(run)
                run = []
                elements.append(Self.element(found))
            }
        }
        addText(run)
    }

    /// Each table stands where the first of its words stands in the order of the page.
    private static func pieces(_ lines: [PlacedLine], _ tables: [TableFinder.Found]) -> [Piece] {
        var tableOf: [Int: Int] = [:]
        for (index, table) in tables.enumerated() {
            for word in table.words { tableOf[word] = index }
        }
        var pieces: [Piece] = []
        var isPlaced = Set<Int>()
        var order = 0
        for line in lines {
            var kept: [Word] = []
            func keep() {
                guard !kept.isEmpty else { return }
                let part = kept.count == line.words.count ? line : line.keeping(kept)
                if case .line(let last) = pieces.last, last.continues(on: part) {
                    var joined = last
                    joined.words += part.words
                    joined.box = joined.box.union(part.box)
                    joined.baseline = []
                    pieces[pieces.count - 1] = .line(joined)
                } else {
                    pieces.append(.line(part))
                }
                kept = []
            }
            for word in line.words {
                if let table = tableOf[order] {
                    keep()
                    if isPlaced.insert(table).inserted { pieces.append(.table(tables[table])) }
                } else {
                    kept.append(word)
                }
                order += 1
            }
            keep()
        }
        return pieces
    }

    private static func usualSize(_ lines: [PlacedLine]) -> Double {
        let weighed = lines.map { ($0.size, $0.words.reduce(0) { $0 + $1.text.count }) }.sorted { $0.0 < $1.0 }
        var left = weighed.reduce(0) { $0 + $1.1 } / 2
        for (size, letters) in weighed {
            left -= letters
            if left <= 0 { return size }
        }
        return 0
    }

    private static func element(_ found: TableFinder.Found) -> PageStructure.Element {
        var element = PageStructure.Element(form: .table, box: found.box, text: "")
        element.table = found.table
        let rows = Dictionary(grouping: found.table.cells, by: \.row).sorted { $0.key < $1.key }
        element.text = rows.map { $0.value.map(\.text).joined(separator: "\t") }.joined(separator: "\n")
        element.lines = found.table.cells.flatMap(\.lines)
        return element
    }

    // MARK: Paragraphs

    private mutating func addText(_ lines: [PlacedLine]) {
        guard !lines.isEmpty else { return }
        let columns = TextColumn.all(lines)
        var groups: [[PlacedLine]] = []
        for column in columns {
            for index in column.lines {
                let line = lines[index]
                let isFirst = index == column.lines.lowerBound
                let before = groups.last?.last
                let isNew =
                    before.map { isFirst ? !goesOn($0, line, columns, index) : column.breaks($0, line, body) } ?? true
                if isNew { groups.append([line]) } else { groups[groups.count - 1].append(line) }
            }
        }
        var index = 0
        while index < groups.count {
            if let list = list(in: groups[index...]) {
                elements.append(list.element)
                index += list.count
            } else {
                addParagraph(groups[index])
                index += 1
            }
        }
    }

    /// Whether a paragraph goes on at the top of the next column.
    private func goesOn(_ before: PlacedLine, _ line: PlacedLine, _ columns: [TextColumn], _ index: Int) -> Bool {
        guard before.isRead == line.isRead, abs(before.size - line.size) < 0.15 * max(before.size, line.size),
            ListMarker(line.words.map(\.text)) == nil,
            let column = columns.first(where: { $0.lines.upperBound == index }),
            before.box.right > column.right - 0.25 * (column.right - column.left), line.box.top < before.box.top,
            let last = before.text.last, let first = line.text.first
        else { return false }
        return first.isLowercase && (last.isLetter || last == "," || last == "-" || last == "\u{ad}")
    }

    private mutating func addParagraph(_ lines: [PlacedLine]) {
        let text = LineJoiner.text(lines.map(\.words), hyphenated: hyphenated)
        var element = PageStructure.Element(form: .paragraph, box: Self.box(lines), text: text)
        element.lines = lines.map(\.line)
        if let level = headingLevel(lines, text) {
            element.form = .heading
            element.level = level
        }
        elements.append(element)
    }

    private static func box(_ lines: [PlacedLine]) -> Box {
        lines.dropFirst().reduce(lines[0].box) { $0.union($1.box) }
    }

    /// By the size of its letters; with the usual size, by a number such as 2.1 or by capitals alone.
    private func headingLevel(_ lines: [PlacedLine], _ text: String) -> Int? {
        let words = lines.reduce(0) { $0 + $1.words.count }
        guard lines.count <= 3, words <= 25, body > 0, text.contains(where: \.isLetter), text.count >= 2 else {
            return nil
        }
        let ratio = (lines.map(\.size).min() ?? 0) / body
        // The height of read letters depends on which letters they are.
        let least = lines[0].isRead ? 1.35 : 1.14
        if ratio >= max(1.8, least) { return 1 }
        if ratio >= max(1.4, least) { return 2 }
        if ratio >= least { return 3 }
        guard lines.count == 1, words <= 12, let last = text.last, !".,;:!?".contains(last), ratio > 0.9 else {
            return nil
        }
        if let number = lines[0].words.first?.text, words >= 2, let depth = Self.depth(of: number),
            lines[0].words[1].text.first?.isUppercase == true
        {
            return min(6, depth + 1)
        }
        let letters = text.filter(\.isLetter)
        return letters.count >= 4 && words <= 8 && letters.allSatisfy { $0.isUppercase } ? 3 : nil
    }

    /// 2 for 3.1, and 1 for 3 only with a dot.
    private static func depth(of number: String) -> Int? {
        let parts = number.split(separator: ".", omittingEmptySubsequences: true)
        guard (1...5).contains(parts.count), number.first != ".", parts.allSatisfy({ Int($0) != nil && $0.count <= 2 }),
            parts.count > 1 || number.last == "."
        else { return nil }
        return parts.count
    }

    // MARK: Lists

    /// The list that begins with the first of these groups.
    private func list(in groups: ArraySlice<[PlacedLine]>) -> (element: PageStructure.Element, count: Int)? {
        var members: [(marker: ListMarker, lines: [PlacedLine])] = []
        var open: [ListMarker] = []
        var count = 0
        for group in groups {
            guard let line = group.first else { break }
            guard let marker = ListMarker(line.words.map(\.text)), line.words.count > 1 else {
                // The rest of an item in the next column or behind a gap stands where its text stands.
                guard let last = members.last, isRest(group, of: last.lines) else { break }
                members[members.count - 1].lines += group
                count += 1
                continue
            }
            if let known = open.firstIndex(where: { $0.precedes(marker) }) {
                open = Array(open[..<known]) + [marker]
            } else if members.isEmpty {
                open = [marker]
            } else if marker.form == .bullet || marker.form == .dash || marker.value == 1,
                let last = members.last?.lines.first, line.box.left > last.box.left + 0.5 * line.size
            {
                open.append(marker)
            } else {
                break
            }
            members.append((marker, group))
            count += 1
        }
        guard members.count >= 2 || members.first?.marker.form == .bullet else { return nil }
        var steps: [Double] = []
        for left in members.map({ $0.lines[0].box.left }).sorted()
        where steps.last.map({ left > $0 + 0.6 * body }) ?? true {
            steps.append(left)
        }
        let items = members.map { member in
            var lines = member.lines.map(\.words)
            lines[0].removeFirst()
            let left = member.lines[0].box.left
            return PageStructure.Item(
                marker: member.marker.text, isNumbered: member.marker.value != nil,
                level: max(1, steps.count { $0 <= left + 0.6 * body }),
                text: LineJoiner.text(lines, hyphenated: hyphenated),
                box: Self.box(member.lines))
        }
        let all = members.flatMap(\.lines)
        var element = PageStructure.Element(
            form: .list, box: Self.box(all), text: items.map { "\($0.marker) \($0.text)" }.joined(separator: "\n"))
        element.items = items
        element.lines = all.map(\.line)
        return (element, count)
    }

    private func isRest(_ group: [PlacedLine], of item: [PlacedLine]) -> Bool {
        guard let first = item.first, first.words.count > 1, let line = group.first, let last = item.last else {
            return false
        }
        return line.box.left > first.words[1].box.left - 0.6 * line.size
            && line.box.left < first.words[1].box.left + line.size
            && line.box.top - last.box.bottom < 0.8 * line.size && line.box.top > last.box.top
    }
}

extension PlacedLine {
    /// At the same height, and further right.
    fileprivate func continues(on other: PlacedLine) -> Bool {
        block == other.block && abs(middle - other.middle) < 0.3 * min(size, other.size) && other.box.left >= box.right
            && other.box.left - box.right < 12 * size
    }
}
