import CCrypto

/// The SHA-256 of a blob's content: its name, wherever it lies.
package struct BlobID: Sendable, Hashable, CustomStringConvertible {
    package let bytes: [UInt8]

    package init?(_ hex: some StringProtocol) {
        guard hex.utf8.count == 64 else { return nil }
        var bytes: [UInt8] = []
        var high: UInt8?
        for character in hex.utf8 {
            let digit: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
        self.bytes = bytes
    }

    init(bytes: [UInt8]) {
        precondition(bytes.count == 32, "a SHA-256 has 32 bytes")
        self.bytes = bytes
    }

    package var description: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}

/// A SHA-256 that grows.
struct Hasher256: ~Copyable {
    private let context: OpaquePointer

    init() {
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
            preconditionFailure("libcrypto has no memory left")
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    func update(_ bytes: [UInt8]) {
        guard EVP_DigestUpdate(context, bytes, bytes.count) == 1 else {
            preconditionFailure("libcrypto refused to hash")
        }
    }

    consuming func id() -> BlobID {
        var digest = [UInt8](repeating: 0, count: 32)
        guard EVP_DigestFinal_ex(context, &digest, nil) == 1 else { preconditionFailure("libcrypto refused to hash") }
        return BlobID(bytes: digest)
    }
}
