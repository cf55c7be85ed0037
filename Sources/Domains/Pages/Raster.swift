/// The request for a page's picture.
package struct RasterRequest: Codable, Sendable {
    /// From 1.
    package var page: Int
    package var kind: FileFormat
    package var dpi: Double
    package var mostPixels: Int
    package var password: String?
    /// For images: the scale, at most 1.
    package var scale = 1.0
    /// For images that a PDF cannot hold unchanged: keeps red, green and blue, if there are any.
    package var keepsColor = false

    package init(page: Int, kind: FileFormat, dpi: Double, mostPixels: Int, password: String? = nil) {
        self.page = page
        self.kind = kind
        self.dpi = dpi
        self.mostPixels = mostPixels
        self.password = password
    }
}

/// A page's picture: a byte a pixel, 0 is black, row after row without gaps.
package struct Raster: Sendable, Equatable {
    package struct Head: Codable, Sendable, Equatable {
        package var width: Int
        package var height: Int
        package var dpi: Double
        /// Bytes a pixel: 1 or 3.
        package var components: Int
        /// How often the program that drew it complained about the file.
        package var errors: Int?

        package init(width: Int, height: Int, dpi: Double, components: Int = 1) {
            self.width = width
            self.height = height
            self.dpi = dpi
            self.components = components
        }
    }

    package var head: Head
    package var pixels: ArraySlice<UInt8>

    package var width: Int { head.width }
    package var height: Int { head.height }

    package init(head: Head, pixels: ArraySlice<UInt8>, mostPixels: Int) throws(DocumentRefusal) {
        guard head.width > 0, head.height > 0, head.width <= 100_000, head.height <= 100_000,
            head.width * head.height <= mostPixels, head.dpi >= 1, head.dpi <= 2400,
            head.components == 1 || head.components == 3, head.width * head.height * head.components == pixels.count
        else { throw DocumentRefusal(.internal, "the picture's size is not what was asked for") }
        self.head = head
        self.pixels = pixels
    }

    /// A white pixel.
    package static let white = Raster(head: Head(width: 1, height: 1, dpi: 72), unchecked: [255])

    private init(head: Head, unchecked pixels: [UInt8]) {
        (self.head, self.pixels) = (head, pixels[...])
    }

    package static let caps = (low: 72.0, usual: 200.0, high: 300.0)

    /// The resolution that an image states, or else the one at which its long side is that of a page.
    package static func dpi(ofImage page: Inspection.Page) -> Double {
        page.dpi ?? min(1200, max(70, max(page.width, page.height) / 11.7))
    }

    /// The resolution at which a page is drawn: its own, at most the cap, and less for a page that would have too many pixels. More than
    /// its own only makes the engine's result worse.
    package static func dpi(for page: Inspection.Page, cap: Double, mostPixels: Int) -> Double {
        var dpi = caps.usual
        if let native = page.dpi, native >= 90 { dpi = native.rounded() }
        dpi = min(max(dpi, caps.low), min(max(cap, caps.low), 600))
        let area = page.width / 72 * (page.height / 72)
        return area * dpi * dpi > Double(mostPixels) ? max(1, (Double(mostPixels) / area).squareRoot() * 0.999) : dpi
    }
}
