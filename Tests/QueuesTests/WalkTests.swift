import Postgres
import TestSupport
import Testing

/// The tables through which jobs pass look small in the statistics, but are large under an old snapshot: no caller's statement may read
/// them from end to end, whenever its plan was made. Two exceptions: `lease`, where a caller asks whether a given job runs, and `cancel`,
/// which is kept short, once a second.
@Suite struct WalkTests {
    private static let tables = [
        "ready", "timer", "lease", "parked", "unique_lock", "unique_ended", "blocked", "edge", "step", "progress",
        "cancel", "unique_key",
    ]

    @Test func `no caller reads a table of those that come and go from end to end`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.limit_set('key', 'a', '{"concurrency": 1}');
                select millrace.enqueue('k', unique_key => 'first', run_at => now() + interval '1 hour');
                select millrace.enqueue('k', limit_key => 'a')
                """)
            let running = try await connection.enqueue("'k', unique_key => 'runs'")
            try await connection.openSession()
            #expect(try await connection.claim().contains(running))
            for table in Self.tables { try await connection.run("analyze millrace.\(table)") }
            await connection.close()

            let caller = try await database.connect()
            let jobs = [
                #"{"kind": "k"}"#, #"{"kind": "k", "limit_key": "a"}"#,
                #"{"kind": "k", "unique_key": "first", "on_conflict": "replace"}"#,
                #"{"kind": "k", "unique_key": "second"}"#, #"{"kind": "k", "unique_key": "first"}"#,
            ]
            let later = try await caller.int("select job from millrace.timer")
            try await caller.run("begin")
            for call in [
                "millrace.enqueue_many('[\(jobs.joined(separator: ", "))]')",
                "millrace.enqueue('k', unique_key => 'third')",
                "millrace.enqueue('k', unique_key => 'third', on_conflict => 'replace', priority => 1)",
                "millrace.enqueue('k', options => '{\"after\": [\(running)]}')",
                "millrace.reschedule(\(later), now() + interval '2 hours')",
                "millrace.cancel(\(later))", "millrace.cancel(\(running))",
                "millrace.heed_cancels()",
            ] {
                var before: [Int] = []
                for table in Self.tables { before.append(try await Self.scans(of: table, caller)) }
                try await caller.run("select \(call)")
                for (table, old) in zip(Self.tables, before)
                where (call, table) != ("millrace.heed_cancels()", "cancel") {
                    #expect(try await Self.scans(of: table, caller) == old, "\(call) reads \(table)")
                }
            }
            try await caller.run("rollback")
            await caller.close()
        }
    }

    private static func scans(of table: String, _ connection: Connection) async throws -> Int {
        try await connection.int("select pg_stat_get_xact_numscans('millrace.\(table)'::regclass)")
    }
}
