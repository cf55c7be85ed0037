import Documents
import Foundation
import Pages
import TestSupport
import Testing

/// Pages of the small HTML, drawn in the sandbox and read by programs of others.
@Suite struct DesignedPageTests {
    private static func with(
        _ html: String, _ pictures: [(design: PageDesign.Picture, bytes: [UInt8])] = [], title: String = "Title",
        _ body: (_ path: String, _ pages: Int) async throws -> Void
    ) async throws {
        try await withFile([]) { file in
            let design = PageDesign(title: title, html: html, pictures: pictures.map(\.design))
            let made = try await workshop.pages(design, pictures.flatMap(\.bytes), into: file)
            let path = NSTemporaryDirectory() + "millrace-\(UUID().uuidString).pdf"
            try Data(bytes(of: file)).write(to: URL(fileURLWithPath: path))
            defer { try? FileManager.default.removeItem(atPath: path) }
            let check = try await Program.run("qpdf", ["--check", path]).text
            #expect(check.contains("No syntax or stream encoding errors found"), "\(check)")
            try await body(path, made.value.pages)
        }
    }

    private static func text(_ path: String, page: Int? = nil) async throws -> String {
        let pages = page.map { ["-f", "\($0)", "-l", "\($0)"] } ?? []
        return try await Program.run("pdftotext", ["-layout"] + pages + [path, "-"]).text
            .precomposedStringWithCompatibilityMapping
    }

    private static func refusal(_ html: String, _ pictures: [PageDesign.Picture] = []) async throws -> DocumentRefusal?
    {
        try await withFile([]) { file in
            guard
                case .failure(let failure) = await outcome({
                    try await workshop.pages(PageDesign(title: "T", html: html, pictures: pictures), [], into: file)
                })
            else { return nil }
            return DocumentRefusal(failure.reason, failure.sentence)
        }
    }

