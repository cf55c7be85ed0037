import Documents
import Foundation
import Pages
import Sandbox
import Synchronization
import TestSupport
import Testing

/// A page with enough on it to be read.
private let letter: [UInt8] = {
    let lines = [
        "The engine of the mountain railway was built of copper and timber,",
        "and every station had a clock, a garden and a bench.",
        "Passengers bought their tickets at the window beside the door;",
        "luggage went into the first carriage behind the engine.",
        "In summer the train left at seven in the morning and returned late.",
        "Nobody remembers when the last one went.",
    ]
    let text = lines.map { "(\($0)) Tj T*" }.joined(separator: " ")
    return pdf([
        "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 500 400]/Contents 4 0 R"
            + "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
        stream("", "BT /F 13 Tf 40 340 Td 22 TL \(text) ET"),
    ])
}()

private let wanted = "The engine of the mountain railway was built of copper and timber,"

/// A scanner's picture of it: turned, and in its own file.
private func scanned(turned quarters: Int = 0) async throws -> [UInt8] {
    try await withFile(letter) { file in
        let inspection = try await workshop.probe(file).value
        let raster = try await workshop.raster(file, inspection, page: 1).value
        var rows = (0..<raster.height).map { row in
            Array(raster.pixels[(raster.pixels.startIndex + row * raster.width)...].prefix(raster.width))
        }
        for _ in 0..<quarters {
            let (height, width) = (rows.count, rows[0].count)
            rows = (0..<width).map { column in (0..<height).map { rows[height - 1 - $0][column] } }
        }
        return png(width: rows[0].count, height: rows.count, rows: rows)
    }
}

