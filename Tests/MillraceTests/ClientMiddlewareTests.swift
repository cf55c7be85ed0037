import Foundation
import Millrace
import Postgres
import TestSupport
import Testing

private struct Ship: Job {
    static let kind = "ship"
    var order: Int
}

private struct Hidden: Job {
    static let kind = "hidden"
    static let encrypted = true
    var code: String
}

private struct Closed: Error, CustomStringConvertible {
    let description = "the shop is closed"
}

@Suite struct ClientMiddlewareTests {
    @Test func `a middleware sees each job with its arguments and options, and may change it`() async throws {
        try await withDatabase { database in
            let millrace = try Client(database: .url(database.url))
            millrace.use { job in
                let order = try JSONDecoder().decode(Ship.self, from: Data(job.args)).order
                job.tags.append("order-\(order)")
                job.metadata = Array(#"{"by": "\#(job.queue ?? "none")"}"#.utf8)
            }
            // What is added first sees it first.
            millrace.use { job in job.tags.append("seen \(job.tags.count)") }
            try await millrace.enqueue(Ship(order: 7), queue: "port", tags: ["own"])
            try await millrace.enqueue(NewJob(kind: "ship", args: Array(#"{"order": 8}"#.utf8)))
            let rows = try await jobs(in: database)
            #expect(
                rows == [
                    #"{own,order-7,"seen 2"} {"by": "port"}"#, #"{order-8,"seen 1"} {"by": "none"}"#,
                ])
            await millrace.close()
        }
    }

    @Test func `of many jobs each goes through it, with options of its own or without`() async throws {
        try await withDatabase { database in
            let millrace = try Client(database: .url(database.url))
            millrace.use { job in job.tenant = "acme" }
            try await millrace.enqueue(contentsOf: (1...3).map { Ship(order: $0) }, queue: "port")
            let tenants = try await column(
                "select j.tenant || ' ' || count(*) from millrace.job j group by j.tenant", in: database)
            #expect(tenants == ["acme 3"])
            millrace.use { job in
                job.tags = [String(decoding: job.args, as: UTF8.self).contains("5") ? "five" : "other"]
            }
            try await millrace.enqueue(contentsOf: (4...6).map { Ship(order: $0) }, queue: "port")
            let rows = try await jobs(in: database).suffix(3)
            #expect(rows == ["{other} {}", "{five} {}", "{other} {}"])
            await millrace.close()
        }
    }

    @Test func `what a middleware refuses is not enqueued, and of many jobs none is`() async throws {
        try await withDatabase { database in
            let millrace = try Client(database: .url(database.url))
            millrace.use { job in
                job.tags = ["checked"]
                if String(decoding: job.args, as: UTF8.self).contains("13") { throw Closed() }
            }
            let refusal = await #expect(throws: QueueError.self) { try await millrace.enqueue(Ship(order: 13)) }
            #expect(refusal?.errorClass == .refused && refusal?.description.contains("the shop is closed") == true)
            await #expect(throws: QueueError.self) {
                try await millrace.enqueue(contentsOf: [Ship(order: 1), Ship(order: 13), Ship(order: 2)])
            }
            // The database refuses the last one: the others are gone too.
            millrace.use { job in
                if String(decoding: job.args, as: UTF8.self).contains("99") { job.priority = 99 }
            }
            let late = await #expect(throws: QueueError.self) {
                try await millrace.enqueue(contentsOf: [Ship(order: 1), Ship(order: 99)])
            }
            #expect(late?.errorClass == .invalid)
            #expect(try await jobs(in: database).isEmpty)
            await millrace.close()
        }
    }

    @Test func `it sees plain arguments of a kind whose arguments are encrypted after it`() async throws {
        try await withDatabase { database in
            let key = Data(repeating: 7, count: 32).base64EncodedString()
            let millrace = try Client(database: .url(database.url), keys: .list("k:\(key)"))
            millrace.use { job in
                #expect(String(decoding: job.args, as: UTF8.self).contains("swordfish"))
                job.tags = ["seen"]
            }
            try await millrace.enqueue(Hidden(code: "swordfish"))
            try await millrace.enqueue(contentsOf: [Hidden(code: "swordfish")])
            let seen = try await column(
                "select j.args::text from millrace.job j where j.tags = '{seen}'", in: database)
            #expect(seen.count == 2 && seen.allSatisfy { !$0.contains("swordfish") })
            await millrace.close()
        }
    }

    private func jobs(in database: TestDatabase) async throws -> [String] {
        try await column(
            "select coalesce(j.tags, '{}')::text || ' ' || coalesce(j.metadata, '{}')::text from millrace.job j order by j.id",
            in: database)
    }

    private func column(_ select: String, in database: TestDatabase) async throws -> [String] {
        let connection = try await database.connect()
        let found = try await connection.column(select)
        await connection.close()
        return found
    }
}
