package import Pages
import Sandbox

/// What a picture becomes.
package enum PictureFormat: String, Codable, Sendable {
    case jpeg, png

    package var mimeType: String { "image/\(rawValue)" }
}

/// The sides of a thumbnail at most, in pixels.
package struct PictureBounds: Codable, Sendable, Equatable {
    package var width: Int?
    package var height: Int?

    package init(width: Int?, height: Int?) {
        self.width = width
        self.height = height
    }

    /// How much smaller something of this size becomes; at most 1.
    package func scale(_ width: Double, _ height: Double) -> Double {
        min(1, self.width.map { Double($0) / width } ?? 1, self.height.map { Double($0) / height } ?? 1)
    }
}

package struct MadePicture: Sendable, Equatable {
    package var bytes: [UInt8]
    package var width: Int
    package var height: Int
}

extension DocumentPrograms {
    /// The picture of a file, the right way up, within the bounds. It is decoded by one program and packed by another, which gets its pixels and
    /// nothing else, so nothing else of the file is in the result.
    package func picture(
        _ file: Int32, _ inspection: Inspection, within bounds: PictureBounds?, as format: PictureFormat
    ) async throws(DocumentFailure) -> Worked<MadePicture> {
        guard inspection.kind.isImage, let page = inspection.pages.first else {
            throw DocumentFailure(DocumentRefusal(.unsupported, "the file is not a picture"))
        }
        if let refusal = page.refusal { throw DocumentFailure(refusal) }
        let raster = try await pixels(file, inspection.kind, page, within: bounds)
        var wish = PackingRequest(raster.value.head, cleans: false, isSmall: false)
        wish.form = format == .png ? .flate : .jpeg
        let answer: (head: PackedPicture, body: ArraySlice<UInt8>, usage: Usage, refusedLayers: UInt32)
        do throws(DocumentFailure) {
            answer = try await ask(
                copy: .pack(wish), Array(raster.value.pixels), files: [], as: PackedPicture.self)
        } catch {
            var failure = error
            failure.usage = raster.adding(error.usage)
            throw failure
        }
        let (packed, usage) = (answer.head, raster.adding(answer.usage))
        try Self.checked(usage) { () throws(DocumentRefusal) in
            guard packed.form == wish.form, packed.count == answer.body.count, packed.count > 0,
                packed.width == raster.value.width, packed.height == raster.value.height, packed.bits == 8,
                packed.components == raster.value.head.components
            else { throw DocumentRefusal(.internal, "the packed picture is not what was asked for") }
        }
        let bytes = Array(answer.body)
        let made = MadePicture(
            bytes: format == .jpeg
                ? bytes : Preview.png(packed.width, packed.height, components: packed.components, bytes),
            width: packed.width, height: packed.height)
        return Worked(made, usage, refusedLayers: raster.refusedLayers | answer.refusedLayers)
    }

    private func pixels(
        _ file: Int32, _ kind: FileFormat, _ page: Inspection.Page, within bounds: PictureBounds?
    ) async throws(DocumentFailure) -> Worked<Raster> {
        // Sides are rounded, so there may be a few pixels more.
        var own = self
        own.mostPixels = mostPixels + 65_536
        var request = RasterRequest(page: 1, kind: kind, dpi: 72, mostPixels: own.mostPixels)
        request.keepsColor = true
        let least = 1 / max(1, min(page.width, page.height))
        let area = page.width * page.height
        request.scale = max(least, bounds?.scale(page.width, page.height) ?? 1)
        request.scale = min(request.scale, max(least, (Double(mostPixels) / max(1, area)).squareRoot()))
        let (head, body, usage, refused) = try await own.ask(
            Self.decoder(of: kind), request, files: [file], as: Raster.Head.self)
        let most = request.mostPixels
        let raster = try Self.checked(usage) { () throws(DocumentRefusal) in
            let raster = try Raster(head: head, pixels: body, mostPixels: most)
            // A decoder rounds a side up, or a side cannot become smaller than a pixel.
            let excess = bounds?.scale(Double(raster.width), Double(raster.height)) ?? 1
            guard excess < 1 else { return raster }
            let less = PicturePacker.reduced(
                raster.pixels, width: raster.width, height: raster.height, components: head.components, to: excess)
            return try Raster(
                head: Raster.Head(width: less.width, height: less.height, dpi: 72, components: head.components),
                pixels: less.pixels[...], mostPixels: most)
        }
        return Worked(raster, usage, refusedLayers: refused)
    }
}
