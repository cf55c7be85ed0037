/// Lines one below the other, in the order in which they are read.
struct TextColumn {
    var lines: Range<Int>
    var left: Double
    var right: Double
    /// The usual step from a baseline to the next.
    var step = 0.0

    static func all(_ lines: [PlacedLine]) -> [TextColumn] {
        var columns: [TextColumn] = []
        var steps: [[Double]] = []
        for (index, line) in lines.enumerated() {
            let last = index > 0 ? lines[index - 1] : line
            let overlap = min(line.box.right, last.box.right) - max(line.box.left, last.box.left)
            if index > 0, line.middle > last.middle, overlap > 0.3 * min(line.box.width, last.box.width) {
                let column = columns.count - 1
                columns[column].lines = columns[column].lines.lowerBound..<index + 1
                columns[column].left = min(columns[column].left, line.box.left)
                columns[column].right = max(columns[column].right, line.box.right)
                steps[column].append(line.middle - last.middle)
            } else {
                columns.append(TextColumn(lines: index..<index + 1, left: line.box.left, right: line.box.right))
                steps.append([])
            }
        }
        for index in columns.indices where !steps[index].isEmpty {
            let sorted = steps[index].sorted()
            columns[index].step = sorted[sorted.count * 2 / 5]
        }
        return columns
    }

    /// Whether a new paragraph begins between these lines of the column.
    func breaks(_ before: PlacedLine, _ line: PlacedLine, _ body: Double) -> Bool {
        let size = max(before.size, line.size)
        let tolerance = before.isRead ? 0.4 : 0.12
        if abs(before.size - line.size) > tolerance * min(before.size, line.size) { return true }
        if before.isRead != line.isRead { return true }
        let words = line.words.map(\.text)
        if let marker = ListMarker(words), words.count > 1,
            marker.form != .dash || line.box.left != before.box.left || ListMarker(before.words.map(\.text)) != nil
        {
            if marker.form == .bullet || endsSentence(before) || ListMarker(before.words.map(\.text)) != nil
                || isShort(before, line)
            {
                return true
            }
        }
        let pitch = line.middle - before.middle
        if pitch > max(1.3 * step, step + 0.35 * size), pitch > 1.5 * body * 0.9 || step == 0 { return true }
        if before.block != line.block, pitch > 1.15 * step { return true }
        // The first line of a paragraph may be indented; one that goes on after a list's marker is not.
        let indent = line.box.left - before.box.left
        if indent > 0.9 * size, indent < 6 * size, ListMarker(before.words.map(\.text)) == nil, endsSentence(before) {
            return true
        }
        return isShort(before, line) && (endsSentence(before) || right - before.box.right > 0.4 * (right - left))
            && !(line.text.first?.isLowercase ?? false)
    }

    private func endsSentence(_ line: PlacedLine) -> Bool { line.text.last.map { ".!?:;".contains($0) } ?? false }

    /// The next line's first word would have fitted into it.
    private func isShort(_ before: PlacedLine, _ line: PlacedLine) -> Bool {
        right - before.box.right > (line.words.first?.box.width ?? 0) + 1.2 * line.size
    }
}
