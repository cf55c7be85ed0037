/// Lines that run to the left and have Latin words among the others, as an engine reads them with a model of both.
///
/// Between such words it takes some of the others for Latin ones: a Hebrew word becomes “xin” or “win”. A model of that script alone is sure
/// of them, and makes little of Latin words.
package enum MixedLine {
    /// Short words that look like Hebrew ones, so that a model of Hebrew is sure of them, too.
    private static let known: Set<String> = [
        "a", "an", "as", "at", "by", "do", "for", "he", "i", "if", "in", "is", "it", "me", "my", "no", "not", "of",
        "on", "or",
        "so", "to", "up", "us", "we",
    ]

    /// Whether a word of such a line may be one of the others.
    package static func mayBeOther(_ word: Word) -> Bool {
        let letters = word.text.filter(\.isLetter)
        guard !letters.isEmpty, letters.allSatisfy(isLatin), !known.contains(letters.lowercased()) else { return false }
        // Capitals that were read well are an abbreviation.
        return !(letters.allSatisfy(\.isUppercase) && word.confidence >= 85)
    }

    /// Whether the reading of a model of the script alone counts.
    package static func isBetter(_ other: Word, than word: Word) -> Bool {
        TextDirections.mayRunLeft(other.text) && !other.text.contains(where: isLatin) && other.confidence >= 85
            && other.confidence > word.confidence - 8
    }

    /// The words of a line, some of them in other readings. What lies to the right of such a word is no longer one run of Latin words with
    /// what lies to its left.
    /// - Parameter others: by the places of the words that they are for.
    package static func replaced(_ words: [Word], by others: [Int: Word]) -> [Word] {
        var result: [Word] = []
        var index = words.startIndex
        while index < words.endIndex {
            guard !TextDirections.mayRunLeft(words[index].text) else {
                result.append(words[index])
                index += 1
                continue
            }
            let end = words[index...].firstIndex { TextDirections.mayRunLeft($0.text) } ?? words.endIndex
            let run = (index..<end).map { others[$0] ?? words[$0] }
            result += (index..<end).contains { others[$0] != nil } ? ordered(run) : run
            index = end
        }
        return result
    }

    /// In the order of reading: to the left, and Latin words that follow each other to the right.
    private static func ordered(_ words: [Word]) -> [Word] {
        var words = words.sorted { $0.box.left + $0.box.right > $1.box.left + $1.box.right }
        var start = words.startIndex
        while start < words.endIndex {
            guard words[start].text.contains(where: isLatin) else {
                start += 1
                continue
            }
            let end = words[start...].firstIndex { TextDirections.mayRunLeft($0.text) } ?? words.endIndex
            // A number between two of them is among them.
            let last = words[start..<end].lastIndex { $0.text.contains(where: isLatin) } ?? start
            words[start...last].reverse()
            start = end
        }
        return words
    }

    private static func isLatin(_ character: Character) -> Bool {
        character.isLetter && character.unicodeScalars.allSatisfy { $0.value < 0x250 }
    }
}
