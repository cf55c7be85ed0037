-- The view of every job, a branch per place; the constant state folds the other branches away. Ask it by state, by id (with
-- millrace.job), or a page at a time per state: an order across all branches reads everything.
create or replace function millrace.errors_of(the_job bigint) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select coalesce(jsonb_agg(jsonb_build_object('attempt', h.attempt, 'at', h.finished, 'outcome',
               (array['succeeded', 'cancelled', 'dead', 'retried', 'snoozed', 'released', 'crashed', 'waiting'])[h.outcome], 'error', h.error)
               order by h.finished), '[]')
      from millrace.history h where h.id = the_job and h.error is not null
$$;
select millrace.door_is('queue', 'errors_of', 'admin', 'staff');

create or replace view millrace.jobs as
select j.id, k.name as kind, q.name as queue, 'ready'::text as state, r.lane >> 2 as priority, j.args, coalesce(j.run_at, j.enqueued_at) as run_at,
       r.attempt::int as attempt, j.max_attempts::int as max_attempts, r.crashes::int as crashes, j.unique_key, j.limit_key, j.tenant, coalesce(j.tags, '{}') as tags,
       coalesce(j.metadata, '{}') as metadata, j.enqueued_at, null::timestamptz as started_at, null::timestamptz as finished_at,
       null::text as worker, millrace.progress_of(j.id) as progress, millrace.errors_of(j.id) as errors, null::bigint[] as waits_for, null::text as limited_by, null::jsonb as result
  from millrace.ready r
  join millrace.job j on j.id = r.job
  join millrace.kind k on k.id = r.kind
  join millrace.queue q on q.id = r.queue
union all
select j.id, k.name, q.name, 'ready'::text, p.lane >> 2, j.args, coalesce(j.run_at, j.enqueued_at),
       p.attempt, j.max_attempts, p.crashes, j.unique_key, j.limit_key, j.tenant, coalesce(j.tags, '{}'),
       coalesce(j.metadata, '{}'), j.enqueued_at, null, null, null, millrace.progress_of(j.id), millrace.errors_of(j.id), null, j.limit_key, null
  from millrace.parked p
  join millrace.job j on j.id = p.job
  join millrace.kind k on k.id = p.kind
  join millrace.queue q on q.id = p.queue
union all
select j.id, k.name, q.name, 'scheduled'::text, d.lane >> 2, j.args, d.due,
       d.attempt, j.max_attempts, d.crashes, j.unique_key, j.limit_key, j.tenant, coalesce(j.tags, '{}'),
       coalesce(j.metadata, '{}'), j.enqueued_at, null, null, null, millrace.progress_of(j.id), millrace.errors_of(j.id), null, null, null
  from millrace.timer d
  join millrace.job j on j.id = d.job
  join millrace.kind k on k.id = d.kind
  join millrace.queue q on q.id = d.queue
union all
select j.id, k.name, q.name, 'blocked'::text, j.lane >> 2, j.args, coalesce(u.due, j.enqueued_at),
       0, j.max_attempts, 0, j.unique_key, j.limit_key, j.tenant, coalesce(j.tags, '{}'),
       coalesce(j.metadata, '{}'), j.enqueued_at, null, null, null, millrace.progress_of(j.id), millrace.errors_of(j.id), array[u.job], null, null
  from millrace.unique_lock u
  join millrace.job j on j.id = u.next
  join millrace.kind k on k.id = j.kind
  join millrace.queue q on q.id = j.queue
 where u.next is not null
