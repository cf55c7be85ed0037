-- The one way to end a job that does not run, the one to bring an ended job back, and the one to take a job away. Every door, every bulk
-- action, every sweep and every undo uses them. states.md says what becomes of what stands beside the job.

-- Takes a waiting job out of its place. The job may move between two looks, so the caller repeats it. A job that comes due meanwhile is
-- found in line.
create or replace function millrace.take_waiting(the_job bigint, out queue int, out kind int, out lane int, out attempt smallint, out crashes smallint)
language plpgsql volatile set enable_seqscan = off as $$
declare
    head record;
begin
    delete from millrace.timer d where d.job = the_job
    returning d.queue, d.kind, d.lane, d.attempt, d.crashes into queue, kind, lane, attempt, crashes;
    if found then return; end if;
    select j.queue, j.lane into head from millrace.job j where j.id = the_job;
    delete from millrace.ready r where r.queue = head.queue and r.lane = head.lane and r.seq = the_job
    returning r.queue, r.kind, r.lane, r.attempt, r.crashes into queue, kind, lane, attempt, crashes;
    if found then return; end if;
    delete from millrace.ready r where r.job = the_job and r.seq <> r.job
    returning r.queue, r.kind, r.lane, r.attempt, r.crashes into queue, kind, lane, attempt, crashes;
    if found then return; end if;
    delete from millrace.parked p where p.job = the_job
    returning p.queue, p.kind, p.lane, p.attempt, p.crashes into queue, kind, lane, attempt, crashes;
end $$;

