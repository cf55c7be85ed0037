/// The levels of the Unicode bidirectional algorithm. The programs that need them have them from a library.
package struct TextDirections: Sendable {
    /// The level of each scalar of a paragraph, whose own direction is given: a scalar at an odd level runs to the left.
    package var levels: @Sendable (_ text: [Unicode.Scalar], _ isRightToLeft: Bool) -> [Int]

    package init(levels: @escaping @Sendable (_ text: [Unicode.Scalar], _ isRightToLeft: Bool) -> [Int]) {
        self.levels = levels
    }

    /// For text of which it is known that nothing runs to the left.
    package static let leftToRight = TextDirections { text, _ in [Int](repeating: 0, count: text.count) }

    /// What a word is in a line.
    package enum Direction: Sendable, Equatable {
        case left
        case right
        /// Digits, which run to the right in every line. Those of Arabic are told apart.
        case number(isArabic: Bool)
        /// Signs alone: they go with their line.
        case neutral
    }

    package func direction(of word: String) -> Direction {
        let scalars = Array(word.unicodeScalars)
        let hasLetters = scalars.contains { $0.properties.isAlphabetic }
        guard Self.mayRunLeft(word) else {
            if hasLetters { return .right }
            return scalars.contains { $0.properties.numericType != nil } ? .number(isArabic: false) : .neutral
        }
        let (level, within) = (levels(scalars, false), levels(scalars, true))
        if level.contains(where: { $0 % 2 != 0 }) { return .left }
        if level.contains(where: { $0 > 0 }) { return .number(isArabic: true) }
        guard within.contains(where: { $0 % 2 == 0 }) else { return .neutral }
        return hasLetters ? .right : .number(isArabic: false)
    }

    /// Whether there are characters of a script that is written to the left, or its digits. Most texts have none, and need no more of this.
    package static func mayRunLeft(_ text: String) -> Bool {
        text.unicodeScalars.contains { scalar in
            switch scalar.value {
            case ..<0x0590: false
            case 0x0590...0x08FF, 0x200F, 0x202B, 0x202E, 0x2067, 0xFB1D...0xFDFF, 0xFE70...0xFEFF: true
            case 0x10800...0x10FFF, 0x1E800...0x1EFFF: true
            default: false
            }
        }
    }

    /// Marks of direction belong to no word.
    package static func isMark(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    /// Whether words that are in the order of reading follow each other to the left.
    static func runLeft(_ words: [Word]) -> Bool {
        guard words.count > 1, words.contains(where: { mayRunLeft($0.text) }) else { return false }
        let steps = zip(words, words.dropFirst()).count {
            $1.box.left + $1.box.right < $0.box.left + $0.box.right
        }
        return steps * 2 >= words.count - 1
    }

    /// The scalars of a text in the order in which they stand, from the left.
    package func shown(_ text: String, isRightToLeft: Bool) -> [Unicode.Scalar] {
        let scalars = Array(text.unicodeScalars)
        return Self.order(levels(scalars, isRightToLeft)).map { scalars[$0] }
    }

    /// Rule L2 of the algorithm: from the highest level down to the lowest odd one, what lies at that level or above is reversed.
    package static func order(_ levels: [Int]) -> [Int] {
        var order = Array(levels.indices)
        guard let highest = levels.max(), let lowest = levels.filter({ $0 % 2 != 0 }).min() else { return order }
        for level in stride(from: highest, through: lowest, by: -1) {
            var start = 0
            while start < order.count {
                guard levels[order[start]] >= level else {
                    start += 1
                    continue
                }
                var end = start
                while end < order.count, levels[order[end]] >= level { end += 1 }
                order[start..<end].reverse()
                start = end
            }
        }
        return order
    }
}
