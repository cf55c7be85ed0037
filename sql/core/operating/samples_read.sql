-- Samples for charts and for `status --at`. A call gives at most 500 points, and at most 20,000 rows; the step grows where it must. A step in which
-- nobody sampled has no row. Means are over the samples of the step; counts of ends are sums.

-- The steps of an answer: the beginning in seconds since 1970, the length of a step, and which stored step it is read from.
create or replace function millrace.sample_plan(since timestamptz, until timestamptz, step interval, points int, out first bigint, out last bigint, out step_s int, out level int)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    wanted float8;
begin
    if since is null or until is null or not isfinite(since) or not isfinite(until) or since >= until then
        perform millrace.refuse('since must be before until, and both must be given', 'since');
    end if;
    if step <= interval '0' then
        perform millrace.refuse('step must be longer than nothing', 'step');
    end if;
    since := greatest(since, t - interval '15 days');
    until := least(until, t + interval '1 minute');
    wanted := greatest(extract(epoch from step), extract(epoch from until - since) / greatest(1, points), 10);
    if since < t - interval '1 day 1 minute' then         -- ten seconds are kept for a day
        wanted := greatest(wanted, 60);
    end if;
    step_s := coalesce((select s from unnest(array[10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200]) s where s >= wanted order by s limit 1), 86400);
    level := case when step_s % 600 = 0 then 600 when step_s % 60 = 0 then 60 else 10 end;
    first := floor(extract(epoch from since) / step_s)::bigint * step_s;
    last := ceil(extract(epoch from until))::bigint;
end $$;

