import CCrypto
package import FoundationEssentials

/// Roots that are trusted, and chains of certificates that lead to one of them.
package final class CertificateRoots: Sendable {
    package struct Unusable: Error, Sendable, CustomStringConvertible {
        package let description: String
    }

    /// libcrypto locks what it counts, and nobody changes the store.
    private struct Held: @unchecked Sendable { let pointer: OpaquePointer }

    private let held: Held
    package let count: Int

    /// - Parameter files: each one certificate in DER, or one or several in PEM.
    package init(_ files: [[UInt8]]) throws(Unusable) {
        guard let store = X509_STORE_new() else { throw Unusable(description: "out of memory") }
        held = Held(pointer: store)
        var found = 0
        for file in files {
            let certificates = Self.read(file)
            guard !certificates.isEmpty else {
                throw Unusable(description: "it is not a certificate in DER or PEM form")
            }
            for certificate in certificates {
                defer { X509_free(certificate) }
                guard X509_STORE_add_cert(store, certificate) == 1 else {
                    throw Unusable(description: "a certificate in it cannot be used")
                }
                found += 1
            }
        }
        count = found
        guard found > 0 else { throw Unusable(description: "there is no certificate") }
    }

    deinit { X509_STORE_free(held.pointer) }

    /// The key of the first certificate, if the chain is valid at this time and leads over exactly one intermediate to a root that is
    /// trusted; and the first and the intermediate have these extensions.
    package func key(
        of chain: [[UInt8]], at now: Date, leafMark: String, intermediateMark: String
    ) -> VerifyingKey? {
        defer { ERR_clear_error() }
        let certificates = chain.compactMap(Self.der)
        defer { certificates.forEach { X509_free($0) } }
        guard certificates.count == chain.count, let leaf = certificates.first, certificates.count <= 5,
            let others = OPENSSL_sk_new_null(), let context = X509_STORE_CTX_new()
        else { return nil }
        defer {
            OPENSSL_sk_free(others)
            X509_STORE_CTX_free(context)
        }
        for other in certificates.dropFirst() { _ = OPENSSL_sk_push(others, UnsafeRawPointer(other)) }
        guard X509_STORE_CTX_init(context, held.pointer, leaf, others) == 1 else { return nil }
        X509_STORE_CTX_set_time(context, 0, time_t(now.timeIntervalSince1970))
        X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context), 2)
        guard X509_verify_cert(context) == 1, let proven = X509_STORE_CTX_get0_chain(context),
            OPENSSL_sk_num(proven) == 3, let middle = OPENSSL_sk_value(proven, 1),
            Self.has(leafMark, leaf), Self.has(intermediateMark, OpaquePointer(middle))
        else { return nil }
        return Self.key(of: leaf)
    }

    private static func key(of certificate: OpaquePointer) -> VerifyingKey? {
        guard let key = X509_get0_pubkey(certificate) else { return nil }
        var out: UnsafeMutablePointer<UInt8>?
        let size = i2d_PUBKEY(key, &out)
        guard size > 0, let out else { return nil }
        defer { CRYPTO_free(out, nil, 0) }
        return try? VerifyingKey(der: Array(UnsafeBufferPointer(start: out, count: Int(size))))
    }

    private static func has(_ mark: String, _ certificate: OpaquePointer) -> Bool {
        guard let object = OBJ_txt2obj(mark, 1) else { return false }
        defer { ASN1_OBJECT_free(object) }
        return X509_get_ext_by_OBJ(certificate, object, -1) >= 0
    }

    private static func der(_ bytes: [UInt8]) -> OpaquePointer? {
        bytes.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            guard let found = d2i_X509(nil, &start, buffer.count) else { return nil }
            guard start == buffer.baseAddress.map({ $0 + buffer.count }) else {
                X509_free(found)
                return nil
            }
            return found
        }
    }

    private static func read(_ file: [UInt8]) -> [OpaquePointer] {
        defer { ERR_clear_error() }
        if let one = der(file) { return [one] }
        guard let bio = BIO_new_mem_buf(file, Int32(clamping: file.count)) else { return [] }
        defer { BIO_free(bio) }
        var found: [OpaquePointer] = []
        while let one = PEM_read_bio_X509(bio, nil, { _, _, _, _ in 0 }, nil) { found.append(one) }
        return found
    }
}