-- Takes a job out of its place, and returns which place that was: waiting, blocked, follows (it waited for a unique key's holder), or
-- ended; an ended job's record is then locked against a redrive. A running job is left alone and returned as running; null: it was found
-- nowhere. Each look waits for the transaction that is moving the job, and the job may be elsewhere afterwards, so the looks are repeated
-- until one finds it. The caller has locked the job's unique key, if it has one.
create or replace function millrace.take_out(the_job bigint) returns text
language plpgsql volatile set enable_seqscan = off set jit = off as $$
declare
    the_hash bytea := (select j.unique_hash from millrace.job j where j.id = the_job);
begin
    for tries in 1 .. 10 loop
        if (millrace.take_waiting(the_job)).queue is not null then
            return 'waiting';
        end if;
        delete from millrace.blocked b where b.job = the_job;
        if found then
            return 'blocked';
        end if;
        if exists (select from millrace.job_running(the_job)) then
            return 'running';
        end if;
        perform from millrace.history h where h.id = the_job and h.outcome in (1, 2, 3) for update;
        if found then
            return 'ended';
        end if;
        update millrace.unique_lock u set next = null, due = null where u.hash = the_hash and u.next = the_job;
        if found then
            return 'follows';
        end if;
    end loop;
    if exists (select from millrace.lease l where l.lo <= the_job and l.hi >= the_job and the_job = any (l.ids)) or millrace.job_waits(the_job) then
        perform millrace.refuse(format('job %s keeps changing', the_job), 'id', 'Try again.', '40001', 'conflict');
    end if;
    return null;
end $$;

-- The one place where jobs end without a run: they were cancelled while they waited, and the caller has taken them out of their places.
-- This records their ends, passes their keys on, and tells the jobs and callers that wait for them.
create or replace function millrace.end_without_run(
    ids bigint[], reasons text[] default null, attempts smallint[] default null, crashes smallint[] default null
) returns void
language plpgsql volatile as $$
begin
    perform millrace.end_without_run_at(ids, reasons, attempts, crashes, millrace.now());
end $$;

-- The time is the record's key for who undoes it.
create or replace function millrace.end_without_run_at(ids bigint[], reasons text[], attempts smallint[], crashes smallint[], t timestamptz) returns void
language plpgsql volatile set enable_seqscan = off as $$
declare
    keyed bigint[];
begin
    insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
    select e.id, 0, nextval('millrace.seq'), t, t, j.kind, j.queue, q.retention, 2, coalesce(e.attempt, 0), coalesce(e.crashes, 0), e.reason
      from unnest(ids, reasons, attempts, crashes) e(id, reason, attempt, crashes)
     cross join lateral (select * from millrace.job j where j.id = e.id offset 0) j
      join millrace.queue q on q.id = j.queue;
    select array_agg(j.id) into keyed from unnest(ids) i(id)
     cross join lateral (select j.id, j.unique_hash from millrace.job j where j.id = i.id offset 0) j
     where j.unique_hash is not null;
    if keyed is not null then
        perform millrace.unique_end(keyed);
    end if;
    perform millrace.ends_note(ids, 2);
    perform millrace.ends_tell(ids);
end $$;

-- The one place where an ended job, dead or cancelled, gets a place again: it takes its key, and waits again for its predecessors that have
-- not ended. with_flow: also for failed predecessors, which will run again as well. fresh: it does every step again. False: there was nothing
-- to do.
create or replace function millrace.redrive(the_job bigint, with_flow boolean default false, fresh boolean default false) returns boolean
language plpgsql volatile set enable_seqscan = off set jit = off as $$
declare
    head record;
    holder bigint;
    starts smallint;
    redriven int := 0;
begin
    select j.* into head from millrace.job j where j.id = the_job;
    perform pg_current_xact_id();                         -- before numbers are drawn: see horizon()
    perform from millrace.unique_lock u where u.hash = head.unique_hash for update;   -- before its place, like a replacement
    -- The row lock settles two concurrent redrives, or a redrive and a deletion: the second finds no ended run, or no job.
    for look in 1 .. 2 loop                               -- once more: retention may just have moved it to another leaf
        update millrace.history h set outcome = case h.outcome when 3 then 4 else 6 end
         where h.id = the_job and h.outcome in (2, 3);
        get diagnostics redriven = row_count;
        exit when redriven > 0;
    end loop;
    if redriven = 0 then
        return false;
    end if;
    if not exists (select from millrace.job j where j.id = the_job) then
        perform millrace.refuse(format('the arguments of job %s are no longer kept: it cannot run again', the_job), 'id',
            'Its retention has passed. Enqueue it again, if you have its arguments elsewhere.', '55000', 'conflict');
    end if;
    perform millrace.back_beside(the_job, with_flow);
    if head.unique_hash is not null then
        holder := millrace.unique_take(head.unique_hash, the_job);
        if holder <> the_job then
            perform millrace.refuse(format('job %s holds the unique key %L', holder, left(head.unique_key, 60)), 'unique_key',
                'Cancel that job first, or let it finish; after options.unique_for the key is free again.', '23505', 'conflict');
        end if;
    end if;
    if redrive.fresh then
        perform millrace.undo_fresh_check(the_job);
        perform millrace.steps_forget(the_job);
        select j.kind into head.kind from millrace.job j where j.id = the_job;
    end if;
    if with_flow then
        update millrace.edge e set outcome = null where e.succ = the_job and e.outcome in (2, 3);
    end if;
    -- Redriven alone, it ignores failed predecessors, but not the run that makes it, which may never have succeeded.
    starts := millrace.flow_starts_again(the_job, head.options);
    if exists (
        select from millrace.edge e
         where e.succ = the_job and e.outcome is null
           and (e.number is not null or starts <> 1 or not exists (select from millrace.edge b where b.succ = the_job and b.outcome in (2, 3))))
    then
        update millrace.wait w set attempt = 0, crashes = 0 where w.job = the_job;
        insert into millrace.blocked (job, due, starts, waits, fresh)
        values (the_job, null, starts, starts in (2, 4) or coalesce(head.options #>> '{after,any_dead}' = 'wait', false), true);
        perform pg_notify('millrace', 'flows');
    else
        insert into millrace.ready (seq, job, queue, kind, lane)
        values (nextval('millrace.seq'), the_job, head.queue, head.kind, head.lane);
        perform millrace.wake(head.queue, head.lane);
    end if;
    return true;
end $$;

-- What stands beside an ended job when it comes back, wherever it comes to stand: its undos, cancels of the run that is over, and the jobs
-- that still wait for it, which wait for the new end.
create or replace function millrace.back_beside(the_job bigint, with_flow boolean default false) returns void
language plpgsql volatile set enable_seqscan = off as $$
begin
    -- First of all: a teller that has noted this end tells it now, and the undos are locked after it.
    delete from millrace.ending n where n.pred = the_job;
    perform millrace.undos_back(the_job);
    delete from millrace.cancel c where c.job = the_job;
    update millrace.edge e set outcome = null
     where e.pred = the_job and e.outcome in (2, 3) and (with_flow or exists (select from millrace.blocked b where b.job = e.succ));
    if exists (select from millrace.job j where j.id = the_job and j.options ? 'undo') and not exists (select from millrace.undo u where u.undo_job = the_job) then
        perform millrace.refuse(format('job %s has nothing left to undo', the_job), 'id',
            'The step is no longer on record, or its job is gone.', '55000', 'conflict');
    end if;
end $$;

-- When a job starts that comes back and has to wait: an undo in its turn; one in the middle of its work when the jobs that it has made have
-- ended, however they end.
create or replace function millrace.flow_starts_again(the_job bigint, the_options jsonb) returns smallint
language sql stable as $$
    select case when the_options ? 'undo' then 4
                when exists (select from millrace.wait w where w.job = the_job and w.what = 3)
                     or exists (select from millrace.step s where s.job = the_job and s.asked ->> 'what' = 'jobs') then 2
                else millrace.flow_starts(the_options) end::smallint
$$;

create or replace function millrace.job_delete_now(the_job bigint) returns boolean
language plpgsql volatile set enable_seqscan = off as $$
declare
    the_hash bytea;
    was text;
begin
    select j.unique_hash into the_hash from millrace.job j where j.id = the_job;
    perform from millrace.unique_lock u where u.hash = the_hash for update;     -- before its place, like a replacement
    was := millrace.take_out(the_job);
    if was = 'running' then                               -- perhaps since a moment ago
        perform millrace.refuse(format('job %s is running', the_job), 'id', 'Cancel it first.', '55000', 'conflict');
    end if;
    perform millrace.undo_delete_check(the_job);
    if was is distinct from 'ended' then
        perform millrace.ends_note(array[the_job], 2);    -- for those who wait for it, it is cancelled
    end if;
    delete from millrace.edge e where e.succ = the_job;
    if the_hash is not null then
        perform millrace.unique_forget(array(select u.ctid from millrace.unique_lock u where u.hash = the_hash and u.job = the_job and u.ended));
        perform millrace.unique_end(array[the_job], for_good => true);
        delete from millrace.unique_ended e where e.hash = the_hash and e.job = the_job;
    end if;
    perform millrace.trace_forget(array[the_job]);
    return millrace.history_forget(array[the_job]) > 0;
end $$;

-- Deletes jobs that are in no place any more, and the record of their runs. What a living lease still counts stays until it is over,
-- with nothing in it: without it the last finish of that lease would be refused, and with it the ends of other jobs.
create or replace function millrace.history_forget(ids bigint[]) returns int
language plpgsql volatile as $$
declare
    gone int;
begin
    delete from millrace.history h
     where h.id = any (ids) and not exists (select from millrace.lease l where l.session = h.session and l.number = h.number);
    update millrace.history h set outcome = 6, error = null where h.id = any (ids);
    delete from millrace.job j where j.id = any (ids);
    get diagnostics gone = row_count;
    return gone;
end $$;
