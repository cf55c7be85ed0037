package import FoundationEssentials
package import Postgres

/// A queue and its numbers of jobs. Counts are capped: the cap means that many or more.
package struct QueueDepth: Sendable {
    package var name: String
    package var pausedAt: Date?
    /// The retention of its succeeded jobs.
    package var retention: String
    package var retentionCancelled: String
    package var retentionDead: String
    package var ready: Int
    package var scheduled: Int
    package var running: Int
    package var oldestReadyAt: Date?
    /// How long its oldest ready job has waited, by the database's clock.
    package var oldestAge: Double?
    /// How many are ready, where counting stopped, as far as it is known.
    package var estimated: Int?
}

/// A run or a job that takes a worker's slots or its life, by the rules of `millrace.run_troubles`.
package struct RunTrouble: Sendable, Equatable {
    package enum Trouble: String, Sendable {
        /// Workers ended while they held it.
        case crashes
        /// It is among the longest runs of a worker whose handlers ignore their cancellation.
        case stuck
        /// It was cancelled, and its handler still runs.
        case cancelled
    }

    package var trouble: Trouble
    package var job: Int64
    package var kind: String
    package var queue: String
    package var worker: String?
    package var host: String?
    package var pid: Int?
    /// Since its claim, or since it was cancelled.
    package var seconds: Double?
    package var crashes: Int?
}

/// A worker as it described itself with its last beat.
package struct WorkerRow: Sendable {
    package var name: String
    package var host: String
    package var pid: Int
    package var version: String
    /// The build of its program, as it stands behind the version.
    package var build: String? {
        version.firstIndex(of: "+").map { String(version[version.index(after: $0)...]) }.flatMap {
            $0.isEmpty ? nil : $0
        }
    }
    package var state: String
    package var startedAt: Date
    package var beatAt: Date
    /// Seconds since the last beat, by the database's clock.
    package var beatAge: Double
    package var slots: Int
    package var running: Int
    package var waiting: Int
    package var stuck: Int
    /// Empty: all.
    package var queues: [String]
    package var kinds: [String]
    package var direct: Bool
    package var session: String
    /// Seconds that its machine's clock is ahead of the database's; nil: it has not said.
    package var clockAhead: Double?

    /// Times that it writes, in logs and to providers, are wrong by so much that people see it. What counts here is the database's clock.
    package var isClockWrong: Bool { (clockAhead?.magnitude ?? 0) >= 60 }
}

/// Ended runs of a queue and kind.
package struct RateRow: Sendable {
    package var queue: String
    package var kind: String
    package var succeeded: Int
    package var failed: Int
    package var dead: Int
    package var cancelled: Int
    package var snoozed: Int

    /// All runs that ended, in any way.
    package var runs: Int { succeeded + failed + cancelled + snoozed }
}

/// A transaction that keeps old row versions alive.
package struct PinRow: Sendable {
    package var pid: Int
    package var application: String?
    package var user: String?
    package var state: String?
    package var age: Double

    /// It does nothing between its statements, and its program may have forgotten it.
    package var isIdle: Bool { state?.hasPrefix("idle in transaction") == true }
    /// Somebody should look at it: a statement may take a quarter of an hour, a pause between two may not.
    package var isTooOld: Bool { age > (isIdle ? 60 : 900) }
    package var owner: String {
        [application, user].compactMap { $0?.isEmpty == false ? $0 : nil }.joined(separator: ", ")
    }
}

package struct SizeRow: Sendable {
    package var name: String
    package var bytes: Int
    package var deadRows: Int
}

/// How far ahead the partitions exist.
package struct Partitions: Sendable {
    /// Whole days after today; nil when there is none at all.
    package var historyDays: Int?
    package var jobIDs: Int
    /// Rows in the default partitions of history.
    package var strays: Int
}

