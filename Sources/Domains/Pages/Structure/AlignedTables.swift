/// Tables without ruled lines: rows of segments that stand below each other in columns.
enum AlignedTables {
    static func all(in lines: [PlacedLine], _ hyphenated: Set<String>) -> [TableFinder.Found] {
        runs(SegmentRow.all(of: Segment.all(of: lines))).compactMap { AlignedTable($0)?.found(hyphenated) }
    }

    private static func median(_ values: [Double]) -> Double {
        values.isEmpty ? 0 : values.sorted()[values.count / 2]
    }

    /// Rows of several segments, with few rows of one between them, and no wide gap.
    static func runs(_ rows: [SegmentRow]) -> [[SegmentRow]] {
        var runs: [[SegmentRow]] = []
        var current: [Int] = []
        var gap: [Int] = []
        func gapBefore(_ index: Int, after other: Int) -> Double { rows[index].top - rows[other].bottom }
        func size(_ index: Int) -> Double { median(rows[index].segments.map(\.size)) }
        func close() {
            defer { (current, gap) = ([], []) }
            guard var first = current.first, var last = current.last, current.count >= 2 else { return }
            let (left, right) = (current.map { rows[$0].left }.min() ?? 0, current.map { rows[$0].right }.max() ?? 0)
            let gaps = zip(current, current.dropFirst()).map { gapBefore($1, after: $0) }.sorted()
            let wide = gaps[gaps.count * 9 / 10]
            func isPart(_ index: Int) -> Bool {
                rows[index].left >= left - 1 && rows[index].right <= right + 1
                    && rows[index].right - rows[index].left < 0.6 * (right - left)
            }
            // Lines of the first and the last row's cells, and a heading of several columns.
            while first > 0, rows[first - 1].segments.count == 1, isPart(first - 1),
                runs.last?.last.map({ $0.bottom < rows[first - 1].top }) ?? true
            {
                let space = gapBefore(first, after: first - 1)
                let isCentred = rows[first - 1].left > left + size(first - 1) && space < max(wide, 0) * 1.3 + 1
                guard space < 0.35 * size(first) && size(first - 1) < 1.15 * size(first) || isCentred else { break }
                first -= 1
            }
            while last + 1 < rows.count, rows[last + 1].segments.count == 1, isPart(last + 1),
                gapBefore(last + 1, after: last) < min(0.4 * size(last), max(0.25 * size(last), 0.7 * wide))
            {
                last += 1
            }
            runs.append(Array(rows[first...last]))
        }
        for index in rows.indices {
            let row = rows[index]
            if let before = gap.last ?? current.last, gapBefore(index, after: before) > 3 * size(before) { close() }
            if row.segments.count >= 2 {
                current += gap + [index]
                gap = []
            } else if !current.isEmpty {
                let reach = current.suffix(8).map { rows[$0].right }.max() ?? 0
                let start = current.suffix(8).map { rows[$0].left }.min() ?? 0
                let isWide = row.right - row.left > 0.7 * (reach - start) || row.left < start - 2 * size(index)
                if gap.count >= 4 || isWide && row.segments[0].words.count > 4 { close() } else { gap.append(index) }
            }
        }
        close()
        return runs
    }
}

/// Rows with the columns that their segments make.
struct AlignedTable {
    private struct Column {
        var left: Double
        var right: Double
        var members: [(row: Int, segment: Int)] = []
        var rows: Set<Int> = []

        func overlap(_ box: Box) -> Double { min(right, box.right) - max(left, box.left) }
    }

    private var rows: [SegmentRow]
    private var columns: [Column] = []
    private var size: Double
    private var edges: [Double] = []
    private static let mostColumns = 40

    init?(_ rows: [SegmentRow]) {
        self.rows = rows
        let sizes = rows.flatMap(\.segments).map(\.size).sorted()
        size = sizes[sizes.count / 2]
        guard findColumns(), isTable() else { return nil }
        edges = Self.edges(columns, rows, size)
    }

