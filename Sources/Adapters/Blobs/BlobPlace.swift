package import Postgres
import Transfers

/// The place of blobs, as in `MILLRACE_BLOBS`.
package enum BlobPlace: Sendable, Equatable {
    case directory(String)
    case postgres
    case s3(S3Place)

    package static let expectation = "dir:<absolute path>, s3://<bucket>/<folder> or postgres"

    package init?(_ text: String) {
        if text == "postgres" {
            self = .postgres
        } else if text.hasPrefix("dir:/"), !text.contains("\0"), !text.split(separator: "/").contains("..") {
            var path = String(text.dropFirst(4))
            while path.count > 1, path.hasSuffix("/") { path.removeLast() }
            self = .directory(path)
        } else if let place = S3Place(text) {
            self = .s3(place)
        } else {
            return nil
        }
    }

    /// - Parameter s3: how to reach it; without a key it refuses everything.
    package func store(pool: Pool, s3: S3Options? = nil) -> any BlobStore {
        switch self {
        case .s3(let place):
            S3Store(
                place, s3 ?? S3Options(region: "us-east-1", accessKey: "", secretKey: ""), client: HTTPClient(),
                pool: pool)
        case .directory(let path): DirectoryStore(path, pool: pool)
        case .postgres: PostgresStore(pool: pool)
        }
    }
}
