-- How many of a lease's jobs have ended. Not in SQL: its plan would name every leaf of history, and sessions that rarely call it would pay
-- for that.
create or replace function millrace.lease_recorded(the_session bigint, the_number bigint, claimed_at timestamptz, ids bigint[]) returns bigint
language plpgsql stable as $$
begin
    return (select count(*) from millrace.history h
             where h.class = (the_number & 3)::smallint and h.started = claimed_at
               and h.id = any (ids) and h.session = the_session and h.number = the_number);
end $$;

-- Ends runs, of any mix of leases in one statement. A partial lease is locked (a lock makes no row version, so a pinned horizon costs
-- nothing); a lease whose last jobs end here is deleted, but only if history accounts for all the others. Returns the lease numbers that
-- were live: a job of any other lease changed nothing. A 0 among them says that other jobs wait for these ends.
-- outcomes: 1 succeeded, 2 cancelled, 3 dead, 4 retried, 5 snoozed, 6 released (7, crashed, is used by rescue).
-- slot_numbers, slot_gates, slot_counts: the slots that these runs held at gates, summed for each lease; only this statement gives them
-- back. outcomes, kinds, queues, attempts and crashes may be arrays of one element, which then counts for all: unnesting a column costs 0.1
-- µs a job.
-- attempts: the number of the run. waits: seconds until the next run, null when no job of this flush continues.
-- result_ids, results: JSON texts of the few jobs with a result; those of jobs that did not succeed here are dropped.
create or replace function millrace.finish(
    the_session bigint, ids bigint[], numbers bigint[], outcomes smallint[], kinds int[], queues int[],
    attempts smallint[], crashes smallint[], ms int[], partial bigint[], complete bigint[], counts int[],
    errors text[] default null, waits float8[] default null, keyed bigint[] default null,
    slot_numbers bigint[] default null, slot_gates bigint[] default null, slot_counts int[] default null,
    result_ids bigint[] default null, results text[] default null
) returns bigint[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    t timestamptz := millrace.now();
    alive bigint[];
    woken int[];
    lanes int[];
    the_outcome smallint := outcomes[1];
    the_kind int := kinds[1];
    the_queue int := queues[1];
    the_attempt smallint := attempts[1];
    the_crashes smallint := crashes[1];
begin
    if waits is not null then
        -- A cancel that the worker has not read yet wins over another run.
        select array_agg(case when f.outcome in (4, 5, 6) and c.job is not null then 2::smallint else f.outcome end order by f.place)
          into outcomes
          from (select u.id, u.number, coalesce(u.outcome, the_outcome) as outcome, u.place
                  from unnest(ids, numbers, outcomes) with ordinality u(id, number, outcome, place)) f
          left join lateral (select c.job from millrace.cancel c
                              where c.session = the_session and c.number = f.number and c.job = f.id limit 1) c on f.outcome in (4, 5, 6);
    end if;

    -- Each lease by its own number, and its end by its place: with an array or a join the planner reads all of the session's leases, and walks
    -- over those that an old snapshot keeps.
    with held as materialized (
        select l.number, l.at
          from (select unnest(partial) as number order by 1) p
         cross join lateral (
            select l.number, l.at from millrace.lease l where l.session = the_session and l.number = p.number for key share) l
    ), ended as (
        delete from millrace.lease l
         where l.ctid = any (array(
                select e.place
                  from unnest(complete) c(number)
                 cross join lateral (
                    select l.ctid as place from millrace.lease l where l.session = the_session and l.number = c.number offset 0) e))
           and (l.n = counts[array_position(complete, l.number)]
                or l.n = counts[array_position(complete, l.number)] + millrace.lease_recorded(l.session, l.number, l.at, l.ids))
        returning l.number, l.at
    ), live as materialized (
        select * from held union all select * from ended
    ), recorded as (
        insert into millrace.history (id, session, number, started, finished, kind, queue, ms, class, outcome, attempt, crashes, error)
        select f.id, the_session, f.number, l.at, t, coalesce(f.kind, the_kind), coalesce(f.queue, the_queue), f.ms, f.number & 3,
               coalesce(f.outcome, the_outcome), coalesce(f.attempt, the_attempt), coalesce(f.crashes, the_crashes), f.error
          from live l
          join unnest(ids, numbers, outcomes, kinds, queues, attempts, crashes, ms, errors)
               f(id, number, outcome, kind, queue, attempt, crashes, ms, error) on f.number = l.number
    )
    select array_agg(l.number) into alive from live l;

    if alive is null then
        return '{}';
    end if;
    if slot_gates is not null then
        insert into millrace.slot (gate, n)
        select s.gate, -sum(s.n) from unnest(slot_numbers, slot_gates, slot_counts) s(number, gate, n)
         where s.number = any (alive) group by s.gate;
    end if;

    if waits is not null then
        perform pg_current_xact_id();                     -- before numbers are drawn: see horizon()
        with again as materialized (
            select f.id, f.outcome, j.kind, coalesce(f.queue, the_queue) as queue,
                   coalesce(f.attempt, the_attempt) as attempt, coalesce(f.crashes, the_crashes) as crashes, f.wait, j.lane
              from unnest(ids, numbers, outcomes, queues, attempts, crashes, waits)
                   f(id, number, outcome, queue, attempt, crashes, wait)
              join millrace.job j on j.id = f.id
             where f.outcome in (4, 5, 6) and f.number = any (alive)
        ), later as (
            insert into millrace.timer (due, job, queue, kind, lane, attempt, crashes)
            select t + make_interval(secs => a.wait), a.id, a.queue, a.kind, millrace.lane_of(a.lane, a.crashes, false),
                   a.attempt - (a.outcome = 5)::int, a.crashes
              from again a where a.outcome in (4, 5)
        ), back as (
            insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes)
            select nextval('millrace.seq'), a.id, a.queue, a.kind, millrace.lane_of(a.lane, a.crashes, true), a.attempt - 1, a.crashes
              from again a where a.outcome = 6
        )
        select array_agg(distinct a.queue), array_agg(distinct millrace.lane_of(a.lane, a.crashes, a.outcome = 6)) into woken, lanes
          from again a where a.outcome = 6 or a.wait < 2;
        perform millrace.wake(q, l) from unnest(woken) q cross join unnest(lanes) l;
    end if;

    if result_ids is not null then
        perform millrace.results_keep(array_agg(r.id), array_agg(r.value))
          from unnest(result_ids, results) r(id, value)
          join unnest(ids, numbers, outcomes) f(id, number, outcome) on f.id = r.id
         where f.number = any (alive) and coalesce(f.outcome, the_outcome) = 1;
    end if;

    if keyed is not null then
        select array_agg(f.id) into keyed
          from unnest(ids, numbers, outcomes) f(id, number, outcome)
         where f.id = any (keyed) and f.number = any (alive) and coalesce(f.outcome, the_outcome) in (1, 2, 3);
        if keyed is not null then
            perform millrace.unique_end(keyed);
            perform millrace.ends_tell(keyed);
        end if;
    end if;
    if millrace.flows_in_use() then
        -- Now that the lease is locked: who enqueues after this look will be found by flows_check.
        if millrace.flows_note(
            array(select f.id from unnest(ids, numbers) f(id, number) where f.number = any (alive)),
            array(select coalesce(f.outcome, the_outcome) from unnest(numbers, outcomes) f(number, outcome) where f.number = any (alive)), the_session,
            array(select f from unnest(numbers) f where f = any (alive)))
        then
            alive := alive || 0::bigint;                  -- no lease has this number: call flows_advance
        end if;
    end if;
    return alive;
