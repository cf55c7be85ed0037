extension TextLine {
    /// With each word that runs to the left beside the one before. An engine lets the box of some of them reach over the words before, to
    /// the beginning of the line.
    package var parted: TextLine {
        guard words.count > 1, words.contains(where: { TextDirections.mayRunLeft($0.text) }) else { return self }
        var line = self
        for at in words.indices.dropFirst() {
            let (before, word) = (line.words[at - 1], line.words[at])
            guard TextDirections.mayRunLeft(before.text), TextDirections.mayRunLeft(word.text),
                word.box.left < before.box.left, word.box.right > before.box.left
            else { continue }
            let right = before.box.left - 0.1 * word.box.height
            line.words[at].box.right = max((word.box.left + before.box.left) / 2, right)
        }
        return line
    }
}
