import Foundation
import Millrace
import Postgres
import Synchronization
import TestSupport
import Testing

private struct Order: Job {
    static let kind = "order"
    static let retries = RetryPolicy(attempts: 5, base: .milliseconds(1), cap: .milliseconds(2))
    var id: Int
    var fails = true
}

private struct Receipt: Codable, Equatable {
    var total: Int
}

private struct Declined: Error {}

/// Fails after its first step in its first run.
private func handle(_ order: Order, _ context: Context, counting done: Locked<Int>) async throws -> Verdict {
    context.progress(0.1, stage: "reserve")
    let total = try await context.step("reserve") {
        done.add()
        context.log("reserving", .warning)
        return 12
    }
    if order.fails, context.attempt == 1 { throw Declined() }
    context.progress(1)
    try context.result(Receipt(total: total))
    return .done
}

/// As another project would use steps, progress and results.
@Suite struct RunNotesTests {
    @Test func `on the bench a second run skips the steps of the first, in memory`() async throws {
        let worker = Worker(log: .silent)
        let done = Locked(0)
        worker.handle(Order.self) { try await handle($0, $1, counting: done) }
        let bench = try TestBench(worker: worker, database: .url("postgresql:///unused"))
        let notes = RunNotes()
        await #expect(throws: Declined.self) { try await bench.run(Order(id: 7), notes: notes) }
        #expect(notes.steps == ["reserve"])
        #expect(try notes.result(as: Receipt.self) == nil)
        #expect(try await bench.run(Order(id: 7), attempt: 2, notes: notes) == .done)
        #expect(done.value == 1)
        #expect(try notes.step("reserve", as: Int.self) == 12)
        #expect(try notes.result(as: Receipt.self) == Receipt(total: 12))
        #expect(notes.progress.map(\.fraction) == [0.1, 0.1, 1])
        #expect(notes.lines.map(\.text) == ["reserving"] && notes.lines.first?.level == .warning)
        await #expect(throws: Declined.self) { try await bench.run(Order(id: 8)) }
        #expect(done.value == 2)
        await bench.close()
    }

    @Test func `a caller waits for a typed result, and sees progress and lines`() async throws {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            let done = Locked(0)
            worker.handle(Order.self) { try await handle($0, $1, counting: done) }
            let bench = try TestBench(worker: worker, database: location)
            let millrace = try Client(database: location)
            let id = try await millrace.enqueue(Order(id: 7))
            #expect(try await millrace.result(of: id, as: Receipt.self) == nil)
            #expect(try await bench.drain().finished == 2)
            #expect(done.value == 1)
            #expect(try await millrace.wait(for: id, as: Receipt.self) == Receipt(total: 12))
            #expect(try await millrace.job(id)?.progress == JobProgress(fraction: 1))
            let lines = try await millrace.log(of: id)
            #expect(lines.map(\.line.text) == ["reserving"] && lines.first?.attempt == 1)
            let wrong = await #expect(throws: QueueError.self) { try await millrace.result(of: id, as: String.self) }
            #expect(wrong?.errorClass == .invalid && wrong?.description.contains("12") == false)
            let nobody = await #expect(throws: QueueError.self) { try await millrace.result(of: 4242, as: Int.self) }
            #expect(nobody?.errorClass == .notFound)
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `waiting for the result of a job that died is an error, and a fresh retry does its steps again`()
        async throws
    {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            let done = Locked(0)
            worker.handle(Order.self) { try await handle($0, $1, counting: done) }
            let bench = try TestBench(worker: worker, database: location)
            let millrace = try Client(database: location)
            let id = try await millrace.enqueue(Order(id: 7), maxAttempts: 1)
            _ = try await bench.drain()
            let died = await #expect(throws: QueueError.self) { try await millrace.wait(for: id, as: Receipt.self) }
            #expect(died?.errorClass == .died)
            #expect(try await millrace.retry(id))
            _ = try await bench.drain()
            #expect(done.value == 1)
            #expect(try await millrace.retry(id, fresh: true))
            _ = try await bench.drain()
            #expect(done.value == 2)
            await bench.close()
            await millrace.close()
        }
    }
}
