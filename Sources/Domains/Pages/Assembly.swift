/// What a PDF is made of a document with: the original's pages stay as they are, and get what was read of them.
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
    /// Those that have something to be laid under them.
    package var pages: [Page]
    /// All pages, as the probe has seen them.
    package var inspection: Inspection
    /// For an image's frames that can not be put into a PDF as they are: what they look like, in the order of their bytes after the head.
    package var pictures: [Picture] = []

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
    /// How many things that act were taken out.
    package var removed: Int

    package init(bytes: Int, pages: Int, removed: Int) {
        self.bytes = bytes
        self.pages = pages
        self.removed = removed
    }
}
