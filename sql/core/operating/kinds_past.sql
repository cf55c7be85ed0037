-- What kinds did of late. Each reads a bounded number of rows, whatever has ended: tallies for all kinds, samples for one, and a part of history for single runs.

-- What ended of late by kind, from the newest `most` tallies of workers, and of at most an hour. since: the time from which on they tell. p50_s, p95_s: how long
-- runs took, from buckets that grow by the root of two, so right to a fifth; null where workers did not say.
create or replace function millrace.kinds_now(most int default 3000)
returns table (kind text, succeeded bigint, failed bigint, dead bigint, cancelled bigint, snoozed bigint, run_s float8, wait_s float8, p50_s float8, p95_s float8,
    since timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    hour_ago timestamptz := millrace.now() - interval '1 hour';
begin
    if most is null or most not between 1 and 20000 then
        perform millrace.refuse('most must be 1 to 20000', 'most');
    end if;
    return query
    with told as materialized (
        select y.* from millrace.tally y where y.at > hour_ago order by y.at desc limit most
    ), sums as (
        select k.name as kind, sum(y.succeeded)::bigint as succeeded, sum(y.failed)::bigint as failed, sum(y.dead)::bigint as dead, sum(y.cancelled)::bigint as cancelled,
               sum(y.snoozed)::bigint as snoozed, sum(y.ms)::float8 as ms, sum(y.wait_ms)::float8 as wait, sum(y.waits)::float8 as waits
          from told y join millrace.kind k on k.id = y.kind group by k.name
    ), buckets as (
        select k.name as kind, b.bucket, sum(b.n)::bigint as n
          from told y cross join lateral millrace.sample_times(y.times) b join millrace.kind k on k.id = y.kind where y.times is not null group by k.name, b.bucket
    ), took as (
        select b.kind, millrace.sample_quantile(array_agg(b.bucket), array_agg(b.n), 0.5) as p50, millrace.sample_quantile(array_agg(b.bucket), array_agg(b.n), 0.95) as p95
          from buckets b group by b.kind
    )
    select s.kind, s.succeeded, s.failed, s.dead, s.cancelled, s.snoozed, s.ms / nullif(s.succeeded + s.failed, 0) / 1000, s.wait / nullif(s.waits, 0) / 1000, t.p50, t.p95,
           case when (select count(*) from told) = most then (select min(y.at) from told y) else hour_ago end
      from sums s left join took t on t.kind = s.kind order by s.kind;
end $$;
select millrace.door_is('operating', 'kinds_now', 'admin, viewer', 'staff');

-- Runs of a kind that ended in the `span` up to now, by version of the workers, the one that ended a run last first; from samples, by minutes up to three hours and
-- else by ten minutes. first_at, last_at: of the samples that had any. At most 200 versions are read, those that were seen last.
create or replace function millrace.kind_past(the_kind text, span interval default '1 day')
returns table (version text, succeeded bigint, failed bigint, dead bigint, retried bigint, cancelled bigint, snoozed bigint,
    run_s float8, wait_s float8, p50_s float8, p95_s float8, first_at timestamptz, last_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    level int := case when span <= interval '3 hours' then 60 else 600 end;
    until bigint := ceil(extract(epoch from millrace.now()))::bigint;
    since bigint;
    timed int[] := array(select k.id from millrace.sample_key k where k.what = 6 and k.name <> '' and k.name = the_kind order by k.seen_at desc, k.id desc limit 200);
begin
    if span is null or span < interval '1 minute' or span > interval '15 days' then
        perform millrace.refuse('a span is one minute to 15 days', 'span');
    end if;
    since := floor((until - extract(epoch from span)) / level)::bigint * level;
    return query
    with sums as materialized (
        select n.version, min(n.at) as first_at, max(n.at) as last_at,
               coalesce(sum(n.v) filter (where n.c = 0), 0)::bigint as succeeded, coalesce(sum(n.v) filter (where n.c = 1), 0)::bigint as failed,
               coalesce(sum(n.v) filter (where n.c = 2), 0)::bigint as dead, coalesce(sum(n.v) filter (where n.c = 3), 0)::bigint as cancelled,
               coalesce(sum(n.v) filter (where n.c = 4), 0)::bigint as snoozed, sum(n.v) filter (where n.c = 5)::float8 as ms, sum(n.v) filter (where n.c = 6)::float8 as wait,
               coalesce(sum(n.v) filter (where n.c in (0, 1, 3, 4)), 0) - coalesce(sum(n.v) filter (where n.c = 7), 0) as waits
          from millrace.sample_builds(nullif(the_kind, ''), null, since, until, level) n group by n.version
    ), buckets as (
        select k.detail as version, n.c, sum(n.v)::bigint as v
          from millrace.sample_numbers(6, timed, since, until, level) n join millrace.sample_key k on k.id = n.key group by k.detail, n.c
    ), took as (
        select b.version, millrace.sample_quantile(array_agg(b.c), array_agg(b.v), 0.5) as p50, millrace.sample_quantile(array_agg(b.c), array_agg(b.v), 0.95) as p95
          from buckets b group by b.version
        union all                                         -- of all versions together
        select null, millrace.sample_quantile(array_agg(x.c), array_agg(x.v), 0.5), millrace.sample_quantile(array_agg(x.c), array_agg(x.v), 0.95)
          from (select b.c, sum(b.v)::bigint as v from buckets b group by b.c) x
    ), sides as (
        select s.* from sums s
        union all
        select null, min(s.first_at), max(s.last_at), sum(s.succeeded)::bigint, sum(s.failed)::bigint, sum(s.dead)::bigint, sum(s.cancelled)::bigint,
               sum(s.snoozed)::bigint, sum(s.ms), sum(s.wait), sum(s.waits) from sums s having count(*) > 0
    )
    select s.version, s.succeeded, s.failed, s.dead, greatest(0, s.failed - s.dead), s.cancelled, s.snoozed,
           coalesce(s.ms, 0) / nullif(s.succeeded + s.failed, 0) / 1000, coalesce(s.wait, 0) / nullif(s.waits, 0) / 1000, t.p50, t.p95,
           to_timestamp(s.first_at), to_timestamp(s.last_at)
      from sides s left join took t on t.version is not distinct from s.version
     order by s.version is null desc, s.last_at desc, s.version desc;
end $$;
select millrace.door_is('operating', 'kind_past', 'admin, viewer', 'staff');

-- The slowest runs of a kind among the newest `most` runs of all kinds, the slowest first. before: only runs of jobs with a smaller number, for the next part.
-- fitting: runs of this kind among them; looked: all of them; since: when the oldest of them ended; next: where to go on, null at the end.
create or replace function millrace.kind_slowest(the_kind text, before bigint default null, page int default 10, most int default 20000,
    out runs jsonb, out fitting bigint, out looked int, out since timestamptz, out next bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_variable
declare
    kinds int[] := millrace.kind_ids(the_kind);
begin
    if page is null or page not between 1 and 100 then
        perform millrace.refuse('page must be 1 to 100', 'page');
    end if;
    if most is null or most not between 1 and 100000 then
        perform millrace.refuse('most must be 1 to 100000', 'most');
    end if;
    with newest as materialized (
        select h.id, h.session, h.finished, h.kind, h.ms, h.outcome, h.attempt
          from millrace.history h where h.id < coalesce(before, 9223372036854775807) order by h.id desc limit most
    ), slowest as materialized (
        select n.* from newest n where n.kind = any (kinds) and n.ms is not null order by n.ms desc, n.id desc limit page
    )
    select (select coalesce(jsonb_agg(jsonb_build_object('job', s.id, 'ms', s.ms, 'attempt', s.attempt, 'ended_at', s.finished,
                       'outcome', (array['succeeded', 'cancelled', 'dead', 'retried', 'snoozed', 'released', 'crashed', 'waiting'])[s.outcome],
                       'worker', p.name, 'version', p.version) order by s.ms desc, s.id desc), '[]')
              from slowest s left join millrace.process p on p.session = s.session),
           count(*) filter (where n.kind = any (kinds)), count(*), min(n.finished), case when count(*) = most then min(n.id) end
      into runs, fitting, looked, since, next from newest n;
end $$;
select millrace.door_is('operating', 'kind_slowest', 'admin, viewer', 'staff');
