-- What collectors of metrics read: counted at most once in ten seconds for all of them, and stored. Every part reads up to a bound.

-- Jobs by queue, kind and state, with the age of the oldest ready one. At most 10,000 ready jobs of each line and 200,000 altogether are looked at,
-- and as many scheduled ones. state: ready, scheduled, retrying or running. Queues and kinds beyond the first hundred and the first two hundred of
-- their tables are `other`, so the sets of labels stay bounded. unserved: ready jobs by kind that no worker takes from their queue.
create or replace function millrace.measure_jobs(out seen jsonb, out unserved jsonb)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
begin
    with lines as materialized (
        select distinct f.queue from millrace.heads() f
    ), waiting as materialized (
        select w.queue, w.lane, w.kind, w.seq from (
            select r.* from lines l cross join lateral (
                select r.queue, r.lane, r.kind, r.seq from millrace.ready r where r.queue = l.queue order by r.lane, r.seq limit 10000) r
             limit 200000) w
    ), firsts as (
        select w.queue, w.lane, w.kind, count(*) as n, min(w.seq) as seq from waiting w group by w.queue, w.lane, w.kind
    ), found as (
        select f.queue, f.kind, 'ready' as state, f.n, (
               select greatest(j.enqueued_at, coalesce(j.run_at, j.enqueued_at)) from millrace.ready r join millrace.job j on j.id = r.job
                where r.queue = f.queue and r.lane = f.lane and r.seq = f.seq) as oldest
          from firsts f
        union all
        select p.queue, p.kind, 'ready', count(*), null from (select x.queue, x.kind from millrace.parked x limit 200000) p group by p.queue, p.kind
        union all
        select d.queue, d.kind, 'scheduled', count(*), null
          from (select x.queue, x.kind from millrace.timer x where x.attempt = 0 limit 200000) d group by d.queue, d.kind
        union all
        select a.queue, a.kind, 'retrying', a.n, null from millrace.retries() a
        union all
        select j.queue, j.kind, 'running', count(*), null
          from millrace.lease l cross join lateral unnest(l.ids) u(id)
          join millrace.job j on j.id = u.id and j.id between l.lo and l.hi
         where not exists (
                select from millrace.history h where h.class = (l.number & 3)::smallint and h.started = l.at
                   and h.id = u.id and h.session = l.session and h.number = l.number)
         group by j.queue, j.kind
    ), queues as (
        select q.id, case when row_number() over (order by coalesce(q.main, q.id)) <= 100 then q.name else 'other' end as name
          from millrace.queue q where q.main is null
    ), kinds as (
        select k.id, case when row_number() over (order by k.id) <= 200 then k.name else 'other' end as name from millrace.kind k
    ), named as (
        select q.name as queue, k.name as kind, f.state, sum(f.n) as n, min(f.oldest) as oldest
          from found f join millrace.queue line on line.id = f.queue
          join queues q on q.id = coalesce(line.main, line.id) join kinds k on k.id = f.kind
         group by q.name, k.name, f.state
    ), lost as (
        select k.name as kind, sum(f.n) as n
          from found f join millrace.queue line on line.id = f.queue
          join millrace.queue main on main.id = coalesce(line.main, line.id) join kinds k on k.id = f.kind
         where f.state = 'ready'
           and not exists (select from millrace.session s where millrace.kind_base(f.kind) = any (s.kinds) and (s.queues is null or main.name = any (s.queues)))
         group by k.name
    )
    select (select coalesce(jsonb_agg(jsonb_build_array(n.queue, n.kind, n.state, n.n, extract(epoch from n.oldest)) order by n.queue, n.kind, n.state), '[]') from named n),
           (select coalesce(jsonb_object_agg(l.kind, l.n), '{}') from lost l)
      into seen, unserved;
end $$;