union all
select j.id, k.name, q.name, 'blocked'::text, j.lane >> 2, j.args, coalesce(b.due, j.enqueued_at),
       coalesce((select w.attempt::int from millrace.wait w where w.job = b.job and w.what = 3), 0), j.max_attempts,
       coalesce((select w.crashes::int from millrace.wait w where w.job = b.job and w.what = 3), 0), j.unique_key, j.limit_key, j.tenant, coalesce(j.tags, '{}'),
       coalesce(j.metadata, '{}'), j.enqueued_at, null, null, null, millrace.progress_of(j.id), millrace.errors_of(j.id),
       array(select e.pred from millrace.edge e where e.succ = b.job and e.outcome is null order by e.succ, e.pred limit 100), null, null
  from millrace.blocked b
  join millrace.job j on j.id = b.job
  join millrace.kind k on k.id = j.kind
  join millrace.queue q on q.id = j.queue
union all
select j.id, k.name, q.name, 'running'::text, j.lane >> 2, j.args, coalesce(j.run_at, j.enqueued_at),
       coalesce(l.attempts[u.place], 0) + 1, j.max_attempts, coalesce(l.crashes[u.place], 0), j.unique_key, j.limit_key, j.tenant, coalesce(j.tags, '{}'),
       coalesce(j.metadata, '{}'), j.enqueued_at, l.at, null, s.name, millrace.progress_of(j.id), millrace.errors_of(j.id), null, null, null
  from millrace.lease l
 cross join lateral unnest(l.ids) with ordinality u(id, place)
  join millrace.job j on j.id = u.id and j.id between l.lo and l.hi
  join millrace.kind k on k.id = j.kind
  join millrace.queue q on q.id = j.queue
  join millrace.session s on s.id = l.session
 where not exists (
        select from millrace.history h
         where h.class = (l.number & 3)::smallint and h.started = l.at and h.id = u.id and h.session = l.session and h.number = l.number)
union all
select h.id, k.name, q.name, (array['succeeded', 'cancelled', 'dead'])[h.outcome], j.lane >> 2, j.args, coalesce(j.run_at, j.enqueued_at),
       h.attempt, j.max_attempts, h.crashes, j.unique_key, j.limit_key, j.tenant, coalesce(j.tags, '{}'),
       coalesce(j.metadata, '{}'), j.enqueued_at, case when h.session <> 0 then h.started end, h.finished, p.name, millrace.progress_of(j.id), millrace.errors_of(h.id), null, null, millrace.result_of(j.id)
  from millrace.history h
  left join millrace.job j on j.id = h.id
  join millrace.kind k on k.id = h.kind
  join millrace.queue q on q.id = h.queue
  left join millrace.process p on p.session = h.session
 where h.outcome in (1, 2, 3);
select millrace.view_is('queue', 'jobs', 'admin, operator');

-- Where a running job is, without a walk over every lease's ids through the view.
create or replace function millrace.job_running(the_job bigint)
returns table (session bigint, number bigint, at timestamptz, attempt int, crashes int)
language plpgsql volatile set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
    -- Not in one statement: a plan over both opens every leaf of history, even where no lease has the job.
    for session, number, at, attempt, crashes in
        select l.session, l.number, l.at, coalesce(l.attempts[array_position(l.ids, the_job)], 0) + 1, coalesce(l.crashes[array_position(l.ids, the_job)], 0)::int
          from millrace.lease l
         where l.lo <= the_job and l.hi >= the_job and the_job = any (l.ids)
    loop
        if millrace.recorded(session, array[the_job], array[number]) = '{}' then
            return next;
        end if;
    end loop;
end $$;

-- Whether the job has a place in line, now or later. Unlike job_running it costs the same however many jobs run.
create or replace function millrace.job_waits(the_job bigint) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    head record;
begin
    select j.queue, j.lane into head from millrace.job j where j.id = the_job;
    return exists (select from millrace.ready r where r.queue = head.queue and r.lane = head.lane and r.seq = the_job)
        or exists (select from millrace.ready r where r.job = the_job and r.seq <> r.job)
        or exists (select from millrace.timer d where d.job = the_job)
        or exists (select from millrace.parked p where p.job = the_job);
end $$;

-- The fast look-up of one job; a client sees its own.
create or replace function millrace.job(id bigint, caller millrace.caller_name default current_user) returns setof millrace.jobs
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    head record;
    place record;
    tries int;
