/// The order in which words are read.
package enum ReadingOrder {
    /// Cuts words, in their order, into lines: a new line begins where the next word is lower, or further left.
    package static func lines(of words: [Word]) -> [TextLine] {
        groups(of: words.map(\.box)).map { TextLine(Array(words[$0])) }
    }

    /// The lines as parts of the list of words.
    static func groups(of boxes: [Box]) -> [Range<Int>] {
        var groups: [Range<Int>] = []
        for (at, box) in boxes.enumerated() {
            if let last = groups.last, follows(boxes[at - 1], box) {
                groups[groups.count - 1] = last.lowerBound..<at + 1
            } else {
                groups.append(at..<at + 1)
            }
        }
        return groups
    }

    private static func follows(_ before: Box, _ after: Box) -> Bool {
        let middle = (after.top + after.bottom) / 2
        return middle >= before.top && middle <= before.bottom && after.left >= before.right - before.height / 2
            && after.left - before.right < 4 * max(before.height, after.height)
    }

    /// An engine that finds columns reads a table down its columns. Where short lines stand side by side, row after row, they are table
    /// rows; long lines side by side are columns of prose, and stay as they are.
    package static func arranged(_ blocks: [Block], skew: Double = 0) -> [Block] {
        var fragments: [Fragment] = []
        for (block, content) in blocks.enumerated() {
            for (line, words) in content.lines.enumerated() where !words.words.isEmpty {
                fragments.append(Fragment(block: block, line: line, content: words, slope: slope(of: skew)))
            }
        }
        var result = blocks
        var taken = Set<[Int]>()
        var tables: [(at: Int, top: Double, block: Block)] = []
        for run in runs(rows(of: fragments)) {
            let members = run.flatMap { $0 }
            taken.formUnion(members.map { [$0.block, $0.line] })
            let lines = run.map { row in
                TextLine(row.sorted { $0.box.left < $1.box.left }.flatMap(\.content.words))
            }
            let first = members.map(\.block).min() ?? 0
            tables.append((first, members.map(\.middle).min() ?? 0, Block(lines, form: .table)))
        }
        guard !tables.isEmpty else { return blocks }
        result = []
        for (index, block) in blocks.enumerated() {
            var rest: [TextLine] = []
            var due = tables.filter { $0.at == index }.sorted { $0.top < $1.top }
            for (number, line) in block.lines.enumerated() {
                let middle = Fragment(block: 0, line: 0, content: line, slope: slope(of: skew)).middle
                while let next = due.first, next.top <= middle || taken.contains([index, number]) {
                    if !rest.isEmpty { result.append(Block(rest, form: block.form)) }
                    rest = []
                    result.append(next.block)
                    due.removeFirst()
                }
                if !taken.contains([index, number]) { rest.append(line) }
            }
            if !rest.isEmpty { result.append(Block(rest, form: block.form)) }
            result += due.map(\.block)
        }
        return result
    }

    private struct Fragment {
        var block: Int
        var line: Int
        var content: TextLine
        var box: Box
        /// The height on the page, corrected for skew.
        var middle: Double

        init(block: Int, line: Int, content: TextLine, slope: Double) {
            (self.block, self.line, self.content) = (block, line, content)
            box = content.box
            middle = (box.top + box.bottom) / 2 - slope * (box.left + box.right) / 2
        }
    }

    private static func slope(of skew: Double) -> Double { skew * .pi / 180 }

    private static func rows(of fragments: [Fragment]) -> [[Fragment]] {
        var rows: [[Fragment]] = []
        for fragment in fragments.sorted(by: { $0.middle < $1.middle }) {
            if let row = rows.last, let first = row.first,
                fragment.middle - first.middle < 0.5 * min(first.box.height, fragment.box.height),
                row.allSatisfy({ $0.box.right <= fragment.box.left || fragment.box.right <= $0.box.left })
            {
                rows[rows.count - 1].append(fragment)
            } else {
                rows.append([fragment])
            }
        }
        return rows
    }

    /// At least three rows of two or more lines, with at most one row of a single line between them.
    private static func runs(_ rows: [[Fragment]]) -> [[[Fragment]]] {
        var runs: [[[Fragment]]] = []
        var current: [[Fragment]] = []
        var gap: [[Fragment]] = []
        func close() {
            let counts = current.flatMap { $0 }.map(\.content.words.count).sorted()
            let isTable = current.count >= 3 && counts[counts.count / 2] <= 3 && counts[counts.count * 9 / 10] <= 6
            if isTable { runs.append(current) }
            current = []
            gap = []
        }
        for row in rows {
            if row.count >= 2 {
                current += gap + [row]
                gap = []
            } else if current.isEmpty || gap.count == 1 || row[0].content.words.count > 4 {
                close()
            } else {
                gap.append(row)
            }
        }
        close()
        return runs
    }
}
