import Foundation
import Millrace
import Postgres
import TestSupport
import Testing

private struct PlaceOrder: Workflow {
    static let kind = "order.place"
    static let retries = RetryPolicy(attempts: 2, base: .milliseconds(1), cap: .milliseconds(2))
    struct Result: Codable, Equatable {
        var number: Int
        var paid: Int?
    }
    var number: Int
}

private struct Square: Workflow {
    static let kind = "square"
    typealias Result = Int
    var n: Int
}

/// A job that listens where it should not.
private struct Listen: Job {
    static let kind = "listen"
    var to: Int64
}

/// Workflows and their handles, as another project would use them.
@Suite struct WorkflowTests {
    private func with(
        _ set: (Worker) -> Void, _ body: (TestBench, Client, Connection) async throws -> Void
    ) async throws {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            set(worker)
            let bench = try TestBench(worker: worker, database: location)
            let client = try Client(database: location)
            let connection = try await database.connect()
            try await body(bench, client, connection)
            await connection.close()
            await client.close()
            await bench.close()
        }
    }

    private static func payable(_ worker: Worker) {
        worker.handle(workflow: PlaceOrder.self) { order, context in
            if order.number < 0 { throw Discarded("there is no such order") }
            try await context.state("unpaid")
            let paid = try await context.signal("paid", as: Int.self, timeout: .seconds(86_400))
            try await context.publish(paid ?? 0)
            return PlaceOrder.Result(number: order.number, paid: paid)
        }
    }

    @Test func `an id is one job, however many start it at once`() async throws {
        try await with(Self.payable) { bench, client, connection in
            let jobs = try await withThrowingTaskGroup(of: Int64.self) { group in
                for number in 1...12 {
                    group.addTask { try await client.start(PlaceOrder(number: number), id: "order-7").job }
                }
                return try await group.reduce(into: Set<Int64>()) { $0.insert($1) }
            }
            #expect(jobs.count == 1)
            #expect(try await connection.int("select count(*) from millrace.job") == 1)
            #expect(try await client.start(PlaceOrder(number: 7), id: "order-8").job != jobs.first)
            let found = try #require(try await client.handle(for: PlaceOrder.self, id: "order-7"))
            #expect(found.job == jobs.first)
            #expect(try await client.handle(for: PlaceOrder.self, id: "order-9") == nil)
            #expect(try await client.handle(for: Square.self, id: "order-7") == nil)
        }
    }

    @Test func `an id stays its job's after the end, and is free when it is held no longer`() async throws {
        try await with(Self.payable) { bench, client, connection in
            let order = try await client.start(PlaceOrder(number: 7), id: "order-7", idHeldFor: .seconds(86_400))
            try await order.signal("paid", 5)
            _ = try await bench.drain()
            #expect(try await order.result() == PlaceOrder.Result(number: 7, paid: 5))
            try await bench.advance(by: .seconds(80_000))
            let again = try await client.start(PlaceOrder(number: 7), id: "order-7")
            #expect(again.job == order.job)
            #expect(try await again.result().paid == 5)
            #expect(try await client.handle(for: PlaceOrder.self, id: "order-7")?.job == order.job)
            try await bench.advance(by: .seconds(10_000))
            #expect(try await client.handle(for: PlaceOrder.self, id: "order-7") == nil)
            let next = try await client.start(PlaceOrder(number: 7), id: "order-7")
            #expect(next.job != order.job)
            #expect(try await connection.int("select count(*) from millrace.job") == 2)
        }
    }

    @Test func `a signal to a handle reaches its own job, before or while it waits, and no other`() async throws {
        try await with { worker in
            Self.payable(worker)
            worker.handle(Listen.self) { job, context in
                _ = try await context.event("paid", key: "millrace.job.\(job.to)", as: Int.self)
                return .done
            }
        } _: { bench, client, connection in
            let first = try await client.start(PlaceOrder(number: 1), id: "1")
            let second = try await client.start(PlaceOrder(number: 2), id: "2")
            let thief = try await client.enqueue(Listen(to: second.job), maxAttempts: 1)
            _ = try await bench.drain()
            #expect(try await client.job(thief)?.state == .dead)
            #expect(try await client.job(thief)?.errors.last?.contains("another job") == true)
            #expect(try await first.state(as: String.self) == "unpaid")
            #expect(try await second.signal("paid", 5, id: "evt-1"))
            #expect(try await !second.signal("paid", 5, id: "evt-1"))
            // The same id for another job is another signal.
            let third = try await client.start(PlaceOrder(number: 3), id: "3")
            #expect(try await third.signal("paid", 6, id: "evt-1"))
            try await connection.run("select millrace.signals_tell()")
            _ = try await bench.drain()
            #expect(try await second.result().paid == 5)
            #expect(try await third.result().paid == 6)
            #expect(try await first.status()?.state == .scheduled)
            // Nobody tells it: its time is over.
            try await bench.advance(by: .seconds(90_000))
            _ = try await bench.drain()
            #expect(try await first.result().paid == nil)
            let late = await #expect(throws: QueueError.self) { try await first.signal("paid", 7) }
            #expect(late?.errorClass == .conflict)
        }
    }

    @Test func `a handle reads what its job publishes, cancels it, and runs it again`() async throws {
        try await with(Self.payable) { bench, client, connection in
            let order = try await client.start(PlaceOrder(number: 7), id: "order-7")
            _ = try await bench.drain()
            #expect(try await order.cancel())
            #expect(try await !order.cancel())
            let error = await #expect(throws: QueueError.self) { try await order.result() }
            #expect(error?.errorClass == .died)
            #expect(try await client.start(PlaceOrder(number: 7), id: "order-7").job == order.job)
            #expect(try await order.retry())
            _ = try await bench.drain()
            try await order.signal("paid", 5)
            try await connection.run("select millrace.signals_tell()")
            _ = try await bench.drain()
            var values: [Int] = []
            for try await value in order.stream(as: Int.self) { values.append(value.value) }
            #expect(values == [5])
            #expect(try await order.result().paid == 5)
        }
    }

    @Test func `a workflow that is discarded dies at its first attempt, with the reason`() async throws {
        try await with(Self.payable) { bench, client, _ in
            let order = try await client.start(PlaceOrder(number: -1), id: "none")
            _ = try await bench.drain()
            let error = await #expect(throws: QueueError.self) { try await order.result() }
            #expect(error?.description.contains("there is no such order") == true)
            #expect(try await order.status()?.attempt == 1)
        }
    }

    @Test func `a workflow starts others and has their results`() async throws {
        try await with { worker in
            worker.handle(workflow: Square.self) { square, context in
                guard square.n > 2 else { return square.n * square.n }
                let one = try await context.child(Square(n: 2))
                let more = try await context.children([Square(n: 1), Square(n: 2)])
                return ([one] + more).compactMap(\.result).reduce(0, +)
            }
        } _: { bench, client, connection in
            let square = try await client.start(Square(n: 3), id: "three")
            try await eventually("it has ended") {
                while try await connection.bool("select more from millrace.flows_advance()") {}
                _ = try await bench.drain()
                try await bench.advance(by: .seconds(1))
                return try await square.status()?.state == .succeeded
            }
            #expect(try await square.result() == 9)
        }
    }
}
