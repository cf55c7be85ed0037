import Glibc
package import Pages
package import Sandbox

// What is derived from a document. Nothing is handed out before other programs than its maker have opened it.

extension DocumentPrograms {
    /// How a searchable PDF is made, beginning with what keeps most of the original.
    package enum Making: String, Sendable, CaseIterable {
        /// The whole document, or an image as it is stored.
        case whole
        /// A new document of its pages.
        case pages
        /// Pictures of its pages.
        case drawn
    }

    /// Writes a searchable PDF to another file than its source. If the result cannot be opened again, or has other pages, it is made in
    /// another way.
    package func assemble(
        _ file: Int32, _ inspection: Inspection, texts: [Int: PageText], into output: Int32, password: String? = nil,
        ways: [Making]? = nil
    ) async throws(DocumentFailure) -> Worked<Assembled> {
        var spent = Usage()
        var failure = DocumentFailure(DocumentRefusal(.internal, "there is no way to make a copy"))
        for way in ways ?? Self.ways(inspection) {
            do throws(DocumentFailure) {
                let made = try await assemble(way, file, inspection, texts, into: output, password)
                spent = Worked((), spent).adding(made.usage)
                spent = Worked((), spent).adding(try await verify(output, pages: inspection.pages.count))
                return Worked(made.value, spent, refusedLayers: made.refusedLayers)
            } catch {
                spent = Worked((), spent).adding(error.usage)
                failure = error
                if !error.allowsAnotherMaking { break }
            }
        }
        failure.usage = spent
        throw failure
    }

    private static func ways(_ inspection: Inspection) -> [Making] {
        if inspection.isOnlyDrawn == true { return [.drawn] }
        switch inspection.kind {
        case .pdf: return [.whole, .pages, .drawn]
        case .png, .jpeg: return [.whole, .drawn]
        case .tiff, .heic: return [.drawn]
        }
    }

    private func assemble(
        _ way: Making, _ file: Int32, _ inspection: Inspection, _ texts: [Int: PageText], into output: Int32,
        _ password: String?
    ) async throws(DocumentFailure) -> Worked<Assembled> {
        guard ftruncate(output, 0) == 0, lseek(output, 0, SEEK_SET) == 0 else {
            throw DocumentFailure(DocumentRefusal(.internal, "the file for the copy can not be written to"))
        }
        var request = AssemblyRequest(
            kind: inspection.kind, password: password,
            pages: texts.sorted { $0.key < $1.key }.compactMap { page, text in
                (way == .drawn ? text : text.layer).map { .init(page: page, text: $0) }
            }, inspection: inspection)
        request.takesPagesOnly = way == .pages ? true : nil
        var pictures = Worked([UInt8](), Usage())
        if way == .drawn { pictures = try await draw(file, &request, password) }
        let (made, _, usage, refused) = try await ask(
            .assemble, request, pictures.value, files: [file, output], as: Assembled.self)
        let spent = Worked((), pictures.usage).adding(usage)
        try Self.checked(spent) { () throws(DocumentRefusal) in
            guard made.pages == inspection.pages.count, made.bytes > 0, made.removed >= 0 else {
                throw DocumentRefusal(.malformed, "the copy has not as many pages as its original")
            }
        }
        return Worked(made, spent, refusedLayers: refused)
    }

    /// Most bytes of the pictures of all pages.
    private static let mostPictures = 256_000_000.0

