import Postgres
import TestSupport
import Testing

/// Our statements find functions, operators and types in the system's schema alone, whatever a login, a database or a stranger has set up.
@Suite struct SearchPathTests {
    private static let path = "pg_catalog, pg_temp"

    @Test func `a connection keeps its path, whatever its login and its database are set to`() async throws {
        try await withDatabase(.empty) { database in
            let role = TestCluster.name("path")
            let office = try await database.connect()
            // What is called before the path is set is called by its full name, so that these are not taken for it.
            try await office.run(
                """
                create role \(role) login;
                create schema trap;
                grant usage on schema trap to \(role);
                create function trap.pg_backend_pid() returns int language sql as 'select 0';
                create function trap.current_setting(text) returns text language sql as $$ select 'trapped' $$;
                create function trap.set_config(text, text, boolean) returns text language sql as $$ select 'trapped' $$;
                create domain trap.text as pg_catalog.int4;
                alter role \(role) set search_path = trap, pg_catalog;
                alter database \(database.name) set search_path = trap, pg_catalog
                """)
            for connection in [try await database.connect(), try await database.connect(as: role)] {
                #expect(try await connection.value("select current_setting('search_path')") == Self.path)
                #expect(await !connection.isPooled)
                await connection.close()
            }
            try await office.run("drop owned by \(role); drop role \(role)")
            await office.close()
        }
    }
}

extension PoolerTests {
    private static let asked = Statement("select current_setting('search_path')")

    @Test func `through a pooler each way to send a statement has our path, and leaves none behind`() async throws {
        try await Self.withPooler(servers: 1) { options, direct in
            let connection = try await Connection.open(options)
            let ours = "pg_catalog, pg_temp"
            func path(_ connection: Connection) async throws(PostgresError) -> [String] {
                try await connection.query(Self.asked.sql) { row throws(PostgresError) in try row.string(0) }
            }
            try await direct.run("create table public.seen (path text, level text)")
            let note: SQL =
                "insert into public.seen values (current_setting('search_path'), current_setting('transaction_isolation'))"
            #expect(try await path(connection) == [ours])
            #expect(try await connection.execute(note) == 1)
            try await connection.pipeline([Statement(note), Statement(note)])
            let answers = try await connection.transaction(of: [Self.asked, Statement("select $1::text", [.text("x")])])
            { _, row throws(PostgresError) in try row.string(0) }
            #expect(answers == [[ours], ["x"]])
            #expect(
                try await connection.transaction { connection throws(PostgresError) in
                    try await connection.execute(note)
                    return try await path(connection)
                } == [ours])
            try await connection.run(script: "begin isolation level repeatable read; savepoint a")
            try await connection.execute(note)
            try await connection.execute("commit")
            try await connection.execute("begin isolation level serializable")
            try await connection.execute(note)
            try await connection.execute("commit")
            try await connection.run("insert into public.seen values (current_setting('search_path'))")
            let copied = try await connection.copyIn("copy public.seen from stdin", next: Self.once("copied\t\\N\n"))
            #expect(copied == 1)
            #expect(
                try await direct.column("select path || coalesce(', ' || level, '') from public.seen") == [
                    "\(ours), read committed", "\(ours), read committed", "\(ours), read committed",
                    "\(ours), read committed", "\(ours), repeatable read", "\(ours), serializable", ours, "copied",
                ])
            // The commit ends our transaction: what follows sees what the next client of this server would see.
            try await connection.run(
                "commit; create table public.after as select current_setting('search_path') as path")
            #expect(try await direct.column("select path from public.after") == [#""$user", public"#])
        }
    }

    private static func once(_ text: String) -> @Sendable () -> [UInt8]? {
        let rest = Locked([Array(text.utf8)])
        return { rest.withLock { $0.popLast() } }
    }

    /// 1. A server has another default of isolation. 2. A caller begins a transaction through a pooler. 3. It takes it back: all of it.
    @Test func `a transaction on a server with another default of isolation is one transaction`() async throws {
        try await Self.withPooler(servers: 1) { options, direct in
            let name = try #require(try await direct.value("select current_database()"))
            try await direct.run("alter database \(name) set default_transaction_isolation = 'serializable'")
            try await direct.run(
                "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '\(name)' and pid <> pg_backend_pid()"
            )
            try await eventually("the pooler has a new server") {
                guard let first = try? await Connection.open(options) else { return false }
                return (try? await first.int("select 1")) == 1
            }
            try await direct.run("create table public.t (n int)")
            let connection = try await Connection.open(options)
            await #expect(throws: PostgresError.self) {
                try await connection.transaction { connection throws(PostgresError) in
                    try await connection.execute("insert into public.t values (1)")
                    try await connection.execute("select 1/0")
                }
            }
            try await connection.begin()
            try await connection.execute("insert into public.t values (2)")
            try await connection.execute("rollback")
            #expect(try await direct.int("select count(*) from public.t") == 0)
            let found = try await connection.query(Self.asked.sql) { row throws(PostgresError) in try row.string(0) }
            #expect(found == ["pg_catalog, pg_temp"])
        }
    }

    @Test func `a failure through a pooler is the statement's own, and a lost server is told`() async throws {
        try await Self.withPooler(servers: 1) { options, direct in
            let connection = try await Connection.open(options)
            #expect(try await failure { try await connection.execute("select 1/0") }?.sqlState == "22012")
            #expect(try await failure { try await connection.execute("selec") }?.sqlState == "42601")
            let failed = try await failure {
                _ = try await connection.query("select 1, 2") { row throws(PostgresError) in try row.string(3) }
            }
            #expect(failed != nil)
            let late = Task { try await failure { try await connection.execute("select pg_sleep(60)") } }
            try await eventually("the statement runs") {
                try await direct.int(
                    "select count(pg_terminate_backend(pid)) from pg_stat_activity where query like '%pg_sleep(60)%' and state = 'active' and pid <> pg_backend_pid() and datname = current_database()"
                ) == 1
            }
            let lost = try await late.value
            #expect(lost?.outcomeUnknown == true, "\(String(describing: lost))")
        }
    }
}
