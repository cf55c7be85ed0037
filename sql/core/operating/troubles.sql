-- Present troubles, for `status`, and counts of jobs, for metrics. Everything is read up to a bound, however many jobs there are.

-- How many jobs wait for another attempt, by line and kind: a loose walk over the index of retries. Stops at 500 lines and kinds.
create or replace function millrace.retries(cap int default 10000) returns table (queue int, kind int, n bigint)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    at_queue int := -1;
    at_kind int := -1;
    total bigint := 0;
begin
    for step in 1 .. 500 loop
        select d.queue, d.kind into queue, kind from millrace.timer d
         where d.attempt > 0 and (d.queue, d.kind) > (at_queue, at_kind) order by d.queue, d.kind limit 1;
        exit when not found;
        at_queue := queue;
        at_kind := kind;
        select count(*) into n from (
            select from millrace.timer d where d.attempt > 0 and d.queue = at_queue and d.kind = at_kind limit cap) c;
        return next;
        total := total + n;
        exit when total >= cap::bigint * 10;
    end loop;
end $$;

-- The same by names, the lines of a queue together.
create or replace function millrace.retrying(cap int default 10000) returns table (queue text, kind text, jobs bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    select q.name, k.name, least(sum(r.n), cap)::bigint
      from millrace.retries(cap) r join millrace.queue q on q.id = r.queue join millrace.kind k on k.id = r.kind
     group by q.name, k.name order by 3 desc, 1, 2
$$;
select millrace.door_is('operating', 'retrying', 'worker, viewer', 'staff');

-- The error that most of the jobs of a kind have now: of a hundred that wait for another attempt, else of the last thousand failed runs of the hour.
create or replace function millrace.top_error(the_queue text, the_kind text) returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    queues int[] := millrace.queue_ids(the_queue);
    kind_ids int[] := case when the_kind is not null then millrace.kind_ids(the_kind) end;
    found_one text;
begin
    select millrace.error_gist(e.error) into found_one
      from (select d.job from unnest(queues) q(id) cross join lateral (
                select x.job from millrace.timer x where x.attempt > 0 and x.queue = q.id and (the_kind is null or x.kind = any (kind_ids)) limit 100) d
             limit 100) w
     cross join lateral (
        select h.error from millrace.history h where h.id = w.job and h.outcome in (4, 7) order by h.finished desc limit 1) e
     group by 1 order by count(*) desc, 1 limit 1;
    if found_one is null then
        select millrace.error_gist(f.error) into found_one
          from ((select h.queue, h.kind, h.error, h.finished from millrace.history h where h.outcome = 3 and h.outcome <> 1 order by h.id desc limit 1000)
                union all
                (select h.queue, h.kind, h.error, h.finished from millrace.history h where h.outcome = 4 and h.outcome <> 1 order by h.id desc limit 1000)
                union all
                (select h.queue, h.kind, h.error, h.finished from millrace.history h where h.outcome = 7 and h.outcome <> 1 order by h.id desc limit 1000)) f
         where f.queue = any (queues) and (the_kind is null or f.kind = any (kind_ids)) and f.finished > millrace.now() - interval '1 hour'
         group by 1 order by count(*) desc, 1 limit 1;
    end if;
    return found_one;
end $$;

-- Kinds that go wrong, by queue. A run counts as failed when it ended in a retry, in death or in a crash; snoozed and cancelled runs do not count.
--   failing   half or more of the runs failed: of the last 5 minutes, or of the last hour where fewer than 10 ended in those. At least 10.
--             kind is null where no single kind is to blame, but half or more of all runs of the queue failed.
--   build     half or more of at least 10 runs on the newest build failed, and less than half as many of at least 10 on earlier ones. Without a
--             kind where that is so of a queue's kinds together, whatever else fails there.
--   retrying  at least 10 jobs wait for another attempt, and fewer succeeded in the last hour.
-- cap: where counting the retries of a queue and kind stops; all together stop at ten times as many.
-- One line for each queue and kind, the gravest first in this order: build, failing, retrying. The tallies are read up to 100,000 rows back.
-- of_queues: of these queues' lines alone.
create or replace function millrace.troubles_of(most int, cap int, of_queues int[])
returns table (trouble text, queue text, kind text, runs bigint, failed bigint, span_s int, retrying bigint, build text)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    t timestamptz := millrace.now();
    least_runs constant int := 10;
begin
    return query
    with said as materialized (
        select y.at, y.session, y.queue, y.kind, y.succeeded, y.failed from millrace.tally y
         where y.at > t - interval '1 hour' order by y.at desc limit 100000
    ), ended as materialized (
        select s.session, q.name as queue, s.kind, sum(s.succeeded) as good, sum(s.failed) as bad,
               coalesce(sum(s.succeeded) filter (where s.at > t - interval '5 min'), 0) as good_now,
               coalesce(sum(s.failed) filter (where s.at > t - interval '5 min'), 0) as bad_now
          from said s join millrace.queue q on q.id = s.queue where of_queues is null or s.queue = any (of_queues) group by s.session, q.name, s.kind
    ), builds as (
        -- What each build of the workers did, and the newest build that ran the kind.
        select e.queue, e.kind, p.version, sum(e.good + e.bad) as n, sum(e.bad) as bad,
               row_number() over (partition by e.queue, e.kind order by max(p.started_at) desc) as place
          from ended e join millrace.process p on p.session = e.session group by e.queue, e.kind, p.version
    ), by_kind as (
        select b.queue, b.kind, max(b.version) filter (where b.place = 1) as build,
               coalesce(sum(b.n) filter (where b.place = 1), 0) as new_n, coalesce(sum(b.bad) filter (where b.place = 1), 0) as new_bad,
               coalesce(sum(b.n) filter (where b.place > 1), 0) as old_n, coalesce(sum(b.bad) filter (where b.place > 1), 0) as old_bad
          from builds b group by b.queue, b.kind
    ), compared as (
        select k.* from by_kind k
        union all
        -- Of all kinds that went well on earlier builds: one that always fails would hide what the newest build does to the others.
        select k.queue, null, (array_agg(k.build order by k.new_n desc))[1], sum(k.new_n), sum(k.new_bad), sum(k.old_n), sum(k.old_bad)
          from by_kind k where k.old_n > 0 and k.old_bad * 4 < k.old_n and k.new_n > 0 group by k.queue
    ), waiting as materialized (
        select q.name as queue, r.kind, sum(r.n) as n from millrace.retries(cap) r join millrace.queue q on q.id = r.queue
         where of_queues is null or r.queue = any (of_queues) group by q.name, r.kind
    ), kinds as (
        select e.queue, e.kind, sum(e.good) as good, sum(e.bad) as bad, sum(e.good_now) as good_now, sum(e.bad_now) as bad_now
          from ended e group by e.queue, e.kind
    ), whole as (
        -- The queue itself as a kind without a number.
        select k.queue, k.kind, k.good, k.bad, k.good_now, k.bad_now from kinds k
        union all
        select k.queue, null, sum(k.good), sum(k.bad), sum(k.good_now), sum(k.bad_now) from kinds k group by k.queue
        union all
        select w.queue, w.kind, 0, 0, 0, 0 from waiting w where not exists (select from kinds k where k.queue = w.queue and k.kind = w.kind)
    ), judged as (
        select w.queue, w.kind, s.n, s.bad, s.span, coalesce(a.n, 0) as retrying, c.build,
               case when c.new_n >= least_runs and c.new_bad * 2 >= c.new_n and c.old_n >= least_runs and c.old_bad * 4 < c.old_n then 'build'
                    when s.n >= least_runs and s.bad * 2 >= s.n then 'failing'
                    when w.kind is not null and a.n >= least_runs and a.n > w.good then 'retrying' end as trouble,
               c.new_n, c.new_bad
          from whole w
         cross join lateral (
            select case when f.now then w.good_now + w.bad_now else w.good + w.bad end as n,
                   case when f.now then w.bad_now else w.bad end as bad, case when f.now then 300 else 3600 end as span
              from (select w.good_now + w.bad_now >= least_runs as now) f) s
          left join waiting a on a.queue = w.queue and a.kind = w.kind
          left join compared c on c.queue = w.queue and c.kind is not distinct from w.kind
    )
    select g.trouble, g.queue, k.name, case g.trouble when 'build' then g.new_n else g.n end::bigint, case g.trouble when 'build' then g.new_bad else g.bad end::bigint,
           case g.trouble when 'build' then 3600 else g.span end, g.retrying::bigint, case g.trouble when 'build' then g.build end
      from judged g left join millrace.kind k on k.id = g.kind
     where g.trouble is not null
       and (g.kind is not null or not exists (select from judged o where o.queue = g.queue and o.kind is not null and o.trouble is not null
                                                  and (g.trouble <> 'build' or o.trouble = 'build')))
     order by array_position(array['build', 'failing', 'retrying'], g.trouble), g.bad desc, g.queue, k.name
     limit troubles_of.most;
end $$;

create or replace function millrace.troubles(most int default 50, cap int default 10000)
returns table (trouble text, queue text, kind text, runs bigint, failed bigint, span_s int, retrying bigint, build text, error text)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
    select o.trouble, o.queue, o.kind, o.runs, o.failed, o.span_s, o.retrying, o.build, millrace.top_error(o.queue, o.kind)
      from millrace.troubles_of(troubles.most, troubles.cap, null) with ordinality o(trouble, queue, kind, runs, failed, span_s, retrying, build, place) order by o.place
$$;
select millrace.door_is('operating', 'troubles', 'worker, viewer', 'staff');

-- Rooms where something waits, and how many living workers serve them. unsure: workers of an earlier version, which do not say what they
-- serve. Rooms that are kinds of jobs are recognised by these kinds; a kind that any worker knows is not counted: waiting is null then.
-- how: the way workers serve it, if they say so. used: something waits, or came within the last day.
create or replace function millrace.rooms()
returns table (room text, waiting bigint, oldest_s float8, servers int, unsure int, how text[], used boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    t timestamptz := millrace.now();
    names text[];
    patterns text[];                                       -- of the kinds of each
    unserved int[];
    one record;
begin
    select array_agg(h.name), array_agg(h.said) into names, patterns from millrace.hooks_list('kinds') h;
    unserved := array(
        select k.id from millrace.kind k
          left join millrace.kind b on b.name = k.name and b.line = millrace.line_base(k.line)
         where k.name like any (patterns) and not exists (select from millrace.session s where b.id = any (s.kinds)));
    used := true;
    for room, waiting, oldest_s in
        select x.name, count(*),
               extract(epoch from t - min((select j.enqueued_at from millrace.job j where j.id = o.first)))::float8
          from (select r.kind, r.job, min(r.job) over (partition by r.kind) as first
                  from (select r.kind, r.job from millrace.ready r where unserved <> '{}' limit 500000) r where r.kind = any (unserved)) o
          join millrace.kind k on k.id = o.kind
         cross join lateral (select n.name from unnest(names, patterns) n(name, pattern) where k.name like n.pattern limit 1) x
         group by x.name
    loop
        servers := 0; unsure := 0; how := '{}';
        return next;
    end loop;

    for one in select * from millrace.hooks_of('served') loop
        begin
            return query execute format('select * from %s()', one.call);
            if one.fails then
                perform millrace.hook_went('served', one.function);
            end if;
        exception when others then
            perform millrace.hook_went('served', one.function, sqlstate, sqlerrm);
        end;
    end loop;
end $$;
select millrace.door_is('operating', 'rooms', 'worker, viewer', 'staff');

-- Runs and jobs that take a worker's slots or its life, the gravest first; kinds are read up to a bound.
--   crashes    a worker ended while it held this job, and it waits; or two or more did, and it runs again.
--   stuck      a worker has handlers that ignore their cancellation; its longest runs.
--   cancelled  it was cancelled more than five seconds ago, and holds its slot. seconds: since then.
create or replace function millrace.run_troubles(most int default 10)
returns table (trouble text, job bigint, kind text, queue text, worker text, host text, pid int, seconds float8, crashes int)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
begin
    return query
    with crashed as (
        select h.job, r.crashes::int as crashes, null::bigint as session, null::timestamptz as at
          from millrace.heads(500) h
         cross join lateral (select x.crashes from millrace.ready x where x.queue = h.queue and x.lane = h.lane order by x.queue, x.lane, x.seq limit 1) r
         where r.crashes >= 1
        union all
        select u.id, u.crashes::int, l.session, l.at
          from (select x.* from millrace.lease x order by x.session, x.number limit 500) l cross join lateral unnest(l.ids, l.crashes) u(id, crashes)
         where l.crashes is not null and u.crashes >= 2 and u.id = any (millrace.why_unended(l.session, l.number, l.at, array[u.id]))
    ), cancelled as (
        select c.job, c.session, min(c.at) as at
          from (select x.* from millrace.cancel x order by x.session, x.seq limit 500) c
          join millrace.lease l on l.session = c.session and l.number = c.number
         where c.at < t - interval '5 s' and c.job = any (millrace.why_unended(l.session, l.number, l.at, array[c.job]))
         group by c.job, c.session
    ), stuck as (
        select o.id as job, b.session, o.at
          from (select x.session, x.stuck from millrace.beat x where x.stuck > 0 order by x.session limit 50) b
         cross join lateral (
            select u.id, l.at from (select x.* from millrace.lease x where x.session = b.session order by x.number limit 20) l
             cross join lateral unnest(millrace.why_unended(l.session, l.number, l.at, l.ids[1:1000])) u(id)
             where not exists (select from cancelled c where c.job = u.id)
             order by l.at, u.id limit least(3, b.stuck)) o
         where not exists (select from cancelled c where c.session = b.session)
    ), found as (
        select 1 as rank, 'crashes' as trouble, x.job, x.session, x.at, x.crashes from crashed x
        union all select 2, 'cancelled', x.job, x.session, x.at, null from cancelled x
        union all select 3, 'stuck', x.job, x.session, x.at, null from stuck x
    )
    select f.trouble, f.job, k.name, q.name, s.name, s.host, s.pid, greatest(0, extract(epoch from t - f.at))::float8, f.crashes
      from found f join millrace.job j on j.id = f.job join millrace.kind k on k.id = j.kind join millrace.queue q on q.id = j.queue
      left join millrace.session s on s.id = f.session
     order by f.rank, f.crashes desc nulls last, f.at, f.job limit most;
end $$;
select millrace.door_is('operating', 'run_troubles', 'worker, viewer', 'staff');
