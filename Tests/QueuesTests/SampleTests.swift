import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// The past: samples are taken, packed and read.
@Suite struct SampleTests {
    @Test func `what ended is told by queue, by kind and by version, once`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.open(1, version: "1.0")
            try await connection.open(2, version: "1.1")
            try await connection.beat(1, queue: "mail", kind: "mail.send", succeeded: 5, failed: 2, dead: 1, ms: 700)
            try await connection.beat(
                2, queue: "mail", kind: "mail.send", succeeded: 3, ms: 60, wait: 90, times: "9:1,2")
            try await connection.beat(2, queue: "slow", kind: "report", succeeded: 1, ms: 4000)
            try await connection.sample(after: "10 s")
            try await connection.beat(1, queue: "mail", kind: "mail.send", succeeded: 4, ms: 40)
            try await connection.sample(after: "10 s")
            try await connection.sample(after: "10 s")
            func totals(_ function: String, _ more: String = "") async throws -> String? {
                try await connection.records(
                    """
                    select sum(succeeded), sum(failed), sum(dead), sum(retried)
                      from millrace.\(function)(millrace.now() - interval '1 hour', millrace.now() + interval '1 minute', '10 s'\(more))
                    """
                ).first
            }
            #expect(try await totals("samples_queue") == "(13,2,1,1)")
            #expect(try await totals("samples_queue", ", 'mail'") == "(12,2,1,1)")
            #expect(try await totals("samples_queue", ", '*'") == "(13,2,1,1)")
            #expect(try await totals("samples_kind") == "(13,2,1,1)")
            #expect(try await totals("samples_kind", ", 'mail.send', '1.0'") == "(9,2,1,1)")
            #expect(try await totals("samples_kind", ", 'mail.send', '1.1'") == "(3,0,0,0)")
            #expect(try await totals("samples_kind", ", null, '1.1'") == "(4,0,0,0)")
            // 60 ms over three runs, 90 ms of waiting, three runs of about 24, 34 and 34 ms.
            let told = try await connection.records(
                """
                select round(run_s::numeric, 3), round(wait_s::numeric, 3), round(p50_s::numeric, 3), round(p95_s::numeric, 3)
                  from millrace.samples_kind(millrace.now() - interval '10 min', millrace.now(), '1 hour', 'mail.send', '1.1')
                """)
            #expect(told == ["(0.020,0.030,0.027,0.027)"])
        }
    }

    @Test func `kinds and builds are read from their own samples, and before there were any from those of queues`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.open(1, version: "1.0")
            try await connection.open(2, version: "1.1")
            for queue in ["mail", "slow"] {
                try await connection.beat(1, queue: queue, kind: "mail.send", succeeded: 5, failed: 2, dead: 1, ms: 700)
            }
            try await connection.sample(after: "10 s")
            // As a version before this one has sampled.
            try await connection.run(
                "delete from millrace.sample_fresh where what = 7; delete from millrace.sample_key where what = 7")
            func succeeded(_ build: String) async throws -> [String] {
                try await connection.column(
                    """
                    select sum(succeeded)::text from millrace.samples_kind(millrace.now() - interval '1 hour', millrace.now(), null, 'mail.send', '\(build)')
                    union all select succeeded::text from millrace.kind_past('mail.send', '1 hour') where version = '\(build)'
                    """)
            }
            #expect(try await succeeded("1.0") == ["10", "10"])
            for queue in ["mail", "slow"] {
                try await connection.beat(2, queue: queue, kind: "mail.send", succeeded: 3, failed: 1, ms: 60)
            }
            try await connection.beat(1, queue: "mail", kind: "mail.send", succeeded: 4, ms: 40)
            try await connection.sample(after: "10 s")
            #expect(try await succeeded("1.0") == ["14", "14"])
            #expect(try await succeeded("1.1") == ["6", "6"])
            let compared = try await connection.records(
                "select before_runs, before_failed, before_retried, after_runs, after_failed from millrace.versions_compare('1.0', '1.1')"
            )
            #expect(compared == ["(18,4,2,8,2)"])
            #expect(
                try await connection.int(
                    "select cardinality(keys) from millrace.sample_fresh where what = 7") == 3,
                "two builds and all together, however many queues")
        }
    }

    @Test func `of many who ask at once one takes the sample, and nobody the same one again`() async throws {
        try await withDatabase(.movableClock) { database in
            let (one, other) = (try await database.connect(), try await database.connect())
            try await one.run("begin")
            #expect(try await one.bool("select taken from millrace.sample_take()"))
            #expect(try await other.bool("select taken from millrace.sample_take()") == false)
            try await one.run("commit")
            #expect(try await other.int("select count(*) from millrace.sample_fresh where what = 1") == 1)
            try await other.run("select millrace.test_clock_advance('10 s')")
            #expect(try await other.bool("select taken from millrace.sample_take()"))
            try await other.run(
                "select millrace.test_clock_advance('-5 s'); insert into millrace.setting values ('samples', 'off')")
            try await other.run("select millrace.test_clock_advance('15 s')")
            #expect(try await other.bool("select taken from millrace.sample_take()") == false)
            await one.close()
            await other.close()
        }
    }

    @Test func `queues are sampled with what waits, runs and is paused, and an idle one is left out`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            for _ in 0..<5 { try await connection.enqueue("'test', queue => 'mail'") }
            try await connection.enqueue("'test', queue => 'mail', tenant => 'acme'")
            try await connection.enqueue("'test', queue => 'mail', run_at => millrace.now() + interval '1 day'")
            try await connection.enqueue("'test', queue => 'gone'")
            try await connection.claim(wanted: 2)
            try await connection.run("select millrace.pause('held'); select millrace.test_clock_advance('30 s')")
            try await connection.run(
                "delete from millrace.ready r using millrace.queue q where q.id = r.queue and q.name = 'gone'")
            try await connection.sample(after: "0")
            let rows = try await connection.records(
                """
                select queue, ready, due, scheduled, running, paused, oldest_s >= 30
                  from millrace.samples_queue(millrace.now() - interval '1 min', millrace.now() + interval '1 min', '10 s', '*') order by queue
                """)
            #expect(rows == ["(held,0,0,0,0,t,f)", "(mail,4,0,1,2,f,t)"])
            let whole = try await connection.records(
                "select queue, ready, scheduled, running, paused from millrace.samples_queue(millrace.now() - interval '1 min', millrace.now() + interval '1 min')"
            )
            #expect(whole == ["(,4,1,2,t)"])
            let workers = try await connection.records(
                "select worker, version, state, workers, slots from millrace.samples_worker(millrace.now() - interval '1 min', millrace.now() + interval '1 min', null, '*')"
            )
            #expect(workers == ["(worker-1,0,working,1,10)"])
        }
    }

    @Test func `a deep queue is counted up to a bound, and estimated beyond it`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run(
                """
                select millrace.enqueue('test', queue => 'deep') from generate_series(1, 30000);
                analyze millrace.ready
                """)
            // Both from the same transaction's own counts, so nothing that runs beside it is counted.
            try await connection.run("begin; select * from millrace.sample_take()")
            let read = try await connection.int(
                "select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relid = 'millrace.ready'::regclass"
            )
            try await connection.run("commit")
            #expect(read <= 35_000, "10,000 counted and 150 pages of the estimate")
            let ready = Double(
                try await connection.value(
                    "select ready from millrace.samples_queue(millrace.now() - interval '1 min', millrace.now() + interval '1 min', null, 'deep')"
                ) ?? "")
            #expect((10_000...45_000).contains(ready ?? 0), "\(ready ?? 0)")
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `packed samples say what a plain sum of them says`(seed: UInt64) async throws {
        try await withConnection(.movableClock) { connection in
            let past = PastModel(seed: seed, hours: 33, samples: 250)
            try await connection.run(past.script)
            try await connection.run("do $$ begin while millrace.sample_fold(3) loop end loop; end $$")
            let left = try await connection.column("select distinct step from millrace.sample_pack order by 1")
            #expect(left == ["10", "60", "600"], "all steps were made")
            for (step, span) in [(600, 0..<33), (3600, 0..<33), (60, 30..<33), (10_800, 0..<33), (30, 32..<33)] {
                for queue in PastModel.queues {
                    let (since, until) = (past.origin + span.lowerBound * 3600, past.origin + span.upperBound * 3600)
                    let said = try await connection.query(
                        "select date_part('epoch', at)::bigint, ready, oldest_s, succeeded, failed, run_s from millrace.samples_queue(to_timestamp($1), to_timestamp($2), make_interval(secs => $3), $4)",
                        [.float8(Double(since)), .float8(Double(until)), .float8(Double(step)), .text(queue)]
                    ) { row throws(PostgresError) in
                        PastModel.Point(
                            at: Int(try row.int(0)), ready: try row.double(1), oldest: try row.double(2),
                            succeeded: Int(try row.int(3)), failed: Int(try row.int(4)), run: row.optionalDouble(5))
                    }
                    let expected = past.points(of: queue, step: step, since: since, until: until)
                    #expect(said.map(\.at) == expected.map(\.at), "\(queue), \(step) s")
                    for (one, other) in zip(said, expected) { #expect(one.agrees(with: other), "\(one) \(other)") }
                }
            }
        }
    }

    @Test func `what is kept no longer is deleted, and ten seconds only when the minutes exist`() async throws {
        try await withConnection(.movableClock) { connection in
            let past = PastModel(seed: 7, hours: 33, samples: 60)
            try await connection.run(past.script)
            try await connection.run("do $$ begin while millrace.sample_fold() loop end loop; end $$")
            func packs(_ step: Int) async throws -> Int {
                try await connection.int("select count(*) from millrace.sample_pack where step = \(step)")
            }
            #expect(try await packs(60) > 0)
            try await connection.run("select millrace.test_clock_advance('16 days')")
            try await connection.sample(after: "10 s")
            try await connection.run("do $$ begin while millrace.sample_fold() loop end loop; end $$")
            try await connection.run("select millrace.test_clock_advance('31 hours')")
            try await connection.sample(after: "10 s")
            try await connection.run("do $$ begin while millrace.sample_fold() loop end loop; end $$")
            #expect(
                try await connection.int(
                    "select count(*) from millrace.sample_pack where at < millrace.now() - interval '15 days 6 hours'")
                    == 0)
            #expect(
                try await connection.int(
                    "select count(*) from millrace.sample_fresh where at < millrace.now() - interval '4 hours'") == 0)
        }
    }

    @Test func `a call gives at most 500 points, and a range that is none is refused`() async throws {
        try await withConnection(.movableClock) { connection in
            func steps(_ range: String, _ step: String = "null") async throws -> String? {
                try await connection.records(
                    "select p.step_s, p.level from millrace.sample_plan(millrace.now() - interval '\(range)', millrace.now(), \(step), 500) p"
                ).first
            }
            #expect(try await steps("1 hour") == "(10,10)")
            #expect(try await steps("24 hours") == "(180,60)")
            #expect(try await steps("14 days") == "(3600,600)")
            #expect(try await steps("14 days", "'10 s'") == "(3600,600)")
            #expect(try await steps("1 hour", "'10 min'") == "(600,600)")
            let refusal = try await connection.refusal(
                of: "select * from millrace.samples_queue(millrace.now(), millrace.now() - interval '1 hour')")
            #expect(refusal?.sqlState == "22023")
            #expect(refusal?.message == "since must be before until, and both must be given")
        }
    }
}

