import Documents
import Foundation
import Pages
import Sandbox
import TestSupport
import Testing

private let words = ["Copper", "and", "timber", "for", "the", "railway"]

/// A few words with much paper at the right and below: turned or mirrored it is another picture.
private func page() async throws -> Grid {
    try await HardPage.drawn(250, 110, "Helvetica", "/F 15 Tf 20 75 Td (\(words.joined(separator: " "))) Tj")
}

@Suite struct PictureTests {
    /// Its words are read, the copy shows what is meant, and the words of the copy stand where they are seen.
    private func expect(
        _ name: String, _ file: [UInt8], shows page: Grid, within most: Double, _ engine: ChildPageReader
    )
        async throws
    {
        try await withFile(file) { file in
            let inspection = try await workshop.probe(file).value
            let raster = try await workshop.raster(file, inspection, page: 1).value
            #expect(abs(raster.head.dpi - 200) < 0.01, "\(name)")
            #expect(Grid(raster).distance(to: page) <= most, "\(name)")
            let text = try await engine.read(raster)
            #expect(text.words.map(\.text) == words, "\(name)")
            try await withFile([]) { output in
                _ = try await workshop.assemble(file, inspection, texts: [1: text], into: output)
                let copied = try await workshop.probe(output).value
                let shown = Grid(try await workshop.raster(output, copied, page: 1).value)
                #expect(shown.distance(to: Grid(raster)) <= 4, "the copy of \(name)")
                let own = try await workshop.ownText(output, copied, pages: [1]).value[1]
                #expect(own?.words.map(\.text) == words, "the copy of \(name)")
                for (word, read) in zip(own?.words ?? [], text.words) {
                    let box = read.box.scaled(by: 72 / 200)
                    #expect(abs(word.box.left - box.left) < 6 && abs(word.box.bottom - box.bottom) < 6, "\(name)")
                }
            }
        }
    }

