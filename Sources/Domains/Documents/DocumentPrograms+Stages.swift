package import Pages
package import Sandbox
import Synchronization

extension DocumentPrograms {
    /// What kind of file it is, and whether we accept it.
    package func probe(_ file: Int32, password: String? = nil) async throws(DocumentFailure) -> Worked<Inspection> {
        let (inspection, _, usage, refused) = try await ask(
            .probe, ProbeRequest(quotas, password: password), files: [file], as: Inspection.self)
        guard inspection.isOnlyDrawn != true else {
            return try await drawnOnly(file, password: password).adding(to: usage)
        }
        try Self.checked(usage) { () throws(DocumentRefusal) in try inspection.check(quotas) }
        return Worked(inspection, usage, refusedLayers: refused)
    }

    /// What the program that draws finds in a PDF that no other program opens.
    private func drawnOnly(_ file: Int32, password: String?) async throws(DocumentFailure) -> Worked<Inspection> {
        var found: Worked<Inspection>
        do throws(DocumentFailure) {
            found = try await pagesToDraw(file, password: password)
        } catch {
            guard error.reason == .malformed else { throw error }
            let refusal = DocumentRefusal(.malformed, "the PDF cannot be read or repaired, nor drawn")
            throw DocumentFailure(refusal, usage: error.usage)
        }
        found.value.isOnlyDrawn = true
        found.value.isDamaged = true
        for index in found.value.pages.indices {
            let page = found.value.pages[index]
            if page.width <= 0 || page.height <= 0 || max(page.width, page.height) > Inspection.longestPoints {
                found.value.pages[index].refusal = DocumentRefusal(.tooLarge, "the page has no area, or too much")
            }
        }
        let inspection = found.value
        try Self.checked(found.usage) { () throws(DocumentRefusal) in try inspection.check(quotas) }
        return found
    }

    /// The pages of a PDF, as the program that draws counts them.
    func pagesToDraw(_ file: Int32, password: String? = nil) async throws(DocumentFailure) -> Worked<Inspection> {
        let (inspection, _, usage, refused) = try await ask(
            .raster, DrawingRequest.inspect(quotas, password: password), files: [file], as: Inspection.self)
        return Worked(inspection, usage, refusedLayers: refused)
    }

    /// The text that pages already contain, by page number from 1. If one page makes the whole request fail, the pages are read one by one,
    /// and unreadable ones are missing in the result.
    package func ownText(
        _ file: Int32, _ inspection: Inspection, pages: [Int], password: String? = nil
    ) async throws(DocumentFailure) -> Worked<[Int: PageText]> {
        guard inspection.kind == .pdf, !pages.isEmpty else { return Worked([:], Usage()) }
        let payload = try Self.packet(DrawingRequest.read(pages: pages, password: password), [])
        let heard = Mutex<(pages: [Int: PageText], refusal: DocumentRefusal?, count: Int)>(([:], nil, 0))
        let most = pages.count
        do throws(ChildFailure) {
            let (_, usage, refused) = try await SandboxedChild.run(
                program(.raster), payload, limits: limits(.raster), files: [file],
                note: { note in
                    heard.withLock { state in
                        guard state.refusal == nil else { return }
                        state.count += 1
                        do throws(DocumentRefusal) {
                            let own = try OwnText(packed: note)
                            // A page may be said again, with its ruled lines.
                            guard state.count <= 2 * most, pages.contains(own.page) else {
                                throw DocumentRefusal(.crash, "the child spoke of a page that it was not asked for")
                            }
                            try own.text?.check()
                            state.pages[own.page] = own.text
                        } catch {
                            state.refusal = error
                        }
                    }
                })
            if let refusal = heard.withLock({ $0.refusal }) {
                return try await Self.failed(ChildFailure(.misspoke, refusal.sentence, usage: usage))
            }
            return Worked(Self.placed(heard.withLock { $0.pages }, inspection), usage, refusedLayers: refused)
        } catch {
            // Its words came before the picture in which lines are looked for, and which may take too long.
            let said = heard.withLock { $0.refusal == nil && pages.count == 1 ? $0.pages : [:] }
            if !said.isEmpty, error.saysOfPage {
                return Worked(Self.placed(said, inspection), error.usage)
            }
            guard pages.count > 1, error.reason != .cancelled, error.reason != .cannotStart else {
                throw DocumentFailure(error)
            }
            var all = Worked([Int: PageText](), error.usage)
            for page in pages {
                do throws(DocumentFailure) {
                    let one = try await ownText(file, inspection, pages: [page], password: password)
                    all.value.merge(one.value) { $1 }
                    all.add(one.usage)
                } catch {
                    if error.isCancelled { throw error }
                    all.add(error.usage)
                }
            }
            return all
        }
    }

