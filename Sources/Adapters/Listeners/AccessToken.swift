import CCrypto
import Digests

/// The token that a caller must send. Only its digest is kept, and it is compared in constant time.
package struct AccessToken: Sendable {
    private let digest: [UInt8]

    package static let shortest = 16

    package init(_ secret: String) {
        digest = Self.digest(secret)
    }

    package func matches(_ given: some StringProtocol) -> Bool {
        let other = Self.digest(given)
        return CRYPTO_memcmp(digest, other, digest.count) == 0
    }

    private static func digest(_ text: some StringProtocol) -> [UInt8] {
        SHA256Digest.of(Array(text.utf8))
    }
}
