import Documents
import Foundation
import Pages
import TestSupport
import Testing

/// What the file's own words say, for tests that need no reader of PDFs. Streams of objects are taken apart by qpdf first.
private func taken(apart copy: [UInt8]) async throws -> String {
    try await withPath(copy) { path in
        let made = try await Program.run("qpdf", ["--qdf", "--object-streams=disable", path, "-"])
        return String(decoding: made.output, as: UTF8.self)
    }
}

private func chosen(_ change: (inout DocumentChoices) -> Void) -> DocumentChoices {
    var choices = DocumentChoices()
    change(&choices)
    return choices
}

/// A page with a picture of its whole area, with one bit or eight for each pixel.
private func picture(width: Int, height: Int, bits: Int, _ shade: (Int, Int) -> UInt8, more: String = "") -> [UInt8] {
    var samples: [UInt8] = []
    for y in 0..<height {
        if bits == 8 {
            for x in 0..<width { samples.append(shade(x, y)) }
        } else {
            for start in stride(from: 0, to: width, by: 8) {
                samples.append((0..<8).reduce(0) { $0 << 1 | (start + $1 < width ? shade(start + $1, y) & 1 : 1) })
            }
        }
    }
    let hex = samples.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() + ">"
    return pdf([
        "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>",
        stream("", "q 72 0 0 72 0 0 cm /I Do Q"),
        stream(
            "/Type/XObject/Subtype/Image/Width \(width)/Height \(height)/ColorSpace/DeviceGray/BitsPerComponent \(bits)"
                + "/Filter/ASCIIHexDecode\(more)", hex),
    ])
}

@Suite struct ArchiveTests {
    /// Drawn in colours: in grey alone poppler takes four inks for other shades.
    private func shown(_ file: Int32, _ inspection: Inspection) async throws -> Grid {
        var raster = try await workshop.raster(file, inspection, page: 1, keepsColor: true).value
        if raster.head.components == 3 { raster.pixels = PicturePacker.grey(raster.pixels)[...] }
        return Grid(raster)
    }

    private func copy(
        _ bytes: [UInt8], _ choices: DocumentChoices, texts: [Int: PageText] = [:]
    ) async throws -> (bytes: [UInt8], made: Assembled, shown: Grid, before: Grid) {
        try await withFile(bytes) { file in
            let inspection = try await workshop.probe(file).value
            let own = try await workshop.ownText(file, inspection, pages: [1]).value
            let before = try await self.shown(file, inspection)
            return try await withFile([]) { output in
                let made = try await workshop.assemble(
                    file, inspection, texts: texts.isEmpty ? own : texts, into: output, choices: choices,
                    title: "A <title> & more"
                ).value
                var copied = try await workshop.probe(output).value
                copied.pages[0].dpi = inspection.pages[0].dpi
                let shown = try await self.shown(output, copied)
                return (DocumentsTests.bytes(of: output), made, shown, before)
            }
        }
    }

