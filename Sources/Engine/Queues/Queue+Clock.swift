package import FoundationEssentials
package import MillraceJobs
package import Postgres

/// A schedule that needs a worker: one of its times has come, or the next one is not known.
package struct DueSchedule: Sendable {
    package var id: Int32
    package var name: String
    package var expression: String
    package var zone: String
    package var anchor: Date
    package var catchUp: Schedule.CatchUp
    /// A plan made for it is valid for this revision only.
    package var revision: Int64
    package var plannedFrom: Date
    package var nextAt: Date?
    package var problem: String?
    package var now: Date
}

/// A worker's plan for a schedule. Times are whole seconds since 1970.
package struct FirePlan: Sendable, Equatable {
    /// Times that passed without a job. Counting stops at a limit.
    package struct Missed: Sendable, Equatable {
        package var first: Int64
        package var last: Int64
        package var count: Int

        package init(first: Int64, last: Int64, count: Int) {
            self.first = first
            self.last = last
            self.count = count
        }
    }

    /// Each time gets a job, the oldest first.
    package var fires: [Int64]
    package var missed: Missed?
    package var next: Int64

    package init(fires: [Int64], missed: Missed? = nil, next: Int64) {
        self.fires = fires
        self.missed = missed
        self.next = next
    }
}

extension Queue {
    /// When a schedule is next due, and what time it is now.
    package static func scheduleWait(
        on connection: Connection
    ) async throws(PostgresError) -> (now: Date, nextAt: Date?) {
        let rows = try await connection.query("select now, next_at from millrace.schedule_wait()") {
            row throws(PostgresError) in (now: try row.date(0), nextAt: try row.optionalDate(1))
        }
        return try one(rows)
    }

    package static func dueSchedules(on connection: Connection) async throws(PostgresError) -> [DueSchedule] {
        try await connection.query(
            """
            select id, name, expression, zone, anchor, catch_up, catch_up_limit, revision, planned_from, next_at, problem, now
              from millrace.schedules_due()
            """
        ) { row throws(PostgresError) in
            guard let catchUp = Schedule.CatchUp(try row.string(5), limit: Int(try row.int(6))) else {
                throw .undecodable(column: 5, expected: "a way to catch up")
            }
            return DueSchedule(
                id: Int32(truncatingIfNeeded: try row.int(0)), name: try row.string(1), expression: try row.string(2),
                zone: try row.string(3), anchor: try row.date(4), catchUp: catchUp, revision: try row.int(7),
                plannedFrom: try row.date(8), nextAt: try row.optionalDate(9), problem: row.optionalString(10),
                now: try row.date(11))
        }
    }

    /// Records a plan and enqueues its jobs, in one transaction. nil: the schedule was changed meanwhile, or another worker has it.
    package static func advance(
        _ schedule: DueSchedule, by plan: FirePlan, on connection: Connection
    ) async throws(PostgresError) -> Int? {
        let rows = try await connection.query(
            """
            select millrace.schedule_advance($1, $2, $3, array(select to_timestamp(f) from unnest($4) with ordinality u(f, o) order by o),
                to_timestamp($5), to_timestamp($6), $7, to_timestamp($8))
            """,
            [
                .int4(schedule.id), .int8(schedule.revision), .timestamp(schedule.nextAt),
                .float8s(plan.fires.map { Double($0) }), .float8(plan.missed.map { Double($0.first) }),
                .float8(plan.missed.map { Double($0.last) }), .int8(Int64(plan.missed?.count ?? 0)),
                .float8(Double(plan.next)),
            ], deadline: .seconds(60)
        ) { row throws(PostgresError) in try row.optionalInt(0).map { Int($0) } }
        return try one(rows)
    }

    /// False when it is too early to report it, or when the schedule was changed meanwhile.
    package static func reportProblem(
        _ problem: String, of schedule: DueSchedule, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select millrace.schedule_problem($1, $2, $3)",
            [.int4(schedule.id), .int8(schedule.revision), .text(problem)]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }
}
