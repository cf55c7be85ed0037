/// The request to make a searchable PDF: the original's pages stay unchanged, and get their recognised text.
package struct AssemblyRequest: Codable, Sendable {
    package struct Page: Codable, Sendable {
        /// From 1.
        package var page: Int
        package var text: PageText

        package init(page: Int, text: PageText) {
            self.page = page
            self.text = text
        }
    }

    package var kind: Kind
    package var password: String?
    /// The pages that get a text layer.
    package var pages: [Page]
    /// All pages, as the probe found them.
    package var inspection: Inspection
    /// Pictures of an image's frames that a PDF cannot hold unchanged, in the order of their bytes after the head.
    package var pictures: [Picture] = []
    /// Of a PDF, only its pages are taken into a new document.
    package var takesPagesOnly: Bool?
    /// With `takesPagesOnly`: these of its pages; nil: all.
    package var taken: ClosedRange<Int>?

    package struct Picture: Codable, Sendable {
        package var page: Int
        package var raster: Raster.Head

        package init(page: Int, raster: Raster.Head) {
            self.page = page
            self.raster = raster
        }
    }

    package init(kind: Kind, password: String?, pages: [Page], inspection: Inspection) {
        self.kind = kind
        self.password = password
        self.pages = pages
        self.inspection = inspection
    }
}

package struct Assembled: Codable, Sendable, Equatable {
    package var bytes: Int
    package var pages: Int
    /// How many active elements were removed.
    package var removed: Int

    package init(bytes: Int, pages: Int, removed: Int) {
        self.bytes = bytes
        self.pages = pages
        self.removed = removed
    }
}
