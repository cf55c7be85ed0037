import Digests
package import FoundationEssentials
package import Postgres

/// Facts about a blob, without its content.
package struct Blob: Sendable, Equatable {
    package let id: BlobID
    package let size: Int
    package let storedAt: Date
    /// How many owners refer to it.
    package let references: Int
}

/// Content by its hash, in any storage. The database lists the blobs and their references. A blob with references is never deleted, nor is
/// one that was put or read within the grace period.
package protocol BlobStore: Sendable {
    /// Whose connections it uses; a copy may use a share of them.
    var pool: Pool { get set }

    /// Stores all that comes, hashed on the way. It is there as a whole, and kept by the system, or not at all.
    func put<Chunks: AsyncSequence & Sendable>(_ chunks: Chunks, limit: Int) async throws -> (id: BlobID, size: Int)
    where Chunks.Element == [UInt8]

    /// Hands a part of the content on, piece by piece; waits for `take`.
    func read(_ id: BlobID, range: Range<Int>?, _ take: @Sendable ([UInt8]) async throws -> Void) async throws

    /// Deletes the blob if it has no references and was not used within the grace period. True when it is gone.
    func forget(_ id: BlobID, grace: Duration) async throws -> Bool

    /// Removes what broken-off puts have left; how many of them.
    func clean(grace: Duration) async throws -> Int
}

extension BlobStore {
    /// A day: longer than any put, and than any transaction that will add a reference to it.
    package static var grace: Duration { .seconds(86_400) }

    package func put(_ bytes: [UInt8], limit: Int = .max) async throws -> BlobID {
        let chunks = AsyncStream<[UInt8]> { continuation in
            continuation.yield(bytes)
            continuation.finish()
        }
        return try await put(chunks, limit: limit).id
    }

    package func get(_ id: BlobID, range: Range<Int>? = nil) async throws -> [UInt8] {
        let gathered = Gathered()
        try await read(id, range: range) { await gathered.add($0) }
        return await gathered.bytes
    }

    package func head(_ id: BlobID) async throws -> Blob? {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(
                "select id, size, stored_at, refs from millrace.blob($1)", [.bytea(id.bytes)], decode: Self.blob
            ).first
        }
    }

    /// By id, after `after`.
    package func list(after: BlobID? = nil, page: Int = 50) async throws -> [Blob] {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(
                "select id, size, stored_at, refs from millrace.blob_list($1, $2)",
                [.bytea(after?.bytes), .int4(Int32(clamping: page))], decode: Self.blob)
        }
    }

    /// The blobs that a sweep would delete.
    package func forsaken(grace: Duration, after: BlobID? = nil, page: Int = 500) async throws -> [Blob] {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(
                "select id, size, stored_at, refs from millrace.blobs_forsaken(make_interval(secs => $1), $2, $3)",
                [.float8(grace / .seconds(1)), .bytea(after?.bytes), .int4(Int32(clamping: page))], decode: Self.blob)
        }
    }

    /// Deletes blobs without references, and the remains of interrupted puts.
    package func sweep(grace: Duration) async throws -> (blobs: Int, bytes: Int, remains: Int) {
        var swept = (blobs: 0, bytes: 0, remains: 0)
        var last: BlobID?
        while true {
            let page = try await forsaken(grace: grace, after: last)
            for blob in page where try await forget(blob.id, grace: grace) {
                swept.blobs += 1
                swept.bytes += blob.size
            }
            guard let end = page.last else { break }
            last = end.id
        }
        swept.remains = try await clean(grace: grace)
        return swept
    }

    /// Reads the whole blob and checks its hash; throws when it is not what was put.
    package func verify(_ id: BlobID) async throws {
        let hasher = Checker()
        try await read(id, range: nil) { await hasher.update($0) }
        guard await hasher.finish() == id else { throw BlobError.damaged(id) }
    }

    private static var blob: Connection.Decode<Blob> {
        { row throws(PostgresError) in
            guard let bytes = row.bytes(0), bytes.count == 32 else { throw .undecodable(column: 0, expected: "a hash") }
            return Blob(
                id: BlobID(bytes: Array(bytes)), size: Int(try row.int(1)), storedAt: try row.date(2),
                references: Int(try row.int(3)))
        }
    }
}

private actor Gathered {
    var bytes: [UInt8] = []
    func add(_ more: [UInt8]) { bytes += more }
}

private actor Checker {
    private var hasher: SHA256Digest? = SHA256Digest()

    func update(_ bytes: [UInt8]) { hasher?.update(bytes) }

    func finish() -> BlobID? {
        guard let hasher = hasher.take() else { return nil }
        return BlobID(bytes: hasher.finish())
    }
}