    /// Narrow segments first: they are in one column. A wider one that reaches into two columns spans them.
    private mutating func findColumns() -> Bool {
        var found: [Column] = []
        let all = rows.indices.flatMap { row in rows[row].segments.indices.map { (row: row, segment: $0) } }
        let ordered = all.sorted {
            rows[$0.row].segments[$0.segment].box.width < rows[$1.row].segments[$1.segment].box.width
        }
        for place in ordered {
            let box = rows[place.row].segments[place.segment].box
            let hits = found.indices.filter { found[$0].overlap(box) > min(0.25 * size, 0.5 * box.width) }
            if hits.count > 1 { continue }
            let index: Int
            if let hit = hits.first {
                index = hit
                (found[hit].left, found[hit].right) = (min(found[hit].left, box.left), max(found[hit].right, box.right))
            } else {
                guard found.count < Self.mostColumns else { return false }
                index = found.count
                found.append(Column(left: box.left, right: box.right))
            }
            found[index].members.append(place)
            found[index].rows.insert(place.row)
        }
        found.sort { $0.left < $1.left }
        // A head that stands beside its numbers has made a column of its own. Columns of one table have a row in common.
        var index = 1
        while index < found.count {
            let (one, other) = (found[index - 1], found[index])
            let isApart = other.left - one.right > 4 * size
            if one.rows.isDisjoint(with: other.rows), !isApart,
                one.overlap(Box(other.left, 0, other.right, 0)) > -4 * size,
                min(one.rows.count, other.rows.count) * 3 <= rows.count
            {
                found[index - 1].right = max(one.right, other.right)
                found[index - 1].members += other.members
                found[index - 1].rows.formUnion(other.rows)
                found.remove(at: index)
                index = max(1, index - 1)
            } else if one.right > other.left + size {
                return false
            } else {
                index += 1
            }
        }
        columns = found
        return columns.count >= 2
    }

    private func isTable() -> Bool {
        let several = rows.count { $0.segments.count >= 2 }
        guard several >= 3 || several >= 2 && columns.count >= 3, several * 5 >= rows.count * 2 else { return false }
        var (prose, straight) = (0, 0)
        for column in columns {
            let segments = column.members.map { rows[$0.row].segments[$0.segment] }
            let words = segments.map(\.words.count).sorted()
            let widths = segments.map(\.box.width).sorted()
            let isFull = widths[widths.count / 2] > 0.75 * (column.right - column.left)
            if segments.count >= 3, words[words.count / 2] >= 4, isFull { prose += 1 }
            if Self.isStraight(segments, size) { straight += 1 }
        }
        // Items of a list are no table.
        if columns.count == 2,
            columns[0].members.allSatisfy({ ListMarker(rows[$0.row].segments[$0.segment].words.map(\.text)) != nil })
        {
            return false
        }
        return prose * 2 < columns.count + (columns.count > 2 ? 1 : 0) && straight * 2 >= columns.count
            && Double(several) / Double(rows.count) > 0.3
    }

    /// Most segments begin, end or have their middle below each other.
    private static func isStraight(_ segments: [Segment], _ size: Double) -> Bool {
        let places: [(Segment) -> Double] = [{ $0.box.left }, { $0.box.right }, { $0.center }]
        return places.contains { place in
            let all = segments.map(place).sorted()
            let middle = all[all.count / 2]
            return all.count { abs($0 - middle) < 0.4 * size } * 10 >= all.count * 6
        }
    }

    /// Which columns a segment takes.
    private func span(_ segment: Segment, in row: Int) -> ClosedRange<Int> {
        let hits = columns.indices.filter {
            columns[$0].overlap(segment.box) > min(0.2 * size, 0.3 * segment.box.width)
        }
        guard let first = hits.first, let last = hits.last else {
            let nearest = columns.indices.min {
                abs((columns[$0].left + columns[$0].right) / 2 - segment.center)
                    < abs((columns[$1].left + columns[$1].right) / 2 - segment.center)
            }
            return (nearest ?? 0)...(nearest ?? 0)
        }
        return first == last && row <= 1 ? centred(segment, first, in: row) : first...last
    }

    /// In the head, a segment may stand over the middle of several columns: over the fewest that fit, if it stands alone.
    private func centred(_ segment: Segment, _ column: Int, in row: Int) -> ClosedRange<Int> {
        let others = rows[row].segments.filter { $0.order != segment.order }
        func isFree(_ index: Int) -> Bool { others.allSatisfy { columns[index].overlap($0.box) <= 0.2 * size } }
        let own = columns[column]
        let middle = (own.left + own.right) / 2
        let offset = min(
            abs(own.left - segment.box.left), abs(own.right - segment.box.right), abs(middle - segment.center))
        let isAlone = others.isEmpty && row == 0 && rows.count > 1 && rows[1].top - rows[0].bottom > 0.3 * size
        if !isAlone, offset < 0.4 * size { return column...column }
        var best = column...column
        var least = isAlone ? .infinity : 1.2 * size
        var first = column
        while first > 0, isFree(first - 1) { first -= 1 }
        var last = column
        while last + 1 < columns.count, isFree(last + 1) { last += 1 }
        for from in first...column {
            for to in column...last where to > from {
                let distance = abs((edges[from] + edges[to + 1]) / 2 - segment.center)
                if distance < least { (best, least) = (from...to, distance) }
            }
        }
        return best
    }

