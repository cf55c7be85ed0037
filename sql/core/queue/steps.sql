-- Reads a token (in Swift context.token): which run it belongs to.
create or replace function millrace.read_token(token text, out session bigint, out number bigint, out job bigint)
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    parts text[] := string_to_array(read_token.token, '-');
begin
    -- Without a regular expression, which would cost ten times as much.
    if coalesce(cardinality(parts), 0) <> 3 or length(parts[1]) not between 1 and 16 or translate(parts[1], '0123456789abcdef', '') <> ''
        or length(parts[2]) not between 1 and 18 or translate(parts[2], '0123456789', '') <> ''
        or length(parts[3]) not between 1 and 18 or translate(parts[3], '0123456789', '') <> ''
    then
        perform millrace.refuse('the token is malformed', 'token', 'Pass the run''s own token, as the handler was given it.');
    end if;
    session := ('x' || lpad(parts[1], 16, '0'))::bit(64)::bigint;
    number := parts[2]::bigint;
    job := parts[3]::bigint;
end $$;

-- Records a step's value and answers with the value on record: an earlier one stays. Within the caller's transaction, so that the
-- step's own writes and the record are one. A lost lease is refused, which rolls those writes back; the lock keeps a rescuer away until
-- the commit, as in complete.
create or replace function millrace.step(token text, name text, value jsonb default 'null') returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
declare
    run record;
    held record;
    given jsonb := coalesce(step.value, 'null');
    recorded jsonb;
    n int;
    last int;
begin
    select * into run from millrace.read_token(step.token);
    if step.name is null or length(step.name) not between 1 and 128 then
        perform millrace.refuse('a step''s name must have 1 to 128 characters', 'name');
    end if;
    if pg_column_size(given) > 1048576 then
        perform millrace.refuse(format('the value of step %L takes %s bytes, more than the 1048576 allowed', left(step.name, 60), pg_column_size(given)),
            'value', 'Store large data elsewhere and record a reference.', '53400', 'too_large');
    end if;
    select l.at, coalesce(l.attempts[array_position(l.ids, run.job)], 0) + 1 as attempt into held
      from millrace.lease l where l.session = run.session and l.number = run.number and run.job = any (l.ids) for key share;
    if not found then
        perform millrace.refuse(format('the lease is lost: step %L is not recorded', left(step.name, 60)), 'token',
            'Roll back and stop: another run has the job, or will have it.', '55000', 'lease_lost');
    end if;
    if exists (select from millrace.history h
                where h.class = (run.number & 3)::smallint and h.started = held.at and h.id = run.job
                  and h.session = run.session and h.number = run.number) then
        perform millrace.refuse(format('this run has ended: step %L is not recorded', left(step.name, 60)), 'token',
            'Record steps before the run''s end.', '55000', 'conflict');
    end if;
    select s.value into recorded from millrace.step s where s.job = run.job and s.name = step.name;
    if found then
        return recorded;
    end if;
    select count(*), coalesce(max(s.place), 0) into n, last from millrace.step s where s.job = run.job;
    if n >= millrace.counted('steps') then
        perform millrace.refuse(format('job %s already has 1000 steps on record, the maximum', run.job), 'name',
            'Record fewer, larger steps.', '53400', 'too_large');
    end if;
    perform millrace.build_keeps(run.session, run.job);
    insert into millrace.step (job, name, value, session, number, attempt, at, place)
    values (run.job, step.name, given, run.session, run.number, held.attempt, millrace.now(), greatest(n, last) + 1)
        on conflict do nothing;
    if not found then                                     -- the same run recorded it on another connection meanwhile
        select s.value into strict given from millrace.step s where s.job = run.job and s.name = step.name;
    end if;
    return given;
end $$;
select millrace.door_is('queue', 'step', 'worker', 'staff');

-- A job's recorded steps, in the order in which they were recorded. A worker reads them too of a job that is gone while it is being undone.
create or replace function millrace.steps(id bigint, caller millrace.caller_name default current_user)
returns table (name text, value jsonb, attempt int, at timestamptz)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
begin
    if not millrace.is_staff(steps.caller) or not exists (select from millrace.undo u where u.job = steps.id) then
        perform millrace.must_see(steps.id, caller => steps.caller);
    end if;
    return query
    select s.name, s.value, s.attempt::int, s.at from millrace.step s where s.job = steps.id order by s.place nulls first, s.at, s.name;
end $$;
select millrace.door_is('queue', 'steps', 'worker, operator', 'staff');

-- For a job that starts again from its first step: forgets the steps it has done.
create or replace function millrace.steps_forget(the_job bigint) returns void
language plpgsql set enable_seqscan = off as $$
begin
    delete from millrace.step s where s.job = the_job;
    perform millrace.undo_forget(the_job);
    perform millrace.output_forget(the_job);
    perform millrace.build_lets_go(the_job);
    -- Jobs that it has made and waits for go on by themselves: it makes others.
    delete from millrace.edge e using millrace.wait w where w.job = the_job and w.what = 3 and e.succ = the_job and e.pred = any (w.jobs);
    delete from millrace.wait w where w.job = the_job;
    delete from millrace.approval a where a.job = the_job;
    delete from millrace.approval_person p where p.job = the_job;
    delete from millrace.old_way o where o.job = the_job;
    update millrace.progress p set session = null, number = null, fraction = null, stage = null, note = null, at = null where p.job = the_job;
end $$;

-- As retry, but every step is done again.
create or replace function millrace.retry_fresh(id bigint, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.retry_check(retry_fresh.id, caller => retry_fresh.caller);
    if not millrace.retry_now(retry_fresh.id, fresh => true) then
        return false;
    end if;
    perform millrace.audited('job.retry_fresh', retry_fresh.id::text, null, caller => retry_fresh.caller);
    return true;
end $$;
select millrace.door_is('queue', 'retry_fresh', 'worker, operator', 'staff', audited => true);
