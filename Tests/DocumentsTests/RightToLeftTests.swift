import Documents
import Foundation
import Pages
import Testing

/// What PDFs say themselves in scripts that are written to the left.
@Suite struct RightToLeftTests {
    private let lines = [
        "هذا النص العربي مكتوب من اليمين إلى اليسار", "ويحتوي على (أقواس) وأرقام 12.5 و 2024/05/17 هنا",
        "السلام عليكم، كيف حالك؟ الأول لا شيء خلال", "נכתב מימין לשמאל (כולל) בתאריך 17/05/2024",
        "این متن فارسی است و از راست به چپ نوشته می\u{200C}شود",
    ]

    private func words(_ text: String) -> [String] { text.split(whereSeparator: \.isWhitespace).map(String.init) }

    /// The text of the first page, as programs of ours and of others take it.
    private func own(_ bytes: [UInt8]) async throws -> PageText {
        try await withFile(bytes) { file in
            let inspection = try await workshop.probe(file).value
            return try #require(try await workshop.ownText(file, inspection, pages: [1]).value[1])
        }
    }

    /// Pango draws each letter of these scripts by itself, and some as ligatures.
    private func designed(_ html: String) async throws -> [UInt8] {
        try await withFile([]) { file in
            _ = try await workshop.pages(PageDesign(title: "T", html: html, pictures: []), [], into: file)
            return bytes(of: file)
        }
    }

    @Test func `the words of a designed page are in the order of reading, in every form of its text`() async throws {
        let html =
            "<page font='DejaVu Sans' font-size='12pt' dir='rtl'>" + lines.map { "<p>\($0)</p>" }.joined() + "</page>"
        let text = try await own(try await designed(html))
        // Cairo does not write what has no shape.
        let shown = lines.joined(separator: " ").unicodeScalars.filter { $0.value != 0x200C }
        let expected = words(String(String.UnicodeScalarView(shown)))
        #expect(text.words.map(\.text) == expected)
        #expect(words(text.text) == expected)
        let structure = PageStructure(of: text)
        #expect(words(structure.elements.map(\.text).joined(separator: " ")) == expected)
        for format in StructureFormat.allCases {
            let page = format.page(1, text)
            var rest = page[...]
            for word in expected {
                guard let found = rest.range(of: word) else {
                    Issue.record("\(word) is not in its place in \(format): \(page)")
                    break
                }
                rest = rest[found.upperBound...]
            }
        }
    }

    @Test func `words that run to the left stand in their place in a line that does not`() async throws {
        let text = try await own(try await designed("<p>The word שלום עולם means (مرحبا) here</p><p>and 12 more</p>"))
        #expect(text.words.map(\.text) == words("The word שלום עולם means (مرحبا) here and 12 more"))
        let box = try #require(text.words.first { $0.text == "שלום" }).box
        let next = try #require(text.words.first { $0.text == "עולם" }).box
        #expect(next.right <= box.left + 1)
    }

    @Test func `forms of Arabic letters are read as their letters`() async throws {
        // ﺳﻼم as it stands from the left: meem, the ligature of lam and alef, seen.
        let map =
            "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /M def /CMapType 2 def "
            + "1 begincodespacerange <0000> <FFFF> endcodespacerange "
            + "3 beginbfchar <0001> <FEE1> <0002> <FEFC> <0003> <FEB3> endbfchar endcmap end end"
        let font =
            "<</Type/Font/Subtype/Type0/BaseFont/F/Encoding/Identity-H/ToUnicode 5 0 R/DescendantFonts["
            + "<</Type/Font/Subtype/CIDFontType2/BaseFont/F/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)"
            + "/Supplement 0>>/DW 600/FontDescriptor<</Type/FontDescriptor/FontName/F/Flags 4"
            + "/FontBBox[0 -200 1000 900]/ItalicAngle 0/Ascent 800/Descent -200/CapHeight 700/StemV 80>>>>]>>"
        let bytes = pdf([
            "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Contents 4 0 R/Resources<</Font<</F \(font)>>>>>>",
            stream("", "BT /F 24 Tf 40 40 Td <000100020003> Tj ET"), stream("", map),
        ])
        #expect(try await own(bytes).text == "سلام")
    }

    @Test func `the text of a copy that is read again is what was read`() async throws {
        let found = lines.enumerated().map { at, line in
            var right = 760.0
            return TextLine(
                words(line).map { word in
                    let width = 10 * Double(word.count)
                    defer { right -= width + 12 }
                    return Word(word, Box(right - width, 60 + 34 * Double(at), right, 80 + 34 * Double(at)))
                })
        }
        let page = PageText(origin: .read, width: 800, height: 1000, dpi: 100, blocks: [Block(found)])
        let rows = (0..<1000).map { _ in [UInt8](repeating: 255, count: 800) }
        let copy = try await withFile(png(width: 800, height: 1000, rows: rows)) { file in
            let inspection = try await workshop.probe(file).value
            return try await withFile([]) { output in
                _ = try await workshop.assemble(file, inspection, texts: [1: page], into: output)
                return bytes(of: output)
            }
        }
        #expect(try await own(copy).words.map(\.text) == words(page.text))
    }
}
