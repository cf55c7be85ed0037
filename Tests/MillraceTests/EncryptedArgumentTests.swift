import Foundation
import Millrace
import Postgres
import TestSupport
import Testing

private struct Charge: Job {
    static let kind = "card.charge"
    /// So long that no drain sees the next attempt, however the jitter falls.
    static let retries = RetryPolicy(attempts: 3, base: .days(30), cap: .days(30))
    static let encrypted = true
    var card: String
}

private struct Strict: Job {
    static let kind = "card.strict"
    static let encrypted = true
    static let refusesPlain = true
    var card: String
}

private actor Seen {
    private(set) var all: [String] = []
    func add(_ line: String) { all.append(line) }
}

private let one = "one:" + Data(repeating: 1, count: 32).base64EncodedString()
private let two = "two:" + Data(repeating: 2, count: 32).base64EncodedString()

/// Encrypted arguments through the public door.
@Suite struct EncryptedArgumentTests {
    private static func worker(_ database: TestDatabase, keys: EncryptionKeys, _ seen: Seen) -> Worker {
        let worker = Worker(database: .url(database.url), keys: keys, log: .silent)
        worker.handle(Charge.self) { job, _ in
            await seen.add(job.card)
            return .done
        }
        worker.handle(Strict.self) { job, _ in
            await seen.add("strict \(job.card)")
            return .done
        }
        return worker
    }

