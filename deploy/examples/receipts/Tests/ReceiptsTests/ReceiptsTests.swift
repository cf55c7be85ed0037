import Foundation
import Millrace
import ReceiptJobs
import Testing

@Suite struct ReceiptsTests {
    private static func worker() -> Worker {
        let worker = Worker(log: .silent)
        register(on: worker) { _ in }
        return worker
    }

    @Test func `a receipt is sent`() async throws {
        let bench = try TestBench(worker: Self.worker(), database: .url("postgresql:///unused"))
        #expect(try await bench.run(SendReceipt(order: 7)) == .done)
    }

    @Test func `an order that does not exist is never tried again`() async throws {
        let bench = try TestBench(worker: Self.worker(), database: .url("postgresql:///unused"))
        await #expect(throws: NoSuchOrder.self) { try await bench.run(SendReceipt(order: 0)) }
    }

    /// With TEST_DATABASE_URL set to an empty database: the same through the queue.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["TEST_DATABASE_URL"] != nil))
    func `a receipt waits for its time and is then sent once`() async throws {
        let database = Database.url(ProcessInfo.processInfo.environment["TEST_DATABASE_URL"] ?? "")
        let worker = Worker(database: database, log: .silent)
        register(on: worker) { _ in }
        let bench = try TestBench(worker: worker, database: database)
        try await bench.prepare()
        let millrace = try Client(database: database)
        let id = try await millrace.enqueue(SendReceipt(order: 7), in: .seconds(300), unique: "receipt-7")
        #expect(try await millrace.enqueue(SendReceipt(order: 7), unique: "receipt-7") == id)
        #expect(try await bench.enqueued(SendReceipt.self).map(\.state) == [.scheduled])
        #expect(try await bench.drain().finished == 0)
        try await bench.advance(by: .seconds(360))
        #expect(try await bench.drain().finished == 1)
        #expect(try await millrace.job(id)?.state == .succeeded)
        await bench.close()
        await millrace.close()
    }
}
