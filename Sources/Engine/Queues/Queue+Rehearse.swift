package import FoundationEssentials
package import Postgres

/// A job with all that is on record of it, as a rehearsal reads it.
package struct RehearsalRow: Sendable {
    /// Of its id among those that were asked for, from 1.
    package var place: Int
    package var id: Int64
    package var kind: String
    package var queue: String
    /// Runs that counted; nil: it has not begun.
    package var attempts: Int?
    package var crashes: Int
    package var enqueuedAt: Date
    package var tenant: String?
    package var tags: [String]
    /// JSON texts.
    package var metadata: [UInt8]?
    package var args: [UInt8]
    /// 1 succeeded, 2 cancelled, 3 dead; nil: it has not ended.
    package var outcome: Int?
    package var awaits: [UInt8]?
    package var steps: [UInt8]
    package var earlier: [UInt8]?
}

extension Queue {
    /// A page of the jobs that are under way, above `after`, in order of their numbers.
    package static func underWay(
        after: Int64, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [(id: Int64, kind: String)] {
        try await connection.query(
            "select id, kind from millrace.rehearse_ids($1, $2)", [.int8(after), .int4(Int32(page))],
            deadline: .seconds(600)
        ) { row throws(PostgresError) in (try row.int(0), try row.string(1)) }
    }

    /// The newest jobs of a kind of each sort that is not under way.
    package static func rehearsalSample(
        of kind: String, most: Int, on connection: Connection
    ) async throws(PostgresError) -> [Int64] {
        try await connection.query(
            "select s from millrace.rehearse_sample($1, $2) s", [.text(kind), .int4(Int32(most))],
            deadline: .seconds(600)
        ) { row throws(PostgresError) in try row.int(0) }
    }

    /// As many of the jobs as fit into a few megabytes, in their order.
    package static func rehearsalRows(
        _ ids: [Int64], on connection: Connection
    ) async throws(PostgresError) -> [RehearsalRow] {
        try await connection.query(
            """
            select place, id, kind, queue, attempt, crashes, enqueued_at, tenant, tags, metadata, args, outcome, awaits, steps, earlier
              from millrace.rehearse_read($1)
            """, [.int8s(ids)], deadline: .seconds(600)
        ) { row throws(PostgresError) in
            RehearsalRow(
                place: Int(try row.int(0)), id: try row.int(1), kind: try row.string(2), queue: try row.string(3),
                attempts: try row.optionalInt(4).map { Int($0) }, crashes: Int(try row.optionalInt(5) ?? 0),
                enqueuedAt: try row.date(6), tenant: row.optionalString(7), tags: try row.strings(8),
                metadata: row.optionalJSON(9), args: try row.json(10), outcome: try row.optionalInt(11).map { Int($0) },
                awaits: row.optionalJSON(12), steps: try row.json(13), earlier: row.optionalJSON(14))
        }
    }
}
