import CCrypto

/// Keyed hashes, as libcrypto makes them.
package enum HMAC {
    package static func sha256(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var size: UInt32 = 0
        let made = CCrypto.HMAC(EVP_sha256(), key, Int32(key.count), bytes, bytes.count, &digest, &size)
        precondition(made != nil && size == 32, "libcrypto refused to make a hash")
        return digest
    }

    /// Takes as long for what differs at once as for what differs at the end.
    package static func areEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
        one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
    }
}
