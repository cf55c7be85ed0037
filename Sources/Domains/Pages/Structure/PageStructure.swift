/// What the lines of a page are: headings, paragraphs, lists and tables, in the order in which they are read. It is computed from the
/// words and their places, in the same way for a page's own text and for text that was read.
package struct PageStructure: Codable, Sendable, Equatable {
    package enum Form: String, Codable, Sendable {
        case heading, paragraph, list, table
    }

    package struct Element: Codable, Sendable, Equatable {
        package var form: Form
        package var box: Box
        /// Its lines joined, without the hyphens at line ends. Of a list, an item a line; of a table, a row a line, with tabs between cells.
        package var text: String
        /// Of a heading: 1 is the largest.
        package var level: Int?
        /// Where columns stand side by side, which of them it stands in, from 1.
        package var column: Int?
        package var items: [Item]?
        package var table: Table?
        /// Not in the JSON: their words are in the page's blocks.
        package var lines: [TextLine] = []

        private enum CodingKeys: String, CodingKey {
            case form, box, text, level, column, items, table
        }
    }

    package struct Item: Codable, Sendable, Equatable {
        /// As it stands on the page, such as • or 2.
        package var marker: String
        package var isNumbered: Bool
        /// From 1; deeper items stand further right.
        package var level: Int
        package var text: String
        package var box: Box
    }

    package struct Table: Codable, Sendable, Equatable {
        package var rows: Int
        package var columns: Int
        /// Whether ruled lines separate its cells; otherwise its cells were found by their alignment.
        package var isRuled: Bool
        /// Row by row. Empty cells are left out.
        package var cells: [Cell]
    }

    package struct Cell: Codable, Sendable, Equatable {
        /// From 1, like the column.
        package var row: Int
        package var column: Int
        package var rowSpan: Int
        package var columnSpan: Int
        package var text: String
        package var box: Box
        package var lines: [TextLine] = []

        private enum CodingKeys: String, CodingKey {
            case row, column, rowSpan, columnSpan, text, box
        }
    }

    /// The size that the boxes refer to, as in the page's text.
    package var width: Double
    package var height: Double
    package var elements: [Element]

    package init(of page: PageText) {
        (width, height) = (page.width, page.height)
        var lines: [PlacedLine] = []
        for (block, content) in page.blocks.enumerated() {
            for line in content.lines where !line.words.isEmpty {
                lines.append(PlacedLine(line, block: block, isRead: page.origin == .read || content.isOwn == false))
            }
        }
        let found = TableFinder.tables(in: lines, rulings: page.rulings ?? Rulings(), unit: page.dpi / 72)
        elements = ParagraphFinder(lines, found).elements
        markColumns()
    }

    /// Elements that begin right of the one before, and above its end, stand in the next column.
    private mutating func markColumns() {
        var start = 0
        var column = 1
        var marks: [Int?] = elements.map { _ in nil }
        func isBeside(_ one: Box, _ other: Box) -> Bool { one.right <= other.left && other.top < one.bottom }
        for index in elements.indices.dropFirst() {
            let (before, box) = (elements[index - 1].box, elements[index].box)
            if isBeside(before, box) {
                if column == 1 {
                    // The first column goes back as far as it is beside the second.
                    start = index
                    while start > 0, elements[start - 1].box.right <= box.left + 1,
                        elements[start - 1].box.bottom > box.top
                    {
                        start -= 1
                    }
                    for earlier in start..<index { marks[earlier] = 1 }
                }
                column += 1
                marks[index] = column
            } else if column > 1, box.left < before.left,
                !elements[start..<index].contains(where: { isBeside(box, $0.box) })
            {
                column = 1
            } else if column > 1 {
                marks[index] = column
            }
        }
        for index in elements.indices { elements[index].column = marks[index] }
    }
}

/// A line with what is known of it.
struct PlacedLine {
    var words: [Word]
    var baseline: [Double]
    var block: Int
    /// The size of its letters.
    var size: Double
    var box: Box
    var isRead: Bool

    init(_ line: TextLine, block: Int, isRead: Bool) {
        (words, baseline, self.block, self.isRead) = (line.words, line.baseline, block, isRead)
        box = line.box
        let heights = line.words.map(\.box.height).sorted()
        let usual = heights[heights.count / 2]
        // The boxes of a page's own words have the height of their font; read ones have that of their letters.
        size = isRead ? heights.last { $0 < 1.7 * usual } ?? usual : usual
    }

    var line: TextLine { TextLine(words, baseline: baseline) }
    var text: String { words.map(\.text).joined(separator: " ") }
    var middle: Double { (box.top + box.bottom) / 2 }

    /// With these words only.
    func keeping(_ kept: [Word]) -> PlacedLine {
        PlacedLine(
            TextLine(kept, baseline: baseline.count == 2 ? Self.cut(line, to: kept) : []), block: block, isRead: isRead)
    }

    private static func cut(_ line: TextLine, to kept: [Word]) -> [Double] {
        let (box, part) = (line.box, TextLine(kept).box)
        guard box.width > 0 else { return line.baseline }
        return [part.left, part.right].map {
            line.baseline[0] + (line.baseline[1] - line.baseline[0]) * ($0 - box.left) / box.width
        }
    }
}
