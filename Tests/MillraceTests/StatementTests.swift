import CPostgres
import Foundation
import Millrace
import Postgres
import TestSupport
import Testing

private struct Paid: Job {
    static let kind = "paid"
    var order: Int
    var note: String
}

private struct Secret: Job {
    static let kind = "secret"
    static let encrypted = true
    var code: String
}

private struct Order: Job {
    static let kind = "order"
    var number: Int
}

/// Another driver than ours: plain libpq, which binds everything as text without a type.
private final class PlainDriver {
    struct Refused: Error { let message: String }

    private let connection: OpaquePointer?

    init(_ url: String) throws {
        connection = PQconnectdb(url)
        guard PQstatus(connection) == CONNECTION_OK else { throw Refused(message: "no connection") }
    }

    deinit { PQfinish(connection) }

    @discardableResult
    func run(_ text: String, _ values: [String?] = []) throws -> [[String?]] {
        let copies = values.map { $0.flatMap { strdup($0) } }
        defer { for copy in copies { free(copy) } }
        let result = copies.map { UnsafePointer($0) }.withUnsafeBufferPointer { values in
            PQexecParams(connection, text, Int32(values.count), nil, values.baseAddress, nil, nil, 0)
        }
        defer { PQclear(result) }
        let status = PQresultStatus(result)
        guard status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK else {
            throw Refused(message: PQresultErrorMessage(result).map { String(cString: $0) } ?? "?")
        }
        return (0..<PQntuples(result)).map { row in
            (0..<PQnfields(result)).map { column in
                PQgetisnull(result, row, column) == 1
                    ? nil : PQgetvalue(result, row, column).map { String(cString: $0) }
            }
        }
    }

    func run(_ statement: SQLStatement) throws -> [[String?]] {
        try run(statement.text, statement.parameters.map(\.text))
    }

    func number(_ statement: SQLStatement) throws -> Int64 {
        Int64(try run(statement).first?.first?.flatMap { $0 } ?? "") ?? -1
    }
}

