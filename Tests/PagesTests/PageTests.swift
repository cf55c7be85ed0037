import Pages
import Testing

@Suite struct PageTests {
    @Test func `an unquiet page is smoothed at once, a quiet one is not`() {
        var state: UInt64 = 7
        func random() -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33)
        }
        let quiet = [UInt8](repeating: 230, count: 400 * 400)
        let office = quiet.map { UInt8(Int($0) + random() % 7 - 3) }
        let poor = quiet.map { UInt8(max(0, min(255, Int($0) + random() % 41 - 20))) }
        let noise = { (pixels: [UInt8]) in Gate.noise(pixels[...], width: 400, height: 400) }
        #expect(noise(quiet) < 1 && !Gate.isNoisy(noise(office)) && Gate.isNoisy(noise(poor)))
        #expect(noise(quiet) < noise(office) && noise(office) < noise(poor))
        #expect(Gate.noise([], width: 400, height: 400) == 0)
    }

    @Test func `a picture is read smaller where its letters are large enough`() {
        #expect(Gate.scale(dpi: 200, letterHeight: 40) == 1)
        #expect(Gate.scale(dpi: 100, letterHeight: 8) == 13.0 / 8, "coarse")
        #expect(Gate.scale(dpi: 100, letterHeight: 4) == 2 && Gate.scale(dpi: 72, letterHeight: 20) == 1)
        #expect(Gate.scale(dpi: 300, letterHeight: 40) == 200.0 / 300)
        #expect(Gate.scale(dpi: 400, letterHeight: 40) == 0.5)
        #expect(Gate.scale(dpi: 300, letterHeight: 17) == 13.0 / 17)
        #expect(Gate.scale(dpi: 300, letterHeight: 12) == 1, "small print")
        #expect(Gate.scale(dpi: 300, letterHeight: nil) == 1, "too few to say")
    }

    @Test func `another try is for what was not seen as well as for what was not understood`() {
        let good = Gate.Reading(words: 400, letters: 2000, confidence: 94, inkOutside: 0.02)
        #expect(!Gate.wantsAnother(good))
        #expect(Gate.wantsAnother(.init(words: 400, letters: 2000, confidence: 60, inkOutside: 0.02)))
        #expect(Gate.wantsAnother(.init(words: 100, letters: 500, confidence: 85, inkOutside: 0.6)))
        #expect(!Gate.wantsAnother(.init(words: 0, letters: 0, confidence: 0, inkOutside: 0)))
        #expect(good.merit > Gate.Reading(words: 200, letters: 1000, confidence: 99, inkOutside: 0).merit)
    }

    @Test func `a page is turned where its words are none, or stand on their side, and a part of it reads better`() {
        func reading(_ confidence: Double, letters: Int = 60) -> Gate.Reading {
            .init(words: 10, letters: letters, confidence: confidence, inkOutside: 0)
        }
        let level = (0..<10).map { Word("letter", Box(0, Double(30 * $0), 60, Double(30 * $0 + 20))) }
        let tall = (0..<10).map { Word("letter", Box(Double(30 * $0), 0, Double(30 * $0 + 20), 60)) }
        #expect(Gate.mayLieOtherwise(level, reading(35)) && Gate.mayLieOtherwise(tall, reading(95)))
        #expect(!Gate.mayLieOtherwise(level, reading(70)) && !Gate.mayLieOtherwise([], reading(0, letters: 0)))
        #expect(Gate.lies(as: level, reading(80), notAs: level, reading(35)))
        #expect(!Gate.lies(as: level, reading(60), notAs: level, reading(35)), "as poor a page as before")
        #expect(!Gate.lies(as: tall, reading(90), notAs: level, reading(35)))
        #expect(Gate.lies(as: level, reading(92), notAs: tall, reading(95)))
        #expect(!Gate.lies(as: level, reading(90, letters: 5), notAs: tall, reading(95)), "hardly anything")
    }

    @Test func `what an engine says is within what there can be`() throws {
        let word = Word("one", Box(0, 0, 10, 10))
        var text = PageText(origin: .read, width: 100, height: 100, dpi: 200, blocks: [Block([TextLine([word])])])
        try text.check()
        text.rotation = 45
        #expect(throws: DocumentRefusal.self) { try text.check() }
        text.rotation = 90
        text.blocks[0].lines[0].words[0].box.right = -5
        #expect(throws: DocumentRefusal.self) { try text.check() }
        text.blocks[0].lines[0].words = [Word](repeating: word, count: PageText.mostWords + 1)
        #expect(throws: DocumentRefusal.self) { try text.check() }
    }

    @Test func `a packet is as long as it says`() throws {
        let bytes = try FramePayload.make(Box(1, 2, 3, 4), [7, 8])
        let (box, body) = try FramePayload.open(bytes, as: Box.self)
        #expect(box == Box(1, 2, 3, 4) && Array(body) == [7, 8])
        for length in [0, 3, 10] {
            #expect(throws: DocumentRefusal.self) { try FramePayload.open(Array(bytes.prefix(length)), as: Box.self) }
        }
        #expect(throws: DocumentRefusal.self) { try FramePayload.open([0xff, 0xff, 0xff, 0xff, 1], as: Box.self) }
    }

    @Test func `a page's own text comes out as it was packed, and no shorter`() throws {
        var text = PageText(
            origin: .own, width: 595, height: 842, dpi: 72,
            blocks: [
                Block([TextLine([Word("añ𝒳", Box(1.5, 2, 3, 4)), Word("b", Box(5, 2, 6, 4))]), TextLine([])]),
                Block([]),
            ])
        for flow in [nil, "", "añ𝒳 b"] as [String?] {
            (text.flow, text.rotation) = (flow, 270)
            let own = OwnText(page: 7, text: text)
            let bytes = own.packed()
            #expect(try OwnText(packed: bytes) == own)
            for length in 0..<bytes.count {
                #expect(throws: DocumentRefusal.self) { try OwnText(packed: Array(bytes.prefix(length))) }
            }
            #expect(throws: DocumentRefusal.self) { try OwnText(packed: bytes + [0]) }
        }
        #expect(try OwnText(packed: OwnText(page: 1, text: nil).packed()) == OwnText(page: 1, text: nil))
        // A count that nothing could follow asks for no memory.
        let empty = OwnText(page: 1, text: PageText(origin: .own, width: 1, height: 1, dpi: 72, blocks: [])).packed()
        for end in [empty.count - 4, empty.count] {
            var bytes = empty
            bytes.replaceSubrange(end - 4..<end, with: [0xff, 0xff, 0xff, 0xff])
            #expect(throws: DocumentRefusal.self) { try OwnText(packed: bytes) }
        }
    }

    @Test func `what a page says itself is painted over, and what is read beside it stands in the page's own measure`()
        throws
    {
        let page = Inspection.Page(width: 100, height: 100)
        var pixels = [UInt8](repeating: 250, count: 200 * 200)
        for row in 20..<30 { for column in 20..<80 { pixels[row * 200 + column] = 0 } }  // the stamp
        for row in 100..<140 { for column in 20..<180 { pixels[row * 200 + column] = 0 } }  // the letter
        let raster = try Raster(
            head: .init(width: 200, height: 200, dpi: 144), pixels: pixels[...], mostPixels: 40_000)
        let own = PageText(
            origin: .own, width: 100, height: 100, dpi: 72,
            blocks: [Block([TextLine([Word("stamp", Box(10, 10, 40, 15))])])])
        let (masked, share) = Remainder.of(raster, own, on: page)
        #expect(share > 0.9 && share < 1)
        #expect(masked.pixels[25 * 200 + 50] == 250 && masked.pixels[120 * 200 + 50] == 0)
        var all = own
        all.blocks[0].lines[0].words.append(Word("letter", Box(10, 50, 90, 70)))
        #expect(Remainder.of(raster, all, on: page).share == 0)

        let sure = Word("letter", Box(20, 100, 180, 140), confidence: 90)
        let unsure = Word("~", Box(0, 0, 4, 4), confidence: 20)
        let read = PageText(
            origin: .read, width: 200, height: 200, dpi: 144,
            blocks: [Block([TextLine([sure, unsure], baseline: [138, 138])])])
        let both = PageText(own: own, read: read, on: page)
        #expect(both.origin == .mixed && both.text == "stamp\n\nletter" && both.width == 100)
        #expect(both.layer?.words.map(\.box) == [Box(10, 50, 90, 70)] && own.layer == nil && read.layer == read)
        #expect(
            PageText(own: own, read: PageText(origin: .read, width: 200, height: 200, dpi: 144, blocks: []), on: page)
                .origin == .own)
    }

    @Test func `a layer says each character once, and words in the order they are read`() {
        let line = TextLine([Word("añ𝒳", Box(10, 10, 40, 30)), Word("a", Box(50, 10, 60, 30))], baseline: [28, 28])
        let text = PageText(origin: .read, width: 200, height: 100, dpi: 72, blocks: [Block([line])])
        var layer = TextLayer()
        let content = layer.content(text, on: .init(width: 200, height: 100), isPixels: false, dpi: 72)
        #expect(content.contains("<0001000200030004> Tj") && content.contains("<0001> Tj") && content.contains("3 Tr"))
        #expect(content.contains(" 10 72 Tm") && content.contains(" 50 72 Tm"))
        #expect(layer.toUnicode.contains("<0003> <D835DCB3>") && layer.glyphs.count == 10)
    }

    /// Letters of these two scripts run to the left, and nothing else does.
    private let simple = TextDirections { text, isRightToLeft in
        text.map { (0x05D0...0x064A).contains($0.value) ? 1 : isRightToLeft ? $0.properties.isAlphabetic ? 2 : 1 : 0 }
    }

    @Test func `words that run to the left are laid as they stand, and marks have no width`() {
        let line = TextLine(
            [Word("אב\u{5B8}", Box(80, 10, 100, 30)), Word("x", Box(60, 10, 70, 30)), Word("ג!", Box(30, 10, 50, 30))],
            baseline: [28, 28])
        let text = PageText(origin: .read, width: 200, height: 100, dpi: 72, blocks: [Block([line])])
        var layer = TextLayer(simple)
        let content = layer.content(text, on: .init(width: 200, height: 100), isPixels: false, dpi: 72)
        let rows = content.split(separator: "\n").dropFirst().dropLast()
        // Each sign with its mark of direction: ⟨!ג⟩ x ⟨אב⟩, whose vowel stands before its letter.
        #expect(rows.map { $0.split(separator: " ")[4] } == ["30", "60", "80"])
        #expect(layer.toUnicode.contains("<0001> <200F>\n<0002> <0021>\n<0003> <05D2>\n<0004> <200E>\n<0005> <0020>"))
        #expect(layer.toUnicode.contains("<0006> <0078>\n<0007> <05B8>\n<0008> <05D1>\n<0009> <05D0>"))
        #expect(layer.widths == "[1 [0] 4 [0] 7 [0]]" && layer.glyphs[14...15] == [0, BlankFont.mark])
        #expect(rows.last?.hasSuffix("Tz <0001000700080009> Tj") == true)
    }

    @Test func `between words of both directions stands a mark also where a line has a few more that run right`() {
        func marks(_ words: String...) -> Int {
            let found = words.enumerated().map { Word($1, Box(100 * Double($0), 10, 100 * Double($0) + 60, 30)) }
            let line = TextLine(found, baseline: [28, 28])
            let text = PageText(origin: .read, width: 900, height: 100, dpi: 72, blocks: [Block([line])])
            var layer = TextLayer(simple)
            _ = layer.content(text, on: .init(width: 900, height: 100), isPixels: false, dpi: 72)
            return layer.toUnicode.split(separator: "\n").count { $0.hasSuffix("<200F>") }
        }
        #expect(marks("one", "אב", "two", "גד", "three") == 1)
        #expect(marks("one", "אב", "two", "three") == 0)
    }

    @Test func `a line that runs to the left lies level, and far askew its words come as they are read`() {
        let line = TextLine(
            [Word("אב", Box(80, 10, 100, 30)), Word("x", Box(60, 10, 70, 30)), Word("גד", Box(30, 10, 50, 30))],
            baseline: [26, 28])
        func rows(_ skew: Double) -> [[Substring]] {
            var text = PageText(origin: .read, width: 200, height: 100, dpi: 72, blocks: [Block([line])])
            text.skew = skew
            var layer = TextLayer(simple)
            let content = layer.content(
                text, on: .init(width: 200, height: 100), isPixels: false, dpi: 72, isAskew: true)
            return content.split(separator: "\n").dropFirst().dropLast().map { $0.split(separator: " ") }
        }
        #expect(rows(0).map { $0[5] } == ["73", "73", "73"] && rows(0).allSatisfy { $0[1] == "0" })
        let far = rows(10).map { Double($0[4]) ?? 0 }
        #expect(far == far.sorted(by: >) && far.count == 3)
    }

    /// pdf.js compares the heights of two words by their widths unless both are level, and ends a line at each, or joins two lines.
    @Test func `a line that falls by a hair or by much lies level, a steep one does not`() {
        func rows(_ bases: [Double]) -> [[Substring]] {
            let words = [Word("one", Box(10, 10, 40, 30)), Word("two", Box(100, 10, 160, 30))]
            let line = TextLine(words, baseline: bases)
            let text = PageText(origin: .read, width: 200, height: 100, dpi: 72, blocks: [Block([line])])
            var layer = TextLayer()
            let content = layer.content(text, on: .init(width: 200, height: 100), isPixels: false, dpi: 72)
            return content.split(separator: "\n").dropFirst().dropLast().map { $0.split(separator: " ") }
        }
        for bases in [[27.9, 28.1], [26, 30]] as [[Double]] {
            #expect(rows(bases).map { $0[5] } == ["72", "72"])
            #expect(rows(bases).allSatisfy { $0[1] == "0" && $0[2] == "0" })
        }
        #expect(rows([20, 35]).allSatisfy { $0[1] != "0" } && rows([20, 35]).count == 2)
    }

    /// pdfium turns the order of words around that it takes for a line, and poppler takes a mark of direction for a word.
    @Test func `far askew no word that runs to the left is beside another, and none has marks of direction`() {
        let line = TextLine(
            [Word("אב", Box(80, 10, 100, 30)), Word("12", Box(60, 10, 70, 30)), Word("גד", Box(30, 10, 50, 30))],
            baseline: [28, 28])
        var text = PageText(origin: .read, width: 200, height: 100, dpi: 72, blocks: [Block([line])])
        text.skew = 15
        var layer = TextLayer(simple)
        let content = layer.content(
            text, on: .init(width: 200, height: 100), isPixels: false, dpi: 72, isAskew: true)
        let rows = content.split(separator: "\n").dropFirst().dropLast().map { row in
            row.split(separator: " ").map { Double($0) ?? 0 }
        }
        let (sizes, bases) = (rows.map { $0[3] }, rows.map { $0[5] })
        #expect(rows.count == 3 && sizes.allSatisfy { $0 > 2 && $0 < 10 })
        for (one, next) in zip(bases, bases.dropFirst()) { #expect(abs(one - next) > sizes[0]) }
        // As wide as it was, in the middle of its ink.
        #expect(rows.map { ($0[3] * $0[7] / 100).rounded() } == [20, 10, 20])
        #expect(!layer.toUnicode.contains("<200E>") && !layer.toUnicode.contains("<200F>"))
    }

    @Test func `a word that runs to the left does not reach over the words before`() {
        let line = TextLine([
            Word("אב", Box(180, 10, 200, 30)), Word("גד", Box(150, 10, 170, 30)), Word("הו", Box(100, 10, 199, 30)),
            Word("one", Box(40, 10, 199, 30)),
        ])
        #expect(
            line.parted.words.map(\.box) == [
                Box(180, 10, 200, 30), Box(150, 10, 170, 30), Box(100, 10, 148, 30), Box(40, 10, 199, 30),
            ])
        #expect(TextLine([line.words[3], line.words[3]]).parted.words.map(\.box.right) == [199, 199])
    }

    /// pdfium takes a text on a turned page for none if its glyphs cover nothing.
    @Test func `the glyphs of the layer's font span a letter`() throws {
        let font = BlankFont.bytes
        func number(_ at: Int) -> Int { Int(font[at]) << 8 | Int(font[at + 1]) }
        func table(_ name: String) throws -> Int {
            let entries = (0..<number(4)).map { 12 + 16 * $0 }
            let entry = try #require(entries.first { Array(font[$0..<$0 + 4]) == Array(name.utf8) })
            return number(entry + 8) << 16 | number(entry + 10)
        }
        let (outlines, places, widths) = (try table("glyf"), try table("loca"), try table("hmtx"))
        for glyph in [BlankFont.letter, BlankFont.mark] {
            let at = outlines + 2 * number(places + 2 * Int(glyph))
            #expect((0..<5).map { number(at + 2 * $0) } == [2, 0, 0, 500, 1000])
            #expect(number(widths + 4 * Int(glyph)) == (glyph == BlankFont.letter ? 500 : 0))
        }
    }

    @Test func `what turns the page turns the words back`() {
        let line = TextLine([Word("up", Box(10, 20, 40, 40))], baseline: [40, 40])
        func place(_ rotation: Int, _ pageRotation: Int) -> String {
            let isTurned = rotation % 180 != 0
            var text = PageText(
                origin: .read, width: isTurned ? 100 : 200, height: isTurned ? 200 : 100, dpi: 72,
                blocks: [Block([line])])
            text.rotation = rotation
            var page = Inspection.Page(width: 200, height: 100)
            page.rotation = pageRotation
            var layer = TextLayer()
            let content = layer.content(text, on: page, isPixels: false, dpi: 72)
            return content.split(separator: "\n")[1].split(separator: " ")[4..<6].joined(separator: " ")
        }
        #expect(place(0, 0) == "10 60")
        #expect(place(180, 0) == "190 40")
        // Turned clockwise to be upright: its left edge was the lower one.
        #expect(place(90, 0) == "40 10")
        #expect(place(270, 0) == "160 90")
        #expect(place(0, 180) == "190 40")
        #expect(place(0, 90) == "40 10")
    }

    @Test func `what is on a page is told apart`() throws {
        var page = Inspection.Page(width: 595, height: 842)
        let word = TextLine([Word("one", Box(0, 0, 10, 10))])
        let own = PageText(origin: .own, width: 595, height: 842, dpi: 72, blocks: [Block([word])])
        #expect(PageAssessment(page, own: own) == .text && PageAssessment(page, own: nil) == .image)
        (page.pictures, page.dpi) = (1, 200)
        #expect(PageAssessment(page, own: own) == .mixed)
        var pixels = [UInt8](repeating: 240, count: 600 * 600)
        func drawn() throws -> Raster {
            try Raster(head: .init(width: 600, height: 600, dpi: 150), pixels: pixels[...], mostPixels: 360_000)
        }
        #expect(PageAssessment(page, own: nil, drawn: try drawn()) == .blank)
        for row in 100..<104 { for column in 100..<110 { pixels[row * 600 + column] = 60 } }
        #expect(PageAssessment(page, own: nil, drawn: try drawn()) == .image)
    }
}
