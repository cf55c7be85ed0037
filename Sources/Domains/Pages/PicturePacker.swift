/// Brings pixels into the form that takes the least room.
package enum PicturePacker {
    /// Whether red, green and blue are the same nearly everywhere.
    package static func isGrey(_ pixels: some RandomAccessCollection<UInt8>) -> Bool {
        var (colored, count, at) = (0, 0, pixels.startIndex)
        while pixels.distance(from: at, to: pixels.endIndex) >= 3 {
            let (red, green, blue) = (
                pixels[at], pixels[pixels.index(after: at)], pixels[pixels.index(at, offsetBy: 2)]
            )
            if max(red, green, blue) - min(red, green, blue) > 24 { colored += 1 }
            count += 1
            at = pixels.index(at, offsetBy: 3)
        }
        return colored * 5000 <= count
    }

    package static func grey(_ pixels: some RandomAccessCollection<UInt8>) -> [UInt8] {
        let pixels = Array(pixels)
        return (0..<pixels.count / 3).map { at in
            let sum = Int(pixels[at * 3]) * 77 + Int(pixels[at * 3 + 1]) * 150 + Int(pixels[at * 3 + 2]) * 29
            return UInt8(sum >> 8)
        }
    }

    /// Whether a grey picture is of black and white, but for the edges of its letters.
    package static func isBlackAndWhite(_ pixels: [UInt8], dpi: Double) -> Bool {
        guard dpi >= 200 else { return false }
        return pixels.reduce(0) { $0 + ($1 > 60 && $1 < 200 ? 1 : 0) } * 33 < pixels.count
    }

    /// A bit for each pixel; 1 is white.
    package static func bits(_ pixels: [UInt8], width: Int, height: Int) -> [UInt8] {
        let stride = (width + 7) / 8
        var rows = [UInt8](repeating: 0, count: stride * height)
        for row in 0..<height {
            for column in 0..<width where pixels[row * width + column] >= 150 {
                rows[row * stride + column / 8] |= 0x80 >> UInt8(column % 8)
            }
            // Beyond its end a row is white.
            if width % 8 != 0 { rows[row * stride + stride - 1] |= 0xff >> UInt8(width % 8) }
        }
        return rows
    }

    /// Rows as PNG predicts them: each begins with how it is written, and holds the differences that are smallest.
    ///
    /// - Parameter stride: the bytes of a row
    /// - Parameter step: the bytes of a pixel, at least 1
    package static func predicted(_ bytes: some RandomAccessCollection<UInt8>, stride: Int, step: Int) -> [UInt8] {
        let bytes = Array(bytes)
        let rows = bytes.count / max(1, stride)
        var out: [UInt8] = []
        out.reserveCapacity(rows * (stride + 1))
        var candidates = [[UInt8]](repeating: [UInt8](repeating: 0, count: stride), count: 5)
        bytes.withUnsafeBufferPointer { bytes in
            for row in 0..<rows {
                var sums = [Int](repeating: 0, count: 5)
                let start = row * stride
                for at in 0..<stride {
                    let value = bytes[start + at]
                    let left = at >= step ? Int(bytes[start + at - step]) : 0
                    let up = row > 0 ? Int(bytes[start + at - stride]) : 0
                    let corner = row > 0 && at >= step ? Int(bytes[start + at - stride - step]) : 0
                    let guesses = (0, left, up, (left + up) / 2, paeth(left, up, corner))
                    take(0, value, guesses.0)
                    take(1, value, guesses.1)
                    take(2, value, guesses.2)
                    take(3, value, guesses.3)
                    take(4, value, guesses.4)
                    func take(_ way: Int, _ value: UInt8, _ guess: Int) {
                        let rest = value &- UInt8(truncatingIfNeeded: guess)
                        candidates[way][at] = rest
                        sums[way] += Int(min(rest, 0 &- rest))
                    }
                }
                let best = sums.indices.min { sums[$0] < sums[$1] } ?? 0
                out.append(UInt8(best))
                out += candidates[best]
            }
        }
        return out
    }

    private static func paeth(_ left: Int, _ up: Int, _ corner: Int) -> Int {
        let guess = left + up - corner
        let (a, b, c) = (abs(guess - left), abs(guess - up), abs(guess - corner))
        return a <= b && a <= c ? left : b <= c ? up : corner
    }

    /// Half as large or less, by the mean of the pixels that become one.
    package static func reduced(
        _ pixels: some RandomAccessCollection<UInt8>, width: Int, height: Int, components: Int, to scale: Double
    ) -> (pixels: [UInt8], width: Int, height: Int) {
        let pixels = Array(pixels)
        let (across, down) = (max(1, Int(Double(width) * scale)), max(1, Int(Double(height) * scale)))
        var out = [UInt8](repeating: 0, count: across * down * components)
        for row in 0..<down {
            let (top, bottom) = (row * height / down, max(row * height / down + 1, (row + 1) * height / down))
            for column in 0..<across {
                let (left, right) = (
                    column * width / across, max(column * width / across + 1, (column + 1) * width / across)
                )
                for component in 0..<components {
                    var sum = 0
                    for y in top..<bottom {
                        for x in left..<right { sum += Int(pixels[(y * width + x) * components + component]) }
                    }
                    out[(row * across + column) * components + component] = UInt8(
                        sum / ((bottom - top) * (right - left)))
                }
            }
        }
        return (out, across, down)
    }
}