end $$;
select millrace.door_is('queue', 'finish', 'worker', 'staff');

-- After a flush whose answer was lost: which of its jobs are recorded already.
create or replace function millrace.recorded(the_session bigint, ids bigint[], numbers bigint[]) returns bigint[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off as $$
begin
    -- Not in SQL, which would plan a look into every leaf of history for each call. The limit keeps it a look-up for each job: a join
    -- would read all that the session has ended.
    return array(
        select f.id
          from unnest(ids, numbers) f(id, number)
         cross join lateral (
            select from millrace.history h
             where h.class = (f.number & 3)::smallint and h.id = f.id and h.session = the_session and h.number = f.number limit 1) h);
end $$;
select millrace.door_is('queue', 'recorded', 'worker', 'staff');

-- Ends a run inside the caller's own transaction, so that its writes and the job's end are one. The token is the run's (in Swift
-- context.token); the handler then answers `.recorded`. False: the lease is lost, and the transaction should be rolled back. The
-- lock keeps a rescuer away until the commit, and stops no other end of the same lease. The result, if there is one, is the job's.
create or replace function millrace.complete(token text, result jsonb default null) returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off as $$
declare
    the_session bigint;
    the_number bigint;
    the_id bigint;
    held record;
    head record;
begin
    select t.session, t.number, t.job into the_session, the_number, the_id from millrace.read_token(complete.token) t;
    if pg_column_size(complete.result) > 1048576 then
        perform millrace.refuse(format('the result takes %s bytes, more than the 1048576 allowed', pg_column_size(complete.result)), 'result',
            'Store large data elsewhere and give a reference.', '53400', 'too_large');
    end if;
    select l.at, array_position(l.ids, the_id) as place, l.attempts, l.crashes, l.ids, l.slot_all, l.slot_jobs, l.slot_gates into held
      from millrace.lease l where l.session = the_session and l.number = the_number and the_id = any (l.ids) for key share;
    if not found then
        return false;
    end if;
    select j.kind, j.queue, j.unique_hash, j.options ? 'tell_end' as tells into head from millrace.job j where j.id = the_id;
    if not found then
        return false;                                     -- it was deleted: there is nothing to end
    end if;
    begin
        insert into millrace.history (id, session, number, started, finished, kind, queue, ms, class, outcome, attempt, crashes)
        values (the_id, the_session, the_number, held.at, millrace.now(), head.kind, head.queue,
                (extract(epoch from millrace.now() - held.at) * 1000)::int, the_number & 3, 1,
                coalesce(held.attempts[held.place], 0) + 1, coalesce(held.crashes[held.place], 0));
    exception when unique_violation then
        return false;                                     -- this run has ended already
    end;
    if complete.result is not null then
        perform millrace.results_keep(array[the_id], array[complete.result::text]);
    end if;
    perform millrace.lease_slots_free(held.slot_all, coalesce(held.slot_jobs, held.ids), held.slot_gates, array[the_id]);
    if head.unique_hash is not null then
        perform millrace.unique_end(array[the_id]);
    end if;
    if head.tells then
        perform millrace.ends_tell(array[the_id]);
    end if;
    perform millrace.flows_note(array[the_id], array[1::smallint], the_session, array[the_number]);
    return true;
end $$;
select millrace.door_is('queue', 'complete', 'worker', 'staff');
