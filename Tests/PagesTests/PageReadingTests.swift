import Pages
import Testing

@Suite struct PageReadingTests {
    private func line(_ text: String, x: Double, y: Double) -> TextLine {
        var left = x
        return TextLine(
            text.split(separator: " ").map { word in
                let width = Double(word.count) * 10
                defer { left += width + 10 }
                return Word(String(word), Box(left, y, left + width, y + 20))
            })
    }

    @Test func `a table read by its columns is turned into rows`() {
        let columns = [
            Block((0..<5).map { line("blue paper \($0)", x: 100, y: Double($0) * 40) }),
            Block((0..<5).map { line("\($0)", x: 500, y: Double($0) * 40 + 2) }),
            Block((0..<5).map { line("\($0).50", x: 700, y: Double($0) * 40 - 1) }),
        ]
        let heading = Block([line("An invoice of some length that is no row", x: 100, y: -100)])
        let arranged = ReadingOrder.arranged([heading] + columns)
        #expect(arranged.count == 2)
        #expect(arranged[0] == heading)
        #expect(arranged[1].form == .table)
        #expect(arranged[1].lines.map(\.text) == (0..<5).map { "blue paper \($0) \($0) \($0).50" })
    }

    @Test func `columns of prose stay columns`() {
        let prose = "many words stand in every line of a column of prose"
        let columns = [100.0, 900.0].map { x in Block((0..<8).map { line(prose, x: x, y: Double($0) * 40) }) }
        #expect(ReadingOrder.arranged(columns) == columns)
    }

    @Test func `nothing is lost and nothing comes twice`() {
        let blocks = [
            Block((0..<6).map { line("a\($0) b", x: 0, y: Double($0) * 40) } + [line("after all", x: 0, y: 900)]),
            Block([line("before", x: 300, y: -300)] + (0..<6).map { line("c\($0)", x: 300, y: Double($0) * 40) }),
        ]
        let words = { (blocks: [Block]) in blocks.flatMap(\.lines).flatMap(\.words).map(\.text).sorted() }
        let arranged = ReadingOrder.arranged(blocks)
        #expect(words(arranged) == words(blocks))
        #expect(arranged.contains { $0.form == .table && $0.lines.count == 6 })
    }

    @Test func `words in a row make a line`() {
        let words = [line("one two", x: 0, y: 0), line("three", x: 0, y: 30)].flatMap(\.words)
        #expect(ReadingOrder.lines(of: words).map(\.text) == ["one two", "three"])
    }
}
