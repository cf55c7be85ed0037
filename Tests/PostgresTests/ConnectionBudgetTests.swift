import Postgres
import Synchronization
import TestSupport
import Testing
import Threads

@Suite struct ConnectionBudgetTests {
    private static func options(_ database: TestDatabase, _ most: Int) -> (ConnectionOptions, ConnectionBudget) {
        let budget = ConnectionBudget(most: most)
        var options = database.options
        options.budget = budget
        return (options, budget)
    }

    private static let others =
        "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()"

    @Test func `all pools of a process share its connections`() async throws {
        try await withDatabase(.empty) { database in
            let (options, budget) = Self.options(database, 2)
            let pools = Urgency.allCases.map { Pool(options.urgent($0), size: 4, checkoutDeadline: .seconds(60)) }
            let watcher = try await database.connect("watcher")
            let most = PoolTests.Most()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        try await pools[number % pools.count].withConnection { connection in
                            most.change(by: 1)
                            // Long enough that two of them meet.
                            _ = try await connection.int("select 1 from pg_sleep(0.005)")
                            most.change(by: -1)
                        }
                    }
                }
                for _ in 0..<10 { #expect(try await watcher.int(Self.others) <= 2) }
                try await group.waitForAll()
            }
            #expect(most.high == 2)
            await budget.close()
            await watcher.close()
        }
    }

    @Test func `one that asks for a second connection while it has one gets it, and so do all others`() async throws {
        try await withDatabase(.empty) { database in
            let (options, budget) = Self.options(database, 2)
            let pool = Pool(options, size: 8, checkoutDeadline: .seconds(60))
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<40 {
                    group.addTask {
                        try await pool.withConnection { outer in
                            try await outer.run("begin")
                            _ = try await pool.withConnection { inner in try await inner.int("select 1") }
                            try await outer.run("commit")
                        }
                    }
                }
                try await group.waitForAll()
            }
            await budget.close()
        }
    }

    @Test func `what is urgent finds a connection while something slow has the others`() async throws {
        try await withDatabase(.empty) { database in
            let (options, budget) = Self.options(database, 2)
            let owner = try await database.connect()
            try await owner.run("select pg_advisory_lock(1)")
            let slow = (1...5).map { _ in
                Task {
                    try await budget.lend(options.urgent(.claims)) { connection throws(PostgresError) in
                        try await connection.execute("select pg_advisory_xact_lock_shared(1)", deadline: .seconds(120))
                    }
                }
            }
            let waiting =
                "select count(*) from pg_locks where database = (select oid from pg_database where datname = current_database()) and locktype = 'advisory' and not granted"
            try await eventually("one of them has a connection") { try await owner.int(waiting) == 1 }
            let one = try await budget.lend(options.urgent(.urgent)) { connection throws(PostgresError) in
                try await connection.int("select 1")
            }
            #expect(one == 1)
            #expect(try await owner.int(waiting) == 1)
            try await owner.run("select pg_advisory_unlock(1)")
            for task in slow { _ = try await task.value }
            await budget.close()
            await owner.close()
        }
    }

    @Test func `a wait ends with its time or its task, and takes nothing along`() async throws {
        try await withDatabase(.empty) { database in
            let (options, budget) = Self.options(database, 2)
            let release = Wakeup()
            let has = Wakeup()
            let holder = Task {
                try await budget.lend(options) { connection throws(PostgresError) in
                    has.fire()
                    await release.wait()
                }
            }
            await has.wait()
            let short = Pool(options, size: 4, checkoutDeadline: .milliseconds(20))
            await #expect(throws: PostgresError.exhausted(size: 2, after: .milliseconds(20))) {
                try await short.withConnection { connection in _ = try await connection.int("select 1") }
            }
            let waits = Task {
                try await budget.lend(options) { connection throws(PostgresError) in
                    try await connection.int("select 1")
                }
            }
            waits.cancel()
            await #expect(throws: PostgresError.cancelled) { try await waits.value }
            release.fire()
            try await holder.value
            #expect(
                try await budget.lend(options) { connection throws(PostgresError) in
                    try await connection.int("select 1")
                } == 1)
            await budget.close()
        }
    }

    @Test func `a lost connection is counted and replaced, and one left in a transaction is not lent again`()
        async throws
    {
        try await withDatabase(.empty) { database in
            let (options, budget) = Self.options(database, 2)
            let owner = try await database.connect()
            func pid() async throws -> Int {
                try await budget.lend(options) { connection throws(PostgresError) in
                    try await connection.int("select pg_backend_pid()")
                }
            }
            let first = try await pid()
            #expect(try await pid() == first && budget.losses == 0)
            try await owner.run("select pg_terminate_backend(\(first), 10000)")
            await #expect(throws: PostgresError.self) { try await pid() }
            #expect(budget.losses == 1 && budget.hasLost(within: .seconds(600)))
            let second = try await pid()
            #expect(second != first)
            let pool = Pool(options, size: 1)
            try await pool.withConnection { connection in try await connection.run("begin") }
            #expect(try await pid() != second && budget.losses == 1)
            await budget.close()
            await owner.close()
        }
    }

    @Test func `a kept connection is one from use to use; a broken one is replaced, and few are borrowed`() async throws
    {
        try await withDatabase(.empty) { database in
            let watcher = try await database.connect("watcher")
            let kept = KeptConnection(database.options, name: "kept")
            func session(_ link: KeptConnection) async throws -> Int {
                try await link.use { connection throws(PostgresError) in
                    try await connection.int("select pg_backend_pid()")
                }
            }
            let first = try await session(kept)
            #expect(try await session(kept) == first)
            // A statement that is refused leaves it; one that loses the connection does not.
            await #expect(throws: PostgresError.self) {
                try await kept.use { connection throws(PostgresError) in try await connection.run("select 1 / 0") }
            }
            #expect(try await session(kept) == first)
            await #expect(throws: PostgresError.self) {
                try await kept.use { connection throws(PostgresError) in
                    try await connection.run("select pg_terminate_backend(pg_backend_pid())")
                }
            }
            #expect(try await session(kept) != first)
            await kept.close()
            try await eventually("it is closed") { try await watcher.int(Self.others) == 0 }

            let (options, budget) = Self.options(database, 1)
            let links = [KeptConnection(options, name: "one"), KeptConnection(options, name: "other")]
            let sessions = [try await session(links[0]), try await session(links[1])]
            #expect(sessions[0] == sessions[1])
            #expect(try await watcher.int(Self.others) == 1)
            await budget.close()
            await watcher.close()
        }
    }
}