begin
    select j.owner, j.tenant, j.queue, j.lane, j.limit_key, j.unique_hash is not null as is_keyed into head from millrace.job j where j.id = job.id;
    if not found or not millrace.may_see(head.owner, head.tenant, caller => job.caller) then
        return;
    end if;
    for tries in 1 .. 3 loop                              -- it may move between two looks
        -- By its place, like take_waiting: ready has no index on job for its plain rows.
        select r.lane, r.attempt, r.crashes, null as limited_by into place from millrace.ready r
         where r.queue = head.queue and r.lane = head.lane and r.seq = job.id;
        if not found then
            select r.lane, r.attempt, r.crashes, null as limited_by into place from millrace.ready r where r.job = job.id and r.seq <> r.job;
        end if;
        if not found and head.limit_key is not null then
            select p.lane, p.attempt, p.crashes, head.limit_key as limited_by into place from millrace.parked p where p.job = job.id;
        end if;
        if found then
            return query
            select j.id, k.name, q.name, 'ready'::text, place.lane >> 2, j.args, coalesce(j.run_at, j.enqueued_at),
                   place.attempt::int, j.max_attempts::int, place.crashes::int, j.unique_key, j.limit_key, j.tenant, coalesce(j.tags, '{}'),
                   coalesce(j.metadata, '{}'), j.enqueued_at, null::timestamptz, null::timestamptz, null::text, millrace.progress_of(j.id), millrace.errors_of(j.id), null::bigint[], place.limited_by, null::jsonb
              from millrace.job j
              join millrace.kind k on k.id = j.kind
              join millrace.queue q on q.id = j.queue
             where j.id = job.id;
            if found then return; end if;
        end if;
        return query select v.* from millrace.jobs v where v.state = 'scheduled' and v.id = job.id;
        if found then return; end if;
        return query
        select j.id, k.name, q.name, 'running'::text, j.lane >> 2, j.args, coalesce(j.run_at, j.enqueued_at),
               r.attempt, j.max_attempts::int, r.crashes, j.unique_key, j.limit_key, j.tenant, coalesce(j.tags, '{}'),
               coalesce(j.metadata, '{}'), j.enqueued_at, r.at, null::timestamptz, s.name, millrace.progress_of(j.id), millrace.errors_of(j.id), null::bigint[], null::text, null::jsonb
          from millrace.job_running(job.id) r
          join millrace.job j on j.id = job.id
          join millrace.kind k on k.id = j.kind
          join millrace.queue q on q.id = j.queue
          join millrace.session s on s.id = r.session;
        if found then return; end if;
        -- A job that has no options can wait too: in the middle of its work, for jobs that it has made.
        if head.is_keyed or exists (select from millrace.blocked b where b.job = job.id) then
            return query select v.* from millrace.jobs v where v.state = 'blocked' and v.id = job.id;
            if found then return; end if;
        end if;
        return query select v.* from millrace.jobs v where v.state in ('succeeded', 'cancelled', 'dead') and v.id = job.id;
        if found then return; end if;
    end loop;
end $$;
select millrace.door_is('queue', 'job', 'client, worker, operator', 'tenant job', 'One of the caller''s jobs.');

