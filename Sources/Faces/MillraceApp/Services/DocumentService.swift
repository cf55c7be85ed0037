public import Foundation

/// Documents: upload, register, follow, read.
public protocol DocumentService: Sendable {
    /// Uploads the file and registers it. The id may be given, so that the call can be made again after a crash.
    func upload(_ file: DocumentFile, _ details: DocumentDetails) async throws -> UUID
    /// The same, with or without a network: what cannot be uploaded now is kept on disk, and uploaded by the queue. It must not be registered before.
    func submit(_ file: DocumentFile, _ details: DocumentDetails) async throws -> Submission<UUID>
    /// Registers what lies elsewhere: an `https` address, or what an upload returned.
    func register(storageURL: String, _ details: DocumentDetails) async throws -> UUID
    /// How far it is now, and what is known of it.
    func document(_ id: UUID) async throws -> Document
    /// The newest first; without deleted ones, unless the filter asks for them.
    func documents(_ filter: DocumentFilter) async throws -> [Document]
    /// How far it is, now and after each change, until it is completed, failed or deleted.
    func streamProcessingStatus(_ id: UUID) -> AsyncThrowingStream<Document, any Error>
    /// What has been read so far, with a form feed between pages.
    func text(_ id: UUID, pages: ClosedRange<Int>?) async throws -> String
    /// Where to get a file, for an hour. Ask for it when it is needed.
    func link(_ id: UUID, _ kind: DocumentFileKind) async throws -> URL
    /// The file itself.
    func contents(_ id: UUID, _ kind: DocumentFileKind) async throws -> Data
    /// Pages of the person's documents with these words; `after` is the `next` of the page before.
    func search(_ query: String, after: String?) async throws -> [DocumentMatch]
    /// Reads again what could not be read; with pages or a mode, those pages in that mode. False: there is nothing to be read again.
    func retry(_ id: UUID, pages: [Int]?, mode: ReadingOptions.Mode?) async throws -> Bool
    /// What a model made of a document that was registered with `isAnalyzed`; nil: nobody has asked it.
    func analysis(of id: UUID) async throws -> DocumentAnalysis?
    /// Of a lesson's documents, behind a document.
    func analyses(in lesson: String, after document: UUID?) async throws -> [DocumentAnalysis]
    /// What has happened behind a position, the oldest first; of a lesson, or of all that are one's own.
    func history(in lesson: String?, since position: Int64) async throws -> [DocumentChange]
    /// One of them, with or without a network. False: it was deleted before.
    func delete(_ id: UUID) async throws -> Submission<Bool>
    /// Deletes them ten at a time, and says after each ten how many are gone.
    func delete(_ ids: [UUID]) -> AsyncThrowingStream<DeleteProgress, any Error>
}

extension DocumentService {
    /// The newest ones.
    public func documents() async throws -> [Document] { try await documents(DocumentFilter()) }
    /// Of all pages.
    public func text(_ id: UUID) async throws -> String { try await text(id, pages: nil) }
    /// What could not be read.
    public func retry(_ id: UUID) async throws -> Bool { try await retry(id, pages: nil, mode: nil) }
    /// Of a lesson's documents, the first ones.
    public func analyses(in lesson: String) async throws -> [DocumentAnalysis] {
        try await analyses(in: lesson, after: nil)
    }
    /// Of all that are one's own.
    public func history(since position: Int64 = 0) async throws -> [DocumentChange] {
        try await history(in: nil, since: position)
    }
    /// The first matches.
    public func search(_ query: String) async throws -> [DocumentMatch] { try await search(query, after: nil) }
}

/// What is uploaded.
public struct DocumentFile: Sendable {
    enum Content: Sendable {
        case data(Data)
        case file(URL)
    }

    let content: Content
    /// What it is called.
    public let name: String
    /// What it is said to be; the first bytes decide.
    public let mimeType: String
    /// In bytes.
    public let size: Int

    /// From its parts.
    public init(_ data: Data, name: String, mimeType: String) {
        (content, self.name, self.mimeType, size) = (.data(data), name, mimeType, data.count)
    }

