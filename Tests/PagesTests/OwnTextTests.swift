import FoundationEssentials
import Pages
import Testing

@Suite struct OwnTextTests {
    private func without(_ content: String, isInvisible: Bool = false) -> InvisibleText {
        InvisibleText(Array(content.utf8), isInvisible: isInvisible)
    }

    private func text(_ filtered: InvisibleText) -> String { String(decoding: filtered.content, as: UTF8.self) }

    @Test func `invisible text is left out of a drawing, and all else stays as it was`() {
        let drawing =
            "q 1 0 0 1 5 5 cm /I Do Q % (3 Tr)\nBT /F 12 Tf (3 Tr \\) seen) Tj 3 Tr (hid(d)en) Tj [<00> -20 (x)] TJ 0 Tr (too) Tj ET"
        let filtered = without(drawing)
        #expect(
            text(filtered)
                == "q 1 0 0 1 5 5 cm /I Do Q % (3 Tr)\nBT /F 12 Tf (3 Tr \\) seen) Tj 3 Tr   0 Tr (too) Tj ET")
        #expect(filtered.removed == 2 && filtered.objects == ["/I": false])
        #expect(text(without("BT (a) Tj ET")) == "BT (a) Tj ET" && without("BT (a) Tj ET").removed == 0)
        #expect(text(without("")) == "")
    }

    @Test func `the mode belongs to the state that is saved and restored`() {
        #expect(text(without("q 3 Tr BT (a) Tj ET Q BT (b) Tj ET")) == "q 3 Tr BT  ET Q BT (b) Tj ET")
        #expect(text(without("BT (a) Tj 0 Tr (b) Tj ET", isInvisible: true)) == "BT  0 Tr (b) Tj ET")
        #expect(without("3 Tr /A Do 0 Tr /A Do /B Do 3 Tr /C Do").objects == ["/A": false, "/B": false, "/C": true])
    }

    @Test func `what also moves to the next line still does`() {
        #expect(text(without("3 Tr (a) ' 1 2 (b) \" 0 Tr")) == "3 Tr T* 1 Tw 2 Tc T* 0 Tr")
    }

    @Test func `a picture in the drawing itself is no text, and no end of one ends the drawing`() {
        let bytes =
            Array("3 Tr BI /W 2 /H 2 ID ".utf8) + [0xff, 0x28, 0x45, 0x49, 0x20, 0x80, 10] + Array("EI (a) Tj ET".utf8)
        let filtered = InvisibleText(bytes)
        #expect(filtered.removed == 1 && filtered.content.suffix(6) == Array("EI  ET".utf8)[...])
        for end in ["(never closed", "<00", "[ (a)", "BI ID xx", "/", "%", "\\", "q (a"] {
            #expect(text(without(end)) == end)
        }
    }

    private let prose = """
        The engine of the mountain railway was built of copper and timber, and every station had a clock, a garden and a bench. Passengers \
        bought their tickets at the window beside the door; luggage went into the first carriage behind the engine. In summer the train left \
        at seven in the morning and returned late. Nobody remembers when the last one went, but the rails are still there, and children \
        walk on them to school.
        """

    private func junk(_ text: String) -> TextPlausibility.Junk? {
        TextPlausibility.junk(text.split(whereSeparator: \.isWhitespace).map(String.init))
    }

    private func letters(_ change: (UInt8) -> String) -> String {
        prose.utf8.map { $0 > 0x40 ? change($0) : String(UnicodeScalar($0)) }.joined()
    }

    @Test func `text that cannot be what a page shows is not believed`() {
        #expect(junk(letters { "\(UnicodeScalar($0 % 31 + 1))" }) == .unprintable)
        #expect(junk(letters { String(UnicodeScalar(0xe000 + UInt32($0)) ?? " ") }) == .unprintable)
        #expect(junk(String(repeating: "\u{fffd}\u{fffd}\u{fffd} ab ", count: 20)) == .unprintable)
        #expect(junk(letters { "/g\($0)" }) == .glyphNumbers)
        #expect(junk(letters { "(cid:\($0))" }) == .glyphNumbers)
        #expect(junk((1...60).map { "g\($0)" }.joined(separator: " ")) == .glyphNumbers)
        #expect(junk(String(repeating: "fÃ¼r MÃ¼ller schÃ¶n groÃŸ ", count: 5)) == .misdecoded)
        #expect(junk(String(repeating: "ïðèâåò ìèð òåêñò ñòðàíèöà ", count: 5)) == .misdecoded)
        // Each letter is the one three places further on, or 29 codes before.
        #expect(junk(letters { String(UnicodeScalar($0 + 3)) }) == .otherLetters)
        #expect(junk(letters { String(UnicodeScalar($0 - 29)) }) == .otherLetters)
        #expect(junk(String(repeating: "наmе тыpe wоrдs ", count: 10)) == .mixedScripts)
        #expect(junk(String(repeating: "!#$ %&'( ),/ :;<> ?@[] ", count: 10)) == .symbols)
    }

    @Test(arguments: [
        "", "7", "g1 g2 g3", "Room /A12", "\u{f0b7} one \u{f0b7} two",
        String(repeating: "∑ x² + ∫ f(x) dx = αβγ ≤ ∞ ∂u/∂t = c²∇²u ∀ε>0 ∃δ>0 |x−a|<δ ", count: 20),
        String(repeating: "12.50 1,300 -4.7% 88/12 3e5 ", count: 60),
        String(repeating: "if (a[i] != 0 && !(b->c ^ ~d)) { return *p++ % 3; } /* g12 */ ", count: 20),
        String(repeating: "文書を読みます。这是一页中文。한국어 문장입니다 PDF文書 ", count: 20),
        String(repeating: "هذه صفحة من الكتاب דף מן הספר ", count: 20),
        String(repeating: "Größe für Müller, Élève à l’école, SÃO PAULO, Łódź, Việt Nam ", count: 20),
        String(repeating: "Contents ........................ 7 | 3 | +---+---+ ", count: 20),
        String(repeating: "ACGTACCGTT GATTACAGGA TTGACCGTAA ", count: 60),
        String(repeating: "DEADBEEF c0ffee 5f3759df 0x7fff a12 b13 c14 ", count: 40),
        String(repeating: "XJ-200 QW/77 KLM-9 ZX81 PDP11 VT100 RS232 ", count: 40),
        String(repeating: "Привет, мир. Это страница. Ελληνικό κείμενο σε σελίδα ", count: 20),
    ])
    func `formulas, numbers, code and every script are believed`(_ text: String) {
        #expect(junk(text) == nil)
        #expect(junk(text + " " + prose) == nil)
    }

    @Test func `lines of junk among lines that are believed are taken out, and a few odd signs are not`() {
        func parted(_ text: String) -> (kept: PageText, junk: TextPlausibility.Junk)? {
            var page = PageText(origin: .own, width: 500, height: 900, dpi: 72, blocks: [block(text)])
            page.flow = text
            return TextPlausibility.parted(page)
        }
        let sentences = prose.split(separator: ".").joined(separator: "\n")
        let numbers = (1...40).map { "(cid:\($0))" + ($0 % 8 == 0 ? "\n" : " ") }.joined()
        let icons = String(repeating: "\u{e001}\u{e002}\u{e003}\u{e004} \u{e005}\u{e006}\u{e007}\n", count: 8)
        for (junk, kind) in [(numbers, TextPlausibility.Junk.glyphNumbers), (icons, .unprintable)] {
            let found = parted(sentences + "\n" + junk + sentences)
            #expect(found?.junk == kind && found?.kept.wordCount == 2 * prose.split { " \n".contains($0) }.count)
            #expect(found?.kept.flow == nil, "it has those lines, too")
            #expect(parted(junk) == nil, "nothing would be left")
        }
        #expect(parted(sentences) == nil)
        #expect(parted(sentences + "\n\u{e001}\u{e002} \u{e003}\u{e004}\n" + sentences) == nil, "a bullet or two")
    }

    private func block(_ text: String, height: Double = 10, confidence: Double = 90) -> Block {
        Block(
            text.split(separator: "\n").enumerated().map { row, line in
                TextLine(
                    line.split(separator: " ").enumerated().map { place, word in
                        let (left, top) = (Double(place) * 50, Double(row) * 20)
                        return Word(String(word), Box(left, top, left + 40, top + height), confidence: confidence)
                    })
            })
    }

    private func joined(_ own: Block, _ read: Block) -> PageText {
        let page = Inspection.Page(width: 500, height: 500)
        return PageText(
            own: PageText(origin: .own, width: 500, height: 500, dpi: 72, blocks: [own]),
            read: PageText(origin: .read, width: 500, height: 500, dpi: 72, blocks: [read]), on: page)
    }

    @Test func `words that a page says itself are not read once more where their boxes are absurd`() {
        let lines = "one two three four five six\nseven eight nine ten eleven twelve"
        let same = joined(block(lines, height: 0), block(lines.replacing("eight", with: "e1ght")))
        #expect(same.origin == .own && same.text.count == lines.count && same.layer == nil)
        // What else is in the picture stays.
        let more = joined(block(lines, height: 0), block(lines + "\nand a line of the picture alone"))
        #expect(more.origin == .mixed && more.text.hasSuffix("and a line of the picture alone"))
        #expect(more.text.components(separatedBy: "seven").count == 2)
    }

    @Test func `words that a picture has in common with a stamp are read`() {
        let letter = joined(block("on Monday"), block("We met on Monday and left"))
        #expect(letter.text == "on Monday\n\nWe met on Monday and left")
        #expect(joined(block("on Monday", height: 1), block("on Monday")).text == "on Monday")
        let others = "many words that stand in the picture and nowhere else"
        #expect(joined(block("one two three four five six"), block(others)).text.hasSuffix(others))
    }

    @Test func `a box that nearly fills the page hides nothing from the engine`() throws {
        var pixels = [UInt8](repeating: 250, count: 100 * 100)
        for row in 40..<60 { for column in 10..<90 { pixels[row * 100 + column] = 0 } }
        let raster = try Raster(head: .init(width: 100, height: 100, dpi: 72), pixels: pixels[...], mostPixels: 10_000)
        let own = PageText(
            origin: .own, width: 100, height: 100, dpi: 72,
            blocks: [Block([TextLine([Word("one", Box(0, 0, 100, 100))])])])
        #expect(Remainder.of(raster, own, on: .init(width: 100, height: 100)).share == 1)
    }

    @Test func `bullets that come as a column of their own stand before their items`() {
        let seen = [
            SeenWord("•", Box(90, 100, 95, 112), hasSpaceAfter: false), SeenWord("•", Box(90, 140, 95, 152)),
            SeenWord("First", Box(108, 100, 140, 113)), SeenWord("item,", Box(144, 100, 170, 113)),
            SeenWord("long", Box(108, 120, 130, 133)), SeenWord("second", Box(108, 140, 150, 153)),
        ]
        let lines = OwnLines(seen, .leftToRight).lines
        #expect(lines.map(\.text) == ["• First item,", "long", "• second"])
        let page = PageText(origin: .own, width: 600, height: 800, dpi: 72, blocks: [Block(lines)])
        let list = PageStructure(of: page).elements.first
        #expect(list?.form == .list && list?.items?.first?.marker == "•")
        // One that is far from any line stays where it is.
        let far = OwnLines([SeenWord("•", Box(90, 400, 95, 412))] + seen.dropFirst(2), .leftToRight).lines
        #expect(far.map(\.text) == ["•", "First item,", "long", "second"])
    }
}
