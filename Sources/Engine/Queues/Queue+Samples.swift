package import FoundationEssentials
package import Postgres

/// A queue, or all of them, in one step of time: means of the samples, and sums of what ended.
package struct QueueSample: Sendable {
    package var at: Date
    /// The length of the step, in seconds.
    package var step: Int
    /// nil: all queues together.
    package var queue: String?
    package var ready, due, scheduled, running: Double
    package var paused: Bool
    /// The greatest age of the oldest ready job, in seconds.
    package var oldest: Double
    package var succeeded, failed, dead, retried, cancelled, snoozed: Int
    /// Means, in seconds; nil where nothing ran, or nobody said.
    package var run, wait: Double?

    /// All runs that ended, in any way.
    package var runs: Int { succeeded + failed + cancelled + snoozed }
}

/// A kind, or all of them, in one step of time.
package struct KindSample: Sendable {
    package var at: Date
    package var step: Int
    package var kind, version: String?
    package var succeeded, failed, dead, retried, cancelled, snoozed: Int
    package var run, wait, p50, p95: Double?

    package var runs: Int { succeeded + failed + cancelled + snoozed }
}

/// A worker, or all of them, in one step of time.
package struct WorkerSample: Sendable {
    package var at: Date
    package var step: Int
    package var worker, session, version, host: String?
    package var startedAt: Date?
    package var state: String?
    package var workers, running, waiting, stuck, slots: Double
}

/// A class of a provider's calls in one step of time: what the workers saw in the half minute before each sample.
package struct ProviderSample: Sendable {
    package var at: Date
    package var step: Int
    package var provider, name, state: String
    package var calls, failures, throttled, slow, unknown, p50, p99: Double
}

package struct StorageSample: Sendable {
    package var at: Date
    package var step: Int
    /// nil: all tables together.
    package var relation: String?
    package var bytes, dead: Int
    /// In seconds; nil for one table, like all that follows.
    package var oldestTransaction: Double?
    package var oldestSnapshot: Int?
    package var historyDays: Double?
    package var jobIDs, strays: Int?
}

/// What happened to the fleet.
package struct FleetEvent: Sendable {
    package var at: Date
    package var event, subject: String
    package var version, by, detail: String?
}

/// Which samples are kept, and the one at or before a moment.
package struct SampleMoment: Sendable {
    package var keptSince, keptUntil, at: Date?
    package var step: Int
}

/// A version of the workers that samples know.
package struct VersionSeen: Sendable {
    package var version: String
    package var firstAt, lastAt: Date
    package var workers: Int
}

/// What runs of a kind came to with one version of the workers.
package struct VersionRuns: Sendable, Equatable {
    package var runs, failed, retried, dead: Int
    package var run, p95: Double?

    package var failedShare: Double { runs == 0 ? 0 : Double(failed) / Double(runs) }
    package var retriedShare: Double { runs == 0 ? 0 : Double(retried) / Double(runs) }
}

package struct VersionComparison: Sendable, Equatable {
    package var kind: String
    /// nil: that version did not run it.
    package var before, after: VersionRuns?
}

extension Queue {
    /// Takes the sample of these ten seconds if nobody has; how long until the next one is due.
    package static func takeSample(on connection: Connection) async throws(PostgresError) -> Duration {
        let rows = try await connection.query("select next_s from millrace.sample_take()") {
            row throws(PostgresError) in .seconds(min(10, max(0.1, try row.double(0)))) as Duration
        }
        return try one(rows)
    }

    /// By the database's clock.
    package static func now(on connection: Connection) async throws(PostgresError) -> Date {
        try one(try await connection.query("select millrace.now()") { row throws(PostgresError) in try row.date(0) })
    }