    @Test func `a picture that lies on its side, or is mirrored, is read and copied as it is shown`() async throws {
        let page = try await page()
        // Otherwise the comparison would say nothing.
        for orientation in 2...4 { #expect(page.stored(orientation).distance(to: page) > 7) }
        let engine = ChildPageReader(workshop)
        for orientation in 1...8 {
            let stored = page.stored(orientation)
            let grey = TIFFForm(orientation: orientation).made(of: page)
            try await expect("TIFF \(orientation)", grey, shows: page, within: 0, engine)
            let photo = jpeg(of: stored, exif: exif(orientation: orientation))
            try await expect("JPEG \(orientation)", photo, shows: page, within: 4, engine)
        }
        _ = await engine.end()
    }

    @Test func `every form of TIFF shows the same page`() async throws {
        let page = try await page()
        let engine = ChildPageReader(workshop)
        let forms: [(String, TIFFForm, Double)] = [
            ("tiles", TIFFForm(tile: 64), 0), ("tiles of one bit", TIFFForm(bits: 1, tile: 64), 5),
            ("tiles, turned", TIFFForm(orientation: 6, tile: 64), 0),
            ("one bit, mirrored", TIFFForm(orientation: 2, bits: 1), 5),
            ("one bit, turned", TIFFForm(orientation: 8, bits: 1), 5),
            ("colours, mirrored", TIFFForm(orientation: 4, photometric: 2), 1),
            ("colours, turned and mirrored", TIFFForm(orientation: 7, photometric: 2), 1),
            ("planes", TIFFForm(photometric: 2, hasPlanes: true), 1),
            ("tiles of planes", TIFFForm(orientation: 5, photometric: 2, tile: 64, hasPlanes: true), 1),
            ("16 bits", TIFFForm(bits: 16), 1), ("16 bits of colours", TIFFForm(bits: 16, photometric: 2), 1),
            ("white is zero, 1 bit", TIFFForm(bits: 1, photometric: 0), 5),
            ("white is zero, 2 bits", TIFFForm(bits: 2, photometric: 0), 5),
            ("white is zero, 4 bits", TIFFForm(bits: 4, photometric: 0), 3),
            ("4 bits", TIFFForm(bits: 4), 3),
            ("BigTIFF in colours, turned", TIFFForm(orientation: 8, photometric: 2, isBig: true), 1),
            ("JPEG in the old form", TIFFForm(isOldJPEG: true), 4),
        ]
        for (name, form, most) in forms {
            try await expect(name, form.made(of: page), shows: page, within: most, engine)
        }
        _ = await engine.end()
    }

    @Test func `what is transparent in a PNG is paper`() async throws {
        let page = try await page()
        let engine = ChildPageReader(workshop)
        let (width, height) = (page.width, page.height)
        func rows(_ row: ([UInt8]) -> [UInt8]) -> [[UInt8]] {
            (0..<height).map { row(Array(page.pixels[$0 * width..<($0 + 1) * width])) }
        }
        /// Paper that is stored as black, and letters that are nearly so: only the transparency tells them apart.
        func dark(_ row: [UInt8]) -> [UInt8] { row.map { $0 == 255 ? 0 : max(1, $0) } }
        let palette = (0..<256).flatMap { [UInt8($0), UInt8($0), UInt8($0)] }
        let ink = rows { packed($0.map { $0 < 128 ? 255 : 0 }, bits: 1) }
        let files: [(String, [UInt8], Double)] = [
            ("grey", png(width: width, height: height, bits: 8, color: 0, rows: rows { $0 }), 0),
            (
                "grey, black is transparent",
                png(width: width, height: height, bits: 8, color: 0, transparency: [0, 0], rows: rows(dark)), 1
            ),
            (
                "grey, white is transparent",
                png(width: width, height: height, bits: 8, color: 0, transparency: [0, 255], rows: rows { $0 }), 0
            ),
            (
                "grey, 16 bits, black is transparent",
                png(
                    width: width, height: height, bits: 16, color: 0, transparency: [0, 0],
                    rows: rows { packed(dark($0), bits: 16) }), 2
            ),
            (
                "1 bit, white is transparent",
                png(
                    width: width, height: height, bits: 1, color: 0, transparency: [0, 1],
                    rows: rows { packed($0, bits: 1) }), 5
            ),
            (
                "colours, black is transparent",
                png(
                    width: width, height: height, bits: 8, color: 2, transparency: [0, 0, 0, 0, 0, 0],
                    rows: rows { dark($0).flatMap { [$0, $0, $0] } }), 1
            ),
            (
                "a palette whose first colour is transparent",
                png(
                    width: width, height: height, bits: 8, color: 3, palette: palette, transparency: [0],
                    rows: rows(dark)), 1
            ),
            (
                "a palette of black ink and nothing",
                png(
                    width: width, height: height, bits: 1, color: 3, palette: [0, 0, 0, 0, 0, 0], transparency: [0],
                    rows: ink), 5
            ),
            (
                "black ink of some opacity",
                png(
                    width: width, height: height, bits: 8, color: 6,
                    rows: rows { $0.flatMap { [0, 0, 0, 255 - $0] } }), 1
            ),
            (
                "black ink of some opacity, in grey",
                png(width: width, height: height, bits: 8, color: 4, rows: rows { $0.flatMap { [0, 255 - $0] } }), 1
            ),
        ]
        for (name, file, most) in files { try await expect(name, file, shows: page, within: most, engine) }
        _ = await engine.end()
    }

    @Test func `a JPEG with bytes too many, or an EXIF that says nothing, is read`() async throws {
        let page = try await page()
        let engine = ChildPageReader(workshop)
        let files: [(String, [UInt8])] = [
            ("bytes between segments", jpeg(of: page, junk: Array("0hello".utf8))),
            ("a stuffed byte between segments", jpeg(of: page, junk: [0xff, 0])),
            ("a part missing at its end", Array(jpeg(of: page).dropLast(60))),
        ]
        for (name, file) in files { try await expect(name, file, shows: page, within: 5, engine) }
        for (name, directory) in [
            ("no directory", [] as [UInt8]), ("a directory out of its segment", Array("MM\0*".utf8) + [0xff, 0, 0, 0]),
            ("bytes", Array("\u{ff}\u{ff}\u{ff}".utf8)), ("a cut directory", Array(exif(orientation: 6).prefix(12))),
        ] {
            try await withFile(jpeg(of: page, exif: directory)) { file in
                let inspection = try await workshop.probe(file).value
                let raster = try await workshop.raster(file, inspection, page: 1).value
                #expect(Grid(raster).distance(to: page) <= 4, "\(name)")
            }
        }
        _ = await engine.end()
    }

    @Test func `a picture shows the colours that its profile means, as sRGB`() async throws {
        func colors(_ profile: [UInt8]?) async throws -> [UInt8] {
            let rows = [[UInt8]](repeating: Array([200, 40, 90].repeated(8)), count: 8)
            return try await withFile(png(width: 8, height: 8, bits: 8, color: 2, profile: profile, rows: rows)) {
                let inspection = try await workshop.probe($0).value
                return Array(
                    try await workshop.raster($0, inspection, page: 1, keepsColor: true).value.pixels.prefix(3))
            }
        }
        #expect(try await colors(nil) == [200, 40, 90])
        let usual = try await colors(ColorProfile.sRGB)
        #expect(zip(usual, [200, 40, 90] as [UInt8]).allSatisfy { abs(Int($0) - Int($1)) <= 1 }, "\(usual)")
        // A monitor whose red is blue.
        let other = try await colors(exchanged("rXYZ", "bXYZ", in: ColorProfile.sRGB))
        #expect(zip(other, [90, 40, 200] as [UInt8]).allSatisfy { abs(Int($0) - Int($1)) <= 1 }, "\(other)")
        #expect(try await colors(Array(ColorProfile.sRGB.prefix(300))) == [200, 40, 90], "a broken one says nothing")
    }

    @Test func `the copy of a picture names the profile of its colours`() async throws {
        let profile = exchanged("rXYZ", "bXYZ", in: ColorProfile.sRGB)
        let rows = [[UInt8]](repeating: Array([200, 40, 90].repeated(40)), count: 40)
        for (profile, most) in [(profile, 3), (Array(profile.prefix(300)), 0)] {
            let file = png(width: 40, height: 40, bits: 8, color: 2, profile: profile, rows: rows)
            try await withFile(file) { file in
                let inspection = try await workshop.probe(file).value
                try await withFile([]) { output in
                    _ = try await workshop.assemble(file, inspection, texts: [:], into: output)
                    let copied = try await workshop.probe(output).value
                    let shown = try await workshop.raster(output, copied, page: 1, keepsColor: true).value
                    let middle = (shown.height / 2 * shown.width + shown.width / 2) * 3
                    let color = shown.pixels.dropFirst(middle).prefix(3)
                    let meant: [UInt8] = most > 0 ? [90, 40, 200] : [200, 40, 90]
                    #expect(zip(color, meant).allSatisfy { abs(Int($0) - Int($1)) <= most }, "\(Array(color))")
                }
            }
        }
    }
}

/// A profile in which two tags have each other's names.
private func exchanged(_ one: String, _ other: String, in profile: [UInt8]) -> [UInt8] {
    var result = profile
    for at in stride(from: 132, to: 132 + 12 * 9, by: 12) {
        switch String(decoding: profile[at..<at + 4], as: UTF8.self) {
        case one: result.replaceSubrange(at..<at + 4, with: other.utf8)
        case other: result.replaceSubrange(at..<at + 4, with: one.utf8)
        default: break
        }
    }
    return result
}

extension [UInt8] {
    fileprivate func repeated(_ count: Int) -> [UInt8] { (0..<count).flatMap { _ in self } }
}
