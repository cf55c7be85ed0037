package import Postgres
import Schema

/// An object in the schema or attached to one of its tables.
package struct SchemaObject: Sendable, Hashable, CustomStringConvertible {
    package var kind: String
    package var identity: String
    package var owner: String

    package var description: String { "\(kind) \(identity), owned by \(owner)" }

    package static func list(_ objects: [SchemaObject]) -> String {
        let named = objects.prefix(20).map(\.description).joined(separator: "; ")
        return objects.count > 20 ? "\(named); and \(objects.count - 20) more" : named
    }
}

/// Who owns the schema, and which objects in it were not made by our migrations.
///
/// The rule: functions of the schema run with its owner's rights, so the owner trusts everything in it. A migration therefore refuses a
/// schema that another role owns, or that contains objects of another role or objects that we did not make. Each migration records what we
/// made in `millrace.made`; without this record there is nothing that we made but the table of migrations.
package struct SchemaContents: Sendable, Equatable {
    package var owner: String
    package var role: String
    package var isOwnersSuperuser: Bool
    /// It is known what we made, not only who owns what.
    package var isComplete: Bool
    package var foreign: [SchemaObject]

    package var isOwn: Bool { owner == role }

    /// For callers that only look; first in the transaction: a migration that commits meanwhile is seen as a whole or not at all.
    package static func useOneSnapshot(on connection: Connection) async throws(PostgresError) {
        try await connection.execute("set transaction isolation level repeatable read, read only")
    }

    /// nil: there is no schema yet. Foreign are objects of another owner than the schema's. If `millrace.made` can be read, or if nothing
    /// was recorded yet, objects that we did not make are foreign, too.
    package static func look(on connection: Connection) async throws(PostgresError) -> SchemaContents? {
        let schema = try await connection.query(
            """
            select pg_catalog.pg_get_userbyid(n.nspowner)::pg_catalog.text, current_user::pg_catalog.text, r.rolsuper,
                   coalesce((select pg_catalog.has_table_privilege(c.oid, 'select') from pg_catalog.pg_class c
                              where c.relnamespace = n.oid and c.relname = 'made'), false),
                   exists (select from pg_catalog.pg_class c where c.relnamespace = n.oid and c.relname = 'made')
              from pg_catalog.pg_namespace n join pg_catalog.pg_roles r on r.oid = n.nspowner where n.nspname = 'millrace'
            """
        ) { row throws(PostgresError) in
            (
                owner: try row.string(0), role: try row.string(1), superuser: try row.bool(2), reads: try row.bool(3),
                wrote: try row.bool(4)
            )
        }
        guard let schema = schema.first else { return nil }
        var contents = SchemaContents(
            owner: schema.owner, role: schema.role, isOwnersSuperuser: schema.superuser,
            isComplete: schema.reads || !schema.wrote, foreign: [])
        let found = try await objects(on: connection)
        let others = found.filter { $0.object.owner != schema.owner }.map(\.object)
        var unknown: [SchemaObject] = []
        let ours = found.filter { !$0.isDerived && $0.object.owner == schema.owner }.map(\.object)
        // Another owner's table could say anything. Such a table named `made` is already listed among the others above.
        if schema.reads, !others.contains(where: { $0.identity == "millrace.made" }) {
            let made = Set(
                try await connection.query("select m.kind, m.identity from millrace.made m") {
                    row throws(PostgresError) in "\(try row.string(0)) \(try row.string(1))"
                })
            unknown = ours.filter { !made.contains("\($0.kind) \($0.identity)") }
        } else if !schema.wrote {
            unknown = ours.filter { $0.identity != "millrace.migration" }
        }
        contents.foreign = (others + unknown).sorted { ($0.kind, $0.identity) < ($1.kind, $1.identity) }
        return contents
    }

    /// Records the present objects. Nothing else may have been added meanwhile: see `look`.
    static func writeDown(on connection: Connection) async throws(PostgresError) {
        let objects = try await objects(on: connection).filter { !$0.isDerived }.map(\.object)
        try await connection.execute("delete from millrace.made")
        try await connection.execute(
            "insert into millrace.made (kind, identity) select * from unnest($1::text[], $2::text[]) on conflict do nothing",
            [.texts(objects.map(\.kind)), .texts(objects.map(\.identity))])
    }

    /// Drops functions that the scripts have not just created again: old signatures and old names. Grants by name move to the function that
    /// has the name now. Call it before anything else in this transaction changes functions.
    static func dropStale(keeping rooms: [RoomSchema], on connection: Connection) async throws(PostgresError) {
        try await connection.execute(
            "select set_config('millrace.kept', array_to_string($1::text[], ';'), true)",
            [.texts(rooms.flatMap(SchemaNames.functionsOfMigrations(of:)) + Schema.keptFunctions)])
        try await connection.run(
            script: """
                do $$
                declare
                    kept text[] := string_to_array(current_setting('millrace.kept'), ';');
                    now_xid constant xid := pg_current_xact_id()::xid;
                    old record;
                    granted record;
                begin
                    for old in
                        select p.oid::regprocedure as signature, p.proname as name, p.proacl as acl from pg_proc p
                         where p.pronamespace = 'millrace'::regnamespace and p.xmin <> now_xid and p.oid::regprocedure::text <> all (kept)
                    loop
                        for granted in
                            select p.oid::regprocedure as signature, a.grantee::regrole as role
                              from pg_proc p cross join lateral aclexplode(old.acl) a
                             where p.pronamespace = 'millrace'::regnamespace and p.proname = old.name and p.xmin = now_xid
                               and a.privilege_type = 'EXECUTE' and a.grantee <> 0 and a.grantee <> p.proowner
                        loop
                            execute format('grant execute on routine %s to %s', granted.signature, granted.role);
                        end loop;
                        execute format('drop routine %s', old.signature);
                    end loop;
                    perform millrace.hooks_tidy();
                end $$
                """)
    }

    /// Everything in the schema and on its tables. Derived objects come with others: partitions, the sequences of columns.
    private static func objects(
        on connection: Connection
    ) async throws(PostgresError) -> [(object: SchemaObject, isDerived: Bool)] {
        try await connection.query(
            """
            with ours as (
                select n.oid from pg_namespace n where n.nspname = 'millrace'
            ), relations as (
                select c.* from pg_class c join ours n on n.oid = c.relnamespace
            ), found (class, object, owner, derived) as (
                select 'pg_class'::regclass, c.oid, c.relowner,
                       (c.relispartition and exists (select from pg_inherits i join relations p on p.oid = i.inhparent where i.inhrelid = c.oid))
                       or (c.relkind = 'S' and exists (
                           select from pg_depend d join relations t on t.oid = d.refobjid
                            where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.refclassid = 'pg_class'::regclass and d.deptype in ('a', 'i')))
                  from relations c where c.relkind in ('r', 'p', 'v', 'm', 'S', 'f', 'c')
                union all
                select 'pg_proc'::regclass, p.oid, p.proowner, false from pg_proc p join ours n on n.oid = p.pronamespace
                union all
                select 'pg_type'::regclass, t.oid, t.typowner, false from pg_type t join ours n on n.oid = t.typnamespace
                 where t.typrelid = 0 and t.typtype <> 'm' and not exists (select from pg_type e where e.typarray = t.oid)
                union all
                select 'pg_operator'::regclass, o.oid, o.oprowner, false from pg_operator o join ours n on n.oid = o.oprnamespace
                union all
                select 'pg_opclass'::regclass, o.oid, o.opcowner, false from pg_opclass o join ours n on n.oid = o.opcnamespace
                union all
                select 'pg_opfamily'::regclass, o.oid, o.opfowner, false from pg_opfamily o join ours n on n.oid = o.opfnamespace
                union all
                select 'pg_collation'::regclass, o.oid, o.collowner, false from pg_collation o join ours n on n.oid = o.collnamespace
                union all
                select 'pg_conversion'::regclass, o.oid, o.conowner, false from pg_conversion o join ours n on n.oid = o.connamespace
                union all
                select 'pg_statistic_ext'::regclass, o.oid, o.stxowner, false from pg_statistic_ext o join ours n on n.oid = o.stxnamespace
                union all
                select 'pg_ts_config'::regclass, o.oid, o.cfgowner, false from pg_ts_config o join ours n on n.oid = o.cfgnamespace
                union all
                select 'pg_ts_dict'::regclass, o.oid, o.dictowner, false from pg_ts_dict o join ours n on n.oid = o.dictnamespace
                union all
                select 'pg_trigger'::regclass, g.oid, c.relowner, false from pg_trigger g join relations c on c.oid = g.tgrelid
                 where not g.tgisinternal and g.tgparentid = 0
                union all
                select 'pg_rewrite'::regclass, r.oid, c.relowner, false from pg_rewrite r join relations c on c.oid = r.ev_class where r.rulename <> '_RETURN'
                union all
                select 'pg_policy'::regclass, y.oid, c.relowner, false from pg_policy y join relations c on c.oid = y.polrelid
                union all
                select 'pg_cast'::regclass, k.oid, coalesce(p.proowner, t.typowner), false
                  from pg_cast k join pg_type t on t.oid = k.castsource join pg_type u on u.oid = k.casttarget left join pg_proc p on p.oid = k.castfunc
                 where t.typnamespace in (select n.oid from ours n) or u.typnamespace in (select n.oid from ours n)
                    or p.pronamespace in (select n.oid from ours n)
            )
            select i.type, i.identity, pg_get_userbyid(f.owner)::text, f.derived
              from found f cross join lateral pg_identify_object(f.class, f.object, 0) i
            """
        ) { row throws(PostgresError) in
            (
                SchemaObject(kind: try row.string(0), identity: try row.string(1), owner: try row.string(2)),
                try row.bool(3)
            )
        }
    }
}
