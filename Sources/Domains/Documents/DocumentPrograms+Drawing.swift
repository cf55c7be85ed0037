import Pages
import Sandbox

// Pages that become pictures in a copy.

extension DocumentPrograms {
    /// Most bytes of the pictures of all pages.
    private static let mostPictures = 256_000_000

    /// Draws or decodes all pages, in colours if they have any. The request becomes one of an image with these frames.
    func draw(
        _ file: Int32, _ request: inout AssemblyRequest, _ plan: CopyPlan
    ) async throws(DocumentFailure) -> Worked<[UInt8]> {
        let inspection = request.inspection
        var coarse = self
        if inspection.kind == .pdf {
            let area = inspection.pages.filter { $0.refusal == nil }.reduce(0) { $0 + $1.width * $1.height / 5184 }
            coarse.dpiCap = min(150, (Double(Self.mostPictures) / 3 / max(area, 0.01)).squareRoot())
            guard coarse.dpiCap >= Raster.caps.low else {
                throw DocumentFailure(
                    DocumentRefusal(.tooManyPages, "the document has too many pages for a copy made of pictures"))
            }
        }
        var all = Worked([UInt8](), Usage())
        for index in inspection.pages.indices {
            let raster = try await coarse.drawn(file, inspection, page: index + 1, plan.password, &all)
            if plan.choices.clean, plan.isScan(index + 1) {
                try await pack(raster, page: index + 1, cleans: true, &request, &all, plan)
            } else {
                request.pictures.append(.init(page: index + 1, raster: raster.head))
                all.value += raster.pixels
            }
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

    /// Draws some pages, which become pictures among the others.
    func draw(
        _ pages: [Int], _ file: Int32, _ request: inout AssemblyRequest, _ all: inout Worked<[UInt8]>, _ plan: CopyPlan
    ) async throws(DocumentFailure) {
        for page in pages {
            let raster = try await drawn(file, plan.inspection, page: page, plan.password, &all)
            try await pack(
                raster, page: page, cleans: plan.choices.clean && plan.isScan(page), &request, &all, plan)
        }
    }

    private func drawn(
        _ file: Int32, _ inspection: Inspection, page: Int, _ password: String?, _ all: inout Worked<[UInt8]>
    ) async throws(DocumentFailure) -> Raster {
        do throws(DocumentFailure) {
            let drawn = try await raster(file, inspection, page: page, password: password, keepsColor: true)
            all.add(drawn.usage)
            return drawn.value
        } catch {
            all.add(error.usage)
            // A page of a PDF that cannot be drawn is empty in the copy, which still has all the others.
            guard inspection.kind == .pdf, !error.isCancelled, !error.mayGoWell else {
                var failure = error
                failure.usage = all.usage
                throw failure
            }
            return Self.empty(inspection.pages[page - 1])
        }
    }

    private func pack(
        _ raster: Raster, page: Int, cleans: Bool, _ request: inout AssemblyRequest, _ all: inout Worked<[UInt8]>,
        _ plan: CopyPlan
    ) async throws(DocumentFailure) {
        let wish = PackingRequest(raster.head, cleans: cleans, isSmall: plan.choices.pictures == .small)
        var own = self
        own.mostPixels = max(mostPixels, raster.width * raster.height)
        let (packed, bytes, usage, _) = try await own.ask(
            copy: .pack(wish), Array(raster.pixels), files: [], as: PackedPicture.self)
        all.add(usage)
        try Self.checked(all.usage) { () throws(DocumentRefusal) in
            guard packed.count == bytes.count, packed.count > 0, packed.width == raster.width,
                packed.height == raster.height,
                [1, 8].contains(packed.bits), [1, 3].contains(packed.components)
            else { throw DocumentRefusal(.internal, "the packed picture is not what was asked for") }
            guard all.value.count + bytes.count <= Self.mostPictures else {
                throw DocumentRefusal(.tooManyPages, "the document has too many pages that become pictures")
            }
        }
        request.pictures.append(.init(page: page, raster: raster.head, packed: packed))
        all.value += bytes
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
}
