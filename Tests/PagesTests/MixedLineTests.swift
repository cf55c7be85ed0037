import Pages
import Testing

/// Hebrew lines with Latin words, as an engine with models of both reads them.
@Suite struct MixedLineTests {
    /// Words as they stand from the right, each as wide as the others.
    private func line(_ words: [(text: String, confidence: Double)]) -> [Word] {
        words.enumerated().map { index, word in
            let right = Double(1000 - 100 * index)
            return Word(word.text, Box(right - 80, 0, right, 40), confidence: word.confidence)
        }
    }

    @Test func `a Latin word may be a Hebrew one, unless it is known, or capitals that were read well`() {
        func mayBeOther(_ text: String, _ confidence: Double = 80) -> Bool {
            MixedLine.mayBeOther(Word(text, Box(0, 0, 1, 1), confidence: confidence))
        }
        #expect(mayBeOther("xin") && mayBeOther("natn!") && mayBeOther("ANN!", 72) && mayBeOther("Windows", 96))
        #expect(!mayBeOther("in") && !mayBeOther("No.") && !mayBeOther("TV", 92))
        #expect(!mayBeOther("350") && !mayBeOther("הוא") && !mayBeOther("—"))
    }

    @Test func `the other reading counts if it is Hebrew and certain`() {
        func isBetter(_ text: String, _ confidence: Double, than latin: Double) -> Bool {
            let box = Box(0, 0, 1, 1)
            return MixedLine.isBetter(
                Word(text, box, confidence: confidence), than: Word("xin", box, confidence: latin))
        }
        #expect(isBetter("הוא", 93, than: 80) && isBetter("מוצר", 91, than: 93))
        #expect(!isBetter("הח", 41, than: 30) && !isBetter("הוא", 86, than: 96))
        #expect(!isBetter("06", 95, than: 50) && !isBetter("win", 95, than: 50) && !isBetter("הxוא", 95, than: 50))
    }

    @Test func `a line with other words is in the order of reading again`() {
        // Read as Latin, the word made one run with the two that follow, from the left.
        let seen = line([("המחיר", 92), ("xin", 80), ("350", 93), ("dollars", 96), ("לכל", 93)])
        let words = [seen[0], seen[3], seen[2], seen[1], seen[4]]
        let he = Word("הוא", seen[1].box, confidence: 93)
        #expect(
            MixedLine.replaced(words, by: [3: he]).map(\.text) == ["המחיר", "הוא", "350", "dollars", "לכל"])
    }

    @Test func `Latin words keep their order beside what was replaced, also with a number among them`() {
        let seen = line([
            ("win", 80), ("Server", 90), ("2", 90), ("SQL", 90), ("על", 93), ("Office", 90), ("Microsoft", 90),
        ])
        let words = [seen[3], seen[2], seen[1], seen[0], seen[4], seen[6], seen[5]]
        let product = Word("מוצר", seen[0].box, confidence: 91)
        #expect(
            MixedLine.replaced(words, by: [3: product]).map(\.text)
                == ["מוצר", "SQL", "2", "Server", "על", "Microsoft", "Office"])
        #expect(MixedLine.replaced(words, by: [:]) == words)
    }
}
