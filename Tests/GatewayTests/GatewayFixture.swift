import Postgres
import TestSupport

/// The doors of gateways, while the schema has none.
enum GatewayFixture {
    static func install(_ owner: Connection, client: String, gateway: String) async throws {
        if try await owner.bool("select to_regproc('millrace.gateway_doors') is not null") { return }
        try await owner.run(script)
        try await owner.run(
            """
            grant usage on schema millrace to \(gateway);
            grant execute on function millrace.gateway_doors(text) to \(gateway);
            """)
    }

    private static let script = """
        create function millrace.gateway_doors(the_role text)
        returns table (name text, arguments jsonb, result jsonb, comment text)
        language sql stable security definer set search_path = pg_catalog, pg_temp as $$
            with one as (
                select p.*, coalesce(p.proallargtypes, p.proargtypes::oid[]) as types,
                       coalesce(p.proargmodes::text[], array_fill('i'::text, array[p.pronargs::int])) as modes
                  from pg_proc p
                 where p.pronamespace = 'millrace'::regnamespace and p.prokind = 'f'
                   and p.prorettype <> 'trigger'::regtype and p.proname !~ '^gateway_'
                   and exists (select from aclexplode(p.proacl) a
                                where a.grantee = to_regrole(the_role) and a.privilege_type = 'EXECUTE')
            ), argument as (
                select o.oid, a.at, o.proargnames[a.at] as name, o.types[a.at] as type, o.modes[a.at] as mode,
                       count(*) filter (where o.modes[a.at] in ('i', 'b', 'v')) over (partition by o.oid order by a.at) as place,
                       o.pronargs - o.pronargdefaults as required
                  from one o cross join lateral generate_series(1, cardinality(o.types)) a(at)
            )
            select o.proname::text,
                   coalesce((select jsonb_agg(jsonb_build_object('name', a.name, 'type', format_type(a.type, null), 'required', a.place <= a.required) order by a.at)
                      from argument a where a.oid = o.oid and a.mode in ('i', 'b', 'v') and a.name <> 'caller'), '[]'),
                   case when o.prorettype = 'void'::regtype then jsonb_build_object('kind', 'void')
                        when exists (select from argument a where a.oid = o.oid and a.mode in ('o', 'b', 't')) then
                             jsonb_build_object('kind', case when o.proretset then 'rows' else 'row' end, 'columns',
                                 (select jsonb_agg(jsonb_build_object('name', a.name, 'type', format_type(a.type, null)) order by a.at)
                                    from argument a where a.oid = o.oid and a.mode in ('o', 'b', 't')))
                        when t.typtype = 'c' then
                             jsonb_build_object('kind', case when o.proretset then 'rows' else 'row' end, 'columns',
                                 (select jsonb_agg(jsonb_build_object('name', c.attname, 'type', format_type(c.atttypid, null)) order by c.attnum)
                                    from pg_attribute c where c.attrelid = t.typrelid and c.attnum > 0 and not c.attisdropped))
                        else jsonb_build_object('kind', case when o.proretset then 'rows' else 'scalar' end, 'type', format_type(o.prorettype, null))
                   end,
                   obj_description(o.oid, 'pg_proc')
              from one o join pg_type t on t.oid = o.prorettype
        $$;
        """
}