    package static func sample(at moment: Date, on connection: Connection) async throws(PostgresError) -> SampleMoment {
        let rows = try await connection.query(
            "select kept_since, kept_until, at, step_s from millrace.sample_at($1)", [.timestamp(moment)]
        ) { row throws(PostgresError) in
            SampleMoment(
                keptSince: try row.optionalDate(0), keptUntil: try row.optionalDate(1), at: try row.optionalDate(2),
                step: Int(try row.int(3)))
        }
        return try one(rows)
    }

    /// - Parameter step: in seconds; nil leaves it to the database, which gives at most 500 points.
    /// - Parameter queue: nil for all together, `*` for each.
    package static func queueSamples(
        since: Date, until: Date, step: Int? = nil, queue: String? = nil, on connection: Connection
    ) async throws(PostgresError) -> [QueueSample] {
        try await connection.query(
            """
            select at, step_s, queue, ready, due, scheduled, running, paused, oldest_s, succeeded, failed, dead, retried, cancelled, snoozed,
                   run_s, wait_s
              from millrace.samples_queue($1, $2, make_interval(secs => $3), $4)
            """, range(since, until, step, queue)
        ) { row throws(PostgresError) in
            QueueSample(
                at: try row.date(0), step: Int(try row.int(1)), queue: row.optionalString(2), ready: try row.double(3),
                due: try row.double(4), scheduled: try row.double(5), running: try row.double(6),
                paused: try row.bool(7), oldest: try row.double(8), succeeded: Int(try row.int(9)),
                failed: Int(try row.int(10)), dead: Int(try row.int(11)), retried: Int(try row.int(12)),
                cancelled: Int(try row.int(13)), snoozed: Int(try row.int(14)), run: row.optionalDouble(15),
                wait: row.optionalDouble(16))
        }
    }

    /// - Parameter kind: nil for all together, `*` for each.
    /// - Parameter version: nil for all versions together, `*` for each.
    package static func kindSamples(
        since: Date, until: Date, step: Int? = nil, kind: String? = nil, version: String? = nil,
        on connection: Connection
    ) async throws(PostgresError) -> [KindSample] {
        try await connection.query(
            """
            select at, step_s, kind, version, succeeded, failed, dead, retried, cancelled, snoozed, run_s, wait_s, p50_s, p95_s
              from millrace.samples_kind($1, $2, make_interval(secs => $3), $4, $5)
            """, range(since, until, step, kind) + [.text(version)]
        ) { row throws(PostgresError) in
            KindSample(
                at: try row.date(0), step: Int(try row.int(1)), kind: row.optionalString(2),
                version: row.optionalString(3), succeeded: Int(try row.int(4)), failed: Int(try row.int(5)),
                dead: Int(try row.int(6)), retried: Int(try row.int(7)), cancelled: Int(try row.int(8)),
                snoozed: Int(try row.int(9)), run: row.optionalDouble(10), wait: row.optionalDouble(11),
                p50: row.optionalDouble(12), p95: row.optionalDouble(13))
        }
    }

    /// - Parameter worker: nil for all together, `*` for each session.
    package static func workerSamples(
        since: Date, until: Date, step: Int? = nil, worker: String? = nil, on connection: Connection
    ) async throws(PostgresError) -> [WorkerSample] {
        try await connection.query(
            """
            select at, step_s, worker, session, version, host, started_at, state, workers, running, waiting, stuck, slots
              from millrace.samples_worker($1, $2, make_interval(secs => $3), $4)
            """, range(since, until, step, worker)
        ) { row throws(PostgresError) in
            WorkerSample(
                at: try row.date(0), step: Int(try row.int(1)), worker: row.optionalString(2),
                session: row.optionalString(3), version: row.optionalString(4), host: row.optionalString(5),
                startedAt: try row.optionalDate(6), state: row.optionalString(7), workers: try row.double(8),
                running: try row.double(9), waiting: try row.double(10), stuck: try row.double(11),
                slots: try row.double(12))
        }
    }

