import Foundation
import Millrace
import Postgres
import TestSupport
import Testing

private struct Invoice: Job {
    static let kind = "invoice"
    static let retries = RetryPolicy(attempts: 1)
    static let searchable = ["order.id"]
    static let redacted = ["card.number"]
    struct Order: Codable, Sendable { var id: Int }
    struct Card: Codable, Sendable { var number: String }
    var order: Order
    var card: Card
}

private struct Unpaid: Error, CustomStringConvertible {
    var order: Int
    var description: String { "order \(order) is not paid" }
}

/// What a kind's type declares, from Swift to SQL.
@Suite struct DeclaredTests {
    @Test func `a worker declares a kind's fields and redactions, and tells what has failed before it is gone`()
        async throws
    {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            worker.handle(Invoice.self) { job, _ in throw Unpaid(order: job.order.id) }
            let bench = try TestBench(worker: worker, database: location)
            let millrace = try Client(database: location)
            // Once its run has ended, the worker has surely declared the kind.
            _ = try await millrace.enqueue(Invoice(order: .init(id: 40), card: .init(number: "4111")))
            _ = try await bench.drain()
            let ids = try await [41, 42].asyncMap { order in
                try await millrace.enqueue(Invoice(order: .init(id: order), card: .init(number: "4111")))
            }
            _ = try await bench.drain()
            let connection = try await database.connect()
            let found = try await connection.column(
                "select unnest(ids) from millrace.jobs_by_field('invoice', 'order.id', '42')")
            #expect(found == ["\(ids[1])"], "\(ids)")
            #expect(
                try await connection.value("select args from millrace.job_shown(\(ids[0]))")
                    == #"{"card": "[redacted]", "order": {"id": 41}}"#)
            #expect(
                try await connection.records("select kind, class, gist, failed, dead from millrace.failure_groups()")
                    == ["(invoice,error,\"order # is not paid\",3,3)"])
            await connection.close()
            await bench.close()
            await millrace.close()
        }
    }
}

extension Sequence where Element: Sendable {
    fileprivate func asyncMap<Value>(_ transform: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}
