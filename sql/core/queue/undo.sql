-- Compensation: a step says how it is undone. If its job dies or is cancelled, the undos run as jobs of their own, the last step's first. Such
-- a job has the kind and the arguments of the other: its run goes through the handler to that step, with what is on record, and does the undo.
-- It is in a line of its kind, because a worker that knows of no undo would do the job's work again.

-- Records a step as step does, and plans its undo in the same transaction.
create or replace function millrace.step_undoable(token text, name text, value jsonb default 'null') returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    recorded jsonb := millrace.step(step_undoable.token, step_undoable.name, step_undoable.value);
begin
    perform millrace.undo_plan((select t.job from millrace.read_token(step_undoable.token) t), step_undoable.name);
    return recorded;
end $$;
select millrace.door_is('queue', 'step_undoable', 'worker', 'staff');

create or replace function millrace.undo_plan(the_job bigint, the_step text) returns void
language plpgsql volatile set enable_seqscan = off as $$
declare
    new_job bigint;
begin
    if exists (select from millrace.undo u where u.job = the_job and u.step = the_step) then
        return;
    end if;
    perform pg_current_xact_id();                         -- before numbers are drawn: see horizon()
    new_job := nextval('millrace.seq');
    insert into millrace.job (id, kind, queue, lane, enqueued_at, args, owner, tenant, tags, metadata, options)
    select new_job, millrace.kind_line(k.name, btrim('undo ' || k.line)), j.queue, j.lane, millrace.now(), j.args, j.owner, j.tenant, j.tags, j.metadata,
           jsonb_build_object('undo', jsonb_build_object('job', the_job, 'step', the_step))
      from millrace.job j join millrace.kind k on k.id = j.kind where j.id = the_job;
    -- It ends before the undos of earlier steps begin.
    insert into millrace.edge (pred, succ) select new_job, u.undo_job from millrace.undo u where u.job = the_job;
    insert into millrace.edge (pred, succ) values (the_job, new_job);
    insert into millrace.undo (undo_job, job, step) values (new_job, the_job, the_step);
    -- The run may end before the step is committed: see flows_check.
    insert into millrace.blocked (job, due, starts, waits, fresh) values (new_job, null, 4, true, true);
end $$;

-- What becomes of an undo: 0 it waits, 1 it starts, 3 it is forgotten, for its job has succeeded.
create or replace function millrace.undo_verdict(the_undo bigint, open boolean) returns int
language sql volatile as $$
    select coalesce((select case e.outcome when 1 then 3 when 2 then case when open then 0 else 1 end when 3 then case when open then 0 else 1 end else 0 end
                       from millrace.undo u join millrace.edge e on e.pred = u.job and e.succ = u.undo_job where u.undo_job = the_undo), 3)
$$;

