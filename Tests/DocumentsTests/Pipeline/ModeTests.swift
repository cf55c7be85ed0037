import Documents
import Foundation
import Postgres
import TestSupport
import Testing

/// Pages whose own text counts, in part or not at all.
@Suite(.serialized) struct ModeTests {
    /// Scanned pages over the invisible text of an earlier OCR, and with a visible stamp.
    private func scanned(_ numbers: [Int]) async throws -> [UInt8] {
        try await scannedPDF(
            numbers, stamped: Set(numbers), hidden: "BT 3 Tr /F 9 Tf 30 60 Td (wrong reading) Tj ET 0 Tr ")
    }

    private func copied(_ bench: DocumentBench, _ id: String) async throws -> [String] {
        let copy = try await bench.output(id, "pdf")
        let checked = try await withPath(copy) { try await Program.run("qpdf", ["--check", $0]) }
        #expect(checked.status == 0)
        let found = try await withPath(copy) { try await Program.run("pdftotext", [$0, "-"]) }
        return found.text.split(separator: "\u{c}", omittingEmptySubsequences: false).dropLast().map(String.init)
    }

    private func count(_ words: String, _ text: String) -> Int { text.components(separatedBy: words).count - 1 }

    @Test func `a page that was read before is read again, and keeps the text that can be seen`() async throws {
        let bytes = try await scanned([1])
        try await withDocuments { bench in
            let (id, ended) = try await bench.read(bytes, #"options => '{"mode": "redo"}'"#)
            #expect(ended == "completed")
            for text in try await [bench.text(id)] + copied(bench, id) {
                #expect(count("wrong reading", text) == 0, "\(text)")
                #expect(count("Received on Monday", text) == 1 && count("page number 1", text) == 1, "\(text)")
            }
        }
    }

    @Test func `of all pages the own text is dropped, and each word stands in the copy once`() async throws {
        let bytes = try await scanned([1])
        try await withDocuments { bench in
            let (id, ended) = try await bench.read(bytes, #"options => '{"mode": "force"}'"#)
            #expect(ended == "completed")
            for text in try await [bench.text(id)] + copied(bench, id) {
                #expect(count("wrong reading", text) == 0, "\(text)")
                #expect(count("Monday", text) == 1 && count("page number 1", text) == 1, "\(text)")
            }
            let dropped = try await bench.connection.value(
                "select content ->> 'dropped' from millrace.document_content where document = '\(id)'")
            #expect(dropped == "force")
        }
    }

    @Test func `one page is read in another way afterwards, and no other page is`() async throws {
        let bytes = threePages()
        try await withDocuments { bench in
            let (id, ended) = try await bench.read(bytes)
            #expect(ended == "completed")
            let before = try await bench.text(id)
            #expect(
                try await bench.connection.bool("select millrace.document_retry('\(id)', array[2], mode => 'force')"))
            #expect(try await bench.ended(id) == "completed")
            let origins = try await bench.connection.column(
                "select content ->> 'origin' from millrace.document_content where document = '\(id)' order by page")
            #expect(origins == ["own", "read", "own"])
            #expect(try await bench.runs("document.page") == 1)
            #expect(try await bench.text(id) == before)
            let copy = try await copied(bench, id)
            #expect(
                copy.count == 3
                    && copy.enumerated().allSatisfy { count("Page number \($0.offset + 1)", $0.element) == 1 },
                "\(copy)")
            let modes = try await bench.connection.column(
                "select coalesce(mode, '-') from millrace.document_pages where document = '\(id)' order by page")
            #expect(modes == ["-", "force", "-"])
            // Its own text counts again.
            #expect(
                try await bench.connection.bool("select millrace.document_retry('\(id)', array[2], mode => 'skip')"))
            #expect(try await bench.ended(id) == "completed")
            #expect(try await bench.text(id) == before)
            let refused = "select millrace.document_retry('\(id)', array[2], mode => 'other')"
            #expect(try await bench.connection.refusal(of: refused)?.sqlState == "22023")
        }
    }

    @Test func `a page whose own text is junk is read in its picture, and says so`() async throws {
        let lines = ["The engine of the mountain railway", "was built of copper and timber."]
        let text = lines.map { "(\($0)) Tj T*" }.joined(separator: " ")
        // The table says a character for private use for each letter.
        let table = "1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange <21> <7E> <E021> endbfrange"
        let bytes = pdf([
            "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 480 160]/Contents 4 0 R/Resources<</Font<</F<</Type/Font"
                + "/Subtype/Type1/BaseFont/Helvetica/ToUnicode 5 0 R>>>>>>>>",
            stream("", "BT /F 18 Tf 30 110 Td 30 TL \(text) ET"),
            stream("", "/CIDInit /ProcSet findresource begin begincmap \(table) endcmap end"),
        ])
        try await withDocuments { bench in
            let (id, ended) = try await bench.read(bytes)
            #expect(ended == "completed")
            let sentence = try await bench.connection.value(
                "select sentence from millrace.document_page where document = '\(id)'")
            #expect(sentence?.contains("not believed") == true)
            for text in try await [bench.text(id)] + copied(bench, id) {
                #expect(count("mountain railway", text) == 1 && count("copper", text) == 1, "\(text)")
                #expect(!text.unicodeScalars.contains { (0xe000...0xf8ff).contains($0.value) })
            }
        }
    }

    @Test func `a text that seems wrong is kept where its picture says even less`() async throws {
        let line = "!#$ %&' ,/: ;<> ?@[] {}~ ^&% $#! @;: ><? /,' ]&["
        let bytes = pdf([
            "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 480 160]/Contents 4 0 R/Resources<</Font<</F<</Type/Font"
                + "/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
            stream("", "BT /F 12 Tf 20 140 Td 14 TL " + String(repeating: "(\(line)) Tj T* ", count: 8) + "ET"),
        ])
        try await withDocuments { bench in
            let (id, ended) = try await bench.read(bytes)
            #expect(ended == "completed")
            let page = try await bench.connection.value(
                """
                select concat_ws(' ', content ->> 'origin', content ->> 'dropped', sentence)
                from millrace.document_page join millrace.document_content using (document, page) where document = '\(id)'
                """)
            #expect(page?.hasPrefix("own its own text seems wrong") == true, "\(page ?? "no page")")
            #expect(count("?@[]", try await bench.text(id)) == 8)
        }
    }

    private func chosen(_ bench: DocumentBench, _ more: String) async throws -> String? {
        let id = try await bench.submit(hello(), more)
        return try await bench.connection.value(
            "select concat_ws(' ', coalesce(choices ->> 'mode', 'skip'), languages[1], policy) from millrace.document where id = '\(id)'"
        )
    }

    @Test func `a tenant's documents are read as its defaults say, unless they say it themselves`() async throws {
        try await withDocuments(works: false) { bench in
            let connection = bench.connection
            let set =
                #"select millrace.document_default_set('acme', '{"mode": "force", "languages": ["deu"], "policy": "strict"}')"#
            #expect(try await connection.bool(set))
            #expect(try await chosen(bench, "tenant => 'acme'") == "force deu strict")
            let own = try await chosen(bench, #"tenant => 'acme', options => '{"mode": "skip", "policy": "partial"}'"#)
            #expect(own == "skip deu partial")
            #expect(try await chosen(bench, "tenant => 'other'") == "skip eng partial")
            #expect(try await chosen(bench, "'Title'") == "skip eng partial")
            let wrong =
                "select millrace.document_default_set('acme', '{}'::jsonb || jsonb_build_object('mode', 'other'))"
            #expect(try await connection.refusal(of: wrong)?.sqlState == "22023")
            #expect(try await connection.column("select tenant from millrace.document_defaults()") == ["acme"])
            #expect(try await connection.bool("select millrace.document_default_set('acme', null)"))
            #expect(try await chosen(bench, "tenant => 'acme'") == "skip eng partial")
        }
    }
}