extension Connection {
    fileprivate func open(_ session: Int, version: String) async throws {
        try await run(
            """
            select millrace.register_kinds('{mail.send,report}', '{mail,slow}');
            select millrace.session_open(\(session), 'worker-\(session)', 'host', 1, '\(version)', null, array(select id from millrace.kind), 10, false)
            """)
    }

    /// A beat with a tally, as a worker sends it.
    fileprivate func beat(
        _ session: Int, queue: String, kind: String, succeeded: Int = 0, failed: Int = 0, dead: Int = 0, ms: Int = 0,
        wait: Int? = nil, times: String? = nil
    ) async throws {
        let waits = wait == nil ? "null" : "\(succeeded + failed)"
        try await run(
            """
            select millrace.beat(\(session), 'working', 0, 0, 0, array[millrace.queue_id('\(queue)')], array[millrace.kind_id('\(kind)')],
                array[\(succeeded)], array[\(failed)], array[\(dead)], array[0], array[0], array[\(ms)]::bigint[],
                wait_ms => array[\(wait.map(String.init) ?? "null")]::bigint[], waits => array[\(waits)]::int[],
                times => array[\(times.map { "'\($0)'" } ?? "null")]::text[])
            """)
    }

    fileprivate func sample(after span: String) async throws {
        try await run("select millrace.test_clock_advance('\(span)'); select * from millrace.sample_take()")
    }
}