extension Queue {
    /// - Parameter cap: nil counts everything.
    package static func depths(
        cap: Int?, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [QueueDepth] {
        try await connection.query(
            """
            select d.queue, d.paused_at, d.retention, d.ready, d.scheduled, d.running, d.oldest_ready_at,
                   extract(epoch from millrace.now() - d.oldest_ready_at)::float8,
                   coalesce(r.cancelled, d.retention), coalesce(r.dead, d.retention)
              from millrace.depths($1) d left join millrace.retentions() r on r.queue = d.queue
             order by d.queue
            """, [.int4(cap.map { Int32(clamping: $0) })], deadline: deadline
        ) { row throws(PostgresError) in
            QueueDepth(
                name: try row.string(0), pausedAt: try row.optionalDate(1), retention: try row.string(2),
                retentionCancelled: try row.string(8), retentionDead: try row.string(9),
                ready: Int(try row.int(3)), scheduled: Int(try row.int(4)), running: Int(try row.int(5)),
                oldestReadyAt: try row.optionalDate(6), oldestAge: row.optionalDouble(7).map { max(0, $0) })
        }
    }

    /// What the console shows of queues with more ready jobs than are counted: an estimate, or an exact number where that was still counted there.
    package static func readyEstimates(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [String: Int] {
        let found = try await connection.query(
            "select queue, case when ready < cap then ready else estimated end from millrace.queue_overview() where ready < cap or estimated is not null",
            deadline: deadline
        ) { row throws(PostgresError) in (try row.string(0), Int(try row.int(1))) }
        return Dictionary(found) { first, _ in first }
    }

    package static func runTroubles(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [RunTrouble] {
        try await connection.query(
            "select trouble, job, kind, queue, worker, host, pid, seconds, crashes from millrace.run_troubles()",
            deadline: deadline
        ) { row throws(PostgresError) in
            guard let trouble = RunTrouble.Trouble(rawValue: try row.string(0)) else {
                throw .undecodable(column: 0, expected: "a trouble of a run")
            }
            return RunTrouble(
                trouble: trouble, job: try row.int(1), kind: try row.string(2), queue: try row.string(3),
                worker: row.optionalString(4), host: row.optionalString(5), pid: try row.optionalInt(6).map { Int($0) },
                seconds: row.optionalDouble(7), crashes: try row.optionalInt(8).map { Int($0) })
        }
    }

    package static func workers(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [WorkerRow] {
        try await connection.query(
            """
            select worker, host, pid, version, state, started_at, beat_at,
                   extract(epoch from millrace.now() - beat_at)::float8, slots, running, waiting, stuck, queues, kinds, direct, session, clock_ahead_s
              from millrace.workers
             order by worker, session
            """, deadline: deadline
        ) { row throws(PostgresError) in
            WorkerRow(
                name: try row.string(0), host: try row.string(1), pid: Int(try row.int(2)), version: try row.string(3),
                state: try row.string(4), startedAt: try row.date(5), beatAt: try row.date(6),
                beatAge: max(0, try row.double(7)), slots: Int(try row.int(8)), running: Int(try row.int(9)),
                waiting: Int(try row.int(10)), stuck: Int(try row.int(11)), queues: try row.strings(12),
                kinds: try row.strings(13), direct: try row.bool(14), session: try row.string(15),
                clockAhead: row.optionalDouble(16))
        }
    }

    /// Ended runs of the last five minutes.
    package static func rates(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [RateRow] {
        try await connection.query(
            "select queue, kind, succeeded, failed, dead, cancelled, snoozed from millrace.rates()", deadline: deadline
        ) { row throws(PostgresError) in
            RateRow(
                queue: try row.string(0), kind: try row.string(1), succeeded: Int(try row.int(2)),
                failed: Int(try row.int(3)), dead: Int(try row.int(4)), cancelled: Int(try row.int(5)),
                snoozed: Int(try row.int(6)))
        }
    }

    /// Kinds of waiting jobs that no worker knows.
    /// - Parameter span: how many rows it looks at when a kind is unknown.
    package static func orphans(
        span: Int = 2_000_000, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [(kind: String, waiting: Int)] {
        try await connection.query(
            "select kind, waiting from millrace.orphans($1)", [.int4(Int32(clamping: span))], deadline: deadline
        ) { row throws(PostgresError) in (kind: try row.string(0), waiting: Int(try row.int(1)))
        }
    }

    /// Jobs that died within the last `seconds`, at most 10,000.
    package static func deadCount(
        seconds: Double, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> Int {
        let rows = try await connection.query(
            "select millrace.dead_count(make_interval(secs => $1))", [.float8(seconds)], deadline: deadline
        ) { row throws(PostgresError) in Int(try row.int(0)) }
        return try one(rows)
    }

    /// Jobs that wait for the holder of their unique key, at most 10,000.
    package static func blockedCount(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> Int {
        let rows = try await connection.query("select millrace.blocked_count()", deadline: deadline) {
            row throws(PostgresError) in Int(try row.int(0))
        }
        return try one(rows)
    }

    /// The oldest transactions that keep old row versions alive, the worst first.
    package static func pins(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [PinRow] {
        try await connection.query(
            "select pid, application, usename, state, age_s from millrace.pins()", deadline: deadline
        ) { row throws(PostgresError) in
            PinRow(
                pid: Int(try row.int(0)), application: row.optionalString(1), user: row.optionalString(2),
                state: row.optionalString(3), age: max(0, try row.double(4)))
        }
    }

    /// Every table of the schema, the largest first.
    package static func sizes(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [SizeRow] {
        try await connection.query("select name, bytes, dead from millrace.sizes()", deadline: deadline) {
            row throws(PostgresError) in
            SizeRow(name: try row.string(0), bytes: Int(try row.int(1)), deadRows: Int(try row.int(2)))
        }
    }

    package static func partitions(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> Partitions {
        let rows = try await connection.query(
            "select history_days, job_ids, strays from millrace.partitions()", deadline: deadline
        ) { row throws(PostgresError) in
            Partitions(
                historyDays: try row.optionalInt(0).map { Int($0) }, jobIDs: Int(try row.int(1)),
                strays: Int(try row.int(2)))
        }
        return try one(rows)
    }
}

/// The present work of a queue; counts are capped at 10,000.
package struct QueueLoad: Sendable, Equatable {
    package var ready: Int
    package var due: Int
    package var running: Int

    package var isEmpty: Bool { ready + due + running == 0 }
}

extension Queue {
    /// nil: there is no such queue.
    package static func load(of queue: String, on connection: Connection) async throws(PostgresError) -> QueueLoad? {
        try await connection.query("select ready, due, running from millrace.queue_load($1)", [.text(queue)]) {
            row throws(PostgresError) in
            QueueLoad(ready: Int(try row.int(0)), due: Int(try row.int(1)), running: Int(try row.int(2)))
        }.first
    }
}
