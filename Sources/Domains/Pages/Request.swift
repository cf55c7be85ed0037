/// What the program that draws pages is asked.
package enum DrawingRequest: Codable, Sendable {
    case draw(RasterRequest)
    /// The text that pages have of their own: a note for each.
    case read(pages: [Int], password: String?)
}

package struct OwnText: Sendable, Equatable {
    package var page: Int
    /// Nil if it has none.
    package var text: PageText?

    package init(page: Int, text: PageText?) {
        self.page = page
        self.text = text
    }
}

/// A page's picture with what an engine is to know of it.
package struct RecognitionRequest: Codable, Sendable {
    package var raster: Raster.Head
    /// Look for the side that is up.
    package var finds: Bool

    package init(_ raster: Raster.Head, finds: Bool = true) {
        self.raster = raster
        self.finds = finds
    }
}
