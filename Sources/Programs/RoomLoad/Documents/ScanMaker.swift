import CommandKit
import Compression
import Documents
import Pages
import Postgres
import Sandbox

/// Makes scans of pages: typeset, drawn, and put into a PDF as a scanner would.
struct ScanMaker: Sendable {
    let workshop: DocumentPrograms
    private let fileCache = FileCache(directory: "/tmp")

    init(workshop: DocumentPrograms) {
        self.workshop = workshop
    }

    private static let words = [
        "railway", "timber", "station", "garden", "letter", "copper", "morning", "carriage", "window", "mountain",
        "ticket", "bench", "summer", "engine", "report", "number", "teacher", "lesson", "river", "bridge", "paper",
        "market", "winter", "harbour", "school", "village", "journey", "engineer", "clock", "luggage",
    ]

    /// Dense pages, each with other words.
    func pages(_ count: Int, seed: UInt64 = 1) async throws -> [Raster] {
        var state = seed
        func next() -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33)
        }
        let text = (0..<count * 700).map { _ in Self.words[next() % Self.words.count] }.joined(separator: " ")
        let sheet = try await fileCache.blank()
        _ = try await workshop.report(
            Report(title: "Pages", facts: [], pages: [.init(heading: "Text", text: text)]), into: sheet.descriptor)
        let inspection = try await workshop.probe(sheet.descriptor).value
        var rasters: [Raster] = []
        for page in 1...max(1, inspection.pages.count) where rasters.count < count {
            rasters.append(try await workshop.raster(sheet.descriptor, inspection, page: page).value)
        }
        guard rasters.count == count else { throw Failure("only \(rasters.count) pages could be set") }
        return rasters
    }

    /// The ten digits as they are drawn, to make many pages of at little cost.
    struct Digits: Sendable {
        fileprivate var cells: [[UInt8]] = []
        fileprivate let width = 20
        fileprivate let height = 40

        /// A page of A4 at 100 dpi with a number on it and nothing else.
        func page(_ number: Int) throws -> Raster {
            let (across, down) = (827, 1169)
            var pixels = [UInt8](repeating: 255, count: across * down)
            for (place, digit) in String(100_000 + number).utf8.enumerated() {
                let cell = cells[Int(digit - 0x30)]
                for row in 0..<height {
                    for column in 0..<width {
                        pixels[(100 + row) * across + 100 + place * width + column] = cell[row * width + column]
                    }
                }
            }
            let head = Raster.Head(width: across, height: down, dpi: 100)
            do throws(Pages.DocumentRefusal) {
                return try Raster(head: head, pixels: pixels[...], mostPixels: pixels.count)
            } catch {
                throw Failure(error.sentence)
            }
        }
    }

    func digits() async throws -> Digits {
        let sheet = try await fileCache.blank()
        try await fileCache.append(Self.plain(text: "0123456789", font: "Courier"), to: sheet)
        let inspection = try await workshop.probe(sheet.descriptor).value
        var coarse = workshop
        coarse.dpiCap = 100
        let raster = try await coarse.raster(sheet.descriptor, inspection, page: 1).value
        var digits = Digits()
        // Set at 72, 700 of 842 points in 24, where a letter of this font is 14.4 wide.
        let (left, top) = (100, (842 - 700 - 22) * 100 / 72)
        for digit in 0..<10 {
            let cell = (0..<digits.height).flatMap { row in
                let start = raster.pixels.startIndex + (top + row) * raster.width + left + digit * digits.width
                return Array(raster.pixels[start..<start + digits.width])
            }
            guard cell.contains(where: { $0 < 100 }) else { throw Failure("the digits could not be drawn") }
            digits.cells.append(cell)
        }
        return digits
    }

    /// A PDF of nothing but pictures.
    static func pdf(_ rasters: [Raster]) throws -> [UInt8] {
        var objects: [[UInt8]] = [
            Array("<</Type/Catalog/Pages 2 0 R>>".utf8),
            Array(
                "<</Type/Pages/Kids[\(rasters.indices.map { "\(3 + 3 * $0) 0 R" }.joined(separator: " "))]/Count \(rasters.count)>>"
                    .utf8),
        ]
        for (index, raster) in rasters.enumerated() {
            let at = 3 + 3 * index
            let dpi = Int(raster.head.dpi)
            let (width, height) = (raster.width * 72 / dpi, raster.height * 72 / dpi)
            objects.append(
                Array(
                    "<</Type/Page/Parent 2 0 R/MediaBox[0 0 \(width) \(height)]/Contents \(at + 1) 0 R/Resources<</XObject<</I \(at + 2) 0 R>>>>>>"
                        .utf8))
            objects.append(stream("", Array("q \(width) 0 0 \(height) 0 0 cm /I Do Q".utf8)))
            objects.append(
                stream(
                    "/Type/XObject/Subtype/Image/Width \(raster.width)/Height \(raster.height)/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/FlateDecode",
                    try packed(Array(raster.pixels))))
        }
        return file(objects)
    }

    /// One page that says its text itself.
    static func plain(_ number: Int) -> [UInt8] { plain(text: "Document number \(number)", font: "Helvetica") }

    private static func plain(text: String, font: String) -> [UInt8] {
        file([
            Array("<</Type/Catalog/Pages 2 0 R>>".utf8), Array("<</Type/Pages/Kids[3 0 R]/Count 1>>".utf8),
            Array(
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/\(font)>>>>>>>>"
                    .utf8),
            stream("", Array("BT /F 24 Tf 72 700 Td (\(text)) Tj ET".utf8)),
        ])
    }

    private static func stream(_ dictionary: String, _ data: [UInt8]) -> [UInt8] {
        Array("<<\(dictionary)/Length \(data.count)>>\nstream\n".utf8) + data + Array("\nendstream".utf8)
    }

    private static func file(_ objects: [[UInt8]]) -> [UInt8] {
        var out = Array("%PDF-1.7\n".utf8)
        var offsets: [Int] = []
        for (index, object) in objects.enumerated() {
            offsets.append(out.count)
            out += Array("\(index + 1) 0 obj\n".utf8) + object + Array("\nendobj\n".utf8)
        }
        let start = out.count
        out += Array("xref\n0 \(objects.count + 1)\n0000000000 65535 f \n".utf8)
        for offset in offsets {
            out += Array((String(repeating: "0", count: 10 - String(offset).count) + "\(offset) 00000 n \n").utf8)
        }
        return out
            + Array("trailer<</Size \(objects.count + 1)/Root 1 0 R>>\nstartxref\n\(start)\n%%EOF\n".utf8)
    }

    private static func packed(_ bytes: [UInt8]) throws -> [UInt8] {
        guard let packed = Zlib.compressed(bytes, level: 1) else { throw Failure("a page could not be packed") }
        return packed
    }
}
