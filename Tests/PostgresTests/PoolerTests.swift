import Postgres
import TestSupport
import Testing

/// A real pgbouncer in transaction mode in front of a database of the test's own.
@Suite(.serialized, .enabled(if: TestPooler.program != nil, "pgbouncer is not installed: apt-get install pgbouncer"))
struct PoolerTests {
    static func withPooler(
        servers: Int = 2, _ body: (_ pooled: ConnectionOptions, _ direct: Connection) async throws -> Void
    ) async throws {
        try await withDatabase(.empty) { database in
            let direct = try await database.connect()
            try await TestSupport.withPooler(to: database, servers: servers) { options in
                try await body(options, direct)
            }
        }
    }

    @Test func `a pooler is noticed, and a direct connection is not taken for one`() async throws {
        try await Self.withPooler { options, direct in
            let pooled = try await Connection.open(options)
            #expect(await pooled.isPooled)
            #expect(await !direct.isPooled)
        }
    }

    /// 1. Two clients share two servers. 2. Each runs its own statements. 3. While one holds a server, the other gets the one on
    /// which its neighbour has prepared something under the same name: it must not run that.
    @Test(arguments: [ConnectionOptions.Prepare.auto, .on, .off])
    func `no client runs a statement that another has prepared`(prepare: ConnectionOptions.Prepare) async throws {
        try await Self.withPooler(servers: 2) { options, _ in
            var options = options
            options.prepare = prepare
            let one = try await Connection.open(options)
            let two = try await Connection.open(options)
            func ask(_ connection: Connection, _ sql: SQL) async throws -> String? {
                var answer: String?
                let error = try await failure {
                    answer = try await connection.query(sql) { row throws(PostgresError) in try row.string(0) }.first
                }
                guard let error else { return answer }
                // A caller that insists on prepared statements must expect this error.
                return prepare == .on && error.sqlState == "26000" ? nil : error.description
            }
            for turn in 0..<20 {
                // A transaction pins one of the two servers, in turn, and so moves the other client.
                let holder = turn % 2 == 0 ? one : two
                try await holder.run("begin")
                for _ in 0..<2 {
                    let first = try await ask(
                        turn % 2 == 0 ? two : one, turn % 2 == 0 ? "select 'two'" : "select 'one'")
                    #expect(first == nil || first == (turn % 2 == 0 ? "two" : "one"))
                }
                try await holder.run("rollback")
                let own = try await ask(holder, turn % 2 == 0 ? "select 'one'" : "select 'two'")
                #expect(own == nil || own == (turn % 2 == 0 ? "one" : "two"))
            }
        }
    }

    @Test func `many callers through few servers all get their own answers`() async throws {
        try await Self.withPooler(servers: 3) { options, _ in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for caller in 0..<8 {
                    group.addTask {
                        let connection = try await Connection.open(options)
                        for n in 0..<100 {
                            let answer = try await connection.query(
                                "select $1::int + $2::int", [.int4(Int32(caller * 1000)), .int4(Int32(n))]
                            ) { row throws(PostgresError) in try row.int(0) }
                            #expect(answer == [Int64(caller * 1000 + n)])
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test(arguments: ["serializable", "repeatable read"])
    func `a server's other default of isolation is not used, and not changed for others`(level: String) async throws {
        try await Self.withPooler(servers: 1) { options, direct in
            let name = try #require(try await direct.value("select current_database()"))
            try await direct.run("alter database \(name) set default_transaction_isolation = '\(level)'")
            try await direct.run(
                "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '\(name)' and pid <> pg_backend_pid()"
            )
            // The pooler may not have noticed yet that its server is gone, and may give that connection to the next client.
            try await eventually("the pooler has a new server") {
                guard let first = try? await Connection.open(options) else { return false }
                return (try? await first.int("select 1")) == 1
            }
            let connection = try await Connection.open(options)
            #expect(try await connection.value("select current_setting('transaction_isolation')") == "read committed")
            let inside = try await connection.transaction { connection throws(PostgresError) in
                try await connection.value("select current_setting('transaction_isolation')")
            }
            #expect(inside == "read committed")
            try await connection.run("create table public.t (level text)")
            try await connection.pipeline([
                Statement("insert into public.t values (current_setting('transaction_isolation'))")
            ]
            )
            #expect(try await connection.column("select level from public.t") == ["read committed"])
            #expect(
                try await connection.value("select current_setting('default_transaction_isolation')") == level,
                "a setting of ours stays on a server that others use")
            let error = try await failure { try await connection.execute("select 1/0") }
            #expect(error?.sqlState == "22012")
            #expect(try await connection.int("select 1") == 1)
        }
    }

    @Test func `a cancelled statement is cancelled through the pooler too`() async throws {
        try await Self.withPooler { options, direct in
            let connection = try await Connection.open(options)
            await #expect(throws: PostgresError.timedOut(after: .milliseconds(100))) {
                try await connection.execute("select pg_sleep(60)", deadline: .milliseconds(100))
            }
            #expect(
                try await direct.int(
                    "select count(*) from pg_stat_activity where state = 'active' and query like '%pg_sleep(60)%' and pid <> pg_backend_pid() and datname = current_database()"
                )
                    == 0)
            #expect(try await connection.int("select 1") == 1)
        }
    }
}
