public import Foundation

/// Thumbnails, and pictures without what the camera wrote into them. A job makes them.
public protocol PictureService: Sendable {
    /// Uploads a picture. What it returns is for `process`, within two days.
    func upload(_ file: DocumentFile) async throws -> String
    /// Has files made of a picture: what an upload returned, or the `storageUrl` of a file that was made.
    /// - Returns: the id, of the options. The same call again gets the same.
    func process(storageURL: String, _ options: PictureOptions) async throws -> UUID
    /// How it stands, with its files once they are made.
    func state(_ id: UUID) async throws -> PictureState
    /// The same, now and after each change, until it is done or failed.
    func streamState(_ id: UUID) -> AsyncThrowingStream<PictureState, any Error>
    /// Where to get a file, for an hour. Ask for it when it is needed.
    func link(_ id: UUID, _ kind: PictureFileKind) async throws -> URL
    /// Keeps a file as it is, such as a recording, and makes nothing of it. Its `file` is linked to by `link(_:.file)`.
    func keep(_ file: DocumentFile, as id: UUID) async throws -> UUID
    /// Deletes the files, and calls off what is not made yet.
    func delete(_ id: UUID) async throws
}

/// What is to be made of a picture.
public struct PictureOptions: Sendable, Hashable {
    /// What a file is packed as.
    public enum Format: String, Sendable, CaseIterable {
        /// Small, with a loss that is hard to see.
        case jpeg
        /// Without loss.
        case png
    }

    /// A thumbnail keeps its shape within these bounds, and does not grow. One side is enough.
    public struct Bounds: Sendable, Hashable {
        /// In pixels, 4096 at most.
        public var width: Int?
        /// In pixels, 4096 at most.
        public var height: Int?

        /// From its parts.
        public init(width: Int? = nil, height: Int? = nil) { (self.width, self.height) = (width, height) }
    }

    /// Names what is made for ever: the same id with the same content is made once.
    public var id = UUID()
    /// Makes the file `thumbnail`.
    public var thumbnail: Bounds?
    /// Makes the file `picture`: the whole picture, without its metadata.
    public var strip: Bool
    /// Of both files.
    public var format = Format.jpeg

    /// From its parts.
    public init(thumbnail: Bounds? = nil, strip: Bool = false) { (self.thumbnail, self.strip) = (thumbnail, strip) }
}

/// The files that are made of a picture, or kept.
public enum PictureFileKind: String, Sendable, CaseIterable {
    /// The small one.
    case thumbnail
    /// The whole picture, without its metadata.
    case picture
    /// One that was kept as it is.
    case file
}

/// How far the files of a picture are.
public struct PictureState: Sendable, Hashable, Identifiable, Decodable {
    /// Whether there are files.
    public enum Status: String, Sendable, Codable {
        /// They are not made yet.
        case waiting
        /// They are made, and there are links to them.
        case done
        /// They cannot be made of this picture.
        case failed
    }

    /// A file that was made.
    public struct File: Sendable, Hashable, Decodable {
        /// A `PictureFileKind`, or another of a later version.
        public let kind: String
        /// For `process`, and for what else takes such a name.
        public let storageUrl: String
        /// In bytes.
        public let size: Int
        /// Such as `image/jpeg`.
        public let mimeType: String
        /// In pixels.
        public let width: Int?
        /// In pixels.
        public let height: Int?

        /// For doubles of your own.
        public init(
            kind: String, storageUrl: String, size: Int, mimeType: String, width: Int? = nil, height: Int? = nil
        ) {
            (self.kind, self.storageUrl, self.size, self.mimeType) = (kind, storageUrl, size, mimeType)
            (self.width, self.height) = (width, height)
        }
    }

    /// The id of the options.
    public let id: UUID
    /// Whether there are files.
    public var status: Status
    /// Why there are none, such as `unsupported`.
    public var reason: String?
    /// What was made.
    public var files: [File]
    /// When it was asked for.
    public var createdAt: Date?
    /// When it was done, or failed.
    public var endedAt: Date?

    /// For doubles of your own.
    public init(id: UUID, status: Status = .waiting, reason: String? = nil, files: [File] = []) {
        (self.id, self.status, self.reason, self.files) = (id, status, reason, files)
    }

    private enum CodingKeys: String, CodingKey {
        case id = "media"
        case status, reason, files, createdAt, endedAt
    }

    /// Nothing more will change.
    public var hasEnded: Bool { status != .waiting }

    /// nil: it was not asked for, or is not made yet.
    public func file(_ kind: PictureFileKind) -> File? { files.first { $0.kind == kind.rawValue } }
}

extension AsyncThrowingStream<FeedEvent, any Error> {
    /// The state of one picture, from how it is now to its end.
    func following(
        picture id: UUID, read: @escaping @Sendable (UUID) async throws -> PictureState
    ) -> AsyncThrowingStream<PictureState, any Error> {
        following {
            $0.ref.lowercased() == id.uuidString.lowercased()
        } read: {
            try await read(id)
        } isLast: {
            $0.hasEnded
        }
    }
}
