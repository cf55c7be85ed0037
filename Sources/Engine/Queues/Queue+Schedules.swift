package import FoundationEssentials
package import MillraceJobs
package import Postgres

/// A schedule as operators see it.
package struct ScheduleRow: Sendable {
    package var name: String
    package var kind: String
    package var expression: String
    package var zone: String
    package var queue: String?
    package var priority: Int?
    package var tenant: String?
    package var args: [UInt8]
    package var catchUp: String
    package var catchUpLimit: Int
    package var overlap: String
    package var jitter: Double
    package var pausedAt: Date?
    package var anchor: Date
    package var nextAt: Date?
    package var lastFireAt: Date?
    package var lastJob: Int64?
    package var fired: Int
    package var skipped: Int
    package var missed: Int
    package var lastMissedAt: Date?
    package var problem: String?
    package var changedAt: Date
    /// By the database's clock.
    package var now: Date
}

/// The result of one time of a schedule, or of several that were missed.
package struct ScheduleFire: Sendable {
    package var fireAt: Date
    /// fired, manual, skipped or missed
    package var what: String
    package var job: Int64?
    package var firedAt: Date
    package var missed: Int?
    package var until: Date?
}

extension Queue {
    package static func setSchedule(
        _ schedule: Schedule, on connection: Connection
    ) async throws(PostgresError) -> ScheduleChange {
        let (catchUp, limit) = schedule.catchUp.words
        let rows = try await connection.query(
            """
            select millrace.schedule_set($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, make_interval(secs => $12), $13, $14)
            """,
            [
                .text(schedule.name), .text(schedule.expression), .text(schedule.kind), .json(schedule.args),
                .text(schedule.zone), .text(schedule.queue), .int4(schedule.priority.map { Int32(clamping: $0) }),
                .text(schedule.tenant), .text(catchUp), .int4(Int32(clamping: limit)),
                .text(schedule.overlap.rawValue), .float8(schedule.jitter / .seconds(1)), .timestamp(schedule.anchor),
                .bool(schedule.isPaused),
            ]
        ) { row throws(PostgresError) in ScheduleChange(rawValue: try row.string(0)) }
        guard let change = try one(rows) else { throw .undecodable(column: 0, expected: "a change") }
        return change
    }

    package static func removeSchedule(_ name: String, on connection: Connection) async throws(PostgresError) {
        try await connection.execute("select millrace.schedule_remove($1)", [.text(name)])
    }

    /// True when it was not paused before.
    package static func pauseSchedule(_ name: String, on connection: Connection) async throws(PostgresError) -> Bool {
        let rows = try await connection.query("select millrace.schedule_pause($1)", [.text(name)]) {
            row throws(PostgresError) in try row.bool(0)
        }
        return try one(rows)
    }

    /// True when it was paused before.
    package static func resumeSchedule(_ name: String, on connection: Connection) async throws(PostgresError) -> Bool {
        let rows = try await connection.query("select millrace.schedule_resume($1)", [.text(name)]) {
            row throws(PostgresError) in try row.bool(0)
        }
        return try one(rows)
    }

    /// Fires now; returns the job's number.
    package static func runSchedule(_ name: String, on connection: Connection) async throws(PostgresError) -> Int64 {
        let rows = try await connection.query("select millrace.schedule_run($1)", [.text(name)]) {
            row throws(PostgresError) in try row.int(0)
        }
        return try one(rows)
    }

    /// Schedules with a problem first, then by their next time; or the one with this name.
    package static func schedules(
        named name: String? = nil, limit: Int? = nil, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [ScheduleRow] {
        try await connection.query(
            """
            select name, kind, expression, zone, queue, priority, tenant, args, catch_up, catch_up_limit, overlap,
                   extract(epoch from jitter)::float8, paused_at, anchor, next_at, last_fire_at, last_job, fired, skipped, missed,
                   last_missed_at, problem, changed_at, millrace.now()
              from millrace.schedules
             where $1::text is null or name = $1
             order by problem is null, paused_at is not null, next_at, name
             limit $2
            """, [.text(name), .int8(limit.map { Int64($0) })], deadline: deadline
        ) { row throws(PostgresError) in
            ScheduleRow(
                name: try row.string(0), kind: try row.string(1), expression: try row.string(2),
                zone: try row.string(3), queue: row.optionalString(4), priority: try row.optionalInt(5).map { Int($0) },
                tenant: row.optionalString(6), args: try row.json(7), catchUp: try row.string(8),
                catchUpLimit: Int(try row.int(9)), overlap: try row.string(10), jitter: try row.double(11),
                pausedAt: try row.optionalDate(12), anchor: try row.date(13), nextAt: try row.optionalDate(14),
                lastFireAt: try row.optionalDate(15), lastJob: try row.optionalInt(16), fired: Int(try row.int(17)),
                skipped: Int(try row.int(18)), missed: Int(try row.int(19)), lastMissedAt: try row.optionalDate(20),
                problem: row.optionalString(21), changedAt: try row.date(22), now: try row.date(23))
        }
    }

    /// The newest first.
    package static func fires(
        of name: String, limit: Int, on connection: Connection
    ) async throws(PostgresError) -> [ScheduleFire] {
        try await connection.query(
            "select fire_at, what, job, fired_at, missed, until from millrace.schedule_fires($1, $2)",
            [.text(name), .int4(Int32(clamping: limit))]
        ) { row throws(PostgresError) in
            ScheduleFire(
                fireAt: try row.date(0), what: try row.string(1), job: try row.optionalInt(2),
                firedAt: try row.date(3), missed: try row.optionalInt(4).map { Int($0) },
                until: try row.optionalDate(5))
        }
    }
}

extension Schedule.CatchUp {
    /// The word in the schema.
    fileprivate var words: (String, limit: Int) {
        switch self {
        case .none: ("none", 1000)
        case .latest: ("latest", 1000)
        case .all(let limit): ("all", limit)
        }
    }

    /// nil: the word is not one of the schema's.
    package init?(_ word: String, limit: Int) {
        switch word {
        case "none": self = .none
        case "latest": self = .latest
        case "all": self = .all(limit: limit)
        default: return nil
        }
    }
}
