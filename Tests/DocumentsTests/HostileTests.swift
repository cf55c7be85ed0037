import Documents
import Foundation
import Pages
import Sandbox
import Testing

/// Documents made to hurt, through all stages.
@Suite(.serialized) struct HostileTests {
    private func tight() -> DocumentPrograms {
        var tight = workshop
        tight.pageCPU = .seconds(1)
        return tight
    }

    private func read(_ bytes: [UInt8], engine: any PageReader) async throws -> Result<DocumentReading, DocumentFailure>
    {
        try await withFile(bytes) { file in
            await outcome { try await tight().read(file, engines: [engine]) }
        }
    }

    @Test func `what would go on for ever, or fill the memory, ends with a reason`() async throws {
        var slow = tight()
        slow.pageCPU = .seconds(1)
        try await withFile(endlessForms) { file in
            let inspection = try await slow.probe(file).value
            guard case .failure(let failure) = await outcome({ try await slow.raster(file, inspection, page: 1) })
            else {
                Issue.record("10^12 drawings were drawn")
                return
            }
            #expect([.timeout, .memory].contains(failure.reason) && !failure.mayGoWell, "\(failure)")
        }
        // A lot of pixels on a very small place: not drawn as finely as it asks for.
        var tiny = Inspection.Page(width: 36, height: 36)
        tiny.dpi = 144_000
        #expect(Raster.dpi(for: tiny, cap: 300, mostPixels: 1 << 25) == 300)
        var wide = Inspection.Page(width: 14_400, height: 14_400)
        wide.dpi = 600
        let coarse = Raster.dpi(for: wide, cap: 300, mostPixels: 36_000_000)
        #expect(coarse < 31 && coarse > 29)
    }

    @Test func `a page that hurts leaves the others unhurt`() async throws {
        let engine = ChildPageReader(tight())
        let two = pdf([
            "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 14400000 14400000]/Contents 5 0 R>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 5 0 R"
                + "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>",
            stream("", "BT /F 24 Tf 72 700 Td (Hello out there) Tj ET"),
        ])
        let reading = try await read(two, engine: engine).get()
        #expect(reading.failures[1]?.reason == .tooLarge && reading.texts[2]?.text == "Hello out there")
        _ = await engine.end()
    }

    /// Its lines are looked for in a picture, which is drawn for as long as the program may compute.
    @Test func `a table that takes too long to draw keeps its words`() async throws {
        let rows = [(700, "Item", "Pieces"), (680, "Lamp", "12"), (660, "Chair", "3")].map { height, item, pieces in
            "BT /F 12 Tf 72 \(height) Td (\(item)) Tj ET BT /F 12 Tf 300 \(height) Td (\(pieces)) Tj ET "
        }
        let slow = pdf([
            "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F<</Type/Font"
                + "/Subtype/Type1/BaseFont/Helvetica>>>>/Shading<</S<</ShadingType 1/ColorSpace/DeviceGray"
                + "/Domain[0 595 0 842]/Function 5 0 R>>>>>>>>",
            stream("", String(repeating: "/S sh ", count: 100) + rows.joined()),
            stream("/FunctionType 4/Domain[0 595 0 842]/Range[0 1]", "{ 3.7 mul sin exch 7.3 mul cos mul abs }"),
        ])
        try await withFile(slow) { file in
            let inspection = try await tight().probe(file).value
            let said = try await tight().ownText(file, inspection, pages: [1])
            #expect(said.value[1]?.words.map(\.text) == ["Item", "Pieces", "Lamp", "12", "Chair", "3"])
            // It was ended, so there are no lines.
            #expect(said.value[1]?.rulings == nil && said.usage.cpu >= .milliseconds(800))
        }
    }
}
