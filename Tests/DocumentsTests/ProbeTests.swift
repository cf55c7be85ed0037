import Documents
import Foundation
import Pages
import Sandbox
import Testing

@Suite struct ProbeTests {
    private func probe(
        _ bytes: [UInt8], password: String? = nil, _ change: (inout Quotas) -> Void = { _ in }
    ) async throws -> Result<Inspection, DocumentFailure> {
        var here = workshop
        change(&here.quotas)
        return try await withFile(bytes) { file in
            await outcome { try await here.probe(file, password: password).value }
        }
    }

    @Test func `a PDF's pages have their sizes, and its claims are seen`() async throws {
        let plain = try await probe(hello()).get()
        #expect(plain.kind == .pdf && plain.pages.count == 1 && plain.active.isEmpty && !plain.isSigned)
        #expect(plain.pages[0].width == 595 && plain.pages[0].height == 842 && plain.pages[0].rotation == 0)
        let turned = try await probe(hello(page: "/Rotate 450/CropBox[10 20 310 520]")).get()
        #expect(turned.pages[0].width == 500 && turned.pages[0].height == 300 && turned.pages[0].rotation == 90)
        #expect(turned.pages[0].left == 10 && turned.pages[0].bottom == 20)
        let active = try await probe(
            hello(catalogue: "/OpenAction<</S/JavaScript/JS(app.beep\\(\\))>>/AcroForm<</XFA(x)>>")
        ).get()
        #expect(active.active == ["javascript", "open_action", "xfa"])
        let signed = try await probe(
            hello(
                catalogue: "/AcroForm<</Fields[5 0 R]>>", more: ["<</FT/Sig/T(s)/V<</Type/Sig/ByteRange[0 1 2 3]>>>>"])
        ).get()
        #expect(signed.isSigned)
    }

    @Test func `what is no document of ours is refused with its reason`() async throws {
        let cases: [(String, [UInt8], Reason)] = [
            ("nothing", [], .empty),
            ("a web page", Array("<html><script>alert(1)</script>".utf8), .unsupported),
            ("half a PDF", Array(hello().prefix(120)), .malformed),
            (
                "a PDF without pages", pdf(["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[]/Count 0>>"]),
                .malformed
            ),
            (
                "a tree that comes back",
                pdf([
                    "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
                    "<</Type/Pages/Parent 2 0 R/Kids[2 0 R]/Count 1>>",
                ]), .malformed
            ),
            ("a page of a hundred thousand inches", hello(page: "/UserUnit 100000"), .tooLarge),
            ("ten gigapixels", png(width: 100_000, height: 100_000, rows: []), .tooManyPixels),
            ("a PNG that ends", Array(png(width: 8, height: 8, rows: []).prefix(20)), .malformed),
            ("a JPEG of nothing", [0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0], .malformed),
            ("an HEIC with a box too long", heicHead + [0xff, 0xff, 0xff, 0xf0] + Array("meta".utf8), .malformed),
            ("a TIFF whose directory is far away", [0x49, 0x49, 0x2a, 0, 0xff, 0xff, 0xff, 0x7f], .malformed),
        ]
        for (name, bytes, reason) in cases {
            guard case .failure(let failure) = try await probe(bytes) else {
                Issue.record("\(name) was taken")
                continue
            }
            #expect(failure.reason == reason, "\(name): \(failure)")
            #expect(!failure.mayGoWell, "\(name)")
            #expect(failure.usage.peak < 200 << 20, "\(name)")
        }
    }

    @Test func `quotas count what is there, not what is claimed`() async throws {
        let many = "<</Type/Pages/Kids[\(String(repeating: "3 0 R ", count: 50))]/Count 1>>"
        var objects = ["<</Type/Catalog/Pages 2 0 R>>", many, "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>"]
        #expect(try await probe(pdf(objects)).get().pages.count == 50)
        guard case .failure(let failure) = try await probe(pdf(objects), { $0.pages = 49 }) else {
            Issue.record("too many pages were taken")
            return
        }
        #expect(failure.reason == .tooManyPages)
        objects[1] = "<</Type/Pages/Kids[3 0 R]/Count 2147483647>>"
        #expect(try await probe(pdf(objects)).get().pages.count == 1)
        guard case .failure(let large) = try await probe(hello(), { $0.bytes = 100 }) else {
            Issue.record("too many bytes were taken")
            return
        }
        #expect(large.reason == .tooLarge)
    }

    @Test func `a TIFF whose directories go in a circle ends`() async throws {
        let looped = try await probe(tiff(frames: 3, loops: true)).get()
        #expect(looped.kind == .tiff && looped.pages.count == 3)
        guard case .failure(let failure) = try await probe(tiff(frames: 30, loops: false), { $0.pages = 20 }) else {
            Issue.record("too many frames were taken")
            return
        }
        #expect(failure.reason == .tooManyPages)
    }

    @Test func `a password opens, another does not`() async throws {
        let locked = try await encrypted(hello(), user: "user", owner: "owner")
        let open = try await encrypted(hello(), user: "", owner: "owner")
        func reason(_ result: Result<Inspection, DocumentFailure>) -> Reason? {
            if case .failure(let failure) = result { failure.reason } else { nil }
        }
        #expect(reason(try await probe(locked)) == .encrypted)
        #expect(reason(try await probe(locked, password: "wrong")) == .wrongPassword)
        let read = try await probe(locked, password: "user").get()
        #expect(read.isEncrypted && read.pages.count == 1)
        #expect(try await probe(open).get().isEncrypted)
    }

    @Test func `a child's lies are not believed`() throws {
        var inspection = Inspection(.pdf)
        #expect(throws: DocumentRefusal.self) { try inspection.check(Quotas()) }
        inspection.pages = [.init(width: 100, height: 100)]
        try inspection.check(Quotas())
        inspection.pages[0].rotation = 45
        #expect(throws: DocumentRefusal.self) { try inspection.check(Quotas()) }
        inspection.pages[0] = .init(width: .infinity, height: 100)
        #expect(throws: DocumentRefusal.self) { try inspection.check(Quotas()) }
        let head = Raster.Head(width: 10, height: 10, dpi: 100)
        #expect(throws: DocumentRefusal.self) { try Raster(head: head, pixels: [1, 2, 3], mostPixels: 1000) }
        #expect(throws: DocumentRefusal.self) {
            try Raster(head: head, pixels: [UInt8](repeating: 0, count: 100)[...], mostPixels: 99)
        }
    }
}