    @Test func `an archive says what it is, has a profile of its colours, and nothing that acts`() async throws {
        let page = picture(width: 24, height: 24, bits: 8, { x, y in UInt8((x * 7 + y * 3) % 256) })
        let active = replaced(page, "/Type/Catalog", "/Type/Catalog/OpenAction<</S/JavaScript/JS(app.alert(1))>>/AF[]")
        let archive = try await copy(active, chosen { $0.format = .archive })
        let text = try await taken(apart: archive.bytes)
        #expect(archive.made.facts?.format == "pdfa-2b" && archive.made.facts?.drawn == nil)
        #expect(
            text.contains("<pdfaid:part>2</pdfaid:part>") && text.contains("<pdfaid:conformance>B</pdfaid:conformance>")
        )
        #expect(text.contains("A &lt;title&gt; &amp; more") && text.contains("/GTS_PDFA1"))
        for word in ["/JavaScript", "/OpenAction", "/LZWDecode", "/Encrypt ", "/AF "] {
            #expect(!text.contains(word), "\(word)")
        }
        #expect(archive.bytes.starts(with: Array("%PDF-1.7\n%".utf8)))
        #expect(archive.shown.distance(to: archive.before) < 3)
    }

    /// They say nothing of how they look, and may act.
    @Test func `fields without a place on a page are in no archive`() async throws {
        let looks = "/AP<</N 6 0 R>>/F 4/Rect[9 9 30 20]/Type/Annot/Subtype/Widget/FT/Tx"
        let bytes = pdf([
            "<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R 7 0 R 8 0 R 9 0 R]/CO[7 0 R]>>>>",
            "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 90 72]/Contents 4 0 R/Resources<<>>/Annots[5 0 R 8 0 R 10 0 R]>>",
            stream("", "9 9 50 30 re f"), "<</T(shown)\(looks)>>",
            stream("/Type/XObject/Subtype/Form/BBox[0 0 21 11]/Resources<<>>", "0 0 21 11 re S"),
            "<</T(orphan)/FT/Tx/Type/Annot/Subtype/Widget/Rect[9 9 30 20]>>",
            "<</T(hidden)/FT/Tx/Type/Annot/Subtype/Widget/Rect[9 9 30 20]/F 2>>",
            "<</T(parent)/FT/Tx/Kids[10 0 R 11 0 R]>>", "<</T(child)/Parent 9 0 R\(looks)>>",
            "<</T(lost)/Parent 9 0 R\(looks)>>",
        ])
        let archive = try await copy(bytes, chosen { $0.format = .archive })
        #expect(archive.made.facts?.drawn == nil)
        let text = try await taken(apart: archive.bytes)
        for name in ["shown", "parent", "child"] { #expect(text.contains("(\(name))"), "\(name)") }
        for name in ["orphan", "hidden", "lost"] { #expect(!text.contains("(\(name))"), "\(name)") }
        #expect(!text.contains("/CO"))
    }

    @Test func `a page that an archive cannot hold becomes a picture with its words, and says why`() async throws {
        func page(_ resources: String, _ content: String, more: String = "") -> [UInt8] {
            pdf([
                "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 90 72]/Contents 4 0 R/Resources<<\(resources)>>\(more)>>",
                stream("", content),
            ])
        }
        let letters = "/Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"
        for (bytes, cause) in [
            (page(letters, "BT /F 12 Tf 9 20 Td (Carriage) Tj ET"), CopyFacts.Cause.fonts),
            (page("", "0 1 1 0 k 9 9 50 30 re f"), .colors), (page("", "9 9 50 30 re f unknown"), .content),
            // Some readers take the first EI for the picture's end.
            (page("", "q 40 0 0 40 9 9 cm BI /W 4 /H 1 /CS /RGB /BPC 8 ID 000zEI z00z0\nEI Q"), .content),
            (page("/Properties<</L<</Type/OCG/Name(L)>>>>", "/OC /L BDC 9 9 50 30 re f EMC"), .layers),
            (page("", "9 9 50 30 re f", more: "/Annots[<</Type/Annot/Subtype/Square/Rect[9 9 20 20]>>]"), .annotations),
            (page("", "9 9 50 30 re f", more: "/Rotate 90/Group<</S/Transparency/CS/DeviceCMYK>>"), .colors),
        ] {
            let archive = try await copy(bytes, chosen { $0.format = .archive })
            #expect(archive.made.facts?.drawn == [.init(page: 1, cause: cause)], "\(cause)")
            #expect(archive.shown.distance(to: archive.before) < 4, "\(cause)")
            guard cause == .fonts else { continue }
            try await withPath(archive.bytes) { path in
                let said = try await Program.run("pdftotext", [path, "-"]).text
                #expect(said.contains("Carriage"))
            }
        }
    }

    @Test func `pictures become smaller without a pixel's change, or as JPEG by choice`() async throws {
        let plain = picture(width: 300, height: 90, bits: 1, { x, y in (x / 9 + y / 5) % 3 == 0 ? 0 : 1 })
        let shades = picture(width: 120, height: 120, bits: 8, { x, y in UInt8((x * x + y * 2) / 60 % 256) })
        for (bytes, filter) in [(plain, "/CCITTFaxDecode"), (shades, "/Predictor 15")] {
            let made = try await copy(bytes, chosen { $0.pictures = .lossless })
            let facts = try #require(made.made.facts?.pictures)
            #expect(facts.count == 1 && facts.replaced == 1 && facts.after < facts.before)
            #expect(String(decoding: made.bytes, as: UTF8.self).contains(filter))
            #expect(made.shown.distance(to: made.before) == 0)
        }
        let small = try await copy(shades, chosen { $0.pictures = .small })
        #expect(small.made.facts?.pictures?.replaced == 1 && small.shown.distance(to: small.before) < 12)
        let kept = try await copy(shades, DocumentChoices())
        #expect(kept.made.facts == nil)
    }

    @Test func `a fax holds every length of a run`() async throws {
        // Rows with a run of each length, in both colours, below each other.
        let (width, height) = (2700, 300)
        let row = { (y: Int) in (y * 9 + 1, y % 2) }
        let bytes = picture(width: width, height: height, bits: 1) { x, y in
            let (length, colour) = row(y)
            return UInt8(x < length % width ? colour : x % 97 == y % 97 ? colour : 1 - colour)
        }
        let made = try await copy(bytes, chosen { $0.pictures = .lossless })
        #expect(made.made.facts?.pictures?.replaced == 1 && made.shown.distance(to: made.before) == 0)
    }

    @Test func `a cleaned scan has white paper and no specks, and keeps its letters`() {
        let (width, height) = (120, 90)
        var pixels = [UInt8](repeating: 205, count: width * height)
        for y in 30..<50 { for x in 20..<24 { pixels[y * width + x] = 40 } }
        pixels[70 * width + 90] = 60
        guard
            let raster = try? Raster(
                head: .init(width: width, height: height, dpi: 150), pixels: pixels[...], mostPixels: 1 << 20)
        else { return }
        var cleaner = PaperCleaner(raster)
        cleaner.clean()
        #expect(cleaner.pixels[0] == 255 && cleaner.pixels[70 * width + 90] == 255)
        #expect(cleaner.pixels[40 * width + 22] < 80)
    }

    @Test func `a page askew stays as it is with its words upon it, and is level by choice`() async throws {
        var text = PageText(
            origin: .read, width: 600, height: 600, dpi: 600,
            blocks: [Block([TextLine([Word("level", Box(100, 100, 300, 160))])])])
        text.skew = 5
        let page = picture(width: 24, height: 24, bits: 8, { x, _ in x < 12 ? 0 : 255 })
        let usual = try await copy(page, DocumentChoices(), texts: [1: text])
        #expect(usual.shown.distance(to: usual.before) < 2 && usual.made.facts == nil)
        let level = try await copy(page, chosen { $0.level = true }, texts: [1: text])
        #expect(level.shown.distance(to: level.before) > 2 && level.made.facts?.levelled == [1])
    }

    @Test(arguments: [-5.0, 3.0, 12.0])
    func `the words of a page askew are whole for a program that extracts its text`(degrees: Double) async throws {
        let words = ["constellation", "of", "uninterrupted", "mountains"]
        let lines = (0..<6).map { line in
            TextLine(
                words.enumerated().map { place, word in
                    let (left, top) = (60 + Double(place) * 130, 60 + Double(line) * 80)
                    return Word(word, Box(left, top, left + 120, top + 20))
                })
        }
        var text = PageText(origin: .read, width: 600, height: 600, dpi: 600, blocks: [Block(lines)])
        text.skew = degrees
        let page = picture(width: 24, height: 24, bits: 8, { x, _ in x < 12 ? 0 : 255 })
        let made = try await copy(page, DocumentChoices(), texts: [1: text])
        let found = try await withPath(made.bytes) { try await Program.run("pdftotext", [$0, "-"]).text }
        let counts = found.split(whereSeparator: \.isWhitespace).reduce(into: [:]) { $0[String($1), default: 0] += 1 }
        #expect(counts == Dictionary(uniqueKeysWithValues: words.map { ($0, 6) }), "\(found)")
    }
}