    /// Draws or decodes all pages, in colours if they have any. The request becomes one of an image with these frames.
    private func draw(
        _ file: Int32, _ request: inout AssemblyRequest, _ password: String?
    ) async throws(DocumentFailure) -> Worked<[UInt8]> {
        let inspection = request.inspection
        var coarse = self
        if inspection.kind == .pdf {
            let area = inspection.pages.filter { $0.refusal == nil }.reduce(0) { $0 + $1.width * $1.height / 5184 }
            coarse.dpiCap = min(150, (Self.mostPictures / 3 / max(area, 0.01)).squareRoot())
            guard coarse.dpiCap >= Raster.caps.low else {
                throw DocumentFailure(
                    DocumentRefusal(.tooManyPages, "the document has too many pages for a copy made of pictures"))
            }
        }
        var all = Worked([UInt8](), Usage())
        for (index, place) in inspection.pages.enumerated() {
            let raster: Raster
            do throws(DocumentFailure) {
                let drawn = try await coarse.raster(
                    file, inspection, page: index + 1, password: password, keepsColor: true)
                raster = drawn.value
                all.add(drawn.usage)
            } catch {
                all.add(error.usage)
                // A page of a PDF that cannot be drawn is empty in the copy, which still has all the others.
                guard inspection.kind == .pdf, !error.isCancelled, !error.mayGoWell else {
                    var failure = error
                    failure.usage = all.usage
                    throw failure
                }
                raster = Self.empty(place)
            }
            request.pictures.append(.init(page: index + 1, raster: raster.head))
            all.value += raster.pixels
            if inspection.kind == .pdf {
                var page = Inspection.Page(width: Double(raster.width), height: Double(raster.height))
                page.dpi = raster.head.dpi
                request.inspection.pages[index] = page
            }
        }
        if inspection.kind == .pdf {
            request.kind = .tiff
            request.inspection.kind = .tiff
        }
        return all
    }

    private static func empty(_ page: Inspection.Page) -> Raster {
        let width = min(612, max(1, page.width.isFinite ? page.width : 612))
        let height = min(792, max(1, page.height.isFinite ? page.height : 792))
        var raster = Raster.white
        raster.head.width = max(1, Int(width / 2))
        raster.head.height = max(1, Int(height / 2))
        raster.head.dpi = 36
        raster.pixels = [UInt8](repeating: 255, count: raster.width * raster.height)[...]
        return raster
    }

    /// Opens a PDF that was made here as its readers will: by qpdf and by poppler, which share no code and have not written it.
    package func verify(_ output: Int32, pages: Int) async throws(DocumentFailure) -> Usage {
        var open = self
        // Of our own making, and perhaps larger than what we accept.
        open.quotas.bytes = 1 << 30
        open.quotas.pages = .max
        open.quotas.pixels = .max
        let usage: Usage
        let found: [Int]
        let isSound: Bool
        do throws(DocumentFailure) {
            let probed = try await open.probe(output)
            let drawn = try await open.pagesToDraw(output)
            usage = probed.adding(drawn.usage)
            found = [probed.value.pages.count, drawn.value.pages.count]
            isSound = [probed.value.isRepaired, probed.value.isOnlyDrawn, probed.value.hasWrongCount].allSatisfy {
                $0 != true
            }
        } catch {
            // Whatever was found wrong with it is not the original's fault.
            guard !error.isCancelled, !error.mayGoWell, error.reason != .timeout else { throw error }
            throw DocumentFailure(
                DocumentRefusal(.malformed, "what was made can not be opened again: \(error.sentence)"),
                usage: error.usage)
        }
        guard found == [pages, pages], isSound else {
            throw DocumentFailure(
                DocumentRefusal(
                    .malformed,
                    "what was made is damaged, or has \(found[0]) and \(found[1]) pages for two readers and not \(pages)"
                ), usage: usage)
        }
        return usage
    }
}

extension DocumentPrograms {
    /// A report as a PDF.
    package func report(_ report: Report, into output: Int32) async throws(DocumentFailure) -> Worked<Reported> {
        let (reported, _, usage, refused) = try await ask(.report, report, files: [output], as: Reported.self)
        try Self.checked(usage) { () throws(DocumentRefusal) in
            guard reported.bytes > 0, reported.pages > 0 else { throw DocumentRefusal(.crash, "the report is empty") }
        }
        let spent = Worked((), usage).adding(try await verify(output, pages: reported.pages))
        return Worked(reported, spent, refusedLayers: refused)
    }
}

extension DocumentFailure {
    /// Whether a copy that failed so may succeed when it is made in another way.
    var allowsAnotherMaking: Bool {
        !isCancelled && !mayGoWell && reason != .timeout && reason != .encrypted && reason != .wrongPassword
    }
}
