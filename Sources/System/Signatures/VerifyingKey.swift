import CCrypto

/// A public key that checks signatures of web tokens: RS256, ES256 or EdDSA. The key decides which, never the token.
package final class VerifyingKey: Sendable {
    package enum Algorithm: String, Sendable {
        case rs256 = "RS256"
        case es256 = "ES256"
        case edDSA = "EdDSA"
    }

    package struct Unusable: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// Immutable once made, and libcrypto locks what it counts.
    private struct Held: @unchecked Sendable { let pointer: OpaquePointer }

    private let held: Held
    package let algorithm: Algorithm

    /// - Parameter pem: a public key, as `openssl pkey -pubout` writes it.
    package init(pem: [UInt8]) throws(Unusable) {
        guard let bio = BIO_new_mem_buf(pem, Int32(clamping: pem.count)) else {
            throw Unusable(description: "out of memory")
        }
        defer { BIO_free(bio) }
        guard let key = PEM_read_bio_PUBKEY(bio, nil, { _, _, _, _ in 0 }, nil) else {
            ERR_clear_error()
            throw Unusable(description: "it is not a public key in PEM form (-----BEGIN PUBLIC KEY-----)")
        }
        switch EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_RSA where EVP_PKEY_get_bits(key) >= 2048: algorithm = .rs256
        case EVP_PKEY_EC where EVP_PKEY_get_bits(key) == 256: algorithm = .es256
        case EVP_PKEY_ED25519: algorithm = .edDSA
        default:
            EVP_PKEY_free(key)
            throw Unusable(description: "it is not an RSA key of 2048 bits or more, a P-256 or an Ed25519 key")
        }
        held = Held(pointer: key)
    }

    deinit { EVP_PKEY_free(held.pointer) }

    package func verifies(_ message: [UInt8], signature: [UInt8]) -> Bool {
        var signature = signature
        if algorithm == .es256 {
            guard let der = Self.der(signature) else { return false }
            signature = der
        }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        let digest = algorithm == .edDSA ? nil : EVP_sha256()
        guard EVP_DigestVerifyInit(context, nil, digest, nil, held.pointer) == 1 else { return false }
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// A token has the two numbers of an ES256 signature side by side; libcrypto wants them in DER.
    private static func der(_ plain: [UInt8]) -> [UInt8]? {
        guard plain.count == 64 else { return nil }
        func number(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            var digits = Array(bytes.drop { $0 == 0 })
            if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
            return [0x02, UInt8(digits.count)] + digits
        }
        let body = number(plain[..<32]) + number(plain[32...])
        return [0x30, UInt8(body.count)] + body
    }
}
