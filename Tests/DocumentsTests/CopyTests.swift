import Documents
import Foundation
import Pages
import Sandbox
import TestSupport
import Testing

/// Three pages, with a page count and a trailer as they are given.
func threePages(count: String = "3", trailer: String = "/Root 1 0 R", more: String = "") -> [UInt8] {
    let pages = (1...3).map { number in
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents \(5 + number) 0 R"
            + "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>\(more)>>"
    }
    let contents = (1...3).map { stream("", "BT /F 24 Tf 40 100 Td (Page number \($0)) Tj ET") }
    return pdf(
        ["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R 4 0 R 5 0 R]/Count \(count)>>"] + pages + contents,
        trailer: trailer)
}

func replaced(_ bytes: [UInt8], _ old: String, _ new: String) -> [UInt8] {
    Array(String(decoding: bytes, as: UTF8.self).replacing(old, with: new).utf8)
}

@Suite struct CopyTests {
    /// What programs that we do not use for making copies say of one.
    private func judged(_ copy: [UInt8]) async throws -> (pages: String, isSound: Bool, text: String) {
        try await withPath(copy) { path in
            let info = try await Program.run("pdfinfo", [path])
            let line = info.text.split(separator: "\n").first { $0.hasPrefix("Pages:") } ?? ""
            let checked = try await Program.run("qpdf", ["--check", path])
            let text = try await Program.run("pdftotext", [path, "-"])
            let words = text.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            return (String(line.split(separator: " ").last ?? ""), checked.status == 0, words)
        }
    }

