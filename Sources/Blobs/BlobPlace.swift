package import Postgres

/// Where blobs lie, as `MILLRACE_BLOBS` says it.
package enum BlobPlace: Sendable, Equatable {
    case directory(String)
    case postgres

    package static let expectation = "dir:<absolute path> or postgres"

    package init?(_ text: String) {
        if text == "postgres" {
            self = .postgres
        } else if text.hasPrefix("dir:/"), !text.contains("\0"), !text.split(separator: "/").contains("..") {
            var path = String(text.dropFirst(4))
            while path.count > 1, path.hasSuffix("/") { path.removeLast() }
            self = .directory(path)
        } else {
            return nil
        }
    }

    package func store(pool: Pool) -> any BlobStore {
        switch self {
        case .directory(let path): DirectoryStore(path, pool: pool)
        case .postgres: PostgresStore(pool: pool)
        }
    }
}
