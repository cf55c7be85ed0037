/// Finds the tables of a page: where ruled lines make a grid, and where segments of lines stand below each other in columns.
package enum TableFinder {
    struct Found {
        var table: PageStructure.Table
        var box: Box
        /// The words of the page that are in its cells, by their place in the order of words.
        var words: Set<Int>
    }

    /// Whether it is worthwhile to look for ruled lines: two rows of several segments, of which one is short, stand near each other.
    package static func mayHaveTables(_ page: PageText) -> Bool {
        let lines = page.blocks.flatMap { block in
            block.lines.filter { !$0.words.isEmpty }.map { PlacedLine($0, block: 0, isRead: page.origin == .read) }
        }
        let rows = SegmentRow.all(of: Segment.all(of: lines))
        let candidates = rows.filter { $0.segments.count >= 2 && $0.segments.contains { $0.words.count <= 3 } }
        return zip(candidates, candidates.dropFirst()).contains { $1.top - $0.bottom < 4 * $0.height }
    }

    static func tables(in lines: [PlacedLine], rulings: Rulings, unit: Double) -> [Found] {
        var found: [Found] = []
        var taken: Set<Int> = []
        let hyphenated = LineJoiner.hyphenated(in: lines)
        for grid in TableGrid.all(rulings, unit: unit) {
            guard let table = ruled(grid, lines, taken, hyphenated) else { continue }
            taken.formUnion(table.words)
            found.append(table)
        }
        var free: [PlacedLine] = []
        var orders: [Int] = []
        var order = 0
        for line in lines {
            let kept = line.words.indices.filter { !taken.contains(order + $0) }
            if kept.count == line.words.count {
                free.append(line)
            } else if !kept.isEmpty {
                free.append(line.keeping(kept.map { line.words[$0] }))
            }
            orders += kept.map { order + $0 }
            order += line.words.count
        }
        for table in AlignedTables.all(in: free, hyphenated) {
            var table = table
            table.words = Set(table.words.map { orders[$0] })
            found.append(table)
        }
        return found
    }

    /// The words in the cells of a grid. nil: it is the frame of something else.
    private static func ruled(
        _ grid: TableGrid, _ lines: [PlacedLine], _ taken: Set<Int>, _ hyphenated: Set<String>
    ) -> Found? {
        var cells: [Int: [Segment]] = [:]
        var words: Set<Int> = []
        var order = 0
        for line in lines {
            for word in line.words {
                defer { order += 1 }
                let (x, y) = ((word.box.left + word.box.right) / 2, (word.box.top + word.box.bottom) / 2)
                guard !taken.contains(order), let cell = grid.cell(x: x, y: y) else { continue }
                words.insert(order)
                // A line that was read as a letter.
                if line.isRead, word.text.allSatisfy({ "|¦_—".contains($0) }) { continue }
                cells[cell, default: []].append(
                    Segment(words: [word], box: word.box, line: 0, order: order, size: line.size))
            }
        }
        guard cells.count >= 3, words.count <= 20_000 else { return nil }
        let spans = grid.spans()
        let width = grid.columns.count - 1
        var made: [PageStructure.Cell] = []
        for (slot, segments) in cells.sorted(by: { $0.key < $1.key }) {
            let span = spans[slot] ?? (1, 1)
            made.append(
                cell(stacked(segments), slot / width + 1, slot % width + 1, span.rows, span.columns, hyphenated))
        }
        let table = PageStructure.Table(
            rows: grid.rows.count - 1, columns: width, isRuled: true, cells: splitRows(made, grid, hyphenated))
        return Found(table: renumbered(table), box: grid.box, words: words)
    }

    /// The words of a cell, line by line.
    private static func stacked(_ words: [Segment]) -> [[Word]] {
        var lines: [(middle: Double, words: [Segment])] = []
        for word in words.sorted(by: { $0.middle < $1.middle }) {
            if let line = lines.last, word.middle - line.middle < 0.5 * word.size {
                lines[lines.count - 1].words.append(word)
            } else {
                lines.append((word.middle, [word]))
            }
        }
        return lines.map { line in
            let inOrder = line.words.sorted { $0.order < $1.order }.flatMap(\.words)
            return TextDirections.runLeft(inOrder) ? inOrder : inOrder.sorted { $0.box.left < $1.box.left }
        }
    }

    static func cell(
        _ lines: [[Word]], _ row: Int, _ column: Int, _ rowSpan: Int, _ columnSpan: Int, _ hyphenated: Set<String>
    ) -> PageStructure.Cell {
        var cell = PageStructure.Cell(
            row: row, column: column, rowSpan: rowSpan, columnSpan: columnSpan,
            text: LineJoiner.text(lines, hyphenated: hyphenated), box: Box(0, 0, 0, 0))
        cell.lines = lines.map { TextLine($0) }
        cell.box = cell.lines.dropFirst().reduce(cell.lines[0].box) { $0.union($1.box) }
        return cell
    }

    /// Where lines only separate columns, and the head from the rest: rows that stand at the same heights in most cells are rows of the table.
    private static func splitRows(
        _ cells: [PageStructure.Cell], _ grid: TableGrid, _ hyphenated: Set<String>
    ) -> [PageStructure.Cell] {
        var result: [PageStructure.Cell] = []
        var added = 0
        for (row, members) in Dictionary(grouping: cells, by: \.row).sorted(by: { $0.key < $1.key }) {
            let lines = members.flatMap { cell in
                cell.lines.map {
                    Segment(words: $0.words, box: $0.box, line: cell.column, order: 0, size: $0.box.height)
                }
            }
            let rows = SegmentRow.all(of: lines)
            let full = rows.count { Double($0.segments.count) >= 0.7 * Double(grid.columns.count - 1) }
            let isOneRow = members.allSatisfy { $0.rowSpan == 1 && $0.columnSpan == 1 }
            if rows.count >= 3, full * 10 >= rows.count * 8, isOneRow {
                for (offset, content) in rows.enumerated() {
                    result += content.segments.map {
                        cell([$0.words], row + added + offset, $0.line, 1, 1, hyphenated)
                    }
                }
                added += rows.count - 1
            } else {
                result += members.map {
                    var cell = $0
                    cell.row += added
                    return cell
                }
            }
        }
        return result
    }

    /// Without rows and columns that have no cell of their own.
    static func renumbered(_ table: PageStructure.Table) -> PageStructure.Table {
        var table = table
        let rows = Set(table.cells.map(\.row)).sorted()
        let columns = Set(table.cells.map(\.column)).sorted()
        func rank(_ all: [Int], _ from: Int, _ span: Int) -> (Int, Int) {
            let first = all.firstIndex { $0 >= from } ?? 0
            return (first + 1, max(1, (all.firstIndex { $0 >= from + span } ?? all.count) - first))
        }
        for index in table.cells.indices {
            let cell = table.cells[index]
            (table.cells[index].row, table.cells[index].rowSpan) = rank(rows, cell.row, cell.rowSpan)
            (table.cells[index].column, table.cells[index].columnSpan) = rank(columns, cell.column, cell.columnSpan)
        }
        (table.rows, table.columns) = (rows.count, columns.count)
        return table
    }
}
