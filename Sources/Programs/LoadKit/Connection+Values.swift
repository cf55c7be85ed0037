package import Postgres

extension Connection {
    /// The one number of a statement; 0 if there is no row.
    @inline(never)
    package func int(
        _ sql: SQL, _ values: [Parameter] = [], deadline: Duration? = nil
    ) async throws(PostgresError) -> Int {
        try await query(sql, values, deadline: deadline) { row throws(PostgresError) in
            row.isNull(0) ? 0 : Int(try row.int(0))
        }.first ?? 0
    }

    /// The same with a fraction.
    @inline(never)
    package func double(
        _ sql: SQL, _ values: [Parameter] = [], deadline: Duration? = nil
    ) async throws(PostgresError) -> Double {
        try await query(sql, values, deadline: deadline) { row throws(PostgresError) in
            row.isNull(0) ? 0 : try row.double(0)
        }.first ?? 0
    }

    /// The one text of a statement; empty if there is no row.
    @inline(never)
    package func text(
        _ sql: SQL, _ values: [Parameter] = [], deadline: Duration? = nil
    ) async throws(PostgresError) -> String {
        try await query(sql, values, deadline: deadline) { row throws(PostgresError) in try row.string(0) }.first ?? ""
    }
}
