/// What is on a page besides its own text: for instance a scanned letter under a stamp with the date of receipt.
package enum Remainder {
    /// A page is read again only if at least this share of its dark area is not covered by its own words. If less is left, the scanner's
    /// OCR has read the page before.
    package static let worthReading = 0.4
    /// An engine that reads words in a picture without text is less confident than this.
    package static let leastConfidence = 60.0

    /// The page's picture with its own words painted over, and the share of the dark area that is left. 0: nothing is left.
    package static func of(_ raster: Raster, _ own: PageText, on page: Inspection.Page) -> (
        raster: Raster, share: Double
    ) {
        let (width, height) = (raster.width, raster.height)
        let (across, down) = (Double(width) / page.width, Double(height) / page.height)
        var pixels = Array(raster.pixels)
        let paper = level(pixels)
        let before = ink(pixels, paper)
        for word in own.words where !isTooLarge(word, on: page) {
            let left = min(width, max(0, Int((word.box.left - 1) * across)))
            let right = min(width, max(left, Int(((word.box.right + 1) * across).rounded(.up))))
            let top = min(height, max(0, Int((word.box.top - 1) * down)))
            let bottom = min(height, max(top, Int(((word.box.bottom + 1) * down).rounded(.up))))
            guard left < right, top < bottom else { continue }
            // As light as the surroundings of the word: an edge would look like a line.
            let (above, below) = (top * width, (bottom - 1) * width)
            var rim = Array(pixels[above + left..<above + right])
            rim += pixels[below + left..<below + right]
            rim.sort()
            let ground = rim[rim.count / 2]
            for row in top..<bottom {
                for column in left..<right { pixels[row * width + column] = ground }
            }
        }
        let after = ink(pixels, paper)
        let isEmpty = after * 2000 < pixels.count
        var masked = raster
        masked.pixels = pixels[...]
        return (masked, before == 0 || isEmpty ? 0 : Double(after) / Double(before))
    }

    /// A box that no word of so few letters has: what lies in it is not this word alone.
    private static func isTooLarge(_ word: Word, on page: Inspection.Page) -> Bool {
        let share = word.box.width * word.box.height / (page.width * page.height)
        return share > 0.05 * Double(max(1, word.text.count)) || share > 0.4
    }

    private static func level(_ pixels: [UInt8]) -> Int {
        var counts = [Int](repeating: 0, count: 256)
        for pixel in pixels { counts[Int(pixel)] += 1 }
        return counts.indices.max { counts[$0] < counts[$1] } ?? 255
    }

    private static func ink(_ pixels: [UInt8], _ paper: Int) -> Int {
        var count = 0
        for pixel in pixels where Int(pixel) < paper - 60 || Int(pixel) > paper + 90 { count += 1 }
        return count
    }
}

extension PageText {
    /// Joins the page's own text with the text that was read in the picture. In points of the page.
    package init(own: PageText, read: PageText, on page: Inspection.Page) {
        self = own
        (width, height) = (page.width, page.height)
        let scale = page.width / read.width
        var found: [Block] = []
        for block in read.blocks {
            var some = block
            some.isOwn = false
            some.lines = block.lines.compactMap { line in
                var line = line.scaled(by: scale)
                line.words.removeAll { $0.confidence < Remainder.leastConfidence }
                return line.words.isEmpty ? nil : line
            }
            if !some.lines.isEmpty { found.append(some) }
        }
        found = SameWords(own: own.words, read: found).others
        guard !found.isEmpty else { return }
        origin = .mixed
        preparation = read.preparation
        for index in blocks.indices { blocks[index].isOwn = true }
        if flow != nil { flow = ([own.text] + found.map(\.text)).joined(separator: "\n\n") }
        blocks += found
        let letters = words.reduce(0) { $0 + $1.text.count }
        confidence = words.reduce(0) { $0 + $1.confidence * Double($1.text.count) } / Double(max(1, letters))
    }

    /// The text that a copy needs as a layer, because the page does not contain it. nil: none.
    package var layer: PageText? {
        switch origin {
        case .own: return nil
        case .read: return self
        case .mixed:
            var read = self
            read.flow = nil
            read.blocks.removeAll { $0.isOwn == true }
            return read
        }
    }
}
