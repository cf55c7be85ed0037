/// What a file is, judged by its first bytes and never by its name.
package enum Kind: String, Codable, Sendable, CaseIterable {
    case pdf, png, jpeg, tiff, heic

    package var isImage: Bool { self != .pdf }
}

/// How much of a document is taken.
package struct Quotas: Codable, Sendable, Equatable {
    package var bytes = 100_000_000
    package var pages = 2000
    /// Of a picture, or of a page.
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

/// What a probe says of a file.
package struct Inspection: Codable, Sendable, Equatable {
    package struct Page: Codable, Sendable, Equatable {
        /// As it is shown, turned by `rotation`: in points for PDF, in pixels for an image.
        package var width: Double
        package var height: Double
        /// The lower left corner of what is shown, in points.
        package var left = 0.0
        package var bottom = 0.0
        /// By how much the file says that it is turned, clockwise.
        package var rotation = 0
        /// For PDF that of its largest picture, if there is one that may fill it; for an image what it says of itself. May be anything.
        package var dpi: Double?
        package var pictures = 0
        /// This one can not be read, though others can.
        package var refusal: DocumentRefusal?

        package init(width: Double, height: Double) {
            self.width = width
            self.height = height
        }
    }

    package var kind: Kind
    package var pages: [Page] = []
    package var isEncrypted = false
    package var isSigned = false
    /// It has had to be repaired.
    package var isDamaged = false
    /// What it carries that acts: javascript, launch, embedded_files, xfa, open_action.
    package var active: [String] = []

    package init(_ kind: Kind) {
        self.kind = kind
    }

    /// A child may have been taken over: nothing of what it says is believed unseen.
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

    /// 200 inches in points are PDF's own limit; in pixels no image is longer that has few enough of them to be taken.
    package static let longest = 65_535.0
    package static let longestPoints = 14_400.0
}
