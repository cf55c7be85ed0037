package import Postgres
package import Schema

/// Brings a database to this program's schema: in one transaction, one migrator at a time, safe to repeat.
package struct Migrator: Sendable {
    package struct Report: Sendable, Equatable {
        package var applied: [String]
        package var refreshed: Bool
        package var version: Int
    }

    package enum Failure: Error, Sendable, CustomStringConvertible {
        case newerSchema(found: Int, known: Int)
        case oldServer(Int)
        case busy(PostgresError)
        case database(PostgresError)

        package var description: String {
            switch self {
            case .newerSchema(let found, let known):
                "The database has schema version \(found), and this program knows only up to \(known). Use a newer millrace."
            case .oldServer(let version):
                "Postgres 14 or later is needed; this server is \(version / 10000)."
            case .busy(let error): "Other sessions kept the tables locked; try again. \(error)"
            case .database(let error): "The migration failed and changed nothing. \(error)"
            }
        }
    }

    package var roles: [(role: String, name: String)]
    package var testClock: Bool

    package init(roles: [(role: String, name: String)] = [], testClock: Bool = false) {
        self.roles = roles
        self.testClock = testClock
    }

    /// The whole script, as `--dry-run` prints it.
    package var scripts: [Schema.Script] {
        Schema.migrations + functions
    }

    private var functions: [Schema.Script] {
        Schema.functions.map { $0.name == "clock" && testClock ? Schema.testClock : $0 }
    }

    package func migrate(on connection: Connection) async throws(Failure) -> Report {
        if await connection.serverVersion < 140_000 { throw .oldServer(Int(await connection.serverVersion)) }
        var tries = 0
        while true {
            do {
                return try await attempt(on: connection)
            } catch .database(let error)
                where (error.isCollision || ["55P03", "23505", "XX000"].contains(error.sqlState)) && tries < 40
            {
                tries += 1  // locked tables, or another migrator creating the very same: it will be done soon
                try? await Task.sleep(for: .milliseconds(50 * min(tries, 20)))
            } catch .database(let error) where error.sqlState == "55P03" {
                throw .busy(error)
            }
        }
    }

    private func attempt(on connection: Connection) async throws(Failure) -> Report {
        let outcome: Result<Report, Failure> = await run(on: connection)
        return try outcome.get()
    }

    private func run(on connection: Connection) async -> Result<Report, Failure> {
        do throws(PostgresError) {
            return try await connection.transaction { connection throws(PostgresError) in
                try await apply(on: connection)
            }
        } catch {
            return .failure(.database(error))
        }
    }

    private func apply(on connection: Connection) async throws(PostgresError) -> Result<Report, Failure> {
        let deadline = Duration.seconds(120)
        try await connection.execute("select pg_advisory_xact_lock(1297239622)", deadline: .seconds(600))
        try await connection.execute("select set_config('lock_timeout', '2s', true), set_config('jit', 'off', true)")
        try await bootstrap(on: connection)
        let done =
            try await connection.query("select coalesce(max(number), 0) from millrace.migration") {
                row throws(PostgresError) in Int(try row.int(0))
            }.first ?? 0
        guard done <= Schema.version else {
            return .failure(.newerSchema(found: done, known: Schema.version))
        }
        var report = Report(applied: [], refreshed: false, version: Schema.version)
        for (index, migration) in Schema.migrations.enumerated().dropFirst(done) {
            try await connection.run(script: .shipped(migration.bytes), deadline: deadline)
            try await connection.execute(
                "insert into millrace.migration (number, name) values ($1, $2)",
                [.int4(Int32(index + 1)), .text(migration.name)])
            report.applied.append(migration.name)
        }
        try await remember("oldest_worker", "\(Schema.oldestWorker)", on: connection)
        for (role, name) in roles {
            try await remember("role_\(role)", name, on: connection)
        }
        let clockMoves =
            try await connection.query("select to_regclass('millrace.test_clock') is not null") {
                row throws(PostgresError) in try row.bool(0)
            }.first ?? false
        let functions = Schema.functions.map { $0.name == "clock" && (testClock || clockMoves) ? Schema.testClock : $0 }
        for script in functions {
            try await connection.run(script: .shipped(script.bytes), deadline: deadline)
        }
        report.refreshed = true
        try await connection.execute("select millrace.maintain()", deadline: deadline)
        return .success(report)
    }

    /// Nothing here fails when it exists already, also where we may not create schemas.
    private func bootstrap(on connection: Connection) async throws(PostgresError) {
        try await connection.run(
            script: """
                set local client_min_messages = warning;
                do $$ begin
                    if to_regnamespace('millrace') is null then
                        create schema millrace;
                    end if;
                end $$;
                create table if not exists millrace.migration (
                    number int primary key,
                    name text not null,
                    applied_at timestamptz not null default clock_timestamp()
                )
                """)
    }

    private func remember(_ name: String, _ value: String, on connection: Connection) async throws(PostgresError) {
        try await connection.execute(
            """
            insert into millrace.setting (name, value) values ($1, $2)
                on conflict (name) do update set value = excluded.value where setting.value <> excluded.value
            """, [.text(name), .text(value)])
    }
}
