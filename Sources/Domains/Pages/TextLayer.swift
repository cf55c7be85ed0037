import Glibc

/// Invisible words that can be searched, selected and copied; the visible text is in the picture below.
package struct TextLayer: Sendable {
    /// A code for each character that occurs, from 1: two bytes in a text, and an empty glyph.
    private var codes: [Unicode.Scalar: Int] = [:]
    /// Those of several characters that are shown as one.
    private var joined: [String: Int] = [:]
    private var order: [String] = []
    private let directions: TextDirections

    package init(_ directions: TextDirections = .leftToRight) { self.directions = directions }

    package static let fontName = "MillraceLayer"

    private mutating func code(_ unit: String) -> Int? {
        let scalars = unit.unicodeScalars
        let single = scalars.count == 1 ? scalars.first : nil
        if let code = single.map({ codes[$0] }) ?? joined[unit] { return code }
        guard order.count < 65_000 else { return nil }
        order.append(unit)
        if let single { codes[single] = order.count } else { joined[unit] = order.count }
        return order.count
    }

    private mutating func string(_ units: [String]) -> String {
        var string = ""
        for unit in units {
            guard let code = code(unit) else { continue }
            let digits = String(code, radix: 16)
            string += String(repeating: "0", count: 4 - digits.count) + digits
        }
        return string
    }

    /// Programs that extract a page's text see two words where the gap is more than a fifth of a letter's height.
    fileprivate static let gap = 0.22

    /// A word as it was drawn.
    private struct Placed {
        var left: Double
        var right: Double
        var base: Double
        var size: Double

        /// Where the next word may begin. At about the same height, and not far left of this one, it would be taken for a part of this
        /// word: on a poor scan words lie on each other.
        func clear(_ next: Double, _ base: Double) -> Double {
            abs(base - self.base) < 0.55 * size && next > left - 0.25 * size
                ? max(next, right + TextLayer.gap * size) : next
        }
    }

    /// The drawing of a page's words. A letter is half as wide as high, and is stretched until its word has its width, or the width that
    /// the next word leaves.
    ///
    /// - Parameter isAskew: the page is shown as askew as it was. Then each word lies level in its place: programs that extract a page's text
    ///   take a word apart where its letters stand at different heights.
    package mutating func content(
        _ text: PageText, on page: Inspection.Page, isPixels: Bool, dpi: Double, isAskew: Bool = false
    ) -> String {
        let skew = isAskew && text.skew != 0 ? Skew(text) : nil
        let map = Map(text, page, isPixels: isPixels, dpi: dpi)
        let isNarrow = text.dpi > 0 && text.width < Gate.narrow * text.dpi
        var content = "q BT 3 Tr /\(Self.fontName) 1 Tf\n"
        let lines = text.blocks.flatMap(\.lines)
        var before: Placed?
        for (line, found) in zip(lines, LetterSizes.of(lines)) {
            let height = found > 0 ? found : max(1, text.height / 100)
            let box = line.box
            let shown = ShownWords(line, directions)?.pieces
            // Otherwise pdf.js ends a line at each word, or joins its last with the next line's first, and others take it apart where its
            // words lie at different heights. So it lies level, as on a page that is a little askew.
            let isLevelled = line.baseline.count == 2 && !line.isSteep
            var pieces = shown ?? ShownWords.asRead(line)
            // Where each word lies at a height of its own, readers take them in the order in which they come, unless they see a line in them.
            let isApart = shown != nil && skew?.isLittle == false
            if isApart { pieces = pieces.sorted { $0.word < $1.word }.map(\.alone) }
            let size = isApart ? skew?.size(of: line.words, atMost: height) ?? height : height
            for (index, piece) in pieces.enumerated() where piece.letters > 0 {
                let word = line.words[piece.word].box
                let base =
                    isLevelled
                    ? (line.baseline[0] + line.baseline[1]) / 2 : Self.base(line, at: word, in: box, height)
                let left = before.map { $0.clear(word.left, base) } ?? word.left
                let room =
                    index == pieces.count - 1 || isApart
                    ? .infinity : line.words[pieces[index + 1].word].box.left - left - Self.gap * height
                // To these programs a wide gap parts two columns, and they read one after the other. On a receipt it parts a price from its row.
                let isFilled = isNarrow && room.isFinite && room > word.width + height
                let least = isFilled ? room : max(word.width, 0.02 * height)
                let width = min(least, max(room, least / 2))
                let stretch = width / (Double(piece.letters) * 0.5 * size) * 100
                if let skew {
                    let place = skew.place(left, width, base, line: box)
                    // Lower letters lie in the middle of their ink.
                    content += map.matrix(x: place.left, y: place.base - (height - size) / 2, size: size, slope: 0)
                } else {
                    content += map.matrix(x: left, y: base, size: height, slope: isLevelled ? 0 : line.slope)
                }
                content += " Tm \(short(stretch)) Tz <\(string(piece.units))> Tj\n"
                before = Placed(left: left, right: left + width, base: base, size: height)
            }
        }
        return content + "ET Q\n"
    }

    /// Programs that extract text look for words at one height. So those of a line that bends lie at the height of most of them, and some lie
    /// off their ink.
    private static func base(_ line: TextLine, at word: Box, in box: Box, _ height: Double) -> Double {
        guard line.baseline.count == 2, box.width > 0 else {
            let bottoms = line.words.map(\.box.bottom).sorted()
            return bottoms[bottoms.count / 2] - height * 0.1
        }
        return line.baseline[0] + (line.baseline[1] - line.baseline[0]) * (word.left - box.left) / box.width
    }

    /// The table that maps codes to characters.
    package var toUnicode: String {
        var text = """
            /CIDInit /ProcSet findresource begin 12 dict begin begincmap
            /CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def
            /CMapName /\(Self.fontName) def /CMapType 2 def
            1 begincodespacerange <0000> <FFFF> endcodespacerange

            """
        for start in stride(from: 0, to: order.count, by: 100) {
            let part = order[start..<min(order.count, start + 100)]
            text += "\(part.count) beginbfchar\n"
            for (offset, unit) in part.enumerated() {
                let units = unit.utf16.map { hex($0) }.joined()
                text += "<\(hex(UInt16(start + offset + 1)))> <\(units)>\n"
            }
            text += "endbfchar\n"
        }
        return text + "endcmap CMapName currentdict /CMap defineresource pop end end\n"
    }

    /// Every code draws one of two glyphs, which are not the one for missing glyphs.
    package var glyphs: [UInt8] {
        [0, 0] + order.flatMap { [0, ShownWords.isMark($0) ? BlankFont.mark : BlankFont.letter] as [UInt8] }
    }

    /// The widths of those that are not as wide as a letter, as a PDF states them.
    package var widths: String {
        let marks = order.indices.filter { ShownWords.isMark(order[$0]) }
        return "[" + marks.map { "\($0 + 1) [0]" }.joined(separator: " ") + "]"
    }

    package var isEmpty: Bool { order.isEmpty }

    private func hex(_ unit: UInt16) -> String {
        let digits = String(unit, radix: 16, uppercase: true)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}

/// Where words of a level page are on the page as askew as it was.
///
/// Programs that extract text look for lines that lie level. So where a page is a little askew, the words of a line lie at one height,
/// and the first and the last may lie up to a line off their ink. Where it is far askew that would be several lines, and each word lies on its
/// ink.
private struct Skew {
    private static let little = 3.0
    let isLittle: Bool

    private let x: Double
    private let y: Double
    private let c: Double
    private let s: Double

    init(_ text: PageText) {
        (x, y) = (text.width / 2, text.height / 2)
        (c, s) = (cos(text.skew * .pi / 180), sin(text.skew * .pi / 180))
        isLittle = abs(text.skew) <= Self.little
    }

    /// How high letters may be, so that no word of a line is beside another: pdfium would take them for a line, and turn their order
    /// around, and MuPDF would join words of two directions.
    func size(of words: [Word], atMost height: Double) -> Double {
        let middles = words.map { ($0.box.left + $0.box.right) / 2 }
        let falls = zip(middles, middles.dropFirst()).map { abs(($0 - $1) * s) }
        return min(height, max(0.1 * height, 0.5 * (falls.min() ?? height)))
    }

    /// The middle of the word stays on its ink, or as high as the middle of its line is.
    func place(
        _ left: Double, _ width: Double, _ base: Double, line: Box
    ) -> (left: Double, base: Double) {
        let (right, down) = (left + width / 2 - x, base - y)
        let across = isLittle ? (line.left + line.right) / 2 - x : right
        return (x + right * c + down * s - width / 2, y - across * s + down * c)
    }
}

extension TextLine {
    fileprivate var isSteep: Bool { abs(slope) >= 0.055 }

    /// The fall of the line for each pixel across. A line so steep was measured wrongly, or it is a speck.
    var slope: Double {
        guard baseline.count == 2, box.width > 0 else { return 0 }
        let slope = (baseline[1] - baseline[0]) / box.width
        return abs(slope) < 0.35 ? slope : 0
    }
}

func short(_ value: Double) -> String {
    guard value.isFinite else { return "0" }
    let scaled = (value * 1000).rounded()
    guard abs(scaled) < 1e15 else { return "0" }
    let (whole, rest) = (Int(scaled) / 1000, abs(Int(scaled)) % 1000)
    let sign = scaled < 0 && whole == 0 ? "-" : ""
    let digits = String(rest)
    return rest == 0 ? "\(sign)\(whole)" : "\(sign)\(whole)." + String(repeating: "0", count: 3 - digits.count) + digits
}

/// Maps the pixels in which a page was read to the coordinates in which its PDF draws.
private struct Map {
    /// x' = a x + c y + e, y' = b x + d y + f
    private var (a, b, c, d, e, f) = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)

    init(_ text: PageText, _ page: Inspection.Page, isPixels: Bool, dpi: Double) {
        // Turned back to the page as it was shown when it was drawn.
        let (w, h) = (text.width, text.height)
        switch text.rotation {
        case 90: (a, b, c, d, e, f) = (0, -1, 1, 0, 0, w)
        case 180: (a, b, c, d, e, f) = (-1, 0, 0, -1, w, h)
        case 270: (a, b, c, d, e, f) = (0, 1, -1, 0, h, 0)
        default: break
        }
        let shown = text.rotation % 180 == 0 ? (w, h) : (h, w)
        // To points, from the lower left corner.
        let points = isPixels ? (page.width * 72 / dpi, page.height * 72 / dpi) : (page.width, page.height)
        append(points.0 / shown.0, 0, 0, -points.1 / shown.1, 0, points.1)
        // From the shown page to the stored page.
        switch page.rotation {
        case 90: append(0, 1, -1, 0, points.1, 0)
        case 180: append(-1, 0, 0, -1, points.0, points.1)
        case 270: append(0, -1, 1, 0, 0, points.0)
        default: break
        }
        append(1, 0, 0, 1, page.left, page.bottom)
    }

    private mutating func append(_ a2: Double, _ b2: Double, _ c2: Double, _ d2: Double, _ e2: Double, _ f2: Double) {
        (a, b, c, d, e, f) = (
            a * a2 + b * c2, a * b2 + b * d2, c * a2 + d * c2, c * b2 + d * d2, e * a2 + f * c2 + e2,
            e * b2 + f * d2 + f2
        )
    }

    func matrix(x: Double, y: Double, size: Double, slope: Double) -> String {
        let length = (1 + slope * slope).squareRoot()
        let (along, down) = (size / length, size * slope / length)
        // A letter's right is the direction of the line; its up is the negative y direction.
        let numbers = [
            a * along + c * down, b * along + d * down, a * down - c * along, b * down - d * along, a * x + c * y + e,
            b * x + d * y + f,
        ]
        return numbers.map(short).joined(separator: " ")
    }
}
