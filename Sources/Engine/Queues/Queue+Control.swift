package import MillraceJobs
package import Postgres

/// What operators can do to existing jobs.
package enum Deed: String, Sendable, CaseIterable {
    case cancel, retry, delete
}

/// The result for one job.
package struct DeedResult: Sendable, Equatable {
    package enum Outcome: Sendable, Equatable {
        case done
        /// It was so already, or it is too late.
        case nothing
        case notFound
        case refused(String)
        /// It cannot run again: its arguments are no longer kept.
        case dropped(String)
    }

    package var id: Int64
    package var outcome: Outcome
}

extension Queue {
    /// Does the same to many jobs; a refusal of one does not stop the others. At most a page at once, because locks are held until the end.
    /// A fresh retry forgets the job's steps. Only a named job is cancelled that undoes a step of another.
    package static func perform(
        _ deed: Deed, fresh: Bool = false, named: Bool = false, on ids: [Int64], connection: Connection,
        deadline: Duration? = nil
    ) async throws(PostgresError) -> [DeedResult] {
        try await connection.query(
            """
            select d.id, d.outcome, d.reason, d.outcome = '55000' and not exists (select from millrace.job(d.id)) as is_dropped
              from millrace.jobs_do($1, $2, $3) d
            """,
            [.text(deed == .retry && fresh ? "retry_fresh" : deed.rawValue), .int8s(ids), .bool(named)],
            deadline: deadline
        ) { row throws(PostgresError) in
            let isDropped = try row.bool(3)
            let outcome: DeedResult.Outcome =
                switch try row.string(1) {
                case "done": .done
                case "nothing": .nothing
                case "P0002": .notFound
                case "55000" where deed == .retry && isDropped:
                    .dropped(row.optionalString(2) ?? "its arguments are no longer kept")
                default: .refused(row.optionalString(2) ?? "it was refused")
                }
            return DeedResult(id: try row.int(0), outcome: outcome)
        }
    }

    package static func ids(
        _ state: JobState, _ filter: JobFilter, after: Int64?, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [Int64] {
        try await connection.query(
            "select i from millrace.job_ids($1, $2, $3, $4, $5, 500) i order by i desc",
            [.text(state.rawValue)] + filter.parameters + [.int8(after)], deadline: deadline
        ) { row throws(PostgresError) in try row.int(0) }
    }

    /// How many jobs match; at most `cap`, or all of them without one.
    package static func count(
        _ state: JobState, _ filter: JobFilter, cap: Int?, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> Int {
        let rows = try await connection.query(
            "select millrace.job_count($1, $2, $3, $4, $5)",
            [.text(state.rawValue)] + filter.parameters + [.int4(cap.map { Int32(clamping: $0) })], deadline: deadline
        ) { row throws(PostgresError) in Int(try row.int(0)) }
        return try one(rows)
    }

    /// True when it was not paused before.
    package static func pause(_ queue: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.pause($1)", [.text(queue)])
    }

    /// True when it was paused before.
    package static func resume(_ queue: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.resume($1)", [.text(queue)])
    }

    /// Refused (55000) unless nothing uses it.
    package static func removeQueue(_ queue: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.queue_remove($1)", [.text(queue)])
    }

    /// The existing names of queues, kinds, providers, flags or schedules.
    package static func names(of what: String, on connection: Connection) async throws(PostgresError) -> [String] {
        try await connection.query("select n from millrace.names_known($1) n", [.text(what)]) {
            row throws(PostgresError) in try row.string(0)
        }
    }

    /// - Parameters:
    ///   - retention: short, standard or long.
    ///   - state: succeeded, cancelled or dead; nil is all of them.
    package static func setRetention(
        _ retention: String, of queue: String, state: String? = nil, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.retention_set($1, $2, $3)", [.text(queue), .text(retention), .text(state)])
    }
}

extension Queue {
    /// Enqueues one job, and tells whether it is new or the holder of its unique key.
    package static func enqueueTelling(
        _ job: NewJob, on connection: Connection
    ) async throws(PostgresError) -> (id: Int64, created: Bool) {
        do {
            let rows = try await connection.query(
                """
                select id, created from millrace.enqueue_many(jsonb_build_array(
                    jsonb_strip_nulls(jsonb_build_object('kind', $1::text, 'queue', $2::text, 'priority', $3::int,
                        'run_at', coalesce(millrace.now() + make_interval(secs => $14), $4::timestamptz), 'unique_key', $5::text, 'on_conflict', $6::text, 'limit_key', $7::text,
                        'tenant', $8::text, 'max_attempts', $9::int, 'tags', $10::text[]))
                    || jsonb_build_object('args', $11::jsonb, 'metadata', $12::jsonb, 'options', $13::jsonb)))
                """,
                [
                    .text(job.kind), .text(job.queue), .int4(job.priority.map { Int32(clamping: $0) }),
                    .timestamp(job.runAt), .text(job.uniqueKey), .text(job.onConflict.rawValue), .text(job.limitKey),
                    .text(job.tenant), .int4(job.maxAttempts.map { Int32(clamping: $0) }), .texts(job.tags),
                    .json(job.args), .json(job.metadata ?? Array("{}".utf8)), .json(job.allOptions),
                    .float8(job.delay.map { $0 / .seconds(1) }),
                ]
            ) { row throws(PostgresError) in (id: try row.int(0), created: try row.bool(1)) }
            return try one(rows)
        } catch .server(var error) {
            // There is only one job, and the caller has not numbered it.
            if error.message.hasPrefix("job 1: ") { error.message.removeFirst("job 1: ".count) }
            throw .server(error)
        }
    }
}
