/// What may be chosen for a document: how its pages are read, and what its copy is. A missing choice is the default.
package struct DocumentChoices: Codable, Sendable, Equatable {
    /// Which text of a page counts.
    package enum Mode: String, Codable, Sendable {
        /// A page's own text counts, and the rest is read.
        case skip
        /// Every page is read in its picture, and its own text is dropped.
        case force
        /// So is a page whose text comes from an earlier reading of its picture.
        case redo
    }

    package enum Format: String, Codable, Sendable {
        case pdf
        case archive = "pdfa-2b"
    }

    package enum Pictures: String, Codable, Sendable {
        case keep, lossless, small
    }

    package enum Split: String, Codable, Sendable {
        case off, separators
    }

    package enum Languages: String, Codable, Sendable {
        /// Those of each page are found.
        case found
        case given
    }

    package var mode: Mode = .skip
    package var format: Format = .pdf
    /// Pages askew are levelled in the copy.
    package var level = false
    /// Pages are cleaned in the copy.
    package var clean = false
    package var pictures: Pictures = .keep
    package var split: Split = .off
    package var languages: Languages = .found
    /// The pages that are read in another way than the document.
    package var pages: [Int: Mode] = [:]

    package func mode(of page: Int) -> Mode { pages[page] ?? mode }

    package init() {}

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        mode = try values.decodeIfPresent(Mode.self, forKey: .mode) ?? .skip
        format = try values.decodeIfPresent(Format.self, forKey: .format) ?? .pdf
        level = try values.decodeIfPresent(Bool.self, forKey: .level) ?? false
        clean = try values.decodeIfPresent(Bool.self, forKey: .clean) ?? false
        pictures = try values.decodeIfPresent(Pictures.self, forKey: .pictures) ?? .keep
        languages = try values.decodeIfPresent(Languages.self, forKey: .languages) ?? .found
        split = try values.decodeIfPresent(Split.self, forKey: .split) ?? .off
        pages = try values.decodeIfPresent([Int: Mode].self, forKey: .pages) ?? [:]
    }
}
