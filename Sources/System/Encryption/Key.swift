import Digests
import Encodings
import FoundationEssentials

/// A key with the name by which sealed arguments say that they need it.
package struct Key: Sendable, Equatable, CustomStringConvertible {
    package let id: String
    let bytes: [UInt8]

    /// - Parameter id: nil: an id derived from the key, the same for everybody who has the key.
    package init(id: String? = nil, bytes: [UInt8]) {
        self.id = id ?? Self.derivedID(bytes)
        self.bytes = bytes
    }

    package static func random(id: String? = nil) -> Key {
        Key(id: id, bytes: randomBytes(AES.keySize))
    }

    /// `id:base64`, as in MILLRACE_ENCRYPTION_KEY: a secret.
    package var spelled: String { "\(id):\(Data(bytes).base64EncodedString())" }

    /// Never the key itself: it may end up in a log.
    package var description: String { "key \(id)" }

    package static func isID(_ text: some StringProtocol) -> Bool {
        (1...32).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }

    /// Reveals nothing of the key: a hash of it after a fixed text, so that no other use of the hash gives the same.
    private static func derivedID(_ bytes: [UInt8]) -> String {
        Hexadecimal.text(SHA256Digest.of(Array("millrace key id:".utf8) + bytes).prefix(4))
    }

    /// From the system's own generator, which on Linux is the kernel's.
    static func randomBytes(_ count: Int) -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }
}
