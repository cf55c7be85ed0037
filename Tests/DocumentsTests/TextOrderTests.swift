import Documents
import Foundation
import Pages
import TestSupport
import Testing

@Suite struct TextOrderTests {
    /// - Parameter order: `-raw` as drawn, `-layout` as seen; empty: as the program takes it to be read.
    private func copied(_ text: PageText, _ order: [String] = ["-raw"]) async throws -> String {
        let rows = (0..<Int(text.height)).map { _ in [UInt8](repeating: 255, count: Int(text.width)) }
        return try await withFile(png(width: Int(text.width), height: Int(text.height), rows: rows)) { file in
            let inspection = try await workshop.probe(file).value
            return try await withFile([]) { output in
                _ = try await workshop.assemble(file, inspection, texts: [1: text], into: output)
                return try await withPath(bytes(of: output)) { path in
                    try await Program.run("pdftotext", order + [path, "-"]).text
                }
            }
        }
    }

    private func words(_ text: String) -> [String] { text.split(whereSeparator: \.isWhitespace).map(String.init) }

    private func page(_ lines: [TextLine]) -> PageText {
        PageText(origin: .read, width: 800, height: 1000, dpi: 100, blocks: [Block(lines)])
    }

    @Test func `words that lie on each other stay words, in their order`() async throws {
        let text = page([
            TextLine([
                Word("one", Box(50, 50, 120, 70)), Word("two", Box(100, 50, 150, 70)),
                Word("three", Box(101, 51, 160, 71)),
            ]),
            TextLine([
                Word("four", Box(80, 55, 140, 75)), Word("five", Box(141, 55, 141, 75)),
                Word("six", Box(143, 55, 190, 75)),
            ]),
            TextLine([Word("seven", Box(60, 60, 200, 60)), Word("eight", Box(50, 61, 300, 90))]),
        ])
        #expect(try await words(copied(text)) == words(text.text))
    }

    @Test func `a receipt is copied row by row, and a price with what it is for`() async throws {
        let lines = (0..<12).map { row in
            let top = 40.0 + 17 * Double(row)
            let name = "t\(row)" + String(repeating: "s", count: (row * 7) % 12)
            return TextLine([
                Word(name, Box(20, top, 20 + 8 * Double(name.count), top + 12)),
                Word("\(row).50", Box(290, top, 330, top + 12)),
            ])
        }
        let text = PageText(origin: .read, width: 350, height: 340, dpi: 100, blocks: [Block(lines)])
        #expect(try await words(copied(text, [])) == words(text.text))
    }

    /// A line that begins on the right. Words in a group run to the right among themselves.
    private func fromTheRight(_ groups: [[String]], top: Double) -> TextLine {
        var (right, found): (Double, [Word]) = (760, [])
        for group in groups {
            let width = { (word: String) in 10 * Double(word.count) }
            var left = right - group.reduce(0) { $0 + width($1) + 12 } + 12
            right = left - 12
            for word in group {
                found.append(Word(word, Box(left, top, left + width(word), top + 20)))
                left += width(word) + 12
            }
        }
        return TextLine(found, baseline: [top + 16, top + 16])
    }

    private func lines(_ text: [String]) -> [TextLine] {
        text.enumerated().map { at, line in
            // Words between bars run to the right.
            let groups = line.split(separator: "|").enumerated().flatMap { at, part in
                let words = part.split(separator: " ").map(String.init)
                return at % 2 == 0 ? words.map { [$0] } : [words]
            }
            return fromTheRight(groups, top: 60 + 34 * Double(at))
        }
    }

