import Blobs
import FoundationEssentials
import Pages
import Postgres

/// The SQL of media, as a worker calls it.
struct MediaStore: Sendable {
    let pool: Pool

    /// What is to be made.
    struct Taken: Sendable {
        /// picture or template
        var what: String
        var blob: BlobID?
        var wish: [UInt8]
    }

    /// nil: there is nothing left to do.
    func take(_ id: String, token: String) async throws -> Taken? {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(
                "select what, encode(blob, 'hex'), wish from millrace.media_take($1, $2::text::uuid)",
                [.text(token), .text(id)]
            ) { row throws(PostgresError) in
                Taken(
                    what: try row.string(0), blob: row.optionalString(1).flatMap { BlobID($0) }, wish: try row.json(2))
            }.first
        }
    }

    enum Recording: String, Sendable {
        case made, over, quota
    }

    func made(
        _ id: String, token: String, type: String?, files: [UInt8], cpu: Duration, result: [UInt8]
    ) async throws -> Recording {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(
                "select millrace.media_made($1, $2::text::uuid, $3, $4, $5, $6)",
                [
                    .text(token), .text(id), .text(type), .json(files), .int4(cpu.wholeMilliseconds), .json(result),
                ]
            ) { row throws(PostgresError) in Recording(rawValue: try row.string(0)) ?? .over }.first ?? .over
        }
    }

    func failed(
        _ id: String, token: String, type: String?, _ refusal: DocumentRefusal, cpu: Duration
    ) async throws -> Bool {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(
                "select millrace.media_failed($1, $2::text::uuid, $3, $4, $5, $6)",
                [
                    .text(token), .text(id), .text(type), .text(refusal.reason.rawValue), .text(refusal.sentence),
                    .int4(cpu.wholeMilliseconds),
                ]
            ) { row throws(PostgresError) in try row.bool(0) }.first ?? false
        }
    }
}