/// Samples of two queues at random times, and what charts should show of them: sums in a list, with nothing packed.
struct PastModel {
    static let queues = ["busy", "calm"]

    struct Sample {
        var at: Int
        /// By queue: ready, tenths of a second of the oldest, succeeded, failed, ms.
        var numbers: [String: [Int]]
    }

    struct Point: CustomStringConvertible {
        var at: Int
        var ready, oldest: Double
        var succeeded, failed: Int
        var run: Double?

        /// Counts are exact; means may have lost a 250th by being packed twice.
        func agrees(with other: Point) -> Bool {
            func near(_ one: Double, _ other: Double) -> Bool {
                abs(one - other) <= 0.005 * max(abs(one), abs(other)) + 1e-9
            }
            return at == other.at && succeeded == other.succeeded && failed == other.failed
                && near(oldest, other.oldest)
                && near(ready, other.ready) && near(run ?? 0, other.run ?? 0)
        }

        var description: String { "at \(at): \(ready) ready, \(oldest) s, \(succeeded)+\(failed), \(run ?? 0) s" }
    }

    /// A border of every step's chunks.
    let origin: Int
    let hours: Int
    private(set) var samples: [Sample] = []

    init(seed: UInt64, hours: Int, samples count: Int) {
        var random = SeededRandom(seed)
        // 2000-01-01 is where chunks are counted from.
        let chunk = 180 * 600
        origin = 946_684_800 + 9000 * chunk
        self.hours = hours
        for slot in Set((0..<count).map { _ in Int.random(in: 0..<hours * 360, using: &random) }).sorted() {
            var numbers: [String: [Int]] = [:]
            for queue in Self.queues where queue == "busy" || Bool.random(using: &random) {
                let size = [1, 90, 20_000, 40_000_000].randomElement(using: &random) ?? 1
                numbers[queue] = (0..<5).map {
                    $0 == 3 ? Int.random(in: 0...2, using: &random) : Int.random(in: 0...size, using: &random)
                }
            }
            samples.append(Sample(at: origin + slot * 10, numbers: numbers))
        }
    }

