/// Finds a page's own words again among those that were read beside them. Own words are painted over before the rest is read, so none comes
/// twice, unless their boxes are not where the words stand: some programs write fonts of absurd sizes. Then the same words follow each other
/// in both, and those that were read are left out: the page's own have no errors of reading.
struct SameWords {
    /// What was read and is not among the page's own words.
    private(set) var others: [Block]

    /// Fewer may be a coincidence, as the date of a letter on its stamp.
    private static let fewest = 5

    init(own: [Word], read: [Block]) {
        others = read
        let words = read.flatMap(\.lines).flatMap(\.words)
        let (one, other) = (own.map { Self.letters($0.text) }, words.map { Self.letters($0.text) })
        let same = Self.common(one, other)
        let counted = one.count { !$0.isEmpty }
        guard same.count * 2 >= counted, same.count >= Self.fewest || Self.isAbsurd(own, words, same) else { return }
        let found = Set(same.map(\.other))
        var at = 0
        for block in others.indices {
            for line in others[block].lines.indices {
                let count = others[block].lines[line].words.count
                let known = (at..<at + count).count { found.contains($0) }
                // In a line of them the others are errors of reading.
                if known * 2 >= count {
                    others[block].lines[line].words = []
                } else {
                    let start = at
                    others[block].lines[line].words = others[block].lines[line].words.enumerated()
                        .filter { !found.contains(start + $0.offset) }.map(\.element)
                }
                at += count
            }
            others[block].lines.removeAll { $0.words.isEmpty }
        }
        others.removeAll { $0.lines.isEmpty }
    }

    /// Whether the boxes of most are less than half as high as the words in the picture, or more than twice.
    private static func isAbsurd(_ own: [Word], _ read: [Word], _ same: [(one: Int, other: Int)]) -> Bool {
        guard !same.isEmpty else { return false }
        let absurd = same.count { pair in
            let (said, seen) = (own[pair.one].box.height, read[pair.other].box.height)
            return said * 2 < seen || said > seen * 2
        }
        return absurd * 2 > same.count
    }

    private static func letters(_ text: String) -> String { text.lowercased().filter { $0.isLetter || $0.isNumber } }

    /// The words that both have, in the order of both. After each one the next is looked for within a few lines.
    private static func common(_ one: [String], _ other: [String]) -> [(one: Int, other: Int)] {
        var places: [String: [Int]] = [:]
        for (index, word) in other.enumerated() where !word.isEmpty { places[word, default: []].append(index) }
        var pairs: [(one: Int, other: Int)] = []
        var last = -1
        for (index, word) in one.enumerated() {
            guard let found = places[word] else { continue }
            // The first place behind the last one.
            var (low, high) = (0, found.count)
            while low < high {
                let middle = (low + high) / 2
                if found[middle] > last { high = middle } else { low = middle + 1 }
            }
            guard low < found.count, pairs.isEmpty || found[low] - last <= 40 else { continue }
            last = found[low]
            pairs.append((index, last))
        }
        return pairs
    }
}
