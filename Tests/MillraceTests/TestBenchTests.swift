import Foundation
import Millrace
import Postgres
import TestSupport
import Testing

private struct Order: Job {
    static let kind = "order"
    static let retries = RetryPolicy(attempts: 1)
    var id: Int
}

private struct Payment: Codable, Sendable, Equatable {
    var amount: Int
}

private struct Piece: Job {
    static let kind = "piece"
    static let retries = RetryPolicy(attempts: 1)
    var n: Int
}

private struct Broken: Error {}

/// As another project would test handlers that wait.
@Suite struct TestBenchTests {
    private struct World: Sendable {
        let connection: Connection
        let bench: TestBench
        let client: Client

        func state(_ id: Int64) async throws -> String? {
            try await connection.value("select state from millrace.job(\(id))")
        }
    }

    private func with(_ set: (Worker) -> Void, _ body: (World) async throws -> Void) async throws {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            set(worker)
            let bench = try TestBench(worker: worker, database: location)
            let client = try Client(database: location)
            let connection = try await database.connect()
            try await body(World(connection: connection, bench: bench, client: client))
            await connection.close()
            await client.close()
            await bench.close()
        }
    }

    @Test func `a drain delivers a signal and a person's answer, and goes on to the end`() async throws {
        try await with { worker in
            worker.handle(Order.self) { order, context in
                let payment = try await context.event("paid", key: "order-\(order.id)", as: Payment.self)
                let answer = try await context.approval("large", of: order)
                try context.result((payment?.amount ?? 0) + (answer?.approved == true ? 1 : 0))
                return .done
            }
        } _: { world in
            for n in 1...5 {
                let id = try await world.client.enqueue(Order(id: n))
                _ = try await world.bench.drain()
                #expect(try await world.state(id) == "scheduled")
                try await world.client.signal("paid", key: "order-\(n)", payload: Payment(amount: 40))
                _ = try await world.bench.drain()
                let question = try #require(try await world.client.approvals().first)
                #expect(try await world.client.answer(question.id, approved: true, by: "ada"))
                _ = try await world.bench.drain()
                #expect(try await world.client.result(of: id, as: Int.self) == 41)
            }
        }
    }

    @Test func `a drain works through the jobs that a run waits for, and through what follows`() async throws {
        try await with { worker in
            worker.handle(Order.self) { order, context in
                let pieces = try await context.children((1...3).map { Piece(n: $0) }, as: Int.self)
                try context.result(pieces.reduce(0) { $0 + ($1.result ?? 0) })
                return .done
            }
            worker.handle(Piece.self) { piece, context in
                try context.result(piece.n)
                return .done
            }
        } _: { world in
            for n in 1...5 {
                let id = try await world.client.enqueue(Order(id: n))
                let next = try await world.client.enqueue(Piece(n: 7), after: After([id]))
                #expect(try await world.bench.drain().finished >= 5)
                #expect(try await world.client.result(of: id, as: Int.self) == 6)
                #expect(try await world.state(next) == "succeeded")
            }
        }
    }

    @Test func `a wait is no error to middleware`() async throws {
        let errors = Locked(0)
        let runs = Locked(0)
        try await with { worker in
            worker.use { context, next in
                runs.add()
                do {
                    return try await next()
                } catch {
                    errors.add()
                    throw error
                }
            }
            worker.handle(Order.self) { order, context in
                guard order.id > 0 else { throw Broken() }
                return .discard("\(try await context.event("paid", as: Payment.self)?.amount ?? 0)")
            }
        } _: { world in
            let id = try await world.client.enqueue(Order(id: 1))
            _ = try await world.bench.drain()
            #expect(runs.value == 1 && errors.value == 0)
            try await world.client.signal("paid", payload: Payment(amount: 5))
            _ = try await world.bench.drain()
            #expect(try await world.state(id) == "dead")
            #expect(runs.value == 2 && errors.value == 0)
            _ = try await world.client.enqueue(Order(id: 0))
            _ = try await world.bench.drain()
            #expect(errors.value == 1)
        }
    }

    @Test func `on the bench a run takes signals, answers and the ends of its jobs, and waits for the rest`()
        async throws
    {
        let worker = Worker(log: .silent)
        worker.handle(Order.self) { order, context in
            guard let paid = try await context.event("paid", key: "order-\(order.id)", as: Payment.self) else {
                return .discard("nobody paid")
            }
            let answer = try await context.approval("large", of: order)
            guard answer?.approved == true else { return .discard(answer?.comment ?? "nobody answered") }
            let pieces = try await context.children([Piece(n: 1), Piece(n: 2)], as: Int.self)
            let more = try await context.signal("more", as: Int.self) ?? 0
            try context.result(pieces.reduce(paid.amount + more) { $0 + ($1.succeeded ? $1.result ?? 0 : 1000) })
            return .done
        }
        let bench = try TestBench(worker: worker, database: .url("postgresql:///unused"))
        let notes = RunNotes()
        try notes.signal("paid", key: "order-8", payload: Payment(amount: 1))
        #expect(try await bench.run(Order(id: 7), notes: notes) == .waiting(step: "paid order-7"))
        try notes.signal("paid", key: "order-7", payload: Payment(amount: 40))
        #expect(try await bench.run(Order(id: 7), notes: notes) == .waiting(step: "large"))
        try notes.answer("large", Approval(approved: true, by: "ada"))
        try notes.end(Piece.self, with: [5])
        #expect(try await bench.run(Order(id: 7), notes: notes) == .waiting(step: "children piece"))
        notes.fail(Piece.self)
        #expect(try await bench.run(Order(id: 7), notes: notes) == .waiting(step: "signal more"))
        try notes.signal("more", payload: 3)
        #expect(try await bench.run(Order(id: 7), notes: notes) == .done)
        #expect(try notes.result(as: Int.self) == 1048)
        #expect(try notes.spawned(Piece.self).map(\.n) == [1, 2])

        let late = RunNotes()
        late.timeOut("paid order-9")
        #expect(try await bench.run(Order(id: 9), notes: late) == .discard("nobody paid"))
        await bench.close()
    }
}
