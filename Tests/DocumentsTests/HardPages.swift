import Documents
import Foundation
import Glibc
import Pages
import Testing

/// Pages as they come from poor scanners and from phones, made from a clean one.
enum HardPage {
    static let sentences = [
        "The harbour office opens every morning at eight and closes",
        "when the last ferry has left the pier. Please send the signed",
        "copy of the agreement to our department before the end of the",
        "month. A small engine drove the pump that kept the garden dry",
        "during the long winter. Passengers without a valid ticket will",
        "pay the full price of the journey and a fee on the train. The",
        "committee found that the bridge needs new timber, two coats of",
        "paint and a better drain. She wrote that the children were well",
        "and that the house was warm. Water from the mountain is stored",
        "in three tanks, and each of them holds about four thousand",
        "litres. The teacher asked the class to copy the table and to",
        "mark every value above the average. Most of the silver was sold",
    ]

    static let german = [
        "F\\374r gr\\366\\337ere Mengen gew\\344hren wir Ihnen einen Nachlass von",
        "f\\374nf Prozent. Die G\\344ste sa\\337en w\\344hrend des Fr\\374hst\\374cks auf",
        "der Terrasse und genossen die sch\\366ne Aussicht \\374ber den See.",
        "Bitte \\374berweisen Sie den f\\344lligen Betrag sp\\344testens zum Ende",
        "des n\\344chsten Monats auf unser Konto. Der Schl\\374ssel h\\344ngt \\374ber",
        "dem K\\374chenschrank neben den Gl\\344sern, und alle \\304nderungen",
        "m\\374ssen bei uns schriftlich best\\344tigt werden.",
    ]

    static func clean(_ lines: [String] = sentences, copies: Int = 2) async throws -> Grid {
        let all = (0..<copies).flatMap { _ in lines }
        let text = all.map { "(\($0)) Tj T*" }.joined(separator: " ")
        let height = 24 * all.count + 160
        return try await drawn(
            560, height, "Helvetica/Encoding/WinAnsiEncoding", "/F 13 Tf 90 \(height - 90) Td 24 TL \(text)")
    }

    /// What and how much, far from each other, in small print on narrow paper.
    static func receipt(_ rows: [(String, String)]) async throws -> Grid {
        let lines = rows.map { name, price in
            "(\(name)) Tj 190 0 Td (\(String(repeating: " ", count: max(0, 6 - price.count)))\(price)) Tj -190 -11 Td"
        }
        let height = 11 * rows.count + 100
        return try await drawn(
            250, height, "Courier", "/F 8 Tf 15 \(height - 40) Td \(lines.joined(separator: " "))")
    }

    /// A page of this size in points with text in one font, as our programs draw it.
    static func drawn(_ width: Int, _ height: Int, _ font: String, _ text: String) async throws -> Grid {
        let file = pdf([
            "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 \(width) \(height)]/Contents 4 0 R"
                + "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/\(font)>>>>>>>>",
            stream("", "BT \(text) ET"),
        ])
        return try await withFile(file) { file in
            let inspection = try await workshop.probe(file).value
            return Grid(try await workshop.raster(file, inspection, page: 1).value)
        }
    }

    /// Lines in any script, from the right.
    static func fromTheRight(_ lines: [String]) async throws -> Grid {
        let html =
            "<page font='DejaVu Sans' font-size='13pt' dir='rtl'>" + lines.map { "<p>\($0)</p>" }.joined() + "</page>"
        return try await withFile([]) { file in
            _ = try await workshop.pages(PageDesign(title: "T", html: html, pictures: []), [], into: file)
            let inspection = try await workshop.probe(file).value
            return Grid(try await workshop.raster(file, inspection, page: 1).value)
        }
    }

    static func read(_ page: Grid, languages: [String] = ["eng"], dpi: Double = 200) async throws -> PageText {
        var own = workshop
        own.languages = languages
        let engine = ChildPageReader(own)
        let head = Raster.Head(width: page.width, height: page.height, dpi: dpi)
        let raster = try Raster(head: head, pixels: page.pixels[...], mostPixels: 100_000_000)
        let outcome: Result<PageText, any Error>
        do { outcome = .success(try await engine.read(raster)) } catch { outcome = .failure(error) }
        _ = await engine.end()
        return try outcome.get()
    }

    /// How many of the words of a page are found in another one.
    static func share(of lines: [String], in text: PageText) -> Double {
        let wanted = lines.joined(separator: " ").split(separator: " ").map(String.init)
        let found = Set(text.words.map(\.text))
        return Double(wanted.count { found.contains($0) }) / Double(wanted.count)
    }

    /// The share of the page's ink that lies in boxes of words.
    static func inkInWords(_ page: Grid, _ text: PageText) -> Double {
        let (c, s) = (cos(text.skew * .pi / 180), sin(text.skew * .pi / 180))
        let (cx, cy) = (Double(page.width) / 2, Double(page.height) / 2)
        let boxes = text.words.map(\.box)
        var (all, inside) = (0, 0)
        for y in stride(from: 0, to: page.height, by: 3) {
            for x in stride(from: 0, to: page.width, by: 3) where page[x, y] < 100 {
                all += 1
                // Turned as the page was turned to be level.
                let (dx, dy) = (Double(x) - cx, Double(y) - cy)
                let (px, py) = (cx + c * dx - s * dy, cy + s * dx + c * dy)
                let isInside = boxes.contains {
                    px >= $0.left - 2 && px <= $0.right + 2 && py >= $0.top - 2 && py <= $0.bottom + 2
                }
                if isInside { inside += 1 }
            }
        }
        return all == 0 ? 0 : Double(inside) / Double(all)
    }
}

extension Grid {
    /// Each pixel is taken from another place of the page; outside of it there is paper.
    func moved(_ from: (Double, Double) -> (Double, Double)) -> Grid {
        Grid(width: width, height: height) { x, y in
            let (sx, sy) = from(Double(x), Double(y))
            let (left, top) = (Int(sx.rounded(.down)), Int(sy.rounded(.down)))
            guard left >= 0, top >= 0, left + 1 < width, top + 1 < height else { return 255 }
            let (fx, fy) = (sx - Double(left), sy - Double(top))
            let upper = Double(self[left, top]) * (1 - fx) + Double(self[left + 1, top]) * fx
            let lower = Double(self[left, top + 1]) * (1 - fx) + Double(self[left + 1, top + 1]) * fx
            return UInt8(upper * (1 - fy) + lower * fy)
        }
    }

    func turned(by degrees: Double) -> Grid {
        let (c, s) = (cos(degrees * .pi / 180), sin(degrees * .pi / 180))
        let (cx, cy) = (Double(width) / 2, Double(height) / 2)
        return moved { x, y in (cx + c * (x - cx) + s * (y - cy), cy - s * (x - cx) + c * (y - cy)) }
    }

    func lit(_ light: (Int, Int, UInt8) -> UInt8) -> Grid {
        Grid(width: width, height: height) { x, y in light(x, y, self[x, y]) }
    }
}
