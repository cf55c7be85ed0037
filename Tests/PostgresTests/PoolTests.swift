import Postgres
import Synchronization
import TestSupport
import Testing
import Threads

@Suite struct PoolTests {
    /// How many there were at once.
    final class Most: Sendable {
        private let counts = Mutex((now: 0, high: 0))
        var high: Int { counts.withLock { $0.high } }

        func change(by step: Int) {
            counts.withLock { counts in
                counts.now += step
                counts.high = max(counts.high, counts.now)
            }
        }
    }

    @Test func `never more connections are open than the pool has places`() async throws {
        try await withDatabase(.empty) { database in
            let pool = Pool(database.options, size: 3, checkoutDeadline: .seconds(60))
            let most = Most()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<200 {
                    group.addTask {
                        try await pool.withConnection { connection in
                            most.change(by: 1)
                            _ = try await connection.int("select 1")
                            most.change(by: -1)
                        }
                    }
                }
                try await group.waitForAll()
            }
            let watcher = try await database.connect("watcher")
            #expect(most.high <= 3)
            let process = try await watcher.process()
            #expect(
                try await watcher.int(
                    "select count(*) from pg_stat_activity where datname = current_database() and pid <> \(process)")
                    <= 3)
            await pool.close()
        }
    }

    @Test func `who waits too long for a connection is told so`() async throws {
        try await withDatabase(.empty) { database in
            let pool = Pool(database.options, size: 1, checkoutDeadline: .milliseconds(20))
            try await pool.withConnection { _ in
                let error = try await failure { try await pool.withConnection { _ in } }
                #expect(error == .exhausted(size: 1, after: .milliseconds(20)))
            }
            #expect(try await pool.withConnection { connection in try await connection.int("select 1") } == 1)
            await pool.close()
        }
    }

    @Test func `a holder has its share at once, waits without a connection, and others get theirs meanwhile`()
        async throws
    {
        try await withDatabase(.empty) { database in
            let pool = Pool(database.options, size: 6, checkoutDeadline: .ample, share: 2)
            let (gate, most) = (Gate(), Most())
            try await withThrowingTaskGroup { group in
                for _ in 0..<40 {
                    group.addTask {
                        try await pool.share(of: "greedy").withConnection { _ in
                            most.change(by: 1)
                            try await gate.pass()
                            most.change(by: -1)
                        }
                    }
                }
                try await eventually("the greedy one has its share") { gate.arrivals == 2 }
                // Four are left, and the 38 that wait take none of them.
                for other in ["ada", "bob"] {
                    let one = try await pool.share(of: other).withConnection { first in
                        try await pool.share(of: other).withConnection { second in
                            try await first.int("select 1") + second.int("select 1")
                        }
                    }
                    #expect(one == 2)
                }
                gate.open()
                try await group.waitForAll()
            }
            #expect(most.high == 2)
            await pool.close()
        }
    }

    @Test func `a share whose line is full, or does not move on in time, says so, and a cancelled caller leaves it`()
        async throws
    {
        try await withDatabase(.empty) { database in
            let quick = Pool(database.options, size: 1, checkoutDeadline: .milliseconds(20), share: 1)
            let hurried = quick.share(of: "ada")
            try await hurried.withConnection { _ in
                let late = try await failure(as: PoolShareTaken.self) { try await hurried.withConnection { _ in } }
                #expect(late?.share == 1)
            }
            await quick.close()
            let pool = Pool(database.options, size: 2, checkoutDeadline: .ample, share: 1)
            let mine = pool.share(of: "ada")
            try await mine.withConnection { _ in
                let cancelled = Task { try await failure { try await mine.withConnection { _ in } } }
                cancelled.cancel()
                #expect(try await cancelled.value == .cancelled)
                // The other's connection is not touched by that.
                let other = try await pool.share(of: "bob").withConnection { try await $0.int("select 1") }
                #expect(other == 1)
            }
            #expect(try await mine.withConnection { try await $0.int("select 1") } == 1)
            await pool.close()
        }
    }

    @Test func `a deadline of nothing gives up at once`() async throws {
        try await withDatabase(.empty) { database in
            let pool = Pool(database.options, size: 1, checkoutDeadline: .zero)
            try await pool.withConnection { _ in
                for _ in 0..<200 {
                    let error = try await failure { try await pool.withConnection { _ in } }
                    #expect(error == .exhausted(size: 1, after: .zero))
                }
            }
            await pool.close()
        }
    }

    @Test func `a waiter that is cancelled leaves the line`() async throws {
        try await withDatabase(.empty) { database in
            let pool = Pool(database.options, size: 1, checkoutDeadline: .seconds(60))
            try await pool.withConnection { _ in
                let waiter = Task { () -> PostgresError? in
                    do {
                        try await pool.withConnection { _ in }
                        return nil
                    } catch {
                        return error as? PostgresError
                    }
                }
                waiter.cancel()
                #expect(await waiter.value == .cancelled)
            }
            #expect(try await pool.withConnection { connection in try await connection.int("select 1") } == 1)
            await pool.close()
        }
    }

    @Test func `a broken connection is replaced, also for those who wait for it`() async throws {
        try await withDatabase(.empty) { database in
            let pool = Pool(database.options, size: 2, checkoutDeadline: .seconds(60))
            let killer = try await database.connect()
            let answers = try await withThrowingTaskGroup(of: Int.self) { group in
                for turn in 0..<60 {
                    group.addTask {
                        try await pool.withConnection { connection in
                            let process = try await connection.process()
                            if turn % 3 == 0 {
                                _ = try await killer.value("select pg_terminate_backend(\(process))")
                                _ = try await failure { while true { _ = try await connection.int("select 1") } }
                                return 0
                            }
                            return try await connection.int("select 1")
                        }
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(answers == 40)
            await pool.close()
        }
    }

    @Test func `a connection left inside a transaction is not lent again`() async throws {
        try await withDatabase(.empty) { database in
            let pool = Pool(database.options, size: 1)
            let first = try await pool.withConnection { connection in
                try await connection.execute("begin")
                return try await connection.process()
            }
            let second = try await pool.withConnection { connection in try await connection.process() }
            #expect(first != second)
            await pool.close()
        }
    }

    @Test func `a pool that cannot connect says so and keeps its places`() async throws {
        let pool = Pool(ConnectionOptions(location: "host=/nowhere"), size: 1, checkoutDeadline: .seconds(5))
        for _ in 0..<3 {
            let error = try #require(try await failure { try await pool.withConnection { _ in } })
            guard case .unreachable = error else { throw error }
        }
    }

    @Test func `a closed pool lends nothing`() async throws {
        try await withDatabase(.empty) { database in
            let pool = Pool(database.options, size: 1)
            try await pool.withConnection { _ in }
            await pool.close()
            #expect(try await failure { try await pool.withConnection { _ in } } != nil)
        }
    }

    @Test func `pauses between tries grow, jitter, and are bounded`() {
        var backoff = Backoff(first: .milliseconds(50), cap: .seconds(1))
        var random = SystemRandomNumberGenerator()
        for turn in 0..<100 {
            let most = min(Duration.seconds(1), .milliseconds(50) * (1 << min(turn, 20)))
            let pause = backoff.next(using: &random)
            #expect(pause >= most / 2 && pause <= most)
        }
        backoff.reset()
        let first = backoff.next(using: &random)
        #expect(first <= .milliseconds(50))
    }
}
