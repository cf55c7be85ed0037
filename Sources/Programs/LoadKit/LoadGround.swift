package import CommandKit
import FoundationEssentials
import Glibc
import MillraceQueues
package import Postgres
import Synchronization
import Threads

extension Command {
    /// A measurement never shares a database with real jobs and workers, and removes what it made, even when it is stopped.
    package var onItsOwnGround: Command {
        guard path.first == "load" else { return self }
        let measures = settings != .unused
        let promise =
            " A database with jobs or workers is left alone: one of its own is made beside it, and dropped at the end."
        return Command(
            path, summary: summary, discussion: discussion + (measures ? promise : ""),
            arguments: arguments, flags: flags, examples: examples, settings: settings
        ) { invocation in
            UnixSignals.onStop { _ in
                LoadGround.isStopped.withLock { $0 = true }
                Task {
                    await LoadGround.clear()
                    exit(ExitCode.failed.rawValue)
                }
            }
            let outcome: Result<ExitCode, any Error>
            do {
                let options = measures ? try? invocation.connectionOptions() : nil
                var ground = invocation
                if let options { ground = try await LoadGround.choose(for: invocation, options) }
                outcome = .success(try await self.run(ground))
            } catch {
                outcome = .failure(error)
            }
            // A stopped scenario fails when its database goes away; the process ends when everything is removed.
            while LoadGround.isStopped.withLock({ $0 }) { try? await Task.sleep(for: .seconds(1)) }
            await LoadGround.clear()
            return try outcome.get()
        }
    }
}

/// Where a measurement takes place.
package enum LoadGround {
    /// What to remove at the end, the last first.
    private static let leftovers = Mutex<[@Sendable () async -> Void]>([])

    fileprivate static let isStopped = Mutex(false)

    package static func atEnd(_ body: @escaping @Sendable () async -> Void) {
        leftovers.withLock { $0.append(body) }
    }

    /// Removes what is left; each thing once.
    package static func clear() async {
        while let next = leftovers.withLock({ $0.popLast() }) { await next() }
    }

    /// The given database if nobody else uses it, otherwise a new one beside it.
    package static func choose(for invocation: Invocation, _ options: ConnectionOptions) async throws -> Invocation {
        do {
            let connection = try await Connection.open(options, name: "load")
            let invocation = try await choose(for: invocation, options, connection)
            await connection.close()
            return invocation
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }

    private static func choose(
        for invocation: Invocation, _ options: ConnectionOptions, _ connection: Connection
    ) async throws -> Invocation {
        let (hasSchema, ownsSchema, mayCreate) =
            try await connection.query(
                """
                select n.oid is not null, coalesce(pg_has_role(n.nspowner, 'usage'), false), r.rolcreatedb or r.rolsuper
                  from pg_roles r left join pg_namespace n on n.nspname = 'millrace'
                 where r.rolname = current_user
                """
            ) { row throws(PostgresError) in (try row.bool(0), try row.bool(1), try row.bool(2)) }.first
            ?? (false, false, false)
        var why = hasSchema ? "its schema belongs to another role" : "it has no Millrace schema"
        if hasSchema, ownsSchema {
            guard let others = try await others(on: connection) else { return invocation }
            why = others
        }
        guard mayCreate else {
            throw Failure(
                .conflict, "nothing is measured in this database: \(why)",
                hint:
                    "give the login the right to create databases, and one is made for the measurement and dropped; or give a database of its own, after millrace migrate by the same login"
            )
        }
        invocation.console.note("\(why); measuring in a database made for this")
        return try await make(for: invocation, options, connection)
    }

    /// Why the database is not ours alone; nil when it is. A database that was empty when a measurement first came is marked as ours.
    private static func others(on connection: Connection) async throws -> String? {
        let workers = try await count("select count(*) from millrace.session", on: connection)
        if workers > 0 { return "\(Humane.count(workers, "worker")) may be at work there" }
        let mark = "from millrace.setting where name = 'load_database'"
        if try await count("select count(*) \(mark)", on: connection) > 0 { return nil }
        let jobs = try await count(
            """
            select count(*) from ((select from millrace.job limit 1) union all (select from millrace.history limit 1)
                union all (select from millrace.schedule limit 1)) found
            """, on: connection)
        if jobs > 0 { return "it has jobs or schedules of others" }
        try await connection.execute(
            "insert into millrace.setting (name, value) values ('load_database', 'true') on conflict do nothing")
        return nil
    }

    private static func count(_ sql: String, on connection: Connection) async throws -> Int {
        try await connection.int(.shipped(Array(sql.utf8)))
    }

    private static func make(
        for invocation: Invocation, _ options: ConnectionOptions, _ connection: Connection
    ) async throws -> Invocation {
        let name = "millrace_load_\(getpid())_\(UInt32.random(in: 1...UInt32.max))"
        atEnd {
            // Forced, for workers of a measurement that was stopped may still be there.
            guard let connection = try? await Connection.open(options, name: "load") else { return }
            try? await connection.run(script: .shipped(Array("drop database if exists \(name) with (force)".utf8)))
            await connection.close()
        }
        // create database takes no parameters; the name is our own, and plain.
        try await connection.run(script: .shipped(Array("create database \(name)".utf8)), deadline: .seconds(120))
        var settings = invocation.settings
        settings.point(.databaseURL, at: location(options.location, database: name))
        if let direct = settings.directURL { settings.point(.directURL, at: location(direct, database: name)) }
        let own = Invocation(
            parsed: invocation.parsed, settings: settings, console: invocation.console,
            surroundings: invocation.surroundings, tree: invocation.tree)
        do {
            let connection = try await Connection.open(try own.connectionOptions(), name: "load")
            _ = try await Migrator.ofAllRooms().migrate(on: connection)
            await connection.close()
        } catch let failure as Migrator.Failure {
            throw Failure(failure.description)
        }
        return own
    }

    /// The same server, another database: for libpq the last word counts.
    package static func location(_ location: String, database: String) -> String {
        guard location.contains("://") else {
            return location.isEmpty ? "dbname=\(database)" : "\(location) dbname=\(database)"
        }
        return location + (location.contains("?") ? "&" : "?") + "dbname=\(database)"
    }
}
