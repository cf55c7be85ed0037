import Foundation
import Millrace
import Postgres
import TestSupport
import Testing

private struct Greet: Job {
    static let kind = "greet"
    static let retries = RetryPolicy(attempts: 3, base: .milliseconds(10), cap: .milliseconds(20))
    var name: String
}

private struct Refused: JobFailure {
    var retry: Retry { .never }
}

/// Through the public door alone, as a stranger would.
@Suite struct MillraceTests {
    @Test func `a job goes from enqueue to done, and its caller can wait for it`() async throws {
        try await withDatabase { database in
            let millrace = try Client(database: .url(database.url))
            let greeted = Greeted()
            let worker = Worker(database: .url(database.url), log: .silent)
            worker.handle(Greet.self, queue: "hall") { job, context in
                await greeted.add("\(job.name) \(context.attempt) \(context.queue)")
                return .done
            }
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("the worker has made the kind's queue known") { [database] in
                let connection = try await database.connect()
                let known = try await connection.int("select count(*) from millrace.kind where queue is not null")
                await connection.close()
                return known == 1
            }
            let id = try await millrace.enqueue(Greet(name: "Ada"), unique: "ada")
            let status = try await millrace.wait(for: id)
            #expect(status.state == .succeeded)
            #expect(status.queue == "hall")
            #expect(await greeted.all == ["Ada 1 hall"])
            worker.drain()
            #expect(try await running.value.finished == 1)
            await millrace.close()
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `a program leaves a schema with rooms to millrace`() async throws {
        try await withDatabase { database in
            let millrace = try Client(database: .url(database.url))
            try await millrace.migrate()  // it has this version: there is nothing to do
            let connection = try await database.connect()
            let rooms = try await connection.int("select count(*) from millrace.rooms_installed()")
            #expect(rooms > 0)
            try await connection.run(
                """
                delete from millrace.migration m
                 where m.line = 'core' and m.number = (select max(o.number) from millrace.migration o where o.line = 'core')
                """)
            await connection.close()
            let refusal = await #expect(throws: QueueError.self) { try await millrace.migrate() }
            #expect(refusal?.errorClass == .schema && refusal?.description.contains("has the rooms") == true)
            await millrace.close()
        }
    }

    @Test func `a program makes the schema of the queue, if there is a database`() async throws {
        try await withDatabase(.empty) { database in
            let millrace = try Client(database: .url(database.url))
            for _ in 1...2 { try await millrace.migrate() }
            let id = try await millrace.enqueue(Greet(name: "Ada"))
            #expect(try await millrace.job(id)?.state == .ready)
            await millrace.close()
        }
        let nowhere = try Client(database: .url("postgresql://nobody@/none?host=/nowhere"))
        let refusal = await #expect(throws: QueueError.self) { try await nowhere.migrate() }
        #expect(refusal?.errorClass == .unreachable)
        await nowhere.close()
    }

    @Test func `middleware stands around every run, the first outermost`() async throws {
        let worker = Worker(log: .silent)
        let seen = Greeted()
        worker.use { _, next in
            await seen.add("outer in")
            defer { Task { await seen.add("outer out") } }
            return try await next()
        }
        worker.use { context, next in
            await seen.add("inner \(context.kind)")
            return try await next()
        }
        worker.handle(Greet.self) { _, _ in
            await seen.add("handler")
            return .snooze(for: .seconds(5))
        }
        let bench = try TestBench(worker: worker, database: .url("postgresql:///unused"))
        #expect(try await bench.run(Greet(name: "Ada")) == .snooze(for: .seconds(5)))
        #expect(await seen.all.prefix(3) == ["outer in", "inner greet", "handler"])
        await bench.close()
    }

    @Test func `a failure that can never succeed is dead at once, and can be driven again`() async throws {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            let failing = Greeted()
            worker.handle(Greet.self) { _, _ in
                if await failing.all.isEmpty {
                    await failing.add("failed")
                    throw Refused()
                }
                return .done
            }
            let bench = try TestBench(worker: worker, database: location)
            let millrace = try Client(database: location)
            let id = try await millrace.enqueue(Greet(name: "Ada"))
            _ = try await bench.drain()
            let dead = try #require(await millrace.job(id))
            #expect(dead.state == .dead && dead.errors.count == 1)
            #expect(try await millrace.retry(id))
            _ = try await bench.drain()
            #expect(try await millrace.job(id)?.state == .succeeded)
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `dead jobs are redriven by what they died of`() async throws {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            worker.handle(Greet.self) { job, _ in .discard(job.name) }
            let bench = try TestBench(worker: worker, database: location)
            let millrace = try Client(database: location)
            try await millrace.enqueue(contentsOf: [Greet(name: "gone away"), Greet(name: "gone"), Greet(name: "deaf")])
            _ = try await bench.drain()
            let redriven = try await millrace.redrive(kind: "greet", error: "Gone")
            #expect(redriven.retried == 2 && redriven.refused == 0 && redriven.withoutArguments == 0)
            #expect(try await bench.enqueued(Greet.self).map(\.job.name).sorted() == ["gone", "gone away"])
            // It is taken back: they are dead as before.
            #expect(try await millrace.undo(redriven) == 2)
            #expect(try await bench.enqueued(Greet.self).isEmpty)
            #expect(try await millrace.redrive(kind: "greet", error: "gone").retried == 2)
            #expect(try await millrace.redrive(queue: "nowhere").retried == 0)
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `time moves when the bench says so`() async throws {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            worker.handle(Greet.self) { _, _ in .done }
            let bench = try TestBench(worker: worker, database: location)
            let millrace = try Client(database: location)
            try await millrace.enqueue(Greet(name: "later"), in: .days(2))
            try await millrace.enqueue(contentsOf: [Greet(name: "one"), Greet(name: "two")])
            #expect(try await bench.enqueued(Greet.self).map(\.job.name).sorted() == ["later", "one", "two"])
            #expect(try await bench.drain().finished == 2)
            #expect(try await bench.enqueued(Greet.self).map(\.state) == [.scheduled])
            try await bench.advance(by: .days(3))
            #expect(try await bench.drain().finished == 1)
            // A delay counts by the database's clock, which is days ahead of ours by now.
            try await millrace.enqueue(Greet(name: "in a minute"), in: .minutes(1))
            #expect(try await bench.drain().finished == 0)
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `what goes wrong has a class, and no secret in its text`() async throws {
        let nowhere = try Client(database: .url("postgresql://me:s3cret@127.0.0.1:1/nowhere"))
        let unreachable = await #expect(throws: QueueError.self) { try await nowhere.enqueue(Greet(name: "Ada")) }
        #expect(unreachable?.errorClass == .unreachable)
        #expect(unreachable?.description.contains("s3cret") == false)
        #expect(throws: QueueError.self) { try Client(database: .url("nonsense")) }
        try await withDatabase { database in
            let millrace = try Client(database: .url(database.url))
            var bad = NewJob(kind: "greet")
            bad.priority = 12
            let refused = bad
            let invalid = await #expect(throws: QueueError.self) { try await millrace.enqueue(refused) }
            #expect(invalid?.errorClass == .invalid)
            _ = try await millrace.enqueue(Greet(name: "Ada"), unique: "k")
            let conflict = await #expect(throws: QueueError.self) {
                try await millrace.enqueue(Greet(name: "Ada"), unique: "k", onConflict: .error)
            }
            #expect(conflict?.errorClass == .conflict)
            #expect(try await millrace.job(424_242) == nil)
            await millrace.close()
        }
        try await withDatabase(.empty) { database in
            let worker = Worker(database: .url(database.url), log: .silent)
            worker.handle(Greet.self) { _, _ in .done }
            let schema = await #expect(throws: QueueError.self) { try await worker.run(handlesSignals: false) }
            #expect(schema?.errorClass == .schema)
            #expect(schema?.description.contains("millrace migrate") == true)
        }
        await nowhere.close()
    }

    @Test func `two handlers for one kind are refused`() async throws {
        let worker = Worker(database: .url("postgresql:///unused"), log: .silent)
        worker.handle(Greet.self) { _, _ in .done }
        worker.handle(Greet.self) { _, _ in .done }
        let error = await #expect(throws: QueueError.self) { try await worker.run(handlesSignals: false) }
        #expect(error?.errorClass == .misconfigured)
    }
}

private actor Greeted {
    private(set) var all: [String] = []
    func add(_ line: String) { all.append(line) }
}
