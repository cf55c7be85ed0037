import Glibc
package import Pages
import Sandbox

extension DocumentPrograms {
    /// The codes in a page's picture, where they are in the picture.
    package func codes(in raster: Raster) async throws(DocumentFailure) -> Worked<[PageCode]> {
        let (codes, _, usage, refused) = try await ask(
            .codes, raster.head, Array(raster.pixels), files: [], as: [PageCode].self)
        try Self.checked(usage) { () throws(DocumentRefusal) in
            guard codes.count <= PageCode.most else {
                throw DocumentRefusal(.quota, "the page has more than \(PageCode.most) codes")
            }
            for code in codes { try code.check(raster) }
        }
        return Worked(codes, usage, refusedLayers: refused)
    }

    /// A new PDF of some pages of a document: of a PDF its pages themselves, of another file pictures of its frames. The result is what the
    /// probe finds in it.
    package func extract(
        _ file: Int32, _ inspection: Inspection, pages: ClosedRange<Int>, into output: Int32, password: String? = nil
    ) async throws(DocumentFailure) -> Worked<Inspection> {
        guard pages.lowerBound >= 1, pages.upperBound <= inspection.pages.count else {
            throw DocumentFailure(DocumentRefusal(.internal, "the document has no pages \(pages)"))
        }
        var spent = Usage()
        if inspection.kind == .pdf, inspection.isOnlyDrawn != true {
            var request = AssemblyRequest(kind: .pdf, password: password, pages: [], inspection: inspection)
            request.takesPagesOnly = true
            request.taken = pages
            do throws(DocumentFailure) {
                return try await extracted(Worked((request, []), Usage()), file, pages.count, output)
            } catch {
                guard error.allowsAnotherMaking else { throw error }
                spent = error.usage
            }
        }
        var pictures = try await pictures(of: file, inspection, pages, password)
        pictures.add(spent)
        return try await extracted(pictures, file, pages.count, output)
    }

    private func extracted(
        _ request: Worked<(AssemblyRequest, [UInt8])>, _ file: Int32, _ count: Int, _ output: Int32
    ) async throws(DocumentFailure) -> Worked<Inspection> {
        guard ftruncate(output, 0) == 0, lseek(output, 0, SEEK_SET) == 0 else {
            throw DocumentFailure(DocumentRefusal(.internal, "the file for the part can not be written to"))
        }
        var spent = request.usage
        do throws(DocumentFailure) {
            let (_, _, usage, refused) = try await ask(
                copy: .assemble(request.value.0), request.value.1, files: [file, output], as: Assembled.self)
            spent = Worked((), spent).adding(usage)
            spent = Worked((), spent).adding(try await verify(output, pages: count))
            var open = self
            open.quotas.bytes = 1 << 30
            let probed = try await open.probe(output)
            return Worked(probed.value, probed.adding(spent), refusedLayers: refused)
        } catch {
            var failure = error
            failure.usage = Worked((), spent).adding(error.usage)
            throw failure
        }
    }

    /// Pictures of pages or frames, in colours if they have any, as a request for a document of them.
    private func pictures(
        of file: Int32, _ inspection: Inspection, _ pages: ClosedRange<Int>, _ password: String?
    ) async throws(DocumentFailure) -> Worked<(AssemblyRequest, [UInt8])> {
        var own = self
        if inspection.kind == .pdf { own.dpiCap = min(150, dpiCap) }
        var shown = Inspection(.tiff)
        var pictures: [AssemblyRequest.Picture] = []
        var made = Worked([UInt8](), Usage())
        for page in pages {
            do throws(DocumentFailure) {
                let drawn = try await own.raster(file, inspection, page: page, password: password, keepsColor: true)
                made.add(drawn.usage)
                var place = Inspection.Page(width: Double(drawn.value.width), height: Double(drawn.value.height))
                place.dpi = drawn.value.head.dpi
                shown.pages.append(place)
                pictures.append(.init(page: shown.pages.count, raster: drawn.value.head))
                made.value += drawn.value.pixels
                guard made.value.count < Self.mostExtracted else {
                    throw DocumentFailure(DocumentRefusal(.tooManyPages, "the part has too many pages for pictures"))
                }
            } catch {
                var failure = error
                failure.usage = made.adding(error.usage)
                throw failure
            }
        }
        var request = AssemblyRequest(kind: .tiff, password: nil, pages: [], inspection: shown)
        request.pictures = pictures
        return Worked((request, made.value), made.usage)
    }

    private static let mostExtracted = 1_000_000_000
}
