package import Postgres

extension Queue {
    /// Begins a retry of dead jobs, as an operation.
    package static func startRedrive(
        _ filter: DeadFilter, on connection: Connection
    ) async throws(PostgresError) -> Int64 {
        let rows = try await connection.query(
            """
            select millrace.operation_start('retry', jsonb_strip_nulls(jsonb_build_object('state', 'dead', 'queue', $1::text, 'kind', $2::text, 'tag', $3::text,
                'error', $4::text, 'since', coalesce($5::timestamptz, millrace.now() - make_interval(secs => $6)),
                'until', coalesce($7::timestamptz, millrace.now() - make_interval(secs => $8)))))
            """, filter.parameters, deadline: .seconds(60)
        ) { row throws(PostgresError) in try row.int(0) }
        return try one(rows)
    }

    /// How many jobs an operation has left alone because their arguments are no longer kept.
    package static func withoutArguments(
        of operation: Int64, on connection: Connection
    ) async throws(PostgresError) -> Int {
        var count = 0
        var after: Int64?
        repeat {
            let refused = try await items(
                of: operation, which: "refused", after: after, limit: page, on: connection)
            count += refused.count { $0.reason?.hasSuffix("it cannot run again") ?? false }
            after = refused.count == page ? refused.last?.job : nil
        } while after != nil
        return count
    }
}
