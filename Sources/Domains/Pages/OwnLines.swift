/// A word of a page's own text as it stands there: its letters from the left.
package struct SeenWord: Sendable {
    package var text: String
    package var box: Box
    package var hasSpaceAfter: Bool
    /// The width of each of its scalars; empty where none runs to the left.
    package var widths: [Double]

    package init(_ text: String, _ box: Box, hasSpaceAfter: Bool = true, widths: [Double] = []) {
        (self.text, self.box, self.hasSpaceAfter, self.widths) = (text, box, hasSpaceAfter, widths)
    }
}

/// The lines of a page's own words, which come as they stand, from the left. In a line with words that run to the left, the words and
/// their letters are put in the order in which they are read.
package struct OwnLines: Sendable {
    package private(set) var lines: [TextLine] = []
    /// Whether many words run to the left. Then the text as poppler has it is not theirs.
    package private(set) var isRightToLeft = false
    private let directions: TextDirections

    package init(_ words: [SeenWord], _ directions: TextDirections) {
        self.directions = directions
        guard words.contains(where: { TextDirections.mayRunLeft($0.text) }) else {
            lines = Self.joined(ReadingOrder.lines(of: words.map { Word($0.text, $0.box) }))
            return
        }
        let told = words.compactMap { Part.hasMarksFirst($0.text) }
        // Almost every text with marks after their letters has a word that tells.
        let isUsual = told.count { $0 } >= told.count { !$0 }
        let ligatures = Ligatures(words)
        let parts = Self.attached(
            words.map { Part(ligatures.turned($0), hasMarksFirst: isUsual) }.filter { !$0.letters.isEmpty })
        var left = 0
        for group in ReadingOrder.groups(of: parts.map(\.box)) {
            let members = parts[group]
            guard members.contains(where: \.mayRunLeft) else {
                lines.append(TextLine(members.map(\.word)))
                continue
            }
            let line = TextLine(read(Array(members)))
            left += line.words.count
            if !line.words.isEmpty { lines.append(line) }
        }
        isRightToLeft = left * 5 >= lines.reduce(0) { $0 + $1.words.count }
        lines = Self.joined(lines)
    }

    /// Bullets below each other are a column of their own to poppler, read before the items. Each is put before the line beside it.
    private static func joined(_ lines: [TextLine]) -> [TextLine] {
        let lone = lines.indices.filter { lines[$0].words.count == 1 && ListMarker([lines[$0].text])?.form == .bullet }
        let bullets = Set(lone)
        guard !lone.isEmpty, lone.count * lines.count < 2_000_000 else { return lines }
        var (result, taken) = (lines, Set<Int>())
        for bullet in lone {
            let mark = lines[bullet].words[0]
            let middle = (mark.box.top + mark.box.bottom) / 2
            func gap(_ at: Int) -> Double {
                let box = lines[at].box
                guard !bullets.contains(at), !taken.contains(at),
                    abs((box.top + box.bottom) / 2 - middle) < 0.3 * box.height
                else { return .infinity }
                let runsLeft = TextDirections.runLeft(lines[at].words)
                return runsLeft ? mark.box.left - box.right : box.left - mark.box.right
            }
            let beside = lines.indices.filter { gap($0) >= 0 && gap($0) < 4 * mark.box.height }
            guard let home = beside.min(by: { gap($0) < gap($1) }) else { continue }
            result[home].words.insert(mark, at: 0)
            taken.formUnion([bullet, home])
        }
        return result.indices.filter { !(bullets.contains($0) && taken.contains($0)) }.map { result[$0] }
    }

    /// A letter with its marks.
    private struct Letter {
        var text: String
        var base: Unicode.Scalar
        var box: Box
        var isMark: Bool
        /// Which of the line's parts it is from.
        var part = 0

        /// Whether it says where its word is.
        var counts: Bool { base.properties.isAlphabetic || base.properties.numericType != nil }
    }

    /// A word, or a part of one: some programs draw each letter by itself.
    private struct Part {
        var letters: [Letter] = []
        let box: Box
        let hasSpaceAfter: Bool
        let mayRunLeft: Bool

        /// - Parameter hasMarksFirst: whether marks stand before their letters on this page, for words that do not tell
        init(_ word: SeenWord, hasMarksFirst: Bool) {
            (box, hasSpaceAfter, mayRunLeft) = (word.box, word.hasSpaceAfter, TextDirections.mayRunLeft(word.text))
            let scalars = Array(word.text.unicodeScalars)
            let even = word.box.width / Double(max(1, scalars.count))
            let isMeasured = word.widths.count == scalars.count
            let widths = isMeasured ? word.widths : [Double](repeating: even, count: scalars.count)
            let isReversed = mayRunLeft && (Self.hasMarksFirst(word.text) ?? hasMarksFirst)
            var (x, waiting): (Double, String.UnicodeScalarView) = (word.box.left, .init())
            for (scalar, width) in zip(scalars, widths) {
                defer { x += width }
                if TextDirections.isMark(scalar) { continue }
                if Self.isMark(scalar) {
                    if isReversed {
                        waiting.insert(scalar, at: waiting.startIndex)
                        continue
                    } else if !letters.isEmpty {
                        letters[letters.count - 1].text.unicodeScalars.append(scalar)
                        continue
                    }
                }
                let place = Box(x, word.box.top, max(x, x + width), word.box.bottom)
                let text = ArabicForms.letters(scalar) + String(waiting)
                letters.append(Letter(text: text, base: scalar, box: place, isMark: Self.isMark(scalar)))
                waiting = .init()
            }
            if let base = waiting.first {
                letters.append(Letter(text: String(waiting), base: base, box: word.box, isMark: true))
            }
        }

        /// Some programs write the marks of a letter before it, as they stand from the left, and some after it. nil: the word does not tell.
        static func hasMarksFirst(_ text: String) -> Bool? {
            guard TextDirections.mayRunLeft(text) else { return nil }
            let scalars = text.unicodeScalars.filter { !TextDirections.isMark($0) }
            guard let first = scalars.first, let last = scalars.last, isMark(first) != isMark(last) else { return nil }
            return isMark(first)
        }

        var word: Word { Word(letters.map(\.text).joined(), box) }
        var isMark: Bool { letters.allSatisfy(\.isMark) }

        static func isMark(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.generalCategory == .nonspacingMark }
    }

    /// Marks that were drawn by themselves are put on the letters where they stand.
    private static func attached(_ parts: [Part]) -> [Part] {
        let marks = parts.indices.filter { parts[$0].isMark }
        guard !marks.isEmpty, marks.count * parts.count < 2_000_000 else { return parts }
        var result = parts
        var taken: Set<Int> = []
        for mark in marks {
            let box = parts[mark].box
            let (x, middle) = ((box.left + box.right) / 2, (box.top + box.bottom) / 2)
            // Most stand at the left end of their letter, or a little before it.
            func distance(_ at: Int) -> Double {
                let other = parts[at].box
                guard !parts[at].isMark, other.top <= middle, middle <= other.bottom, x < other.right else {
                    return .infinity
                }
                return x < other.left ? other.left - x : (x - other.left) / 5
            }
            guard let home = parts.indices.min(by: { distance($0) < distance($1) }),
                distance(home) < max(2, 0.3 * box.height)
            else { continue }
            let letter = result[home].letters.lastIndex { $0.box.left - 0.5 <= x } ?? 0
            result[home].letters[letter].text += parts[mark].letters.map(\.text).joined()
            taken.insert(mark)
        }
        return result.indices.filter { !taken.contains($0) }.map { result[$0] }
    }

    /// What stands between words.
    private static let space = Letter(text: " ", base: " ", box: Box(0, 0, 0, 0), isMark: false)

    private func read(_ parts: [Part]) -> [Word] {
        var seen: [Letter] = []
        for (at, part) in parts.enumerated() {
            if at > 0, !Self.isOneWord(parts[at - 1], part) { seen.append(Self.space) }
            for var letter in part.letters {
                letter.part = at
                seen.append(letter)
            }
        }
        let found = seen.split(whereSeparator: { $0.text == " " }).map { word in
            directions.direction(of: word.map(\.text).joined())
        }
        let isRightToLeft = found.count { $0 == .left } >= found.count { $0 == .right }
        // The algorithm also leads back, but for digits, which depend on the letter before them. Where they stand, that is behind them.
        let isArabic = seen.contains { (0x0600...0x08FF).contains($0.base.value) || $0.base.value >= 0xFB50 }
        let context: [Unicode.Scalar] = isRightToLeft ? [isArabic ? "\u{0627}" : "\u{05D0}"] : []
        let levels = directions.levels(context + seen.map(\.base), isRightToLeft)
        let order = TextDirections.order(levels).map { $0 - context.count }.filter { $0 >= 0 }
        var words: [Word] = []
        for letters in order.map({ seen[$0] }).split(whereSeparator: { $0.text == " " }) {
            words.append(Word(letters.map(\.text).joined(), Self.box(of: letters, parts)))
        }
        return words
    }

    /// A full stop behind the last of several words of another direction stands beside the first of them. Then only letters count.
    private static func box(of letters: ArraySlice<Letter>, _ parts: [Part]) -> Box {
        let counts = Dictionary(grouping: letters, by: \.part).mapValues(\.count)
        let isWhole = counts.allSatisfy { parts[$0.key].letters.count == $0.value }
        let telling = letters.filter(\.counts)
        let boxes =
            isWhole ? counts.keys.map { parts[$0].box } : telling.isEmpty ? letters.map(\.box) : telling.map(\.box)
        return boxes.dropFirst().reduce(boxes.first ?? Box(0, 0, 0, 0)) { $0.union($1) }
    }

    private static func isOneWord(_ one: Part, _ next: Part) -> Bool {
        guard one.mayRunLeft || next.mayRunLeft else { return false }
        let gap = (next.box.left - one.box.right) / max(1, one.box.height, next.box.height)
        // poppler sees a space beside letters that are drawn from the right, and beside marks.
        let hasMarks = (one.letters + next.letters).contains {
            $0.text.unicodeScalars.dropFirst().contains(where: Part.isMark)
        }
        return gap < (hasMarks ? 0.09 : 0.04) || gap < 0.1 && !one.hasSpaceAfter
    }
}

