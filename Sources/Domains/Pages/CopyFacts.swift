/// What a copy is, beside its bytes.
package struct CopyFacts: Codable, Sendable, Equatable {
    /// Why a page is a picture: what it has that PDF/A-2b has not, or a text that does not count.
    package enum Cause: String, Codable, Sendable, CaseIterable {
        /// Its own text was read in its picture instead, and must not stand beside that.
        case text
        /// A font that is not in the file, or not as it must be.
        case fonts
        /// Colours without a profile that says how they look.
        case colors
        /// Layers that can be hidden.
        case layers
        case annotations
        case transparency
        case pictures
        /// Its instructions, or what they need, cannot be read or are not allowed.
        case content
        case size
    }

    package struct Drawn: Codable, Sendable, Equatable {
        package var page: Int
        package var cause: Cause

        package init(page: Int, cause: Cause) {
            self.page = page
            self.cause = cause
        }
    }

    package struct Pictures: Codable, Sendable, Equatable {
        package var count = 0
        package var replaced = 0
        /// Bytes of all of them.
        package var before = 0
        package var after = 0

        package init() {}
    }

    /// nil: a PDF as its original is one.
    package var format: String?
    /// Pages that became pictures among others that did not.
    package var drawn: [Drawn]?
    /// All pages are pictures.
    package var isDrawn: Bool?
    package var cleaned: [Int]?
    package var levelled: [Int]?
    package var pictures: Pictures?

    package init() {}

    enum CodingKeys: String, CodingKey {
        case format, drawn, cleaned, levelled, pictures
        case isDrawn = "all_drawn"
    }

    package var isEmpty: Bool { self == CopyFacts() }
}