    /// Where cells probably begin and end: beside the straight side of a column.
    private static func edges(_ columns: [Column], _ rows: [SegmentRow], _ size: Double) -> [Double] {
        func isStraight(_ column: Column, _ place: (Segment) -> Double) -> Bool {
            let all = column.members.map { place(rows[$0.row].segments[$0.segment]) }.sorted()
            let middle = all[all.count / 2]
            return all.count { abs($0 - middle) < 0.3 * size } * 10 >= all.count * 7
        }
        let space = 0.5 * size
        var edges = [columns[0].left - space]
        for (column, next) in zip(columns, columns.dropFirst()) {
            let (ends, begins) = (isStraight(column) { $0.box.right }, isStraight(next) { $0.box.left })
            let (one, other) = (column.right + space, next.left - space)
            edges.append(begins && !ends ? other : ends && !begins ? one : (one + other) / 2)
        }
        return edges + [(columns.last?.right ?? 0) + space]
    }

    /// For each row whether it goes on with the cells of the row before.
    private func continuations(_ filled: [Set<Int>]) -> [Bool] {
        var gaps: [Double] = []
        var bottom = rows[0].bottom
        for row in rows.dropFirst() {
            gaps.append(row.top - bottom)
            bottom = max(bottom, row.bottom)
        }
        let sorted = gaps.sorted()
        var result = [false]
        var threshold = -0.35 * size
        var steps: [(Double, Int)] = []
        for index in sorted.indices.dropFirst() { steps.append((sorted[index] - sorted[index - 1], index)) }
        if let (jump, index) = steps.filter({ sorted[$0.1 - 1] < 0.6 * size }).max(by: { $0.0 < $1.0 }),
            jump >= 0.18 * size
        {
            let middle = (sorted[index] + sorted[index - 1]) / 2
            let close = gaps.indices.filter { gaps[$0] < middle }
            let full = close.count { Double(filled[$0 + 1].count) >= 0.7 * Double(columns.count) }
            if full * 2 < close.count { threshold = middle }
        }
        let isUniform = threshold < 0
        for (index, gap) in gaps.enumerated() {
            let (before, here) = (filled[index], filled[index + 1])
            // Without a wider gap between rows: an empty first column, and little in the others.
            let goesOn =
                isUniform && !here.contains(0) && here.count * 2 <= columns.count && gap < 0.6 * size
                && here.isSubset(of: before.union(here.filter { _ in result[index] }))
            result.append(gap < threshold || goesOn)
        }
        return result
    }

    func found(_ hyphenated: Set<String>) -> TableFinder.Found? {
        let spans = rows.indices.map { row in rows[row].segments.map { span($0, in: row) } }
        let goesOn = continuations(spans.map { Set($0.flatMap { Array($0) }) })
        var cells: [PageStructure.Cell] = []
        var words: Set<Int> = []
        var row = 0
        var open: [Int: (span: ClosedRange<Int>, lines: [[Word]])] = [:]
        func close() {
            for (column, content) in open.sorted(by: { $0.key < $1.key }) {
                cells.append(
                    TableFinder.cell(content.lines, row, column + 1, 1, content.span.count, hyphenated))
            }
            open = [:]
        }
        for index in rows.indices {
            if !goesOn[index] {
                close()
                row += 1
            }
            for (segment, span) in zip(rows[index].segments, spans[index]) {
                words.formUnion(segment.order..<segment.order + segment.words.count)
                if let cell = open.first(where: { $0.value.span.overlaps(span) }) {
                    let isSameLine =
                        cell.value.lines.last?.last.map { abs($0.box.top - segment.box.top) < 0.4 * size } ?? false
                    if isSameLine {
                        open[cell.key]?.lines[cell.value.lines.count - 1] += segment.words
                    } else {
                        open[cell.key]?.lines.append(segment.words)
                    }
                    let both =
                        min(
                            cell.value.span.lowerBound, span.lowerBound)...max(
                            cell.value.span.upperBound, span.upperBound)
                    open[cell.key]?.span = both
                } else {
                    open[span.lowerBound] = (span, [segment.words])
                }
            }
        }
        close()
        guard row >= 2, let first = cells.first else { return nil }
        let table = PageStructure.Table(rows: row, columns: columns.count, isRuled: false, cells: cells)
        return TableFinder.Found(
            table: TableFinder.renumbered(table), box: cells.dropFirst().reduce(first.box) { $0.union($1.box) },
            words: words)
    }
}
