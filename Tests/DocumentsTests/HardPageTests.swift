import Documents
import Foundation
import Pages
import Postgres
import TestSupport
import Testing

@Suite struct HardPageTests {
    @Test(arguments: [-8.0, 12.0])
    func `a page far askew is read, and its words lie on their ink`(degrees: Double) async throws {
        let page = try await HardPage.clean(copies: 1).turned(by: degrees)
        let text = try await HardPage.read(page)
        #expect(abs(abs(text.skew) - abs(degrees)) < 0.5)
        #expect(HardPage.share(of: HardPage.sentences, in: text) > 0.95)
        #expect(HardPage.inkInWords(page, text) > 0.95)
    }

    /// Too few letters to say at once which side is up: on one side they read as noise, on the other the engine reads lines that run upward.
    @Test(arguments: [90, 270])
    func `a page of few words that lies on its side is turned`(rotation: Int) async throws {
        let lines = [
            "Two boats carry timber and salt to the island", "every Monday and return on the next evening",
            "with letters",
        ]
        let text = lines.map { "(\($0)) Tj T*" }.joined(separator: " ")
        let page = try await HardPage.drawn(560, 300, "Helvetica", "/F 13 Tf 90 210 Td 24 TL \(text)")
        let turned = Grid(width: page.height, height: page.width) { x, y in
            rotation == 90 ? page[page.width - 1 - y, x] : page[y, page.height - 1 - x]
        }
        let found = try await HardPage.read(turned)
        #expect(found.rotation == rotation && found.width == Double(page.width))
        #expect(HardPage.share(of: lines, in: found) > 0.95)
        #expect(found.words.filter { $0.text.count > 2 }.allSatisfy { $0.box.width > $0.box.height })
    }

    @Test func `a curled page is read along its lines, and its words lie on their ink`() async throws {
        let clean = try await HardPage.clean()
        let width = Double(clean.width)
        let page = clean.moved { x, y in (x, y - 170 * exp(-3.2 * x / width)) }
        let text = try await HardPage.read(page)
        #expect(text.preparation.hasPrefix("flattened"))
        #expect(HardPage.share(of: HardPage.sentences, in: text) > 0.95)
        #expect(HardPage.inkInWords(page, text) > 0.9)
    }

    @Test func `light text on dark is read, on a whole page and in a field of it`() async throws {
        let clean = try await HardPage.clean(copies: 1)
        let whole = try await HardPage.read(clean.lit { _, _, level in 255 - level })
        #expect(HardPage.share(of: HardPage.sentences, in: whole) > 0.97)
        let (top, bottom) = (clean.height / 3, clean.height * 2 / 3)
        let field = clean.lit { x, y, level in
            (top..<bottom).contains(y) && x > 150 && x < clean.width - 60 ? 215 - UInt8(Double(level) * 0.7) : level
        }
        let partly = try await HardPage.read(field)
        #expect(HardPage.share(of: HardPage.sentences, in: partly) > 0.9)
    }

    @Test func `the prices of a receipt are read, row by row`() async throws {
        let names = [
            "Olive oil", "Rice", "Milk", "Cheese", "Garden gloves", "Paper towels", "Butter", "Candles", "Tomatoes",
            "Soap",
            "Coffee", "Apples", "Light bulb", "Batteries",
        ]
        let rows = names.enumerated().map { ($1, "\(3 + $0).\(10 + 5 * $0)") }
        let text = try await HardPage.read(try await HardPage.receipt(rows))
        let lines = text.blocks.flatMap(\.lines).map { $0.words.map(\.text).joined(separator: " ") }
        let found = rows.count { lines.contains("\($0.0) \($0.1)") }
        #expect(found >= rows.count - 2, "\(lines)")
    }

    @Test func `a coarse page is read as well as a fine one`() async throws {
        let fine = try await HardPage.clean(copies: 1)
        let coarse = Grid(width: fine.width / 3, height: fine.height / 3) { x, y in
            let sum = (0..<9).reduce(0) { $0 + Int(fine[3 * x + $1 % 3, 3 * y + $1 / 3]) }
            return UInt8(sum / 9)
        }
        let text = try await HardPage.read(coarse, dpi: 200.0 / 3)
        #expect(HardPage.share(of: HardPage.sentences, in: text) > 0.98)
        #expect(HardPage.inkInWords(coarse, text) > 0.95)
    }

    @Test func `a page half in shadow is read`() async throws {
        let clean = try await HardPage.clean(copies: 1)
        let page = clean.lit { x, y, level in
            UInt8(Double(level) * (2 * x + y < clean.width ? 0.4 : 0.95))
        }
        #expect(HardPage.share(of: HardPage.sentences, in: try await HardPage.read(page)) > 0.95)
    }

    @Test func `a clean page is read once, as it is`() async throws {
        let text = try await HardPage.read(try await HardPage.clean(copies: 1), languages: ["auto"])
        #expect(text.preparation == "plain")
        #expect(text.languages == ["eng"] && text.missing == nil)
        #expect(HardPage.share(of: HardPage.sentences, in: text) > 0.98)
    }

    @Test func `the language of a page is found, and what is missing for it is named`() async throws {
        let page = try await HardPage.clean(HardPage.german, copies: 1)
        let text = try await HardPage.read(page, languages: ["auto"])
        if FileManager.default.fileExists(atPath: "\(workshop.models)/deu.traineddata") {
            #expect(text.languages == ["deu"] && text.missing == nil)
            #expect(Set(text.words.map(\.text)).isSuperset(of: ["größere", "Gäste", "schöne", "über", "Änderungen"]))
        } else {
            #expect(text.missing == ["deu"])
        }
    }

