import Foundation
import Postgres
import TestSupport
import Testing

/// Each load scenario about time through the real executable, small: what it counts and shows, never how fast it was.
@Suite struct LoadTimeTests {
    struct Report: Decodable {
        struct Bar: Decodable {
            let what, bar, measured: String
            let met: Bool
        }
        struct Percentiles: Decodable {
            let count: Int
            let p50_ms, p99_ms, max_ms: Double
        }
        let version: Int
        let scenario: String
        let bars: [Bar]
        /// All that the process has said.
        var said: String?
    }

    private struct Whole<Figures: Decodable>: Decodable {
        let figures: Figures
    }

    /// The JSON output of a scenario, which must succeed.
    static func load<Figures: Decodable>(
        _ arguments: [String], database: TestDatabase, as figures: Figures.Type, progress most: Int = 40
    ) async throws -> (report: Report, figures: Figures) {
        let process = try MillraceProcess(["load"] + arguments + ["--json"], database: database.url)
        let code = try await process.ended(within: .seconds(600))
        let said = process.output
        #expect(code == 0, "it says: \(said)")
        // Progress comes first, because both streams of the process go to one file.
        let lines = said.split(separator: "\n", omittingEmptySubsequences: false)
        let first = try #require(lines.firstIndex(of: "{"), "it says: \(said)")
        #expect(first < most, "progress takes \(first) lines")
        let json = Data(lines[first...].joined(separator: "\n").utf8)
        var report = try JSONDecoder().decode(Report.self, from: json)
        report.said = said
        #expect(report.version == 1)
        #expect(report.scenario == arguments[0])
        #expect(!report.bars.isEmpty)
        #expect(report.bars.allSatisfy { !$0.what.isEmpty && !$0.bar.isEmpty && !$0.measured.isEmpty })
        return (report, try JSONDecoder().decode(Whole<Figures>.self, from: json).figures)
    }

    struct Latency: Decodable {
        let tries: Int
        let hold_s, p50_ms, p99_ms, max_ms: Double
        let pooled: Bool
        let by_hand: Report.Percentiles?
    }

