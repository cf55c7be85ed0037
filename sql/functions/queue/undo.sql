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
    insert into millrace.blocked (job, due, starts, waits, fresh) values (new_job, null, 4, true, false);
end $$;

-- What becomes of an undo: 0 it waits, 1 it starts, 3 it is forgotten, for its job has succeeded.
create or replace function millrace.undo_verdict(the_undo bigint, open boolean) returns int
language sql volatile as $$
    select coalesce((select case e.outcome when 1 then 3 when 2 then case when open then 0 else 1 end when 3 then case when open then 0 else 1 end else 0 end
                       from millrace.undo u join millrace.edge e on e.pred = u.job and e.succ = u.undo_job where u.undo_job = the_undo), 3)
$$;

-- A run that has undone its step says so: the step is no longer on record, and a retry of its job does it again.
create or replace function millrace.step_undone(token text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    run record;
    u millrace.undo;
begin
    select * into run from millrace.live_run(step_undone.token);
    delete from millrace.undo x where x.undo_job = run.job returning * into u;
    delete from millrace.step s where s.job = u.job and s.name = u.step;
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
    end if;
end $$;
