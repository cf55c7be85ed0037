-- What operators do to jobs. All of these are safe to repeat, and return false when there was nothing to do.

create or replace function millrace.must_see(the_job bigint, caller name) returns void
language plpgsql stable as $$
begin
    if not exists (select from millrace.job j where j.id = the_job and millrace.may_see(j.owner, j.tenant, caller => must_see.caller)) then
        perform millrace.refuse(format('there is no job %s', the_job), 'id',
            'An ended job is deleted once its retention has passed.', 'P0002', 'not_found');
    end if;
end $$;

create or replace function millrace.cancel(id bigint, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.must_see(cancel.id, caller => cancel.caller);
    perform millrace.undo_end_check(cancel.id, named => true);
    if not millrace.cancel_now(cancel.id) then
        return false;
    end if;
    perform millrace.audited('job.cancel', cancel.id::text, null, caller => cancel.caller);
    return true;
end $$;
select millrace.door_is('queue', 'cancel', 'client, worker, operator', 'tenant job', 'Cancels one of the caller''s jobs.',
    audited => true);

create or replace function millrace.cancel_now(the_job bigint) returns boolean
language plpgsql volatile set enable_seqscan = off as $$
declare
    place record;
    held record;
    tries int := 0;
begin
    loop
        select * into place from millrace.take_waiting(the_job);
        if place.queue is not null then
            perform millrace.end_without_run(array[the_job], attempts => array[place.attempt], crashes => array[place.crashes]);
            return true;
        end if;
        perform from millrace.blocked b where b.job = the_job for update;
        if found then                                     -- it waited for other jobs
            perform millrace.flow_stop(array[the_job], array[null::text]);
            return true;
        end if;
        select l.session, l.number, l.at into held from millrace.lease l
         where l.lo <= the_job and l.hi >= the_job and the_job = any (l.ids)
           and not exists (select from millrace.history h
                            where h.class = (l.number & 3)::smallint and h.started = l.at and h.id = the_job
                              and h.session = l.session and h.number = l.number);
        if found then
            insert into millrace.cancel (seq, session, number, job, at)
            values (nextval('millrace.seq'), held.session, held.number, the_job, millrace.now());
            return true;
        end if;
        update millrace.unique_lock u set next = null, due = null
          from millrace.job j where j.id = the_job and u.hash = j.unique_hash and u.next = j.id;
        if found then                                     -- it waited for its key's holder
            perform millrace.end_without_run(array[the_job]);
            return true;
        end if;
        tries := tries + 1;
        if tries > 3 then
            return false;                                 -- it has ended
        end if;
    end loop;
end $$;

-- Removes the cancels of runs that are over, once a second, and repeats those that came too late: if a run ended in a retry, a snooze or a
-- rescue, or went back in line with nothing recorded, before its cancel was visible, the job is cancelled again. (A lock between the two
-- would let a caller's open transaction stall a worker's flush; so every worker looks once a second.) It also completes the ends of holders
-- that found their key locked: see unique_ended.
create or replace function millrace.heed_cancels() returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    one record;
    heeded int := 0;
begin
    perform millrace.unique_sweep();
    for one in
        select c.session, c.seq, c.job, h.outcome
          from millrace.cancel c
          left join lateral (
            select h.outcome from millrace.history h
             where h.id = c.job and h.session = c.session and h.number = c.number limit 1) h on true
         where h.outcome is not null
            or not exists (select from millrace.lease l where l.session = c.session and l.number = c.number)
           for update of c skip locked
    loop
        delete from millrace.cancel c where c.session = one.session and c.seq = one.seq;
        if one.outcome is null or one.outcome in (4, 5, 6, 7, 8) then
            heeded := heeded + millrace.cancel_now(one.job)::int;
        end if;
    end loop;
    return heeded;
end $$;
select millrace.door_is('queue', 'heed_cancels', 'worker', 'staff');

-- Runs a job again: a scheduled one now, a dead or cancelled one from its first attempt (its errors and its steps stay).
create or replace function millrace.retry(id bigint, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.retry_check(retry.id, caller => retry.caller);
    if not millrace.retry_now(retry.id) then
        return false;
    end if;
    perform millrace.audited('job.retry', retry.id::text, null, caller => retry.caller);
    return true;
end $$;
select millrace.door_is('queue', 'retry', 'worker, operator', 'staff', audited => true);

create or replace function millrace.retry_check(the_job bigint, caller name) returns void
language plpgsql stable as $$
begin
    if not exists (select from millrace.job j where j.id = the_job)
        and exists (select from millrace.history h where h.id = the_job and h.outcome in (2, 3)) then
        perform millrace.refuse(format('the arguments of job %s are no longer kept: it cannot run again', the_job), 'id',
            'Its retention has passed. Enqueue it again, if you have its arguments elsewhere.', '55000', 'conflict');
    end if;
    perform millrace.must_see(the_job, caller => retry_check.caller);
end $$;

-- fresh: every step is done again.
create or replace function millrace.retry_now(the_job bigint, fresh boolean default false) returns boolean
language plpgsql volatile set enable_seqscan = off as $$
declare
    waiting record;
begin
    perform pg_current_xact_id();
    delete from millrace.timer d where d.job = the_job returning d.* into waiting;
    if not found then
        return millrace.redrive(the_job, fresh => retry_now.fresh);
    end if;
    insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes)
    values (nextval('millrace.seq'), the_job, waiting.queue, waiting.kind, waiting.lane, waiting.attempt, waiting.crashes);
    perform millrace.wake(waiting.queue, waiting.lane);
    if retry_now.fresh then
        perform millrace.undo_fresh_check(the_job);
        perform millrace.steps_forget(the_job);
    end if;
    return true;
end $$;

-- Moves a waiting job to another time; a running or ended one is left alone.
create or replace function millrace.reschedule(id bigint, run_at timestamptz, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if reschedule.run_at is null or reschedule.run_at in ('infinity', '-infinity') then
        perform millrace.refuse('run_at is not a point in time', 'run_at');
    end if;
    perform millrace.must_see(reschedule.id, caller => reschedule.caller);
    if not millrace.reschedule_now(reschedule.id, reschedule.run_at) then
        return false;
    end if;
    perform millrace.audited('job.reschedule', reschedule.id::text, jsonb_build_object('run_at', reschedule.run_at), caller => reschedule.caller);
    return true;
end $$;
select millrace.door_is('queue', 'reschedule', 'worker, operator', 'staff', audited => true);

-- Why a job cannot be moved to another time; null: it can. One that waits for a signal or an answer has no time that could be moved, and nothing
-- would tell it there; nor has an undo a time before its job has ended. The caller has taken the job out of this place, so that no run of it can
-- begin to wait behind this look.
create or replace function millrace.reschedule_refusal(the_job bigint, was text, due timestamptz) returns text
language plpgsql volatile set enable_seqscan = off as $$
declare
    w millrace.wait;
    u millrace.undo;
begin
    if was = 'timer' then
        select x.* into w from millrace.wait x where x.job = the_job and x.what in (2, 4) and x.place = reschedule_refusal.due;
        return case w.what when 2 then format('job %s waits for the signal %L, not for a time', the_job, w.name)
                           when 4 then format('job %s waits for a person''s answer, not for a time', the_job) end;
    elsif was = 'blocked' then
        select x.* into u from millrace.undo x where x.undo_job = the_job;
        return case when found then format('job %s undoes step %L of job %s when that has ended without success', the_job, left(u.step, 60), u.job) end;
    end if;
    return null;
end $$;

create or replace function millrace.reschedule_now(the_job bigint, run_at timestamptz) returns boolean
language plpgsql volatile set enable_seqscan = off as $$
declare
    place record;
    refusal text;
    moves_to text;
begin
    perform pg_current_xact_id();                         -- before numbers are drawn: see horizon()
    for tries in 1 .. 4 loop
        perform millrace.place_lock(the_job);             -- waits for the one that has it
        select p.* into place from millrace.places_take(array[the_job]) p;
        exit when found;
        update millrace.unique_lock u set due = reschedule_now.run_at
          from millrace.job j where j.id = the_job and u.hash = j.unique_hash and u.next = j.id;
        if found then
            return true;                                  -- it waits for its key's holder, and then for that time
        end if;
    end loop;
    if place.job is null then
        return false;                                     -- it runs, or has ended
    end if;
    refusal := millrace.reschedule_refusal(the_job, place.was, place.due);
    if refusal is not null then
        perform millrace.refuse(refusal, 'id',
            case when place.was = 'timer' then format('Give it what it waits for; millrace jobs retry %s lets it look again.', the_job) end, '55000', 'conflict');
    end if;
    if place.was = 'timer' then                           -- in the middle of its work it waits until the other time
        update millrace.wait w set due = reschedule_now.run_at, place = reschedule_now.run_at where w.job = the_job and w.what = 1 and w.place = place.due;
    end if;
    moves_to := case when place.was = 'blocked' then 'blocked' when reschedule_now.run_at > millrace.now() then 'timer' else 'ready' end;
    perform millrace.place_put(the_job, moves_to, case when moves_to = 'ready' then nextval('millrace.seq') end, place.queue, place.kind,
        millrace.lane_of(place.lane, place.crashes, false), reschedule_now.run_at, null, place.attempt, place.crashes, place.more);
    return true;
end $$;

-- Removes a job and everything that is known of it, its hold on a key too. A running one is refused.
create or replace function millrace.job_delete(the_job bigint, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
    perform millrace.must_see(the_job, caller => job_delete.caller);
    if not millrace.job_delete_now(the_job) then
        return false;
    end if;
    perform millrace.audited('job.delete', the_job::text, null, caller => job_delete.caller);
    return true;
end $$;
select millrace.door_is('queue', 'job_delete', 'admin', 'staff', audited => true);

create or replace function millrace.pause(queue text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.queue_id(pause.queue);
    update millrace.queue q set paused_at = millrace.now() where q.name = pause.queue and q.main is null and q.paused_at is null;
    if not found then
        return false;
    end if;
    perform millrace.audited('queue.pause', pause.queue, null, caller => pause.caller);
    perform millrace.fleet_note('queue paused', pause.queue, by => pause.caller);
    return true;
end $$;
select millrace.door_is('queue', 'pause', 'admin, operator', 'staff', audited => true);

create or replace function millrace.resume(queue text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_id int;
begin
    update millrace.queue q set paused_at = null
     where q.name = resume.queue and q.main is null and q.paused_at is not null returning q.id into the_id;
    if not found then
        if not exists (select from millrace.queue q where q.name = resume.queue) then
            perform millrace.refuse(format('there is no queue %L', left(resume.queue, 60)), 'queue', null, 'P0002', 'not_found');
        end if;
        return false;
    end if;
    perform millrace.fleet_note('queue resumed', resume.queue, by => resume.caller);
    perform pg_notify('millrace', the_id::text);          -- rare: tell everybody
    perform millrace.audited('queue.resume', resume.queue, null, caller => resume.caller);
    return true;
end $$;
select millrace.door_is('queue', 'resume', 'admin, operator', 'staff', audited => true);
