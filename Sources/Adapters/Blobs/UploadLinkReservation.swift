import FoundationEssentials
package import Postgres
import Threads

/// An upload link while one put has it to itself. It is taken before a byte is stored, and given back when nothing came of the put.
package struct UploadLinkReservation: Sendable {
    package enum Refused: Error, Sendable, Equatable {
        case used
        /// Another put is under way.
        case busy
        case tooManyParts
    }

    private let pool: Pool
    private let upload: String
    private let hold: String

    /// - Parameter expiry: of the link, in seconds since 1970.
    package static func reserve(_ upload: String, expiry: Int, pool: Pool) async throws -> UploadLinkReservation {
        do {
            let hold = try await pool.withConnection { connection throws(PostgresError) in
                try await connection.query(
                    "select millrace.upload_reserve($1::text::uuid, $2)::text",
                    [.text(upload), .timestamp(Date(timeIntervalSince1970: Double(expiry)))]
                ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
            }
            return UploadLinkReservation(pool: pool, upload: upload, hold: hold)
        } catch let error as PostgresError where error.sqlState == "23505" {
            throw Refused.used
        } catch let error as PostgresError where error.sqlState == "55006" {
            throw Refused.busy
        }
    }

    /// Goes on with a put where it ended; another one that may be under way loses the link. nil: another number of bytes has come.
    package static func resume(
        _ upload: String, expiry: Int, at place: Int, pool: Pool
    ) async throws -> UploadLinkReservation? {
        do {
            let hold = try await pool.withConnection { connection throws(PostgresError) in
                try await connection.query(
                    "select millrace.upload_resume($1::text::uuid, $2, $3)::text",
                    [
                        .text(upload), .timestamp(Date(timeIntervalSince1970: Double(expiry))), .int8(Int64(place)),
                    ]
                ) { row throws(PostgresError) in row.optionalString(0) }.first ?? nil
            }
            return hold.map { UploadLinkReservation(pool: pool, upload: upload, hold: $0) }
        } catch let error as PostgresError where error.sqlState == "23505" {
            throw Refused.used
        }
    }

    /// How many bytes have come in parts; nil: all of them, and the link is used.
    package static func came(by upload: String, pool: Pool) async throws -> Int? {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query("select millrace.upload_came($1::text::uuid)", [.text(upload)]) {
                row throws(PostgresError) in try row.optionalInt(0).map { Int($0) }
            }.first ?? 0
        }
    }

    /// Records the next part, which is there from now on.
    package func add(_ id: BlobID, at place: Int, size: Int) async throws {
        do {
            try await pool.withConnection { connection throws(PostgresError) in
                _ = try await connection.query(
                    "select millrace.upload_part_add($1::text::uuid, $2::text::uuid, $3, $4, $5)",
                    [.text(upload), .text(hold), .int8(Int64(place)), .int8(Int64(size)), .bytea(id.bytes)]
                ) { _ throws(PostgresError) in true }
            }
        } catch let error as PostgresError where error.sqlState == "55006" {
            throw Refused.busy
        } catch let error as PostgresError where error.sqlState == "54000" {
            throw Refused.tooManyParts
        }
    }

    /// The blobs that have come, in their order.
    package func parts() async throws -> [BlobID] {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query("select blob from millrace.upload_parts($1::text::uuid)", [.text(upload)]) {
                row throws(PostgresError) in
                guard let bytes = row.bytes(0) else { throw .undecodable(column: 0, expected: "a hash") }
                return BlobID(bytes: Array(bytes))
            }
        }
    }

    /// The body while it streams, of exactly this size. It throws as soon as there is more, when there was less, and when the link is lost.
    /// A store that reads it to its end keeps the content; a store that gets an error keeps nothing.
    package func counted<Body: AsyncSequence & Sendable>(_ body: Body, size: Int) -> CountedBody<Body>
    where Body.Element == [UInt8] {
        CountedBody(hold: self, body: body, size: size)
    }

    /// Records the blob under the link, which is used from now on.
    package func arrived(_ id: BlobID) async throws {
        do {
            try await pool.withConnection { connection throws(PostgresError) in
                _ = try await connection.query(
                    "select millrace.upload_arrived($1::text::uuid, $2, $3::text::uuid)",
                    [.text(upload), .bytea(id.bytes), .text(hold)]
                ) { _ throws(PostgresError) in true }
            }
        } catch let error as PostgresError where error.sqlState == "23505" {
            throw Refused.used
        }
    }

    /// Not for a cancelled task to skip. When the database is unreachable, the hold runs out.
    package func release() async {
        await uncancelled {
            try? await pool.withConnection { connection throws(PostgresError) in
                _ = try await connection.query(
                    "select millrace.upload_release($1::text::uuid, $2::text::uuid)", [.text(upload), .text(hold)]
                ) { _ throws(PostgresError) in true }
            }
        }
    }

    fileprivate func renew() async throws {
        let isOurs = try await pool.withConnection { connection throws(PostgresError) in
            try await connection.truth(
                "select millrace.upload_renew($1::text::uuid, $2::text::uuid)", [.text(upload), .text(hold)]
            )
        }
        if !isOurs { throw Refused.busy }
    }
}

package struct CountedBody<Body: AsyncSequence & Sendable>: AsyncSequence, Sendable where Body.Element == [UInt8] {
    let hold: UploadLinkReservation
    let body: Body
    let size: Int

    package struct Iterator: AsyncIteratorProtocol {
        let hold: UploadLinkReservation
        var chunks: Body.AsyncIterator
        let size: Int
        var seen = 0
        var renewed = ContinuousClock.now

        package mutating func next() async throws -> [UInt8]? {
            guard let chunk = try await chunks.next() else {
                guard seen == size else { throw BlobError.wrongSize(expected: size) }
                // A put that has lost its link meanwhile keeps nothing.
                try await hold.renew()
                return nil
            }
            seen += chunk.count
            guard seen <= size else { throw BlobError.wrongSize(expected: size) }
            if renewed.duration(to: .now) > .seconds(60) {
                try await hold.renew()
                renewed = .now
            }
            return chunk
        }
    }

    package func makeAsyncIterator() -> Iterator {
        Iterator(hold: hold, chunks: body.makeAsyncIterator(), size: size)
    }
}
