import Foundation
import Millrace
import Postgres
import TestSupport
import Testing

private struct Order: Job {
    static let kind = "order"
    static let retries = RetryPolicy(attempts: 3, base: .milliseconds(1), cap: .milliseconds(2))
    var id: Int
    var fails = true
}

private struct Broken: Error {}

/// Steps that are undone, as another project would use them.
@Suite struct UndoTests {
    /// What was done and undone, in order.
    private final class Ledger: Sendable {
        let lines = Locked<[String]>([])
        func write(_ line: String) { lines.withLock { $0.append(line) } }
    }

    private func with(
        _ handle: @escaping @Sendable (Order, Context, Ledger) async throws -> Verdict,
        _ body: (TestBench, Client, Connection, Ledger) async throws -> Void
    ) async throws {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            let ledger = Ledger()
            worker.handle(Order.self) { try await handle($0, $1, ledger) }
            let bench = try TestBench(worker: worker, database: location)
            let client = try Client(database: location)
            let connection = try await database.connect()
            try await body(bench, client, connection, ledger)
            await connection.close()
            await client.close()
            await bench.close()
        }
    }

    /// Works until nothing waits any more. A drain ends when nothing is due, and others may be about to be told of an end.
    private func settle(_ bench: TestBench, _ connection: Connection) async throws {
        try await eventually("all has ended") {
            while try await connection.bool("select more from millrace.flows_advance()") {}
            _ = try await bench.drain()
            try await bench.advance(by: .seconds(5))
            return try await connection.int(
                "select (select count(*) from millrace.blocked) + (select count(*) from millrace.timer) + (select count(*) from millrace.ready) + (select count(*) from millrace.ending)"
            ) == 0
        }
    }

    private static func threeSteps(_ order: Order, _ context: Context, _ ledger: Ledger) async throws {
        for name in ["reserve", "charge", "pack"] {
            try await context.step(name, undo: { (value: String) in ledger.write("undo \(value)") }) {
                ledger.write(name)
                return "\(name) \(order.id)"
            }
        }
    }

    @Test func `what a job has done is undone when it dies, the last step first`() async throws {
        try await with { order, context, ledger in
            try await Self.threeSteps(order, context, ledger)
            if order.fails { throw Broken() }
            return .done
        } _: { bench, client, connection, ledger in
            let id = try await client.enqueue(Order(id: 7))
            try await settle(bench, connection)
            let done = ["reserve", "charge", "pack", "undo pack 7", "undo charge 7", "undo reserve 7"]
            #expect(ledger.lines.value == done)
            #expect(try await client.job(id)?.state == .dead)
            #expect(try await connection.int("select count(*) from millrace.step") == 0)
            #expect(try await connection.int("select count(*) from millrace.undo") == 0)
            #expect(try await connection.int("select count(*) from millrace.jobs where state = 'succeeded'") == 3)
            // Retried, it does all of it again, and all is undone again.
            #expect(try await connection.bool("select millrace.retry(\(id))"))
            try await settle(bench, connection)
            #expect(ledger.lines.value == done + done)
        }
    }

    @Test func `a worker that knows of no undo does not take one, and everybody else sees its kind`() async throws {
        try await with { order, context, ledger in
            try await context.step("charge", undo: { (_: Int) in ledger.write("undo") }) { 1 }
            return .discard("no stock")
        } _: { bench, client, connection, ledger in
            _ = try await bench.drain()  // the kind is known
            let id = try await client.enqueue(Order(id: 7))
            // Its own run, and none of the worker's: that would go on with the undo.
            try await connection.run(
                """
                select millrace.session_open(1, 'earlier', 'h', 1, '0', null, millrace.register_kinds('{order}', '{null}'), 10, false);
                select millrace.claim(1, 8, millrace.register_kinds('{order}', '{null}'), array[q.id], array[17], array[0], array[9223372036854775807], array[10], 10, '{}', '{}')
                  from millrace.queue q where q.name = 'default';
                select millrace.step_undoable('1-9-\(id)', 'charge', '1');
                select millrace.cancel(\(id));
                select millrace.finish(1, array[\(id)], array[9], array[2]::smallint[], array[j.kind], array[j.queue], array[1]::smallint[], array[0]::smallint[],
                    array[1], '{}', array[9], array[1]) from millrace.job j where j.id = \(id);
                """)
            while try await connection.bool("select more from millrace.flows_advance()") {}
            let undo = try await connection.int("select job from millrace.ready")
            #expect(
                try await connection.int(
                    """
                    select count(*) from millrace.claim(1, 16, millrace.register_kinds('{order}', '{null}'), (select array_agg(q.id) from millrace.queue q where q.name = 'default'),
                        array[17], array[0], array[9223372036854775807], array[10], 10, '{}', '{}')
                    """) == 0)
            #expect(try await connection.value("select kind from millrace.jobs where id = \(undo)") == "order")
            #expect(try await connection.column("select millrace.job_ids('ready', null, 'order')") == ["\(undo)"])
            #expect(try await connection.int("select count(*) from millrace.kind_list() where kind = 'order'") == 1)
            _ = try await bench.drain()
            #expect(ledger.lines.value == ["undo"])
        }
    }

    /// 1. A worker undoes the step and says so, and dies before the end of its run is on record. 2. The step is on record once more. 3. Another worker
    /// gets the undo.
    @Test func `an undo that runs once more leaves alone what came after it`() async throws {
        try await with { order, context, ledger in
            try await context.step("reserve", undo: { (_: Int) in ledger.write("undo reserve") }) { 1 }
            try await context.step("charge", undo: { (_: Int) in ledger.write("undo charge") }) { 2 }
            _ = try await context.event("paid", as: Bool.self)
            return .done
        } _: { bench, client, connection, ledger in
            let id = try await client.enqueue(Order(id: 7))
            _ = try await bench.drain()
            #expect(try await client.cancel(id))
            while try await connection.bool("select more from millrace.flows_advance()") {}
            let undo = try await connection.int("select job from millrace.ready")
            try await connection.run(
                """
                select millrace.session_open(1, 'other', 'h', 1, '0', null, '{}', 10, false);
                select millrace.claim(1, 8, array(select k.id from millrace.kind k), array[q.id], array[17], array[0], array[9223372036854775807], array[10], 10, '{}', '{}')
                  from millrace.queue q where q.name = 'default';
                select millrace.step_undone('1-9-\(undo)');
                select millrace.leases_return(1, array[9]);
                select millrace.step_set(\(id), 'charge', '3', adds => true);
                """)
            try await settle(bench, connection)
            #expect(ledger.lines.value == ["undo reserve"])
            #expect(try await connection.column("select name, value from millrace.steps(\(id))") == ["charge"])
            #expect(try await connection.value("select state from millrace.jobs where id = \(undo)") == "succeeded")
        }
    }

    @Test func `of a job that succeeds nothing is undone, and nothing is left`() async throws {
        try await with { order, context, ledger in
            try await Self.threeSteps(order, context, ledger)
            return .done
        } _: { bench, client, connection, ledger in
            let id = try await client.enqueue(Order(id: 7, fails: false))
            try await settle(bench, connection)
            #expect(ledger.lines.value == ["reserve", "charge", "pack"])
            #expect(try await connection.column("select id from millrace.job") == ["\(id)"])
            #expect(
                try await connection.int(
                    "select (select count(*) from millrace.undo) + (select count(*) from millrace.blocked)") == 0)
        }
    }

    @Test func `a job that is cancelled while it waits is undone, and an undo that fails for good says so`()
        async throws
    {
        try await with { order, context, ledger in
            try await context.step("reserve", undo: { (_: Int) in ledger.write("undo reserve") }) { 1 }
            try await context.step(
                "charge",
                undo: { (_: Int) in
                    ledger.write("undo charge")
                    throw Broken()
                }
            ) { 2 }
            _ = try await context.event("paid", as: Bool.self)
            return .done
        } _: { bench, client, connection, ledger in
            let id = try await client.enqueue(Order(id: 7))
            _ = try await bench.drain()
            #expect(try await client.cancel(id))
            try await settle(bench, connection)
            #expect(ledger.lines.value == ["undo charge", "undo charge", "undo charge", "undo reserve"])
            let dead = try await connection.value(
                "select j.options #>> '{undo,step}' from millrace.jobs v join millrace.job j on j.id = v.id where v.state = 'dead'"
            )
            #expect(dead == "charge")
            #expect(try await connection.column("select name from millrace.steps(\(id))") == ["charge"])
        }
    }

    @Test func `an undo that its handler does not come to any more fails with what was wrong`() async throws {
        let changed = Locked(false)
        try await with { order, context, ledger in
            if changed.value { return .done }
            try await context.step("reserve", undo: { (_: Int) in ledger.write("undo") }) { 1 }
            throw Broken()
        } _: { bench, client, connection, ledger in
            try await client.enqueue(Order(id: 7))
            for _ in 0..<2 {
                _ = try await bench.drain()
                try await bench.advance(by: .seconds(5))
            }
            changed.withLock { $0 = true }
            try await settle(bench, connection)
            let errors = try await connection.column(
                "select errors -> -1 ->> 'error' from millrace.jobs where state = 'dead'")
            #expect(errors.count <= 2 && ledger.lines.value.count <= 1)
            if ledger.lines.value.isEmpty {
                #expect(
                    errors.contains { $0.contains("step reserve could not be undone: the handler ended before it") })
            }
        }
    }
}
