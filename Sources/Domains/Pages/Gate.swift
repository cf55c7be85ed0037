/// Decides how a page's picture is prepared, and whether another try is worth it. An engine's own confidence is not enough for that: it is
/// sure of the words that it has seen, and says nothing of those it has not.
package enum Gate {
    /// How unquiet the paper is, in grey levels: the median of how far a pixel is from the mean of its neighbours in the row.
    package static func noise(_ pixels: ArraySlice<UInt8>, width: Int, height: Int) -> Double {
        guard width >= 16, height >= 16, pixels.count >= width * height else { return 0 }
        var counts = [Int](repeating: 0, count: 256)
        var total = 0
        let (down, across) = (max(1, height / 128), max(3, width / 256))
        pixels.withUnsafeBufferPointer { pixels in
            for row in stride(from: down / 2, to: height, by: down) {
                for column in stride(from: 1, to: width - 1, by: across) {
                    let at = row * width + column
                    let neighbours = (Int(pixels[at - 1]) + Int(pixels[at + 1])) / 2
                    counts[abs(Int(pixels[at]) - neighbours)] += 1
                    total += 1
                }
            }
        }
        var below = 0
        for (level, count) in counts.enumerated() {
            // Between the levels, so that a threshold is no cliff.
            if below + count >= total / 2 { return Double(level) + Double(total / 2 - below) / Double(max(1, count)) }
            below += count
        }
        return 0
    }

    package static let noisy = 5.0

    /// A page so unquiet is smoothed at once: its plain picture would be read for nothing.
    package static func isNoisy(_ noise: Double) -> Bool { noise >= noisy }

    /// How small a picture may be made at most. At 200 dpi the engine reads print as well as at 300, and every pixel more costs it time.
    package static func leastScale(dpi: Double) -> Double {
        dpi >= 1.2 * Raster.caps.usual ? Raster.caps.usual / dpi : 1
    }

    /// By how much a picture is made smaller for its first reading: the engine needs letters of a dozen pixels, so small print is left as it is.
    package static func scale(dpi: Double, letterHeight: @autoclosure () -> Double?) -> Double {
        let least = leastScale(dpi: dpi)
        guard least < 1, let letterHeight = letterHeight() else { return 1 }
        let scale = max(least, 13 / letterHeight)
        return scale > 0.85 ? 1 : scale
    }

    /// What a reading is judged by.
    package struct Reading: Sendable, Equatable {
        package var words: Int
        package var letters: Int
        package var confidence: Double
        /// Of what is dark, the share that is in no word.
        package var inkOutside: Double

        package init(words: Int, letters: Int, confidence: Double, inkOutside: Double) {
            (self.words, self.letters, self.confidence, self.inkOutside) = (words, letters, confidence, inkOutside)
        }

        package var merit: Double { Double(letters) * confidence }
    }

    package static func wantsAnother(_ reading: Reading) -> Bool {
        guard reading.words > 0 else { return reading.inkOutside > 0.5 }
        return reading.confidence < 75 || (reading.inkOutside > 0.45 && reading.confidence < 88)
    }
}
