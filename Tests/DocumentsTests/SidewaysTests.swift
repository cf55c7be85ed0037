import Documents
import Pages
import Testing

/// PDFs whose own text lies on a side, as wide tables do.
@Suite struct SidewaysTests {
    private let rows = ["North 120 340 560", "South 130 350 570", "East 140 360 580", "West 150 370 590"]

    /// Each row from the top of the page down, or from its foot up.
    private func table(down: Bool, hasPicture: Bool = false) -> [UInt8] {
        let content = rows.enumerated().map { at, row in
            row.split(separator: " ").enumerated().map { column, word in
                let (across, along) = (24 * at, 90 * column)
                return down
                    ? "0 -1 1 0 \(400 - across) \(700 - along) Tm (\(word)) Tj"
                    : "0 1 -1 0 \(200 + across) \(100 + along) Tm (\(word)) Tj"
            }.joined(separator: " ")
        }
        return pdf([
            "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R"
                + "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>"
                + (hasPicture ? "/XObject<</I 5 0 R>>" : "") + ">>>>",
            stream(
                "",
                "BT /F 12 Tf \(content.joined(separator: " ")) ET"
                    + (hasPicture ? " q 200 0 0 200 50 50 cm /I Do Q" : "")),
            stream(
                "/Type/XObject/Subtype/Image/Width 1104/Height 1104/BitsPerComponent 1/ColorSpace/DeviceGray",
                String(repeating: "x", count: 1104 * 1104 / 8)),
        ])
    }

    private func own(_ bytes: [UInt8]) async throws -> PageText {
        try await withFile(bytes) { file in
            let inspection = try await workshop.probe(file).value
            return try #require(try await workshop.ownText(file, inspection, pages: [1]).value[1])
        }
    }

    @Test(arguments: [true, false])
    func `a table on its side is read row by row, on the page turned upright`(down: Bool) async throws {
        let text = try await own(table(down: down))
        #expect(text.rotation == (down ? 270 : 90) && text.width == 800 && text.height == 600)
        #expect(text.words.allSatisfy { $0.box.width > $0.box.height && $0.box.right < 800 && $0.box.bottom < 600 })
        #expect(text.text == rows.joined(separator: "\n"))
        for row in rows {
            let names = row.split(separator: " ").map(String.init)
            let boxes = try names.map { name in try #require(text.words.first { $0.text == name }).box }
            #expect(zip(boxes, boxes.dropFirst()).allSatisfy { $0.right < $1.left && abs($0.top - $1.top) < 2 })
        }
        let structure = PageStructure(of: text)
        #expect(!structure.elements.contains { $0.form == .heading })
        let cells = structure.elements.compactMap(\.table).flatMap(\.cells)
        #expect(cells.first { $0.text == "West" }?.row == 4 && cells.first { $0.text == "560" }?.column == 4)
    }

    @Test func `beside a picture, which may say more, words have their places on the page as shown`() async throws {
        let text = try await own(table(down: true, hasPicture: true))
        #expect(text.rotation == 0 && text.width == 600 && text.height == 800)
        #expect(text.words.count == 16 && text.words.allSatisfy { $0.box.height > $0.box.width })
        let first = try #require(text.words.first { $0.text == "North" }).box
        #expect(first.left > 390 && first.right < 415 && abs(first.top - 100) < 2)
    }

    @Test func `places are the same when the page is turned back`() {
        var text = PageText(
            origin: .own, width: 800, height: 600, dpi: 72,
            blocks: [Block([TextLine([Word("one", Box(10, 20, 40, 30)), Word("two", Box(50, 20, 80, 30))])])])
        text.rulings = Rulings(across: [Box(5, 40, 100, 41)], down: [Box(5, 10, 6, 40)])
        let places = [(90, Box(20, 760, 30, 790)), (180, Box(760, 570, 790, 580)), (270, Box(570, 10, 580, 40))]
        for (rotation, first) in places {
            text.rotation = rotation
            let shown = text.asShown
            #expect(shown.words[0].box == first && shown.rotation == 0)
            #expect(shown.width == (rotation == 180 ? 800 : 600) && shown.rulings?.across.count == 1)
            let page = Box(0, 0, shown.width, shown.height)
            #expect(shown.words[1].box.turned(by: rotation, on: page) == text.words[1].box)
            #expect(shown.rulings?.turned(by: rotation, on: page) == text.rulings)
        }
    }
}
