/// Makes the paper of a scanned page white, and takes specks away. Its ink keeps its colours.
package struct PaperCleaner {
    package private(set) var pixels: [UInt8]
    private let width: Int
    private let height: Int
    private let components: Int
    private let dpi: Double

    package init(_ raster: Raster) {
        (width, height, components, dpi) = (raster.width, raster.height, raster.head.components, raster.head.dpi)
        pixels = Array(raster.pixels)
    }

    package mutating func clean() {
        whiten()
        removeSpecks()
    }

    /// The level of the paper in each tile: nine of ten pixels are darker or as light.
    private func paper(_ tile: Int, _ across: Int, _ down: Int) -> [UInt8] {
        var levels = [UInt8](repeating: 255, count: across * down * components)
        var whole = [[Int]](repeating: [Int](repeating: 0, count: 256), count: components)
        pixels.withUnsafeBufferPointer { pixels in
            for y in 0..<down {
                for x in 0..<across {
                    for component in 0..<components {
                        var counts = [Int](repeating: 0, count: 256)
                        for row in stride(from: y * tile, to: min(height, (y + 1) * tile), by: 2) {
                            for column in stride(from: x * tile, to: min(width, (x + 1) * tile), by: 2) {
                                counts[Int(pixels[(row * width + column) * components + component])] += 1
                            }
                        }
                        levels[(y * across + x) * components + component] = Self.level(counts, share: 0.9)
                        for value in 0..<256 { whole[component][value] += counts[value] }
                    }
                }
            }
        }
        // A tile within a picture has no paper; there the paper is that of the page.
        let usual = whole.map { Self.level($0, share: 0.8) }
        for tile in 0..<across * down {
            let isDark = (0..<components).contains { Int(levels[tile * components + $0]) + 50 < Int(usual[$0]) }
            if isDark { for component in 0..<components { levels[tile * components + component] = usual[component] } }
        }
        return levels
    }

    private static func level(_ counts: [Int], share: Double) -> UInt8 {
        let wanted = Int(Double(counts.reduce(0, +)) * share)
        var sum = 0
        for value in 0..<256 {
            sum += counts[value]
            if sum > wanted { return UInt8(max(64, value)) }
        }
        return 255
    }

    private mutating func whiten() {
        let tile = max(16, Int(dpi / 6))
        let (across, down) = ((width + tile - 1) / tile, (height + tile - 1) / tile)
        let levels = paper(tile, across, down)
        func at(_ x: Int, _ y: Int, _ component: Int) -> Int {
            Int(levels[(min(max(y, 0), down - 1) * across + min(max(x, 0), across - 1)) * components + component])
        }
        for row in 0..<height {
            // Between the middles of tiles, in 256ths.
            let y = (row * 256 / tile) - 128
            let (top, below) = (y >> 8, y & 255)
            for column in 0..<width {
                let x = (column * 256 / tile) - 128
                let (left, beside) = (x >> 8, x & 255)
                let start = (row * width + column) * components
                var least = 255
                for component in 0..<components {
                    let upper = at(left, top, component) * (256 - beside) + at(left + 1, top, component) * beside
                    let lower =
                        at(left, top + 1, component) * (256 - beside) + at(left + 1, top + 1, component) * beside
                    let level = max(64, (upper * (256 - below) + lower * below) >> 16)
                    let value = min(255, Int(pixels[start + component]) * 255 / level)
                    pixels[start + component] = UInt8(value)
                    least = min(least, value)
                }
                guard least > 170 else { continue }
                // What is nearly white becomes white.
                let more = least >= 220 ? 255 : 170 + (least - 170) * 85 / 50
                for component in 0..<components {
                    pixels[start + component] = UInt8(max(more, Int(pixels[start + component])))
                }
            }
        }
    }

    /// A speck is ink of few pixels: fewer than those of a full stop.
    private mutating func removeSpecks() {
        let most = max(2, Int(dpi * dpi / 9000))
        let (seen, large, small) = (UInt8(1), UInt8(2), UInt8(3))
        // 0: paper; else ink, and what is known of it.
        var ink = [UInt8](repeating: 0, count: width * height)
        for at in 0..<width * height {
            ink[at] = (0..<components).contains { pixels[at * components + $0] < 170 } ? seen : 0
        }
        func around(_ at: Int, _ body: (Int) -> Void) {
            let (x, y) = (at % width, at / width)
            for row in max(0, y - 1)...min(height - 1, y + 1) {
                for column in max(0, x - 1)...min(width - 1, x + 1) { body(row * width + column) }
            }
        }
        var group: [Int] = []
        for start in 0..<width * height where ink[start] == seen {
            group.removeAll(keepingCapacity: true)
            group.append(start)
            ink[start] = small
            var (next, isLarge) = (0, false)
            while next < group.count, !isLarge {
                around(group[next]) { other in
                    if ink[other] == large { isLarge = true }
                    if ink[other] == seen {
                        ink[other] = small
                        group.append(other)
                    }
                }
                next += 1
                if group.count > most { isLarge = true }
            }
            if isLarge { for at in group { ink[at] = large } }
        }
        for at in 0..<width * height where ink[at] == small {
            around(at) { other in
                guard ink[other] != large else { return }
                for component in 0..<components { pixels[other * components + component] = 255 }
            }
        }
    }
}