-- A run that has undone its step says so: the step is no longer on record, and a retry of its job does it again. Of a job whose person was
-- erased meanwhile the other steps go with the last that is undone.
create or replace function millrace.step_undone(token text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    run record;
    u millrace.undo;
begin
    select * into run from millrace.live_run(step_undone.token);
    delete from millrace.undo x where x.undo_job = run.job returning * into u;
    delete from millrace.step s where s.job = u.job and s.name = u.step;
    if not exists (select from millrace.undo x where x.job = u.job) and exists (select from millrace.job j where j.id = u.job and j.tenant like 'erased:%') then
        delete from millrace.step s where s.job = u.job;
    end if;
end $$;
select millrace.door_is('queue', 'step_undone', 'worker', 'staff');

-- The steps by which a run goes to the one that it undoes. None: that is undone already, by a run whose end is not on record. Only under a live
-- lease: once the undo has ended, its job may run again, and what it does then is not what this run is to undo.
create or replace function millrace.steps_to_undo(token text) returns table (name text, value jsonb, attempt int, at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    run record;
begin
    select * into run from millrace.live_run(steps_to_undo.token);
    return query
    select s.name, s.value, s.attempt::int, s.at from millrace.undo u join millrace.step s on s.job = u.job
     where u.undo_job = run.job order by s.place nulls first, s.at, s.name;
end $$;
select millrace.door_is('queue', 'steps_to_undo', 'worker', 'staff');

-- An undo of this job whose step is no longer on record, but which has not ended: it will run once more if its worker died just then. It has been
-- told that its job has failed.
create or replace function millrace.undo_ending(the_job bigint) returns bigint
language plpgsql stable set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
begin
    return (select e.succ from millrace.edge e
             cross join lateral (
                select from millrace.job j where j.id = e.succ and (j.options #>> '{undo,job}')::bigint = the_job offset 0) j
             where e.pred = the_job and e.outcome in (2, 3) and e.number is null
               and not exists (select from millrace.undo u where u.undo_job = e.succ)
               and not exists (select from millrace.history h where h.id = e.succ and h.outcome in (1, 2, 3) offset 0) limit 1);
end $$;

-- An undo that is planned goes with the job whose step it undoes. One that is due is cancelled by its own number alone, when the step is to
-- stay as it is: no flow, filter or list may say so of a refund. named: somebody has named this very job.
create or replace function millrace.undo_end_check(the_job bigint, named boolean) returns void
language plpgsql volatile set enable_seqscan = off as $$
declare
    u millrace.undo;
begin
    select x.* into u from millrace.undo x where x.undo_job = the_job;
    if not found or exists (select from millrace.history h where h.id = the_job and h.outcome in (1, 2, 3)) then
        return;
    end if;
    perform from millrace.blocked b where b.job = the_job for update;     -- its job may be brought back at this moment
    if found and not exists (select from millrace.history h where h.id = u.job and h.outcome in (1, 2, 3)) then
        perform millrace.refuse(format('job %s undoes step %L of job %s if that does not succeed: it does not end by itself', the_job, left(u.step, 60), u.job), 'id',
            format('Cancel job %s: what it has done is then undone.', u.job), '55000', 'conflict');
    elsif not named then
        perform millrace.refuse(format('job %s undoes step %L of job %s: it can only be cancelled by its own number', the_job, left(u.step, 60), u.job), 'id',
            format('If the step is to stay as it is: millrace jobs cancel %s', the_job), '55000', 'conflict');
    end if;
end $$;

-- A job that comes back is no longer undone: its undos that have not begun are planned again, and so are those that somebody has cancelled.
-- Where one is under way, or has failed, the job would do the rest of its work while the rest of it is undone: that is refused. So it is where one
-- has undone its step and has not ended: its next run would take what the job does again for what it is to undo.
create or replace function millrace.undos_back(the_job bigint) returns void
language plpgsql volatile set enable_seqscan = off as $$
declare
    one record;
    undos bigint[] := array(select u.undo_job from millrace.undo u where u.job = the_job order by u.undo_job);
    again bigint[] := '{}';
    late bigint;
begin
    -- A teller locks an undo before it starts it: after this lock the undo has begun, or does not.
    for one in select u.undo_job, u.step from millrace.undo u where u.job = the_job order by u.undo_job loop
        perform from millrace.blocked b where b.job = one.undo_job for update;
        continue when found;
        update millrace.history h set outcome = 6 where h.id = one.undo_job and h.outcome = 2;
        if found then
            delete from millrace.ending n where n.pred = one.undo_job;
            insert into millrace.blocked (job, due, starts, waits, fresh) values (one.undo_job, null, 4, true, false);
            again := again || one.undo_job;
            continue;
        end if;
        if exists (select from millrace.history h where h.id = one.undo_job and h.outcome = 3) then
            perform millrace.refuse(format('step %L of job %s is not undone: job %s, which was to undo it, is dead', left(one.step, 60), the_job, one.undo_job), 'id',
                format('Run that one again first: millrace jobs retry %s. Or leave the step as it is: millrace jobs delete %1$s', one.undo_job), '55000', 'conflict');
        end if;
        perform millrace.refuse(format('job %s is being undone: job %s undoes step %L', the_job, one.undo_job, left(one.step, 60)), 'id',
            'Run it again when that has ended; it then does those steps again.', '55000', 'conflict');
    end loop;
    -- After the list: one whose step goes from the record meanwhile was in that, or is found now.
    late := millrace.undo_ending(the_job);
    if late is not null then
        perform millrace.refuse(format('job %s is being undone: job %s, which undoes a step of it, has not ended', the_job, late), 'id',
            'Run it again when that has ended; it then does that step again.', '55000', 'conflict');
    end if;
    if undos <> '{}' then
        update millrace.edge e set outcome = null
         where e.succ = any (undos) and (e.pred = the_job or e.pred = any (again)) and e.outcome is not null;
    end if;
end $$;

-- A job that does all its steps again would do those twice that have an undo, and the first time would never be undone. null: it has none.
create or replace function millrace.undo_fresh_refusal(the_job bigint) returns text
language plpgsql volatile as $$
begin
    return (select format('job %s has done step %L, which job %s undoes if the job does not succeed: started over, it would do it twice', the_job, left(x.step, 60), x.undo_job)
              from millrace.undo x where x.job = the_job order by x.undo_job limit 1);
end $$;

create or replace function millrace.undo_fresh_check(the_job bigint) returns void
language plpgsql volatile as $$
declare
    refusal text := millrace.undo_fresh_refusal(the_job);
begin
    if refusal is not null then
        perform millrace.refuse(refusal, 'id', 'Cancel it, and run it again when its steps are undone; or retry it with the steps that it has.', '55000', 'conflict');
    end if;
end $$;

-- What a job has done can only be undone while the job is there, and an undo that has not ended is no record to be deleted. A job that has
-- succeeded is not undone any more.
create or replace function millrace.undo_delete_check(the_job bigint) returns void
language plpgsql volatile set enable_seqscan = off as $$
declare
    u millrace.undo;
    late bigint;
begin
    select x.* into u from millrace.undo x
     where (x.job = the_job or x.undo_job = the_job) and not exists (select from millrace.history h where h.id = x.undo_job and h.outcome in (1, 2, 3))
     order by x.undo_job limit 1;
    if not found then
        late := millrace.undo_ending(the_job);            -- see undos_back
        if late is not null then
            perform millrace.refuse(format('job %s is being undone: job %s, which undoes a step of it, has not ended', the_job, late), 'id',
                'Delete it when that has ended.', '55000', 'conflict');
        end if;
    elsif exists (select from millrace.history h where h.id = u.job and h.outcome = 1) then
        perform millrace.undo_forget(u.job);
    elsif u.job = the_job then
        perform millrace.refuse(format('job %s has done step %L, which job %s undoes if the job does not succeed', the_job, left(u.step, 60), u.undo_job), 'id',
            'Cancel it, and delete it when its steps are undone.', '55000', 'conflict');
    else
        perform millrace.refuse(format('job %s undoes step %L of job %s', the_job, left(u.step, 60), u.job), 'id',
            'If the step is to stay as it is, cancel this job before.', '55000', 'conflict');
    end if;
end $$;

-- The steps of a job are forgotten, and so are the undos of theirs that have not begun.
create or replace function millrace.undo_forget(the_job bigint) returns void
language plpgsql volatile as $$
declare
    undos bigint[];
begin
    with gone as (delete from millrace.undo u where u.job = the_job returning u.undo_job)
    select array_agg(g.undo_job) into undos from gone g join millrace.blocked b on b.job = g.undo_job;
    if undos is not null then
        perform millrace.flow_forget(undos);
        perform millrace.ends_note(undos, 9);
    end if;
end $$;