    /// The texts with the sizes of their pages.
    private static func placed(_ said: [Int: PageText], _ inspection: Inspection) -> [Int: PageText] {
        var texts = said
        for (page, text) in said where page <= inspection.pages.count {
            let place = inspection.pages[page - 1]
            // What a picture says beside it has its places on the page as it is shown.
            let text = PageAssessment(place, own: text) == .mixed ? text.asShown : text
            texts[page] = text
            if text.rotation != 0 { continue }
            texts[page]?.width = max(text.width, place.width)
            texts[page]?.height = max(text.height, place.height)
        }
        return texts
    }

    private static func failed<Value>(_ failure: ChildFailure) async throws(ChildFailure) -> Value { throw failure }

    /// The program that draws or decodes documents of this kind.
    static func decoder(of kind: FileFormat) -> Stage {
        switch kind {
        case .pdf: .raster
        case .heic, .avif: .heic
        case .png, .jpeg, .tiff, .gif, .bmp, .webp, .jp2: .picture
        }
    }

    /// A page's picture in grey, at the page's own resolution and no finer.
    package func raster(
        _ file: Int32, _ inspection: Inspection, page: Int, password: String? = nil, keepsColor: Bool = false
    ) async throws(DocumentFailure) -> Worked<Raster> {
        guard page >= 1, page <= inspection.pages.count else {
            throw DocumentFailure(DocumentRefusal(.internal, "the document has no page \(page)"))
        }
        let place = inspection.pages[page - 1]
        if let refusal = place.refusal ?? place.undrawn { throw DocumentFailure(refusal) }
        var request = RasterRequest(
            page: page, kind: inspection.kind, dpi: Raster.dpi(for: place, cap: dpiCap, mostPixels: mostPixels),
            mostPixels: mostPixels + 65_536, password: password)
        request.keepsColor = keepsColor
        if inspection.kind.isImage {
            let native = Raster.dpi(ofImage: place)
            let area = place.width * place.height
            request.scale = keepsColor ? 1 : min(1, dpiCap / native)
            if keepsColor { request.mostPixels = quotas.pixels }
            if !keepsColor, area * request.scale * request.scale > Double(mostPixels) {
                request.scale = (Double(mostPixels) / area).squareRoot()
            }
            request.dpi = max(1, native * request.scale)
        }
        let (head, body, usage, refused) =
            inspection.kind.isImage
            ? try await ask(Self.decoder(of: inspection.kind), request, files: [file], as: Raster.Head.self)
            : try await ask(.raster, DrawingRequest.draw(request), files: [file], as: Raster.Head.self)
        let most = request.mostPixels
        let raster = try Self.checked(usage) { () throws(DocumentRefusal) in
            try Raster(head: head, pixels: body, mostPixels: most)
        }
        return Worked(raster, usage, refusedLayers: refused)
    }

    /// The picture of a page without the text that the page already contains, so that OCR reads the rest; nil when too little is left.
    /// A coarse picture is checked first: most pages of this kind were already read by the scanner's own OCR.
    ///
    /// - Parameter isParted: a part of the page's own text is not believed, and so is there to be read
    package func remainder(
        _ file: Int32, _ inspection: Inspection, page: Int, own: PageText, isParted: Bool = false,
        password: String? = nil
    ) async throws(DocumentFailure) -> Worked<Raster?> {
        let place = inspection.pages[page - 1]
        if isParted {
            let drawn = try await raster(file, inspection, page: page, password: password)
            return Worked(
                Remainder.of(drawn.value, own, on: place).raster, drawn.usage, refusedLayers: drawn.refusedLayers)
        }
        guard PageAssessment(place, own: own) == .mixed else { return Worked(nil, Usage()) }
        var coarse = self
        coarse.dpiCap = Raster.caps.low
        let seen = try await coarse.raster(file, inspection, page: page, password: password)
        guard Remainder.of(seen.value, own, on: place).share >= Remainder.worthReading else {
            return Worked(nil, seen.usage)
        }
        let drawn = try await raster(file, inspection, page: page, password: password)
        return Worked(
            Remainder.of(drawn.value, own, on: place).raster, drawn.adding(seen.usage),
            refusedLayers: drawn.refusedLayers)
    }
}

extension Worked {
    package mutating func add(_ more: Usage) { usage = adding(more) }

    package func adding(_ more: Usage) -> Usage {
        var sum = usage
        sum.cpu += more.cpu
        sum.peak = max(sum.peak, more.peak)
        return sum
    }

    func adding(to usage: Usage) -> Worked {
        var worked = self
        worked.add(usage)
        return worked
    }
}

extension ChildFailure {
    /// Whether the page was too much for the program. Otherwise it was ended from outside, or has misbehaved.
    fileprivate var saysOfPage: Bool {
        switch reason {
        case .memory, .cpu, .timeout, .fileSize, .crash, .exited: true
        case .refused, .starved, .misspoke, .killed, .cancelled, .cannotStart: false
        }
    }
}