-- Where many jobs stand, as millrace.job has it, without all else that it reads. All of it is of one moment. since: when a run began, or when an
-- ended one did; until: when a job is due, or when it ended; error: of the run that ended it.
create or replace function millrace.job_states(ids bigint[])
returns table (job bigint, kind text, state text, attempt int, since timestamptz, until timestamptz, session bigint, error text)
language plpgsql volatile set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
begin
    return query
    select j.id, k.name, p.state, p.attempt, p.since, p.until, p.session, p.error
      from (select distinct i from unnest(job_states.ids) i) i
      join millrace.job j on j.id = i.i
      join millrace.kind k on k.id = j.kind
      left join lateral (
        select 'ready' as state, r.attempt::int as attempt, null::timestamptz as since, null::timestamptz as until, null::bigint as session, null::text as error
          from millrace.ready r where r.queue = j.queue and r.lane = j.lane and r.seq = j.id
         union all
        select 'ready', r.attempt, null, null, null, null from millrace.ready r where r.job = j.id and r.seq <> r.job
         union all
        select 'ready', p.attempt, null, null, null, null from millrace.parked p where p.job = j.id
         union all
        select 'scheduled', d.attempt, null, d.due, null, null from millrace.timer d where d.job = j.id
         union all
        select 'running', coalesce(l.attempts[array_position(l.ids, j.id)], 0) + 1, l.at, null, l.session, null
          from millrace.lease l
         where l.lo <= j.id and l.hi >= j.id and j.id = any (l.ids)
           and not exists (
                select from millrace.history h
                 where h.class = (l.number & 3)::smallint and h.started = l.at and h.id = j.id and h.session = l.session and h.number = l.number)
         union all
        select 'blocked', coalesce((select w.attempt::int from millrace.wait w where w.job = b.job and w.what = 3), 0), null, b.due, null, null from millrace.blocked b where b.job = j.id
         union all
        select 'blocked', 0, null, u.due, null, null from millrace.unique_lock u where j.unique_hash is not null and u.next = j.id
         union all
        select (array['succeeded', 'cancelled', 'dead'])[h.outcome], h.attempt, case when h.session <> 0 then h.started end, h.finished, h.session, h.error
          from millrace.history h where h.id = j.id and h.outcome in (1, 2, 3)
         limit 1) p on true;
end $$;

create or replace function millrace.job_lives(the_job bigint) returns boolean
language sql volatile as $$
    select exists (select from millrace.job(the_job) j where j.state not in ('succeeded', 'cancelled', 'dead'))
$$;

-- A client's own jobs, newest first, a page at a time.
create or replace function millrace.own_jobs(after bigint default null, page int default 50, caller millrace.caller_name default current_user) returns setof millrace.jobs
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    own text := millrace.caller_tenant(own_jobs.caller);
    one bigint;
    shown millrace.jobs;
    size bigint;
    taken bigint := 0;
begin
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    for one in
        select j.id from millrace.job j
         where (own_jobs.after is null or j.id < own_jobs.after) and j.owner = own_jobs.caller
           and millrace.is_within(j.tenant, own)
         order by j.id desc limit page
    loop
        for shown in select * from millrace.job(one) loop
            size := octet_length(shown::text);
            if not millrace.page_takes('own_jobs', taken, size) then
                return;                                   -- the rest is on the next page
            end if;
            taken := taken + size;
            return next shown;
        end loop;
    end loop;
end $$;
select millrace.door_is('queue', 'own_jobs', 'client, worker', 'granted', 'The caller''s own jobs.');

-- The lines that hold anything, each with its first job: a loose walk from lane to lane. most: how many lanes at most. of_lines: only of these queues.
create or replace function millrace.heads(most int default null, of_lines int[] default null) returns table (queue int, lane int, job bigint)
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
begin
    if of_lines is not null then
        return query
        select line, lanes.lane, f.job from unnest(of_lines) line cross join generate_series(0, 39) lanes(lane)
         cross join lateral (select r.job from millrace.ready r where r.queue = line and r.lane = lanes.lane order by r.seq limit 1) f
         limit most;
        return;
    end if;
    return query
    with recursive walk as (
        (select r.queue, r.lane, r.job from millrace.ready r order by r.queue, r.lane, r.seq limit 1)
        union all
        select n.queue, n.lane, n.job from walk w cross join lateral (
            select r.queue, r.lane, r.job from millrace.ready r where (r.queue, r.lane) > (w.queue, w.lane) order by r.queue, r.lane, r.seq limit 1) n
    )
    select w.queue, w.lane, w.job from walk w limit most;
end $$;

