import Postgres

extension Command {
    static let uninstall = Command(
        ["uninstall"],
        summary: "Drop everything that Millrace has in the database",
        discussion: """
            Prints what would go, and changes nothing, unless --yes is given. It drops the schema millrace: jobs, history, mail, documents and all other \
            records, and the views and foreign keys of others that lean on it. Roles, files of the blob store and backups stay. It refuses while workers \
            or gateways live, because they would fail with every statement.
            """,
        flags: [
            .toggle("yes", environment: .none, help: "Do it. Nothing can take it back."),
            .toggle("force", environment: .none, help: "Also while workers and gateways live."),
        ],
        examples: [
            Example("millrace uninstall", "what would go"),
            Example("millrace uninstall --yes", "after the last worker has stopped"),
        ]
    ) { invocation in
        let isMeant = invocation.parsed.isOn("yes")
        return try await invocation.withConnection { connection in
            guard let found = try await Installation.find(on: connection) else {
                let none = Installation(owner: "", tables: 0, functions: 0, bytes: 0, rows: 0)
                invocation.console.show(none.json(dropped: false)) {
                    invocation.console.print("this database has no schema millrace")
                }
                return .done
            }
            if isMeant {
                if !found.living.isEmpty, !invocation.parsed.isOn("force") {
                    throw Failure(
                        .conflict, "\(found.living.joined(separator: ", ")) still live",
                        hint: "stop them first, or give --force as well")
                }
                try await Installation.drop(on: connection)
            }
            invocation.console.show(found.json(dropped: isMeant)) {
                for line in found.lines(dropped: isMeant) { invocation.console.print(line) }
            }
            return .done
        }
    }
}

/// What `uninstall` finds in the schema.
private struct Installation {
    var owner: String
    var tables: Int
    var functions: Int
    var bytes: Int
    /// Of all tables, as Postgres estimates them; counting takes long.
    var rows: Int
    /// Views and foreign keys in other schemas that go along.
    var dependents: [String] = []
    /// Workers and gateways that have told of themselves within the last half minute.
    var living: [String] = []

    /// nil: there is none. It asks Postgres' own tables, so that it works on a schema of any version.
    static func find(on connection: Connection) async throws(PostgresError) -> Installation? {
        let found = try await connection.query(
            """
            select pg_get_userbyid(n.nspowner),
                   (select count(*) from pg_class c where c.relnamespace = n.oid and c.relkind in ('r', 'p')),
                   (select count(*) from pg_proc p where p.pronamespace = n.oid),
                   (select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c where c.relnamespace = n.oid and c.relkind = 'r'),
                   (select coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint from pg_class c where c.relnamespace = n.oid and c.relkind = 'r'),
                   to_regclass('millrace.beat') is not null and to_regclass('millrace.session') is not null, to_regclass('millrace.gateway') is not null
              from pg_namespace n where n.nspname = 'millrace'
            """, deadline: .seconds(30)
        ) { row throws(PostgresError) in
            (
                Installation(
                    owner: try row.string(0), tables: Int(try row.int(1)), functions: Int(try row.int(2)),
                    bytes: Int(try row.int(3)), rows: Int(try row.int(4))), try row.bool(5), try row.bool(6)
            )
        }
        guard let (first, hasWorkers, hasGateways) = found.first else { return nil }
        var one = first
        one.dependents = try await names(
            """
            select distinct format('view %I.%I', n.nspname, c.relname)
              from pg_depend d join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
              join pg_class c on c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace
             where n.nspname <> 'millrace'
               and (d.refclassid = 'pg_class'::regclass and d.refobjid in (select x.oid from pg_class x where x.relnamespace = 'millrace'::regnamespace)
                    or d.refclassid = 'pg_proc'::regclass and d.refobjid in (select x.oid from pg_proc x where x.pronamespace = 'millrace'::regnamespace))
            union
            select format('foreign key %I of %s', k.conname, k.conrelid::regclass)
              from pg_constraint k join pg_class c on c.oid = k.conrelid
             where k.contype = 'f' and c.relnamespace <> 'millrace'::regnamespace
               and k.confrelid in (select x.oid from pg_class x where x.relnamespace = 'millrace'::regnamespace)
             order by 1 limit 100
            """, on: connection)
        if hasWorkers {
            one.living += try await names(
                """
                select format('worker %s on %s', s.name, s.host) from millrace.session s join millrace.beat b on b.session = s.id
                 where b.at > clock_timestamp() - interval '30 s' order by 1 limit 20
                """, on: connection)
        }
        if hasGateways {
            one.living += try await names(
                "select format('gateway %s', g.name) from millrace.gateway g where g.beat_at > clock_timestamp() - interval '30 s' order by 1 limit 20",
                on: connection)
        }
        return one
    }

    private static func names(_ statement: SQL, on connection: Connection) async throws(PostgresError) -> [String] {
        try await connection.query(statement, deadline: .seconds(30)) { row throws(PostgresError) in try row.string(0) }
    }

    /// It does not wait for long: other transactions that use the schema should have ended before.
    static func drop(on connection: Connection) async throws(PostgresError) {
        try await connection.execute("set lock_timeout = '10s'")
        try await connection.execute("drop schema millrace cascade", deadline: .seconds(600))
    }

    func json(dropped: Bool) -> JSONValue {
        [
            "dropped": .bool(dropped), "owner": .string(owner), "tables": .int(tables), "functions": .int(functions),
            "bytes": .int(bytes), "rows": .int(rows), "dependents": JSONValue(dependents), "living": JSONValue(living),
        ]
    }

    func lines(dropped: Bool) -> [String] {
        let verb = dropped ? "dropped" : "would drop"
        var lines = [
            "\(verb) the schema millrace of \(owner): \(Humane.count(tables, "table")) with about \(Humane.count(rows, "row")) in \(Humane.bytes(bytes)), \(Humane.count(functions, "function"))"
        ]
        lines += dependents.map { "\(verb) the \($0), which leans on it" }
        if !dropped {
            lines += living.map { "\($0) lives: stop it first" }
            lines.append("nothing was changed; millrace uninstall --yes does it, and nothing takes it back")
        } else {
            lines.append("roles, files of the blob store and backups are still there")
        }
        return lines
    }
}
