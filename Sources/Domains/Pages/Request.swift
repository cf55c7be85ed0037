/// A request to the program that draws pages.
package enum DrawingRequest: Codable, Sendable {
    case draw(RasterRequest)
    /// Reads the text that pages contain; one note for each.
    case read(pages: [Int], password: String?)
    /// Counts and measures the pages, as a second opinion of what the file is.
    case inspect(Quotas, password: String?)
}

package struct OwnText: Sendable, Equatable {
    package var page: Int
    /// nil if the page has none.
    package var text: PageText?

    package init(page: Int, text: PageText?) {
        self.page = page
        self.text = text
    }
}

/// A page's picture with what the engine needs to know about it.
package struct RecognitionRequest: Codable, Sendable {
    package var raster: Raster.Head
    /// Detect which side is up.
    package var finds: Bool

    package init(_ raster: Raster.Head, finds: Bool = true) {
        self.raster = raster
        self.finds = finds
    }
}