@Suite struct StatementTests {
    @Test func `a job is enqueued in the transaction of another driver, and a rollback takes it back`() async throws {
        try await withDatabase { database in
            let driver = try PlainDriver(database.url)
            let millrace = try Client(database: .url(database.url))
            try driver.run("create table orders (id int primary key)")
            let statement = try Paid(order: 7, note: #"a "quote", a \ and a $1"#).enqueueStatement(unique: "paid-7")
            try driver.run("begin")
            try driver.run("insert into orders values (7)")
            let lost = try driver.number(statement)
            try driver.run("rollback")
            #expect(try await millrace.job(lost) == nil)
            let orders = try driver.run("select id from orders")
            #expect(orders.isEmpty)
            try driver.run("begin")
            try driver.run("insert into orders values (7)")
            let id = try driver.number(statement)
            #expect(try await millrace.job(id) == nil, "nobody else sees it before the commit")
            try driver.run("commit")
            #expect(try await millrace.job(id)?.state == .ready)
            #expect(try driver.number(statement) == id, "the key is held")
            let worker = Worker(database: .url(database.url), log: .silent)
            worker.handle(Paid.self) { job, _ in
                #expect(job.order == 7 && job.note == #"a "quote", a \ and a $1"#)
                return .done
            }
            let bench = try TestBench(worker: worker, database: .url(database.url))
            #expect(try await bench.drain().finished == 1)
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `everything that can be said of a job arrives`() async throws {
        try await withDatabase { database in
            let driver = try PlainDriver(database.url)
            let first = try driver.number(Paid(order: 1, note: "").enqueueStatement())
            let at = Date(timeIntervalSince1970: 4_102_444_800.25)
            let id = try driver.number(
                Paid(order: 2, note: "").enqueueStatement(
                    at: at, unique: "k", uniqueFor: .seconds(60), onConflict: .error, queue: "mail", priority: 2,
                    tenant: "acme", limitKey: "lk", maxAttempts: 3, tags: ["a", #"b"\"#, "c,d", "{}"],
                    metadata: ["trace": "t1"]))
            let row = try driver.run(
                """
                select extract(epoch from run_at)::text, queue, priority, tenant, limit_key, max_attempts, tags = $2::text[],
                       metadata ->> 'trace', unique_key from millrace.job($1::int8)
                """, ["\(id)", SQLStatement.Parameter.texts(["a", #"b"\"#, "c,d", "{}"]).text])
            #expect(row == [["4102444800.250000", "mail", "2", "acme", "lk", "3", "t", "t1", "k"]])
            let waiting = try driver.number(
                Paid(order: 3, note: "").enqueueStatement(in: .seconds(3600), after: [first]))
            #expect(try driver.run("select state from millrace.job($1::int8)", ["\(waiting)"]) == [["blocked"]])
            #expect(throws: PlainDriver.Refused.self) {
                try driver.number(Paid(order: 2, note: "").enqueueStatement(unique: "k", onConflict: .error))
            }
        }
    }

    @Test func `many are enqueued, cancelled and run again by statements`() async throws {
        try await withDatabase { database in
            let driver = try PlainDriver(database.url)
            let many = try driver.run(
                .enqueue(contentsOf: (1...50).map { Paid(order: $0, note: "{\"\($0)\"}") }, queue: "bulk"))
            let first = try #require(many.first?.first?.flatMap { Int64($0) })
            #expect(many == [["\(first)", "\(first + 49)"]])
            #expect(
                try driver.run(
                    "select count(*) from millrace.jobs where queue = 'bulk' and args ->> 'note' like '{\"%'") == [
                        ["50"]
                    ])
            #expect(try driver.run(.cancel(first)) == [["t"]])
            #expect(try driver.run(.cancel(first)) == [["f"]])
            #expect(try driver.run(.retry(first)) == [["t"]])
            #expect(try driver.run(.cancel(first)) == [["t"]])
            #expect(try driver.run(.retry(first, fresh: true)) == [["t"]])
        }
    }

    @Test func `many that a handler enqueues by a statement belong to its run's trace`() async throws {
        try await withDatabase { database in
            let millrace = try Client(database: .url(database.url))
            let place = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            let worker = Worker(database: .url(database.url), log: .silent)
            worker.handle(Order.self) { _, context in
                let driver = try PlainDriver(database.url)
                #expect(context.traceparent == place)
                try driver.run("begin")
                let two = try driver.run(.enqueue(contentsOf: [Paid(order: 1, note: ""), Paid(order: 2, note: "")]))
                #expect(two.first?.count == 2)
                try driver.run("commit")
                return .done
            }
            try await millrace.enqueue(Order(number: 7), options: EnqueueOptions(traceparent: place))
            let bench = try TestBench(worker: worker, database: .url(database.url))
            #expect(try await bench.drain().finished == 1)
            let driver = try PlainDriver(database.url)
            let carried = try driver.run(
                "select metadata ->> 'traceparent' from millrace.jobs where kind = 'paid' order by id")
            #expect(carried == [[place], [place]])
            await bench.close()
            await millrace.close()
        }
    }

    @Test(arguments: ["\"$user\", public", "trap, public, pg_catalog"])
    func `a statement means the same on every search_path, and calls nothing of others`(path: String) async throws {
        try await withDatabase(.planted) { database in
            let owner = try await database.connect()
            try await owner.run(TrapSchema.script)
            await owner.close()
            let driver = try PlainDriver(database.url)
            try driver.run("set search_path = \(path)")
            let id = try driver.number(
                Paid(order: 2, note: "").enqueueStatement(
                    in: .seconds(60), unique: "k", queue: "mail", priority: 2, tags: ["a"], metadata: ["trace": "t1"]))
            #expect(try driver.number(Paid(order: 2, note: "").enqueueStatement(unique: "k")) == id)
            _ = try driver.run(.enqueue(contentsOf: [Paid(order: 3, note: "")], in: .seconds(60), limitKey: "l"))
            #expect(try driver.run(.cancel(id)) == [["t"]])
            #expect(try driver.run(.retry(id)) == [["t"]])
            #expect(try driver.run(.retry(id, fresh: true)).count == 1)
            #expect(try await PlantedOverloads.sprung(in: database) == [])
        }
    }

    @Test func `an encrypted kind is encrypted, and without a key there is no statement`() throws {
        let keys = EncryptionKeys.list("k1:" + Data(repeating: 7, count: 32).base64EncodedString())
        let sealed = try Secret(code: "4711").enqueueStatement(keys: keys)
        #expect(!sealed.parameters.contains { $0.text?.contains("4711") == true })
        #expect(throws: QueueError.self) { try Secret(code: "4711").enqueueStatement(keys: .none) }
    }
}
