import Pages
import Testing

/// A line of words, ten units a letter.
private func line(_ text: String, x: Double, y: Double, size: Double = 20, letter: Double = 10) -> TextLine {
    var left = x
    return TextLine(
        text.split(separator: " ").map { word in
            let width = Double(word.count) * letter
            defer { left += width + letter }
            return Word(String(word), Box(left, y, left + width, y + size))
        })
}

private func structure(_ lines: [TextLine], rulings: Rulings? = nil) -> PageStructure {
    var page = PageText(origin: .own, width: 1000, height: 2000, dpi: 72, blocks: [Block(lines)])
    page.rulings = rulings
    return PageStructure(of: page)
}

private func cells(_ element: PageStructure.Element?) -> [String] {
    element?.table?.cells.map { "\($0.row),\($0.column) \($0.text)" } ?? []
}

@Suite struct StructureTests {
    @Test func `a page becomes headings, paragraphs and lists`() {
        let found = structure([
            line("The railway", x: 100, y: 50, size: 40, letter: 20),
            line("The carriages of the moun-", x: 100, y: 120),
            line("tain railway are of timber and the engines", x: 100, y: 145),
            line("are of iron.", x: 100, y: 170), line("Another paragraph begins here and goes on", x: 100, y: 230),
            line("to its end.", x: 100, y: 255), line("• First thing", x: 120, y: 310),
            line("• Second thing of", x: 120, y: 335),
            line("two lines", x: 140, y: 360), line("- deeper", x: 150, y: 385),
        ]).elements
        #expect(found.map(\.form) == [.heading, .paragraph, .paragraph, .list])
        #expect(found.first?.level == 1 && found.first?.text == "The railway")
        #expect(
            found.dropFirst().first?.text
                == "The carriages of the mountain railway are of timber and the engines are of iron.")
        let items = found.last?.items ?? []
        #expect(items.map(\.text) == ["First thing", "Second thing of two lines", "deeper"])
        #expect(items.map(\.level) == [1, 1, 2])
    }

    @Test func `a hyphen that belongs to a word stays`() {
        let found = structure([
            line("A well-known engine stands", x: 100, y: 100), line("in the shed and is a well-", x: 100, y: 125),
            line("known sight.", x: 100, y: 150),
        ]).elements
        #expect(found.map(\.text) == ["A well-known engine stands in the shed and is a well-known sight."])
    }

    @Test func `cells below each other are a table, and prose beside prose is not`() {
        let rows = ["Item", "Tea", "Blue paper", "Ink"].enumerated().flatMap { row, name in
            let y = 100 + Double(row) * 40
            return [line(name, x: 100, y: y), line("\(row)0", x: 400, y: y), line("\(row).50", x: 600, y: y)]
        }
        let table = structure([line("What was bought in the year is this", x: 100, y: 20)] + rows).elements
        #expect(table.map(\.form) == [.paragraph, .table])
        #expect(cells(table.last).prefix(6) == ["1,1 Item", "1,2 00", "1,3 0.50", "2,1 Tea", "2,2 10", "2,3 1.50"])
        let prose = [100.0, 560].flatMap { x in
            (0..<8).map { line("many words stand in a line of prose \($0)", x: x, y: Double($0) * 25) }
        }
        let columns = structure(prose).elements
        #expect(columns.map(\.form) == [.paragraph, .paragraph])
        #expect(columns.map(\.column) == [1, 2])
    }

    @Test func `a cell without ruled lines may have several lines`() {
        let rows = (0..<4).flatMap { row in
            let y = 100 + Double(row) * 80
            return [
                line("Name \(row)", x: 100, y: y), line("words of a", x: 400, y: y), line("9\(row)", x: 700, y: y),
                line("cell", x: 400, y: y + 22),
            ]
        }
        let table = structure(rows).elements
        #expect(table.count == 1 && table.first?.table?.rows == 4)
        #expect(cells(table.first).prefix(3) == ["1,1 Name 0", "1,2 words of a cell", "1,3 90"])
    }

    @Test func `ruled lines make cells, also of several rows and columns`() {
        // Two columns and three rows; the first row is one cell, and the first column's second cell takes two rows.
        let rulings = Rulings(
            across: [
                Box(100, 99, 500, 101), Box(100, 149, 500, 151), Box(300, 199, 500, 201), Box(100, 249, 500, 251),
            ],
            down: [Box(99, 100, 101, 250), Box(299, 150, 301, 250), Box(499, 100, 501, 250)])
        let found = structure(
            [
                line("Over both", x: 250, y: 115), line("left", x: 110, y: 190), line("one", x: 310, y: 165),
                line("two", x: 310, y: 215),
            ],
            rulings: rulings)
        #expect(cells(found.elements.first) == ["1,1 Over both", "2,1 left", "2,2 one", "3,2 two"])
        let spans = found.elements.first?.table?.cells.map { [$0.rowSpan, $0.columnSpan] }
        #expect(spans == [[1, 2], [2, 1], [1, 1], [1, 1]])
        #expect(found.elements.first?.table?.isRuled == true)
    }

    @Test func `every word is in exactly one element, whatever the page`() {
        var state: UInt64 = 5
        func random(_ below: Int) -> Double {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Double(Int(state >> 33) % below)
        }
        for _ in 0..<50 {
            let words = (0..<120).map { number in
                let (x, y) = (random(20) * 45, random(40) * 24)
                return Word("w\(number)", Box(x, y, x + 5 + random(60), y + 10 + random(14)))
            }
            let page = ReadingOrder.lines(of: words)
            let rulings = Rulings(
                across: (0..<8).map { _ in
                    let y = random(900); return Box(random(300), y, 400 + random(400), y + 1)
                },
                down: (0..<8).map { _ in
                    let x = random(900); return Box(x, random(300), x + 1, 400 + random(400))
                })
            let found = structure(page, rulings: rulings)
            #expect(
                found.elements.flatMap(\.lines).flatMap(\.words).map(\.text).sorted() == words.map(\.text).sorted())
        }
    }

    @Test func `lines are found in pixels`() {
        var pixels = [UInt8](repeating: 250, count: 200 * 100)
        for x in 10..<150 { pixels[20 * 200 + x] = 0 }
        for y in 20..<90 { pixels[y * 200 + 60] = 60 }
        for y in 30..<60 { for x in 100..<150 { pixels[y * 200 + x] = 0 } }
        let found = Rulings(in: pixels, width: 200, height: 100, dpi: 96, unit: 0.5)
        #expect(found.across.count <= 2 && found.across.allSatisfy { $0.top == 10 && $0.bottom == 10.5 })
        #expect(found.across.first?.left == 5 && found.across.last?.right == 75)
        #expect(found.down.count == 1 && found.down.first?.left == 30 && found.down.first?.bottom == 45)
        #expect(Rulings(in: [], width: 200, height: 100, dpi: 96, unit: 1).isEmpty)
    }

    @Test func `own text keeps its ruled lines on the way from the program that found them`() throws {
        var page = PageText(origin: .own, width: 10, height: 10, dpi: 72, blocks: [Block([line("a", x: 0, y: 0)])])
        page.rulings = Rulings(across: [Box(1, 2, 3, 4)], down: [Box(5, 6, 7, 8), Box(1, 1, 1, 9)])
        let own = OwnText(page: 3, text: page)
        #expect(try OwnText(packed: own.packed()) == own)
        page.rulings?.down[0].left = .nan
        #expect(throws: DocumentRefusal.self) { try page.check() }
    }
}

