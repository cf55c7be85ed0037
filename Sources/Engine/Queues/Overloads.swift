package import Postgres

/// What decides which functions a name means, beside the schema's own functions: the session's path, and what others have made.
package struct Overloads: Sendable, Equatable {
    /// Of this session.
    package var path: String
    /// Roles and databases whose settings name another path. No connection of ours keeps theirs.
    package var settings: [String]
    /// Functions and operators with the name of a system one and other parameters, all of system types or ours, in schemas in which others than
    /// their owner may create. Where such a schema is searched, Postgres takes them before its own. Those of extensions, superusers and the
    /// owner of the schema millrace are left out.
    package var planted: [String]

    package static func look(on connection: Connection) async throws(PostgresError) -> Overloads {
        let rows = try await connection.query(
            """
            with shared as (
                select n.oid from pg_namespace n
                 where n.nspname not in ('pg_catalog', 'information_schema', 'millrace') and n.nspname !~ '^pg_(toast|temp)'
                   and exists (select from aclexplode(n.nspacl) a where a.privilege_type = 'CREATE' and a.grantee <> n.nspowner)
            ), strangers as (
                select r.oid, r.rolname from pg_roles r
                 where not r.rolsuper and r.oid is distinct from (select n.nspowner from pg_namespace n where n.nspname = 'millrace')
            ), known as (
                select t.oid from pg_type t
                 where t.typnamespace in (select n.oid from pg_namespace n where n.nspname in ('pg_catalog', 'millrace'))
            )
            select current_setting('search_path'),
                   array(select coalesce(nullif(concat_ws(' in ', 'role ' || r.rolname, 'database ' || d.datname), ''), 'every role')
                           from pg_db_role_setting s
                           left join pg_database d on d.oid = s.setdatabase
                           left join pg_roles r on r.oid = s.setrole
                          where (s.setdatabase = 0 or d.datname = current_database()) and (s.setrole = 0 or r.oid is not null)
                            and exists (select from unnest(s.setconfig) c where starts_with(c, 'search_path=')) order by 1),
                   array(select p.oid::regprocedure::text || ' of ' || o.rolname
                           from pg_proc p join strangers o on o.oid = p.proowner
                          where p.pronamespace in (select s.oid from shared s)
                            and exists (select from pg_proc c where c.pronamespace = 'pg_catalog'::regnamespace and c.proname = p.proname and c.proargtypes <> p.proargtypes)
                            and not exists (select from unnest(p.proargtypes) t where t not in (select k.oid from known k))
                            and not exists (select from pg_depend e where e.classid = 'pg_proc'::regclass and e.objid = p.oid and e.deptype = 'e')
                         union all
                         select p.oid::regoperator::text || ' of ' || o.rolname
                           from pg_operator p join strangers o on o.oid = p.oprowner
                          where p.oprnamespace in (select s.oid from shared s)
                            and exists (select from pg_operator c where c.oprnamespace = 'pg_catalog'::regnamespace and c.oprname = p.oprname)
                            and not exists (select from unnest(array[p.oprleft, p.oprright]) t where t <> 0 and t not in (select k.oid from known k))
                            and not exists (select from pg_depend e where e.classid = 'pg_operator'::regclass and e.objid = p.oid and e.deptype = 'e')
                         order by 1 limit 1000)
            """
        ) { row throws(PostgresError) in
            Overloads(path: try row.string(0), settings: try row.strings(1), planted: try row.strings(2))
        }
        return try Queue.one(rows)
    }
}