-- Queues, workers, schedules, providers, operations, samples.
create or replace function millrace.measure_fleet(t timestamptz) returns table (name text, labels text[], value float8)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    return query
    select 'queue_paused', array[q.label], max((q.paused_at is not null)::int)::float8
      from (select case when row_number() over (order by m.id) <= 100 then m.name else 'other' end as label, m.paused_at
              from millrace.queue m where m.main is null) q
     group by q.label;
    return query
    select 'workers', array[w.state], count(x.state)::float8
      from (values ('working'), ('draining'), ('cut off'), ('silent')) w(state)
      left join (select case when b.at < t - interval '8 s' then 'silent' else b.state end as state
                   from millrace.session s join millrace.beat b on b.session = s.id) x on x.state = w.state
     group by w.state;
    return query
    select v.name, null::text[], v.n
      from (select coalesce(sum(s.slots), 0)::float8 as slots, coalesce(sum(b.stuck), 0)::float8 as stuck
              from millrace.session s join millrace.beat b on b.session = s.id) w
     cross join lateral (values ('workers_slots', w.slots), ('workers_stuck', w.stuck)) v(name, n);
    return query
    select 'schedules', array[v.state], v.n::float8
      from (select count(*) filter (where s.paused_at is not null) as paused, count(*) filter (where s.problem is not null) as broken,
                   count(*) filter (where s.problem is null and case when s.next_at is not null then s.next_at < t - interval '1 minute'
                                          else s.paused_at is null and s.changed_at < t - interval '1 minute' end) as overdue,
                   count(*) filter (where s.last_missed_at > t - interval '1 hour') as missed, count(*) as known
              from (select * from millrace.schedule limit 10000) s) c
     cross join lateral (values ('known', c.known), ('paused', c.paused), ('broken', c.broken), ('overdue', c.overdue), ('missed', c.missed)) v(state, n);
    -- Questions that wait for an answer. Those of jobs that have ended are gone within a day or so.
    return query
    select v.name, v.labels, v.n
      from (select count(*) filter (where a.asks)::float8 as people, count(*) filter (where not a.asks)::float8 as nobody,
                   coalesce(max(extract(epoch from t - a.asked_at)), 0)::float8 as age
              from (select x.asked_at, exists (select from millrace.approval_person p where p.approval = x.id) as asks
                      from millrace.approval x where x.answered_at is null and coalesce(x.due > t, true) and millrace.approval_state(x) = 'open'
                     order by x.asked_at limit 10000) a) c
     cross join lateral (values ('approvals_open', array['people'], c.people), ('approvals_open', array['nobody'], c.nobody),
                                ('approvals_oldest_seconds', null, greatest(0, c.age))) v(name, labels, n);
    return query
    select 'provider_circuit', array[c.provider, c.class, c.state], 1::float8
      from millrace.provider_circuit c where c.state <> 'closed' order by c.provider, c.class limit 100;
    return query
    select v.name, array[s.state], v.n
      from (values ('running'), ('paused'), ('undoing')) s(state)
     cross join lateral (select count(*)::float8 as n, coalesce(max(extract(epoch from t - o.changed_at)), 0)::float8 as idle
                           from (select x.changed_at from millrace.operation x where x.tidied < 2 and x.state = s.state limit 1000) o) o
     cross join lateral (values ('operations', o.n), ('operations_idle_seconds', greatest(0, o.idle))) v(name, n);
    return query
    select 'samples_age_seconds', null::text[], greatest(0, extract(epoch from t - x.at))::float8
      from (select f.at from millrace.sample_fresh f where f.what = 1 order by f.at desc limit 1) x;
end $$;

-- The server and the tables. Sizes are those of the last sample, because to ask for them costs a look at every file.
create or replace function millrace.measure_storage(t timestamptz) returns table (name text, labels text[], value float8)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    return query
    select 'storage_bytes', array[k.name], f.vals[(p.place - 1) * 8 + 2] * 1024::float8
      from (select x.* from millrace.sample_fresh x where x.what = 5 and x.at > t - interval '5 minutes' order by x.at desc limit 1) f
     cross join lateral unnest(f.keys) with ordinality p(key, place) join millrace.sample_key k on k.id = p.key and k.name <> '';
    return query
    select 'storage_dead_rows', array[n.name], pg_stat_get_dead_tuples(('millrace.' || n.name)::regclass)::float8
      from unnest(array['ready', 'timer', 'lease', 'beat', 'parked', 'slot']) n(name);
    return query
    select v.name, null::text[], v.n
      from (select coalesce(max(extract(epoch from clock_timestamp() - a.xact_start)) filter (where a.backend_xmin is not null), 0)::float8 as oldest,
                   coalesce(max(age(a.backend_xmin)), 0)::float8 as pinned
              from pg_stat_activity a where a.pid <> pg_backend_pid() and a.datname = current_database()) a
     cross join (select coalesce(max(greatest(age(r.xmin), age(r.catalog_xmin))), 0)::float8 as held from pg_replication_slots r) r
     cross join (select coalesce(max(age(p.transaction)), 0)::float8 as prepared from pg_prepared_xacts p) p
     cross join (select count(*)::float8 as used,
                        greatest(0, current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                            - coalesce(nullif(current_setting('reserved_connections', true), ''), '0')::int - count(*))::float8 as spare
                   from pg_stat_activity u
                  where u.usesysid is not null and u.datid is not null and coalesce(u.backend_type, 'client backend') = 'client backend') u
     cross join millrace.partitions() d
     cross join lateral (values
            ('storage_oldest_transaction_seconds', greatest(0, a.oldest)), ('storage_oldest_snapshot_transactions', greatest(a.pinned, r.held, p.prepared)),
            ('storage_history_ahead_seconds', coalesce(d.history_days * 86400, -1)::float8), ('storage_job_ids', d.job_ids::float8), ('storage_history_strays', d.strays::float8),
            ('database_connections', u.used), ('database_connections_left', u.spare), ('database_notifications_ratio', pg_notification_queue_usage()),
            ('database_frozen_age_transactions', (select age(b.datfrozenxid)::float8 from pg_database b where b.datname = current_database()))) v(name, n)
     where v.n is not null;
