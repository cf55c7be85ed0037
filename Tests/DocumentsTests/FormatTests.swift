import Documents
import Foundation
import Pages
import Sandbox
import Testing

@Suite struct FormatTests {
    /// Read as the page that it shows, and copied as it.
    private func expect(_ name: String, _ file: [UInt8], _ kind: FileFormat, shows page: Grid, within most: Double)
        async throws
    {
        try await withFile(file) { file in
            let inspection = try await workshop.probe(file).value
            #expect(inspection.kind == kind && inspection.pages.count == 1, "\(name)")
            let worked = try await workshop.raster(file, inspection, page: 1)
            let seen = Grid(worked.value)
            #expect(seen.distance(to: page) <= most, "\(name): \(seen.distance(to: page))")
            #expect(worked.refusedLayers == 0, "\(name)")
            try await withFile([]) { output in
                #expect(try await workshop.assemble(file, inspection, texts: [:], into: output).value.pages == 1)
                let copied = try await workshop.probe(output).value
                let shape = copied.pages[0].width / copied.pages[0].height
                #expect(abs(shape - Double(page.width) / Double(page.height)) < 0.05, "the copy of \(name)")
            }
        }
    }

    @Test func `a GIF's first frame is its page`() async throws {
        try await expect("GIF", GIFForm().made(of: bar), .gif, shows: bar, within: 2)
        try await expect("rows apart", GIFForm(isInterlaced: true).made(of: bar), .gif, shows: bar, within: 2)
        try await expect("frames", GIFForm(frames: 3).made(of: bar), .gif, shows: bar, within: 2)
        let clear = Grid(width: 96, height: 64) { x, y in bar[x, y] == 20 ? 255 : bar[x, y] }
        let nothing = GIFForm(transparent: UInt8(20 * 127 / 255)).made(of: bar)
        try await expect("transparent", nothing, .gif, shows: clear, within: 2)
        let part = Grid(width: 120, height: 80) { x, y in
            (10..<106).contains(x) && (6..<70).contains(y) ? bar[x - 10, y - 6] : 255
        }
        let placed = GIFForm(left: 10, top: 6, screen: (120, 80)).made(of: bar)
        try await expect("a part of it", placed, .gif, shows: part, within: 2)
        try await expect("no screen", GIFForm(screen: (0, 0)).made(of: bar), .gif, shows: bar, within: 2)
    }

    @Test func `every form of BMP shows the same page`() async throws {
        for (name, form, most) in [
            ("24 bits", BMPForm(), 0), ("from the top", BMPForm(isTopDown: true), 0), ("32 bits", BMPForm(bits: 32), 0),
            ("16 bits", BMPForm(bits: 16), 5), ("8 bits", BMPForm(bits: 8), 0), ("4 bits", BMPForm(bits: 4), 9),
            ("of OS/2", BMPForm(bits: 8, isOld: true), 0), ("runs of bytes", BMPForm(bits: 8, packing: 1), 0),
            ("runs of halves", BMPForm(bits: 4, packing: 2), 9), ("ink", BMPForm(bits: 32, packing: 3), 1),
        ] as [(String, BMPForm, Double)] {
            try await expect(name, form.made(of: bar), .bmp, shows: bar, within: most)
        }
    }

    @Test func `a WebP is shown as it lies, its first frame in its place, and over white`() async throws {
        try await expect("WebP", WebPForm().made(of: bar), .webp, shows: bar, within: 0)
        try await expect("ink", WebPForm(isInk: true).made(of: bar), .webp, shows: bar, within: 1)
        for orientation in 1...8 {
            let file = WebPForm(orientation: orientation).made(of: bar.stored(orientation))
            try await expect("orientation \(orientation)", file, .webp, shows: bar, within: 0)
        }
        let part = Grid(width: 120, height: 80) { x, y in
            (10..<106).contains(x) && (6..<70).contains(y) ? bar[x - 10, y - 6] : 255
        }
        try await expect("frames", WebPForm(place: (10, 6, 120, 80)).made(of: bar), .webp, shows: part, within: 0)
    }

    @Test func `JPEG 2000 and AVIF show the page`() async throws {
        try await expect("JP2", jp2Sample, .jp2, shows: bar, within: 0)
        try await expect("a codestream", j2kSample, .jp2, shows: bar, within: 0)
        try await expect("AVIF", avifSample, .avif, shows: bar, within: 2)
        try await expect("AVIF of ink", avifInkSample, .avif, shows: bar, within: 3)
        for (quarters, orientation) in [(1, 6), (2, 3), (3, 8)] {
            let shown = bar.stored(orientation)
            try await expect(
                "a turned AVIF", turned(avifSample, quarters: UInt8(quarters)), .avif, shows: shown, within: 2)
        }
        // An axis of 1 is that from above to below.
        let mirrored = turned(avifSample, quarters: 0, axis: 1)
        try await expect("a mirrored AVIF", mirrored, .avif, shows: bar.stored(2), within: 2)
    }

    @Test func `a picture in which no letter has room is a page without words`() async throws {
        let engine = ChildPageReader(workshop)
        for (width, height) in [(1, 1), (4, 4), (7, 300), (8, 8), (12, 9), (300, 3)] {
            let rows = (0..<height).map { y in (0..<width).map { UInt8(($0 + y) % 2 * 255) } }
            try await withFile(png(width: width, height: height, rows: rows)) { file in
                let reading = try await workshop.read(file, engines: [engine])
                #expect(reading.failures.isEmpty && reading.texts[1]?.wordCount == 0, "\(width) × \(height)")
            }
        }
        _ = await engine.end()
    }

    @Test func `a page keeps its words beside a picture with too many pixels`() async throws {
        for (side, isDrawn) in [(15_000, true), (90_000, false)] {
            let file = pdf([
                "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/UserUnit 2/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>"
                    + "/Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
                stream("", "q 200 0 0 200 0 0 cm /I Do Q BT /F 24 Tf 72 700 Td (Hello out there) Tj ET"),
                stream(
                    "/Type/XObject/Subtype/Image/Width \(side)/Height \(side)/ColorSpace/DeviceGray/BitsPerComponent 1",
                    "00"),
            ])
            let engine = ChildPageReader(workshop)
            try await withFile(file) { file in
                let reading = try await workshop.read(file, engines: [engine])
                #expect(reading.texts[1]?.text.contains("Hello out there") == true, "\(side): \(reading.failures)")
                #expect((reading.inspection.pages[0].undrawn == nil) == isDrawn, "\(side)")
            }
            _ = await engine.end()
        }
    }
}