    private func has(_ models: String...) -> Bool {
        models.allSatisfy { FileManager.default.fileExists(atPath: "\(workshop.models)/\($0).traineddata") }
    }

    @Test func `Persian is told from Arabic, whose letters it has`() async throws {
        let lines = [
            "این متن فارسی است و از راست به چپ نوشته شده", "قیمت این کتاب بسیار مناسب است", "تهران پایتخت ایران است",
            "ما هر روز به مدرسه می رویم و درس می خوانیم",
        ]
        guard has("ara") else { return }
        let page = try await HardPage.fromTheRight(lines + lines)
        let text = try await HardPage.read(page, languages: ["auto"])
        if has("fas") {
            #expect(text.languages?.last == "fas" && text.missing == nil)
            #expect(Set(text.words.map(\.text)).isSuperset(of: ["فارسی", "چپ", "پایتخت"]))
        } else {
            #expect(text.missing == ["fas"])
        }
    }

    @Test func `a page on its side is turned, too, where its script is not yet known`() async throws {
        guard has("ara") else { return }
        let line = "هذا النص العربي مكتوب من اليمين إلى اليسار في كتاب"
        let page = try await HardPage.fromTheRight([String](repeating: line, count: 24))
        let turned = Grid(width: page.height, height: page.width) { x, y in page[page.width - 1 - y, x] }
        let text = try await HardPage.read(turned, languages: ["auto"])
        #expect(text.rotation == 90 && text.languages?.last == "ara")
        #expect(HardPage.share(of: [line], in: text) > 0.8)
    }

    @Test func `Latin words among those that run to the left are read, without marks of direction`() async throws {
        let lines = [
            "זהו טקסט בעברית שנכתב מימין לשמאל", "הגרסה החדשה של Windows יצאה לאור", "ירושלים היא עיר עתיקה מאוד",
            "חברת Google הודיעה על מוצר חדש", "אנחנו לומדים לקרוא ולכתוב בבית הספר", "המחיר הוא 350 dollars לכל יחידה",
        ]
        guard has("heb") else { return }
        for languages in [["auto"], ["heb", "eng"]] {
            let text = try await HardPage.read(try await HardPage.fromTheRight(lines), languages: languages)
            let words = text.words.map(\.text)
            #expect(Set(words).isSuperset(of: ["Windows", "Google", "ירושלים", "הודיעה", "הוא"]), "\(words)")
            let latin = words.filter { $0.contains { $0.isASCII && $0.isLetter } }
            #expect(
                Set(latin).isSubset(of: ["Windows", "Google", "dollars"]),
                "a Hebrew word is taken for a Latin one: \(latin)")
        }
    }

    @Test func `short words say the language, and too few of them say nothing`() {
        #expect(LanguageEvidence.language(of: "The price of the house and of the garden is that of 1894.") == "eng")
        #expect(
            LanguageEvidence.language(of: "Der Preis und die Größe werden mit dem Brief von Ihnen genannt.") == "deu")
        #expect(
            LanguageEvidence.language(of: "Le prix de la maison est dans une lettre pour les voisins du quartier.")
                == "fra")
        #expect(LanguageEvidence.language(of: "هذا النص العربي في كتاب عن مدينة على البحر مع صور") == "ara")
        #expect(LanguageEvidence.language(of: "این متن فارسی است و از راست به چپ نوشته شده") == "fas")
        #expect(LanguageEvidence.language(of: "اين متن فارسى است و از راست به جب نوشته شده") == "fas", "as Arabic")
        #expect(LanguageEvidence.language(of: "یہ کتاب اردو میں ہے اور اس کی قیمت کم ہے") == "urd")
        #expect(LanguageEvidence.models(forScript: "Fraktur").first == "frk", "it is a script to the engine")
        #expect(LanguageEvidence.language(of: "Butter 14.47 Milk 3.99 Total 18.46") == nil)
    }

    @Test func `specks are told from print and from paper`() {
        let paper = [UInt8](repeating: 230, count: 200 * 200)
        var specks = paper
        for place in stride(from: 7, to: specks.count, by: 31) { specks[place] = 0 }
        #expect(!Gate.isSpeckled(paper[...], width: 200, height: 200))
        #expect(Gate.isSpeckled(specks[...], width: 200, height: 200))
    }

    @Test func `lines that bend or spread are no lines of a flat page`() {
        func lines(_ height: (Double, Double) -> Double) -> [TextLine] {
            (0..<10).map { row in
                TextLine(
                    (0..<9).map { column in
                        let (x, y) = (Double(column) * 60, Double(row) * 40)
                        let base = y + height(x, y)
                        return Word("word", Box(x, base, x + 50, base + 20))
                    })
            }
        }
        #expect(!LineShape(lines { _, _ in 0 }).isCurved)
        #expect(!LineShape(lines { x, _ in 0.02 * x }).isCurved)
        #expect(LineShape(lines { x, _ in 0.0004 * (x - 240) * (x - 240) }).isCurved)
        #expect(LineShape(lines { x, y in 0.0002 * x * y }).isCurved)
    }

    @Test func `languages that are given are kept, and auto is the default`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            func choices(_ options: String) async throws -> String? {
                try await connection.value("millrace.document_choices('\(options)')")
            }
            #expect(try await choices("{}") == "{}")
            #expect(try await choices(#"{"languages": ["auto"]}"#) == "{}")
            #expect(try await choices(#"{"languages": ["deu"]}"#) == #"{"languages": "given"}"#)
            #expect(
                try await connection.value(#"(millrace.document_options('{"languages": ["auto"]}')).languages"#)
                    == "{eng}")
            await connection.close()
        }
    }
}
