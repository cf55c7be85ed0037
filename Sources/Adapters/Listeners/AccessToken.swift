import CCrypto

/// What a caller must know. Only its digest is kept, and compared in the same time wherever the first difference is.
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
        let bytes = Array(text.utf8)
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        SHA256(bytes, bytes.count, &digest)
        return digest
    }
}
