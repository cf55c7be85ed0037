package import MillraceJobs
package import Postgres

extension Queue {
    /// What a look at the signals has done.
    package struct Told: Sendable {
        package var signals: Int
        /// How many jobs go on.
        package var jobs: Int
        package var more: Bool
    }

    /// Tells waiting jobs of signals that were sent.
    package static func tellSignals(on connection: Connection) async throws(PostgresError) -> Told {
        let rows = try await connection.query("select looked, told, more from millrace.signals_tell()") {
            row throws(PostgresError) in
            Told(signals: Int(try row.int(0)), jobs: Int(try row.int(1)), more: try row.bool(2))
        }
        return try one(rows)
    }

    /// Sends a signal. False: its id is known already.
    package static func signal(
        _ name: String, key: String, payload: [UInt8], id: String? = nil, toAll: Bool = false, keep: Duration? = nil,
        on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select millrace.signal($1, $2, $3::jsonb, $4, $5, coalesce(make_interval(secs => $6), interval '30 days'))",
            [
                .text(name), .text(key), .text(String(decoding: payload, as: UTF8.self)), .text(id), .bool(toAll),
                .float8(keep.map { $0 / .seconds(1) }),
            ]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }

    /// Sends a signal that one job alone can take. False: its id is known already.
    package static func signal(
        _ name: String, job: Int64, payload: [UInt8], id: String? = nil, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select millrace.signal_job($1, $2, $3, $4)", [.int8(job), .text(name), .json(payload), .text(id)]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }

    /// The job that holds a unique key of a kind, or held it when it ended; nil: none.
    package static func job(
        ofKey key: String, kind: String, tenant: String? = nil, on connection: Connection
    ) async throws(PostgresError) -> Int64? {
        try await connection.query(
            "select millrace.job_of_key($1, $2, $3)", [.text(kind), .text(key), .text(tenant)]
        ) { row throws(PostgresError) in try row.optionalInt(0) }.first ?? nil
    }

    /// Ends a run that waits. The value if what it waits for has come; nil: the run has ended.
    package static func wait(
        _ request: WaitRequest, options: [UInt8], token: String, on connection: Connection
    ) async throws(PostgresError) -> [UInt8]? {
        let rows = try await connection.query(
            "select millrace.wait($1, $2, $3, $4::jsonb)::text",
            [
                .text(token), .text(request.step), .text(request.what.rawValue),
                .text(String(decoding: options, as: UTF8.self)),
            ], deadline: .seconds(60)
        ) { row throws(PostgresError) in row.optionalString(0).map { Array($0.utf8) } }
        return try one(rows)
    }
}
