import CCrypto

/// A pair of keys made for one test: the private half for who signs, the public one for the fake that checks.
package final class FakeKeys: Sendable {
    package enum Kind: Sendable {
        case p256, rsa
    }

    private nonisolated(unsafe) let handle: OpaquePointer
    private let isCurve: Bool

    package init(_ kind: Kind) {
        isCurve = kind == .p256
        let made = EVP_PKEY_CTX_new_id(kind == .p256 ? EVP_PKEY_EC : EVP_PKEY_RSA, nil)
        var key: OpaquePointer?
        EVP_PKEY_keygen_init(made)
        if kind == .p256 {
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(made, NID_X9_62_prime256v1)
        } else {
            EVP_PKEY_CTX_set_rsa_keygen_bits(made, 2048)
        }
        EVP_PKEY_keygen(made, &key)
        EVP_PKEY_CTX_free(made)
        guard let key else { preconditionFailure("libcrypto made no key") }
        handle = key
    }

    deinit { EVP_PKEY_free(handle) }

    package var pem: String {
        let out = BIO_new(BIO_s_mem())
        defer { BIO_free(out) }
        PEM_write_bio_PKCS8PrivateKey(out, handle, nil, nil, 0, nil, nil)
        var bytes = [UInt8](repeating: 0, count: 8192)
        let count = BIO_read(out, &bytes, 8192)
        return String(decoding: bytes.prefix(Int(count)), as: UTF8.self)
    }

    /// The payload of a token that this pair has signed; nil for any other.
    package func payload(of token: String) -> String? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, var signature = Self.decode(parts[2]), let payload = Self.decode(parts[1]) else {
            return nil
        }
        if isCurve {
            guard signature.count == 64, let der = Self.der(signature) else { return nil }
            signature = der
        }
        let signed = Array("\(parts[0]).\(parts[1])".utf8)
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, handle) == 1,
            EVP_DigestVerify(context, signature, signature.count, signed, signed.count) == 1
        else { return nil }
        return String(decoding: payload, as: UTF8.self)
    }

    private static func der(_ pair: [UInt8]) -> [UInt8]? {
        guard let signature = ECDSA_SIG_new() else { return nil }
        defer { ECDSA_SIG_free(signature) }
        ECDSA_SIG_set0(
            signature, BN_bin2bn(Array(pair[..<32]), 32, nil), BN_bin2bn(Array(pair[32...]), 32, nil))
        var out: UnsafeMutablePointer<UInt8>?
        let count = i2d_ECDSA_SIG(signature, &out)
        guard count > 0, let out else { return nil }
        defer { CRYPTO_free(out, "", 0) }
        return Array(UnsafeBufferPointer(start: out, count: Int(count)))
    }

    static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var bits: UInt32 = 0
        var count = 0
        var out: [UInt8] = []
        for byte in text.utf8 {
            let value: UInt32
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = UInt32(byte) - 65
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = UInt32(byte) - 71
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = UInt32(byte) + 4
            case UInt8(ascii: "-"): value = 62
            case UInt8(ascii: "_"): value = 63
            default: return nil
            }
            bits = bits << 6 | value
            count += 6
            if count >= 8 {
                count -= 8
                out.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return out
    }
}
