package import Blobs

/// A message to send, as pieces: bytes in memory, and blobs that are read and turned into base64 while they are sent. The length is known
/// before anything is read.
package struct MessageBytes: Sendable {
    enum Piece: Sendable {
        case bytes([UInt8])
        /// - width: characters in a line; nil for one line.
        case blob(BlobID, size: Int, width: Int?)
    }

    private(set) var pieces: [Piece] = []
    package private(set) var length = 0

    mutating func add(_ bytes: [UInt8]) {
        length += bytes.count
        guard case .bytes(var together) = pieces.last else { return pieces.append(.bytes(bytes)) }
        pieces.removeLast()  // so that the array grows in place
        together += bytes
        pieces.append(.bytes(together))
    }

    mutating func add(_ text: String) { add(Array(text.utf8)) }

    mutating func add(_ blob: BlobID, size: Int, width: Int?) {
        length += Base64.length(of: size, width: width)
        pieces.append(.blob(blob, size: size, width: width))
    }

    /// All bytes, if there is no blob among the pieces.
    package var whole: [UInt8]? {
        switch pieces.count {
        case 0: []
        case 1: if case .bytes(let bytes) = pieces[0] { bytes } else { nil }
        default: nil
        }
    }

    /// Passes the pieces to `take`, one at a time. A blob whose length is not the announced one is an error.
    package func read(from blobs: BlobSource, _ take: @Sendable ([UInt8]) async throws -> Void) async throws {
        for piece in pieces {
            switch piece {
            case .bytes(let bytes): if !bytes.isEmpty { try await take(bytes) }
            case .blob(let id, let size, let width):
                let encoder = Encoder(width: width)
                try await blobs.read(id) { bytes in
                    for start in stride(from: 0, to: bytes.count, by: 49_152) {
                        try await take(encoder.add(bytes[start..<min(start + 49_152, bytes.count)]))
                    }
                }
                let (last, count) = await encoder.end()
                guard count == size else { throw BlobError.damaged(id) }
                if !last.isEmpty { try await take(last) }
            }
        }
    }

    package func gather(from blobs: BlobSource) async throws -> [UInt8] {
        let gathered = Gathered()
        try await read(from: blobs) { await gathered.add($0) }
        return await gathered.bytes
    }

    private actor Encoder {
        private var base64: Base64
        private var count = 0

        init(width: Int?) { base64 = Base64(width: width) }

        func add(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
            count += bytes.count
            return base64.add(bytes)
        }

        func end() -> ([UInt8], Int) { (base64.end(), count) }
    }

}

private actor Gathered {
    var bytes: [UInt8] = []
    func add(_ more: [UInt8]) { bytes += more }
}

/// Reads the content of attachments.
package struct BlobSource: Sendable {
    package typealias Take = @Sendable ([UInt8]) async throws -> Void

    let read: @Sendable (BlobID, Take) async throws -> Void

    /// For small contents only.
    package func whole(_ id: BlobID) async throws -> [UInt8] {
        let gathered = Gathered()
        try await read(id) { await gathered.add($0) }
        return await gathered.bytes
    }

    package init(_ read: @escaping @Sendable (BlobID, Take) async throws -> Void) { self.read = read }

    package init(_ store: any BlobStore) {
        read = { id, take in try await store.read(id, range: nil, take) }
    }
}