-- The stored numbers of keys from `first` up to `last`, without zeros. What is not packed yet is read from the finer steps.
create or replace function millrace.sample_numbers(the_what int, the_keys int[], first bigint, last bigint, level int)
returns table (key int, at bigint, c int, v bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
set enable_memoize = off set plan_cache_mode = force_custom_plan as $$   -- many keys are looked up by a hash only where the plan knows them
declare
    slots constant int := millrace.sample_slots();
    rule constant text := millrace.sample_fold_of(the_what);
    columns constant int := length(rule);
    one int;
    until bigint;
    at_s bigint := first;
begin
    foreach one in array array[600, 60, 10] loop
        continue when one > level;
        until := coalesce((select date_part('epoch', d.upto)::bigint from millrace.sample_done d where d.what = the_what and d.step = one), 0);
        continue when until <= at_s;
        return query
        select x.key, x.at, x.c, x.v
          from (select p.key, date_part('epoch', p.at)::bigint + e.i % slots * one as at, e.i / slots as c,
                       case when substr(rule, e.i / slots + 1, 1) = 'f' then millrace.sample_unbrief(e.v) else e.v end as v
                  from millrace.sample_pack p cross join lateral millrace.sample_decode(p.body) e
                 where p.what = the_what and p.step = one and p.key = any (the_keys)
                   and p.at > to_timestamp(at_s - one * slots) and p.at < to_timestamp(least(until, last))) x
         where x.at >= at_s and x.at < last;
        at_s := until;
        exit when at_s >= last;
    end loop;
    return query
    select z.key, z.at, z.c, z.v
      -- Side by side in the list: as joined functions each would be stored first, for every key of every sample.
      from (select k.key, d.at, generate_series(0, columns - 1) as c, unnest(d.vals[(k.place - 1) * columns + 1 : k.place * columns]) as v
              -- Unpacked once, not for each key.
              from (select date_part('epoch', f.at)::bigint as at, f.keys || '{}'::int[] as keys, f.vals || '{}'::bigint[] as vals
                      from millrace.sample_fresh f
                     where f.what = the_what and f.at >= to_timestamp(greatest(at_s, first)) and f.at < to_timestamp(last) offset 0) d
             cross join lateral (
                select w.key, array_position(d.keys, w.key)::bigint as place from unnest(the_keys) w(key) where cardinality(the_keys) <= 100
                 union all
                select u.key, u.place from unnest(d.keys) with ordinality u(key, place) where cardinality(the_keys) > 100 and u.key = any (the_keys)) k
             where k.place is not null) z
     where z.v <> 0;
end $$;

-- The keys that are asked for: null for all together, * for each, else one name.
create or replace function millrace.sample_wanted(the_what int, the_name text, the_detail text default null) returns int[]
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(array_agg(k.id), '{}') from millrace.sample_key k
     where k.what = the_what
       and case when the_name is null then k.name = '' when the_name = '*' then k.name <> '' else k.name = the_name end
       and case when the_detail is null or the_detail = '*' then true else k.detail = the_detail end
$$;

-- Ends by kind and version in all queues: of one kind, * for each, or '' for all together; of these versions, null for each. They are kept so since a
-- sample that knew how (7); before that they are those of each queue (2).
create or replace function millrace.sample_builds(the_kind text, versions text[], first bigint, last bigint, level int)
returns table (kind text, version text, at bigint, c int, v bigint)
language plpgsql stable set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    whole int := (millrace.sample_wanted(7, null))[1];
    since bigint := coalesce((select date_part('epoch', least(
        (select min(p.at) from millrace.sample_pack p where p.what = 7 and p.key = whole and p.step in (10, 60, 600)),
        (select f.at from millrace.sample_fresh f where f.what = 7 order by f.at limit 1)))::bigint), last);
    wanted int[];
    one int;
begin
    foreach one in array array[2, 7] loop
        continue when case one when 2 then first >= since else last <= since end;
        wanted := array(select k.id from millrace.sample_key k
                         where k.what = one and case the_kind when '*' then k.name <> '' else k.name = the_kind end and (versions is null or k.detail = any (versions))
                         order by k.seen_at desc, k.id desc limit 2000);
        return query
        select k.name, k.detail, n.at, n.c, n.v
          from millrace.sample_numbers(one, wanted, case one when 2 then first else greatest(first, since) end, case one when 2 then least(last, since) else last end, level) n
          join millrace.sample_key k on k.id = n.key;
    end loop;
end $$;

-- How many points fit: 500, and fewer where each of many things is asked for.
create or replace function millrace.sample_points(wanted int[]) returns int
language sql immutable as $$ select greatest(10, least(500, 20000 / greatest(1, cardinality(wanted)), case when cardinality(wanted) > 1 then 150 else 500 end)) $$;

-- Queues: null for all together, * for each one that had anything. oldest_s: the greatest age of the oldest ready job. run_s, wait_s: means of the
-- runs that ended; wait_s of the first runs of jobs that were not scheduled, null where there was none or workers did not say.
create or replace function millrace.samples_queue(since timestamptz, until timestamptz, step interval default null, the_queue text default null)
returns table (at timestamptz, step_s int, queue text, ready float8, due float8, scheduled float8, running float8, paused boolean, oldest_s float8,
    succeeded bigint, failed bigint, dead bigint, retried bigint, cancelled bigint, snoozed bigint, run_s float8, wait_s float8)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    wanted int[] := millrace.sample_wanted(1, the_queue);
    ended int[] := array(select k.id from millrace.sample_key k
                          where k.what = 2 and case when the_queue = '*' then k.queue <> '' else k.queue = the_queue end);
    whole int := (millrace.sample_wanted(1, null))[1];
    plan record;
begin
    plan := millrace.sample_plan(samples_queue.since, samples_queue.until, samples_queue.step, millrace.sample_points(wanted));
    return query
    with places as materialized (
        select n.key, n.at / plan.step_s * plan.step_s as at, n.c, n.v from millrace.sample_numbers(1, wanted || whole, plan.first, plan.last, plan.level) n
    ), taken as (
        select r.at, sum(r.v)::float8 as n from places r where r.key = whole and r.c = 0 group by r.at
    ), numbers as (
        select k.name as queue, r.at, r.c, r.v from places r join millrace.sample_key k on k.id = r.key where r.key = any (wanted)
        union all
        select k.queue, n.at / plan.step_s * plan.step_s, n.c + 10, n.v
          from millrace.sample_numbers(2, ended, plan.first, plan.last, plan.level) n join millrace.sample_key k on k.id = n.key
        union all
        -- All together is the same in the samples of builds, which are shorter.
        select '', n.at / plan.step_s * plan.step_s, n.c + 10, n.v
          from millrace.sample_builds('', null, plan.first, plan.last, plan.level) n where the_queue is null
    ), seen as (
        select r.queue, r.at,
               coalesce(sum(r.v) filter (where r.c = 1), 0)::float8 as ready, coalesce(sum(r.v) filter (where r.c = 2), 0)::float8 as due,
               coalesce(sum(r.v) filter (where r.c = 3), 0)::float8 as scheduled, coalesce(sum(r.v) filter (where r.c = 4), 0)::float8 as running,
               coalesce(sum(r.v) filter (where r.c = 5), 0) > 0 as paused, coalesce(max(r.v) filter (where r.c = 6), 0) / 10.0 as oldest,
               coalesce(sum(r.v) filter (where r.c = 10), 0)::bigint as succeeded, coalesce(sum(r.v) filter (where r.c = 11), 0)::bigint as failed,
               coalesce(sum(r.v) filter (where r.c = 12), 0)::bigint as dead, coalesce(sum(r.v) filter (where r.c = 13), 0)::bigint as cancelled,
               coalesce(sum(r.v) filter (where r.c = 14), 0)::bigint as snoozed,
               coalesce(sum(r.v) filter (where r.c = 15), 0)::float8 as ms, coalesce(sum(r.v) filter (where r.c = 16), 0)::float8 as wait,
               coalesce(sum(r.v) filter (where r.c in (10, 11, 13, 14)), 0) - coalesce(sum(r.v) filter (where r.c = 17), 0) as waits
          from numbers r group by r.queue, r.at
    ), things as (
        -- One queue has a row for every step, also where it had nothing.
        select coalesce(s.queue, the_queue) as queue, t.at, t.n from taken t left join seen s on s.at = t.at
         where s.queue is not null or the_queue <> '*' and cardinality(wanted) = 1
    )
    select to_timestamp(g.at), plan.step_s, nullif(g.queue, ''), coalesce(s.ready / g.n, 0), coalesce(s.due / g.n, 0), coalesce(s.scheduled / g.n, 0),
           coalesce(s.running / g.n, 0), coalesce(s.paused, false), coalesce(s.oldest, 0)::float8, coalesce(s.succeeded, 0), coalesce(s.failed, 0), coalesce(s.dead, 0),
           greatest(0, coalesce(s.failed - s.dead, 0)), coalesce(s.cancelled, 0), coalesce(s.snoozed, 0),
           s.ms / nullif(s.succeeded + s.failed, 0) / 1000, s.wait / nullif(s.waits, 0) / 1000
      from things g left join seen s on s.queue = g.queue and s.at = g.at
     order by g.at, g.queue;
end $$;
select millrace.door_is('operating', 'samples_queue', 'admin, viewer', 'staff');

-- Kinds: null for all together, * for each; by version of the worker where version is given, or * for each. p50_s, p95_s: from buckets that grow by
-- the root of two, so right to a fifth; of at least a minute, and of ten minutes before the last day; null where the workers did not say.
create or replace function millrace.samples_kind(since timestamptz, until timestamptz, step interval default null, the_kind text default null, the_version text default null)
returns table (at timestamptz, step_s int, kind text, version text, succeeded bigint, failed bigint, dead bigint, retried bigint, cancelled bigint, snoozed bigint,
    run_s float8, wait_s float8, p50_s float8, p95_s float8)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    -- All together is stored only for all versions.
    each text := case when the_version is null then the_kind else coalesce(the_kind, '*') end;
    wanted int[] := millrace.sample_wanted(7, each, the_version);
    timed int[] := millrace.sample_wanted(6, each, the_version);
    plan record;
    took_level int;
    took_step int;
begin
    plan := millrace.sample_plan(samples_kind.since, samples_kind.until, samples_kind.step, millrace.sample_points(wanted));
    -- Times are kept in minutes for a day, and in ten minutes before.
    took_level := case when to_timestamp(plan.first) < millrace.now() - interval '1 day 10 minutes' then 600 else least(greatest(plan.level, 60), 600) end;
    took_step := greatest(plan.step_s, took_level);
    return query
    with read as materialized (
        select case when the_kind is not null then n.kind end as kind, case when the_version is not null then n.version end as version,
               n.at / plan.step_s * plan.step_s as at, n.c, n.v
          from millrace.sample_builds(coalesce(each, ''), case when the_version <> '*' then array[the_version] end, plan.first, plan.last, plan.level) n
    ), seen as (
        select r.kind, r.version, r.at, coalesce(sum(r.v) filter (where r.c = 0), 0)::bigint as succeeded, coalesce(sum(r.v) filter (where r.c = 1), 0)::bigint as failed,
               coalesce(sum(r.v) filter (where r.c = 2), 0)::bigint as dead, coalesce(sum(r.v) filter (where r.c = 3), 0)::bigint as cancelled,
               coalesce(sum(r.v) filter (where r.c = 4), 0)::bigint as snoozed, sum(r.v) filter (where r.c = 5)::float8 as ms, sum(r.v) filter (where r.c = 6)::float8 as wait,
               coalesce(sum(r.v) filter (where r.c in (0, 1, 3, 4)), 0) - coalesce(sum(r.v) filter (where r.c = 7), 0) as waits
          from read r group by r.kind, r.version, r.at
    ), buckets as (
        select case when the_kind is not null then k.name end as kind, case when the_version is not null then k.detail end as version,
               n.at / took_step * took_step as at, n.c, sum(n.v)::bigint as v
          from millrace.sample_numbers(6, timed, plan.first / took_step * took_step, plan.last, took_level) n join millrace.sample_key k on k.id = n.key
         group by 1, 2, 3, 4
    ), took as (
        select b.kind, b.version, b.at, millrace.sample_quantile(array_agg(b.c), array_agg(b.v), 0.5) as p50,
               millrace.sample_quantile(array_agg(b.c), array_agg(b.v), 0.95) as p95
          from buckets b group by b.kind, b.version, b.at
    )
    select to_timestamp(s.at), plan.step_s, s.kind, s.version, s.succeeded, s.failed, s.dead, greatest(0, s.failed - s.dead), s.cancelled, s.snoozed,
           coalesce(s.ms, 0) / nullif(s.succeeded + s.failed, 0) / 1000, coalesce(s.wait, 0) / nullif(s.waits, 0) / 1000, t.p50, t.p95
      from seen s left join took t on t.at = s.at / took_step * took_step and t.kind is not distinct from s.kind and t.version is not distinct from s.version
     order by s.at, s.kind, s.version;
end $$;
select millrace.door_is('operating', 'samples_kind', 'admin, viewer', 'staff');

-- Workers: null for all together, * for each, else the name of one. state: the worst of the step; null for all together.
create or replace function millrace.samples_worker(since timestamptz, until timestamptz, step interval default null, the_worker text default null)
returns table (at timestamptz, step_s int, worker text, session text, version text, host text, started_at timestamptz, state text, workers float8,
    running float8, waiting float8, stuck float8, slots float8)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    wanted int[];
    plan record;
begin
    if the_worker is null then
        wanted := millrace.sample_wanted(3, null);
    else
        wanted := array(select k.id from millrace.sample_key k join millrace.process p on p.session = k.name::bigint
                         where k.what = 3 and k.name <> '' and (the_worker = '*' or p.name = the_worker)
                           and p.started_at < samples_worker.until and (p.ended_at is null or p.ended_at >= samples_worker.since - interval '10 minutes')
                         order by p.started_at desc limit 500);
    end if;
    plan := millrace.sample_plan(samples_worker.since, samples_worker.until, samples_worker.step, millrace.sample_points(wanted));
    return query
    with seen as (
        select n.key, n.at / plan.step_s * plan.step_s as at, sum(n.v) filter (where n.c = 0)::float8 as n, max(n.v) filter (where n.c = 1)::int as state,
               coalesce(sum(n.v) filter (where n.c = 2), 0)::float8 as running, coalesce(sum(n.v) filter (where n.c = 3), 0)::float8 as waiting,
               coalesce(sum(n.v) filter (where n.c = 4), 0)::float8 as stuck, coalesce(sum(n.v) filter (where n.c = 5), 0)::float8 as slots,
               coalesce(sum(n.v) filter (where n.c = 6), 0)::float8 as workers
          from millrace.sample_numbers(3, wanted, plan.first, plan.last, plan.level) n group by 1, 2
    )
    select to_timestamp(s.at), plan.step_s, p.name, p.session::text, p.version, p.host, p.started_at, (array['working', 'draining', 'cut off'])[s.state],
           case when p.session is null then s.workers / s.n else 1 end, s.running / s.n, s.waiting / s.n, s.stuck / s.n, s.slots / s.n
      from seen s join millrace.sample_key k on k.id = s.key left join millrace.process p on k.name <> '' and p.session = nullif(k.name, '')::bigint
     where s.n > 0 order by s.at, p.name, p.session;
end $$;
select millrace.door_is('operating', 'samples_worker', 'admin, viewer', 'staff');

-- Providers: null for each, else one. state: the worst of the step. calls, failures, throttled: the mean of what the workers saw in the half minute before
-- each sample. p99_ms: the greatest. A provider that is closed and was not called has no row.
create or replace function millrace.samples_provider(since timestamptz, until timestamptz, step interval default null, the_provider text default null)
returns table (at timestamptz, step_s int, provider text, class text, state text, calls float8, failures float8, throttled float8, slow float8, unknown float8,
    p50_ms float8, p99_ms float8)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    wanted int[] := millrace.sample_wanted(4, coalesce(the_provider, '*'));
    plan record;
begin
    plan := millrace.sample_plan(samples_provider.since, samples_provider.until, samples_provider.step, millrace.sample_points(wanted));
    return query
    with seen as (
        select n.key, n.at / plan.step_s * plan.step_s as at, sum(n.v) filter (where n.c = 0)::float8 as n, max(n.v) filter (where n.c = 1)::int as state,
               coalesce(sum(n.v) filter (where n.c = 2), 0)::float8 as ok, coalesce(sum(n.v) filter (where n.c = 3), 0)::float8 as failed,
               coalesce(sum(n.v) filter (where n.c = 4), 0)::float8 as throttled, coalesce(sum(n.v) filter (where n.c = 5), 0)::float8 as slow,
               coalesce(sum(n.v) filter (where n.c = 6), 0)::float8 as unknown, coalesce(sum(n.v) filter (where n.c = 7), 0)::float8 as p50,
               coalesce(max(n.v) filter (where n.c = 8), 0)::float8 as p99
          from millrace.sample_numbers(4, wanted, plan.first, plan.last, plan.level) n group by 1, 2
    )
    select to_timestamp(s.at), plan.step_s, k.name, k.detail, (array['closed', 'observing', 'forced_closed', 'ramping', 'probing', 'open', 'forced_open'])[s.state],
           (s.ok + s.failed + s.throttled + s.unknown) / s.n, s.failed / s.n, s.throttled / s.n, s.slow / s.n, s.unknown / s.n, s.p50 / s.n / 10, s.p99 / 10
      from seen s join millrace.sample_key k on k.id = s.key where s.n > 0 order by s.at, k.name, k.detail;
end $$;
select millrace.door_is('operating', 'samples_provider', 'admin, viewer', 'staff');

-- Storage, sampled once a minute: null for all tables together, * for each (partitions together, small tables as `others`), else one. dead: dead rows, of all
-- together only those of the hot tables. oldest_transaction_s, oldest_snapshot: how long, and how many transactions, old row versions have been kept.
create or replace function millrace.samples_storage(since timestamptz, until timestamptz, step interval default null, the_relation text default null)
returns table (at timestamptz, step_s int, relation text, bytes bigint, dead bigint, oldest_transaction_s float8, oldest_snapshot bigint, history_days float8,
    job_ids bigint, strays bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    wanted int[] := millrace.sample_wanted(5, the_relation);
    is_whole boolean := the_relation is null;
    plan record;
begin
    plan := millrace.sample_plan(samples_storage.since, samples_storage.until, greatest(samples_storage.step, interval '1 minute'), millrace.sample_points(wanted));
    return query
    with seen as (
        select n.key, n.at / plan.step_s * plan.step_s as at, sum(n.v) filter (where n.c = 0)::numeric as n, coalesce(sum(n.v) filter (where n.c = 1), 0) as kb,
               coalesce(sum(n.v) filter (where n.c = 2), 0) as dead, coalesce(max(n.v) filter (where n.c = 3), 0) as pin, coalesce(max(n.v) filter (where n.c = 4), 0) as snapshot,
               coalesce(sum(n.v) filter (where n.c = 5), 0) as days, coalesce(sum(n.v) filter (where n.c = 6), 0) as ids, coalesce(max(n.v) filter (where n.c = 7), 0) as strays
          from millrace.sample_numbers(5, wanted, plan.first, plan.last, plan.level) n group by 1, 2
    )
    select to_timestamp(s.at), plan.step_s, nullif(k.name, ''), (s.kb / s.n * 1024)::bigint, (s.dead / s.n)::bigint, case when is_whole then s.pin::float8 end,
           case when is_whole then s.snapshot end, case when is_whole then (s.days / s.n)::float8 end, case when is_whole then (s.ids / s.n * 1000)::bigint end,
           case when is_whole then s.strays end
      from seen s join millrace.sample_key k on k.id = s.key where s.n > 0 order by s.at, k.name;
end $$;
select millrace.door_is('operating', 'samples_storage', 'admin, viewer', 'staff');

-- From when to when there are samples, and the one at or before a time: its beginning, and how long it counts for. Null where none is kept.
create or replace function millrace.sample_at(moment timestamptz, out kept_since timestamptz, out kept_until timestamptz, out at timestamptz, out step_s int)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    whole int[] := millrace.sample_wanted(1, null);
    t timestamptz := millrace.now();
    found_s bigint;
begin
    select coalesce(min(p.at), (select min(f.at) from millrace.sample_fresh f where f.what = 1)) into kept_since
      from millrace.sample_pack p where p.what = 1 and p.key = whole[1];
    kept_until := coalesce((select max(f.at) from millrace.sample_fresh f where f.what = 1),
        (select max(p.at) + make_interval(secs => p.step * millrace.sample_slots()) from millrace.sample_pack p where p.what = 1 and p.key = whole[1] group by p.step order by 1 desc limit 1));
    step_s := case when moment < t - interval '1 day' then 60 else 10 end;
    select max(n.at) into found_s
      from millrace.sample_numbers(1, whole, floor(extract(epoch from moment) / step_s)::bigint * step_s - 240, floor(extract(epoch from moment))::bigint + 1, step_s) n
     where n.c = 0;
    at := to_timestamp(found_s);
end $$;
select millrace.door_is('operating', 'sample_at', 'admin, viewer', 'staff');