    @Test func `a long table goes over pages, with its head, the page's header and its number on each`() async throws {
        let rows = (1...150).map { "<tr><td>row \($0)</td><td>\(String(repeating: "word ", count: 20))</td></tr>" }
        let html = """
            <page size="a4"><header>the head of all</header><footer><p align="center">page <page-number> of <page-count></p></footer>
            <h1>A list</h1><table border="1"><thead><tr><th>What</th><th>Words</th></tr></thead>\(rows.joined())</table></page>
            """
        try await Self.with(html) { path, pages in
            #expect(pages > 4)
            for page in 1...pages {
                let text = try await Self.text(path, page: page)
                for sign in ["the head of all", "What", "Words", "page \(page) of \(pages)"] {
                    #expect(text.contains(sign), "\(sign) on page \(page): \(text.prefix(200))")
                }
            }
            let all = try await Self.text(path)
            for row in 1...150 { #expect(all.components(separatedBy: "row \(row) ").count == 2, "row \(row)") }
            let about = try await Program.run("pdfinfo", [path]).text
            #expect(about.contains("Title:           Title") && about.contains("(A4)"), "\(about)")
        }
    }

    @Test func `the font that is chosen is in the file, and one that is not there is refused by its name`() async throws
    {
        try await Self.with(
            "<page font='DejaVu Serif'><p>plain <b>bold</b></p><p style='font-family: \"DejaVu Sans Mono\"'>code</p></page>"
        ) { path, _ in
            let fonts = try await Program.run("pdffonts", [path]).text
            for font in ["DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSansMono"] {
                #expect(fonts.contains(font), "\(fonts)")
            }
            // Each is embedded: emb stands before sub and uni.
            #expect(fonts.split(separator: "\n").dropFirst(2).allSatisfy { $0.contains("yes yes") }, "\(fonts)")
        }
        let refused = try await Self.refusal("<page font='No Such Font'><p>a</p></page>")
        #expect(refused?.reason == .unsupported && refused?.sentence.contains("No Such Font is not installed") == true)
    }

    @Test func `pictures are in the file, a JPEG as it is`() async throws {
        let photo = jpeg(of: bar)
        let drawing = png(
            width: bar.width, height: bar.height,
            rows: (0..<bar.height).map { y in (0..<bar.width).map { bar[$0, y] } })
        func picture(_ name: String, _ bytes: [UInt8], isJPEG: Bool) -> (PageDesign.Picture, [UInt8]) {
            (
                PageDesign.Picture(
                    name: name, isJPEG: isJPEG, width: bar.width, height: bar.height, count: bytes.count), bytes
            )
        }
        try await Self.with(
            "<p>a</p><img src='cid:photo' width='50mm' align='center'><table><tr><td><img src='cid:drawing'></td></tr></table>",
            [picture("photo", photo, isJPEG: true), picture("drawing", drawing, isJPEG: false)]
        ) { path, pages in
            #expect(pages == 1)
            let images = try await Program.run("pdfimages", ["-list", path]).text
            let lines = images.split(separator: "\n").dropFirst(2).map { $0.split(separator: " ").map(String.init) }
            #expect(lines.count == 2, "\(images)")
            #expect(lines.allSatisfy { $0[3] == "\(bar.width)" && $0[4] == "\(bar.height)" }, "\(images)")
            #expect(Set(lines.map { $0[8] }) == ["jpeg", "image"], "\(images)")
        }
        let refused = try await Self.refusal("\n<img src='cid:nosuch'>")
        #expect(refused?.sentence.contains("line 2: no picture was handed in as nosuch") == true)
        let lie = PageDesign.Picture(name: "lie", isJPEG: false, width: 10, height: 10, count: 10)
        #expect(try await Self.refusal("<img src='cid:lie'>", [lie])?.reason == .internal)
    }

    @Test func `text from right to left reads right, and stands at the right`() async throws {
        try await Self.with(
            """
            <p>left</p><div dir="rtl"><h1>مرحبا بالعالم</h1><p>right</p><p>رقم 123 وكلمة English هنا</p>
            <table border="1"><tr><td>first</td><td>second</td></tr></table></div><p>שלום עולם</p>
            """
        ) { path, _ in
            // Poppler splits words of these scripts at some sizes, so blanks and its marks of directions do not count.
            let text = try await Program.run("pdftotext", [path, "-"]).text.precomposedStringWithCompatibilityMapping
                .unicodeScalars.filter { !$0.properties.isWhitespace && !(0x200e...0x202e).contains($0.value) }
            let letters = String(String.UnicodeScalarView(text))
            for line in ["مرحبابالعالم", "שלוםעולם", "English", "123"] {
                #expect(letters.contains(line), "\(line): \(letters)")
            }
            let places = try await Program.run("pdftotext", ["-bbox", path, "-"]).text
            func left(_ word: String) throws -> Double {
                let line = try #require(places.split(separator: "\n").first { $0.contains(word) }, "\(word)")
                return Double(try #require(line.firstMatch(of: /xMin="([0-9.]+)"/)).output.1) ?? 0
            }
            let (plain, turned) = (try left(">left<"), try left(">right<"))
            #expect(plain < 100 && turned > 400)
            // The first column of the table is the right one.
            let (first, second) = (try left(">first<"), try left(">second<"))
            #expect(first > second)
            // A paragraph finds its direction itself.
            let found = try left("ש")
            #expect(found > 400)
        }
    }

    @Test func `a row that is higher than a page goes on, and a heading is never the last of its page`() async throws {
        let lines = (1...200).map { "line\($0)" }.joined(separator: "<br>")
        try await Self.with("<table border='1'><thead><tr><th>Head</th></tr></thead><tr><td>\(lines)</td></tr></table>")
        {
            path, pages in
            #expect(pages >= 3)
            let all = try await Self.text(path)
            for n in 1...200 { #expect(all.components(separatedBy: "line\(n)\n").count >= 2, "line\(n)") }
            for page in 1...pages { #expect(try await Self.text(path, page: page).contains("Head")) }
        }
        // Nearly a page of lines, then a heading with a text.
        for count in 50...60 {
            let fill = (1...count).map { "<div>fill \($0)</div>" }.joined()
            try await Self.with("\(fill)<h2>Heading</h2><p>its text</p>") { path, pages in
                for page in 1...pages {
                    let text = try await Self.text(path, page: page)
                    #expect(text.contains("Heading") == text.contains("its text"), "\(count) lines, page \(page)")
                }
            }
        }
    }

    @Test func `pages are bounded in number and in size, and what is drawn ends`() async throws {
        let many = String(repeating: "<p>a</p><page-break>", count: 501)
        let pages = try await Self.refusal(many + "<p>a</p>")
        #expect(pages?.reason == .tooManyPages && pages?.sentence.contains("more than 500 pages") == true)
        let large = try await Self.refusal("<p>" + String(repeating: "x", count: (4 << 20) + 1) + "</p>")
        #expect(large?.reason == .tooLarge)
        let narrow = try await Self.refusal("<header>\(String(repeating: "a<br>", count: 100))</header><p>a</p>")
        #expect(narrow?.sentence.contains("leave no room") == true)
        // A word without a blank, letters without a font, and a table in a table in a table.
        try await Self.with(
            "<p>\(String(repeating: "x", count: 30_000))</p><p>\u{10FFFD}\u{200B}</p><table><tr><td><table><tr><td><table border='1'><tr><td>deep</td></tr></table></td></tr></table></td></tr></table>"
        ) { path, pages in
            #expect(pages > 1)
            let text = try await Self.text(path)
            #expect(text.contains("deep"))
        }
    }

    @Test func `what the small HTML does not know comes back with its line`() async throws {
        let refused = try await Self.refusal("<p>a</p>\n<video></video>")
        #expect(refused?.reason == .unsupported)
        #expect(
            refused?.sentence.hasPrefix("line 2: there is no <video> on a page; known are a, b,") == true,
            "\(refused?.sentence ?? "-")")
    }
}