    /// A file that stays where it is, and is read while it is sent.
    public init(contentsOf file: URL, mimeType: String, name: String? = nil) throws {
        guard let size = try file.resourceValues(forKeys: [.fileSizeKey]).fileSize else {
            throw AppError(.invalid, "\(file.path) is not a file", field: "file")
        }
        (content, self.name, self.mimeType, self.size) = (.file(file), name ?? file.lastPathComponent, mimeType, size)
    }
}

/// Which documents are listed.
public struct DocumentFilter: Sendable, Hashable {
    /// How far it is.
    public var status: Document.Status?
    /// The lesson that it belongs to.
    public var lessonID: String?
    /// Goes on behind this document.
    public var after: UUID?
    /// How many at most.
    public var limit = 50

    /// From its parts.
    public init(status: Document.Status? = nil, lessonID: String? = nil, after: UUID? = nil) {
        (self.status, self.lessonID, self.after) = (status, lessonID, after)
    }
}

/// A document, and how far it is.
public struct Document: Sendable, Hashable, Identifiable, Decodable {
    /// Whether it is being read.
    public enum Status: String, Sendable, Codable {
        /// Its pages are being read; what is read already is there.
        case processing
        /// All that could be read is read, and the files are made.
        case completed
        /// It cannot be read.
        case failed
        /// It was deleted; its files are gone.
        case deleted
    }

    /// Names it for ever: the same id with the same content is registered once.
    public let id: UUID
    /// What people call it.
    public var title: String?
    /// What it is said to be; the first bytes decide.
    public var mimeType: String?
    /// In bytes.
    public var size: Int?
    /// The lesson that it belongs to.
    public var lessonId: String?
    /// How far it is.
    public var status: Status
    /// What is being done: receive, sniff, classify, raster, ocr, assemble, completed or failed.
    public var stage: String
    /// How many it has.
    public var pages: Int?
    /// Pages with their text.
    public var pagesDone: Int?
    /// Pages that could not be read.
    public var pagesFailed: Int?
    /// Why it failed.
    public var reason: String?
    /// Which files there are, beside the original.
    public var outputs: [String]?
    /// When it was registered.
    public var createdAt: Date?
    /// When it was read.
    public var finishedAt: Date?

    /// From its parts.
    public init(
        id: UUID, title: String? = nil, lessonID: String? = nil, status: Status = .processing, stage: String = "receive"
    ) {
        (self.id, self.title, lessonId, self.status, self.stage) = (id, title, lessonID, status, stage)
    }

    /// Nothing more will change, unless it is read again.
    public var hasEnded: Bool { status != .processing }

    /// What a change says of it.
    mutating func apply(_ change: AppValue) {
        if let status = change["status"]?.string.flatMap(Status.init(rawValue:)) { self.status = status }
        if let stage = change["stage"]?.string { self.stage = stage }
        if let pages = change["pages"]?.int { self.pages = pages }
        if let done = change["pages_done"]?.int { pagesDone = done }
        if let failed = change["pages_failed"]?.int { pagesFailed = failed }
        if let reason = change["reason"]?.string { self.reason = reason }
    }
}

/// A place in a document that fits a search.
public struct DocumentMatch: Sendable, Hashable, Decodable {
    /// Where.
    public let document: UUID
    /// The page.
    public let number: Int
    /// What people call it.
    public let title: String?
    /// The lesson that it belongs to.
    public let lessonId: String?
    /// The words that fit stand between ⟦ and ⟧.
    public let highlight: String
    /// Goes on behind this match.
    public let next: String?
    /// Where these words stand on the page, twenty at most: left, top, right and bottom, as parts of its width and height.
    public var boxes: [[Double]]?

    /// For doubles of your own.
    public init(
        document: UUID, number: Int, title: String? = nil, lessonId: String? = nil, highlight: String,
        next: String? = nil
    ) {
        self.document = document
        self.number = number
        self.title = title
        self.lessonId = lessonId
        self.highlight = highlight
        self.next = next
    }
}

/// How far a deletion is.
public struct DeleteProgress: Sendable, Hashable {
    /// How many are gone.
    public let done: Int
    /// How many were to go.
    public let total: Int

    /// For doubles of your own.
    public init(
        done: Int, total: Int
    ) {
        self.done = done
        self.total = total
    }
}
