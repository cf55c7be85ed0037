-- the_rooms: the rooms that the worker serves besides its kinds, each with how: {"mail": "resend", "notices": "on"}. Null if it does not
-- say. the_pin: the build to which it is pinned, see versions.sql.
create or replace function millrace.session_open(
    the_id bigint, the_name text, the_host text, the_pid int, the_version text,
    the_queues text[], the_kinds int[], the_slots int, is_direct boolean, the_rooms jsonb default null, the_pin text default null
) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
begin
    if the_pin is not null then
        perform millrace.build_seen(the_pin, the_kinds);
    end if;
    insert into millrace.session (id, name, host, pid, version, started_at, queues, kinds, slots, direct, rooms, pin)
    values (the_id, the_name, the_host, the_pid, the_version, t, the_queues, the_kinds, the_slots, is_direct, the_rooms, the_pin);
    insert into millrace.beat (session, at) values (the_id, t);
    insert into millrace.process (session, name, host, pid, version, started_at)
    values (the_id, the_name, the_host, the_pid, the_version, t);
end $$;
select millrace.door_is('queue', 'session_open', 'worker', 'staff');

-- True while the session exists; false when its jobs were rescued: every lease is lost then.
-- the_failures: what has failed since the last beat, similar errors together: objects with queue, kind, error (one of them; null: of several
-- that had no room), failed, dead, jobs (some of the ids, the latest first), lo and hi (the smallest and the largest id).
-- wait_ms, waits: how long the first runs of unscheduled jobs among these waited altogether, and how many they are. times: how many runs
-- took how long (see sample_times). clock: what the worker's own clock says.
create or replace function millrace.beat(
    the_session bigint, the_state text, the_running int, the_waiting int, the_stuck int,
    the_queues int[] default null, the_kinds int[] default null, succeeded int[] default null, failed int[] default null,
    dead int[] default null, cancelled int[] default null, snoozed int[] default null, ms bigint[] default null, the_failures jsonb default null,
    wait_ms bigint[] default null, waits int[] default null, times text[] default null, clock timestamptz default null
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    stands boolean;
begin
    update millrace.beat b
       set beat = b.beat + 1, at = t, state = the_state, running = the_running, waiting = the_waiting, stuck = the_stuck,
           ahead = extract(epoch from beat.clock - clock_timestamp())
     where b.session = the_session;
    stands := found;
    if the_queues is not null then
        insert into millrace.tally (at, session, queue, kind, succeeded, failed, dead, cancelled, snoozed, ms, wait_ms, waits, times)
        select t, the_session, x.* from unnest(the_queues, the_kinds, succeeded, failed, dead, cancelled, snoozed, ms, wait_ms, waits, times) x;
    end if;
    if the_failures is not null then
        insert into millrace.failure_note (first_at, at, session, queue, kind, error, failed, dead, jobs, lo, hi)
        select t, t, the_session, x.queue, x.kind, left(x.error, 1000), x.failed, x.dead, x.jobs[1:20], x.lo, x.hi
          from jsonb_to_recordset(the_failures) x(queue int, kind int, error text, failed bigint, dead bigint, jobs bigint[], lo bigint, hi bigint);
    end if;
    return stands;
end $$;
select millrace.door_is('queue', 'beat', 'worker', 'staff');

-- What a watcher compares with its last look: each other session's beat, and whether its session lock is free. The lock is tried in shared
-- mode, so that two watchers do not take each other for the worker.
create or replace function millrace.watch(the_session bigint)
returns table (session bigint, beat bigint, direct boolean, free boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    select s.id, b.beat, s.direct, s.direct and pg_try_advisory_xact_lock_shared(s.id)
      from millrace.session s join millrace.beat b on b.session = s.id
     where s.id <> the_session
     order by s.id;
end $$;
select millrace.door_is('queue', 'watch', 'worker', 'staff');

-- Puts a dead session's unfinished jobs back, each with one more crash, a history row, and its attempt given back; but only if its beat is
-- still the one that the watcher saw stand still. A lease that a handler's own transaction holds is left for later. A job whose lone run
-- (see lane_of) has crashed for the second time is quarantined.
create or replace function millrace.rescue(
    the_session bigint, seen_beat bigint, reason text default 'lost',
    out leases int, out jobs int, out quarantined int, out remaining int
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
declare
    t timestamptz := millrace.now();
    the_name text;
    one record;
    woken int[];
    lanes int[];
    ended bigint[];
    unfinished_ids bigint[];
    lost_jobs int;
    lost_dead int;
begin
    leases := 0; jobs := 0; quarantined := 0; remaining := 0;
    select s.name into the_name from millrace.session s where s.id = the_session for update skip locked;
    if not found then
        return;
    end if;
    if seen_beat is not null and not exists (select from millrace.beat b where b.session = the_session and b.beat = seen_beat) then
        return;
    end if;
    perform pg_current_xact_id();                         -- before numbers are drawn: see horizon()
    for one in
        select l.* from millrace.lease l where l.session = the_session order by l.number for update skip locked
    loop
        with unfinished as materialized (
            select u.id, j.kind, j.queue, j.lane, j.unique_hash, j.options ? 'tell_end' as tells,
                   coalesce(one.attempts[u.place], 0::smallint) as attempt, coalesce(one.crashes[u.place], 0::smallint) + 1 as crashes,
                   exists (select from millrace.cancel c where c.session = the_session and c.number = one.number and c.job = u.id) as cancelled
              from unnest(one.ids) with ordinality u(id, place)
              left join millrace.job j on j.id = u.id and j.id between one.lo and one.hi   -- one that is gone holds slots all the same
             where not exists (
                select from millrace.history h
                 where h.class = (one.number & 3)::smallint and h.started = one.at
                   and h.id = u.id and h.session = the_session and h.number = one.number)
        ), judged as materialized (
            select u.*, case u.outcome when 2 then null
                       when 3 then format('quarantined: it ran alone when worker %s crashed, for the second time (%s crashes)', the_name, u.crashes)
                       else format('worker %s was %s while the job ran or waited there', the_name, reason) end as error
              from (select x.*, case when x.cancelled then 2 when one.number & 4 <> 0 and x.crashes >= 5 then 3 else 7 end as outcome
                      from unfinished x where x.kind is not null) u
        ), recorded as (
            insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
            select u.id, the_session, one.number, one.at, t, u.kind, u.queue, one.number & 3, u.outcome, u.attempt + 1, u.crashes, u.error
              from judged u
        ), back as (
            insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes)
            select nextval('millrace.seq'), u.id, u.queue, u.kind, millrace.lane_of(u.lane, u.crashes, true), u.attempt, u.crashes
              from judged u where u.outcome = 7
        ), counted as (
            insert into millrace.tally (at, session, queue, kind, failed, dead)
            select t, the_session, u.queue, u.kind, count(*) filter (where u.outcome <> 2), count(*) filter (where u.outcome = 3)
              from judged u group by u.queue, u.kind
        ), noted as (
            insert into millrace.failure_note (first_at, at, session, queue, kind, error, failed, dead, jobs, lo, hi)
            select t, t, the_session, u.queue, u.kind, min(u.error), count(*), count(*) filter (where u.outcome = 3),
                   (array_agg(u.id order by u.id desc))[1:20], min(u.id), max(u.id)
              from judged u where u.outcome <> 2 group by u.queue, u.kind, u.outcome
        )
        select count(*), count(*) filter (where u.outcome = 3), array_agg(distinct u.queue), array_agg(distinct millrace.lane_of(u.lane, u.crashes, true)),
               array_agg(u.id) filter (where u.outcome in (2, 3) and (u.unique_hash is not null or u.tells)), (select array_agg(u.id) from unfinished u)
          into lost_jobs, lost_dead, woken, lanes, ended, unfinished_ids from judged u;
        perform millrace.flows_note(array_agg(h.id), array_agg(h.outcome), the_session, array_agg(h.number))
           from millrace.history h
          where h.class = (one.number & 3)::smallint and h.started = one.at and h.id = any (unfinished_ids)
            and h.session = the_session and h.number = one.number and millrace.flows_in_use();
        perform millrace.lease_slots_free(one.slot_all, coalesce(one.slot_jobs, one.ids), one.slot_gates, unfinished_ids);
        if ended is not null then
            perform millrace.unique_end(ended);
            perform millrace.ends_tell(ended);
        end if;
        delete from millrace.lease l where l.session = the_session and l.number = one.number;
        leases := leases + 1;
        jobs := jobs + lost_jobs;
        quarantined := quarantined + lost_dead;
        perform millrace.wake(q, l) from unnest(woken) q cross join unnest(lanes) l;
    end loop;
    if jobs > 0 and reason <> 'stopped' then
        perform millrace.fleet_note('jobs rescued', the_name, detail => format('%s jobs, %s of them quarantined', jobs, quarantined));
    end if;
    select count(*) into remaining from millrace.lease l where l.session = the_session;
    if remaining = 0 then
        delete from millrace.session s where s.id = the_session;
        -- Cancels stay: one that has just committed was not looked at here, and heed_cancels makes it good.
        update millrace.process p set ended_at = t, ending = reason where p.session = the_session and p.ended_at is null;
    end if;
end $$;
select millrace.door_is('queue', 'rescue', 'worker', 'staff');

-- A worker's own end. What it still holds goes back like a dead worker's, and is counted so.
create or replace function millrace.session_close(the_session bigint, out jobs int)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    select r.jobs into jobs from millrace.rescue(the_session, null, 'stopped') r;
end $$;
select millrace.door_is('queue', 'session_close', 'worker', 'staff');

-- A session's live leases, and how many jobs are left in each; read after every reconnect.
create or replace function millrace.leases_held(the_session bigint) returns bigint[]
language sql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
    select coalesce(array_agg(l.number), '{}') from millrace.lease l where l.session = the_session
$$;
select millrace.door_is('queue', 'leases_held', 'worker', 'staff');

-- Which of these leases are live, and on disk. A claim that did not wait for the disk stands before this in the log, and a lock on a row
-- is written there too: so the commit of this waits for both. For workers older than leases_read, which do not claim apart.
create or replace function millrace.leases_confirm(the_session bigint, numbers bigint[]) returns bigint[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off as $$
begin
    return array(
        select l.number
          from (select unnest(numbers) as number order by 1) n
         cross join lateral (                              -- see finish()
            select l.number from millrace.lease l where l.session = the_session and l.number = n.number for key share) l);
end $$;
select millrace.door_is('queue', 'leases_confirm', 'worker', 'staff');

-- The jobs of claims that were answered apart (see claim_limited), lease by lease. The first row is no job: it has the lease, the time of
-- its claim, and the kind; the other rows leave these out where they are the same, and also zeros and false. The leases are locked, and so
-- on disk with the answer, as above; for a lost lease there are no rows. carry: see claim().
create or replace function millrace.leases_read(the_session bigint, numbers bigint[], carry int default null)
returns table (
    number bigint, claimed_at timestamptz, kind int, id bigint, attempt smallint, crashes smallint, enqueued_at timestamptz, args jsonb,
    max_attempts smallint, keyed boolean, expired boolean, options jsonb, metadata jsonb, tags text[], tenant text, gate bigint, gates bigint[]
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    one record;
    usual record;
begin
    for one in
        select l.*
          from (select unnest(numbers) as number order by 1) n
         cross join lateral (                              -- see finish()
            select l.number, l.at, l.n, l.lo, l.hi, l.ids, l.attempts, l.crashes, l.slot_jobs, l.slot_gates
              from millrace.lease l where l.session = the_session and l.number = n.number for key share) l
    loop
        if usual is null then
            select one.number, one.at, (select j.kind from millrace.job j where j.id = one.ids[1] and j.id between one.lo and one.hi) as kind into usual;
            return query select usual.number, usual.at, usual.kind, null::bigint, null::smallint, null::smallint, null::timestamptz, null::jsonb,
                null::smallint, null::boolean, null::boolean, null::jsonb, null::jsonb, null::text[], null::text, null::bigint, null::bigint[];
        end if;
        return query
        select nullif(one.number, usual.number), nullif(one.at, usual.at), nullif(j.kind, usual.kind), u.id,
               nullif(u.attempt, 0::smallint), nullif(u.crashes, 0::smallint),
               j.enqueued_at, case when j.whole then j.args end, j.max_attempts, case when j.unique_hash is not null or j.options ? 'tell_end' then true end,
               case when not j.whole then null when (j.options ->> 'expires_at')::timestamptz <= one.at then nullif(not millrace.job_has_begun(j.id), false) end,
               case when j.whole then j.options end, case when j.whole then j.metadata end, case when j.whole then j.tags end, j.tenant, u.gate, u.gates
          from (select unnest(one.ids) as id, unnest(one.attempts) as attempt, unnest(one.crashes) as crashes, unnest(one.slot_gates) as gate,
                       null::bigint[] as gates
                 where one.slot_jobs is null
                union all
                select b.id, max(b.attempt), max(b.crashes), null, array_agg(b.gate) filter (where b.gate is not null)
                  from (select unnest(one.ids) as id, unnest(one.attempts) as attempt, unnest(one.crashes) as crashes, null::bigint as gate
                        union all
                        select unnest(one.slot_jobs), null, null, unnest(one.slot_gates)) b
                 where one.slot_jobs is not null
                 group by b.id) u
          -- Ids that lie close together are read with one scan; others are looked up one by one.
          join (select i.*, millrace.is_carried(carry, i.args, i.options, i.metadata, i.tags) as whole from millrace.job i
                 where one.hi - one.lo < 2 * one.n and i.id between one.lo and one.hi
                union all
                select i.*, millrace.is_carried(carry, i.args, i.options, i.metadata, i.tags) from millrace.job i
                 where one.hi - one.lo >= 2 * one.n and i.id = any (one.ids) and i.id between one.lo and one.hi) j on j.id = u.id;
    end loop;
end $$;
select millrace.door_is('queue', 'leases_read', 'worker', 'staff');

-- All of them each time, because a cancel from a long transaction appears after younger ones. heed_cancels keeps them few.
create or replace function millrace.cancels(the_session bigint) returns table (number bigint, job bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select c.number, c.job from millrace.cancel c where c.session = the_session
$$;
select millrace.door_is('queue', 'cancels', 'worker', 'staff');

-- Leases that the database has and the worker does not know: the reply to their claim was lost. None of their jobs has started. Jobs that
-- were cancelled meanwhile end here. Returns how many went back.
create or replace function millrace.leases_return(the_session bigint, numbers bigint[], out jobs int)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
declare
    t timestamptz := millrace.now();
    one record;
    queues int[];
    lanes int[];
    ended bigint[];
    unfinished_ids bigint[];
    n int;
begin
    jobs := 0;
    perform pg_current_xact_id();                         -- before numbers are drawn: see horizon()
    for one in
        delete from millrace.lease l where l.session = the_session and l.number = any (numbers) returning l.*
    loop
        with unfinished as materialized (
            select u.id, j.kind, j.queue, j.lane, j.unique_hash, j.options ? 'tell_end' as tells, coalesce(one.attempts[u.place], 0::smallint) as attempt,
                   coalesce(one.crashes[u.place], 0::smallint) as crashes,
                   exists (select from millrace.cancel c where c.session = the_session and c.number = one.number and c.job = u.id) as cancelled
              from unnest(one.ids) with ordinality u(id, place)
              left join millrace.job j on j.id = u.id and j.id between one.lo and one.hi   -- one that is gone holds slots all the same
             where not exists (
                select from millrace.history h
                 where h.class = (one.number & 3)::smallint and h.started = one.at
                   and h.id = u.id and h.session = the_session and h.number = one.number)
        ), recorded as (
            insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes)
            select u.id, the_session, one.number, one.at, t, u.kind, u.queue, one.number & 3, 2, u.attempt, u.crashes
              from unfinished u where u.cancelled and u.kind is not null
        ), back as (
            insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes)
            select nextval('millrace.seq'), u.id, u.queue, u.kind, millrace.lane_of(u.lane, u.crashes, true), u.attempt, u.crashes
              from unfinished u where not u.cancelled and u.kind is not null
        )
        select count(u.kind) filter (where not u.cancelled), array_agg(distinct u.queue) filter (where not u.cancelled and u.kind is not null),
               array_agg(distinct millrace.lane_of(u.lane, u.crashes, true)) filter (where not u.cancelled and u.kind is not null),
               array_agg(u.id) filter (where u.cancelled and (u.unique_hash is not null or u.tells)), array_agg(u.id)
          into n, queues, lanes, ended, unfinished_ids from unfinished u;
        perform millrace.flows_note(array_agg(h.id), array_agg(h.outcome), the_session, array_agg(h.number))
           from millrace.history h
          where h.class = (one.number & 3)::smallint and h.started = one.at and h.id = any (unfinished_ids)
            and h.session = the_session and h.number = one.number and millrace.flows_in_use();
        perform millrace.lease_slots_free(one.slot_all, coalesce(one.slot_jobs, one.ids), one.slot_gates, unfinished_ids);
        if ended is not null then
            perform millrace.unique_end(ended);
            perform millrace.ends_tell(ended);
        end if;
        jobs := jobs + n;
        perform millrace.wake(q, l) from unnest(queues) q cross join unnest(lanes) l;
    end loop;
end $$;
select millrace.door_is('queue', 'leases_return', 'worker', 'staff');