    /// Such marks have no shape: programs that extract text add them, to say which way a part of it runs.
    private func withoutMarks(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.filter {
                    ![0x200E, 0x200F].contains($0.value) && !(0x202A...0x202E).contains($0.value)
                }))
    }

    @Test func `words that run to the left are copied in their order, with numbers and Latin among them`() async throws
    {
        let texts = [
            [
                "هذا النص العربي مكتوب من اليمين إلى اليسار", "ويحتوي على (أقواس) وأرقام 12.5 و 2024/05/17 هنا",
                "نسخة PDF من |Google Chrome| رقم 42 جديدة", "السلام عليكم، كيف حالك؟ قال: «نعم» 50%",
                "مُحَمَّدٌ رَسُولُ اللهِ", "العدد ١٢٣٫٤٥ والتاريخ ٢٠٢٤/٠٥/١٧ هنا",
            ],
            [
                "זהו טקסט בעברית שנכתב מימין לשמאל", "מחיר: 12.50 ₪ (כולל מע\"מ) בתאריך 17/05/2024",
                "טלפון 03-5551234 ודוא״ל info@example.com בלבד", "שָׁלוֹם עֲלֵיכֶם לכולם",
            ],
            [
                "این متن فارسی است و از راست به چپ نوشته می\u{200C}شود",
                "قیمت: ۱۲۵٬۰۰۰ تومان (شامل مالیات) در ۱۴۰۳/۰۲/۲۸",
                "نسخهٔ ۲ از |Linux Kernel| منتشر شد", "آیا کتاب\u{200C}ها را خوانده\u{200C}اید؟ بله!",
            ],
        ]
        for text in texts {
            let page = page(lines(text))
            #expect(try await words(withoutMarks(copied(page, []))) == words(page.text))
        }
    }

    @Test func `a word that runs to the left stands in its place among words that do not`() async throws {
        let parts = [
            ("The", 40.0), ("word", 90.0), ("שלום", 150.0), ("means", 210.0), ("(مرحبا)", 280.0), ("here", 370.0),
        ]
        let line = TextLine(
            parts.map { Word($0.0, Box($0.1, 60, $0.1 + 10 * Double($0.0.count), 80)) }, baseline: [76, 76])
        let plain = TextLine([Word("Another", Box(40, 94, 110, 114)), Word("line", Box(122, 94, 162, 114))])
        let page = page([line, plain])
        #expect(try await words(withoutMarks(copied(page, []))) == words(page.text))
    }

    /// What is left of the curl of a page that was read as it is.
    @Test func `lines that fall by more than half a letter are copied in their order`() async throws {
        let lines = (0..<10).map { row in
            let top = 100.0 + 24 * Double(row)
            let words = (0..<12).map { column in
                let (left, fall) = (40 + 60 * Double(column), 1.6 * Double(column))
                return Word("r\(row)w\(column)", Box(left, top - fall, left + 50, top - fall + 14))
            }
            return TextLine(words, baseline: [top + 12, top + 12 - 1.6 * 11.8])
        }
        let text = page(lines)
        #expect(try await words(copied(text, [])) == words(text.text))
    }

    /// A poor scan: lines askew and across each other, words too close, too narrow, too high.
    @Test func `the text of the copy is the text of the page, on the poorest page`() async throws {
        var state: UInt64 = 11
        func random(_ below: Int) -> Double {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Double(Int(state >> 33) % below)
        }
        for round in 0..<4 {
            let lines = (0..<40).map { number in
                let top = 20 + Double(number) * 18 + random(16)
                var left = 20 + random(200)
                let found = (0..<(1 + Int(random(8)))).map { index in
                    let width = random(70)
                    let height = 4 + random(24)
                    defer { left += width + random(12) - 4 }
                    return Word("w\(round)x\(number)x\(index)", Box(left, top, left + width, top + height))
                }
                return TextLine(found, baseline: random(2) == 0 ? [] : [top + 14, top + 14 + random(10)])
            }
            let text = page(lines)
            let (want, got) = (words(text.text), words(try await copied(text)))
            let first = zip(want, got).enumerated().first { $1.0 != $1.1 }
            #expect(
                want == got,
                "\(want.count) and \(got.count) words; the first that differs: \(String(describing: first))")
        }
    }
}
