import Encodings

/// The SHA-256 of a blob's content: its name, wherever it lies.
package struct BlobID: Sendable, Hashable, CustomStringConvertible {
    package let bytes: [UInt8]

    package init?(_ hex: some StringProtocol) {
        guard let bytes = Hexadecimal.bytes(hex), bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    init(bytes: [UInt8]) {
        precondition(bytes.count == 32, "a SHA-256 has 32 bytes")
        self.bytes = bytes
    }

    package var description: String { Hexadecimal.text(bytes) }
}
