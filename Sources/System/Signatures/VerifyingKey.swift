import CCrypto

/// A public key that checks signatures of web tokens: RS256, ES256 or EdDSA. The key decides which, never the token.
package final class VerifyingKey: Sendable {
    package enum Algorithm: String, Sendable {
        case rs256 = "RS256"
        case es256 = "ES256"
        case edDSA = "EdDSA"

        /// How tokens and key sets may call it (RFC 7518, RFC 8037, RFC 9864).
        var names: [String] { self == .edDSA ? [rawValue, "Ed25519"] : [rawValue] }
    }

    package struct Unusable: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// Immutable once made, and libcrypto locks what it counts.
    private struct Held: @unchecked Sendable { let pointer: OpaquePointer }

    private let held: Held
    package let algorithm: Algorithm

    /// - Parameter pem: a public key, as `openssl pkey -pubout` writes it.
    package convenience init(pem: [UInt8]) throws(Unusable) {
        guard let bio = BIO_new_mem_buf(pem, Int32(clamping: pem.count)) else {
            throw Unusable(description: "out of memory")
        }
        defer { BIO_free(bio) }
        let key = PEM_read_bio_PUBKEY(bio, nil, { _, _, _, _ in 0 }, nil)
        ERR_clear_error()
        guard let key else {
            throw Unusable(description: "it is not a public key in PEM form (-----BEGIN PUBLIC KEY-----)")
        }
        try self.init(taking: key)
    }

    /// - Parameter der: a SubjectPublicKeyInfo (RFC 5280).
    convenience init(der: [UInt8]) throws(Unusable) {
        var start: UnsafePointer<UInt8>?
        let key: OpaquePointer? = der.withUnsafeBufferPointer { bytes in
            start = bytes.baseAddress
            return d2i_PUBKEY(nil, &start, bytes.count)
        }
        ERR_clear_error()
        guard let key else { throw Unusable(description: "its numbers make no key") }
        try self.init(taking: key)
    }

    private init(taking key: OpaquePointer) throws(Unusable) {
        let bits = EVP_PKEY_get_bits(key)
        let found: Algorithm? =
            switch EVP_PKEY_get_base_id(key) {
            case EVP_PKEY_RSA where (2048...8192).contains(bits): .rs256
            case EVP_PKEY_EC where Self.curve(of: key) == "prime256v1": .es256
            case EVP_PKEY_ED25519: .edDSA
            default: nil
            }
        guard let found else {
            EVP_PKEY_free(key)
            throw Unusable(description: "it is not an RSA key of 2048 to 8192 bits, a P-256 or an Ed25519 key")
        }
        guard found == .edDSA ? !Self.hasSmallOrder(key) : Self.isSound(key) else {
            EVP_PKEY_free(key)
            throw Unusable(description: "it is not a key that anybody could have made: its numbers do not fit")
        }
        algorithm = found
        held = Held(pointer: key)
    }

    deinit { EVP_PKEY_free(held.pointer) }

    /// Several curves have 256 bits.
    private static func curve(of key: OpaquePointer) -> String? {
        var name = [CChar](repeating: 0, count: 64)
        var length = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1 else { return nil }
        return String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static func isSound(_ key: OpaquePointer) -> Bool {
        guard let context = EVP_PKEY_CTX_new(key, nil) else { return false }
        defer {
            EVP_PKEY_CTX_free(context)
            ERR_clear_error()
        }
        return EVP_PKEY_public_check(context) == 1
    }

    /// Under such a point anybody can make signatures, and libcrypto takes it: the points of order 1, 2, 4 and 8, in all spellings, without
    /// their sign.
    private static func hasSmallOrder(_ key: OpaquePointer) -> Bool {
        var point = [UInt8](repeating: 0, count: 32)
        var count = point.count
        guard EVP_PKEY_get_raw_public_key(key, &point, &count) == 1, count == 32 else { return true }
        point[31] &= 0x7f
        return smallPoints.contains(point)
    }

    private static let smallPoints: [[UInt8]] = {
        let nearPrime = [0xec, 0xed, 0xee].map { [$0] + [UInt8](repeating: 0xff, count: 30) + [0x7f] }
        let nearZero = [0x00, 0x01].map { [$0] + [UInt8](repeating: 0, count: 31) }
        let orderEight: [[UInt8]] = [
            [
                0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5,
                0xdf,
                0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
            ],
            [
                0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a,
                0x20,
                0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
            ],
        ]
        return nearZero + orderEight + nearPrime
    }()

    package func verifies(_ message: [UInt8], signature: [UInt8]) -> Bool {
        var signature = signature
        if algorithm == .es256 {
            guard let der = Self.der(signature) else { return false }
            signature = der
        }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        let digest = algorithm == .edDSA ? nil : EVP_sha256()
        guard EVP_DigestVerifyInit(context, nil, digest, nil, held.pointer) == 1 else { return false }
        return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    /// A token has the two numbers of an ES256 signature side by side; libcrypto wants them in DER.
    private static func der(_ plain: [UInt8]) -> [UInt8]? {
        guard plain.count == 64 else { return nil }
        return DER.sequence(DER.number(plain[..<32]) + DER.number(plain[32...]))
    }
}

/// The few forms of DER that keys and signatures need.
enum DER {
    static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        let length: [UInt8] =
            switch count {
            case ..<0x80: [UInt8(count)]
            case ..<0x100: [0x81, UInt8(count)]
            default: [0x82, UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)]
            }
        return [tag] + length + content
    }

    static func sequence(_ content: [UInt8]) -> [UInt8] { element(0x30, content) }

    /// A number that is not negative, of big-endian bytes.
    static func number(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var digits = Array(bytes.drop { $0 == 0 })
        if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
        return element(0x02, digits)
    }

    /// Whole bytes.
    static func bits(_ bytes: [UInt8]) -> [UInt8] { element(0x03, [0] + bytes) }
}
