-- Which numbers the sequence has given out, and which writers may still commit some of them. The sequence first, then an own
-- transaction id, then a snapshot: enqueue takes its id before it draws, so a writer with an id above ours draws only larger
-- numbers. A snapshot lists no writer that is younger than the youngest that has ended: those up to our own id are added.
create or replace function millrace.horizon(out seq bigint, out writers text[])
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan as $$
declare
    own bigint;
    now pg_snapshot;
begin
    select case when s.is_called then s.last_value else 0 end into seq from millrace.seq s;
    own := pg_current_xact_id()::text::bigint;
    now := pg_current_snapshot();
    writers := array(
        select pg_snapshot_xip(now)::text
        union
        select young::text from generate_series(pg_snapshot_xmax(now)::text::bigint, own - 1) young);
    writers := array_remove(writers, own::text);
end $$;
select millrace.door_is('queue', 'horizon', 'worker', 'staff');

-- Two claims on one lane skip each other's jobs one by one, a microsecond each, and disturb each other at both ends of its index. So a
-- worker that has enough to do for now waits until the other claim has committed, and continues at that moment; it waits no longer than
-- that, and never for long, because with many workers two claims at once are better than a queue before the queue. The lock decides
-- nothing, so an advisory lock is
-- enough: if an outsider holds it, a claim loses only the wait.
create or replace function millrace.claim_turn(the_queue int, the_lane int, wait int) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '15ms' as $$
declare
    key bigint := hashtextextended('claim ' || (the_queue << 6 | the_lane), (select s.value::bigint from millrace.setting s where s.name = 'lock_secret'));
begin
    if not pg_try_advisory_xact_lock(key) then
        begin
            perform set_config('lock_timeout', greatest(1, least(wait, 15))::text, true);      -- in milliseconds; 0 would be for ever
            perform pg_advisory_xact_lock(key);
        exception when lock_not_available then
            null;                                         -- side by side, then
        end;
    end if;
end $$;

