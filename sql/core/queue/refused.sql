-- A worker whose program does not fit the schema says so before it ends; the row is that worker's latest try. Rows of a day ago are forgotten. A
-- worker older than this function cannot call it, and is missed.
create or replace function millrace.worker_refused(the_name text, the_host text, the_pid int, the_version text, the_schema int, the_kinds text[], the_queues text[])
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
begin
    insert into millrace.refused_worker as r (host, name, pid, version, schema, kinds, queues, at)
    values (left(the_host, 128), left(the_name, 128), the_pid, left(the_version, 128), the_schema, the_kinds[1:1000], the_queues[1:1000], t)
    on conflict (host, name) do update
        set pid = excluded.pid, version = excluded.version, schema = excluded.schema, kinds = excluded.kinds, queues = excluded.queues, at = excluded.at;
    delete from millrace.refused_worker r where r.at < t - interval '1 day';
end $$;
select millrace.door_is('queue', 'worker_refused', 'worker', 'staff');
