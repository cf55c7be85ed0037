/// How far the lines of a reading are from straight and level, by the places of their words: those of a curled page bend, and those of a
/// page that was photographed at an angle spread like a fan.
package struct LineShape: Sendable, Equatable {
    /// How much the slopes of lines differ, in degrees, without the tenth at either end.
    package var spread = 0.0
    /// How far the middle of a line is from its ends, in heights of a word.
    package var bend = 0.0

    package init() {}

    package init(_ lines: [TextLine]) {
        var (slopes, bends): ([Double], [Double]) = ([], [])
        for line in lines where line.words.count >= 6 {
            let third = line.words.count / 3
            let height = Self.median(line.words.map(\.box.height))
            guard height > 0 else { continue }
            let bases = line.words.map { min($0.box.bottom, $0.box.top + 1.3 * height) }
            let left = Self.median(Array(bases.prefix(third)))
            let right = Self.median(Array(bases.suffix(third)))
            let middle = Self.median(Array(bases.dropFirst(third).dropLast(third)))
            let width = line.box.width * 2 / 3
            guard width > 8 * height else { continue }
            slopes.append((right - left) / width * 180 / .pi)
            bends.append((middle - (left + right) / 2) / height)
        }
        guard slopes.count >= 6 else { return }
        slopes.sort()
        spread = slopes[slopes.count * 9 / 10] - slopes[slopes.count / 10]
        bend = abs(Self.median(bends))
    }

    /// Neither is seen on a page that lies flat.
    package var isCurved: Bool { spread > 0.9 || bend > 0.22 }

    private static func median(_ values: [Double]) -> Double {
        values.isEmpty ? 0 : values.sorted()[values.count / 2]
    }
}
