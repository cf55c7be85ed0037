import CommandKit
import LoadKit
import Postgres

/// How far claims and promotions walk, from the server's own counters: how many index entries they read for each row that they take, and
/// how long the functions take. The entry of a row that is long gone is read like any other while a snapshot that could see it stays open.
struct WalkMeter: Sendable {
    /// Since the statistics began.
    struct Reading: Sendable {
        var readyRead = 0
        var readyTaken = 0
        var timerRead = 0
        var timerTaken = 0
        /// Calls and milliseconds, by name.
        var functions: [String: (calls: Int, milliseconds: Double)] = [:]

        static func - (late: Reading, early: Reading) -> Reading {
            var between = Reading(
                readyRead: late.readyRead - early.readyRead, readyTaken: late.readyTaken - early.readyTaken,
                timerRead: late.timerRead - early.timerRead, timerTaken: late.timerTaken - early.timerTaken)
            for (name, figures) in late.functions {
                let before = early.functions[name] ?? (0, 0)
                between.functions[name] = (figures.calls - before.calls, figures.milliseconds - before.milliseconds)
            }
            return between
        }

        /// Mean milliseconds of a call; NaN where none was counted.
        func mean(_ names: String...) -> Double {
            let sums = names.compactMap { functions[$0] }.reduce((0, 0.0)) { ($0.0 + $1.calls, $0.1 + $1.milliseconds) }
            return sums.0 > 0 ? sums.1 / Double(sums.0) : .nan
        }

        var readyPerJob: Double { readyTaken > 0 ? Double(readyRead) / Double(readyTaken) : .nan }
        var timerPerJob: Double { timerTaken > 0 ? Double(timerRead) / Double(timerTaken) : .nan }

        var json: JSONValue {
            [
                "ready_entries_per_job": .double(readyPerJob), "timer_entries_per_job": .double(timerPerJob),
                "claim_ms": .double(mean("claim", "claim_limited")), "promote_ms": .double(mean("promote")),
                "finish_ms": .double(mean("finish")), "look_below_floors_ms": .double(mean("lanes")),
                "piece_below_bottoms_ms": .double(mean("lanes_between")),
            ]
        }
    }

    let connection: Connection
    /// Only a superuser may have the server time functions.
    let timesFunctions: Bool

    init(on connection: Connection) async throws(PostgresError) {
        self.connection = connection
        timesFunctions =
            try await connection.truth("select rolsuper from pg_roles where rolname = current_user")
    }

    /// For workers whose functions are timed.
    func environment(_ given: [String: String]) -> [String: String] {
        guard timesFunctions else { return [:] }
        return ["PGOPTIONS": [given["PGOPTIONS"], "-c track_functions=pl"].compactMap { $0 }.joined(separator: " ")]
    }

    func read() async throws(PostgresError) -> Reading {
        var reading = Reading()
        let counts = try await connection.query(
            """
            select coalesce(sum(idx_tup_read) filter (where relname = 'ready'), 0)::bigint,
                   pg_stat_get_tuples_deleted('millrace.ready'::regclass),
                   coalesce(sum(idx_tup_read) filter (where relname = 'timer'), 0)::bigint,
                   pg_stat_get_tuples_deleted('millrace.timer'::regclass)
              from pg_stat_user_indexes where schemaname = 'millrace' and indexrelname in ('ready_pkey', 'timer_due')
            """
        ) { row throws(PostgresError) in
            Reading(
                readyRead: Int(try row.int(0)), readyTaken: Int(try row.int(1)), timerRead: Int(try row.int(2)),
                timerTaken: Int(try row.int(3)))
        }.first
        if let counts { reading = counts }
        let functions = try await connection.query(
            "select funcname::text, calls, total_time from pg_stat_user_functions where schemaname = 'millrace'"
        ) { row throws(PostgresError) in
            (try row.string(0), Int(try row.int(1)), try row.double(2))
        }
        for (name, calls, time) in functions {
            let sofar = reading.functions[name] ?? (0, 0)
            reading.functions[name] = (sofar.calls + calls, sofar.milliseconds + time)
        }
        return reading
    }
}
