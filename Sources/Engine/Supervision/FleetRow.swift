import Postgres

/// The fleet's state of one circuit, as `millrace.provider_flush` returns it.
struct FleetRow: Sendable {
    var provider: String
    var `class`: String
    var state: String
    var generation: Int64
    var reason: String?
    var until: Double?
    var ramped: Double?
    var leases: [Int64]
    var callers: Int
    var rank: Int
    var rate: Double?
    var blocked: Double?

    func mirrorState(at now: Moment, step: Duration) -> FleetView.State {
        let end = now + .seconds(min(until ?? 0, 1e9))
        return switch state {
        case "open": .open(until: end)
        case "probing": .probing
        case "ramping": .ramping(Ramp(began: now + .seconds(-(ramped ?? 0)), stepLength: step))
        case "forced_open": .forcedOpen(until: end)
        case "forced_closed": .forcedClosed(until: end)
        case "observing": .observing(until: end)
        default: .closed
        }
    }
}

/// The SQL of supervision.
enum FleetStatements {
    static func flush(
        on connection: Connection, member: Int64, name: String, entries: [UInt8], settings: [UInt8], isFirst: Bool,
        sinceSeconds: Double
    ) async throws(PostgresError) -> [FleetRow] {
        try await connection.query(
            """
            select provider, class, state, generation, reason, until_s, ramp_s, leases, callers, rank, rate, blocked_s
              from millrace.provider_flush($1, $2, $3, $4, case when $5 then null else millrace.now() - make_interval(secs => $6) end)
            """,
            [
                .int8(member), .text(name), .json(entries), .json(settings), .bool(isFirst), .float8(sinceSeconds),
            ], deadline: .seconds(5)
        ) { row throws(PostgresError) in
            FleetRow(
                provider: try row.string(0), class: try row.string(1), state: try row.string(2),
                generation: try row.int(3), reason: row.optionalString(4), until: row.optionalDouble(5),
                ramped: row.optionalDouble(6), leases: try row.ints(7), callers: Int(try row.optionalInt(8) ?? 0),
                rank: Int(try row.optionalInt(9) ?? 0), rate: row.optionalDouble(10), blocked: row.optionalDouble(11))
        }
    }

    /// Nanoseconds since 1970, by the database.
    static func clock(on connection: Connection) async throws(PostgresError) -> Int64 {
        try await connection.query(
            "select (extract(epoch from millrace.now()) * 1000000)::bigint", deadline: .seconds(5)
        ) { row throws(PostgresError) in try row.int(0) * 1000 }.first ?? 0
    }

    static func tidy(on connection: Connection) async throws(PostgresError) {
        try await connection.execute("select millrace.provider_tidy()")
    }

    static func flags(on connection: Connection) async throws(PostgresError) -> [Flag] {
        try await connection.query(
            "select name, percent, always from millrace.flag_list()", deadline: .seconds(5)
        ) { row throws(PostgresError) in
            Flag(name: try row.string(0), percent: Int(try row.int(1)), always: Set(try row.strings(2)))
        }
    }
}
