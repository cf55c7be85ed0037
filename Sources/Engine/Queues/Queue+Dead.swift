package import FoundationEssentials
package import Postgres

/// Which dead jobs are meant; nil is any.
package struct DeadFilter: Sendable, Equatable {
    /// A point in time; a relative one is counted by the database's clock.
    package enum Moment: Sendable, Equatable {
        case at(Date)
        case ago(Duration)

        var parameters: [Parameter] {
            switch self {
            case .at(let date): [.timestamp(date), .float8(nil)]
            case .ago(let span): [.timestamp(nil), .float8(span / .seconds(1))]
            }
        }
    }

    package var jobs: JobFilter
    /// A text in the last error; upper and lower case do not matter.
    package var error: String?
    package var since: Moment?
    package var until: Moment?

    package init(_ jobs: JobFilter = JobFilter(), error: String? = nil, since: Moment? = nil, until: Moment? = nil) {
        self.jobs = jobs
        self.error = error
        self.since = since
        self.until = until
    }

    /// True when it has a condition that only dead jobs can meet.
    package var isOfDeadOnly: Bool { error != nil || since != nil || until != nil }

    /// $1 to $8, for the text below.
    var parameters: [Parameter] {
        let none: [Parameter] = [.timestamp(nil), .float8(nil)]
        return jobs.parameters + [.text(error)] + (since?.parameters ?? none) + (until?.parameters ?? none)
    }
}

/// A cause of death, with its number of jobs.
package struct DeadCause: Sendable, Equatable {
    package var kind: String
    /// The first line of the error, with # for its numbers.
    package var error: String
    package var jobs: Int
    /// Of these, those that cannot run again.
    package var dropped: Int

    package init(kind: String, error: String, jobs: Int, dropped: Int) {
        self.kind = kind
        self.error = error
        self.jobs = jobs
        self.dropped = dropped
    }
}

extension Queue {
    /// - Parameter cap: nil counts all.
    package static func deadSummary(
        _ filter: DeadFilter, cap: Int?, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [DeadCause] {
        try await connection.query(
            """
            select kind, error, jobs, dropped
              from millrace.dead_summary($1, $2, $3, $4, coalesce($5, millrace.now() - make_interval(secs => $6)),
                coalesce($7, millrace.now() - make_interval(secs => $8)), $9)
            """, filter.parameters + [.int4(cap.map { Int32(clamping: $0) })], deadline: deadline
        ) { row throws(PostgresError) in
            DeadCause(
                kind: try row.string(0), error: try row.string(1), jobs: Int(try row.int(2)),
                dropped: Int(try row.int(3)))
        }
    }

    /// A page of them, newest first, below the id `after`.
    package static func deadIDs(
        _ filter: DeadFilter, after: Int64?, limit: Int = page, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [Int64] {
        try await connection.query(
            """
            select i
              from millrace.dead_ids($1, $2, $3, $4, coalesce($5, millrace.now() - make_interval(secs => $6)),
                coalesce($7, millrace.now() - make_interval(secs => $8)), $9, $10) i
             order by i desc
            """, filter.parameters + [.int8(after), .int4(Int32(clamping: min(limit, page)))], deadline: deadline
        ) { row throws(PostgresError) in try row.int(0) }
    }

    package static func deadJobs(
        _ filter: DeadFilter, after: Int64?, limit: Int, on connection: Connection
    ) async throws(PostgresError) -> [JobDetail] {
        try await connection.query(
            """
            select j.id, j.kind, j.queue, j.state, j.priority, j.args, j.run_at, j.attempt, j.max_attempts, j.crashes, j.unique_key,
                   j.limit_key, j.tenant, j.tags, j.metadata, j.enqueued_at, j.started_at, j.finished_at, j.worker, j.progress,
                   j.errors, j.waits_for, j.result, j.limited_by
              from millrace.dead_ids($1, $2, $3, $4, coalesce($5, millrace.now() - make_interval(secs => $6)),
                coalesce($7, millrace.now() - make_interval(secs => $8)), $9, $10) i
             cross join lateral millrace.job(i) j
             where j.state = 'dead'
             order by j.id desc
            """, filter.parameters + [.int8(after), .int4(Int32(clamping: min(limit, page)))]
        ) { row throws(PostgresError) in try JobDetail(row) }
    }
}
