import Millrace
import Postgres
import TestSupport
import Testing

private struct Row: Job {
    static let kind = "row"
    static let retries = RetryPolicy(attempts: 3, base: .milliseconds(1), cap: .milliseconds(2))
    var n: Int
}

private struct Lazy: Error, CustomStringConvertible {
    var description: String { "the whole chunk failed" }
}

/// What a chunk handler has seen.
private actor Calls {
    private(set) var all: [[Int]] = []
    func add(_ items: [ChunkItem<Row>]) { all.append(items.map(\.job.n)) }
}

@Suite struct ChunkTests {
    private static func worker(
        _ database: TestDatabase, chunks: Int = 10, waiting: Duration = .milliseconds(100),
        _ body: @escaping @Sendable ([ChunkItem<Row>]) async throws -> [Verdict]
    ) -> Worker {
        let worker = Worker(database: .url(database.url), slots: 20, log: .silent)
        worker.handle(chunks: chunks, of: Row.self, waiting: waiting, body)
        return worker
    }

    @Test func `one call gets many jobs, and each gets its own verdict`() async throws {
        try await withDatabase(.movableClock) { database in
            let calls = Calls()
            // Nobody's time is up here: only a full chunk begins.
            let worker = Self.worker(database, chunks: 4, waiting: .seconds(3600)) { items in
                await calls.add(items)
                return items.map { item in
                    switch item.job.n {
                    case 1: .discard("one is not wanted")
                    case 2: .snooze(for: .hours(1))
                    case 3 where item.context.attempt == 1: .retry(after: .hours(2), reason: "not yet")
                    default: .done
                    }
                }
            }
            let millrace = try Client(database: .url(database.url))
            var ids: [Int64] = []
            for n in 0..<4 { ids.append(try await millrace.enqueue(Row(n: n))) }
            let bench = try TestBench(worker: worker, database: .url(database.url))
            #expect(try await bench.drain().finished == 4)
            #expect(await calls.all.map { $0.sorted() } == [[0, 1, 2, 3]])
            var states: [JobState?] = []
            for id in ids { states.append(try await millrace.job(id)?.state) }
            #expect(states == [.succeeded, .dead, .scheduled, .scheduled])
            #expect(try await millrace.job(ids[3])?.errors == ["not yet"])
            #expect(try await millrace.job(ids[2])?.attempt == 0, "a snooze uses up nothing")
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `a chunk that does not fill begins when its time is up`() async throws {
        try await withDatabase(.movableClock) { database in
            let calls = Calls()
            let worker = Self.worker(database, waiting: .milliseconds(1)) { items in
                await calls.add(items)
                return items.map { _ in .done }
            }
            let millrace = try Client(database: .url(database.url))
            try await millrace.enqueue(Row(n: 7))
            let bench = try TestBench(worker: worker, database: .url(database.url))
            #expect(try await bench.drain().finished == 1)
            #expect(await calls.all == [[7]])
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `a thrown error and a wrong number of verdicts count for every job`() async throws {
        try await withDatabase(.movableClock) { database in
            let worker = Self.worker(database, chunks: 3, waiting: .seconds(3600)) { items in
                if items[0].context.attempt == 1 { throw Lazy() }
                return [.done]
            }
            let millrace = try Client(database: .url(database.url))
            try await millrace.enqueue(contentsOf: [Row(n: 1), Row(n: 2), Row(n: 3)], maxAttempts: 2)
            let bench = try TestBench(worker: worker, database: .url(database.url))
            let connection = try await database.connect()
            #expect(try await bench.drain().finished >= 3)
            try await bench.advance(by: .minutes(1))
            _ = try await bench.drain()
            let errors = try await connection.column(
                "select errors from millrace.jobs where state = 'dead'")
            #expect(errors.count == 3)
            for error in errors {
                #expect(error.contains("the whole chunk failed"))
                #expect(error.contains("a chunk of 3 and returned 1 verdicts"))
            }
            await connection.close()
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `arguments that do not fit fail their own job only, and an expired one is left out`() async throws {
        try await withDatabase(.movableClock) { database in
            let calls = Calls()
            let worker = Self.worker(database, chunks: 2, waiting: .seconds(3600)) { items in
                await calls.add(items)
                return items.map { _ in .done }
            }
            let connection = try await database.connect()
            let ids = try await connection.column(
                """
                select * from unnest(array[
                    millrace.enqueue('row', '{"n": 1}'),
                    millrace.enqueue('row', '{"n": "one"}', max_attempts => 1),
                    millrace.enqueue('row', '{"n": 3}', options => '{"expires_at": "2020-01-01 12:00+00"}'),
                    millrace.enqueue('row', '{"n": 2}')]) i(id) order by id
                """)
            let bench = try TestBench(worker: worker, database: .url(database.url))
            #expect(try await bench.drain().finished == 4)
            #expect(await calls.all.map { $0.sorted() } == [[1, 2]])
            let states = try await connection.column(
                "select j.state from unnest(array[\(ids.joined(separator: ","))]) with ordinality u(id, n) cross join lateral millrace.job(u.id) j order by u.n"
            )
            #expect(states == ["succeeded", "dead", "cancelled", "succeeded"])
            await connection.close()
            await bench.close()
        }
    }

    @Test func `a cancelled job hears of it, and the chunk goes on until all are`() async throws {
        try await withDatabase { database in
            let calls = Calls()
            let worker = Self.worker(database, chunks: 2, waiting: .seconds(3600)) { items in
                await calls.add(items)
                while items.allSatisfy({ $0.context.cancelReason == nil }), !Task.isCancelled { await Task.yield() }
                await calls.add(items)
                // Sleeps until the task itself is cancelled.
                try? await Task.sleep(for: .seconds(3600))
                return items.map { $0.context.cancelReason == .requested ? .retry() : .done }
            }
            let millrace = try Client(database: .url(database.url))
            let running = Task { try await worker.run(handlesSignals: false) }
            let ids = [try await millrace.enqueue(Row(n: 1)), try await millrace.enqueue(Row(n: 2))]
            try await eventually("the chunk runs") { await calls.all.count == 1 }
            #expect(try await millrace.cancel(ids[0]))
            try await eventually("its context says so") { await calls.all.count == 2 }
            #expect(try await millrace.job(ids[0])?.state == .running, "the other still wants the call")
            #expect(try await millrace.cancel(ids[1]))
            #expect(try await millrace.wait(for: ids[0]).state == .cancelled)
            #expect(try await millrace.wait(for: ids[1]).state == .cancelled)
            worker.drain()
            #expect(try await running.value.finished == 2)
            await millrace.close()
        }
    }

    /// The worker would wait an hour for running jobs, so a job that comes back at once has not started.
    @Test(.timeLimit(.minutes(10)))
    func `a drain gives back the jobs that wait for company, and uses up no attempt`() async throws {
        try await withDatabase { database in
            let calls = Calls()
            let worker = Worker(
                database: .url(database.url), slots: 20, drainTimeout: .seconds(3600), log: .silent)
            worker.handle(chunks: 10, of: Row.self, waiting: .seconds(3600)) { items in
                await calls.add(items)
                return items.map { _ in .done }
            }
            let connection = try await database.connect()
            try await connection.run(
                "select millrace.enqueue_bulk('row', array(select '{\"n\": 1}' from generate_series(1, 5)))")
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("five wait together") {
                try await connection.int("select coalesce(sum(n), 0) from millrace.lease") == 5
            }
            worker.drain()
            let report = try await running.value
            #expect(report.handedBack == 5 && report.abandoned == 0)
            #expect(await calls.all.isEmpty)
            #expect(
                try await connection.int("select count(*) from millrace.ready where attempt = 0 and crashes = 0") == 5)
            await connection.close()
        }
    }

    /// 1. A chunk runs. 2. Its worker is taken for dead, and the jobs are given back. 3. The worker hears of it; they run again.
    @Test func `a chunk whose lease is lost is told so and cancelled, and what it says is refused`() async throws {
        try await withDatabase { database in
            let calls = Calls()
            let lost = Calls()
            let worker = Self.worker(database, chunks: 2, waiting: .seconds(3600)) { items in
                await calls.add(items)
                guard await calls.all.count == 1 else { return items.map { _ in .done } }
                try? await Task.sleep(for: .seconds(3600))
                await lost.add(items.filter { $0.context.cancelReason == .leaseLost })
                return items.map { _ in .discard("stale") }
            }
            let connection = try await database.connect()
            try await connection.run(
                "select millrace.enqueue('row', jsonb_build_object('n', n)) from generate_series(1, 2) n")
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("the chunk runs") { await calls.all.count == 1 }
            try await eventually("the worker is given up by its latest beat") {
                try await connection.int(
                    "select count(*) from millrace.beat b, millrace.rescue(b.session, b.beat) r where r.jobs = 2") == 1
            }
            try await eventually("both have succeeded") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 2
            }
            worker.drain()
            #expect(try await running.value.refused == 2)
            #expect(await lost.all.map { $0.sorted() } == [[1, 2]])
            #expect(try await connection.int("select count(*) from millrace.history where outcome = 3") == 0)
            await connection.close()
        }
    }

    @Test func `a job that has timed out in a chunk is tried again, and so is its neighbour`() async throws {
        try await withDatabase { database in
            let worker = Self.worker(database, chunks: 2, waiting: .milliseconds(200)) { _ in
                try await Task.sleep(for: .seconds(3600))
                return []
            }
            let connection = try await database.connect()
            try await connection.run(
                "select millrace.enqueue('row', '{\"n\": 1}', max_attempts => 1, options => '{\"timeout\": 0.05}') from generate_series(1, 2)"
            )
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("both are dead") {
                try await connection.int(
                    "select count(*) from millrace.history where outcome = 3 and error like '%timed out%'") == 2
            }
            worker.drain()
            _ = try await running.value
            await connection.close()
        }
    }

    @Test func `a job that may have crashed workers comes alone`() async throws {
        try await withDatabase { database in
            let calls = Calls()
            let worker = Self.worker(database, chunks: 3, waiting: .milliseconds(50)) { items in
                await calls.add(items)
                return items.map { _ in .done }
            }
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.enqueue('row', jsonb_build_object('n', n)) from generate_series(1, 5) n;
                update millrace.ready set crashes = 2, lane = millrace.lane_of(lane, 2::smallint, false)
                 where job in (select id from millrace.job where (args ->> 'n')::int <= 2)
                """)
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("all are done") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 5
            }
            worker.drain()
            _ = try await running.value
            let seen = await calls.all
            #expect(seen.contains([1]) && seen.contains([2]))
            await connection.close()
        }
    }

    @Test func `the bench runs a chunk without a database, all middleware around each job`() async throws {
        let calls = Calls()
        let worker = Worker(database: .url("postgresql:///unused"), log: .silent)
        worker.handle(chunks: 2, of: Row.self, waiting: .seconds(3600)) { items in
            await calls.add(items)
            return items.map { $0.job.n == 2 ? .discard("two") : .done }
        }
        worker.use { _, next in
            let verdict = try await next()
            return verdict == .done ? .snooze(for: .seconds(1)) : verdict
        }
        let bench = try TestBench(worker: worker, database: .url("postgresql:///unused"))
        let verdicts = try await bench.run(chunk: [Row(n: 1), Row(n: 2), Row(n: 3)])
        #expect(verdicts == [.snooze(for: .seconds(1)), .discard("two"), .snooze(for: .seconds(1))])
        #expect(await calls.all.map { $0.sorted() } == [[1, 2], [3]])
        #expect(try await bench.run(Row(n: 2)) == .discard("two"))
        await bench.close()
    }
}