-- Counts are capped, because a count of millions takes seconds: `cap` means that many or more. mains: only these queues. A function, because the
-- planner overestimates the laterals and would compile them.
create or replace function millrace.depths_of(mains int[], cap int)
returns table (queue text, paused_at timestamptz, retention text, ready bigint, scheduled bigint, running bigint,
    oldest_ready_at timestamptz, created_at timestamptz)
language plpgsql volatile
set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    lines int[] := case when mains is not null then array(select q.id from millrace.queue q where coalesce(q.main, q.id) = any (mains)) end;
begin
    return query
    with held as materialized (
        select coalesce(q.main, q.id) as main, count(*) as n
          from millrace.lease l cross join lateral unnest(l.ids) u(id)
          join millrace.job j on j.id = u.id and j.id between l.lo and l.hi
          join millrace.queue q on q.id = j.queue
         where not exists (
                select from millrace.history h where h.class = (l.number & 3)::smallint and h.started = l.at
                   and h.id = u.id and h.session = l.session and h.number = l.number)
         group by coalesce(q.main, q.id)
    ), later as materialized (
        -- One pass for all queues, because timers are in order of time. After a hundred times the cap it returns what it has seen so far.
        select coalesce(q.main, q.id) as main, count(*) as n
          from (select t.queue from millrace.timer t limit cap::bigint * 100) d join millrace.queue q on q.id = d.queue
         group by coalesce(q.main, q.id)
    ), aside as materialized (
        select coalesce(q.main, q.id) as main, count(*) as n
          from (select p.queue from millrace.parked p limit cap::bigint * 100) d join millrace.queue q on q.id = d.queue
         group by coalesce(q.main, q.id)
    ), first as materialized (
        select f.queue as line, min(greatest(j.enqueued_at, coalesce(j.run_at, j.enqueued_at))) as oldest
          from millrace.heads(null, lines) f join millrace.job j on j.id = f.job group by f.queue
    ), heads as materialized (
        select coalesce(q.main, q.id) as main, min(f.oldest) as oldest, sum(c.n) as n
          from first f join millrace.queue q on q.id = f.line
         cross join lateral (select count(*) as n from (select from millrace.ready r where r.queue = f.line limit cap) x) c
         group by coalesce(q.main, q.id)
    )
    select q.name, q.paused_at, (array['short', 'standard', 'long'])[q.retention + 1],
           least(coalesce(f.n, 0)::bigint + coalesce(a.n, 0), cap::bigint), least(coalesce(l.n, 0), cap::bigint), coalesce(h.n, 0), f.oldest, q.created_at
      from millrace.queue q
      left join heads f on f.main = q.id left join aside a on a.main = q.id left join later l on l.main = q.id left join held h on h.main = q.id
     where q.main is null and (mains is null or q.id = any (mains)) order by q.name;
end $$;

create or replace function millrace.depths(cap int default 10000)
returns table (queue text, paused_at timestamptz, retention text, ready bigint, scheduled bigint, running bigint,
    oldest_ready_at timestamptz, created_at timestamptz)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select * from millrace.depths_of(null, cap)
$$;
select millrace.door_is('queue', 'depths', 'worker, viewer', 'staff');

create or replace view millrace.queues as select * from millrace.depths();
select millrace.view_is('queue', 'queues', 'worker, viewer');

create or replace view millrace.workers as
select s.name as worker, s.host, s.pid, s.version, b.state, s.started_at, b.at as beat_at, s.slots, b.running, b.waiting, b.stuck,
       coalesce(s.queues, '{}') as queues, array(select distinct k.name from millrace.kind k where k.id = any (s.kinds) order by 1) as kinds,
       s.direct, to_hex(s.id) as session, b.ahead::float8 as clock_ahead_s
  from millrace.session s join millrace.beat b on b.session = s.id;
select millrace.view_is('queue', 'workers', 'worker, viewer');

create or replace view millrace.limits as select * from millrace.limit_list();
select millrace.view_is('queue', 'limits', 'worker, viewer');
