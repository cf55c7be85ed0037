/// A place on a page, in the pixels or points of the page as it is read, from its upper left corner.
package struct Box: Codable, Sendable, Equatable {
    package var left: Double
    package var top: Double
    package var right: Double
    package var bottom: Double

    package init(_ left: Double, _ top: Double, _ right: Double, _ bottom: Double) {
        (self.left, self.top, self.right, self.bottom) = (left, top, right, bottom)
    }

    package var width: Double { right - left }
    package var height: Double { bottom - top }
    package var isSound: Bool {
        [left, top, right, bottom].allSatisfy { $0.isFinite && abs($0) <= 1e6 } && left <= right && top <= bottom
    }

    package func scaled(by factor: Double) -> Box {
        Box(left * factor, top * factor, right * factor, bottom * factor)
    }

    package func union(_ other: Box) -> Box {
        Box(min(left, other.left), min(top, other.top), max(right, other.right), max(bottom, other.bottom))
    }
}

package struct Word: Codable, Sendable, Equatable {
    package var text: String
    package var box: Box
    /// From 0 to 100; a page's own text has 100.
    package var confidence: Double

    package init(_ text: String, _ box: Box, confidence: Double = 100) {
        self.text = text
        self.box = box
        self.confidence = confidence
    }
}

/// Words of one line.
package struct TextLine: Codable, Sendable, Equatable {
    package var words: [Word]
    /// The height of the baseline at the left end and at the right: a page may be skewed.
    package var baseline: [Double]

    package init(_ words: [Word], baseline: [Double] = []) {
        self.words = words
        self.baseline = baseline
    }

    package var box: Box {
        words.dropFirst().reduce(words.first?.box ?? Box(0, 0, 0, 0)) { $0.union($1.box) }
    }

    package var text: String { words.map(\.text).joined(separator: " ") }

    package func scaled(by factor: Double) -> TextLine {
        var line = self
        for index in words.indices { line.words[index].box = words[index].box.scaled(by: factor) }
        line.baseline = baseline.map { $0 * factor }
        return line
    }
}

package struct Block: Codable, Sendable, Equatable {
    package enum Form: String, Codable, Sendable {
        case text, table
    }

    package var form = Form.text
    package var lines: [TextLine]
    /// On a mixed page: whether the text comes from the file.
    package var isOwn: Bool?

    package init(_ lines: [TextLine], form: Form = .text) {
        self.lines = lines
        self.form = form
    }

    package var box: Box {
        lines.dropFirst().reduce(lines.first?.box ?? Box(0, 0, 0, 0)) { $0.union($1.box) }
    }

    package var text: String { lines.map(\.text).joined(separator: "\n") }

    package func scaled(by factor: Double) -> Block {
        var block = self
        block.lines = lines.map { $0.scaled(by: factor) }
        return block
    }
}

/// The text of a page, with its places.
package struct PageText: Codable, Sendable, Equatable {
    package enum Origin: String, Codable, Sendable {
        /// From the file.
        case own
        case read
        /// Some blocks come from the file, others from OCR.
        case mixed
    }

    package var origin: Origin
    /// The size that the boxes refer to: that of the page turned upright.
    package var width: Double
    package var height: Double
    package var dpi: Double
    /// How far the shown page must be turned clockwise to be upright.
    package var rotation = 0
    /// By how many degrees it was then turned clockwise about its middle, to level its lines. The boxes refer to that page.
    package var skew = 0.0
    package var blocks: [Block]
    /// The mean over the words, weighted by their length.
    package var confidence = 100.0
    /// How the picture was prepared: plain, smoothed or cleaned.
    package var preparation = "plain"
    /// The file's own text flow, kept where it is better than the order of the boxes.
    package var flow: String?
    /// Ruled lines, looked for where segments of lines stand below each other.
    package var rulings: Rulings?
    /// The bar codes and their like on it; nil: none were found, or none were looked for.
    package var codes: [PageCode]?
    /// The models it was read with, where they were not given but found.
    package var languages: [String]?
    /// Models that it needs, and that were not installed.
    package var missing: [String]?
    /// Why the page's own text does not count, where it has some that does not.
    package var dropped: Dropped?

    package enum Dropped: String, Codable, Sendable {
        /// It was asked for.
        case force
        /// It cannot be what the page shows.
        case junk
    }

    package init(origin: Origin, width: Double, height: Double, dpi: Double, blocks: [Block]) {
        self.origin = origin
        self.width = width
        self.height = height
        self.dpi = dpi
        self.blocks = blocks
    }

    /// An empty page, if it is known to be one: programs that draw leave out what they do not understand.
    package init(blank raster: Raster, of page: Inspection.Page) throws(DocumentRefusal) {
        if page.pictures > 0, let errors = raster.head.errors, errors > 0 {
            throw DocumentRefusal(
                .undrawable,
                "nothing of the page could be drawn, and the program that draws found \(errors) errors in it")
        }
        self.init(
            origin: .read, width: Double(raster.width), height: Double(raster.height), dpi: raster.head.dpi, blocks: [])
    }

    package var words: [Word] { blocks.flatMap(\.lines).flatMap(\.words) }
    package var wordCount: Int { blocks.reduce(0) { $0 + $1.lines.reduce(0) { $0 + $1.words.count } } }
    package var text: String { flow ?? blocks.map(\.text).joined(separator: "\n\n") }

    package static let mostWords = 50_000
    package static let mostText = 4_000_000

    package func check() throws(DocumentRefusal) {
        var letters = flow?.utf8.count ?? 0
        guard wordCount <= Self.mostWords else {
            throw DocumentRefusal(.quota, "the page has more than \(Self.mostWords) words")
        }
        guard width > 0, height > 0, width <= 100_000, height <= 100_000, dpi > 0, dpi <= 2400,
            [0, 90, 180, 270].contains(rotation), abs(skew) <= 45, (0...100).contains(confidence),
            preparation.utf8.count <= 40,
            ((languages ?? []) + (missing ?? [])).count <= 16,
            ((languages ?? []) + (missing ?? [])).allSatisfy({ $0.utf8.count <= 40 })
        else { throw DocumentRefusal(.internal, "the engine said something impossible about a page") }
        for word in words {
            letters += word.text.utf8.count
            guard word.box.isSound, (0...100).contains(word.confidence) else {
                throw DocumentRefusal(.internal, "the engine said something impossible about a word")
            }
        }
        if let rulings {
            guard rulings.across.count + rulings.down.count <= Rulings.most,
                rulings.across.allSatisfy(\.isSound), rulings.down.allSatisfy(\.isSound)
            else { throw DocumentRefusal(.internal, "the engine said something impossible about ruled lines") }
        }
        guard letters <= Self.mostText else { throw DocumentRefusal(.quota, "the page has too much text") }
        for line in blocks.flatMap(\.lines) {
            guard line.baseline.isEmpty || line.baseline.count == 2, line.baseline.allSatisfy({ abs($0) <= 1e6 }) else {
                throw DocumentRefusal(.internal, "the engine said something impossible about a line")
            }
        }
    }
}
