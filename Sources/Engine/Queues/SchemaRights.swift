package import Postgres
import Schema

/// Rights in the schema beyond those of the configured roles; read from the catalogs, which every role may read.
package struct SchemaRights: Sendable, Equatable {
    /// Functions that run with the owner's rights, or that callers and views call, and that resolve names on the caller's search_path. A
    /// body that is parsed when it is created does not.
    package var unfixed: [String]
    /// What PUBLIC may execute, read or change.
    package var everybody: [String]
    /// Roles other than the owner that may create objects in the schema.
    package var creators: [String]
    /// Roles that are not configured but have rights on single objects.
    package var others: [String]

    package static func look(
        configured: [String], on connection: Connection
    ) async throws(PostgresError) -> SchemaRights {
        let rows = try await connection.query(
            """
            with recursive schema as (
                select n.oid, n.nspowner, n.nspacl from pg_namespace n where n.nspname = 'millrace'
            ), reached (oid) as (
                select p.oid from pg_proc p join schema n on n.oid = p.pronamespace
                 where exists (select from aclexplode(p.proacl) a where a.grantee <> p.proowner)
                union
                select d.refobjid from pg_depend d where d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_proc'::regclass
                union
                select d.refobjid
                  from reached r join pg_proc p on p.oid = r.oid and p.prosqlbody is not null
                  join pg_depend d on d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.refclassid = 'pg_proc'::regclass
            ), rights (object, grantee, privilege) as (
                select 'the schema', a.grantee, a.privilege_type from schema n cross join lateral aclexplode(n.nspacl) a where a.grantee <> n.nspowner
                union all
                select p.oid::regprocedure::text, a.grantee, a.privilege_type
                  from pg_proc p join schema n on n.oid = p.pronamespace cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                 where a.grantee <> p.proowner
                union all
                select c.oid::regclass::text, a.grantee, a.privilege_type
                  from pg_class c join schema n on n.oid = c.relnamespace cross join lateral aclexplode(c.relacl) a where a.grantee <> c.relowner
            )
            select array(select p.oid::regprocedure::text from pg_proc p join schema n on n.oid = p.pronamespace
                          where (p.prosecdef or p.prosqlbody is null and p.oid in (select r.oid from reached r)) and p.proname <> all ($1)
                            and not exists (select from unnest(p.proconfig) c where starts_with(c, 'search_path=')) order by 1),
                   array(select distinct r.object from rights r where r.grantee = 0 order by 1),
                   array(select distinct case r.grantee when 0 then 'public' else pg_get_userbyid(r.grantee) end::text
                           from rights r where r.object = 'the schema' and r.privilege = 'CREATE' order by 1),
                   array(select distinct pg_get_userbyid(r.grantee)::text from rights r
                          where r.grantee <> 0 and pg_get_userbyid(r.grantee) <> all ($2) order by 1)
            """, [.texts(Schema.callersPathFunctions), .texts(configured)]
        ) { row throws(PostgresError) in
            SchemaRights(
                unfixed: try row.strings(0), everybody: try row.strings(1), creators: try row.strings(2),
                others: try row.strings(3))
        }
        return try Queue.one(rows)
    }
}
