/// Whether a page's picture may have codes on it, seen in a few of its rows and columns: looking for codes takes fifty times as long.
/// Lines of bars show by edges that go on over some millimetres, as those of letters do not; QR codes by their corners.
package enum CodeGate {
    package static func mayHaveCodes(_ raster: Raster) -> Bool {
        let (width, height) = (raster.width, raster.height)
        guard raster.head.components == 1, min(width, height) >= 20 else { return false }
        return raster.pixels.withUnsafeBufferPointer { pixels in
            let rows = Lines(pixels: pixels, count: height, length: width, step: 1, stride: width)
            let columns = Lines(pixels: pixels, count: width, length: height, step: width, stride: 1)
            let dpi = max(72, raster.head.dpi)
            return rows.hasBars(dpi) || columns.hasBars(dpi) || rows.hasCorner(columns, dpi)
        }
    }

    /// The rows of a picture, or its columns.
    private struct Lines {
        let pixels: UnsafeBufferPointer<UInt8>
        let count: Int
        let length: Int
        let step: Int
        let stride: Int
        let dark: Int
        let light: Int

        init(pixels: UnsafeBufferPointer<UInt8>, count: Int, length: Int, step: Int, stride: Int) {
            (self.pixels, self.count, self.length, self.step, self.stride) = (pixels, count, length, step, stride)
            var levels = [Int](repeating: 0, count: 256)
            for at in Swift.stride(from: 0, to: pixels.count, by: 97) { levels[Int(pixels[at])] += 1 }
            let paper = levels.indices.max { levels[$0] < levels[$1] } ?? 255
            (dark, light) = (paper * 5 / 10, paper * 7 / 10)
        }

        /// Where the line changes between paper and ink; it begins as paper.
        func edges(_ line: Int) -> [Int] {
            var edges: [Int] = []
            var isDark = false
            var at = line * stride
            for place in 0..<length {
                let level = Int(pixels[at])
                if isDark ? level > light : level < dark {
                    edges.append(place)
                    isDark.toggle()
                }
                at += step
            }
            return edges
        }

        /// A dozen edges within 15 mm that are at the same place 1 and 2.5 mm further on, but for a small slope.
        func hasBars(_ dpi: Double) -> Bool {
            let (near, far, window) = (max(1, Int(dpi / 25)), max(2, Int(dpi / 10)), Int(dpi * 0.6))
            for line in Swift.stride(from: 0, to: count - far, by: max(2, Int(dpi / 6))) {
                let here = edges(line)
                guard here.count >= 24 else { continue }
                let (middle, end) = (marks(line + near), marks(line + far))
                for slope in -2...2 {
                    let shift = slope * max(1, Int(dpi / 150))
                    var matched: [Int] = []
                    for (index, edge) in here.enumerated() {
                        let kind = UInt8(index % 2 == 0 ? 1 : 2)
                        let (first, last) = (edge + shift * near / far, edge + shift)
                        guard first >= 0, first < length, last >= 0, last < length, middle[first] & kind != 0,
                            end[last] & kind != 0
                        else { continue }
                        matched.append(edge)
                        if matched.count >= 14, edge - matched[matched.count - 14] <= window { return true }
                    }
                }
            }
            return false
        }

        /// For each place, whether an edge into ink (1) or into paper (2) is there or beside it.
        private func marks(_ line: Int) -> [UInt8] {
            var marks = [UInt8](repeating: 0, count: length)
            for (index, edge) in edges(line).enumerated() {
                for place in max(0, edge - 1)...min(length - 1, edge + 1) { marks[place] |= index % 2 == 0 ? 1 : 2 }
            }
            return marks
        }

        /// Ink, paper, ink, paper, ink as 1:1:3:1:1, in both directions.
        func hasCorner(_ across: Lines, _ dpi: Double) -> Bool {
            for line in Swift.stride(from: 0, to: count, by: max(1, Int(dpi / 60))) {
                for middle in middles(line, dpi) {
                    let other = across.edges(middle)
                    if across.corner(in: other, dpi, around: line) { return true }
                }
            }
            return false
        }

        private func middles(_ line: Int, _ dpi: Double) -> [Int] {
            let edges = edges(line)
            guard edges.count >= 6 else { return [] }
            var found: [Int] = []
            for start in Swift.stride(from: 0, through: edges.count - 6, by: 2)
            where Self.isCorner(edges[start...], dpi) {
                found.append((edges[start + 2] + edges[start + 3]) / 2)
            }
            return found
        }

        private func corner(in edges: [Int], _ dpi: Double, around place: Int) -> Bool {
            guard edges.count >= 6 else { return false }
            for start in Swift.stride(from: 0, through: edges.count - 6, by: 2)
            where edges[start + 2] <= place && place <= edges[start + 3] && Self.isCorner(edges[start...], dpi) {
                return true
            }
            return false
        }

        private static func isCorner(_ edges: ArraySlice<Int>, _ dpi: Double) -> Bool {
            let at = edges.startIndex
            let total = edges[at + 5] - edges[at]
            let module = Double(total) / 7
            guard module >= 1.3, Double(total) <= dpi else { return false }
            for (index, share) in [1.0, 1, 3, 1, 1].enumerated() {
                let run = Double(edges[at + index + 1] - edges[at + index])
                guard abs(run - share * module) <= (share == 3 ? 0.35 * run : max(1, 0.5 * module)) else {
                    return false
                }
            }
            return true
        }
    }
}
