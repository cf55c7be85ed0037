package import FoundationEssentials
package import Postgres

/// One action on all jobs that a filter names.
package struct OperationRow: Sendable, Equatable {
    package var id: Int64
    package var action: String
    /// JSON texts.
    package var filter: [UInt8]
    package var args: [UInt8]
    /// Jobs a second; nil: as fast as possible.
    package var pace: Int?
    package var state: String
    package var isUndoing: Bool
    package var who: String
    package var saidBy: String?
    /// Whose sign-in Postgres has verified; nil: before it was written down.
    package var login: String?
    /// What it was to reach, as counted or estimated at the start.
    package var jobs: Int
    package var isExact: Bool
    package var looked: Int
    package var done: Int
    package var nothing: Int
    package var refused: Int
    package var undone: Int
    /// Not undone, because the jobs had moved on.
    package var past: Int
    package var startedAt: Date
    package var changedAt: Date
    package var endedAt: Date?
    package var undoUntil: Date?
    package var canUndo: Bool
    package var undoBy: String?
    package var undoSaidBy: String?
    package var undoLogin: String?
    package var undoStartedAt: Date?
    package var undoEndedAt: Date?
    package var key: String?

    package var isOpen: Bool { state == "running" || state == "undoing" }

    init(_ row: Row) throws(PostgresError) {
        id = try row.int(0)
        action = try row.string(1)
        filter = try row.json(2)
        args = try row.json(3)
        pace = try row.optionalInt(4).map { Int($0) }
        state = try row.string(5)
        isUndoing = try row.bool(6)
        who = try row.string(7)
        saidBy = row.optionalString(8)
        jobs = Int(try row.int(9))
        isExact = try row.bool(10)
        looked = Int(try row.int(11))
        done = Int(try row.int(12))
        nothing = Int(try row.int(13))
        refused = Int(try row.int(14))
        undone = Int(try row.int(15))
        past = Int(try row.int(16))
        startedAt = try row.date(17)
        changedAt = try row.date(18)
        endedAt = try row.optionalDate(19)
        undoUntil = try row.optionalDate(20)
        canUndo = try row.bool(21)
        undoBy = row.optionalString(22)
        undoSaidBy = row.optionalString(23)
        undoStartedAt = try row.optionalDate(24)
        undoEndedAt = try row.optionalDate(25)
        key = row.optionalString(26)
        login = row.optionalString(27)
        undoLogin = row.optionalString(28)
    }
}

/// What an operation did to a job.
package struct OperationItem: Sendable, Equatable {
    package var job: Int64
    package var outcome: String
    package var reason: String?
    package var at: Date
    package var undo: String?
    package var undoReason: String?
}

/// What an action would reach.
package struct OperationPreview: Sendable, Equatable {
    package var jobs: Int
    package var isExact: Bool
    package var looked: Int
    /// JSON text: a list of some of the jobs.
    package var sample: [UInt8]
}

/// One step of an operation.
package struct OperationStep: Sendable, Equatable {
    /// Nil: none was due.
    package var operation: Int64?
    package var state: String?
    package var acted: Int
    /// Until the next step is due; nil: never.
    package var wait: Duration?
}

/// An action of an operator.
package struct AuditEntry: Sendable, Equatable {
    package var id: Int64
    package var at: Date
    /// The role, which Postgres has verified.
    package var who: String
    /// Who it was, as the program said, which nobody has verified.
    package var saidBy: String?
    /// Whose sign-in Postgres has verified, where several may act as one role; nil: before it was written down.
    package var login: String?
    package var action: String
    package var object: String?
    /// JSON text.
    package var detail: [UInt8]?
}

extension Queue {
    package enum OperationVerb: String, Sendable, CaseIterable {
        case pause, resume, stop, undo
    }

    /// - Parameters:
    ///   - filter: a JSON object, checked by the database.
    ///   - key: who starts it twice with one key starts it once.
    package static func startOperation(
        _ action: String, filter: String, args: String, pace: Int?, key: String?, on connection: Connection
    ) async throws(PostgresError) -> Int64 {
        let rows = try await connection.query(
            "select millrace.operation_start($1, $2::jsonb, $3::jsonb, $4, $5)",
            [.text(action), .text(filter), .text(args), .int4(pace.map { Int32(clamping: $0) }), .text(key)],
            deadline: .seconds(60)
        ) { row throws(PostgresError) in try row.int(0) }
        return try one(rows)
    }

    package static func previewOperation(
        _ action: String, filter: String, args: String, samples: Int = 10, on connection: Connection
    ) async throws(PostgresError) -> OperationPreview {
        let rows = try await connection.query(
            "select jobs, is_exact, looked, sample from millrace.operation_preview($1, $2::jsonb, $3::jsonb, $4)",
            [.text(action), .text(filter), .text(args), .int4(Int32(clamping: samples))], deadline: .seconds(60)
        ) { row throws(PostgresError) in
            OperationPreview(
                jobs: Int(try row.int(0)), isExact: try row.bool(1), looked: Int(try row.int(2)),
                sample: try row.json(3))
        }
        return try one(rows)
    }

    /// False: there was nothing to do.
    package static func change(
        _ operation: Int64, _ verb: OperationVerb, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let sql: SQL =
            switch verb {
            case .pause: "select millrace.operation_pause($1)"
            case .resume: "select millrace.operation_resume($1)"
            case .stop: "select millrace.operation_stop($1)"
            case .undo: "select millrace.operation_undo($1)"
            }
        let rows = try await connection.query(sql, [.int8(operation)], deadline: .seconds(30)) {
            row throws(PostgresError) in try row.bool(0)
        }
        return try one(rows)
    }

