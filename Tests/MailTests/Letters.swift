import Blobs
import FoundationEssentials
import Mail

extension Letter {
    /// A plain one, to be changed.
    static func sample(_ change: (inout Letter) -> Void = { _ in }) -> Letter {
        var letter = Letter(
            id: UUID(
                uuid: (0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0x4D, 0xEF, 0x81, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF)),
            date: Date(timeIntervalSince1970: 1_767_323_045),
            from: Mailbox(name: "Mill Race", address: "mill@sender.example"),
            to: [Mailbox(address: "ada@reader.example")], subject: "Hello")
        letter.text = "Hello, Ada.\n"
        change(&letter)
        return letter
    }
}

/// Blobs that lie in memory.
final class SampleBlobs: Sendable {
    let contents: [BlobID: [UInt8]]

    init(_ contents: [BlobID: [UInt8]] = [:]) { self.contents = contents }

    var source: BlobSource {
        BlobSource { [contents] id, take in
            guard let bytes = contents[id] else { throw BlobError.notFound(id) }
            for start in stride(from: 0, to: bytes.count, by: 1000) {
                try await take(Array(bytes[start..<min(start + 1000, bytes.count)]))
            }
        }
    }

    static func id(_ number: Int) -> BlobID {
        guard let id = BlobID(String(repeating: "0", count: 56) + String(number + 0x1000_0000, radix: 16)) else {
            preconditionFailure("not 64 digits")
        }
        return id
    }
}
