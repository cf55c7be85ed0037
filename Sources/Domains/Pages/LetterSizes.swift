/// The letter size of each line, in the unit of its boxes; 0: it cannot be told. Programs that take a page's text apart use it: another
/// size starts another paragraph for them, and so does a step down of more than one and a half sizes.
enum LetterSizes {
    static func of(_ lines: [TextLine]) -> [Double] {
        let own = lines.map(letterSize)
        let usual = median(own)
        guard usual > 0 else { return own.map { _ in 0 } }
        var sizes = own.map { height in
            // The same size for all lines of about the same height.
            if height > usual * 0.7, height < usual * 1.45 { return usual }
            return height > 0 ? max(0.25, (height / usual * 4).rounded() / 4) * usual : 0
        }
        for column in besideOthers(columns(of: lines)) {
            let size = column.joining(usual)
            for index in column.lines where sizes[index] == usual { sizes[index] = size }
        }
        return sizes
    }

    /// Lines one below the other, in the order in which they are read.
    private struct Column {
        var lines: Range<Int>
        var box: Box
        var steps: [Double] = []

        /// Large enough to keep its paragraphs together.
        func joining(_ usual: Double) -> Double {
            let steps = steps.filter { $0 > usual * 1.45 && $0 < usual * 2.2 }
            return max(usual, (steps.max() ?? 0) / 1.5 * 1.03)
        }
    }

    private static func columns(of lines: [TextLine]) -> [Column] {
        var columns: [Column] = []
        var last = Box(0, 0, 0, 0)
        for (index, line) in lines.enumerated() {
            let box = line.box
            let overlap = min(box.right, last.right) - max(box.left, last.left)
            if !columns.isEmpty, box.bottom > last.bottom, overlap > min(box.width, last.width) / 2 {
                columns[columns.count - 1].lines = columns[columns.count - 1].lines.lowerBound..<index + 1
                columns[columns.count - 1].steps.append(base(line) - base(lines[index - 1]))
                columns[columns.count - 1].box = columns[columns.count - 1].box.union(box)
            } else {
                columns.append(Column(lines: index..<index + 1, box: box))
            }
            last = box
        }
        return columns
    }

    /// Columns that stand side by side. If two paragraphs in each begin at about the same heights, readers would take them for the cells of
    /// a table, and read across.
    private static func besideOthers(_ columns: [Column]) -> [Column] {
        let tall = columns.filter { $0.lines.count >= 4 }
        return tall.filter { one in
            tall.contains { other in
                (one.box.right <= other.box.left || other.box.right <= one.box.left)
                    && min(one.box.bottom, other.box.bottom) - max(one.box.top, other.box.top)
                        > min(one.box.height, other.box.height) / 2
            }
        }
    }

    private static func base(_ line: TextLine) -> Double {
        line.baseline.isEmpty ? line.box.bottom : line.baseline.reduce(0, +) / Double(line.baseline.count)
    }

    /// The font size of these letters: a word with ascenders and descenders fills nine tenths of it.
    private static func letterSize(_ line: TextLine) -> Double {
        let usual = median(line.words.map(\.box.height))
        return (line.words.map(\.box.height).filter { $0 < 1.7 * usual }.max() ?? 0) * 1.1
    }

    private static func median(_ values: [Double]) -> Double {
        values.isEmpty ? 0 : values.sorted()[values.count / 2]
    }
}