    @Test func `arguments of an encrypted kind are not to be read in the database, and the handler gets them`()
        async throws
    {
        try await withDatabase(.movableClock) { database in
            let seen = Seen()
            let bench = try TestBench(
                worker: Self.worker(database, keys: .list("\(two),\(one)"), seen), database: .url(database.url))
            let millrace = try Client(database: .url(database.url), keys: .list(one))
            let connection = try await database.connect()
            try await millrace.enqueue(Charge(card: "4111-a"), unique: "k")
            try await millrace.enqueue(contentsOf: [Charge(card: "4111-b"), Charge(card: "4111-c")])
            var named = NewJob(kind: "card.charge", args: Array(#"{"card": "4111-d"}"#.utf8))
            named.encrypted = true
            try await millrace.enqueue(named)
            #expect(try await connection.int("select count(*) from millrace.job where args::text like '%4111%'") == 0)
            #expect(
                try await connection.column("select args ->> 'key' from millrace.job") == ["one", "one", "one", "one"])
            #expect(try await connection.int("select count(distinct args) from millrace.job") == 4)
            #expect(
                try await bench.enqueued(Charge.self).map(\.job.card).sorted() == [
                    "4111-a", "4111-b", "4111-c", "4111-d",
                ])
            #expect(try await bench.drain().finished == 4)
            #expect(await seen.all.sorted() == ["4111-a", "4111-b", "4111-c", "4111-d"])
            await connection.close()
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `without the key a run fails with the key's name and is tried again, until a worker has it`()
        async throws
    {
        try await withDatabase(.movableClock) { database in
            let seen = Seen()
            let millrace = try Client(database: .url(database.url), keys: .list(one))
            let id = try await millrace.enqueue(Charge(card: "4111"))
            let poor = try TestBench(
                worker: Self.worker(database, keys: .list(two), seen), database: .url(database.url))
            #expect(try await poor.drain().finished == 1)
            let failed = try #require(await millrace.job(id))
            #expect(failed.state == .scheduled && failed.attempt == 1)
            #expect(
                failed.errors == [
                    "the arguments are encrypted with key one, which is not here: add it to MILLRACE_ENCRYPTION_KEY"
                ])
            let rich = try TestBench(
                worker: Self.worker(database, keys: .list(one), seen), database: .url(database.url))
            try await rich.advance(by: .days(31))
            #expect(try await rich.drain().finished == 1)
            #expect(try await millrace.job(id)?.state == .succeeded)
            #expect(await seen.all == ["4111"])
            await poor.close()
            await rich.close()
            await millrace.close()
        }
    }

    @Test func `what was changed in the database, or belongs to another kind, reaches no handler`() async throws {
        try await withDatabase(.movableClock) { database in
            let seen = Seen()
            let bench = try TestBench(
                worker: Self.worker(database, keys: .list(one), seen), database: .url(database.url))
            let millrace = try Client(database: .url(database.url), keys: .list(one))
            let connection = try await database.connect()
            let changed = try await millrace.enqueue(Charge(card: "4111"), maxAttempts: 1)
            let moved = try await millrace.enqueue(Strict(card: "4222"), maxAttempts: 1)
            let donor = try await millrace.enqueue(Charge(card: "4333"), in: .days(1))
            try await connection.run(
                """
                update millrace.job set args = jsonb_set(args, '{data}', to_jsonb(
                    overlay(args ->> 'data' placing case substr(args ->> 'data', 30, 1) when 'A' then 'B' else 'A' end from 30)))
                 where id = \(changed);
                update millrace.job set args = (select args from millrace.job where id = \(donor)) where id = \(moved)
                """)
            #expect(try await bench.drain().finished == 2)
            for id in [changed, moved] {
                let dead = try #require(await millrace.job(id))
                #expect(dead.state == .dead)
                #expect(dead.errors[0].contains("do not open with key one"))
                #expect(!dead.errors[0].contains("4"))
            }
            #expect(await seen.all.isEmpty)
            await connection.close()
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `plain arguments run, unless the kind refuses them: then the job is dead at once`() async throws {
        try await withDatabase(.movableClock) { database in
            let seen = Seen()
            let bench = try TestBench(
                worker: Self.worker(database, keys: .list(one), seen), database: .url(database.url))
            let millrace = try Client(database: .url(database.url), keys: .list(one))
            try await millrace.enqueue(NewJob(kind: "card.charge", args: Array(#"{"card": "plain"}"#.utf8)))
            let refused = try await millrace.enqueue(NewJob(kind: "card.strict", args: Array(#"{"card": "p"}"#.utf8)))
            try await millrace.enqueue(Strict(card: "sealed"))
            #expect(try await bench.drain().finished == 3)
            #expect(await seen.all.sorted() == ["plain", "strict sealed"])
            let dead = try #require(await millrace.job(refused))
            #expect(dead.state == .dead)
            #expect(dead.errors == ["the arguments are not encrypted, and card.strict refuses plain ones"])
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `a client without a key enqueues nothing of an encrypted kind, and a bad key is said at once`()
        async throws
    {
        try await withDatabase { database in
            let millrace = try Client(database: .url(database.url), keys: .none)
            let single = await #expect(throws: QueueError.self) { try await millrace.enqueue(Charge(card: "4111")) }
            #expect(single?.errorClass == .misconfigured)
            #expect(single?.description.contains("MILLRACE_ENCRYPTION_KEY") == true)
            await #expect(throws: QueueError.self) { try await millrace.enqueue(contentsOf: [Charge(card: "4111")]) }
            let connection = try await database.connect()
            #expect(try await connection.int("select count(*) from millrace.job") == 0)
            await connection.close()
            await millrace.close()
        }
        let bad = #expect(throws: QueueError.self) {
            try Client(database: .url("postgresql:///x"), keys: .list("c2VjcmV0"))
        }
        #expect(bad?.errorClass == .misconfigured && bad?.description.contains("c2VjcmV0") == false)
        let worker = Worker(database: .url("postgresql:///x"), keys: .list("c2VjcmV0"), log: .silent)
        worker.handle(Charge.self) { _, _ in .done }
        let late = await #expect(throws: QueueError.self) { try await worker.run(handlesSignals: false) }
        #expect(late?.errorClass == .misconfigured)
    }

    @Test func `a chunk has its arguments opened, and a job that does not open fails alone`() async throws {
        try await withDatabase(.movableClock) { database in
            let seen = Seen()
            let worker = Worker(database: .url(database.url), keys: .list(one), log: .silent)
            worker.handle(chunks: 2, of: Charge.self, waiting: .seconds(3600)) { items in
                for item in items { await seen.add(item.job.card) }
                return items.map { _ in .done }
            }
            let bench = try TestBench(worker: worker, database: .url(database.url))
            let millrace = try Client(database: .url(database.url), keys: .list(one))
            let stranger = try Client(database: .url(database.url), keys: .list(two))
            try await millrace.enqueue(Charge(card: "a"))
            let lost = try await stranger.enqueue(Charge(card: "b"), maxAttempts: 1)
            try await millrace.enqueue(Charge(card: "c"))
            #expect(try await bench.drain().finished == 3)
            #expect(await seen.all.sorted() == ["a", "c"])
            #expect(try await millrace.job(lost)?.state == .dead)
            await bench.close()
            await millrace.close()
            await stranger.close()
        }
    }
}
