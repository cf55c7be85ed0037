import CCrypto
import Digests

/// AES-256-GCM as libcrypto does it: encrypts, and tells whether anything was changed since.
package enum AES {
    package static let keySize = 32
    package static let nonceSize = 12
    package static let tagSize = 16

    /// One owner of libcrypto's context, which is freed with the key in it wiped.
    private struct Context: ~Copyable {
        let handle: OpaquePointer

        init() {
            guard let handle = EVP_CIPHER_CTX_new() else { preconditionFailure("libcrypto has no memory left") }
            self.handle = handle
        }

        deinit { EVP_CIPHER_CTX_free(handle) }
    }

    /// The ciphertext followed by its tag. `bound` is not encrypted, and must be the same at opening.
    package static func seal(_ plain: [UInt8], key: [UInt8], nonce: [UInt8], bound: [UInt8]) -> [UInt8] {
        precondition(key.count == keySize && nonce.count == nonceSize, "a key has 32 bytes and a nonce 12")
        let context = Context()
        var out = [UInt8](repeating: 0, count: plain.count + tagSize)
        var count: Int32 = 0
        let works =
            EVP_EncryptInit_ex(context.handle, EVP_aes_256_gcm(), nil, key, nonce) == 1
            && EVP_EncryptUpdate(context.handle, nil, &count, bound, Int32(bound.count)) == 1
            && EVP_EncryptUpdate(context.handle, &out, &count, plain, Int32(plain.count)) == 1
            && out.withUnsafeMutableBytes { buffer in
                var last: Int32 = 0
                guard let start = buffer.baseAddress?.advanced(by: plain.count) else { return false }
                // GCM has no last block to fill, so the tag follows directly.
                return EVP_EncryptFinal_ex(context.handle, start.assumingMemoryBound(to: UInt8.self), &last) == 1
                    && EVP_CIPHER_CTX_ctrl(context.handle, EVP_CTRL_AEAD_GET_TAG, Int32(tagSize), start) == 1
            }
        precondition(works, "libcrypto refused to encrypt")  // nothing but our own misuse makes it
        return out
    }

    /// nil: it was changed, or key, nonce or `bound` are others.
    package static func open(_ sealed: [UInt8], key: [UInt8], nonce: [UInt8], bound: [UInt8]) -> [UInt8]? {
        guard key.count == keySize, nonce.count == nonceSize, sealed.count >= tagSize else { return nil }
        let context = Context()
        let length = sealed.count - tagSize
        var tag = Array(sealed[length...])
        var plain = [UInt8](repeating: 0, count: length + tagSize)  // libcrypto wants somewhere to write nothing
        var count: Int32 = 0
        var last: Int32 = 0
        let opens =
            EVP_DecryptInit_ex(context.handle, EVP_aes_256_gcm(), nil, key, nonce) == 1
            && EVP_DecryptUpdate(context.handle, nil, &count, bound, Int32(bound.count)) == 1
            && EVP_DecryptUpdate(context.handle, &plain, &count, sealed, Int32(length)) == 1
            && EVP_CIPHER_CTX_ctrl(context.handle, EVP_CTRL_AEAD_SET_TAG, Int32(tagSize), &tag) == 1
            && plain.withUnsafeMutableBytes { buffer in
                guard let start = buffer.baseAddress?.advanced(by: length) else { return false }
                return EVP_DecryptFinal_ex(context.handle, start.assumingMemoryBound(to: UInt8.self), &last) == 1
            }
        return opens ? Array(plain[..<length]) : nil
    }
}
