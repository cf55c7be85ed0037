package import FoundationEssentials
package import MillraceJobs
package import Postgres

/// A job as `millrace.jobs` shows it.
package struct JobDetail: Sendable {
    package var id: Int64
    package var kind: String
    package var queue: String
    package var state: JobState
    package var priority: Int
    /// JSON text; nil when its retention has passed.
    package var args: [UInt8]?
    package var runAt: Date?
    package var attempt: Int
    package var maxAttempts: Int?
    package var crashes: Int
    package var uniqueKey: String?
    package var limitKey: String?
    package var tenant: String?
    package var tags: [String]
    package var metadata: [UInt8]?
    package var enqueuedAt: Date?
    package var startedAt: Date?
    package var finishedAt: Date?
    package var worker: String?
    package var progress: [UInt8]?
    /// A JSON array: attempt, at, outcome and error of every run that left one.
    package var errors: [UInt8]
    /// The jobs it waits for.
    package var waitsFor: [Int64]
    /// JSON text.
    package var result: [UInt8]?
    /// The limit key it is parked at.
    package var limitedBy: String?

    init(_ row: Row) throws(PostgresError) {
        let word = try row.string(3)
        guard let state = JobState(rawValue: word) else { throw .undecodable(column: 3, expected: "a state") }
        self.state = state
        id = try row.int(0)
        kind = try row.string(1)
        queue = try row.string(2)
        priority = Int(try row.optionalInt(4) ?? 4)
        args = row.optionalJSON(5)
        runAt = try row.optionalDate(6)
        attempt = Int(try row.int(7))
        maxAttempts = try row.optionalInt(8).map { Int($0) }
        crashes = Int(try row.int(9))
        uniqueKey = row.optionalString(10)
        limitKey = row.optionalString(11)
        tenant = row.optionalString(12)
        tags = row.isNull(13) ? [] : try row.strings(13)
        metadata = row.optionalJSON(14)
        enqueuedAt = try row.optionalDate(15)
        startedAt = try row.optionalDate(16)
        finishedAt = try row.optionalDate(17)
        worker = row.optionalString(18)
        progress = row.optionalJSON(19)
        errors = row.optionalJSON(20) ?? Array("[]".utf8)
        waitsFor = row.isNull(21) ? [] : try row.ints(21)
        result = row.optionalJSON(22)
        limitedBy = row.optionalString(23)
    }
}

/// Which jobs a list or a bulk operation concerns; nil is any.
package struct JobFilter: Sendable, Equatable {
    package var queue: String?
    package var kind: String?
    package var tag: String?

    package init(queue: String? = nil, kind: String? = nil, tag: String? = nil) {
        self.queue = queue
        self.kind = kind
        self.tag = tag
    }

    var parameters: [Parameter] { [.text(queue), .text(kind), .text(tag)] }
}

extension Queue {
    /// The most jobs on one page.
    package static let page = 500

    /// nil: there is no such job, or the caller may not see it.
    /// - Parameter redacted: with its secrets hidden, as those see it who may look at every job.
    package static func job(
        _ id: Int64, redacted: Bool = false, on connection: Connection
    ) async throws(PostgresError) -> JobDetail? {
        let sql: SQL =
            redacted
            ? """
            select id, kind, queue, state, priority, args, run_at, attempt, max_attempts, crashes, unique_key, limit_key, tenant,
                   tags, metadata, enqueued_at, started_at, finished_at, worker, progress, errors,
                   waits_for, result, limited_by
              from millrace.job_shown($1)
            """
            : """
            select id, kind, queue, state, priority, args, run_at, attempt, max_attempts, crashes, unique_key, limit_key, tenant,
                   tags, metadata, enqueued_at, started_at, finished_at, worker, progress, errors,
                   waits_for, result, limited_by
              from millrace.job($1)
            """
        return try await connection.query(sql, [.int8(id)]) { row throws(PostgresError) in try JobDetail(row) }.first
    }

    /// Why a job does not run, as JSON; nil when it runs well or has succeeded, or when the caller may not see it.
    package static func why(
        _ id: Int64, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [UInt8]? {
        try await connection.query("select millrace.why($1)", [.int8(id)], deadline: deadline) {
            row throws(PostgresError) in row.optionalJSON(0)
        }.first ?? nil
    }

    /// Why a queue, a room's lane or a schedule does not move, as JSON; nil when there is none of that name.
    package static func why(
        queue: String, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [UInt8]? {
        try await connection.query("select millrace.why_queue($1)", [.text(queue)], deadline: deadline) {
            row throws(PostgresError) in row.optionalJSON(0)
        }.first ?? nil
    }

    /// A page of the jobs in one state, newest first, below the id `after`.
    package static func jobs(
        _ state: JobState, _ filter: JobFilter, after: Int64?, limit: Int, on connection: Connection
    ) async throws(PostgresError) -> [JobDetail] {
        try await connection.query(
            """
            select id, kind, queue, state, priority, args, run_at, attempt, max_attempts, crashes, unique_key, limit_key, tenant,
                   tags, metadata, enqueued_at, started_at, finished_at, worker, progress, errors,
                   waits_for, result, limited_by
              from millrace.job_list($1, $2, $3, $4, $5, $6)
             order by id desc
            """,
            [.text(state.rawValue)] + filter.parameters + [.int8(after), .int4(Int32(min(limit, page)))]
        ) { row throws(PostgresError) in try JobDetail(row) }
    }
}
