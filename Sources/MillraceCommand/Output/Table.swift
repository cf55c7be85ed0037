/// Rows with aligned columns; on a terminal, columns that may shrink are cut so that a row stays on one line.
struct Table: Sendable {
    struct Column: Sendable {
        enum Alignment: Sendable {
            case leading
            case trailing
        }

        let title: String
        let alignment: Alignment
        let shrinks: Bool

        init(_ title: String, _ alignment: Alignment = .leading, shrinks: Bool = false) {
            self.title = title
            self.alignment = alignment
            self.shrinks = shrinks
        }
    }

    struct Cell: Sendable, ExpressibleByStringInterpolation {
        let text: String
        let style: Style

        init(_ text: String, _ style: Style = .plain) {
            self.text = DisplayWidth.harmless(text)
            self.style = style
        }

        init(stringLiteral value: String) { self.init(value) }
    }

    let columns: [Column]
    private(set) var rows: [[Cell]] = []
    /// Said instead of a lonely heading.
    let whenEmpty: String

    init(_ columns: [Column], whenEmpty: String = "nothing to show") {
        self.columns = columns
        self.whenEmpty = whenEmpty
    }

    mutating func add(_ cells: [Cell]) {
        precondition(cells.count == columns.count, "a row has as many cells as the table has columns")
        rows.append(cells)
    }

    /// The lines, no wider than `width` if that can be; nil for a pipe, where nothing is cut.
    func lines(width: Int?, colors: Bool) -> [String] {
        guard !rows.isEmpty else { return [whenEmpty] }
        let heading = columns.map { Cell($0.title, .dim) }
        let widths = fitted(to: width)
        return ([heading] + rows).map { row in
            var line = ""
            for (index, cell) in row.enumerated() {
                let text = DisplayWidth.cut(cell.text, to: widths[index])
                let space = String(repeating: " ", count: max(0, widths[index] - DisplayWidth.of(text)))
                let painted = cell.style.paint(text, on: colors)
                let isLast = index == row.count - 1
                switch columns[index].alignment {
                case .leading: line += isLast ? painted : painted + space
                case .trailing: line += space + painted
                }
                if !isLast { line += "  " }
            }
            return line
        }
    }

    private func fitted(to width: Int?) -> [Int] {
        var widths = columns.indices.map { index in
            rows.reduce(DisplayWidth.of(columns[index].title)) { max($0, DisplayWidth.of($1[index].text)) }
        }
        guard let width else { return widths }
        var excess = widths.reduce(0, +) + 2 * (columns.count - 1) - width
        // Always the widest first, so that no column vanishes for the sake of another.
        while excess > 0 {
            let candidates = columns.indices.filter { columns[$0].shrinks && widths[$0] > 8 }
            guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { break }
            let others = candidates.filter { $0 != widest }.map { widths[$0] }.max() ?? 8
            let step = min(excess, max(1, widths[widest] - max(8, others)))
            widths[widest] -= step
            excess -= step
        }
        return widths
    }
}