end $$;

-- The rooms: their lanes, and what each alone has.
create or replace function millrace.measure_rooms(t timestamptz) returns table (name text, labels text[], value float8)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    one record;
begin
    return query
    select v.name, v.labels, v.n
      from millrace.room_lanes(10000) l
     cross join lateral (values
            ('room_waiting', array[l.room, l.lane], l.waiting::float8), ('room_later', array[l.room, l.lane], l.later::float8),
            ('room_running', array[l.room, l.lane], l.running::float8), ('room_oldest_seconds', array[l.room, l.lane], greatest(0, coalesce(l.oldest_s, 0))),
            ('room_ended_last_hour', array[l.room, l.lane], l.ended::float8), ('room_failed_last_hour', array[l.room, l.lane], l.failed::float8)) v(name, labels, n)
     where v.n is not null;
    for one in select * from millrace.hooks_of('measure') loop
        begin
            return query execute format('select * from %s($1)', one.call) using t;
            if one.fails then
                perform millrace.hook_went('measure', one.function);
            end if;
        exception when others then
            perform millrace.hook_went('measure', one.function, sqlstate, sqlerrm);
        end;
    end loop;
end $$;

-- Counts, unless somebody has within `every` or does it now: then the last counts.
create or replace function millrace.measure(every interval, out at timestamptz, out value jsonb)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    t timestamptz := millrace.now();
    jobs record;
begin
    select m.at, m.value into at, value from millrace.measured m;
    -- A caller that does not get the row uses the last counts, because another caller is counting.
    if at < t - every then
        perform from millrace.measured m where m.at = measure.at for update skip locked;
        if found then
            perform set_config('synchronous_commit', 'off', true);
            jobs := millrace.measure_jobs();
            at := t;
            value := jsonb_build_object('jobs', jobs.seen, 'fleet', (
                select jsonb_agg(jsonb_build_array(f.name, to_jsonb(f.labels), f.value))
                  from (select * from millrace.measure_fleet(t) union all select * from millrace.measure_storage(t) union all select * from millrace.measure_rooms(t)
                        union all select 'jobs_unserved', array[u.key], u.value::float8 from jsonb_each_text(jobs.unserved) u) f));
            update millrace.measured m set at = measure.at, value = measure.value;
        end if;
    end if;
    if jsonb_typeof(value) = 'array' then                 -- as an earlier version counted
        value := jsonb_build_object('jobs', value, 'fleet', '[]'::jsonb);
    end if;
end $$;

-- Jobs by queue, kind and state, with the age of the oldest ready one, and of the counts.
create or replace function millrace.measures(every interval default '10 s')
returns table (queue text, kind text, state text, jobs bigint, oldest_s float8, age_s float8)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    t timestamptz := millrace.now();
    counted record;
begin
    counted := millrace.measure(every);
    return query
    select e ->> 0, e ->> 1, e ->> 2, (e ->> 3)::bigint,
           case when e ->> 4 is not null then greatest(0, extract(epoch from t) - (e ->> 4)::numeric)::float8 end, extract(epoch from t - counted.at)::float8
      from jsonb_array_elements(counted.value -> 'jobs') e;
end $$;
select millrace.door_is('operating', 'measures', 'worker, viewer', 'staff');

-- Everything else, as it was counted with them: a name, the values of its labels, and a number.
create or replace function millrace.measures_fleet(every interval default '10 s')
returns table (name text, labels text[], value float8, age_s float8)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    t timestamptz := millrace.now();
    counted record;
begin
    counted := millrace.measure(every);
    return query
    select e ->> 0, case when jsonb_typeof(e -> 1) = 'array' then array(select jsonb_array_elements_text(e -> 1)) end, (e ->> 2)::float8, extract(epoch from t - counted.at)::float8
      from jsonb_array_elements(counted.value -> 'fleet') e;
end $$;
select millrace.door_is('operating', 'measures_fleet', 'worker, viewer', 'staff');
