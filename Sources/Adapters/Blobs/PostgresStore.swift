import Digests
package import Postgres
import Threads

/// Blobs in the database, in pieces. A blob of one piece is put by one statement. A larger put stages its pieces under its own number, each
/// in its own transaction, and its last statement gives that number to the blob: the content is never copied, and never visible in part.
package struct PostgresStore: BlobStore {
    package var pool: Pool
    static let piece = 262_144

    package init(pool: Pool) {
        self.pool = pool
    }

    package func put<Chunks: AsyncSequence & Sendable>(
        _ chunks: Chunks, limit: Int
    ) async throws -> (id: BlobID, size: Int) where Chunks.Element == [UInt8] {
        var upload: Int64?
        do {
            let hasher = SHA256Digest()
            var size = 0
            var number: Int32 = 0
            var waiting: [UInt8] = []
            for try await chunk in chunks {
                size += chunk.count
                guard size <= limit else { throw BlobError.tooLarge(limit: limit) }
                hasher.update(chunk)
                waiting += chunk
                var start = 0
                if waiting.count > Self.piece, upload == nil { upload = try await opened() }
                while let upload, waiting.count - start >= Self.piece {
                    try await stage(Array(waiting[start..<start + Self.piece]), upload, number)
                    start += Self.piece
                    number += 1
                }
                if start > 0 { waiting.removeFirst(start) }
            }
            try Task.checkCancellation()
            let id = BlobID(bytes: hasher.finish())
            guard let upload else {
                try await put(waiting, as: id)
                return (id, size)
            }
            if !waiting.isEmpty { try await stage(waiting, upload, number) }
            let total = size
            try await pool.withConnection { connection throws(PostgresError) in
                _ = try await connection.execute(
                    "select millrace.blob_store($1, $2, $3)",
                    [.int8(upload), .bytea(id.bytes), .int8(Int64(total))])
            }
            return (id, size)
        } catch {
            // The sweep removes what cannot be removed now. A cancelled task must not skip this.
            guard let upload else { throw error }
            let pool = pool
            await uncancelled {
                try? await pool.withConnection { connection throws(PostgresError) in
                    _ = try await connection.execute("select millrace.blob_drop($1)", [.int8(upload)])
                }
            }
            throw error
        }
    }

    private func opened() async throws -> Int64 {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query("select millrace.blob_upload()") { row throws(PostgresError) in try row.int(0) }
                .first ?? 0
        }
    }

    private func put(_ bytes: [UInt8], as id: BlobID) async throws {
        try await pool.withConnection { connection throws(PostgresError) in
            _ = try await connection.execute("select millrace.blob_put($1, $2)", [.bytea(id.bytes), .bytea(bytes)])
        }
    }

    private func stage(_ bytes: [UInt8], _ upload: Int64, _ number: Int32) async throws {
        try await pool.withConnection { connection throws(PostgresError) in
            _ = try await connection.execute(
                "select millrace.blob_stage($1, $2, $3)", [.int8(upload), .int4(number), .bytea(bytes)])
        }
    }

    package func read(
        _ id: BlobID, range: Range<Int>?, _ take: @Sendable ([UInt8]) async throws -> Void
    ) async throws {
        // Reading counts as touching, so that no sweep takes it away under a slow reader.
        let size = try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query("select millrace.blob_open($1)", [.bytea(id.bytes)]) {
                row throws(PostgresError) in try row.optionalInt(0)
            }.first ?? nil
        }
        guard let size = size.map({ Int($0) }) else { throw BlobError.notFound(id) }
        let range = (range ?? 0..<size).clamped(to: 0..<size)
        var offset = range.lowerBound
        while offset < range.upperBound {
            let number = offset / Self.piece
            let bytes = try await pool.withConnection { connection throws(PostgresError) in
                try await connection.query(
                    "select millrace.blob_piece($1, $2)", [.bytea(id.bytes), .int4(Int32(clamping: number))]
                ) { row throws(PostgresError) in row.bytes(0).map { Array($0) } }.first ?? nil
            }
            guard let bytes else { throw BlobError.goneMeanwhile(id) }
            let start = offset - number * Self.piece
            let end = min(bytes.count, range.upperBound - number * Self.piece)
            guard start < end else { throw BlobError.damaged(id) }
            try await take(start == 0 && end == bytes.count ? bytes : Array(bytes[start..<end]))
            offset += end - start
        }
    }

    package func forget(_ id: BlobID, grace: Duration) async throws -> Bool {
        try await pool.withConnection { connection throws(PostgresError) in
            try await BlobReferences.forget(id, grace: grace, on: connection)
        }
    }

    package func clean(grace: Duration) async throws -> Int {
        try await pool.withConnection { connection throws(PostgresError) in
            Int(
                try await connection.query(
                    "select millrace.blob_uploads_expire(make_interval(secs => $1))", [.float8(grace / .seconds(1))]
                ) { row throws(PostgresError) in try row.int(0) }.first ?? 0)
        }
    }
}
