package import FoundationEssentials
package import Postgres

/// A recorded step.
package struct StepRow: Sendable, Equatable {
    package var name: String
    /// JSON text.
    package var value: [UInt8]
    /// The run that recorded it.
    package var attempt: Int
    package var at: Date

    fileprivate static let read: Connection.Decode<StepRow> = { row throws(PostgresError) in
        StepRow(name: try row.string(0), value: try row.json(1), attempt: Int(try row.int(2)), at: try row.date(3))
    }
}

/// A kept line of a job's log.
package struct LogRow: Sendable, Equatable {
    /// Counted from 1 for each job; lines missing at the beginning were cut.
    package var number: Int64
    package var at: Date
    /// debug, info, warning or error.
    package var level: String
    package var attempt: Int
    package var token: String
    package var text: String
}

/// A run of a job.
package struct RunRow: Sendable, Equatable {
    package var attempt: Int
    package var startedAt: Date
    /// nil: it is under way.
    package var endedAt: Date?
    package var outcome: String
    package var worker: String?
    /// The build of the worker's program.
    package var build: String?
}

/// What a run reports between its start and its end, as `millrace.report` reads it. Ages are seconds.
package struct RunReport: Sendable, Encodable {
    package struct Line: Sendable, Encodable {
        package let level: Int
        package let age: Double
        package let line: String

        package init(level: Int, age: Double, line: String) {
            self.level = level
            self.age = age
            self.line = line
        }
    }

    package let session: Int64
    package let number: Int64
    package let job: Int64
    package let attempt: Int
    package var age: Double?
    package var fraction: Double?
    package var stage: String?
    package var note: String?
    package var lines: [Line] = []
    package var skipped = 0

    package init(session: Int64, number: Int64, job: Int64, attempt: Int) {
        self.session = session
        self.number = number
        self.job = job
        self.attempt = attempt
    }
}

extension Queue {
    /// A job's recorded steps, oldest first.
    package static func steps(
        of id: Int64, redacted: Bool = false, on connection: Connection
    ) async throws(PostgresError) -> [StepRow] {
        let sql: SQL =
            redacted
            ? "select name, value, attempt, at from millrace.steps_shown($1)"
            : "select name, value, attempt, at from millrace.steps($1)"
        return try await connection.query(sql, [.int8(id)], decode: StepRow.read)
    }

    /// Those by which the token's run goes to the step that it undoes; none: that is undone.
    package static func stepsToUndo(token: String, on connection: Connection) async throws(PostgresError) -> [StepRow] {
        try await connection.query(
            "select name, value, attempt, at from millrace.steps_to_undo($1)", [.text(token)], decode: StepRow.read)
    }

    /// Records a step under the token's lease; returns the recorded value.
    package static func step(
        _ name: String, value: [UInt8], token: String, isUndoable: Bool = false, on connection: Connection
    ) async throws(PostgresError) -> [UInt8] {
        let sql: SQL = isUndoable ? "select millrace.step_undoable($1, $2, $3)" : "select millrace.step($1, $2, $3)"
        let rows = try await connection.query(
            sql, [.text(token), .text(name), .json(value)]
        ) { row throws(PostgresError) in try row.json(0) }
        return try one(rows)
    }

    /// Whether the token's job takes the new way of a change.
    package static func changed(
        _ name: String, token: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try one(
            try await connection.query("select millrace.changed($1, $2)", [.text(token), .text(name)]) {
                row throws(PostgresError) in try row.bool(0)
            })
    }

    /// A job's runs, the first first.
    package static func runs(of id: Int64, on connection: Connection) async throws(PostgresError) -> [RunRow] {
        try await connection.query(
            "select attempt, started_at, ended_at, outcome, worker, build from millrace.runs($1)", [.int8(id)]
        ) { row throws(PostgresError) in
            RunRow(
                attempt: Int(try row.int(0)), startedAt: try row.date(1), endedAt: try row.optionalDate(2),
                outcome: try row.string(3), worker: row.optionalString(4), build: row.optionalString(5))
        }
    }

    /// Returns the jobs whose reports were not taken now and should be sent again.
    package static func report(_ runs: [RunReport], on connection: Connection) async throws(PostgresError) -> Set<Int64>
    {
        let json: [UInt8]
        do {
            json = Array(try JSONEncoder().encode(runs))
        } catch {
            throw .misconfigured(reason: "a report is not JSON")
        }
        let rows = try await connection.query("select millrace.report($1)", [.json(json)]) {
            row throws(PostgresError) in Set(try row.ints(0))
        }
        return try one(rows)
    }

    /// The kept lines of a job's log after the given one.
    package static func logs(
        of id: Int64, after number: Int64 = 0, redacted: Bool = false, on connection: Connection
    ) async throws(PostgresError) -> [LogRow] {
        let sql: SQL =
            redacted
            ? "select n, at, level, attempt, token, line from millrace.logs_shown($1, $2)"
            : "select n, at, level, attempt, token, line from millrace.logs($1, $2)"
        return try await connection.query(sql, [.int8(id), .int8(number)]) { row throws(PostgresError) in
            LogRow(
                number: try row.int(0), at: try row.date(1), level: try row.string(2), attempt: Int(try row.int(3)),
                token: try row.string(4), text: try row.string(5))
        }
    }
}
