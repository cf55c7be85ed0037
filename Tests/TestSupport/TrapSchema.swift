/// A schema for the front of a search_path, with all names of the system's own: functions and operators that throw, and types that are
/// something else.
package enum TrapSchema {
    package static let script = """
        create schema trap;
        do $$
        declare
            one record;
            springs text := 'language plpgsql as $t$ begin raise exception ''trapped''; end $t$';
        begin
            for one in
                select p.proname as name, format_type(p.prorettype, null) as result,
                       (select string_agg(format_type(t, null), ', ' order by n) from unnest(p.proargtypes) with ordinality a(t, n)) as arguments
                  from pg_proc p
                 where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f'
                   and not exists (select from unnest(p.proargtypes || nullif(p.prorettype, 'void'::regtype)) t join pg_type y on y.oid = t where y.typtype = 'p')
            loop
                execute format('create function trap.%I(%s) returns %s %s', one.name, one.arguments, one.result, springs);
            end loop;
            for one in
                select o.oid::text as n, o.oprname as name, format_type(o.oprleft, null) as lefts, format_type(o.oprright, null) as rights, format_type(o.oprresult, null) as result
                  from pg_operator o
                 where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprleft <> 0
                   and not exists (select from pg_type y where y.oid in (o.oprleft, o.oprright, o.oprresult) and y.typtype = 'p')
                union all
                select l || '_' || r, '||', l, r, 'text' from unnest(array['int', 'bigint', 'text']) l cross join unnest(array['int', 'bigint', 'text']) r where l <> r and 'text' in (l, r)
            loop
                execute format('create function trap.operator_%s(%s, %s) returns %s %s', one.n, one.lefts, one.rights, one.result, springs);
                execute format('create operator trap.%s (leftarg = %s, rightarg = %s, function = trap.operator_%s)', one.name, one.lefts, one.rights, one.n);
            end loop;
            for one in
                select y.typname as name from pg_type y where y.typnamespace = 'pg_catalog'::regnamespace and y.typtype = 'b' and y.typname not like '\\_%'
            loop
                execute format('create domain trap.%I as pg_catalog.bytea', one.name);
            end loop;
        end $$;
        """
}
