-- What a worker reads before it starts.
create or replace function millrace.schema_state(out version int, out oldest_worker int, out server int, out test_clock boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    select max(m.number) into version from millrace.migration m;
    select s.value::int into oldest_worker from millrace.setting s where s.name = 'oldest_worker';
    server := current_setting('server_version_num')::int;
    test_clock := to_regclass('millrace.test_clock') is not null;
end $$;

-- Every line of every queue, with its queue's state and its tenant's weight.
create or replace function millrace.queue_list()
returns table (id int, name text, paused boolean, retention smallint, main int, weight float8, limited boolean)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select q.id, q.name, m.paused_at is not null, m.retention, m.id, r.weight,
           q.keyed or r.concurrency is not null or r.rate is not null
               or exists (select from millrace.limit_rule x where x.scope = 'queue' and x.name = q.name)
      from millrace.queue q
      join millrace.queue m on m.id = coalesce(q.main, q.id)
      left join millrace.limit_rule r on r.scope = 'tenant' and r.name = q.tenant
     order by q.id
$$;
