package import FoundationEssentials
package import MillraceJobs
package import Postgres

/// The answer about gates.
package struct Openings: Sendable {
    /// Jobs that are back in line.
    package var moved: Int
    /// Lanes that may be claimed from.
    package var lanes: [Lane]
    /// When the next rate gate opens.
    package var next: Duration?
    /// Where to continue: there are more gates than one step looks at.
    package var resume: Int64?
}

/// A limit, and how much it holds back now.
package struct LimitRow: Sendable, Equatable {
    package var subject: Limit.Subject
    package var limit: Limit
    /// nil for a rule for many keys.
    package var running: Int?
    /// nil for anything but a single key.
    package var parked: Int?
    package var changedAt: Date
}

extension Limit.Subject {
    package var scope: String {
        switch self {
        case .queue: "queue"
        case .key: "key"
        case .tenant: "tenant"
        }
    }

    package var name: String {
        switch self {
        case .queue(let name), .key(let name), .tenant(let name): name
        }
    }

    package init?(scope: String, name: String) {
        switch scope {
        case "queue": self = .queue(name)
        case "key": self = .key(name)
        case "tenant": self = .tenant(name)
        default: return nil
        }
    }
}

extension Queue {
    /// - Parameters:
    ///   - gates: Gates of keys; nil means all, in steps.
    ///   - outer: Also the gates of queues and tenants.
    package static func openGates(
        on connection: Connection, _ gates: Set<Int64>?, after: Int64? = nil, outer: Bool
    ) async throws(PostgresError) -> Openings {
        let rows = try await connection.query(
            "select moved, next_s, queues, lanes, resume from millrace.gates_open($1, $2, $3)",
            [.int8s(gates?.sorted()), .int8(after), .bool(outer)]
        ) { row throws(PostgresError) in
            let lanes = zip(try row.ints(2), try row.ints(3)).map { Lane(queue: Int32($0), code: Int32($1)) }
            return Openings(
                moved: Int(try row.int(0)), lanes: lanes, next: row.optionalDouble(1).map { .seconds($0) },
                resume: try row.optionalInt(4))
        }
        return try one(rows)
    }

    /// Adds up late rows of the slots' counts; returns where to continue.
    package static func sweepSlots(on connection: Connection, after: Int64?) async throws(PostgresError) -> Int64? {
        let rows = try await connection.query("select resume from millrace.slots_sweep($1)", [.int8(after)]) {
            row throws(PostgresError) in try row.optionalInt(0)
        }
        return try one(rows)
    }

    /// Corrects the counts of slots that do not agree with the leases. Returns the number of corrected gates.
    package static func mendSlots(on connection: Connection) async throws(PostgresError) -> Int {
        let rows = try await connection.query("select count(*) from millrace.slots_mend()", deadline: .seconds(60)) {
            row throws(PostgresError) in Int(try row.int(0))
        }
        return try one(rows)
    }

    /// Gates whose count of slots differs from the leases', with the difference: above zero too many, below zero too few.
    package static func straySlots(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [(gate: Int64, surplus: Int)] {
        try await connection.query(
            "select gate, counted - held from millrace.slots_audit() where counted <> held order by gate limit 1000",
            deadline: deadline
        ) { row throws(PostgresError) in (try row.int(0), Int(try row.int(1))) }
    }

    /// True when something changed. nil removes the limit.
    package static func setLimit(
        of subject: Limit.Subject, to limit: Limit?, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            """
            select millrace.limit_set($1, $2, jsonb_strip_nulls(jsonb_build_object('concurrency', $3::bigint, 'rate', $4::bigint,
                'per', $5::float8, 'burst', $6::bigint, 'weight', $7::float8)))
            """,
            [
                .text(subject.scope), .text(subject.name), .int8(limit?.concurrency.map(Int64.init)),
                .int8((limit?.rate?.count).map(Int64.init)), .float8(limit?.rate.map { $0.per / .seconds(1) }),
                .int8(limit?.rate?.burst.map(Int64.init)), .float8(limit?.weight),
            ]
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
            guard let subject = Limit.Subject(scope: try row.string(0), name: try row.string(1)) else {
                throw .undecodable(column: 0, expected: "a scope")
            }
            var limit = Limit(concurrency: try row.optionalInt(2).map { Int($0) }, weight: row.optionalDouble(8))
            if let count = try row.optionalInt(5) {
                limit.rate = Limit.Rate(
                    Int(count), per: .seconds(row.optionalDouble(6) ?? 1), burst: try row.optionalInt(7).map { Int($0) }
                )
            }
            return LimitRow(
                subject: subject, limit: limit, running: try row.optionalInt(3).map { Int($0) },
                parked: try row.optionalInt(4).map { Int($0) }, changedAt: try row.date(9))
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

    /// How many slots are held at all gates together; `slots_audit` compares counts and leases gate by gate.
    package static func slotsHeld(on connection: Connection) async throws(PostgresError) -> Int {
        let rows = try await connection.query(
            "select coalesce(sum(greatest(counted, held)), 0)::bigint from millrace.slots_audit()"
        ) { row throws(PostgresError) in Int(try row.int(0)) }
        return try one(rows)
    }

    /// When the ended runs of a queue were claimed, in seconds, in order.
    package static func starts(in queue: String, on connection: Connection) async throws(PostgresError) -> [Double] {
        try await connection.query(
            """
            select extract(epoch from h.started)::float8 from millrace.history h
             where h.outcome = 1 and h.queue in (select q.id from millrace.queue q where q.name = $1) order by h.started
            """, [.text(queue)]
        ) { row throws(PostgresError) in try row.double(0) }
    }
}
