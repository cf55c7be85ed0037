package import Blobs
import Glibc
import Threads

/// A file without a name. It is deleted when its last owner lets go of it.
package final class SharedFile: Sendable {
    package let descriptor: Int32

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}

/// Originals and outputs as files, which children get. The originals that were used last stay, because a document's pages come one after
/// the other.
package actor FileCache {
    private let thread = ThreadExecutor(name: "file-cache")
    private let directory: String
    private let most: Int
    private struct Key: Equatable {
        var id: BlobID
        var rewriting: Rewriting?
    }
    private var kept: [(key: Key, sheet: SharedFile)] = []

    /// How a document was written once more.
    package enum Rewriting: Sendable {
        /// With the pages that programs that draw would not find.
        case counted
        /// Without its invisible text.
        case withoutInvisibleText
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    package init(directory: String, most: Int = 8) {
        self.directory = directory
        self.most = most
    }

    deinit { thread.stop() }

    /// Two callers that want the same file at once may both fetch it; the later copy is kept.
    package func sheet(_ id: BlobID, from store: any BlobStore) async throws -> SharedFile {
        if let found = found(Key(id: id)) { return found }
        let sheet = try blank()
        try await store.read(id, range: nil) { piece in try await self.append(piece, to: sheet) }
        keep(sheet, Key(id: id))
        return sheet
    }

    /// A document written once more. It is kept as the original is.
    package func rewritten(
        _ id: BlobID, as rewriting: Rewriting, make: @Sendable (SharedFile) async throws -> Void
    ) async throws -> SharedFile {
        let key = Key(id: id, rewriting: rewriting)
        if let found = found(key) { return found }
        let sheet = try blank()
        try await make(sheet)
        keep(sheet, key)
        return sheet
    }

    private func found(_ key: Key) -> SharedFile? {
        guard let at = kept.firstIndex(where: { $0.key == key }) else { return nil }
        let found = kept.remove(at: at)
        kept.append(found)
        return found.sheet
    }

    private func keep(_ sheet: SharedFile, _ key: Key) {
        kept.removeAll { $0.key == key }
        kept.append((key, sheet))
        if kept.count > most { kept.removeFirst() }
    }

    package func blank() throws(BlobError) -> SharedFile {
        let name = "\(directory)/millrace-\(getpid())-\(UInt64.random(in: .min ... .max))"
        let descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .system("making a file in \(directory)", number: errno) }
        unlink(name)
        return SharedFile(descriptor)
    }

    package func append(_ bytes: [UInt8], to sheet: SharedFile) throws(BlobError) {
        var start = 0
        while start < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                write(sheet.descriptor, buffer.baseAddress.map { $0 + start }, bytes.count - start)
            }
            if count < 0, errno != EINTR { throw .system("writing a file in \(directory)", number: errno) }
            start += max(0, count)
        }
    }

    func read(_ sheet: SharedFile, at offset: Int, most: Int) throws(BlobError) -> [UInt8] {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: most) { buffer, filled in
            var count = pread(sheet.descriptor, buffer.baseAddress, most, offset)
            while count < 0, errno == EINTR { count = pread(sheet.descriptor, buffer.baseAddress, most, offset) }
            failure = count < 0 ? errno : 0
            filled = max(0, count)
        }
        if failure != 0 { throw .system("reading a file in \(directory)", number: failure) }
        return bytes
    }

    /// The contents of a file, piece by piece.
    package nonisolated func pieces(of sheet: SharedFile) -> SharedFilePieces {
        SharedFilePieces(fileCache: self, sheet: sheet)
    }
}

package struct SharedFilePieces: AsyncSequence, Sendable {
    let fileCache: FileCache
    let sheet: SharedFile

    package struct Iterator: AsyncIteratorProtocol {
        let fileCache: FileCache
        let sheet: SharedFile
        var offset = 0

        package mutating func next() async throws -> [UInt8]? {
            let piece = try await fileCache.read(sheet, at: offset, most: 262_144)
            offset += piece.count
            return piece.isEmpty ? nil : piece
        }
    }

    package func makeAsyncIterator() -> Iterator { Iterator(fileCache: fileCache, sheet: sheet) }
}
