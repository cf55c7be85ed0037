/// A request to the program that makes PDFs.
package enum CopyRequest: Codable, Sendable {
    case assemble(AssemblyRequest)
    /// Packs the picture of a page, which follows.
    case pack(PackingRequest)
}

package struct PackingRequest: Codable, Sendable {
    package var raster: Raster.Head
    /// Removes specks and makes the paper white.
    package var cleans: Bool
    /// Small before exact.
    package var isSmall: Bool
    /// In this form and no other, with all its colours; nil: in the smaller one.
    package var form: PackedPicture.Form?

    package init(_ raster: Raster.Head, cleans: Bool, isSmall: Bool) {
        self.raster = raster
        self.cleans = cleans
        self.isSmall = isSmall
    }
}

/// How the bytes of a picture are packed.
package struct PackedPicture: Codable, Sendable, Equatable {
    package enum Form: String, Codable, Sendable {
        case flate, jpeg, fax
    }

    package var form: Form
    package var width: Int
    package var height: Int
    package var components: Int
    package var bits: Int
    package var count: Int

    package init(_ form: Form, _ raster: Raster.Head, components: Int, bits: Int, count: Int) {
        self.form = form
        (width, height) = (raster.width, raster.height)
        (self.components, self.bits, self.count) = (components, bits, count)
    }
}

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

    /// What the copy is, where it is not simply a copy.
    package struct Options: Codable, Sendable, Equatable {
        package enum Pictures: String, Codable, Sendable {
            case keep, lossless, small
        }

        package var isArchive = false
        package var levels = false
        package var pictures = Pictures.keep
        /// Of an archive, where its original has none.
        package var title: String?

        package init() {}
    }

    package var kind: FileFormat
    package var password: String?
    /// The pages that get a text layer.
    package var pages: [Page]
    /// All pages, as the probe found them.
    package var inspection: Inspection
    /// Pictures that pages become, in the order of their bytes after the head: frames of an image that a PDF cannot hold unchanged, and
    /// pages of a PDF that are to be drawn.
    package var pictures: [Picture] = []
    /// Of a PDF, only its pages are taken into a new document.
    package var takesPagesOnly: Bool?
    /// With `takesPagesOnly`: these of its pages; nil: all.
    package var taken: ClosedRange<Int>?
    package var options = Options()

    /// The pages of a PDF whose invisible text is left out.
    package var withoutInvisibleText: [Int]?

    package struct Picture: Codable, Sendable {
        package var page: Int
        package var raster: Raster.Head
        /// nil: its pixels.
        package var packed: PackedPicture?

        package init(page: Int, raster: Raster.Head, packed: PackedPicture? = nil) {
            self.page = page
            self.raster = raster
            self.packed = packed
        }

        /// nil: more than there can be.
        package var count: Int? {
            if let packed { return packed.count }
            let (pixels, overflow) = raster.width.multipliedReportingOverflow(by: raster.height)
            return overflow || pixels <= 0 || pixels > 1 << 32 ? nil : pixels * raster.components
        }
    }

    package init(kind: FileFormat, password: String?, pages: [Page], inspection: Inspection) {
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
    /// Pages that cannot be in an archive as they are; then nothing was written.
    package var unfit: [CopyFacts.Drawn]?
    package var pictures: CopyFacts.Pictures?
    /// What the copy is; the worker knows it.
    package var facts: CopyFacts?

    package init(bytes: Int, pages: Int, removed: Int) {
        self.bytes = bytes
        self.pages = pages
        self.removed = removed
    }
}
