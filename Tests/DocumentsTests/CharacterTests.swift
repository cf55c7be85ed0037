import Documents
import Foundation
import Pages
import Sandbox
import TestSupport
import Testing

/// Text in predefined encodings, with fonts that the file does not contain.
private func asian(_ encoding: String, _ ordering: String, _ codes: String) -> [UInt8] {
    let font =
        "<</Type/Font/Subtype/Type0/BaseFont/Ryumin-Light/Encoding/\(encoding)/DescendantFonts["
        + "<</Type/Font/Subtype/CIDFontType0/BaseFont/Ryumin-Light"
        + "/CIDSystemInfo<</Registry(Adobe)/Ordering(\(ordering))/Supplement 2>>/DW 1000/FontDescriptor"
        + "<</Type/FontDescriptor/FontName/Ryumin-Light/Flags 6/FontBBox[0 -200 1000 900]/ItalicAngle 0/Ascent 800"
        + "/Descent -200/CapHeight 800/StemV 80>>>>]>>"
    return pdf([
        "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Contents 4 0 R/Resources<</Font<</F \(font)>>>>>>",
        stream("", "BT /F 24 Tf 40 40 Td <\(codes)> Tj ET"),
    ])
}

@Suite struct CharacterTests {
    private let pages: [(encoding: String, bytes: [UInt8], text: String)] = [
        ("90ms-RKSJ-H", asian("90ms-RKSJ-H", "Japan1", "93FA967B8CEA"), "日本語"),
        ("UniGB-UCS2-H", asian("UniGB-UCS2-H", "GB1", "4E2D6587"), "中文"),
        ("KSCms-UHC-H", asian("KSCms-UHC-H", "Korea1", "C7D1B1B9BEEE"), "한국어"),
    ]

    @Test func `text in a predefined encoding is taken with poppler-data`() async throws {
        for page in pages {
            try await withFile(page.bytes) { file in
                let inspection = try await workshop.probe(file).value
                let own = try await workshop.ownText(file, inspection, pages: [1]).value
                #expect(own[1]?.text == page.text, "\(page.encoding)")
            }
        }
    }

    @Test func `without poppler-data such a page fails and says what is missing, and others do not`() async throws {
        var bare = workshop
        bare.characterTables = NSTemporaryDirectory() + "nothing-\(UUID().uuidString)"
        for page in pages {
            try await withFile(page.bytes) { file in
                let inspection = try await bare.probe(file).value
                let outcomes = [
                    await outcome { _ = try await bare.ownText(file, inspection, pages: [1]) },
                    await outcome { _ = try await bare.raster(file, inspection, page: 1) },
                ]
                for outcome in outcomes {
                    guard case .failure(let failure) = outcome else {
                        Issue.record("\(page.encoding) was read without its tables")
                        continue
                    }
                    #expect(failure.reason == .engine && !failure.mayGoWell, "\(failure)")
                    #expect(failure.sentence.contains("poppler-data"), "\(failure)")
                }
            }
        }
        try await withFile(hello()) { file in
            let inspection = try await bare.probe(file).value
            #expect(try await bare.ownText(file, inspection, pages: [1]).value[1]?.text == "Hello out there")
        }
        let tables = bare.characterTables
        let japanese = pages[0].bytes
        try await withDocuments({ shop, _ in shop.characterTables = tables }) { bench in
            let read = try await bench.read(japanese)
            #expect(try await bench.pages(read.id) == ["1 failed engine"])
        }
    }

    /// poppler ends a word, and a page's text, at a U+0000.
    @Test func `text behind a character of no meaning is taken`() async throws {
        let map = "1 begincodespacerange <00> <FF> endcodespacerange 3 beginbfchar <41> <004100000043> <42> <0042>"
        let bytes = pdf([
            "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Contents 4 0 R/Resources<</Font<</F"
                + "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 5 0 R>>"
                + "/G<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
            stream("", "BT /F 24 Tf 40 60 Td (BBABB) Tj /G 24 Tf 0 -30 Td (the end of it) Tj ET"),
            stream(
                "",
                "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def \(map)"
                    + " <43> <0043> endbfchar endcmap end end"),
        ])
        try await withFile(bytes) { file in
            let inspection = try await workshop.probe(file).value
            let own = try #require(try await workshop.ownText(file, inspection, pages: [1]).value[1])
            #expect(own.words.map(\.text) == ["BBA\u{FFFD}", "the", "end", "of", "it"])
            #expect(own.text == "BBA\u{FFFD}\nthe end of it")
        }
    }
}
