import Pages

extension PageSetter {
    /// How many rows are measured to find how wide columns are.
    private static let measured = 200

    func rows(_ table: PageTable, _ width: Double) throws(DocumentRefusal) -> [TableRow] {
        let width = min(width, table.width?.points(of: width) ?? width)
        let columns = try columns(of: table, width)
        let shared = TableRow.Table()
        var rows: [TableRow] = []
        for (index, cells) in table.rows.enumerated() {
            var (column, laid) = (0, [TableRow.Cell]())
            for cell in cells {
                let own = columns[column..<min(columns.count, column + cell.span)].reduce(0, +)
                let before = columns[..<column].reduce(0, +)
                laid.append(
                    TableRow.Cell(
                        x: table.isRightToLeft ? width - before - own : before, width: own,
                        pieces: try pieces(cell.blocks, max(4, own - 2 * cell.padding)), padding: cell.padding,
                        fill: cell.fill, borders: cell.borders, place: cell.place))
                column += cell.span
            }
            rows.append(
                TableRow(cells: laid, inset: 0, isHeader: index < table.headers, table: shared, canvas: canvas))
        }
        shared.headers = Array(rows.prefix(table.headers))
        return rows
    }

    /// Columns that say how wide they are have that; the others what they need, and share what is left or lacking.
    private func columns(of table: PageTable, _ width: Double) throws(DocumentRefusal) -> [Double] {
        var said = [Double?](repeating: nil, count: table.columns)
        var needed = [Double](repeating: 8, count: table.columns)
        for cells in table.rows.prefix(Self.measured) {
            var column = 0
            for cell in cells {
                if cell.span == 1 {
                    if let own = cell.width, said[column] == nil { said[column] = min(width, own.points(of: width)) }
                    needed[column] = max(needed[column], try naturalWidth(cell.blocks, width) + 2 * cell.padding + 0.5)
                }
                column += cell.span
            }
        }
        let fixed = said.reduce(0) { $0 + ($1 ?? 0) }
        guard said.contains(where: { $0 == nil }) else {
            return said.map { ($0 ?? 0) * width / max(1, fixed) }
        }
        let rest = width - fixed
        let open = said.indices.filter { said[$0] == nil }
        guard rest >= Double(open.count) * 12 else {
            throw DocumentRefusal(
                .unsupported, "line \(table.line): the widths of the table leave no room for its other columns")
        }
        let wanted = open.reduce(0) { $0 + needed[$1] }
        if wanted <= rest {
            for column in open { said[column] = needed[column] + (rest - wanted) * needed[column] / wanted }
        } else {
            // Narrow columns have what they need; the wide ones share the rest.
            var (left, undecided) = (rest, open)
            while let narrow = undecided.first(where: { needed[$0] <= left / Double(undecided.count) }) {
                said[narrow] = needed[narrow]
                left -= needed[narrow]
                undecided.removeAll { $0 == narrow }
            }
            for column in undecided { said[column] = left / Double(undecided.count) }
        }
        return said.map { $0 ?? 0 }
    }

    private func naturalWidth(_ blocks: [PageBlock], _ width: Double) throws(DocumentRefusal) -> Double {
        var most = 0.0
        for block in blocks {
            switch block {
            case .text(let paragraph):
                guard let first = paragraph.parts().first else { continue }
                most = max(most, try TextLayout(first, width: nil, setter).naturalWidth)
            case .picture(let picture): most = max(most, pictures.size(picture, width, room)?.width ?? 0)
            case .group(let inner, let indent, _, _, _): most = max(most, try naturalWidth(inner, width) + indent)
            case .table: most = width
            case .rule, .space, .pageBreak: break
            }
        }
        return min(most, width)
    }
}
