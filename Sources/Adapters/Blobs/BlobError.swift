package import Postgres

package enum BlobError: Error, Sendable, Equatable, CustomStringConvertible {
    case notFound(BlobID)
    /// More than the caller allows.
    case tooLarge(limit: Int)
    /// Less or more than was agreed on.
    case wrongSize(expected: Int)
    /// The stored content is not what was put.
    case damaged(BlobID)
    /// Deleted while it was read; only blobs without references are deleted.
    case goneMeanwhile(BlobID)
    /// The system's error for one of our calls.
    case system(String, number: Int32)
    case misconfigured(String)
    /// The blob storage does not answer, or not correctly.
    case away(String)
    case database(PostgresError)

    package var description: String {
        switch self {
        case .notFound(let id): "there is no blob \(id)"
        case .tooLarge(let limit): "the content is larger than \(limit) bytes"
        case .wrongSize(let expected): "the content does not have the \(expected) bytes that were agreed on"
        case .damaged(let id): "blob \(id) is damaged: its content has another hash"
        case .goneMeanwhile(let id): "blob \(id) was deleted while it was read"
        case .system(let deed, let number): "\(deed): \(BlobFiles.sentence(number))"
        case .misconfigured(let reason), .away(let reason): reason
        case .database(let error): error.description
        }
    }

    package static func == (a: BlobError, b: BlobError) -> Bool { a.description == b.description }
}
