package import FoundationEssentials
package import Postgres

/// Failed runs of a kind with the same cause, as far as their errors tell.
package struct FailureGroup: Sendable, Equatable {
    package var id: Int64
    package var kind: String
    /// A word such as `timeout`, `crash` or `error`.
    package var errorClass: String
    /// The first line of the errors, without what differs from run to run.
    package var gist: String
    package var firstAt: Date
    package var lastAt: Date
    /// The versions of the workers of the first and of the last run, if they are known.
    package var firstVersion: String?
    package var lastVersion: String?
    package var failed: Int
    package var dead: Int
    package var queues: [String]
    /// The latest jobs, the last one first.
    package var examples: [Int64]
    /// The group of the errors for which there was no room.
    package var isRest: Bool

    fileprivate init(_ row: Row) throws(PostgresError) {
        id = try row.int(0)
        kind = try row.string(1)
        errorClass = try row.string(2)
        gist = try row.string(3)
        firstAt = try row.date(4)
        lastAt = try row.date(5)
        firstVersion = row.optionalString(6)
        lastVersion = row.optionalString(7)
        failed = Int(try row.int(8))
        dead = Int(try row.int(9))
        queues = try row.strings(10)
        examples = try row.ints(11)
        isRest = try row.bool(12)
    }
}

/// The dead and retrying jobs of a group, as one look found them.
package struct FailureGroupPart: Sendable, Equatable {
    /// Newest first; the state is `dead` or `retrying`.
    package var jobs: [FoundFailure]
    /// Where the next look starts; nil when this was the last.
    package var next: Int64?
}

package struct FoundFailure: Sendable, Equatable {
    package var id: Int64
    package var state: String
}

extension Queue {
    /// - Parameter sort: `last`, `first`, `failed` or `dead`, the largest first.
    package static func failureGroups(
        since: DeadFilter.Moment?, kind: String?, queue: String?, sort: String, after: Int64?, limit: Int,
        on connection: Connection
    ) async throws(PostgresError) -> [FailureGroup] {
        try await connection.query(
            """
            select id, kind, class, gist, first_at, last_at, first_version, last_version, failed, dead, queues, examples, rest
              from millrace.failure_groups(coalesce($1, millrace.now() - make_interval(secs => $2)), $3, $4, $5, $6, $7)
            """,
            (since?.parameters ?? [.timestamp(nil), .float8(nil)]) + [
                .text(kind), .text(queue), .int8(after), .int4(Int32(min(limit, page))), .text(sort),
            ]
        ) { row throws(PostgresError) in try FailureGroup(row) }
    }

    package static func failureGroup(
        _ id: Int64, on connection: Connection
    ) async throws(PostgresError) -> FailureGroup? {
        try await connection.query(
            """
            select id, kind, class, gist, first_at, last_at, first_version, last_version, failed, dead, queues, examples, rest
              from millrace.failure_group($1)
            """, [.int8(id)]
        ) { row throws(PostgresError) in try FailureGroup(row) }.first
    }

    package static func jobs(
        ofFailures id: Int64, after: Int64?, limit: Int, on connection: Connection
    ) async throws(PostgresError) -> FailureGroupPart {
        let rows = try await connection.query(
            "select ids, states, next from millrace.failure_group_jobs($1, $2, $3)",
            [.int8(id), .int8(after), .int4(Int32(min(limit, page)))]
        ) { row throws(PostgresError) in
            FailureGroupPart(
                jobs: zip(try row.ints(0), try row.strings(1)).map { FoundFailure(id: $0, state: $1) },
                next: try row.optionalInt(2))
        }
        return try one(rows)
    }
}