-- Takes up to `wanted` jobs from the given lanes in their order, each between its floor and its ceiling, and writes one lease for each
-- retention class that it meets (and one for a lone suspect). `array(…)` keeps the limit from being run twice and is an index scan under a
-- generic plan; see the decision record in storage.md. Bitmap scans are off: a plan that was made and kept while the statistics say that
-- the table is empty would sort a whole backlog for each claim.
-- Where limits apply to any of the lanes, claim_limited does the work (a worker that knows of limits calls it directly), and its answer has
-- further rows: a row without arguments is a job that was taken out of its place but not claimed; a row without arguments and place is a
-- queue that was held back; and a row with only gates names the gates at which each of the jobs holds a slot.
-- brief: columns cost more per job than anything else in a claim, so a column with nothing new is null: kind, queue and lane if they equal
-- those of the first row, which is no job and also has the time of the claim; the place if it is the job's own id; the usual class of
-- lease; and every zero or false.
-- patient: the worker has enough to do for a while, so it waits for its turn at the lane in place `turn` (the first lane that it expects
-- jobs from), for at most turn_wait milliseconds.
-- loose: the claim need not reach the disk before it is answered. A server that crashes within a moment may forget it; then its ends are
-- refused, and its jobs run again. What a run has committed in this database comes after its claim in the log, so it is lost together with
-- the claim. Not used where limits or crashes count: those claims wait for the disk.
-- carry: the most bytes that a job may add to the answer. A larger job is claimed like any other; its row has a time of enqueuing but no
-- arguments, options, metadata or tags, which jobs_read() brings. So no set of jobs makes an answer large.
create or replace function millrace.claim(
    the_session bigint, the_number bigint, the_kinds int[],
    the_queues int[], the_lanes int[], floors bigint[], ceilings bigint[], limits int[], wanted int,
    short_queues int[], long_queues int[], brief boolean default false, patient boolean default false, loose boolean default false,
    turn int default 1, turn_wait int default 15, carry int default null
) returns table (
    seq bigint, id bigint, number bigint, kind int, queue int, lane int, attempt smallint, crashes smallint,
    enqueued_at timestamptz, args jsonb, max_attempts smallint, keyed boolean, expired boolean,
    options jsonb, metadata jsonb, tags text[], tenant text, claimed_at timestamptz, gates bigint[]
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan as $$
declare
    paused int[];
    is_limited boolean;
    usual_number bigint := case when brief then the_number + 1 end;
    zero smallint := case when brief then 0 end;
    untrue boolean := case when not brief then false end;
begin
    select array(select q.id from millrace.queue m join millrace.queue q on q.id = m.id or q.main = m.id where m.paused_at is not null),
           exists (
            select from unnest(the_queues) u(id) join millrace.queue q on q.id = u.id
             where q.keyed
                or exists (select from millrace.limit_rule r where r.scope = 'queue' and r.name = q.name)
                or exists (select from millrace.limit_rule r where r.scope = 'tenant' and r.name = q.tenant and (r.concurrency is not null or r.rate is not null)))
      into paused, is_limited;
    if is_limited then
        return query
        select c.seq, c.id, c.number, c.kind, c.queue, c.lane, c.attempt, c.crashes, c.enqueued_at, c.args, c.max_attempts, c.keyed, c.expired,
               c.options, c.metadata, c.tags, c.tenant, c.claimed_at, coalesce(c.gates, case when c.gate is not null then array[c.gate] end)
          from millrace.claim_limited(the_session, the_number, the_kinds, the_queues, the_lanes, floors, ceilings,
                                      limits, wanted, short_queues, long_queues, brief, patient, false, false, turn, turn_wait, carry) c;
        return;
    end if;
    if patient then
        perform millrace.claim_turn(the_queues[turn], the_lanes[turn], turn_wait);
    end if;
    if wanted >= 1000 then
        return query
        select m.seq, m.id, m.number, m.kind, m.queue, m.lane, m.attempt, m.crashes, m.enqueued_at, m.args, m.max_attempts, m.keyed, m.expired,
               m.options, m.metadata, m.tags, m.tenant, m.claimed_at, m.gates
          from millrace.claim_many(the_session, the_number, the_kinds, the_queues, the_lanes, floors, ceilings, limits, wanted,
                                   short_queues, long_queues, brief, loose, paused, carry) m;
        return;
    end if;
    return query
    with moment as materialized (
        select millrace.now() as t
    ), gone as materialized (
        delete from millrace.ready r
         where r.ctid = any (array(
            select f.ctid
              from unnest(the_queues, the_lanes, floors, ceilings, limits) p(queue, lane, floor, ceiling, most)
             cross join lateral (
                select c.ctid from millrace.ready c
                 where c.queue = p.queue and c.lane = p.lane and c.seq > p.floor and c.seq <= p.ceiling
                   and c.kind = any (the_kinds)
                 order by c.seq
                 limit p.most
                   for update skip locked) f
             where p.queue <> all (paused)
             limit wanted))
        returning r.seq, r.job, r.queue, r.kind, r.lane, r.attempt, r.crashes,
            the_number + case when r.queue = any (short_queues) then 0 when r.queue = any (long_queues) then 2 else 1 end
                + case when r.lane & 3 = 3 then 4 else 0 end as number
    ), leased as (
        insert into millrace.lease (session, number, at, n, lo, hi, ids, attempts, crashes)
        select the_session, g.number, (select m.t from moment m), count(*), min(g.job), max(g.job), array_agg(g.job),
               case when max(g.attempt) > 0 then array_agg(g.attempt) end,
               case when max(g.crashes) > 0 then array_agg(g.crashes) end
          from gone g
         group by g.number
    ), span as materialized (
        select min(g.job) as lo, max(g.job) as hi from gone g
    ), usual as materialized (
        select g.kind, g.queue, g.lane,
               case when loose and not exists (select from gone b where b.crashes > 0) then set_config('synchronous_commit', 'off', true) end
          from gone g limit 1
    )
    select null::bigint, null::bigint, null::bigint, u.kind, u.queue, u.lane, null::smallint, null::smallint, null::timestamptz, null::jsonb, null::smallint,
           null::boolean, null::boolean, null::jsonb, null::jsonb, null::text[], null::text, (select m.t from moment m), null::bigint[]
      from usual u where brief
    union all
    select case when brief then nullif(g.seq, g.job) else g.seq end, g.job, nullif(g.number, usual_number),
           nullif(g.kind, (select u.kind from usual u where brief)), nullif(g.queue, (select u.queue from usual u where brief)),
           nullif(g.lane, (select u.lane from usual u where brief)), nullif(g.attempt, zero), nullif(g.crashes, zero),
           j.enqueued_at, case when j.whole then j.args end, j.max_attempts, case when j.unique_hash is not null or j.options ? 'tell_end' then true else untrue end,
           case when not j.whole then untrue when (j.options ->> 'expires_at')::timestamptz <= (select m.t from moment m) then case when millrace.job_has_begun(j.id) then untrue else true end else untrue end,
           case when j.whole then j.options end, case when j.whole then j.metadata end, case when j.whole then j.tags end,
           j.tenant, (select m.t from moment m where not brief), null::bigint[]
      from gone g
     cross join lateral (                                 -- offset 0: one look-up for each, never the whole span of ids between them
        select i.*, millrace.is_carried(carry, i.args, i.options, i.metadata, i.tags) as whole from millrace.job i
         where i.id = g.job and i.id between (select s.lo from span s) and (select s.hi from span s) offset 0) j;
end $$;
select millrace.door_is('queue', 'claim', 'worker', 'staff');

-- What `claim` does for many jobs, once it has decided that it may. It reads their rows together and joins them to the places in a hash: by
-- the range from the first id to the last where at least half of it is theirs, else by all the ids at once. For few jobs `claim` looks each
-- up, which costs less. Where the jobs are neighbours and nothing needs to be said of their places, the range is the answer.
create or replace function millrace.claim_many(
    the_session bigint, the_number bigint, the_kinds int[],
    the_queues int[], the_lanes int[], floors bigint[], ceilings bigint[], limits int[], wanted int,
    short_queues int[], long_queues int[], brief boolean, loose boolean, paused int[], carry int default null
) returns table (
    seq bigint, id bigint, number bigint, kind int, queue int, lane int, attempt smallint, crashes smallint,
    enqueued_at timestamptz, args jsonb, max_attempts smallint, keyed boolean, expired boolean,
    options jsonb, metadata jsonb, tags text[], tenant text, claimed_at timestamptz, gates bigint[]
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
set enable_hashjoin = on                                  -- the caller has it off
set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    usual_number bigint := case when brief then the_number + 1 end;
    zero smallint := case when brief then 0 end;
    untrue boolean := case when not brief then false end;
begin
    return query
    with moment as materialized (
        select millrace.now() as t
    ), gone as materialized (
        delete from millrace.ready r
         where r.ctid = any (array(
            select f.ctid
              from unnest(the_queues, the_lanes, floors, ceilings, limits) p(queue, lane, floor, ceiling, most)
             cross join lateral (
                select c.ctid from millrace.ready c
                 where c.queue = p.queue and c.lane = p.lane and c.seq > p.floor and c.seq <= p.ceiling
                   and c.kind = any (the_kinds)
                 order by c.seq
                 limit p.most
                   for update skip locked) f
             where p.queue <> all (paused)
             limit wanted))
        returning r.seq, r.job, r.queue, r.kind, r.lane, r.attempt, r.crashes,
            the_number + case when r.queue = any (short_queues) then 0 when r.queue = any (long_queues) then 2 else 1 end
                + case when r.lane & 3 = 3 then 4 else 0 end as number
    ), leased as (
        insert into millrace.lease (session, number, at, n, lo, hi, ids, attempts, crashes)
        select the_session, g.number, (select m.t from moment m), count(*), min(g.job), max(g.job), array_agg(g.job),
               case when max(g.attempt) > 0 then array_agg(g.attempt) end,
               case when max(g.crashes) > 0 then array_agg(g.crashes) end
          from gone g
         group by g.number
    ), span as materialized (
        select min(g.job) as lo, max(g.job) as hi, max(g.job) - min(g.job) < 2 * count(*) as near,
               brief and max(g.job) - min(g.job) < count(*) and bool_and(g.seq = g.job and g.attempt = 0 and g.crashes = 0)
               and min(g.number) = usual_number and max(g.number) = usual_number
               and min(g.kind) = max(g.kind) and min(g.queue) = max(g.queue) and min(g.lane) = max(g.lane) as silent
          from gone g
    ), taken as materialized (
        select array_agg(g.job) as ids from gone g
    ), usual as materialized (
        select g.kind, g.queue, g.lane,
               case when loose and not exists (select from gone b where b.crashes > 0) then set_config('synchronous_commit', 'off', true) end
          from gone g limit 1
    )
    select null::bigint, null::bigint, null::bigint, u.kind, u.queue, u.lane, null::smallint, null::smallint, null::timestamptz, null::jsonb, null::smallint,
           null::boolean, null::boolean, null::jsonb, null::jsonb, null::text[], null::text, (select m.t from moment m), null::bigint[]
      from usual u where brief
    union all
    select null, i.id, null, null, null, null, null, null,
           i.enqueued_at, case when i.whole then i.args end, i.max_attempts, case when i.unique_hash is not null or i.options ? 'tell_end' then true end,
           case when not i.whole then null when (i.options ->> 'expires_at')::timestamptz <= (select m.t from moment m) then nullif(not millrace.job_has_begun(i.id), false) end,
           case when i.whole then i.options end, case when i.whole then i.metadata end, case when i.whole then i.tags end, i.tenant, null, null
      from (select i.*, millrace.is_carried(carry, i.args, i.options, i.metadata, i.tags) as whole from millrace.job i
             where (select s.silent from span s) and i.id between (select s.lo from span s) and (select s.hi from span s) offset 0) i
    union all
    select case when brief then nullif(g.seq, g.job) else g.seq end, g.job, nullif(g.number, usual_number),
           nullif(g.kind, (select u.kind from usual u where brief)), nullif(g.queue, (select u.queue from usual u where brief)),
           nullif(g.lane, (select u.lane from usual u where brief)), nullif(g.attempt, zero), nullif(g.crashes, zero),
           j.enqueued_at, case when j.whole then j.args end, j.max_attempts, case when j.unique_hash is not null or j.options ? 'tell_end' then true else untrue end,
           case when not j.whole then untrue when (j.options ->> 'expires_at')::timestamptz <= (select m.t from moment m) then case when millrace.job_has_begun(j.id) then untrue else true end else untrue end,
           case when j.whole then j.options end, case when j.whole then j.metadata end, case when j.whole then j.tags end,
           j.tenant, (select m.t from moment m where not brief), null::bigint[]
      from gone g
      join (select i.*, millrace.is_carried(carry, i.args, i.options, i.metadata, i.tags) as whole from millrace.job i
             where (select s.near and not s.silent from span s) and i.id between (select s.lo from span s) and (select s.hi from span s)
            union all
            select i.*, millrace.is_carried(carry, i.args, i.options, i.metadata, i.tags) from millrace.job i
             where (select not s.near from span s) and i.id = any ((select t.ids from taken t)::bigint[])
               and i.id between (select s.lo from span s) and (select s.hi from span s)) j on j.id = g.job;
end $$;

-- The next job of one lane, for a worker that was woken for it: the same as `claim`, in statements that cost a third as much to prepare. It
-- takes nothing where the lane is paused or may have limits, and from lines of suspects; the worker then calls `claim`. the_number is the
-- lease's whole number.
create or replace function millrace.claim_one(
    the_session bigint, the_number bigint, the_kinds int[], the_queue int, the_lane int, floor bigint, loose boolean, carry int default null,
    out seq bigint, out id bigint, out kind int, out attempt smallint, out crashes smallint,
    out enqueued_at timestamptz, out args jsonb, out max_attempts smallint, out keyed boolean, out expired boolean,
    out options jsonb, out metadata jsonb, out tags text[], out tenant text, out claimed_at timestamptz
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan as $$
declare
    setting text;
begin
    delete from millrace.ready r
     where r.ctid = (
        select c.ctid from millrace.ready c
         where c.queue = the_queue and c.lane = the_lane and c.seq > claim_one.floor and c.kind = any (the_kinds)
           and (select not (q.keyed or q.main is not null or q.paused_at is not null
                    or exists (select from millrace.limit_rule l where l.scope = 'queue' and l.name = q.name))
                  from millrace.queue q where q.id = the_queue)
         order by c.seq
         limit 1
           for update skip locked)
    returning r.seq, r.job, r.kind, r.attempt, r.crashes into seq, id, kind, attempt, crashes;
    if id is not null then
        claimed_at := millrace.now();
        insert into millrace.lease (session, number, at, n, lo, hi, ids, attempts, crashes)
        values (the_session, the_number, claimed_at, 1, id, id, array[id],
                case when attempt > 0 then array[attempt] end, case when crashes > 0 then array[crashes] end);
        select j.enqueued_at, case when j.whole then j.args end, j.max_attempts, j.unique_hash is not null or coalesce(j.options ? 'tell_end', false),
               case when not j.whole then false when (j.options ->> 'expires_at')::timestamptz <= claimed_at then not millrace.job_has_begun(j.id) else false end,
               case when j.whole then j.options end, case when j.whole then j.metadata end, case when j.whole then j.tags end, j.tenant
          into strict enqueued_at, args, max_attempts, keyed, expired, options, metadata, tags, tenant
          from (select i.*, millrace.is_carried(carry, i.args, i.options, i.metadata, i.tags) as whole
                  from millrace.job i where i.id = claim_one.id offset 0) j;
        if loose and crashes = 0 then                     -- see claim
            setting := set_config('synchronous_commit', 'off', true);
        end if;
    end if;
end $$;
select millrace.door_is('queue', 'claim_one', 'worker', 'staff');

-- The lanes with jobs that a worker of these kinds could run, and from which place on. It is the safeguard behind the floors, for rows that
-- committed late, that were locked by a claim that rolled back, or that wait in an unknown lane. A loose walk from lane to lane.
create or replace function millrace.lanes(the_kinds int[], the_queues int[])
returns table (queue int, lane int, first bigint, last bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off as $$
declare
    at_queue int := -1;
    at_lane int := -1;
    lowest bigint;                                        -- of any kind: what lies below need not be walked over twice
begin
    loop
        select r.queue, r.lane, r.seq into queue, lane, lowest from millrace.ready r
         where (r.queue, r.lane) > (at_queue, at_lane) order by r.queue, r.lane, r.seq limit 1;
        exit when not found;
        at_queue := queue;
        at_lane := lane;
        if the_queues is null or queue = any (the_queues) then
            select r.seq into first from millrace.ready r
             where r.queue = at_queue and r.lane = at_lane and r.seq >= lowest and r.kind = any (the_kinds) order by r.seq limit 1;
            if found then
                select r.seq into last from millrace.ready r
                 where r.queue = at_queue and r.lane = at_lane and r.kind = any (the_kinds) order by r.seq desc limit 1;
                last := coalesce(last, first);            -- the next statement may see that somebody has taken it
                return next;
            end if;
        end if;
    end loop;
end $$;
select millrace.door_is('queue', 'lanes', 'worker', 'staff');

-- The same of given lanes, each above a place below which the worker knows it to be empty for good.
create or replace function millrace.lanes_above(the_kinds int[], the_queues int[], the_lanes int[], bottoms bigint[])
returns table (queue int, lane int, first bigint, last bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan as $$
begin
    return query
    select p.queue, p.lane, lowest.seq, highest.seq
      from unnest(the_queues, the_lanes, bottoms) p(queue, lane, bottom)
     cross join lateral (
        select r.seq from millrace.ready r
         where r.queue = p.queue and r.lane = p.lane and r.seq > p.bottom and r.kind = any (the_kinds) order by r.seq limit 1) lowest
     cross join lateral (
        select r.seq from millrace.ready r
         where r.queue = p.queue and r.lane = p.lane and r.seq >= lowest.seq and r.kind = any (the_kinds) order by r.seq desc limit 1) highest;
end $$;
select millrace.door_is('queue', 'lanes_above', 'worker', 'staff');

-- The same for every lane of the given queues (or of all), but only between two places: a part of what lies below the floors.
create or replace function millrace.lanes_between(the_kinds int[], the_queues int[], above bigint, upto bigint)
returns table (queue int, lane int, first bigint, last bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan as $$
begin
    return query
    select q.id, code, lowest.seq, highest.seq
      from millrace.queue q
     cross join generate_series(0, 39) code
     cross join lateral (
        select r.seq from millrace.ready r
         where r.queue = q.id and r.lane = code and r.seq > above and r.seq <= upto and r.kind = any (the_kinds) order by r.seq limit 1) lowest
     cross join lateral (
        select r.seq from millrace.ready r
         where r.queue = q.id and r.lane = code and r.seq >= lowest.seq and r.seq <= upto and r.kind = any (the_kinds) order by r.seq desc limit 1) highest
     where the_queues is null or q.id = any (the_queues);
end $$;
select millrace.door_is('queue', 'lanes_between', 'worker', 'staff');

-- Moves due jobs to their places in line, in order of time. The floor avoids a walk over what was promoted before; without a floor (null)
-- everything due is looked at. Returns how many it moved, how far it came, when the next is due, and in which lanes the moved jobs wait
-- now.
create or replace function millrace.promote(
    floor timestamptz, wanted int,
    out moved int, out upto timestamptz, out next_due timestamptz, out t timestamptz, out queues int[], out lanes int[]
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    told text;                                            -- see wake_saying
begin
    t := case when pg_current_xact_id() is not null then millrace.now() end;   -- its id before numbers are drawn: see horizon()
    with due as materialized (
        delete from millrace.timer d
         where d.ctid = any (array(
            select c.ctid from millrace.timer c
             where c.due > coalesce(floor, '-infinity') and c.due <= t
             order by c.due limit wanted for update skip locked))
        returning d.*
    ), ordered as (
        select * from due order by due.due, due.job
    ), placed as (
        insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes)
        select nextval('millrace.seq'), o.job, o.queue, o.kind, o.lane, o.attempt, o.crashes from ordered o
    )
    select coalesce(sum(l.n), 0), max(l.upto), coalesce(array_agg(l.queue), '{}'), coalesce(array_agg(l.lane), '{}') into moved, upto, queues, lanes
      from (select due.queue, due.lane, count(*) as n, max(due.due) as upto from due group by due.queue, due.lane) l;
    for n in 1 .. cardinality(queues) loop
        told := millrace.wake_saying(queues[n], lanes[n], '')::text;
    end loop;
    select d.due into next_due from millrace.timer d where d.due > coalesce(upto, floor, '-infinity') order by d.due limit 1;
end $$;
select millrace.door_is('queue', 'promote', 'worker', 'staff');

-- Whether any timer is due between two times: a part of what lies below the floor, without moving the floor.
create or replace function millrace.is_due_between(above timestamptz, upto timestamptz) returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan as $$
begin
    return exists (select from millrace.timer d where d.due > coalesce(above, '-infinity') and d.due <= upto);
end $$;
select millrace.door_is('queue', 'is_due_between', 'worker', 'staff');
