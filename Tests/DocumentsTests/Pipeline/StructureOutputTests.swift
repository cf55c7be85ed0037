import Documents
import Foundation
import FoundationXML
import Pages
import Testing

@Suite struct StructureOutputTests {
    /// A table of three rows with ruled lines, under a heading.
    private let table = pdf([
        "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 300]/Contents 4 0 R"
            + "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
        stream(
            "",
            "0.5 w 50 100 m 350 100 l 50 130 m 350 130 l 50 160 m 350 160 l 50 190 m 350 190 l S "
                + "50 100 m 50 190 l 200 100 m 200 190 l 350 100 m 350 190 l S "
                + "BT /F 24 Tf 50 240 Td (A list) Tj /F 10 Tf 10 -70 Td (Item) Tj 150 0 Td (Price) Tj "
                + "-150 -30 Td (Tea & *milk*) Tj 150 0 Td (1.50) Tj -150 -30 Td (Ink) Tj 150 0 Td (2.75) Tj ET"),
    ])

    @Test func `Markdown, hOCR and ALTO are made where they are asked for`() async throws {
        try await withDocuments { bench in
            let (id, ended) = try await bench.read(
                table, #"options => '{"outputs": ["markdown", "hocr", "alto"]}'"#)
            #expect(ended == "completed")
            let markdown = String(decoding: try await bench.output(id, "markdown"), as: UTF8.self)
            #expect(
                markdown == """
                    <!-- page 1 -->

                    # A list

                    | Item | Price |
                    | --- | --- |
                    | Tea \\& \\*milk\\* | 1.50 |
                    | Ink | 2.75 |


                    """)
            for kind in ["hocr", "alto"] {
                let parser = XMLParser(data: Data(try await bench.output(id, kind)))
                #expect(parser.parse(), "\(kind): \(String(describing: parser.parserError))")
            }
        }
    }

    @Test func `ruled lines come with the text of a page that may have a table, and only with it`() async throws {
        for (bytes, isRuled) in [(table, true), (hello(), false)] {
            try await withFile(bytes) { file in
                let inspection = try await workshop.probe(file).value
                let text = try await workshop.ownText(file, inspection, pages: [1]).value[1]
                #expect((text?.rulings != nil) == isRuled)
                guard isRuled, let text else { return }
                let found = PageStructure(of: text).elements.last?.table
                #expect(found?.isRuled == true && found?.rows == 3 && found?.columns == 2)
            }
        }
    }
}
