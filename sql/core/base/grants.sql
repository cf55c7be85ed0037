-- Everything is closed, then each role gets its doors, as the lines beside them say: see doors.sql. Applied again by every migrate, so that a role made
-- later gets them too. A right that was granted by hand to another role stays.
do $$
declare
    one record;
begin
    perform millrace.doors_tidy();
    -- No call is worth compiling its plan, and a plan that was told to avoid something has a cost that asks for it. Here for all doors at once, because
    -- one that is forgotten takes seconds where others take milliseconds.
    for one in
        select p.oid::regprocedure as signature from pg_proc p
         where p.pronamespace = 'millrace'::regnamespace and p.prosecdef
           and exists (select from unnest(p.proconfig) c where starts_with(c, 'search_path='))
           and not exists (select from unnest(p.proconfig) c where starts_with(c, 'jit='))
    loop
        execute format('alter function %s set jit = off', one.signature);
    end loop;
    -- Before its first grant: the owner must not have the right only because it is the owner.
    if (select p.proacl is null from pg_proc p where p.oid = 'millrace.right_claims()'::regprocedure) then
        execute 'revoke execute on function millrace.right_claims() from public, current_user';
    end if;
    execute 'revoke all on schema millrace from public';
    execute 'revoke all on all tables in schema millrace from public';
    execute 'revoke all on all sequences in schema millrace from public';
    execute 'revoke all on all routines in schema millrace from public';
    -- Revokes default privileges that somebody may have granted to PUBLIC. The right of PUBLIC to execute new functions cannot be revoked
    -- for a schema; but only a migration creates functions here, and it ends with these lines.
    execute 'alter default privileges in schema millrace revoke all on tables from public';
    execute 'alter default privileges in schema millrace revoke all on sequences from public';
    execute 'alter default privileges in schema millrace revoke all on routines from public';
    for one in
        select case when d.is_view then format('select on millrace.%I', d.name) else format('execute on function %s', p.oid::regprocedure) end as what, r.role
          from millrace.door d
          left join pg_proc p on not d.is_view and p.pronamespace = 'millrace'::regnamespace and p.proname = d.name
         cross join lateral (select millrace.role_name(x) as role from unnest(d.roles) x) r
         where to_regrole(quote_ident(r.role)) is not null
    loop
        execute format('grant %s to %I', one.what, one.role);
    end loop;
    -- The planner inlines enqueue's only call, so a role that was granted enqueue by name also needs the function behind it.
    for one in
        select distinct behind.oid::regprocedure as signature, a.grantee::regrole as role
          from pg_proc door cross join lateral aclexplode(door.proacl) a
          join pg_proc behind on behind.proname = 'enqueue_as' and behind.pronamespace = door.pronamespace
         where door.proname = 'enqueue' and door.pronamespace = 'millrace'::regnamespace and a.privilege_type = 'EXECUTE' and a.grantee <> 0
    loop
        execute format('grant execute on function %s to %s', one.signature, one.role);
    end loop;
    for one in select millrace.role_name(r.role) as role from millrace.door_roles() r loop
        if to_regrole(quote_ident(one.role)) is not null then
            execute format('grant usage on schema millrace to %I', one.role);
        end if;
    end loop;
end $$;
