package import FoundationEssentials
package import Postgres

/// Gates that were asked about.
package struct Openings: Sendable {
    /// Jobs that are back in line.
    package var moved: Int
    /// Lanes that may be claimed from.
    package var lanes: [Lane]
    /// When the next rate gate opens.
    package var next: Duration?
    /// Where to go on: there are more gates than one step looks at.
    package var resume: Int64?
}

/// What a limit concerns.
package enum LimitScope: String, Sendable, CaseIterable {
    case queue, key, tenant
}

/// A limit, and what it holds back now.
package struct LimitRow: Sendable, Equatable {
    package var scope: LimitScope
    package var name: String
    package var concurrency: Int?
    /// nil for a rule of many keys.
    package var running: Int?
    package var parked: Int?
    package var rate: Int?
    /// Seconds.
    package var per: Double?
    package var burst: Int?
    package var weight: Double?
    package var changedAt: Date
}

extension Queue {
    /// - Parameter gates: nil asks about all, in steps.
    package static func openGates(
        on connection: Connection, _ gates: Set<Int64>?, after: Int64? = nil
    ) async throws(PostgresError) -> Openings {
        let rows = try await connection.query(
            "select moved, next_s, queues, lanes, resume from millrace.gates_open($1, $2)",
            [.int8s(gates?.sorted()), .int8(after)]
        ) { row throws(PostgresError) in
            let lanes = zip(try row.ints(2), try row.ints(3)).map { Lane(queue: Int32($0), code: Int32($1)) }
            return Openings(
                moved: Int(try row.int(0)), lanes: lanes, next: row.optionalDouble(1).map { .seconds($0) },
                resume: try row.optionalInt(4))
        }
        return try one(rows)
    }

    /// Gathers what the counts of slots left behind; returns where to go on.
    package static func sweepSlots(on connection: Connection, after: Int64?) async throws(PostgresError) -> Int64? {
        let rows = try await connection.query("select resume from millrace.slots_sweep($1)", [.int8(after)]) {
            row throws(PostgresError) in try row.optionalInt(0)
        }
        return try one(rows)
    }

    /// True when it changed something. nil takes the limit away.
    package static func setLimit(
        _ scope: LimitScope, _ name: String, to limits: [UInt8]?, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select millrace.limit_set($1, $2, $3)", [.text(scope.rawValue), .text(name), .json(limits)]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }

    package static func limits(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [LimitRow] {
        try await connection.query(
            "select scope, name, concurrency, running, parked, rate, per, burst, weight, changed_at from millrace.limit_list()",
            deadline: deadline
        ) { row throws(PostgresError) in
            guard let scope = LimitScope(rawValue: try row.string(0)) else {
                throw .undecodable(column: 0, expected: "a scope")
            }
            return LimitRow(
                scope: scope, name: try row.string(1), concurrency: try row.optionalInt(2).map { Int($0) },
                running: try row.optionalInt(3).map { Int($0) }, parked: try row.optionalInt(4).map { Int($0) },
                rate: try row.optionalInt(5).map { Int($0) }, per: row.optionalDouble(6),
                burst: try row.optionalInt(7).map { Int($0) }, weight: row.optionalDouble(8),
                changedAt: try row.date(9))
        }
    }

    /// Jobs that wait for their limit, at most 10,000.
    package static func parkedCount(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> Int {
        let rows = try await connection.query("select millrace.parked_count()", deadline: deadline) {
            row throws(PostgresError) in Int(try row.int(0))
        }
        return try one(rows)
    }
}
