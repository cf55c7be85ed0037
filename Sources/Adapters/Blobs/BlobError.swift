package import Postgres

package enum BlobError: Error, Sendable, Equatable, CustomStringConvertible {
    case notFound(BlobID)
    /// More than the caller allows.
    case tooLarge(limit: Int)
    /// Less or more than was agreed on.
    case wrongSize(expected: Int)
    /// What lies there is not what was put there.
    case damaged(BlobID)
    /// Deleted while it was read; only what nobody refers to is.
    case goneMeanwhile(BlobID)
    /// What the system said to one of our calls.
    case system(String, number: Int32)
    case misconfigured(String)
    /// Where blobs lie does not answer, or not as it should.
    case away(String)
    case database(PostgresError)

    package var description: String {
        switch self {
        case .notFound(let id): "there is no blob \(id)"
        case .tooLarge(let limit): "the content is larger than \(limit) bytes"
        case .wrongSize(let expected): "the content has not the \(expected) bytes that were agreed on"
        case .damaged(let id): "blob \(id) is damaged: its content has another hash"
        case .goneMeanwhile(let id): "blob \(id) was deleted while it was read"
        case .system(let deed, let number): "\(deed): \(BlobFiles.sentence(number))"
        case .misconfigured(let reason), .away(let reason): reason
        case .database(let error): error.description
        }
    }

    package static func == (a: BlobError, b: BlobError) -> Bool { a.description == b.description }
}