    package static func operation(
        _ id: Int64, on connection: Connection
    ) async throws(PostgresError) -> OperationRow? {
        try await connection.query(
            """
            select id, action, filter, args, pace, state, is_undoing, who, said_by, jobs, is_exact, looked, done, nothing, refused,
                   undone, past, started_at, changed_at, ended_at, undo_until, can_undo, undo_by, undo_said_by, undo_started_at,
                   undo_ended_at, key, login, undo_login
              from millrace.operation($1)
            """, [.int8(id)]
        ) { row throws(PostgresError) in try OperationRow(row) }.first
    }

    /// Newest first.
    package static func operations(
        after: Int64?, limit: Int, on connection: Connection
    ) async throws(PostgresError) -> [OperationRow] {
        try await connection.query(
            """
            select id, action, filter, args, pace, state, is_undoing, who, said_by, jobs, is_exact, looked, done, nothing, refused,
                   undone, past, started_at, changed_at, ended_at, undo_until, can_undo, undo_by, undo_said_by, undo_started_at,
                   undo_ended_at, key, login, undo_login
              from millrace.operation_list($1, $2)
            """,
            [.int8(after), .int4(Int32(clamping: min(limit, page)))]
        ) { row throws(PostgresError) in try OperationRow(row) }
    }

    /// - Parameter which: done, nothing, refused, undone or past; nil is all.
    package static func items(
        of operation: Int64, which: String?, after: Int64?, limit: Int, on connection: Connection
    ) async throws(PostgresError) -> [OperationItem] {
        try await connection.query(
            "select job, outcome, reason, at, undo, undo_reason from millrace.operation_items($1, $2, $3, $4)",
            [.int8(operation), .text(which), .int8(after), .int4(Int32(clamping: min(limit, page)))]
        ) { row throws(PostgresError) in
            OperationItem(
                job: try row.int(0), outcome: try row.string(1), reason: row.optionalString(2), at: try row.date(3),
                undo: row.optionalString(4), undoReason: row.optionalString(5))
        }
    }

    /// The next step of this operation, or of any that is due.
    package static func stepOperation(
        _ id: Int64? = nil, most: Int = 2000, on connection: Connection, deadline: Duration? = .seconds(60)
    ) async throws(PostgresError) -> OperationStep {
        let rows = try await connection.query(
            "select operation, state, acted, wait from millrace.operation_step($1, $2)",
            [.int8(id), .int4(Int32(clamping: most))], deadline: deadline
        ) { row throws(PostgresError) in
            OperationStep(
                operation: try row.optionalInt(0), state: row.optionalString(1), acted: Int(try row.int(2)),
                wait: row.optionalDouble(3).map { .seconds($0) })
        }
        return try one(rows)
    }

    /// False: it does not wait any more, or has this priority.
    package static func setPriority(
        _ priority: Int, of job: Int64, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select millrace.job_priority($1, $2)", [.int8(job), .int4(Int32(clamping: priority))]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }

    /// - Parameter until: a time, or, with `span`, so long after the database's now.
    package static func reschedule(
        _ job: Int64, to time: Date?, after span: Duration?, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select millrace.reschedule($1, coalesce($2, millrace.now() + make_interval(secs => $3)))",
            [.int8(job), .timestamp(time), .float8(span.map { $0 / .seconds(1) })]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }

    /// The database's clock, moved by so much; for filters with a relative time.
    package static func now(
        plus span: Duration = .zero, on connection: Connection
    ) async throws(PostgresError) -> Date {
        let rows = try await connection.query(
            "select millrace.now() + make_interval(secs => $1)", [.float8(span / .seconds(1))]
        ) { row throws(PostgresError) in try row.date(0) }
        return try one(rows)
    }

    /// Newest first, below the id `after`. who: the role, the login, or who it was as the program said.
    package static func audit(
        since: DeadFilter.Moment? = nil, until: DeadFilter.Moment? = nil, action: String? = nil, who: String? = nil,
        object: String? = nil, after: Int64? = nil, limit: Int, on connection: Connection
    ) async throws(PostgresError) -> [AuditEntry] {
        let none: [Parameter] = [.timestamp(nil), .float8(nil)]
        return try await connection.query(
            """
            select id, at, who, said_by, action, object, detail, login
              from millrace.audit_list(coalesce($1, millrace.now() - make_interval(secs => $2)),
                coalesce($3, millrace.now() - make_interval(secs => $4)), $5, $6, $7, $8, $9)
            """,
            (since?.parameters ?? none) + (until?.parameters ?? none) + [
                .text(action), .text(who), .text(object), .int8(after), .int4(Int32(clamping: min(limit, page))),
            ]
        ) { row throws(PostgresError) in
            AuditEntry(
                id: try row.int(0), at: try row.date(1), who: try row.string(2), saidBy: row.optionalString(3),
                login: row.optionalString(7), action: try row.string(4), object: row.optionalString(5),
                detail: row.optionalJSON(6))
        }
    }

    /// How many days the audit keeps; nil only asks.
    package static func keepAudit(days: Int?, on connection: Connection) async throws(PostgresError) -> Int {
        let rows = try await connection.query(
            "select millrace.audit_keep($1)", [.int4(days.map { Int32(clamping: $0) })]
        ) { row throws(PostgresError) in Int(try row.int(0)) }
        return try one(rows)
    }
}
