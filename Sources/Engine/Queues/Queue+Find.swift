package import FoundationEssentials
package import Postgres

/// A search for jobs by everything that people may remember of them; nil is any.
package struct JobSearch: Sendable, Equatable {
    package var dead: DeadFilter
    package var tenant: String?
    package var uniqueKey: String?
    package var limitKey: String?
    /// The group of failures that the job's last error is in.
    package var group: Int64?
    /// A searchable field of the kind.
    package var field: FieldValue?

    package init(
        _ dead: DeadFilter = DeadFilter(), tenant: String? = nil, uniqueKey: String? = nil, limitKey: String? = nil,
        group: Int64? = nil, field: FieldValue? = nil
    ) {
        self.dead = dead
        self.tenant = tenant
        self.uniqueKey = uniqueKey
        self.limitKey = limitKey
        self.group = group
        self.field = field
    }

    /// True when it has a condition that the plain lists do not support.
    package var isWide: Bool {
        tenant != nil || uniqueKey != nil || limitKey != nil || group != nil || field != nil
    }
}

/// The result of one part of a search.
package struct JobSearchPart: Sendable, Equatable {
    /// Newest first.
    package var ids: [Int64]
    package var looked: Int
    /// Where the next part starts; nil when this was the last.
    package var next: Int64?
}

/// The last error of some jobs.
package struct JobError: Sendable, Equatable {
    package var kind: String
    /// The first line of the error, with # for its numbers.
    package var error: String
    package var jobs: Int
    /// Of these, those that cannot run again.
    package var dropped: Int
    package var firstAt: Date
    package var lastAt: Date
    /// One of them.
    package var example: Int64

    /// Adds the same error from another part of the search.
    package mutating func add(_ other: JobError) {
        jobs += other.jobs
        dropped += other.dropped
        firstAt = min(firstAt, other.firstAt)
        lastAt = max(lastAt, other.lastAt)
        example = max(example, other.example)
    }
}

extension Queue {
    /// One part of a search. It looks at some thousands of jobs at most, so each call is short however many jobs there are.
    /// - Parameter state: a job's state, or `retrying`: scheduled after a run that failed.
    package static func find(
        _ state: String, _ search: JobSearch, after: Int64?, limit: Int = page, on connection: Connection,
        deadline: Duration? = nil
    ) async throws(PostgresError) -> JobSearchPart {
        let rows = try await connection.query(
            """
            select ids, looked, next
              from millrace.jobs_find($1, $2, $3, $4, $12, $13, $14, $5, coalesce($6, millrace.now() - make_interval(secs => $7)),
                coalesce($8, millrace.now() - make_interval(secs => $9)), $10, $11,
                the_group => $15, the_field => $16, the_value => $17)
            """,
            [.text(state)] + search.dead.parameters + [
                .int8(after), .int4(Int32(clamping: min(limit, page))), .text(search.tenant), .text(search.uniqueKey),
                .text(search.limitKey), .int8(search.group), .text(search.field?.name), .text(search.field?.value),
            ], deadline: deadline
        ) { row throws(PostgresError) in
            JobSearchPart(ids: try row.ints(0), looked: Int(try row.int(1)), next: try row.optionalInt(2))
        }
        return try one(rows)
    }

    /// The last errors of these jobs, a page at most, the most frequent first.
    package static func errors(
        of ids: [Int64], on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [JobError] {
        try await connection.query(
            "select kind, error, jobs, dropped, first_at, last_at, example from millrace.job_errors($1)", [.int8s(ids)],
            deadline: deadline
        ) { row throws(PostgresError) in
            JobError(
                kind: try row.string(0), error: try row.string(1), jobs: Int(try row.int(2)),
                dropped: Int(try row.int(3)), firstAt: try row.date(4), lastAt: try row.date(5), example: try row.int(6)
            )
        }
    }
}
