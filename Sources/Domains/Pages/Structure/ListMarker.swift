/// What stands before an item of a list.
struct ListMarker: Equatable {
    enum Form: Equatable {
        /// It is nothing else, such as •.
        case bullet
        /// It may be a dash as well.
        case dash
        case number, letter, roman
    }

    var text: String
    var form: Form
    /// Of a number or a letter.
    var value: Int?

    private static let bullets: Set<Character> = [
        "•", "◦", "▪", "▫", "‣", "●", "○", "■", "□", "▶", "►", "➢", "➔", "❖", "✓", "✔", "·", "\u{f0b7}", "\u{f0a7}",
    ]
    private static let dashes: Set<Character> = ["-", "–", "—", "*", "+"]

    /// The first of these words, if it is one.
    init?(_ words: [String]) {
        guard let first = words.first, first.count <= 6 else { return nil }
        text = first
        if first.count == 1, let character = first.first {
            if Self.bullets.contains(character) {
                form = .bullet
                return
            }
            if Self.dashes.contains(character) {
                form = .dash
                return
            }
        }
        guard let last = first.last, last == "." || last == ")", first != ".", first != ")" else { return nil }
        let body = first.dropLast().drop { $0 == "(" }
        if let number = Int(body), (0...999).contains(number), body.allSatisfy(\.isASCII), body.first != "-",
            body.first != "+"
        {
            (form, value) = (.number, number)
        } else if let roman = Self.roman(body), body.count > 1 || body.lowercased() == "i" {
            (form, value) = (.roman, roman)
        } else if body.count == 1, let letter = body.first, letter.isASCII, letter.isLetter {
            (form, value) = (.letter, Int(letter.lowercased().unicodeScalars.first?.value ?? 0) - 96)
        } else {
            return nil
        }
    }

    private static func roman(_ text: Substring) -> Int? {
        let values: [Character: Int] = ["i": 1, "v": 5, "x": 10, "l": 50]
        var total = 0
        var before = 0
        for character in text.lowercased().reversed() {
            guard let value = values[character] else { return nil }
            total += value < before ? -value : value
            before = max(before, value)
        }
        return text.isEmpty || text.contains(where: \.isUppercase) && text.contains(where: \.isLowercase) ? nil : total
    }

    /// Whether the other can be the next item's.
    func precedes(_ other: ListMarker) -> Bool {
        switch (form, other.form) {
        case (.bullet, .bullet), (.dash, .dash): return text == other.text
        default:
            guard let value, let next = other.value else { return false }
            // i is a letter after h, and the first Roman number.
            let isAlike =
                form == other.form || [form, other.form].allSatisfy { $0 != .number && $0 != .bullet && $0 != .dash }
            return isAlike && next == value + 1 && text.last == other.text.last
        }
    }
}
