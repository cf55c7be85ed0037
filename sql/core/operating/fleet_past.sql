-- What happened to the fleet, and what a new version of the workers changed.

-- Events between two times, the newest first: at most `most` of each sort and altogether. event: deploy, worker started, worker stopped, worker lost, jobs rescued,
-- queue paused, queue resumed, provider opened, provider closed, provider forced, server restarted, server failed over. A deploy is the first start of a version
-- while no worker of that version lives. by: who did it, where that was a person.
create or replace function millrace.fleet_events(since timestamptz, until timestamptz, most int default 500)
returns table (at timestamptz, event text, subject text, version text, by text, detail text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
begin
    if since is null or until is null or since >= until then
        perform millrace.refuse('since must be before until, and both must be given', 'since');
    end if;
    if most is null or most not between 1 and 500 then
        perform millrace.refuse('most must be 1 to 500', 'most');
    end if;
    return query
    with started as materialized (
        select p.* from millrace.process p where p.started_at >= since and p.started_at < until order by p.started_at desc limit most
    ), deploys as (
        select s.started_at as at, s.version, s.name, before.version as old
          from started s
         cross join lateral (select o.version from millrace.process o where o.started_at < s.started_at order by o.started_at desc limit 1) before
         where before.version <> s.version
           and not exists (select from (select o.version, o.ended_at from millrace.process o
                                         where o.started_at < s.started_at order by o.started_at desc limit 1000) o
                            where o.version = s.version and (o.ended_at is null or o.ended_at >= s.started_at))
    ), all_of_them as (
        select s.started_at as at, 'worker started' as event, s.name as subject, s.version, null as by, null as detail from started s
        union all
        select d.at, 'deploy', d.name, d.version, null, format('%s after %s', d.version, d.old) from deploys d
        union all
        select e.ended_at, case e.ending when 'stopped' then 'worker stopped' else 'worker lost' end, e.name, e.version, null, nullif(e.ending, 'stopped')
          from (select p.* from millrace.process p where p.ended_at >= since and p.ended_at < until order by p.ended_at desc limit most) e
        union all
        select v.at, case when v.to_state in ('forced_open', 'forced_closed', 'observing') then 'provider forced'
                          when v.to_state = 'open' then 'provider opened' else 'provider closed' end,
               v.provider || case v.class when '*' then '' else ' ' || v.class end, null,
               case when v.to_state in ('forced_open', 'forced_closed', 'observing') or v.from_state in ('forced_open', 'forced_closed', 'observing') then v.by end,
               v.to_state || coalesce(': ' || v.reason, '')
          from (select v.* from millrace.provider_event v
                 where v.at >= since and v.at < until and v.to_state in ('open', 'closed', 'forced_open', 'forced_closed', 'observing')
                 order by v.at desc limit most) v
        union all
        select n.at, n.event, n.subject, null, n.by, n.detail
          from (select f.* from millrace.fleet_event f where f.at >= since and f.at < until order by f.at desc limit most) n
    )
    select a.at, a.event, a.subject, a.version, a.by, left(a.detail, 500) from all_of_them a order by a.at desc, a.event, a.subject limit most;
end $$;
select millrace.door_is('operating', 'fleet_events', 'admin, viewer', 'staff');

-- The versions of the workers that samples know, the newest first: of the living ones and the last 10,000 that ended within 15 days.
create or replace function millrace.versions_seen(most int default 20)
returns table (version text, first_at timestamptz, last_at timestamptz, workers int)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select p.version, min(p.started_at), max(coalesce(p.ended_at, millrace.now())), count(*) filter (where p.ended_at is null)::int
      from ((select o.* from millrace.session s join millrace.process o on o.session = s.id)
            union all
            (select o.* from millrace.process o where o.ended_at >= millrace.now() - interval '15 days' order by o.ended_at desc limit 10000)) p
     where left(p.version, 128) in (select k.detail from millrace.sample_key k where k.what = 6 or k.what = 2)
     group by p.version order by min(p.started_at) desc limit most
$$;
select millrace.door_is('operating', 'versions_seen', 'admin, viewer', 'staff');

-- Two versions of the workers by kind, from the samples of the last 14 days: runs that ended, shares of failures and retries, and how long runs took, for each.
-- Kinds that only one of them ran have nulls on the other side.
create or replace function millrace.versions_compare(before text, after text)
returns table (kind text, before_runs bigint, before_failed bigint, before_retried bigint, before_dead bigint, before_run_s float8, before_p95_s float8,
    after_runs bigint, after_failed bigint, after_retried bigint, after_dead bigint, after_run_s float8, after_p95_s float8)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    t timestamptz := millrace.now();
    first bigint := floor(extract(epoch from t - interval '14 days') / 600)::bigint * 600;
    last bigint := ceil(extract(epoch from t))::bigint;
    timed int[] := array(select distinct x from unnest(millrace.sample_wanted(6, '*', before) || millrace.sample_wanted(6, '*', after)) x);
begin
    if before is null or after is null then
        perform millrace.refuse('a version is missing', case when before is null then 'before' else 'after' end);
    end if;
    if not exists (select from millrace.sample_key k where k.what = 2 and k.name <> '' and k.detail = before) then
        perform millrace.refuse(format('no samples of version %L are kept', left(before, 60)), 'before', 'millrace versions list shows those that are kept.', 'P0002', 'not_found');
    end if;
    if not exists (select from millrace.sample_key k where k.what = 2 and k.name <> '' and k.detail = after) then
        perform millrace.refuse(format('no samples of version %L are kept', left(after, 60)), 'after', 'millrace versions list shows those that are kept.', 'P0002', 'not_found');
    end if;
    return query
    with sums as materialized (
        select n.kind, n.version, sum(n.v) filter (where n.c = 0)::bigint as succeeded, coalesce(sum(n.v) filter (where n.c = 1), 0)::bigint as failed,
               coalesce(sum(n.v) filter (where n.c = 2), 0)::bigint as dead, coalesce(sum(n.v) filter (where n.c in (0, 1, 3, 4)), 0)::bigint as runs,
               sum(n.v) filter (where n.c = 5)::float8 as ms
          from millrace.sample_builds('*', array[before, after], first, last, 600) n group by n.kind, n.version
    ), took as materialized (
        select x.kind, x.version, millrace.sample_quantile(array_agg(x.c), array_agg(x.v), 0.95) as p95
          from (select k.name as kind, k.detail as version, n.c, sum(n.v)::bigint as v
                  from millrace.sample_numbers(6, timed, first, last, 600) n join millrace.sample_key k on k.id = n.key
                 group by k.name, k.detail, n.c) x
         group by x.kind, x.version
    ), sides as (
        select s.kind, s.version, s.runs, s.failed, greatest(0, s.failed - s.dead) as retried, s.dead,
               coalesce(s.ms, 0) / nullif(coalesce(s.succeeded, 0) + s.failed, 0) / 1000 as run_s, t.p95
          from sums s left join took t on t.kind = s.kind and t.version = s.version
    )
    select k.kind, b.runs, b.failed, b.retried, b.dead, b.run_s, b.p95, a.runs, a.failed, a.retried, a.dead, a.run_s, a.p95
      from (select distinct s.kind from sides s) k
      left join sides b on b.kind = k.kind and b.version = before
      left join sides a on a.kind = k.kind and a.version = after
     order by k.kind;
end $$;
select millrace.door_is('operating', 'versions_compare', 'admin, viewer', 'staff');
