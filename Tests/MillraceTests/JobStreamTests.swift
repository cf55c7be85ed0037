import Foundation
import Millrace
import Postgres
import TestSupport
import Testing

private struct ReadList: Job {
    static let kind = "list.read"
    static let retries = RetryPolicy(attempts: 3, base: .milliseconds(1), cap: .milliseconds(2))
    var names: [String]
    var fails = false
}

private struct Row: Codable, Sendable, Equatable {
    var name: String
}

private struct Broken: Error {}

/// Streams and states, as another project would use them.
@Suite struct JobStreamTests {
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

    @Test func `a reader gets each value while the job runs, and the stream ends with the job`() async throws {
        let read = Locked<[String]>([])
        try await with { worker in
            worker.handle(ReadList.self) { list, context in
                for name in list.names {
                    try await context.publish(Row(name: name))
                    try await context.state(name)
                    // It goes on when the reader has it.
                    try await eventually("\(name) is read") { read.value.last == name }
                }
                try await context.publish(Row(name: "last"))
                return .done
            }
        } _: { bench, client, _ in
            let id = try await client.enqueue(ReadList(names: ["a", "b"]))
            let reader = Task {
                var numbers: [Int64] = []
                for try await row in client.stream(of: id, as: Row.self) {
                    numbers.append(row.number)
                    read.withLock { $0.append(row.value.name) }
                }
                return numbers
            }
            _ = try await bench.drain()
            #expect(try await reader.value == [1, 2, 3])
            #expect(read.value == ["a", "b", "last"])
            #expect(try await client.state(of: id, as: String.self) == "b")
            // Later, and from a number on.
            var rest: [String] = []
            for try await row in client.stream(of: id, as: Row.self, from: 2) { rest.append(row.value.name) }
            #expect(rest == ["b", "last"])
            await #expect(throws: QueueError.self) {
                for try await _ in client.stream(of: id, as: Int.self) {}
            }
            await #expect(throws: QueueError.self) {
                for try await _ in client.stream(of: id + 1000, as: Int.self) {}
            }
        }
    }

    @Test func `a repeated run publishes what has a key once, and the rest again`() async throws {
        try await with { worker in
            worker.handle(ReadList.self) { list, context in
                for name in list.names { try await context.publish(Row(name: name), key: name) }
                try await context.publish(Row(name: "run"))
                try await context.state(context.attempt)
                if context.attempt == 1 { throw Broken() }
                return .done
            }
        } _: { bench, client, _ in
            let id = try await client.enqueue(ReadList(names: ["a", "b"]))
            try await eventually("it has ended") {
                try await bench.advance(by: .seconds(1))
                _ = try await bench.drain()
                return try await client.job(id)?.state == .succeeded
            }
            var rows: [String] = []
            for try await row in client.stream(of: id, as: Row.self) {
                rows.append("\(row.number) \(row.value.name) \(row.key ?? "-") \(row.attempt)")
            }
            #expect(rows == ["1 a a 1", "2 b b 1", "3 run - 1", "4 run - 2"])
            #expect(try await client.state(of: id, as: Int.self) == 2)
            await #expect(throws: QueueError.self) { try await client.state(of: id, as: Row.self) }
        }
    }

    @Test func `a full stream and a value that is too large end the job, and say so`() async throws {
        try await with { worker in
            worker.handle(ReadList.self) { list, context in
                try await context.publish(String(repeating: "x", count: Int(list.names[0]) ?? 0))
                return .done
            }
        } _: { bench, client, connection in
            for (size, words) in [("1048577", "more than the 1048576"), ("10", "the job's stream is full")] {
                let id = try await client.enqueue(ReadList(names: [size]))
                try await connection.run(
                    "insert into millrace.output (job, last, kept) values (\(id), 10000, 10000)")
                _ = try await bench.drain()
                let job = try #require(try await client.job(id))
                #expect(job.state == .dead && job.attempt == 1)
                #expect(job.errors.last?.contains(words) == true, "\(job.errors)")
            }
        }
    }

    @Test func `what an undo passes on its way publishes nothing`() async throws {
        try await with { worker in
            worker.handle(ReadList.self) { list, context in
                try await context.publish(Row(name: "begin"))
                try await context.step("reserve", undo: { (_: Int) in }) { 1 }
                try await context.state("reserved")
                throw Broken()
            }
        } _: { bench, client, connection in
            let id = try await client.enqueue(ReadList(names: []), maxAttempts: 1)
            try await eventually("all has ended") {
                while try await connection.bool("select more from millrace.flows_advance()") {}
                _ = try await bench.drain()
                return try await connection.int("select count(*) from millrace.undo") == 0
            }
            #expect(try await connection.column("select job from millrace.published") == ["\(id)"])
            #expect(try await connection.column("select job from millrace.output") == ["\(id)"])
        }
    }

    @Test func `without a database a bench keeps what was published`() async throws {
        try await with { worker in
            worker.handle(ReadList.self) { list, context in
                for name in list.names { try await context.publish(Row(name: name), key: name) }
                try await context.state(list.names.count)
                return .done
            }
        } _: { bench, _, _ in
            let notes = RunNotes()
            for attempt in 1...2 {
                let verdict = try await bench.run(ReadList(names: ["a", "b"]), attempt: attempt, notes: notes)
                #expect(verdict == .done)
            }
            let published = try notes.published(as: Row.self)
            #expect(published == [Row(name: "a"), Row(name: "b")])
            #expect(try notes.state(as: Int.self) == 2)
        }
    }
}