@Suite struct StructureFormatTests {
    private let hostile = "<script>&'\" *a* [b](c) `d` # | ~ \\ \u{1}\u{FFFF}"

    @Test func `text means itself in Markdown`() {
        let found = structure([line("# 1. *not* [a](b) <b> c|d", x: 100, y: 100)])
        #expect(MarkdownWriter.page(found) == "\\# 1. \\*not\\* \\[a\\](b) \\<b\\> c\\|d\n\n")
        #expect(MarkdownWriter.page(structure([line("1. only", x: 0, y: 0)])) == "1\\. only\n\n")
        #expect(MarkdownWriter.page(structure([line("- only", x: 0, y: 0)])) == "\\- only\n\n")
        #expect(MarkdownWriter.escaped(hostile).contains("\u{1}") == false)
    }

    @Test func `tables and lists are tables and lists in Markdown`() {
        let rows = (0..<3).flatMap { row in
            ["a|", "b", "c"].enumerated().map { line("\($1)\(row)", x: 100 + Double($0) * 200, y: Double(row) * 40) }
        }
        #expect(
            MarkdownWriter.page(structure(rows))
                == "| a\\|0 | b0 | c0 |\n| --- | --- | --- |\n| a\\|1 | b1 | c1 |\n| a\\|2 | b2 | c2 |\n\n")
        let list = structure([
            line("1. one", x: 100, y: 0), line("2. two", x: 100, y: 25), line("• deep", x: 150, y: 50),
        ])
        #expect(MarkdownWriter.page(list) == "1. one\n2. two\n   - deep\n\n")
    }

    @Test func `hOCR and ALTO have every word with its place, and nothing that XML does not allow`() {
        let word = Word(hostile, Box(10, 20, 30, 40), confidence: 87)
        let page = PageText(
            origin: .read, width: 100, height: 100, dpi: 200,
            blocks: [
                Block([
                    TextLine([word, Word("rail-", Box(40, 20, 60, 40))]), TextLine([Word("way", Box(10, 45, 30, 65))]),
                ])
            ])
        for format in [StructureFormat.hocr, .alto] {
            let text = format.opening(title: "<&>") + format.page(1, page) + format.closing
            #expect(!text.contains("<script") && !text.contains("\u{1}") && !text.contains("\u{FFFF}"))
            #expect(text.contains("&lt;script&gt;&amp;&#39;&quot;") && text.contains("&lt;&amp;&gt;"))
        }
        #expect(StructureFormat.hocr.page(1, page).contains("bbox 10 20 30 40; x_wconf 87"))
        let alto = StructureFormat.alto.page(1, page)
        #expect(alto.contains("HPOS=\"10\" VPOS=\"20\" WIDTH=\"20\" HEIGHT=\"20\" WC=\"0.87\""))
        #expect(
            alto.contains("SUBS_TYPE=\"HypPart1\" SUBS_CONTENT=\"railway\"") && alto.contains("<HYP CONTENT=\"-\"/>"))
        let fine = PageText(origin: .own, width: 72, height: 72, dpi: 72, blocks: [])
        #expect(StructureFormat.hocr.page(2, fine).contains("bbox 0 0 300 300; ppageno 1; scan_res 300 300"))
    }
}
