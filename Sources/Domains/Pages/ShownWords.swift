/// The words of a line as they stand, from the left, for a line in which some run to the left.
///
/// Programs that extract the text of a PDF expect letters in the order in which they stand, as most programs write them, and find the order
/// of reading themselves. Each does it by rules of its own, which are simpler than Unicode's. The marks of direction here, which nobody
/// sees, keep them from taking a space or a sign for a part of the wrong word: poppler and MuPDF count what is neutral to the word on its
/// left or right, whichever way that runs.
struct ShownWords {
    /// A word with what follows it.
    struct Piece: Equatable {
        /// The place of the word in its line.
        var word: Int
        /// What is shown, each by a code of its own.
        var units: [String]
        /// How many of them have a place, without the space at the end.
        var letters: Int

        /// For a word at a height of its own, which readers take for a line: a mark of direction there is a word to poppler.
        var alone: Piece {
            let marks: Set = [" ", ShownWords.leftMark, ShownWords.rightMark]
            return Piece(word: word, units: units.filter { !marks.contains($0) } + [" "], letters: letters)
        }
    }

    private static let leftMark = "\u{200E}"
    private static let rightMark = "\u{200F}"

    let pieces: [Piece]

    /// nil: all words run to the right, and stand as they are read.
    init?(_ line: TextLine, _ directions: TextDirections) {
        guard line.words.contains(where: { TextDirections.mayRunLeft($0.text) }) else { return nil }
        let found = line.words.map { directions.direction(of: $0.text) }
        let left = found.count { $0 == .left }
        guard left > 0 || found.contains(.number(isArabic: true)) else { return nil }
        let right = found.count { $0 == .right }
        let isRightToLeft = left >= right
        // poppler gives a line the direction of most letters of its page.
        let mayRunLeft = left * 5 >= right * 3
        let isLeft = found.map { $0 == .left || $0 == .neutral && isRightToLeft }
        let order = line.words.indices.sorted {
            let (one, other) = (Self.middle(line.words[$0].box), Self.middle(line.words[$1].box))
            if one != other { return one < other }
            return isRightToLeft ? $0 > $1 : $0 < $1
        }
        let shown = order.map { Self.units(line.words[$0].text, found[$0], isRightToLeft, directions) }
        // A word that begins with a sign or a digit, which would go with the word before.
        let isOpen: [Bool] = zip(order, shown).map { word, units in
            guard isLeft[word], let first = units.first?.unicodeScalars.last else { return false }
            return directions.levels([first], false) != [1]
        }
        pieces = order.indices.map { at in
            let word = order[at]
            var units = shown[at]
            let letters = Self.letters(units)
            if isOpen[at] || !isLeft[word] && mayRunLeft && at > 0 && isLeft[order[at - 1]] {
                units.insert(Self.rightMark, at: 0)
            }
            if at + 1 < order.count {
                if isLeft[word], !isLeft[order[at + 1]] || isOpen[at + 1] { units.append(Self.leftMark) }
                units.append(" ")
            }
            return Piece(word: word, units: units, letters: letters)
        }
    }

    /// What is shown of a word, from the left.
    private static func units(
        _ text: String, _ direction: TextDirections.Direction, _ isRightToLeft: Bool, _ directions: TextDirections
    ) -> [String] {
        let units: [String] =
            switch direction {
            case .left: joined(directions.shown(text, isRightToLeft: true))
            case .number(isArabic: true): [leftMark + text]
            case .neutral where isRightToLeft: text.unicodeScalars.reversed().map { String($0) }
            case .right, .neutral, .number: text.unicodeScalars.map { String($0) }
            }
        return units.filter { !$0.unicodeScalars.allSatisfy { $0.value < 32 } }
    }

    /// For a line whose words stand as they are read.
    static func asRead(_ line: TextLine) -> [Piece] {
        line.words.enumerated().map { at, word in
            var units = word.text.unicodeScalars.filter { $0.value >= 32 }.map { String($0) }
            let letters = Self.letters(units)
            if at + 1 < line.words.count { units.append(" ") }
            return Piece(word: at, units: units, letters: letters)
        }
    }

    private static func middle(_ box: Box) -> Double { (box.left + box.right) / 2 }

    private static func letters(_ units: [String]) -> Int {
        let count = units.count { !isMark($0) }
        return count > 0 ? count : min(1, units.count)
    }

    /// A mark that joins or parts letters comes with the letter before it: pdf.js leaves out those that stand alone.
    private static func joined(_ scalars: [Unicode.Scalar]) -> [String] {
        var (units, waiting): ([String], String) = ([], "")
        for scalar in scalars {
            waiting.unicodeScalars.append(scalar)
            if scalar.value == 0x200C || scalar.value == 0x200D { continue }
            units.append(waiting)
            waiting = ""
        }
        return waiting.isEmpty ? units : units + [waiting]
    }

    /// Whether it takes no place.
    static func isMark(_ unit: String) -> Bool {
        unit.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .nonspacingMark, .enclosingMark, .format: true
            default: false
            }
        }
    }
}
