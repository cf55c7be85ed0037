package import FoundationEssentials
package import MillraceJobs
package import Postgres

/// What a caller may know of one job.
package struct JobRow: Sendable {
    package var id: Int64
    package var kind: String
    package var queue: String
    package var state: JobState
    package var attempt: Int
    package var crashes: Int
    package var enqueuedAt: Date?
    package var finishedAt: Date?
    package var errors: [String]
    package var progress: JobProgress?
}

extension Queue {
    package static func row(of id: Int64, on connection: Connection) async throws(PostgresError) -> JobRow? {
        try await connection.query(
            """
            select id, kind, queue, state, attempt, crashes, enqueued_at, finished_at,
                   array(select e ->> 'error' from jsonb_array_elements(errors) e),
                   progress is not null, (progress ->> 'fraction')::float8, progress ->> 'stage', progress ->> 'note'
              from millrace.job($1)
            """, [.int8(id)]
        ) { row throws(PostgresError) in
            guard let state = JobState(rawValue: try row.string(3)) else {
                throw .undecodable(column: 3, expected: "a known state")
            }
            return JobRow(
                id: try row.int(0), kind: try row.string(1), queue: try row.string(2), state: state,
                attempt: Int(try row.int(4)), crashes: Int(try row.int(5)), enqueuedAt: try row.optionalDate(6),
                finishedAt: try row.optionalDate(7), errors: try row.strings(8),
                progress: try row.bool(9)
                    ? JobProgress(
                        fraction: row.optionalDouble(10), stage: row.optionalString(11), note: row.optionalString(12))
                    : nil)
        }.first
    }

    package static func cancel(_ id: Int64, on connection: Connection) async throws(PostgresError) -> Bool {
        let rows = try await connection.query("select millrace.cancel($1)", [.int8(id)]) { row throws(PostgresError) in
            try row.bool(0)
        }
        return try one(rows)
    }

    /// - Parameter fresh: Forgets its steps.
    package static func retry(
        _ id: Int64, fresh: Bool = false, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select case when $2 then millrace.retry_fresh($1) else millrace.retry($1) end", [.int8(id), .bool(fresh)]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }

    /// A job's state, and its result as JSON text if it has one; nil when this caller may see no such job.
    package static func result(
        of id: Int64, on connection: Connection
    ) async throws(PostgresError) -> (state: JobState, result: [UInt8]?)? {
        try await connection.query("select state, result from millrace.job($1)", [.int8(id)]) {
            row throws(PostgresError) in
            guard let state = JobState(rawValue: try row.string(0)) else {
                throw .undecodable(column: 0, expected: "a known state")
            }
            return (state: state, result: row.optionalJSON(1))
        }.first
    }

    /// How many jobs wait, run or have come due: what a drain still has to finish.
    package static func outstanding(on connection: Connection, kinds: [String]) async throws(PostgresError) -> Int {
        let rows = try await connection.query("select millrace.outstanding($1)", [.texts(kinds)]) {
            row throws(PostgresError) in Int(try row.int(0))
        }
        return try one(rows)
    }

    /// The arguments of the jobs of a kind that have not ended, oldest first.
    package static func waiting(
        kind: String, on connection: Connection
    ) async throws(PostgresError) -> [(id: Int64, args: [UInt8], state: String, queue: String)] {
        try await connection.query(
            "select id, args, state, queue from millrace.jobs where state in ('ready', 'scheduled', 'blocked', 'running') and kind = $1 order by id",
            [.text(kind)]
        ) { row throws(PostgresError) in (try row.int(0), try row.json(1), try row.string(2), try row.string(3)) }
    }

    package static func advanceTestClock(by duration: Duration, on connection: Connection) async throws(PostgresError)
        -> Date
    {
        let rows = try await connection.query(
            "select millrace.test_clock_advance(make_interval(secs => $1))", [.float8(duration / .seconds(1))]
        ) { row throws(PostgresError) in try row.date(0) }
        return try one(rows)
    }
}
