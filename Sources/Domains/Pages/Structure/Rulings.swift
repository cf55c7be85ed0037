/// Ruled lines of a page, as thin boxes in the unit of its words.
package struct Rulings: Codable, Sendable, Equatable {
    package var across: [Box]
    package var down: [Box]

    package init(across: [Box] = [], down: [Box] = []) {
        (self.across, self.down) = (across, down)
    }

    package var isEmpty: Bool { across.isEmpty && down.isEmpty }
    /// A page with more has a picture or a pattern, not a table.
    package static let most = 2000

    package func scaled(by factor: Double) -> Rulings {
        Rulings(across: across.map { $0.scaled(by: factor) }, down: down.map { $0.scaled(by: factor) })
    }

    /// Finds long thin runs of pixels that are darker than what is on both sides of them, whatever the paper's colour is there.
    /// `unit`: how many units of the page a pixel is.
    package init(in pixels: [UInt8], width: Int, height: Int, dpi: Double, unit: Double) {
        self.init()
        guard width > 0, height > 0, pixels.count == width * height else { return }
        let least = max(6, Int(dpi / 10))
        let aside = max(2, Int(dpi / 30))
        let contrast = 24
        (across, down) = pixels.withUnsafeBufferPointer { pixels in
            let across = Self.lines(rows: height, columns: width, least: least, thickest: aside) { row, column in
                let at = row * width + column
                let level = Int(pixels[at]) + contrast
                return level < 256 && (row < aside || Int(pixels[at - aside * width]) >= level)
                    && (row + aside >= height || Int(pixels[at + aside * width]) >= level)
            }
            let down = Self.lines(rows: width, columns: height, least: least, thickest: aside) { column, row in
                let at = row * width + column
                let level = Int(pixels[at]) + contrast
                return level < 256 && (column < aside || Int(pixels[at - aside]) >= level)
                    && (column + aside >= width || Int(pixels[at + aside]) >= level)
            }
            return (
                across.map {
                    Box(Double($0.start), Double($0.first), Double($0.end), Double($0.last + 1)).scaled(by: unit)
                },
                down.map {
                    Box(Double($0.first), Double($0.start), Double($0.last + 1), Double($0.end)).scaled(by: unit)
                }
            )
        }
        if across.count + down.count > Self.most { (across, down) = ([], []) }
    }

    /// Runs of neighbouring rows that lie side by side.
    private struct Line {
        var start: Int
        var end: Int
        var first: Int
        var last: Int
    }

    private static func lines(
        rows: Int, columns: Int, least: Int, thickest: Int, isDark: (Int, Int) -> Bool
    ) -> [Line] {
        var done: [Line] = []
        var open: [Line] = []
        for row in 0..<rows {
            var runs: [Line] = []
            var start: Int?
            for column in 0...columns {
                if column < columns, isDark(row, column) {
                    start = start ?? column
                } else if let from = start {
                    if column - from >= least { runs.append(Line(start: from, end: column, first: row, last: row)) }
                    start = nil
                }
            }
            var next: [Line] = []
            var used = Array(repeating: false, count: runs.count)
            var at = 0
            for line in open {
                var line = line
                var isLonger = false
                while at < runs.count, runs[at].end <= line.start { at += 1 }
                var index = at
                while index < runs.count, runs[index].start < line.end {
                    (line.start, line.end) = (min(line.start, runs[index].start), max(line.end, runs[index].end))
                    used[index] = true
                    isLonger = true
                    index += 1
                }
                line.last = isLonger ? row : line.last
                if isLonger { next.append(line) } else { done.append(line) }
            }
            for (index, run) in runs.enumerated() where !used[index] { next.append(run) }
            open = next.sorted { $0.start < $1.start }
            if done.count > 20 * most { return [] }
        }
        return (done + open).filter { $0.last - $0.first < thickest }
    }
}
