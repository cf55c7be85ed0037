import Foundation
import Postgres
import TestSupport
import Testing

/// The scenarios about amounts, small: what they report and leave, never how fast they are.
@Suite struct LoadAmountTests {
    private struct Report: Decodable {
        struct Bar: Decodable {
            var what: String
            var bar: String
            var measured: String
            var met: Bool
        }

        struct Costs: Decodable {
            var jobs: Int
            var seconds: Double
            var per_second: Double
            var wal_bytes_per_job: Double
            var worker_us_per_job: Double?
        }

        struct Pair: Decodable {
            var fleet: String
            var callers: Int
            var calls: [Costs]
            var by_hand: [Costs]
        }

        struct Sight: Decodable {
            var claim_100_ms: Double
            var claim_1000_ms: Double
            var enqueues_per_second: Double
        }

        struct Figures: Decodable {
            var single: [Pair]?
            var bulk: Pair?
            var few: Sight?
            var many: Sight?
            var queue: String?
            var kept: Bool?
            var bytes_per_job: Double?
            var spread: [Costs]?
            var plain: [Costs]?
            var by_hand: [Costs]?
            var worker: [Costs]?
            var busy: [Double]?
        }

        var scenario: String
        var figures: Figures
        var bars: [Bar]
    }

    private func load(_ arguments: [String], in database: TestDatabase) async throws -> Report {
        let process = try MillraceProcess(["load"] + arguments + ["--json"], database: database.url)
        let code = try await process.ended(within: .seconds(600))
        let lines = process.output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(code == 0, "\(process.output)")
        // On a pipe, progress is a few lines.
        let start = try #require(lines.firstIndex(of: "{"), "\(process.output)")
        #expect(start < 60)
        let report = try JSONDecoder().decode(Report.self, from: Data(lines[start...].joined(separator: "\n").utf8))
        #expect(report.scenario == arguments.first)
        #expect(report.bars.allSatisfy { !$0.measured.contains("nan") })
        return report
    }

    @Test func `enqueue reports each fleet and number of callers beside the inserts by hand`() async throws {
        try await withDatabase { database in
            let report = try await load(
                ["enqueue", "--seconds", "1", "--callers", "3", "--rounds", "1", "--jobs", "2500", "--chunk", "1000"],
                in: database)
            let single = try #require(report.figures.single)
            #expect(single.map { "\($0.fleet) \($0.callers)" } == ["busy 1", "busy 3", "idle 1", "idle 3"])
            for costs in single.flatMap({ $0.calls + $0.by_hand }) {
                #expect(costs.jobs > 0 && costs.wal_bytes_per_job > 100)
            }
            let bulk = try #require(report.figures.bulk)
            #expect((bulk.calls + bulk.by_hand).map(\.jobs) == [2500, 2500])
            #expect(report.bars.count == 5)
            let connection = try await database.connect()
            let enqueued = single.flatMap { $0.calls + $0.by_hand }.reduce(5000) { $0 + $1.jobs }
            // All of it was enqueued, the queue's first job too, what 1 and 3 callers called ten times of each statement before they were
            // measured, busy and idle, and one before each of two idle turns by hand; and nothing of it waits.
            let others = 1 + 2 * (1 + 3) * 2 * 10 + 2 * 2
            #expect(
                try await connection.int(
                    "select count(*) from millrace.job j join millrace.kind k on k.id = j.kind where k.name = 'practice.nothing'"
                ) == enqueued + others)
            #expect(try await connection.int("select count(*) from millrace.ready") == 0)
            await connection.close()
        }
    }

    @Test func `a backlog is filled, looked at near and far, and kept`() async throws {
        try await withDatabase { database in
            let arguments = ["backlog", "--jobs", "20000", "--claims", "10", "--seconds", "1"]
            let report = try await load(arguments, in: database)
            #expect(report.bars.count == 3)
            #expect(report.figures.few != nil && report.figures.many != nil && report.figures.kept == true)
            #expect((report.figures.bytes_per_job ?? 0) > 100)
            let queue = try #require(report.figures.queue)
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.ready") >= 20_000)
            #expect(try await connection.int("select count(*) from millrace.session") == 0)
            // Another run makes its own queue, and clears it only if told to.
            let kept = try await connection.int("select count(*) from millrace.ready")
            let again = try await load(arguments + ["--no-keep"], in: database)
            #expect(again.figures.queue != queue && again.figures.kept == false)
            #expect(try await connection.int("select count(*) from millrace.ready") == kept)
            for queue in [queue, again.figures.queue ?? ""] {
                // The smaller backlog's database ends as the queue does; other tests have databases of their own beside it.
                let suffix = queue.split(separator: ".").last.map(String.init) ?? ""
                #expect(!suffix.isEmpty)
                #expect(
                    try await connection.int(
                        "select count(*) from pg_database where datname = 'millrace_load_\(suffix)'") == 0,
                    "the smaller backlog's database is left")
            }
            await connection.close()
        }
    }

    @Test func `many queues are drained, beside one with as many jobs`() async throws {
        try await withDatabase { database in
            let report = try await load(["queues", "--queues", "40", "--each", "25"], in: database)
            let costs = [report.figures.spread, report.figures.plain, report.figures.by_hand].compactMap { $0?.first }
            #expect(costs.map(\.jobs) == [1000, 1000, 1000])
            #expect(costs.map { $0.worker_us_per_job != nil } == [true, true, false])
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 3000)
            #expect(
                try await connection.int("select count(*) from millrace.queue where name like 'load.queues.%'") == 41)
            await connection.close()
        }
    }

    @Test func `tenants, priorities and queues are mixed, and all drained`() async throws {
        try await withDatabase { database in
            let report = try await load(
                ["mixed", "--jobs", "3000", "--tenants", "3", "--priorities", "4", "--queues", "2"], in: database)
            #expect(report.figures.spread?.first?.jobs == 3000 && report.bars.count == 1)
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 1") == 9000)
            #expect(
                try await connection.int("select count(distinct (queue, tenant, lane)) from millrace.job") == 3 * 4 * 2
                    + 1)
            await connection.close()
        }
    }

    @Test func `slots are counted busy from what history says`() async throws {
        try await withDatabase { database in
            let report = try await load(["slots", "--jobs", "400", "--slots", "20", "--sleep", "10"], in: database)
            let busy = try #require(report.figures.busy)
            #expect(busy.count == 1 && busy.allSatisfy { $0 > 0 && $0 <= 1.1 })
            #expect(report.figures.worker?.first?.jobs == 400 && report.figures.by_hand?.first?.jobs == 400)
        }
    }
}