    /// - Parameter provider: nil for each.
    package static func providerSamples(
        since: Date, until: Date, step: Int? = nil, provider: String? = nil, on connection: Connection
    ) async throws(PostgresError) -> [ProviderSample] {
        try await connection.query(
            """
            select at, step_s, provider, class, state, calls, failures, throttled, slow, unknown, p50_ms, p99_ms
              from millrace.samples_provider($1, $2, make_interval(secs => $3), $4)
            """, range(since, until, step, provider)
        ) { row throws(PostgresError) in
            ProviderSample(
                at: try row.date(0), step: Int(try row.int(1)), provider: try row.string(2), name: try row.string(3),
                state: try row.string(4), calls: try row.double(5), failures: try row.double(6),
                throttled: try row.double(7), slow: try row.double(8), unknown: try row.double(9),
                p50: try row.double(10), p99: try row.double(11))
        }
    }

    /// - Parameter relation: nil for all tables together, `*` for each.
    package static func storageSamples(
        since: Date, until: Date, step: Int? = nil, relation: String? = nil, on connection: Connection
    ) async throws(PostgresError) -> [StorageSample] {
        try await connection.query(
            """
            select at, step_s, relation, bytes, dead, oldest_transaction_s, oldest_snapshot, history_days, job_ids, strays
              from millrace.samples_storage($1, $2, make_interval(secs => $3), $4)
            """, range(since, until, step, relation)
        ) { row throws(PostgresError) in
            StorageSample(
                at: try row.date(0), step: Int(try row.int(1)), relation: row.optionalString(2),
                bytes: Int(try row.int(3)), dead: Int(try row.int(4)), oldestTransaction: row.optionalDouble(5),
                oldestSnapshot: try row.optionalInt(6).map { Int($0) }, historyDays: row.optionalDouble(7),
                jobIDs: try row.optionalInt(8).map { Int($0) }, strays: try row.optionalInt(9).map { Int($0) })
        }
    }

    /// The newest first.
    package static func fleetEvents(
        since: Date, until: Date, most: Int = 500, on connection: Connection
    ) async throws(PostgresError) -> [FleetEvent] {
        try await connection.query(
            "select at, event, subject, version, by, detail from millrace.fleet_events($1, $2, $3)",
            [.timestamp(since), .timestamp(until), .int4(Int32(clamping: most))]
        ) { row throws(PostgresError) in
            FleetEvent(
                at: try row.date(0), event: try row.string(1), subject: try row.string(2),
                version: row.optionalString(3), by: row.optionalString(4), detail: row.optionalString(5))
        }
    }

    /// The newest first.
    package static func versions(most: Int = 20, on connection: Connection) async throws(PostgresError) -> [VersionSeen]
    {
        try await connection.query(
            "select version, first_at, last_at, workers from millrace.versions_seen($1)",
            [.int4(Int32(clamping: most))]
        ) { row throws(PostgresError) in
            VersionSeen(
                version: try row.string(0), firstAt: try row.date(1), lastAt: try row.date(2),
                workers: Int(try row.int(3)))
        }
    }

    package static func compareVersions(
        _ before: String, _ after: String, on connection: Connection
    ) async throws(PostgresError) -> [VersionComparison] {
        try await connection.query("select * from millrace.versions_compare($1, $2)", [.text(before), .text(after)]) {
            row throws(PostgresError) in
            func side(_ first: Int) throws(PostgresError) -> VersionRuns? {
                guard let runs = try row.optionalInt(first) else { return nil }
                return VersionRuns(
                    runs: Int(runs), failed: Int(try row.int(first + 1)), retried: Int(try row.int(first + 2)),
                    dead: Int(try row.int(first + 3)), run: row.optionalDouble(first + 4),
                    p95: row.optionalDouble(first + 5))
            }
            return VersionComparison(kind: try row.string(0), before: try side(1), after: try side(7))
        }
    }

    private static func range(_ since: Date, _ until: Date, _ step: Int?, _ name: String?) -> [Parameter] {
        [.timestamp(since), .timestamp(until), .float8(step.map(Double.init)), .text(name)]
    }
}
