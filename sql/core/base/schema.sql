-- What a worker reads before it starts.
create or replace function millrace.schema_state(out version int, out oldest_worker int, out server int, out test_clock boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    select max(m.number) into version from millrace.migration m where m.line = 'core';
    select s.value::int into oldest_worker from millrace.setting s where s.name = 'oldest_worker';
    server := current_setting('server_version_num')::int;
    test_clock := to_regclass('millrace.test_clock') is not null;
end $$;
select millrace.door_is('base', 'schema_state', 'worker, viewer, gateway', 'staff');
select millrace.view_is('base', 'made', 'worker');

-- The rooms that are installed, each with the number of its last migration.
create or replace function millrace.rooms_installed() returns table (room text, version int)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select m.line, max(m.number) from millrace.migration m where m.line <> 'core' group by m.line order by m.line
$$;
select millrace.door_is('base', 'rooms_installed', 'worker, viewer, gateway', 'staff');