    @Test func `latency stands beside what hand-written statements allow`() async throws {
        try await withDatabase { database in
            let (report, figures) = try await Self.load(
                ["latency", "--tries", "5"], database: database, as: Latency.self)
            #expect(report.bars.count == 3)
            #expect(figures.tries == 5 && !figures.pooled)
            #expect(figures.p50_ms > 0 && figures.p50_ms <= figures.p99_ms && figures.p99_ms <= figures.max_ms)
            let byHand = try #require(figures.by_hand)
            #expect(byHand.count == 5 && byHand.p50_ms > 0)
            let connection = try await database.connect()
            // One beforehand, five timed, five by hand: each ended once, and nothing is left.
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 11)
            #expect(try await connection.int("select count(*) from millrace.job_0") == 11)
            #expect(try await connection.int("select count(*) from millrace.lease") == 0)
            // A worker gives its session up within 5 s, or says that a machine was too busy for that.
            let sessions = try await connection.int("select count(*) from millrace.session")
            #expect(sessions == 0 || report.said?.contains("a session could not be closed") == true)
            await connection.close()
        }
    }

    @Test func `latency of transactions that commit late counts from the commit`() async throws {
        try await withDatabase { database in
            let (report, figures) = try await Self.load(
                ["latency", "--tries", "6", "--callers", "3", "--hold", "300ms"], database: database, as: Latency.self)
            #expect(report.bars.count == 2)
            #expect(figures.hold_s == 0.3 && figures.by_hand == nil)
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 7)
            await connection.close()
        }
    }

    @Test(.enabled(if: TestPooler.program != nil, "pgbouncer is not installed: apt-get install pgbouncer"))
    func `latency through a pooler needs no session`() async throws {
        try await withDatabase { database in
            try await withPooler(to: database, servers: 10) { pooler in
                let (report, figures) = try await Self.load(
                    ["latency", "--tries", "4", "--pooler", pooler.location], database: database, as: Latency.self)
                #expect(figures.pooled && figures.tries == 4)
                #expect(report.bars.count == 1 && report.bars[0].bar == "≤ 1020 ms")
                let connection = try await database.connect()
                #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 9)
                #expect(try await connection.int("select count(*) from millrace.process where name like 'load-%'") == 1)
                await connection.close()
            }
        }
    }

    struct Scheduled: Decodable {
        let jobs, seconds, started: Int
        let p50_ms, p99_ms, earliest_ms, clock_unsure_ms: Double
    }

    @Test func `scheduled jobs all start, none before its time`() async throws {
        try await withDatabase { database in
            let (report, figures) = try await Self.load(
                ["scheduled", "--jobs", "400", "--seconds", "2"], database: database, as: Scheduled.self)
            #expect(figures.jobs == 400 && figures.seconds == 2 && figures.started == 400)
            #expect(figures.earliest_ms >= -figures.clock_unsure_ms)
            #expect(report.bars.count == 4)
            let early = try #require(report.bars.first { $0.what == "started before their time" })
            #expect(early.met)
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 400)
            #expect(
                try await connection.int(
                    """
                    select count(*) from millrace.history h join millrace.job j on j.id = h.id where h.started < j.run_at
                    """) == 0)
            #expect(
                try await connection.bool(
                    "select max(run_at) - min(run_at) between '1.9 s' and '2 s' from millrace.job"))
            await connection.close()
        }
    }

    struct Steady: Decodable {
        struct Sample: Decodable {
            struct Table: Decodable {
                let name: String
                let bytes, index_bytes, dead_rows: Int
            }
            let at_s: Double
            let jobs, hot_bytes, kept_bytes: Int
            let tables: [Table]
        }
        let rate, jobs, started, started_again: Int
        let latency, enqueue, behind: Report.Percentiles
        let quarters: [Report.Percentiles]
        let samples: [Sample]
    }

    @Test func `a steady rate is offered whole, and sizes are taken as it goes`() async throws {
        try await withDatabase { database in
            let (report, figures) = try await Self.load(
                ["steady", "--rate", "50", "--seconds", "4", "--callers", "3"], database: database, as: Steady.self)
            #expect(figures.rate == 50 && figures.jobs == 200)
            #expect(figures.started == 200 && figures.started_again == 0)
            #expect(figures.latency.count == 200 && figures.enqueue.count == 200 && figures.behind.count == 200)
            #expect(figures.quarters.map(\.count) == [50, 50, 50, 50])
            #expect(figures.samples.count >= 4)
            #expect(figures.samples.map(\.jobs) == figures.samples.map(\.jobs).sorted())
            for sample in figures.samples {
                #expect(sample.kept_bytes > 0)
                #expect(sample.hot_bytes == sample.tables.reduce(0) { $0 + $1.bytes + $1.index_bytes })
                #expect(Set(["ready", "lease", "timer", "slot", "beat"]).isSubset(of: sample.tables.map(\.name)))
            }
            #expect(report.bars.count == 5)
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 200)
            await connection.close()
        }
    }

    struct Pinned: Decodable {
        struct Walk: Decodable {
            let ready_entries_per_job: Double?
        }
        let calls, jobs, done_in_time, started_again: Int
        let pinned: Bool
        let quarters: [Report.Percentiles]
        let sorts: [String: [Report.Percentiles]]
        let walks: [Walk]
    }

    @Test(arguments: [true, false])
    func `mixed jobs are offered while a snapshot is held, or is not`(pinned: Bool) async throws {
        try await withDatabase { database in
            let (report, figures) = try await Self.load(
                ["pinned", "--rate", "100", "--seconds", "4", "--tens", "2"] + (pinned ? [] : ["--free"]),
                database: database,
                as: Pinned.self)
            #expect(figures.pinned == pinned && figures.calls == 20 && figures.jobs == 400)
            #expect(figures.done_in_time <= 360)
            #expect(figures.quarters.count == 4)
            #expect(Set(figures.sorts.keys) == ["plain", "scheduled", "limited", "replaced"])
            #expect(figures.sorts["plain"]?.reduce(0) { $0 + $1.count } == 200)
            #expect(figures.walks.count == 4)
            #expect(report.bars.count >= 2)
            let connection = try await database.connect()
            // Nine of ten are left, each ended well once; one in each ten failed before. What its workers did not come to in the time
            // they have is still there for another.
            let other = try await MillraceProcess.worker("other", database: database.url)
            try await eventually("all have ended") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 360
            }
            other.signal(SIGTERM)
            _ = try await other.ended()
            #expect(try await connection.int("select count(*) from millrace.history where outcome <> 1") == 40)
            #expect(try await connection.int("select count(*) from millrace.unique_lock where not ended") == 0)
            await connection.close()
        }
    }

    struct Late: Decodable {
        let late: Bool
        let hold_s, wait_s: Double
        let jobs, passed, started_again: Int
    }

    @Test func `a job that commits late runs after others have passed it`() async throws {
        try await withDatabase { database in
            let (report, figures) = try await Self.load(
                ["pinned", "--late", "--hold", "3s", "--jobs", "2000"], database: database, as: Late.self)
            #expect(figures.late && figures.hold_s == 3 && figures.jobs == 2000)
            #expect(figures.wait_s > 0 && figures.started_again == 0)
            #expect(report.bars.count == 2)
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 2002)
            // One beforehand, then the late one's number was drawn; nearly all others started before it.
            #expect(
                try await connection.int(
                    """
                    select count(*) from millrace.history h
                     where h.started < (select f.started from millrace.history f order by f.id offset 1 limit 1)
                    """) >= 1000)
            await connection.close()
        }
    }
}
