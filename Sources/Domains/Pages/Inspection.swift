/// The kind of a file, judged by its first bytes and never by its name.
package enum FileFormat: String, Codable, Sendable, CaseIterable {
    case pdf, png, jpeg, tiff, heic, avif, gif, bmp, webp, jp2

    package var isImage: Bool { self != .pdf }
}

/// How large a document may be.
package struct Quotas: Codable, Sendable, Equatable {
    package var bytes = 100_000_000
    package var pages = 2000
    /// For a picture, and for a page.
    package var pixels = 100_000_000

    package init() {}
}

package struct ProbeRequest: Codable, Sendable {
    package var quotas: Quotas
    /// Never logged, and never part of an answer.
    package var password: String?

    package init(_ quotas: Quotas = Quotas(), password: String? = nil) {
        self.quotas = quotas
        self.password = password
    }
}

/// The probe's report about a file.
package struct Inspection: Codable, Sendable, Equatable {
    package struct Page: Codable, Sendable, Equatable {
        /// The page as it is shown, turned by `rotation`: in points for PDF, in pixels for an image.
        package var width: Double
        package var height: Double
        /// The lower left corner of the shown area, in points.
        package var left = 0.0
        package var bottom = 0.0
        /// The rotation that the file states, clockwise.
        package var rotation = 0
        /// An image whose left and right are exchanged after it has been turned.
        package var isMirrored: Bool?
        /// For PDF the resolution of its largest picture, if one may fill the page; for an image the one it states. It can be any number.
        package var dpi: Double?
        package var pictures = 0
        /// Why this page cannot be read, even if others can.
        package var refusal: DocumentRefusal?
        /// Why this page is not drawn. The text that it contains is taken.
        package var undrawn: DocumentRefusal?

        package init(width: Double, height: Double) {
            self.width = width
            self.height = height
        }
    }

    package var kind: FileFormat
    package var pages: [Page] = []
    package var isEncrypted = false
    package var isSigned = false
    /// The file had to be repaired.
    package var isDamaged = false
    /// It could not even be opened without a repair.
    package var isRepaired: Bool?
    /// The file states another number of pages than there are, so programs that believe it do not find them all.
    package var hasWrongCount: Bool?
    /// Only the program that draws can open it. Its copy is made of drawn pages.
    package var isOnlyDrawn: Bool?
    /// Its active elements: javascript, launch, embedded_files, xfa, open_action.
    package var active: [String] = []

    package init(_ kind: FileFormat) {
        self.kind = kind
    }

    /// An attacker may control the child, so everything it says is checked.
    package func check(_ quotas: Quotas) throws(DocumentRefusal) {
        guard !pages.isEmpty else { throw DocumentRefusal(.malformed, "the document has no pages") }
        guard pages.count <= quotas.pages else {
            throw DocumentRefusal(.tooManyPages, "the document has more than \(quotas.pages) pages")
        }
        guard active.count <= 16, active.allSatisfy({ $0.utf8.count <= 40 }) else {
            throw DocumentRefusal(.internal, "the probe said too much")
        }
        for page in pages where page.refusal == nil {
            guard page.width > 0, page.height > 0, page.width <= Self.longest, page.height <= Self.longest,
                [0, 90, 180, 270].contains(page.rotation), abs(page.left) <= 1e7, abs(page.bottom) <= 1e7,
                page.dpi.map({ $0 > 0 && $0.isFinite }) ?? true, page.pictures >= 0
            else { throw DocumentRefusal(.internal, "the probe said something impossible about a page") }
        }
        if let refusal = pages[0].refusal, pages.allSatisfy({ $0.refusal != nil }) { throw refusal }
    }

    /// PDF's own limit is 200 inches, in points; in pixels no accepted image is longer.
    package static let longest = 65_535.0
    package static let longestPoints = 14_400.0
}
