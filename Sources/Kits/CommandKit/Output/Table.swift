/// Rows with aligned columns. On a terminal a row stays on one line: columns that may shrink are cut, and where that is not enough, the least
/// important columns are left out.
package struct Table: Sendable {
    package struct Column: Sendable {
        package enum Alignment: Sendable {
            case leading
            case trailing
        }

        /// How early a column is dropped when there is no room.
        package enum Importance: Int, Sendable, Comparable {
            /// Nice to know.
            case low
            case normal
            /// What a reader looks for first.
            case high
            /// It identifies the row, so it is never dropped. The first column, if no other is marked.
            case key

            package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
        }

        package let title: String
        package let alignment: Alignment
        package let shrinks: Bool
        package let importance: Importance

        package init(
            _ title: String, _ alignment: Alignment = .leading, shrinks: Bool = false,
            importance: Importance = .normal
        ) {
            self.title = title
            self.alignment = alignment
            self.shrinks = shrinks
            self.importance = importance
        }
    }

    package struct Cell: Sendable, ExpressibleByStringInterpolation {
        package let text: String
        package let style: Style

        package init(_ text: String, _ style: Style = .plain) {
            self.text = DisplayWidth.harmless(text)
            self.style = style
        }

        package init(stringLiteral value: String) { self.init(value) }
    }

    package let columns: [Column]
    private(set) var rows: [[Cell]] = []
    /// Said instead of a lonely heading.
    package let whenEmpty: String

    package init(_ columns: [Column], whenEmpty: String = "nothing to show") {
        self.columns = columns
        self.whenEmpty = whenEmpty
    }

    package mutating func add(_ cells: [Cell]) {
        precondition(cells.count == columns.count, "a row has as many cells as the table has columns")
        rows.append(cells)
    }

    /// The lines, no wider than `width` if that can be; nil for a pipe, where nothing is cut.
    package func lines(width: Int?, colors: Bool) -> [String] {
        guard !rows.isEmpty else { return [whenEmpty] }
        let heading = columns.map { Cell($0.title, .dim) }
        let shown = shown(in: width)
        let widths = fitted(to: width, shown)
        return ([heading] + rows).map { row in
            var line = ""
            for index in shown {
                let cell = row[index]
                let text = DisplayWidth.cut(cell.text, to: widths[index])
                let space = String(repeating: " ", count: max(0, widths[index] - DisplayWidth.of(text)))
                let painted = cell.style.paint(text, on: colors)
                let isLast = index == shown.last
                switch columns[index].alignment {
                case .leading: line += isLast ? painted : painted + space
                case .trailing: line += space + painted
                }
                if !isLast { line += "  " }
            }
            return line
        }
    }

    /// The least width of a column that shrinks.
    private static let least = 8

    private var naturalWidths: [Int] {
        columns.indices.map { index in
            rows.reduce(DisplayWidth.of(columns[index].title)) { max($0, DisplayWidth.of($1[index].text)) }
        }
    }

    /// The columns that there is room for. The least important goes first, and of those the last; an empty column before any other of its kind.
    private func shown(in width: Int?) -> [Int] {
        var shown = Array(columns.indices)
        guard let width else { return shown }
        let needed = zip(columns, naturalWidths).map { $0.shrinks ? min($1, Self.least) : $1 }
        let hasKey = columns.contains { $0.importance == .key }
        func isEmpty(_ index: Int) -> Bool { rows.allSatisfy { $0[index].text.isEmpty || $0[index].text == "-" } }
        while shown.reduce(0, { $0 + needed[$1] }) + 2 * (shown.count - 1) > width {
            let candidates = shown.filter { columns[$0].importance < .key && (hasKey || $0 > 0) }
            guard let lowest = candidates.map({ columns[$0].importance }).min() else { break }
            let least = candidates.filter { columns[$0].importance == lowest }
            guard let leaving = least.last(where: isEmpty) ?? least.last else { break }
            shown.removeAll { $0 == leaving }
        }
        return shown
    }

    private func fitted(to width: Int?, _ shown: [Int]) -> [Int] {
        var widths = naturalWidths
        guard let width else { return widths }
        var excess = shown.reduce(0) { $0 + widths[$1] } + 2 * (shown.count - 1) - width
        // Always the widest first, so that no column vanishes for the sake of another.
        while excess > 0 {
            let candidates = shown.filter { columns[$0].shrinks && widths[$0] > Self.least }
            guard let widest = candidates.max(by: { widths[$0] < widths[$1] }) else { break }
            let others = candidates.filter { $0 != widest }.map { widths[$0] }.max() ?? Self.least
            let step = min(excess, max(1, widths[widest] - max(Self.least, others)))
            widths[widest] -= step
            excess -= step
        }
        return widths
    }
}
