import Postgres

extension Command {
    static let uninstall = Command(
        ["uninstall"],
        summary: "Drop everything that Millrace has in the database",
        discussion: """
            Prints what would go, and changes nothing, unless --yes is given. It drops the schema millrace: jobs, history, mail, documents and all other \
            records, and what others have built on it, such as views, columns of its types, policies and triggers. Roles, files of the blob store and backups stay. It refuses while workers \
            or gateways are running, because they would fail with every statement.
            """,
        flags: [
            .toggle("yes", environment: .none, help: "Do it. It cannot be undone."),
            .toggle("force", environment: .none, help: "Also while workers and gateways are running."),
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
    /// What goes along in other schemas, in Postgres' words.
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
            with recursive part(classid, objid, objsubid) as (
                select d.classid, d.objid, d.objsubid from pg_depend d
                 where d.refclassid = 'pg_namespace'::regclass and d.refobjid = 'millrace'::regnamespace and d.deptype = 'n'
                union
                -- What depends on that goes with it, and so on; a view goes with its rule. Of another's table a column may go alone.
                select x.classid, x.objid, x.objsubid from part p cross join lateral (
                    select d.classid, d.objid, d.objsubid from pg_depend d
                     where d.refclassid = p.classid and d.refobjid = p.objid and p.objsubid in (0, d.refobjsubid)
                    union all
                    select d.refclassid, d.refobjid, d.refobjsubid from pg_depend d where d.classid = p.classid and d.objid = p.objid and d.deptype = 'i') x
            ), gone as (
                select distinct d.classid, d.objid, d.objsubid from part p
                  join pg_depend d on d.refclassid = p.classid and d.refobjid = p.objid and p.objsubid in (0, d.refobjsubid) and d.deptype in ('n', 'a')
            )
            select distinct case when i.type = 'rule' then regexp_replace(i.identity, '^.* on ', 'view ') else pg_describe_object(g.classid, g.objid, g.objsubid) end
              from gone g cross join lateral pg_identify_object(g.classid, g.objid, g.objsubid) i
             where coalesce(i.schema, '') not in ('millrace', 'pg_toast') and i.identity !~ '(^|(^| )(on|for) )"?millrace"?[.]'
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
        lines += dependents.map { "\(verb) the \($0), which depends on it" }
        if !dropped {
            lines += living.map { "\($0) is running: stop it first" }
            lines.append("nothing was changed; millrace uninstall --yes does it, and it cannot be undone")
        } else {
            lines.append("roles, files of the blob store and backups are still there")
        }
        return lines
    }
}