    @Test func `a PDF that is wrong about itself gets a copy that every reader opens`() async throws {
        let sound = threePages()
        let start = String(decoding: sound, as: UTF8.self).components(separatedBy: "startxref\n")[1]
        let cases: [(String, [UInt8])] = [
            ("without a size", replaced(sound, "/Size 9", "")),
            ("with too small a size", replaced(sound, "/Size 9", "/Size 2")),
            ("with too large a size", replaced(sound, "/Size 9", "/Size 900")),
            ("of fewer pages", threePages(count: "1")), ("of more pages", threePages(count: "7")),
            ("of no page", threePages(count: "0")), ("of fewer than no pages", threePages(count: "-3")),
            ("of a name of pages", threePages(count: "/Three")),
            ("with entries elsewhere", replaced(sound, " 00000 n", "7 00000 n")),
            ("with a start elsewhere", replaced(sound, "startxref\n\(start.prefix(3))", "startxref\n999")),
            ("without a table", replaced(sound, "xref\n0 9", "xxxx\n0 9")),
            ("without an end", Array(sound.dropLast(15))),
        ]
        for (name, bytes) in cases {
            try await withFile(bytes) { file in
                guard case .success(let inspection) = await outcome({ try await workshop.probe(file).value }) else {
                    Issue.record("\(name) was refused")
                    return
                }
                #expect(inspection.pages.count == 3, "\(name)")
                try await withFile([]) { output in
                    let made = try await workshop.assemble(file, inspection, texts: [:], into: output).value
                    let copy = try await judged(DocumentsTests.bytes(of: output))
                    #expect(made.pages == 3 && copy.pages == "3" && copy.isSound, "\(name): \(copy)")
                    for number in 1...3 { #expect(copy.text.contains("Page number \(number)"), "\(name)") }
                }
            }
        }
    }

    @Test func `each way to make a copy keeps the pages, their looks and their words`() async throws {
        try await withFile(threePages(more: "/Rotate 90")) { file in
            let inspection = try await workshop.probe(file).value
            let texts = try await workshop.ownText(file, inspection, pages: [1, 2, 3]).value
            let seen = Grid(try await workshop.raster(file, inspection, page: 2).value)
            for way in DocumentPrograms.Making.allCases {
                try await withFile([]) { output in
                    let made = try await workshop.assemble(
                        file, inspection, texts: texts, into: output, ways: [way])
                    #expect(made.value.pages == 3 && made.refusedLayers == 0, "\(way)")
                    let copy = try await judged(bytes(of: output))
                    #expect(copy.pages == "3" && copy.isSound, "\(way): \(copy)")
                    for number in 1...3 { #expect(copy.text.contains("Page number \(number)"), "\(way): \(copy)") }
                    let copied = try await workshop.probe(output).value
                    var page = copied.pages[1]
                    page.dpi = nil
                    var drawn = copied
                    drawn.pages[1] = page
                    let shown = Grid(try await workshop.raster(output, drawn, page: 2).value)
                    #expect(shown.distance(to: seen) < 3, "\(way)")
                }
            }
        }
    }

    @Test func `pages that a PDF does not count are read, copied and found`() async throws {
        try await withDocuments { bench in
            for bytes in [
                threePages(count: "1"), threePages(count: "9"),
                replaced(threePages(), "/Root 1 0 R>>", "/Root 1 0 R/Something[>>"),
            ] {
                let (id, ended) = try await bench.read(bytes)
                #expect(ended == "completed")
                #expect(try await bench.pages(id) == ["1 done", "2 done", "3 done"])
                #expect(try await bench.text(id).contains("Page number 3"))
                let copy = try await judged(try await bench.output(id, "pdf"))
                #expect(copy.pages == "3" && copy.isSound && copy.text.contains("Page number 3"), "\(copy)")
            }
        }
    }

    @Test func `a page of which nothing could be drawn is not called empty, and an empty one is`() async throws {
        func page(_ more: String, _ content: String) -> [UInt8] {
            pdf([
                "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>",
                stream("", content), stream("/Type/XObject/Subtype/Image\(more)", "not a picture"),
            ])
        }
        let drawing = "q 300 0 0 200 0 0 cm /I Do Q"
        let lost = page("/Width 99/Height 99/BitsPerComponent 1/ColorSpace/DeviceGray/Filter/JBIG2Decode", drawing)
        let unknown = page("/Width 99/Height 99/BitsPerComponent 8/ColorSpace/DeviceGray/Filter/JPXDecode", drawing)
        try await withDocuments { bench in
            for bytes in [lost, unknown] {
                let id = try await bench.read(bytes).id
                #expect(try await bench.pages(id) == ["1 failed undrawable"])
            }
            let empty = try await bench.read(page("", "")).id
            #expect(try await bench.pages(empty) == ["1 done"])
        }
    }

    @Test func `a copy that cannot be opened again, or has other pages, is not taken`() async throws {
        for (name, bytes) in [
            ("nothing", [] as [UInt8]), ("a part of a PDF", Array(threePages().prefix(200))),
            ("a PDF without a table", replaced(threePages(), "xref\n0 9", "xxxx\n0 9")),
            ("a PDF of fewer pages", hello()), ("a PDF that counts wrongly", threePages(count: "4")),
            ("a picture", png(width: 8, height: 8, rows: (0..<8).map { _ in [UInt8](repeating: 0, count: 8) })),
        ] {
            try await withFile(bytes) { file in
                let verified = await outcome { try await workshop.verify(file, pages: 3) }
                guard case .failure(let failure) = verified else {
                    Issue.record("\(name) was taken for a copy of three pages")
                    return
                }
                #expect(failure.reason == .malformed && !failure.mayGoWell, "\(name): \(failure)")
            }
        }
        try await withFile(threePages()) { file in
            let usage = try await workshop.verify(file, pages: 3)
            #expect(usage.cpu > .zero)
        }
    }

    /// Its trailer has a bracket too many, which only poppler passes over.
    @Test func `what only the program that draws can open is read, and copied as pictures`() async throws {
        let bytes = replaced(threePages(), "/Root 1 0 R>>", "/Root 1 0 R/Something[>>")
        try await withFile(bytes) { file in
            let inspection = try await workshop.probe(file).value
            #expect(inspection.pages.count == 3 && inspection.isOnlyDrawn == true)
            #expect(inspection.pages[0].width == 300 && inspection.pages[0].height == 200)
            let texts = try await workshop.ownText(file, inspection, pages: [1, 2, 3]).value
            #expect(texts[2]?.text == "Page number 2")
            try await withFile([]) { output in
                _ = try await workshop.assemble(file, inspection, texts: texts, into: output)
                let copy = try await judged(DocumentsTests.bytes(of: output))
                #expect(copy.pages == "3" && copy.isSound && copy.text.contains("Page number 3"), "\(copy)")
            }
        }
    }

    /// What the drawing program opens has a copy of pictures, with its text.
    private func isDrawn(_ bytes: [UInt8]) async throws {
        try await withFile(bytes) { file in
            let inspection = try await workshop.probe(file).value
            #expect(inspection.pages.count == 1 && inspection.isOnlyDrawn == true)
            let texts = try await workshop.ownText(file, inspection, pages: [1]).value
            #expect(texts[1]?.text == "still here")
            try await withFile([]) { output in
                _ = try await workshop.assemble(file, inspection, texts: texts, into: output)
                let copy = try await judged(DocumentsTests.bytes(of: output))
                #expect(copy.pages == "1" && copy.isSound && copy.text.contains("still here"), "\(copy)")
            }
        }
    }

    private let page =
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Contents 4 0 R/Resources<</Font<</F"
        + "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>"
    private let words = stream("", "BT /F 24 Tf 40 40 Td (still here) Tj ET")

    @Test func `a page tree that comes back to itself has its pages all the same`() async throws {
        try await isDrawn(
            pdf([
                "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R 5 0 R]/Count 1>>", page, words,
                "<</Type/Pages/Parent 2 0 R/Kids[2 0 R]/Count 1>>",
            ]))
    }

    @Test func `a PDF whose table of objects is a stream that cannot be read has its pages all the same`() async throws
    {
        var bytes = pdf(["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", page, words])
        let table = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("xref\n".utf8)) })
        let spoilt =
            "5 0 obj\n" + stream("/Type/XRef/Root 1 0 R/Size 6/W[1 2 0]/Filter/FlateDecode", "spoilt")
            + "\nendobj\nstartxref\n\(table)\n%%EOF\n"
        bytes.replaceSubrange(table..., with: Array(spoilt.utf8))
        try await isDrawn(bytes)
    }

    @Test func `a PDF of which only the attachments are encrypted is read without its password`() async throws {
        func key(_ count: Int) -> String { "<" + String(repeating: "5a", count: count) + ">" }
        func locked(_ filter: String) -> [UInt8] {
            pdf(
                [
                    "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", page, words,
                    "<</CF<</StdCF<</AuthEvent/EFOpen/CFM/AESV3/Length 32>>>>/EFF/StdCF/Filter/Standard/Length 256"
                        + "/O\(key(48))/OE\(key(32))/P -1028/Perms\(key(16))/R 6/StmF/\(filter)/StrF/\(filter)"
                        + "/U\(key(48))/UE\(key(32))/V 5>>",
                ], trailer: "/Root 1 0 R/Encrypt 5 0 R/ID[<00><00>]")
        }
        try await isDrawn(locked("Identity"))
        try await withFile(locked("StdCF")) { file in
            guard case .failure(let failure) = await outcome({ try await workshop.probe(file) }) else {
                Issue.record("a PDF with encrypted pages was opened")
                return
            }
            #expect(failure.reason == .encrypted, "\(failure)")
        }
    }
}