    /// Puts them into the database as `sample_take` would, and the clock two hours behind the last.
    var script: String {
        let rows = samples.map { sample in
            let places = sample.numbers.sorted { $0.key < $1.key }
            let keys = places.map { "pg_temp.key(1, '\($0.key)')" }.joined(separator: ", ")
            let ends = places.map { "pg_temp.key(2, '\($0.key)')" }.joined(separator: ", ")
            let gauges = places.map { "0,\($0.value[0]),0,0,0,0,\($0.value[1])" }.joined(separator: ",")
            let sums = places.map { "\($0.value[2]),\($0.value[3]),0,0,0,\($0.value[4]),0,0" }.joined(separator: ",")
            return """
                insert into millrace.sample_fresh values
                    (1, to_timestamp(\(sample.at)), array[pg_temp.key(1, '')\(keys.isEmpty ? "" : ", " + keys)], array[1,0,0,0,0,0,0\(gauges.isEmpty ? "" : "," + gauges)]);
                \(ends.isEmpty ? "" : "insert into millrace.sample_fresh values (2, to_timestamp(\(sample.at)), array[\(ends)], array[\(sums)]);")
                """
        }
        return """
            update millrace.test_clock set shift = to_timestamp(\(origin + hours * 3600 + 7200)) - clock_timestamp();
            insert into millrace.sample_done (what, step, upto)
            select r.what, s, to_timestamp(\(origin)) from millrace.sample_rules() r cross join unnest(array[10, 60, 600]) s where r.what <> 6 or s > 10;
            insert into millrace.sample_key (what, name, detail, queue, seen_at)
            select 1, n, '', '', millrace.now() from unnest('{"",busy,calm}'::text[]) n
            union all select 2, 'kind', '1', n, millrace.now() from unnest('{busy,calm}'::text[]) n;
            create function pg_temp.key(w int, n text) returns int language sql as 'select id from millrace.sample_key where what = w and (what = 1 and name = n or queue = n and what = 2)';
            """ + rows.joined(separator: "\n")
    }

    func points(of queue: String, step: Int, since: Int, until: Int) -> [Point] {
        let taken = samples.filter { $0.at >= since && $0.at < until }
        return Dictionary(grouping: taken) { $0.at / step * step }.sorted { $0.key < $1.key }.map { at, samples in
            let numbers = samples.compactMap { $0.numbers[queue] }
            func sum(_ column: Int) -> Int { numbers.reduce(0) { $0 + $1[column] } }
            let runs = sum(2) + sum(3)
            return Point(
                at: at, ready: Double(sum(0)) / Double(samples.count),
                oldest: Double(numbers.map { $0[1] }.max() ?? 0) / 10, succeeded: sum(2), failed: sum(3),
                run: runs == 0 ? nil : Double(sum(4)) / Double(runs) / 1000)
        }
    }
}
