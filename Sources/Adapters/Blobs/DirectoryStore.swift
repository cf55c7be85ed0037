import Digests
import Glibc
package import Postgres

/// Blobs as files, `<directory>/ab/cdef…`; files under way are in `<directory>/tmp`. All machines of a fleet must share the directory.
///
/// A put registers in the database before it moves its file into place, and it always moves the file; a sweep deletes file and row in one
/// transaction, under the row's lock. So in either order the content is there when the put returns.
package struct DirectoryStore: BlobStore {
    package var pool: Pool
    private let directory: String

    package init(_ directory: String, pool: Pool) {
        self.directory = directory
        self.pool = pool
    }

    private func place(of id: BlobID) -> (directory: String, path: String) {
        let name = id.description
        let folder = directory + "/" + name.prefix(2)
        return (folder, folder + "/" + name.dropFirst(2))
    }

    package func put<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, limit: Int
    ) async throws -> (id: BlobID, size: Int) where Chunks.Element == [UInt8] {
        let hand = FileHand()
        try await hand.prepare([directory, directory + "/tmp"])
        let draft = directory + "/tmp/\(getpid())-\(UInt64.random(in: .min ... .max))"
        try await hand.create(draft)
        do {
            let hasher = SHA256Digest()
            var size = 0
            for try await chunk in chunks {
                size += chunk.count
                guard size <= limit else { throw BlobError.tooLarge(limit: limit) }
                hasher.update(chunk)
                try await hand.write(chunk)
            }
            try Task.checkCancellation()
            try await hand.settle()
            let id = BlobID(bytes: hasher.finish())
            let total = size
            try await pool.withConnection { connection throws(PostgresError) in
                _ = try await connection.execute(
                    "select millrace.blob_touch($1, $2)", [.bytea(id.bytes), .int8(Int64(total))])
            }
            let place = place(of: id)
            try await hand.move(draft, to: place.path, in: place.directory)
            return (id, size)
        } catch {
            try? await hand.remove(draft)  // what is left after a crash, the sweep removes
            throw error
        }
    }

    package func read(
        _ id: BlobID, range: Range<Int>?, _ take: @Sendable ([UInt8]) async throws -> Void
    ) async throws {
        let hand = FileHand()
        // An open file stays readable even if another process deletes it meanwhile.
        guard let size = try await hand.open(place(of: id).path) else { throw BlobError.notFound(id) }
        let range = (range ?? 0..<size).clamped(to: 0..<size)
        var offset = range.lowerBound
        while offset < range.upperBound {
            let bytes = try await hand.read(min(262_144, range.upperBound - offset), at: offset)
            guard !bytes.isEmpty else { throw BlobError.damaged(id) }
            try await take(bytes)
            offset += bytes.count
        }
    }

    package func forget(_ id: BlobID, grace: Duration) async throws -> Bool {
        let hand = FileHand()
        let path = place(of: id).path
        let failure: BlobError?
        let isGone: Bool
        (isGone, failure) = try await pool.withConnection { connection throws(PostgresError) in
            try await connection.transaction { connection throws(PostgresError) in
                guard try await BlobReferences.forget(id, grace: grace, on: connection) else { return (false, nil) }
                do throws(BlobError) {
                    try await hand.remove(path)
                    return (true, nil)
                } catch {
                    return (false, error)
                }
            }
        }
        if let failure { throw failure }
        return isGone
    }

    package func clean(grace: Duration) async throws -> Int {
        try await FileHand().removeOld(in: directory + "/tmp", age: min(grace, .seconds(3600)))
    }
}