@Suite struct StageTests {
    @Test func `a page of a PDF says its text itself, and is drawn`() async throws {
        try await withFile(hello()) { file in
            let inspection = try await workshop.probe(file).value
            let own = try await workshop.ownText(file, inspection, pages: [1]).value
            let text = try #require(own[1])
            #expect(
                text.text == "Hello out there" && text.origin == .own
                    && text.words.map(\.text) == ["Hello", "out", "there"])
            #expect(text.words[0].box.left > 70 && text.words[0].box.left < 74)
            let raster = try await workshop.raster(file, inspection, page: 1)
            #expect(
                raster.value.head.dpi == 200 && abs(raster.value.width - 1653) <= 1
                    && abs(raster.value.height - 2339) <= 1)
            #expect(raster.value.pixels.contains { $0 < 50 } && raster.usage.peak < 200 << 20)
            #expect(raster.refusedLayers == 0)
        }
        try await withFile(hello()) { file in
            var inspection = try await workshop.probe(file).value
            inspection.pages.append(inspection.pages[0])
            let failure = await outcome { try await workshop.raster(file, inspection, page: 2) }
            guard case .failure(let failure) = failure else {
                Issue.record("a page that is not there was drawn")
                return
            }
            #expect(failure.reason == .malformed)
        }
    }

    @Test(arguments: [0, 1, 2, 3])
    func `a scan is read whichever way it lies, and can be searched`(_ quarters: Int) async throws {
        let engine = ChildPageReader(workshop)
        let percents = Mutex<[Int]>([])
        try await withFile(try await scanned(turned: quarters)) { file in
            let inspection = try await workshop.probe(file).value
            #expect(inspection.kind == .png && inspection.pages[0].dpi.map { Int($0.rounded()) } == 200)
            let raster = try await workshop.raster(file, inspection, page: 1).value
            let text = try await engine.read(raster) { percent in percents.withLock { $0.append(percent) } }
            #expect(text.rotation == (4 - quarters) % 4 * 90)
            #expect(text.blocks.first?.lines.first?.text == wanted)
            #expect(text.confidence > 80 && text.wordCount > 50)
            try await withFile([]) { output in
                let made = try await workshop.assemble(file, inspection, texts: [1: text], into: output).value
                let written = bytes(of: output)
                #expect(made.pages == 1 && made.bytes == written.count)
                for flags in [[], ["-raw"]] as [[String]] {
                    let found = try await withPath(written) { try await Program.run("pdftotext", flags + [$0, "-"]) }
                    let words = found.text.split(whereSeparator: \.isWhitespace)
                    #expect(words.prefix(12).joined(separator: " ") == wanted, "\(flags)")
                    #expect(words.count == text.wordCount)
                }
                let checked = try await withPath(written) { try await Program.run("qpdf", ["--check", $0]) }
                #expect(checked.status == 0)
            }
        }
        #expect(percents.withLock { $0 == $0.sorted() })
        let usage = await engine.end()
        #expect(usage.peak > 1 << 20 && usage.peak < 300 << 20)
    }

    /// At 300 dpi it is read smaller than it is.
    @Test func `a picture of more dots says the same, at the same places`() async throws {
        let engine = ChildPageReader(workshop)
        var found: [[Word]] = []
        for dpi in [200.0, 300] {
            try await withFile(letter) { file in
                var inspection = try await workshop.probe(file).value
                inspection.pages[0].dpi = dpi
                let raster = try await workshop.raster(file, inspection, page: 1).value
                let text = try await engine.read(raster)
                #expect(raster.head.dpi == dpi && text.dpi == dpi)
                #expect(text.width == Double(raster.width) && text.height == Double(raster.height))
                found.append(text.words.map { Word($0.text, $0.box.scaled(by: 72 / dpi)) })
            }
        }
        try #require(found[0].map(\.text) == found[1].map(\.text) && found[0].count > 50)
        // The recogniser decides by close numbers where a word begins among its letters, and they may differ between processors: with
        // AVX-512 two words of this letter are off by four points. In a picture with the wrong scale all words would be off, and by more.
        let offsets = zip(found[0], found[1]).map { one, other in
            max(abs(one.box.left - other.box.left), abs(one.box.bottom - other.box.bottom))
        }
        #expect(offsets.count { $0 < 1.5 } * 10 >= offsets.count * 9, "\(offsets)")
        #expect(offsets.allSatisfy { $0 < 6 }, "\(offsets)")
        _ = await engine.end()
    }

    @Test func `light letters on a dark bar are read beside dark ones on paper`() async throws {
        let heading = "Statement of the mountain railway"
        let page = pdf([
            "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 500 200]/Contents 4 0 R"
                + "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
            stream(
                "",
                "0.2 g 30 140 440 30 re f 1 g BT /F 14 Tf 40 150 Td (\(heading)) Tj ET "
                    + "0 g BT /F 13 Tf 40 100 Td 22 TL (\(wanted)) Tj T* (and every station had a clock.) Tj ET"),
        ])
        let engine = ChildPageReader(workshop)
        try await withFile(page) { file in
            let inspection = try await workshop.probe(file).value
            let raster = try await workshop.raster(file, inspection, page: 1).value
            let text = try await engine.read(raster).text
            #expect(text.contains(heading) && text.contains(wanted), "\(text)")
        }
        _ = await engine.end()
    }

    @Test func `an engine that gets no time is asked again, and stands back less`() async throws {
        let tellings = Mutex(0)
        // Whatever it gets is too little for this one.
        let patience = EnginePriority(span: .milliseconds(20), share: 1000) {
            tellings.withLock { $0 += 1 }
        }
        var humble = workshop
        humble.niceness = 20
        let engine = ChildPageReader(humble, patience: patience)
        try await withFile(try await scanned()) { file in
            let inspection = try await workshop.probe(file).value
            let raster = try await workshop.raster(file, inspection, page: 1).value
            // On a crowded machine a page may be read before anybody looks how it fares.
            try await eventually("it has been asked again") {
                let text = try await engine.read(raster).blocks.first?.lines.first?.text
                #expect(text == wanted)
                return await engine.niceness == 5
            }
            #expect(try await engine.read(raster).blocks.first?.lines.first?.text == wanted)
            #expect(await engine.niceness == 5 && tellings.withLock { $0 } == 1)
            // A caller that gives up does not have to wait for another try.
            let other = ChildPageReader(humble, patience: EnginePriority())
            let reading = Task { try await other.read(raster) }
            try await eventually("it is being read") { await other.niceness == 20 }
            reading.cancel()
            guard case .failure(let failure as DocumentFailure) = await reading.result else {
                Issue.record("it was read although it was cancelled")
                return
            }
            #expect(failure.isCancelled)
            _ = await other.end()
        }
        _ = await engine.end()
    }

    /// A reader with only places and sizes might take them for the cells of a table.
    @Test func `columns whose paragraphs begin at the same heights are read one after the other`() async throws {
        func paragraph(_ name: String, _ left: Double, _ top: Double) -> Block {
            Block(
                (0..<5).map { line in
                    let top = top + Double(line) * 12.2
                    return TextLine(
                        (0..<5).map { word in
                            let left = left + Double(word) * 42
                            return Word("\(name)\(line)\(word)", Box(left, top, left + 38, top + 9.3))
                        }, baseline: [top + 7.5, top + 7.5])
                })
        }
        var text = PageText(origin: .read, width: 595, height: 842, dpi: 72, blocks: [])
        for (column, left) in [("left", 66.0), ("right", 311)] {
            text.blocks += (0..<4).map { paragraph("\(column)\($0)", left, 80 + Double($0) * 67.2) }
        }
        for flags in [[], ["-raw"]] as [[String]] {
            #expect(try await wordsFound(in: text, flags) == text.words.map(\.text), "\(flags)")
        }
    }

    /// An engine may say that a word ends where the next begins, or later.
    @Test func `words that touch each other are words of their own`() async throws {
        let lefts = [66.0, 100, 133, 180, 186, 260]
        let rights = [99.5, 134, 179, 186, 259, 300]
        let words = zip(["The", "railway", "number", "6", "leaves", "now"], zip(lefts, rights))
            .map { Word($0, Box($1.0, 80, $1.1, 89)) }
        let text = PageText(
            origin: .read, width: 595, height: 842, dpi: 72, blocks: [Block([TextLine(words, baseline: [87, 87])])])
        for flags in [[], ["-raw"]] as [[String]] {
            #expect(try await wordsFound(in: text, flags) == words.map(\.text), "\(flags)")
        }
    }

    /// The words that pdftotext finds on an empty page with this text layer.
    private func wordsFound(in text: PageText, _ flags: [String]) async throws -> [String] {
        let page = pdf([
            "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]>>",
        ])
        return try await withFile(page) { file in
            let inspection = try await workshop.probe(file).value
            return try await withFile([]) { output in
                _ = try await workshop.assemble(file, inspection, texts: [1: text], into: output)
                let found = try await withPath(bytes(of: output)) {
                    try await Program.run("pdftotext", flags + [$0, "-"])
                }
                return found.text.split(whereSeparator: \.isWhitespace).map(String.init)
            }
        }
    }

    @Test func `an engine without its models says so, and one that is killed is replaced`() async throws {
        let raster = try Raster(
            head: .init(width: 300, height: 300, dpi: 150), pixels: [UInt8](repeating: 255, count: 90_000)[...],
            mostPixels: 90_000)
        var bare = workshop
        bare.languages = ["klingon"]
        let engine = ChildPageReader(bare)
        guard case .failure(let failure) = await outcome({ try await engine.read(raster) }) else {
            Issue.record("an engine without models read something")
            return
        }
        #expect(failure.reason == .engine && !failure.mayGoWell)
        _ = await engine.end()
        var short = workshop
        short.enginePages = 2
        let warm = ChildPageReader(short)
        for _ in 0..<5 { #expect(try await warm.read(raster).wordCount == 0) }
        #expect(await warm.end().cpu > .zero)
    }

    @Test func `frames of a TIFF become pages`() async throws {
        try await withFile(tiff(frames: 3, loops: true)) { file in
            let inspection = try await workshop.probe(file).value
            let raster = try await workshop.raster(file, inspection, page: 3).value
            #expect(raster.width == 100 && raster.pixels.allSatisfy { $0 == 0x80 })
            try await withFile([]) { output in
                #expect(try await workshop.assemble(file, inspection, texts: [:], into: output).value.pages == 3)
                let said = try await withPath(bytes(of: output)) {
                    try await Program.run("qpdf", ["--show-npages", $0])
                }
                #expect(said.status == 0 && said.text == "3\n")
            }
        }
    }

    @Test func `no derived file acts, and the original stays as it is`() async throws {
        let active = hello(
            catalogue:
                "/OpenAction<</S/JavaScript/JS(app.alert\\(1\\))>>/Names<</EmbeddedFiles<</Names[(a.exe) 5 0 R]>>"
                + "/JavaScript<</Names[(x)<</S/JavaScript/JS(y)>>]>>>>/AcroForm<</SigFlags 3/Fields[6 0 R]>>/AA<</WC 7 0 R>>",
            page: "/AA<</O 7 0 R>>/Annots[<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A 8 0 R>>"
                + "<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(https://example.org)/Next[7 0 R]>>>>]",
            more: [
                "<</Type/Filespec/F(a.exe)/EF<</F 9 0 R>>>>",
                "<</FT/Sig/T(s)/V<</Type/Sig/Filter/X/ByteRange[0 1 2 3]/Contents<00>>>>>",
                "<</S/JavaScript/JS(hidden)>>", "<</Type/Action/S/Launch/F(/bin/sh)>>",
                stream("/Type/EmbeddedFile", "MZMZ"),
            ])
        try await withFile(active) { file in
            let inspection = try await workshop.probe(file).value
            #expect(inspection.isSigned && inspection.active.contains("embedded_files"))
            try await withFile([]) { output in
                let made = try await workshop.assemble(file, inspection, texts: [:], into: output).value
                #expect(made.removed >= 7)
                let json = try await withPath(bytes(of: output)) { try await Program.run("qpdf", ["--json", $0]) }
                let text = json.text
                #expect(json.status == 0 && text.contains("https://example.org"))
                for word in [
                    "JavaScript", "Launch", "EmbeddedFile", "/EF", "/AA", "/OpenAction", "hidden", "/bin/sh",
                    "ByteRange",
                ] {
                    #expect(!text.contains(word), "\(word)")
                }
            }
            #expect(bytes(of: file) == active)
        }
    }

    @Test func `a locked document is read with its password, and its copy is open`() async throws {
        try await withFile(try await encrypted(hello(), user: "user", owner: "owner")) { file in
            let inspection = try await workshop.probe(file, password: "user").value
            let own = try await workshop.ownText(file, inspection, pages: [1], password: "user").value
            #expect(own[1]?.text == "Hello out there")
            try await withFile([]) { output in
                _ = try await workshop.assemble(file, inspection, texts: [:], into: output, password: "user")
                let checked = try await withPath(bytes(of: output)) {
                    try await Program.run("qpdf", ["--is-encrypted", $0])
                }
                #expect(checked.status == 2)
            }
        }
    }

    @Test func `a report is set in any script, over as many pages as it takes`() async throws {
        let text = String(repeating: "Ein Bericht über alles, отчёт, αναφορά. ", count: 400)
        let report = Report(
            title: "Läuft & läuft <b>", facts: [.init("Pages", "2"), .init("Confidence", "93")],
            pages: [.init(heading: "Page 1", text: text), .init(heading: "Page 2", text: "The end\u{1B}[31m.")])
        try await withFile([]) { output in
            let made = try await workshop.report(report, into: output).value
            #expect(made.pages > 2 && made.bytes == bytes(of: output).count)
            let found = try await withPath(bytes(of: output)) { try await Program.run("pdftotext", [$0, "-"]) }
            let words = found.text.split(whereSeparator: \.isWhitespace).map(String.init)
            #expect(found.status == 0 && words.prefix(4) == ["Läuft", "&", "läuft", "<b>"])
            #expect(words.filter { $0 == "отчёт," }.count == 400 && words.filter { $0 == "αναφορά." }.count == 400)
        }
    }

    @Test func `a page's text of a megabyte without a line's end is in the report to its last word`() async throws {
        let text = String(repeating: "railway ", count: 90_000) + "terminus"
        try await withFile([]) { output in
            let made = try await workshop.report(
                Report(title: "Long", facts: [], pages: [.init(heading: "Page 1", text: text)]), into: output
            ).value
            #expect(made.pages > 50)
            let found = try await withPath(bytes(of: output)) { try await Program.run("pdftotext", [$0, "-"]) }
            let words = found.text.split(whereSeparator: \.isWhitespace)
            #expect(words.filter { $0 == "railway" }.count == 90_000 && words.last == "terminus")
        }
    }

    @Test func `an HEIC is decoded by a program of its own`() async throws {
        // 96 × 64 in light grey with a dark bar at its left, of our own making.
        let file = try #require(
            Data(
                base64Encoded: """
                    AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAUJtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAA\
                    AA5waXRtAAAAAAABAAAAImlsb2MAAAAAREAAAQABAAAAAAFmAAEAAAAAAAAAJQAAACNpaW5mAAAAAAABAAAAFWluZmUCAAAAAAEA\
                    AGh2YzEAAAAAwmlwcnAAAACkaXBjbwAAAHhodmNDAQNwAAAAAAAAAAAAHvAA/P34+AAADwMgAAEAGEABDAH//wNwAAADAJAAAAMA\
                    AAMAHroCQCEAAQArQgEBA3AAAAMAkAAAAwAAAwAeoDCBBZbqSSmubgQEDAgAAAMACAAAAwAIQCIAAQAHRAHBcrAiQAAAABRpc3Bl\
                    AAAAAAAAAGAAAABAAAAAEHBpeGkAAAAAAwgICAAAABZpcG1hAAAAAAAAAAEAAQOBAoMAAAAtbWRhdAAAACEoAa9Y9cbugoOR/yug\
                    fAv0tfudJ6eyDd2U6aiC7eA7r7U=
                    """))
        try await withFile(Array(file)) { file in
            let inspection = try await workshop.probe(file).value
            #expect(inspection.kind == .heic && inspection.pages[0].width == 96 && inspection.pages[0].height == 64)
            let worked = try await workshop.raster(file, inspection, page: 1)
            let (raster, pixels) = (worked.value, Array(worked.value.pixels))
            #expect(raster.width == 96 && raster.height == 64 && worked.refusedLayers == 0)
            #expect(abs(Int(pixels[32 * 96 + 20]) - 20) < 12 && abs(Int(pixels[32 * 96 + 80]) - 200) < 12)
            try await withFile([]) { output in
                let made = try await workshop.assemble(file, inspection, texts: [:], into: output).value
                #expect(made.pages == 1)
            }
        }
    }
}
