import Foundation
import Postgres

/// Overloads that a stranger has planted in `public`: for each system function and operator that our SQL names, others of the same name whose
/// parameters have exactly the types of a call. Postgres takes them before its own, which are for any type or need a cast, wherever
/// `public` is searched. Each writes down that it was called, and then does what the real one does.
package enum PlantedOverloads {
    /// Adds them to a migrated database. Everybody may create in `public`, as in Postgres 14.
    static func plant(on connection: Connection) async throws {
        let planter = "overload_planter"
        try await connection.run(
            """
            create role \(planter);
            grant usage on schema millrace to \(planter);
            grant create on schema public to public;
            set role \(planter)
            """)
        try await connection.run(ground)
        try await connection.run(planting)
        _ = try await connection.query(
            "select public.trap_plant(string_to_array($1, ' '))", [.text(try await usedNames())],
            deadline: .seconds(120)
        ) { row throws(PostgresError) in try row.int(0) }
        try await connection.run("reset role; revoke usage on schema millrace from \(planter)")
    }

    /// Everything in our sources that may be the name of a function.
    private static func usedNames() async throws -> String {
        let root = URL(filePath: #filePath).appending(path: "../../..").standardized.path
        return try await Program.check(
            "grep",
            ["-rohE", "--include=*.sql", "--include=*.swift", "[a-z_][a-z_0-9]{2,}", "\(root)/Sources", "\(root)/sql"]
        ).split(separator: "\n").reduce(into: Set<Substring>()) { $0.insert($1) }.joined(separator: " ")
    }

    /// Which were called since the last look, by whose session, and in which statement.
    package static func sprung(in database: TestDatabase) async throws -> [String] {
        let connection = try await database.connect()
        var found = try await connection.column(
            "select name || ' by ' || who || ': ' || left(min(statement), 200) from public.trap_log group by name, who order by 1"
        )
        // A call whose transaction was rolled back has counted all the same.
        let calls = try await connection.int(
            "select case when is_called then last_value else 0 end from public.trap_count")
        if calls > 0, found.isEmpty { found = ["\(calls) that were rolled back; see the server's log"] }
        try await connection.run("truncate public.trap_log; alter sequence public.trap_count restart")
        await connection.close()
        return found
    }

    private static let ground = """
        create table public.trap_log (name text, who text, statement text);
        create sequence public.trap_count;
        create function public.trap_sprung(name text) returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
        begin
            perform nextval('public.trap_count');
            raise log 'trapped: % of %', name, session_user;
            insert into public.trap_log values (name, session_user, current_query());
        end $$;
        """

    private static let planting = """
        create function public.trap_plant(used text[]) returns int language plpgsql set search_path = pg_catalog, pg_temp as $plant$
        declare
            plain constant oid[] := '{text,name,varchar,"\\"char\\"",int2,int4,int8,numeric,float4,float8,bool,uuid,jsonb,json,timestamptz,timestamp,date,time,interval,bytea,oid,regclass,regrole,regprocedure,xid,xid8,inet,pg_lsn,tid,record}'::regtype[]
                || array(select t.oid from pg_type t where t.typnamespace = 'millrace'::regnamespace and t.typtype in ('d', 'e'));
            lists constant oid[] := array(select t.typarray from unnest(plain) p join pg_type t on t.oid = p where t.typarray <> 0);
            rows constant oid[] := array(select t.oid from pg_type t join pg_class c on c.oid = t.typrelid
                                          where t.typnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'p', 'v', 'c') and not c.relispartition);
            keys constant oid[] := '{text,name,varchar,int4,int8,uuid}'::regtype[];
            core constant oid[] := '{text,name,int4,int8,bool,uuid,jsonb,timestamptz,interval}'::regtype[];
            single constant oid[] := array['"any"'::regtype, 'anyelement'::regtype, 'anynonarray'::regtype, 'anycompatible'::regtype, 'anycompatiblenonarray'::regtype];
            listed constant oid[] := array['anyarray'::regtype, 'anycompatiblearray'::regtype];
            one record;
            n int := 0;
            body text;
            fold text;
        begin
            create temporary table plant on commit drop as
            -- Every function of any type, for each concrete type.
            select p.oid as real, p.proname as name, p.prokind as kind, p.proretset as many, p.provariadic <> 0 as var,
                   array(select case when a.t = any (listed) or p.provariadic = '"any"'::regtype and a.i = p.pronargs then x.list
                                     when a.t = '"any"'::regtype and a.i = p.pronargs and p.pronargs > 1 then y.t
                                     when a.t = any (single) then x.t else a.t end
                           from unnest(p.proargtypes::oid[]) with ordinality a(t, i) order by a.i) as args,
                   case when p.prorettype = any (listed) then x.list when p.prorettype = any (single) then x.t else p.prorettype end as result
              from pg_proc p
             cross join lateral (
                select t, nullif(y.typarray, 0) as list from unnest(plain || lists || rows) t join pg_type y on y.oid = t) x
             cross join lateral (
                select t from unnest(plain || lists) t
                 where t = 'text'::regtype or p.provariadic = 0 and p.pronargs = 2 and p.proargtypes[0] = '"any"'::regtype and x.t = any (keys)) y
             where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = any (used) and p.prokind in ('f', 'a', 'w')
               and p.proargtypes::oid[] && (single || listed)
               and not p.proargtypes::oid[] && array['internal'::regtype, 'anyenum'::regtype, 'anyrange'::regtype, 'anymultirange'::regtype, 'anycompatiblerange'::regtype]::oid[];
            insert into plant
            select p.oid, p.proname, p.prokind, p.proretset, false, c.args, p.prorettype
              from pg_proc p cross join unnest(core) x cross join unnest(core) y
             cross join lateral (select case when p.proname like '%build_object' then array['text'::regtype, x, 'text'::regtype, y]
                                             else array_remove(p.proargtypes::oid[], '"any"'::regtype) || array[x, y] end as args) c
             where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = any (used) and p.prokind = 'f' and p.provariadic = '"any"'::regtype;
            delete from plant q where array_position(q.args, null) is not null or q.result is null or '_record'::regtype = any (q.args)
                or q.result = 'record'::regtype and q.kind <> 'f';

            -- Every function of plain types, for types that Postgres would cast to its own.
            insert into plant
            select p.oid, p.proname, p.prokind, p.proretset, false, c.args, p.prorettype
              from pg_proc p
             cross join lateral (
                with recursive c (i, args) as (
                    select 0, '{}'::oid[]
                    union all
                    select c.i + 1, c.args || s.t
                      from c cross join lateral (
                        select p.proargtypes[c.i] as t
                        union select k.castsource from pg_cast k where k.casttarget = p.proargtypes[c.i] and k.castcontext = 'i' and k.castsource = any (plain)) s
                     where c.i < p.pronargs)
                select c.args from c where c.i between greatest(1, p.pronargs - p.pronargdefaults) and p.pronargs) c
             where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = any (used) and p.prokind in ('f', 'a') and p.pronargs between 1 and 3 and p.provariadic = 0
               and not exists (select from unnest(p.proargtypes::oid[]) a join pg_type t on t.oid = a where t.typtype = 'p')
               and (p.prokind = 'f' or not exists (select from pg_aggregate g where g.aggfnoid = p.oid and g.aggkind <> 'n'));

            for one in
                select distinct on (q.name, q.args) q.*, format_type(q.result, null) as gives,
                       (select string_agg(case when q.var and a.i = cardinality(q.args) then 'variadic ' else '' end || format_type(a.t, null), ', ' order by a.i) from unnest(q.args) with ordinality a(t, i)) as takes,
                       (select string_agg(case when q.var and a.i = cardinality(q.args) then 'variadic ' else '' end || '$' || a.i, ', ' order by a.i) from unnest(q.args) with ordinality a(t, i)) as given
                  from plant q
                 where not exists (select from pg_proc p where p.pronamespace = 'pg_catalog'::regnamespace and p.proname = q.name and p.proargtypes::oid[] = q.args)
            loop
                n := n + 1;
                begin
                    if one.kind = 'f' then
                        body := format('perform public.trap_sprung(%L);', format('%s(%s)', one.name, one.takes))
                            || format(case when one.many then ' return query select * from pg_catalog.%I(%s);' when one.gives = 'void' then ' perform pg_catalog.%I(%s);' else ' return pg_catalog.%I(%s);' end, one.name, one.given);
                        execute format('create function public.%I(%s) returns %s %s language plpgsql as %L', one.name, one.takes,
                            case when one.many then 'setof' else '' end, one.gives, format('begin %s end', body));
                    else
                        fold := format('trap_fold_%s', n);
                        execute format('create function public.%I(%s, %s) returns %s language plpgsql as %L', fold, one.gives, one.takes, one.gives,
                            format('begin perform public.trap_sprung(%L); return $1; end', format('%s(%s)', one.name, one.takes)));
                        execute format('create aggregate public.%I(%s) (sfunc = public.%I, stype = %s)', one.name, one.takes, fold, one.gives);
                    end if;
                exception when others then
                    n := n - 1;                                    -- PL/pgSQL cannot return a list of rows
                end;
            end loop;

            for one in
                with tried as (
                    -- Every operator of any type, for each concrete type.
                    select distinct o.oprname as name, case when o.oprleft = any (listed) then x.list when o.oprleft = any (single) then x.t else o.oprleft end as l,
                           case when o.oprright = any (listed) then x.list when o.oprright = any (single) then x.t else o.oprright end as r
                      from pg_operator o
                     cross join lateral (select t, nullif(y.typarray, 0) as list from unnest(plain || lists || rows) t join pg_type y on y.oid = t) x
                     where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprleft <> 0 and array[o.oprleft, o.oprright] && (single || listed)
                    union
                    -- Every operator for two types that Postgres would cast.
                    select distinct o.oprname, case when o.oprleft = 'record'::regtype then row else l end, case when o.oprright = 'record'::regtype then row else r end
                      from pg_operator o
                     cross join lateral (select o.oprleft union select k.castsource from pg_cast k where k.casttarget = o.oprleft and k.castcontext = 'i' and k.castsource = any (plain)) x (l)
                     cross join lateral (select o.oprright union select k.castsource from pg_cast k where k.casttarget = o.oprright and k.castcontext = 'i' and k.castsource = any (plain)) y (r)
                     cross join lateral (select 'record'::regtype union all select unnest(rows) where 'record'::regtype in (o.oprleft, o.oprright)) z (row)
                     where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprleft = any (plain) and o.oprright = any (plain)
                )
                select t.name, format_type(t.l, null) as l, format_type(t.r, null) as r from tried t
                 where t.l is not null and t.r is not null
                   and not exists (select from pg_operator o where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprname = t.name and o.oprleft = t.l and o.oprright = t.r)
            loop
                begin
                    execute format('select format_type(pg_typeof(null::%s operator(pg_catalog.%s) null::%s), null)', one.l, one.name, one.r) into body;
                    n := n + 1;
                    fold := format('trap_operator_%s', n);
                    execute format('create function public.%I(%s, %s) returns %s language plpgsql as %L', fold, one.l, one.r, body,
                        format('begin perform public.trap_sprung(%L); return $1 operator(pg_catalog.%s) $2; end', concat_ws(' ', one.l, one.name, one.r), one.name));
                    execute format('create operator public.%s (leftarg = %s, rightarg = %s, function = public.%I)', one.name, one.l, one.r, fold);
                exception when others then
                    null;                                          -- Postgres has none for these types
                end;
            end loop;
            return n;
        end $plant$;
        """
}
