import CCrypto
package import JSON

/// A private key that signs JSON web tokens: ES256 with a key of P-256, RS256 with one of RSA. It never prints.
package final class SigningKey: Sendable, CustomStringConvertible, CustomReflectable {
    package enum Algorithm: String, Sendable {
        case es256 = "ES256"
        case rs256 = "RS256"
    }

    package struct Unusable: Error, Sendable, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    // libcrypto counts references atomically, and signing changes nothing in a key.
    private nonisolated(unsafe) let handle: OpaquePointer
    package let algorithm: Algorithm

    /// - Parameter pem: PKCS #8, as Apple's .p8 files and Google's credentials hold it, without a passphrase.
    package init(pem: [UInt8]) throws(Unusable) {
        let handle = pem.withUnsafeBytes { bytes -> OpaquePointer? in
            guard let source = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
            defer { BIO_free(source) }
            // Answering with nothing, so that libcrypto does not ask at the terminal.
            return PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in 0 }, nil)
        }
        ERR_clear_error()
        guard let handle else {
            throw Unusable(description: "it is not a private key in PEM without a passphrase (BEGIN PRIVATE KEY)")
        }
        let kind = EVP_PKEY_get_base_id(handle)
        let bits = EVP_PKEY_get_bits(handle)
        switch kind {
        case EVP_PKEY_EC where bits == 256: algorithm = .es256
        case EVP_PKEY_RSA where bits >= 2048: algorithm = .rs256
        default:
            EVP_PKEY_free(handle)
            throw Unusable(description: "it is neither a key of the curve P-256 nor one of RSA with 2048 bits or more")
        }
        self.handle = handle
    }

    private init(curve handle: OpaquePointer) {
        self.handle = handle
        algorithm = .es256
    }

    /// A new private key.
    package static func newP256() -> SigningKey {
        var key: OpaquePointer?
        let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
        defer { EVP_PKEY_CTX_free(context) }
        let isMade =
            EVP_PKEY_keygen_init(context) == 1
            && EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1
            && EVP_PKEY_keygen(context, &key) == 1
        guard isMade, let key else { preconditionFailure("libcrypto made no key") }
        return SigningKey(curve: key)
    }

    deinit { EVP_PKEY_free(handle) }

    /// `header.payload.signature`, of JSON texts.
    package func token(header: String, payload: String) -> String {
        let body = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(payload.utf8))
        return body + "." + Base64URL.encode(sign(Array(body.utf8)))
    }

    private func sign(_ bytes: [UInt8]) -> [UInt8] {
        guard let context = EVP_MD_CTX_new() else { preconditionFailure("libcrypto has no memory left") }
        defer { EVP_MD_CTX_free(context) }
        var size = 0
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, handle) == 1,
            EVP_DigestSign(context, nil, &size, bytes, bytes.count) == 1
        else { preconditionFailure("libcrypto refused to sign") }
        var signature = [UInt8](repeating: 0, count: size)
        let signed = EVP_DigestSign(context, &signature, &size, bytes, bytes.count)
        precondition(signed == 1, "libcrypto refused to sign")
        signature.removeLast(signature.count - size)
        return algorithm == .es256 ? Self.plain(signature) : signature
    }

    /// A token has the two numbers side by side (RFC 7518, 3.4), libcrypto makes DER.
    private static func plain(_ der: [UInt8]) -> [UInt8] {
        var start: UnsafePointer<UInt8>? = nil
        return der.withUnsafeBufferPointer { bytes in
            start = bytes.baseAddress
            guard let pair = d2i_ECDSA_SIG(nil, &start, bytes.count) else {
                preconditionFailure("libcrypto cannot read its own signature")
            }
            defer { ECDSA_SIG_free(pair) }
            var out = [UInt8](repeating: 0, count: 64)
            out.withUnsafeMutableBufferPointer { out in
                _ = BN_bn2binpad(ECDSA_SIG_get0_r(pair), out.baseAddress, 32)
                _ = BN_bn2binpad(ECDSA_SIG_get0_s(pair), out.baseAddress?.advanced(by: 32), 32)
            }
            return out
        }
    }

    /// The public half, as key sets list it (JWK).
    package func webKey(id: String) -> JSONValue {
        func number(_ name: String, _ width: Int = 0) -> JSONValue {
            var found: OpaquePointer?
            guard EVP_PKEY_get_bn_param(handle, name, &found) == 1, let found else {
                preconditionFailure("libcrypto does not show its own public key")
            }
            defer { BN_free(found) }
            var bytes = [UInt8](repeating: 0, count: max(width, Int(BN_num_bits(found) + 7) / 8))
            _ = BN_bn2binpad(found, &bytes, Int32(bytes.count))
            return .string(Base64URL.encode(bytes))
        }
        let names: JSONValue = ["kid": .string(id), "use": "sig", "alg": .string(algorithm.rawValue)]
        let numbers: JSONValue =
            switch algorithm {
            case .es256: ["kty": "EC", "crv": "P-256", "x": number("qx", 32), "y": number("qy", 32)]
            case .rs256: ["kty": "RSA", "n": number("n"), "e": number("e")]
            }
        guard case .object(let first) = numbers, case .object(let second) = names else { return .null }
        return .object(first + second)
    }

    package var description: String { "a key" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Base64 with the alphabet for addresses, and nothing at the end.
package enum Base64URL {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    /// The value of each byte; 255 for those that are no digit.
    private static let values = digits.enumerated().reduce(into: [UInt8](repeating: 255, count: 256)) { values, digit in
        values[Int(digit.element)] = UInt8(digit.offset)
    }

    package static func encode(_ bytes: [UInt8]) -> String {
        var out: [UInt8] = []
        out.reserveCapacity((bytes.count * 4 + 2) / 3)
        var index = 0
        while index < bytes.count {
            let rest = bytes.count - index
            let word =
                UInt32(bytes[index]) << 16 | (rest > 1 ? UInt32(bytes[index + 1]) << 8 : 0)
                | (rest > 2 ? UInt32(bytes[index + 2]) : 0)
            out.append(digits[Int(word >> 18)])
            out.append(digits[Int(word >> 12 & 63)])
            if rest > 1 { out.append(digits[Int(word >> 6 & 63)]) }
            if rest > 2 { out.append(digits[Int(word & 63)]) }
            index += 3
        }
        return String(decoding: out, as: UTF8.self)
    }

    /// Strict: nil for any other byte, and for bits that would be lost.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let values = values
        var out: [UInt8] = []
        out.reserveCapacity(text.utf8.count * 3 / 4)
        var word: UInt32 = 0
        var bits = 0
        for byte in text.utf8 {
            let value = values[Int(byte)]
            guard value < 64 else { return nil }
            word = word << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                out.append(UInt8(truncatingIfNeeded: word >> bits))
                word &= (1 << bits) - 1
            }
        }
        return bits < 6 && word == 0 ? out : nil
    }
}