/// One glyph for lam and alef says its letters in the order of reading, and not as they stand. It is known by their widths: poppler halves
/// the glyph, and no other lam or alef of the page is as wide.
private struct Ligatures {
    private var usual: Set<Int> = []

    init(_ words: [SeenWord]) {
        for word in words where word.widths.count == word.text.unicodeScalars.count {
            let scalars = Array(word.text.unicodeScalars)
            let pairs = Self.pairs(scalars, word.widths)
            for at in scalars.indices where !pairs.contains(at) && !pairs.contains(at - 1) {
                if scalars[at].value == Self.lam || Self.alefs.contains(scalars[at].value) {
                    usual.insert(Self.size(word.widths[at], word))
                }
            }
        }
    }

    /// With the letters of these glyphs as they would stand.
    func turned(_ word: SeenWord) -> SeenWord {
        var scalars = Array(word.text.unicodeScalars)
        guard word.widths.count == scalars.count else { return word }
        let pairs = Self.pairs(scalars, word.widths)
        for at in pairs {
            let size = Self.size(word.widths[at], word)
            let isCommon = scalars.indices.contains {
                $0 != at && $0 != at + 1 && !pairs.contains($0) && !pairs.contains($0 - 1)
                    && Self.size(word.widths[$0], word) == size
            }
            if !isCommon, (size - 1...size + 1).allSatisfy({ !usual.contains($0) }) { scalars.swapAt(at, at + 1) }
        }
        var turned = word
        turned.text = ""
        turned.text.unicodeScalars.append(contentsOf: scalars)
        return turned
    }

    private static let lam: UInt32 = 0x0644
    private static let alefs: Set<UInt32> = [0x0622, 0x0623, 0x0625, 0x0627, 0x0671]

    /// In parts of the height of its line.
    private static func size(_ width: Double, _ word: SeenWord) -> Int {
        Int((min(100, max(0, width / max(0.1, word.box.height))) * 2000).rounded())
    }

    /// Where lam stands left of an alef that is as wide.
    private static func pairs(_ scalars: [Unicode.Scalar], _ widths: [Double]) -> [Int] {
        scalars.indices.dropLast().filter { at in
            scalars[at].value == lam && alefs.contains(scalars[at + 1].value) && widths[at] > 0
                && abs(widths[at] - widths[at + 1]) < 0.001 * widths[at]
        }
    }
}
