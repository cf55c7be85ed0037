import Documents
import Foundation
import Pages
import Sandbox
import Testing

/// Bar codes on pages: finding them, their places, and what they say about where a document ends.
@Suite(.serialized) struct CodeTests {
    private func codes(_ raster: Raster) async throws -> [PageCode] { try await workshop.codes(in: raster).value }

    @Test func `bar codes and QR codes are read where they are, also on a page that lies on its side`() async throws {
        let page = try Raster.paper(1000, 700).with(bars: "PATCHT", x: 100, y: 80)
            .with(qr: splitQR, x: 600, y: 400)
        let found = try await codes(page).sorted { $0.symbology < $1.symbology }
        #expect(found.map(\.symbology) == ["code128", "qrcode"])
        #expect(found.map(\.text) == ["PATCHT", "millrace:split"])
        let (line, square) = (try #require(found.first).box, try #require(found.last).box)
        #expect(
            abs(line.left - 100) < 12 && abs(line.right - 302) < 12 && line.top >= 78 && line.bottom <= 142, "\(line)")
        #expect(abs(square.left - 620) < 12 && abs(square.top - 420) < 12, "\(square)")
        let turned = try await codes(page.quarterTurned)
        #expect(Set(turned.map(\.text)) == ["PATCHT", "millrace:split"])
    }

    @Test func `a code stands beside the words of its page, however that was turned to be read`() throws {
        let raster = try Raster.paper(400, 300)
        let code = PageCode(symbology: "qrcode", text: "x", box: Box(10, 20, 50, 60))
        func placed(_ rotation: Int, _ width: Double, _ height: Double) -> Box? {
            var text = PageText(origin: .read, width: width, height: height, dpi: 200, blocks: [])
            text.rotation = rotation
            return text.with([code], drawn: raster).codes?.first?.box
        }
        #expect(placed(0, 400, 300) == Box(10, 20, 50, 60))
        #expect(placed(0, 200, 150) == Box(5, 10, 25, 30), "in points")
        #expect(placed(90, 300, 400) == Box(240, 10, 280, 50))
        #expect(placed(180, 400, 300) == Box(350, 240, 390, 280))
        #expect(placed(270, 300, 400) == Box(20, 350, 60, 390))
    }

    @Test func `the gate lets pages with codes pass, and none of text`() async throws {
        let text = try await scan(3)
        #expect(!CodeGate.mayHaveCodes(text))
        #expect(!CodeGate.mayHaveCodes(try .paper(1000, 700)))
        let lines = try Raster.paper(1000, 700) { _, y in y % 40 < 3 ? 0 : 255 }
        #expect(!CodeGate.mayHaveCodes(lines), "ruled paper")
        let page = try Raster.paper(1000, 700)
        #expect(CodeGate.mayHaveCodes(page.with(bars: "PATCHT", x: 100, y: 80)))
        #expect(CodeGate.mayHaveCodes(page.with(bars: "ASN00042", x: 100, y: 80, module: 3).quarterTurned))
        #expect(CodeGate.mayHaveCodes(page.with(qr: splitQR, x: 600, y: 400)))
        #expect(CodeGate.mayHaveCodes(page.with(qr: splitQR, x: 600, y: 400).quarterTurned))
    }

    @Test func `pictures made to hurt end within the limits, and a wrong one is refused`() async throws {
        var noise = SystemRandomNumberGenerator()
        let rasters = [
            try Raster.paper(1, 1), try Raster.paper(3000, 1), try Raster.paper(1, 3000),
            try Raster.paper(2400, 2400) { x, y in (x + y) % 2 == 0 ? 0 : 255 },
            try Raster.paper(2400, 2400) { x, _ in x % 3 == 0 ? 0 : 255 },
            try Raster.paper(1500, 1500) { _, _ in UInt8.random(in: 0...255, using: &noise) },
            // Corners of QR codes everywhere.
            try Raster.paper(1400, 1400) { x, y in
                let (a, b) = (abs(x % 14 - 7), abs(y % 14 - 7))
                return max(a, b) <= 3 || max(a, b) == 6 ? 0 : 255
            },
        ]
        for raster in rasters {
            _ = CodeGate.mayHaveCodes(raster)
            switch await outcome({ try await workshop.codes(in: raster) }) {
            case .success(let read):
                #expect(read.value.count <= PageCode.most)
                #expect(read.usage.peak < 300 << 20, "\(read.usage)")
            case .failure(let failure):
                #expect([.timeout, .memory, .engine, .quota].contains(failure.reason), "\(failure)")
            }
        }
        var lying = try Raster.paper(10, 10)
        lying.head.width = 1000
        guard case .failure = await outcome({ try await workshop.codes(in: lying) }) else {
            Issue.record("a picture that is smaller than it says was read")
            return
        }
    }

    @Test func `what a program says of codes is checked`() throws {
        let raster = try Raster.paper(100, 100)
        for code in [
            PageCode(symbology: "QR code", text: "x", box: Box(0, 0, 1, 1)),
            PageCode(symbology: "", text: "x", box: Box(0, 0, 1, 1)),
            PageCode(symbology: "qrcode", text: String(repeating: "x", count: 100_000), box: Box(0, 0, 1, 1)),
            PageCode(symbology: "qrcode", text: "x", box: Box(0, 0, .infinity, 1)),
            PageCode(symbology: "qrcode", text: "x", box: Box(0, 0, 10_000, 1)),
        ] {
            #expect(throws: DocumentRefusal.self) { try code.check(raster) }
        }
    }

    @Test func `separators say which pages are a document`() {
        func parts(_ pages: Int, _ separators: [Int: PageSeparator]) -> [ClosedRange<Int>] {
            PageSeparator.parts(pages: pages, separators)
        }
        #expect(parts(7, [3: .dropped, 6: .dropped]) == [1...2, 4...5, 7...7])
        #expect(parts(7, [:]) == [])
        #expect(parts(2, [1: .dropped, 2: .dropped]) == [])
        #expect(parts(4, [1: .dropped]) == [2...4])
        #expect(parts(4, [4: .dropped]) == [1...3])
        #expect(parts(5, [2: .dropped, 3: .dropped]) == [1...1, 4...5])
        #expect(parts(5, [3: .kept]) == [1...2, 3...5])
        #expect(parts(5, [1: .kept]) == [], "that is the whole document")
        #expect(parts(5, [1: .kept, 2: .kept, 5: .kept]) == [1...1, 2...4, 5...5])
        #expect(parts(3, [9: .dropped]) == [])
        #expect(PageSeparator(["PATCHT"]) == .dropped)
        #expect(PageSeparator(["ASN17", " patch1\n"]) == .dropped)
        #expect(PageSeparator(["millrace:split"]) == .dropped)
        #expect(PageSeparator(["millrace:split:keep:invoice"]) == .kept)
        #expect(PageSeparator(["PATCHT", "millrace:split:keep"]) == .kept)
        #expect(PageSeparator(["ASN00042", "PATCHTWORK", "millrace:splitter", "millrace:split:keeper"]) == nil)
        #expect(PageSeparator([]) == nil)
    }
}
