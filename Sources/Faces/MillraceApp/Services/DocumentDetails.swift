public import Foundation

/// What is said about a document when it is registered, and how it is to be read.
public struct DocumentDetails: Sendable, Hashable {
    /// Names it for ever: the same id with the same content is registered once.
    public var id = UUID()
    /// What people call it.
    public var title: String?
    /// What it is said to be; the first bytes decide.
    public var mimeType: String?
    /// In bytes.
    public var size: Int?
    /// The lesson that it belongs to.
    public var lessonID: String?
    /// Opens an encrypted file; kept until the file is read, and no longer.
    public var password: String?
    /// How it is read, and what is made of it.
    public var reading = ReadingOptions()

    /// Languages of the text, such as `eng` and `deu`.
    public var languages: [String] {
        get { reading.languages }
        set { reading.languages = newValue }
    }
    /// A page that cannot be read fails the whole document.
    public var isStrict: Bool {
        get { reading.isStrict }
        set { reading.isStrict = newValue }
    }

    /// From its parts.
    public init(title: String? = nil, lessonID: String? = nil, reading: ReadingOptions = ReadingOptions()) {
        (self.title, self.lessonID, self.reading) = (title, lessonID, reading)
    }

    /// As `document_register` takes it.
    func arguments(_ storageURL: String) -> [String: AppValue] {
        let options = reading.options
        return [
            "storage_url": .string(storageURL), "title": AppValue(title), "mime_type": AppValue(mimeType),
            "size": AppValue(size), "lesson_id": AppValue(lessonID),
            "options": options.isEmpty ? .null : .object(options), "password": AppValue(password),
            "id": AppValue(id),
        ]
    }
}

/// How a document is read. What is not said is as the tenant's defaults have it.
public struct ReadingOptions: Sendable, Hashable {
    /// Which text of its own a page keeps.
    public enum Mode: String, Sendable, CaseIterable {
        /// A page's own text counts, and only the rest is read.
        case skip
        /// The invisible text of an earlier reading does not count.
        case redo
        /// Every page is read in its picture.
        case force
    }

    /// How pictures of the copy are packed.
    public enum Pictures: String, Sendable, CaseIterable {
        /// Better, and without loss: what was lossy stays as it is.
        case lossless
        /// As JPEG, where that is smaller.
        case small
    }

    /// Languages of the text, such as `eng` and `deu`. Without any, the language of each page is found.
    public var languages: [String] = []
    /// A page that cannot be read fails the whole document.
    public var isStrict = false
    /// Which text of its own a page keeps.
    public var mode: Mode?
    /// Which files are made; nil: the usual ones.
    public var outputs: Set<DocumentFileKind>?
    /// The copy is written for archives, as PDF/A-2b.
    public var isArchive = false
    /// Pages askew are levelled in the copy.
    public var isLevelled = false
    /// Scans get white paper without specks.
    public var isCleaned = false
    /// How pictures of the copy are packed; nil: as they are.
    public var pictures: Pictures?
    /// A page with a separating code begins another document.
    public var isSplit = false
    /// A model makes a summary, key points and questions of it: `analysis(of:)`.
    public var isAnalyzed = false

    /// From its parts.
    public init(mode: Mode? = nil, outputs: Set<DocumentFileKind>? = nil, isAnalyzed: Bool = false) {
        (self.mode, self.outputs, self.isAnalyzed) = (mode, outputs, isAnalyzed)
    }

    var options: [String: AppValue] {
        var options: [String: AppValue] = [:]
        if !languages.isEmpty { options["languages"] = AppValue(languages) }
        if isStrict { options["policy"] = "strict" }
        if let mode { options["mode"] = .string(mode.rawValue) }
        if let outputs { options["outputs"] = AppValue(outputs.map(\.rawValue).sorted()) }
        if isArchive { options["format"] = "pdfa-2b" }
        if isLevelled { options["level"] = true }
        if isCleaned { options["clean"] = true }
        if let pictures { options["pictures"] = .string(pictures.rawValue) }
        if isSplit { options["split"] = "separators" }
        if isAnalyzed { options["analyze"] = true }
        return options
    }
}

/// The original, or a file that was made of it.
public enum DocumentFileKind: String, Sendable, CaseIterable {
    /// What was uploaded.
    case original
    /// The searchable copy.
    case pdf
    /// A small picture of the first page.
    case preview
    /// What was found while reading, page by page.
    case report
    /// The words alone, with a form feed between pages.
    case text
    /// Words, lines and structure of each page.
    case json
    /// The text with headings, lists and tables.
    case markdown
    /// The place of every word, as hOCR.
    case hocr
    /// The place of every word, as ALTO.
    case alto
}

/// What a model made of a document.
public struct DocumentAnalysis: Sendable, Hashable, Decodable {
    /// Which document.
    public let document: UUID
    /// What people call it.
    public let title: String?
    /// `waiting`, `asking`, `answered`, `refused`, `failed` or `cancelled`.
    public let status: String
    /// Why there is none.
    public let reason: String?
    /// Some sentences.
    public let summary: String?
    /// What stands in it.
    public let keyPoints: [String]?
    /// What one may ask about it.
    public let questions: [Question]?
    /// When it was made, or asked for.
    public let at: Date?

    /// A question and its answer.
    public struct Question: Sendable, Hashable, Decodable {
        /// What is asked.
        public let question: String
        /// What is right.
        public let answer: String

        /// For doubles of your own.
        public init(question: String, answer: String) { (self.question, self.answer) = (question, answer) }
    }

    /// For doubles of your own.
    public init(
        document: UUID, title: String? = nil, status: String, reason: String? = nil, summary: String? = nil,
        keyPoints: [String]? = nil, questions: [Question]? = nil, at: Date? = nil
    ) {
        (self.document, self.title, self.status, self.reason) = (document, title, status, reason)
        (self.summary, self.keyPoints, self.questions, self.at) = (summary, keyPoints, questions, at)
    }
}

/// Something that has happened to a document.
public struct DocumentChange: Sendable, Hashable, Decodable {
    /// Its position: the next page begins behind it.
    public let seq: Int64
    /// When.
    public let at: Date
    /// Which document.
    public let id: UUID
    /// What, such as `processing_complete`.
    public let change: String
    /// What is known of it.
    public let data: AppValue?

    /// For doubles of your own.
    public init(seq: Int64, at: Date, id: UUID, change: String, data: AppValue? = nil) {
        (self.seq, self.at, self.id, self.change, self.data) = (seq, at, id, change, data)
    }
}
