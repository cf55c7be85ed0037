package import Postgres

/// A job's contents.
package struct Contents: Sendable {
    package var args: [UInt8] = []
    package var options: [UInt8]?
    package var metadata: [UInt8]?
    package var tags: [String] = []
    package var expired = false
    /// Their size in bytes.
    package var size: Int

    package init(size: Int) {
        self.size = size
    }
}

/// The result of reading a job's contents.
package enum ContentsReading: Sendable {
    case contents(Contents)
    /// More than the limit, or more than the database can send.
    case tooLarge(bytes: Int)
    /// Its lease is gone.
    case lost
}

extension Queue {
    /// The contents of unread jobs, by id, until `most` bytes are reached; the first job's contents even if they are larger. The caller
    /// asks again for the jobs that are missing.
    package static func readContents(
        on connection: Connection, session: Int64, of jobs: [Claimed], most: Int, largest: Int
    ) async throws(PostgresError) -> [Int64: ContentsReading] {
        let rows = try await connection.query(
            "select id, args, options, metadata, tags, expired, size from millrace.jobs_read($1, $2, $3, $4, $5)",
            [
                .int8(session), .int8s(jobs.map(\.number)), .int8s(jobs.map(\.id)), .int8(Int64(most)),
                .int8(Int64(largest)),
            ]
        ) { row throws(PostgresError) -> (Int64, ContentsReading) in
            let id = try row.int(0)
            guard let size = try row.optionalInt(6) else { return (id, .lost) }
            guard let args = row.bytes(1) else { return (id, .tooLarge(bytes: Int(size))) }
            var contents = Contents(size: Int(size))
            contents.args = Array(args)
            contents.options = row.bytes(2).map { Array($0) }
            contents.metadata = row.bytes(3).map { Array($0) }
            contents.tags = row.isNull(4) ? [] : try row.strings(4)
            contents.expired = row.isNull(5) ? false : try row.bool(5)
            return (id, .contents(contents))
        }
        return Dictionary(rows, uniquingKeysWith: { first, _ in first })
    }
}
