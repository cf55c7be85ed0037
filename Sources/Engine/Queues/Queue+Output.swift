package import FoundationEssentials
package import Postgres

/// A value of a job's stream.
package struct PublishedRow: Sendable, Equatable {
    /// Counted from 1 for each job.
    package var number: Int64
    /// As the handler gave it.
    package var key: String?
    /// JSON text.
    package var value: [UInt8]
    /// The run that published it.
    package var attempt: Int
    package var at: Date
}

/// What a job's runs have given out so far, without the values of the stream.
package struct OutputRow: Sendable, Equatable {
    /// JSON text; nil: it has given no state.
    package var state: [UInt8]?
    /// The run that gave the state.
    package var attempt: Int?
    package var at: Date?
    /// The number of the newest value in the stream.
    package var published: Int64
}

extension Queue {
    /// Appends a value to a job's stream, under the token's lease.
    package static func publish(
        _ value: [UInt8], key: String?, call: Int64, token: String, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.publish($1, $2, $3, $4)", [.text(token), .json(value), .text(key), .int8(call)])
    }

    /// Replaces a job's state, under the token's lease.
    package static func putState(
        _ value: [UInt8], token: String, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute("select millrace.state_put($1, $2)", [.text(token), .json(value)])
    }

    /// The values of a job's stream after the given one, a page at a time; none: there are no more.
    package static func published(
        of id: Int64, after number: Int64 = 0, page: Int = 500, redacted: Bool = false, on connection: Connection
    ) async throws(PostgresError) -> [PublishedRow] {
        let sql: SQL =
            redacted
            ? "select n, key, value, attempt, at from millrace.published_shown($1, $2, $3)"
            : "select n, key, value, attempt, at from millrace.published($1, $2, $3)"
        return try await connection.query(sql, [.int8(id), .int8(number), .int4(Int32(clamping: page))]) {
            row throws(PostgresError) in
            PublishedRow(
                number: try row.int(0), key: row.optionalString(1), value: try row.json(2),
                attempt: Int(try row.int(3)), at: try row.date(4))
        }
    }

    /// nil: its runs have given out nothing.
    package static func output(
        of id: Int64, redacted: Bool = false, on connection: Connection
    ) async throws(PostgresError) -> OutputRow? {
        let sql: SQL =
            redacted
            ? "select value, attempt, at, published from millrace.state_value_shown($1)"
            : "select value, attempt, at, published from millrace.state_value($1)"
        return try await connection.query(sql, [.int8(id)]) { row throws(PostgresError) in
            OutputRow(
                state: row.optionalJSON(0), attempt: try row.optionalInt(1).map { Int($0) },
                at: try row.optionalDate(2), published: try row.int(3))
        }.first
    }
}
