-- The places of waiting jobs, taken and put back with all that is in them: for what moves jobs, and moves them back.

-- Waits for the transactions that have locked this job's place. The job may be elsewhere afterwards.
create or replace function millrace.place_lock(the_job bigint) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
begin
    perform from millrace.timer d where d.job = the_job for update;
    perform from millrace.job j cross join lateral (
        select from millrace.ready r where r.queue = j.queue and r.lane = j.lane and r.seq = the_job for update) r
     where j.id = the_job;
    perform from millrace.ready r where r.job = the_job and r.seq <> r.job for update;
    perform from millrace.parked p where p.job = the_job for update;
    perform from millrace.blocked b where b.job = the_job for update;
end $$;

-- Takes those of the jobs that wait in these places and that nobody has locked. Look-ups by job: on tables without statistics a join would
-- walk over all of them.
create or replace function millrace.places_take(ids bigint[], places text[] default '{timer,ready,parked,blocked}')
returns table (job bigint, was text, seq bigint, queue int, kind int, lane int, due timestamptz, gate bigint, attempt smallint, crashes smallint, more jsonb)
language plpgsql volatile
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan as $$
begin
    if 'timer' = any (places) then
        return query
        with gone as (
            delete from millrace.timer d where d.ctid = any (array(
                select c.ctid from unnest(ids) i(id)
                 cross join lateral (select x.ctid from millrace.timer x where x.job = i.id for update skip locked) c))
            returning d.*
        )
        select g.job, 'timer', null::bigint, g.queue, g.kind, g.lane, g.due, null::bigint, g.attempt, g.crashes, null::jsonb from gone g;
    end if;
    if 'ready' = any (places) then
        return query
        with gone as (
            delete from millrace.ready r where r.ctid = any (array(
                select c.ctid from unnest(ids) i(id)
                 cross join lateral (select j.queue, j.lane from millrace.job j where j.id = i.id offset 0) j
                 cross join lateral (
                    select x.ctid from millrace.ready x where x.queue = j.queue and x.lane = j.lane and x.seq = i.id for update skip locked) c))
            returning r.*
        )
        select g.job, 'ready', g.seq, g.queue, g.kind, g.lane, null::timestamptz, g.gate, g.attempt, g.crashes, null::jsonb from gone g;
        return query
        with gone as (
            delete from millrace.ready r where r.ctid = any (array(
                select c.ctid from unnest(ids) i(id)
                 cross join lateral (select x.ctid from millrace.ready x where x.job = i.id and x.seq <> x.job for update skip locked) c))
            returning r.*
        )
        select g.job, 'ready', g.seq, g.queue, g.kind, g.lane, null::timestamptz, g.gate, g.attempt, g.crashes, null::jsonb from gone g;
    end if;
    if 'parked' = any (places) then
        return query
        with gone as (
            delete from millrace.parked p where p.ctid = any (array(
                select c.ctid from unnest(ids) i(id)
                 cross join lateral (select x.ctid from millrace.parked x where x.job = i.id for update skip locked) c))
            returning p.*
        )
        select g.job, 'parked', null::bigint, g.queue, g.kind, g.lane, null::timestamptz, g.gate, g.attempt, g.crashes, null::jsonb from gone g;
    end if;
    if 'blocked' = any (places) then
        return query
        with gone as (
            delete from millrace.blocked b where b.ctid = any (array(
                select c.ctid from (select unnest(ids) as id order by 1) i
                 cross join lateral (select x.ctid from millrace.blocked x where x.job = i.id for update skip locked) c))
            returning b.*
        )
        select g.job, 'blocked', null::bigint, j.queue, j.kind, j.lane, g.due, null::bigint, 0::smallint, 0::smallint,
               jsonb_build_object('starts', g.starts, 'waits', g.waits)
          from gone g cross join lateral (select j.queue, j.kind, j.lane from millrace.job j where j.id = g.job offset 0) j;
    end if;
end $$;

-- Puts a job into a place. A blocked one is looked at again soon: what it waits for may have ended meanwhile.
create or replace function millrace.place_put(
    the_job bigint, was text, seq bigint, queue int, kind int, lane int, due timestamptz, gate bigint, attempt smallint, crashes smallint, more jsonb
) returns void
language plpgsql volatile as $$
begin
    case was
    when 'timer' then
        insert into millrace.timer (due, job, queue, kind, lane, attempt, crashes) values (due, the_job, queue, kind, lane, attempt, crashes);
        update millrace.wait w set look_at = millrace.now() where w.job = the_job and w.what in (2, 4);    -- see signals_tell
    when 'ready' then
        insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes, gate) values (seq, the_job, queue, kind, lane, attempt, crashes, gate);
    when 'parked' then
        insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes) values (gate, lane, the_job, queue, kind, attempt, crashes);
    when 'blocked' then
        insert into millrace.blocked (job, due, starts, waits, fresh) values (the_job, due, (more ->> 'starts')::smallint, (more ->> 'waits')::boolean, true);
        perform pg_notify('millrace', 'flows');
        return;
    end case;
    if was <> 'timer' or due < millrace.now() + interval '2 s' then
        perform millrace.wake(queue, lane);
    end if;
end $$;

create or replace function millrace.check_priority(priority numeric) returns int
language plpgsql immutable as $$
begin
    if priority is null or priority not between 0 and 9 or priority % 1 <> 0 then
        perform millrace.refuse('priority must be 0 to 9', 'priority');
    end if;
    return priority::int;
end $$;

-- Gives a waiting job another priority: it goes to the end of that priority's line, and its later attempts run at it too. A running or
-- ended one is left alone, and so is one that has this priority.
create or replace function millrace.job_priority(id bigint, priority int, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    place record;
    plain int := millrace.check_priority(job_priority.priority) * 4 + 1;
    old int;
begin
    perform millrace.must_see(job_priority.id, caller => job_priority.caller);
    perform pg_current_xact_id();                         -- before numbers are drawn: see horizon()
    for tries in 1 .. 4 loop
        perform millrace.place_lock(job_priority.id);
        select j.lane into old from millrace.job j where j.id = job_priority.id;
        exit when old is null;
        if old = plain then
            return false;
        end if;
        select t.* into place from millrace.places_take(array[job_priority.id]) t;
        if found then
            update millrace.job j set lane = plain where j.id = job_priority.id;
            perform millrace.place_put(place.job, place.was, case place.was when 'ready' then nextval('millrace.seq') end, place.queue, place.kind,
                (plain & ~3) | (place.lane & 3), place.due, place.gate, place.attempt, place.crashes, place.more);
        else
            -- Or it waits for its key's holder.
            update millrace.job j set lane = plain
             where j.id = job_priority.id and exists (select from millrace.unique_lock u where u.hash = j.unique_hash and u.next = j.id);
            continue when not found;
        end if;
        perform millrace.audited('job.priority', job_priority.id::text, jsonb_build_object('priority', job_priority.priority, 'before', old >> 2), caller => job_priority.caller);
        return true;
    end loop;
    return false;
end $$;
select millrace.door_is('queue', 'job_priority', 'admin, operator', 'staff', audited => true);
