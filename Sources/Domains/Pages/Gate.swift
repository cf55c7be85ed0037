/// Decides how a page's picture is prepared, and whether another try is worthwhile. An engine's own confidence is not enough for that: it
/// rates the words that it found, and says nothing about words that it missed.
package enum Gate {
    /// The noise of the paper, in grey levels: the median distance of a pixel from the mean of its neighbours in the row.
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
            // Interpolated between levels, so that a small change cannot jump over a threshold.
            if below + count >= total / 2 { return Double(level) + Double(total / 2 - below) / Double(max(1, count)) }
            below += count
        }
        return 0
    }

    package static let noisy = 5.0

    /// A page this noisy is smoothed at once: reading its plain picture would be a waste.
    package static func isNoisy(_ noise: Double) -> Bool { noise >= noisy }

    /// Whether many single pixels differ from all pixels around them: salt and pepper, which the noise above does not see.
    package static func isSpeckled(_ pixels: ArraySlice<UInt8>, width: Int, height: Int) -> Bool {
        guard width >= 16, height >= 16, pixels.count >= width * height else { return false }
        var (specks, total) = (0, 0)
        let (down, across) = (max(1, height / 128), max(3, width / 256))
        pixels.withUnsafeBufferPointer { pixels in
            for row in stride(from: 1 + down / 2, to: height - 1, by: down) {
                for column in stride(from: 1, to: width - 1, by: across) {
                    let at = row * width + column
                    let level = Int(pixels[at])
                    let around = (
                        Int(pixels[at - 1]), Int(pixels[at + 1]), Int(pixels[at - width]), Int(pixels[at + width])
                    )
                    let lowest = min(around.0, around.1, around.2, around.3)
                    let highest = max(around.0, around.1, around.2, around.3)
                    total += 1
                    if level < lowest - 70 || level > highest + 70 { specks += 1 }
                }
            }
        }
        return specks * 200 > total
    }

    /// The smallest allowed scale of a picture. At 200 dpi the engine reads print as well as at 300, and every further pixel costs time.
    package static func leastScale(dpi: Double) -> Double {
        dpi >= 1.2 * Raster.caps.usual ? Raster.caps.usual / dpi : 1
    }

    /// The letters of a picture with fewer pixels to the inch may be too small for the engine.
    private static let coarse = 140.0

    /// The scale of a picture for its first reading: the engine needs letters of a dozen pixels, so small print keeps its size, and that of a coarse
    /// picture grows.
    package static func scale(dpi: Double, letterHeight: @autoclosure () -> Double?) -> Double {
        if dpi < coarse {
            guard let letterHeight = letterHeight(), letterHeight < 11 else { return 1 }
            return min(2, 13 / letterHeight)
        }
        let least = leastScale(dpi: dpi)
        guard least < 1, let letterHeight = letterHeight() else { return 1 }
        let scale = max(least, 13 / letterHeight)
        return scale > 0.85 ? 1 : scale
    }

    /// The measures by which a reading is judged.
    package struct Reading: Sendable, Equatable {
        package var words: Int
        package var letters: Int
        package var confidence: Double
        /// The share of the dark area that lies in no word.
        package var inkOutside: Double

        package init(words: Int, letters: Int, confidence: Double, inkOutside: Double) {
            (self.words, self.letters, self.confidence, self.inkOutside) = (words, letters, confidence, inkOutside)
        }

        package var merit: Double { Double(letters) * confidence }
    }

    /// A page narrower than this, in inches, has one column: a receipt.
    package static let narrow = 4.5

    /// Whether a narrow page, such as a receipt, may have a column that the engine has passed over. Read as one block, it has rows.
    package static func mayLackColumn(_ reading: Reading, inches: Double) -> Bool {
        reading.words > 0 && inches < narrow && reading.inkOutside > 0.12
    }

    /// Whether a page may lie in another way than it was read: its words are hardly words, or stand on their side.
    package static func mayLieOtherwise(_ words: [Word], _ reading: Reading) -> Bool {
        reading.letters >= 20 && !words.isEmpty && (reading.confidence < 60 || areOnTheirSide(words))
    }

    /// Whether it lies as it was turned to read a part of it.
    package static func lies(
        as words: [Word], _ part: Reading, notAs before: [Word], _ reading: Reading
    ) -> Bool {
        guard part.letters >= 20, part.confidence >= 70, !areOnTheirSide(words) else { return false }
        return part.confidence >= reading.confidence + (areOnTheirSide(before) ? -10 : 20)
    }

    /// An engine reads lines that run upward, but their places say that the page lies on its side.
    private static func areOnTheirSide(_ words: [Word]) -> Bool {
        let long = words.filter { $0.text.count >= 3 }
        return long.count >= 5 && long.count { $0.box.height > $0.box.width } * 2 > long.count
    }

    package static func wantsAnother(_ reading: Reading) -> Bool {
        guard reading.words > 0 else { return reading.inkOutside > 0.5 }
        return reading.confidence < 75 || (reading.inkOutside > 0.45 && reading.confidence < 88)
    }
}
