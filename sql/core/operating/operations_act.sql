-- One chunk of an operation: what it does to these jobs, and what undoing it needs to know of each.

-- The job's key as it stands, where the job holds it: what an end changes of it.
create or replace function millrace.operation_keys(ids bigint[]) returns table (job bigint, key jsonb)
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
    return query
    select i.id, jsonb_build_object('ended', u.ended, 'until', u.until, 'next', u.next)
      from unnest(ids) i(id)
     cross join lateral (select j.unique_hash from millrace.job j where j.id = i.id and j.unique_hash is not null offset 0) j
     cross join lateral (select x.* from millrace.unique_lock x where x.hash = j.unique_hash order by x.round desc limit 1) u
     where u.job = i.id;
end $$;

-- Look-ups by job: a join would walk over all items of the operation for each.
create or replace function millrace.operation_items_of(the_operation bigint, ids bigint[]) returns setof millrace.operation_item
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    return query
    select i.* from unnest(ids) x(job)
     cross join lateral (select o.* from millrace.operation_item o where o.operation = the_operation and o.job = x.job offset 0) i;
end $$;

create or replace function millrace.operation_note(
    the_operation bigint, the_job bigint, t timestamptz, outcome int, reason text default null, was text default null, due timestamptz default null,
    more jsonb default null, became bigint default null
) returns void
language sql volatile as $$
    insert into millrace.operation_item (operation, job, at, outcome, reason, was, due, more, became)
    values (the_operation, the_job, t, outcome::smallint, left(reason, 500), was, due, more, became)
$$;

-- All that a job's runs have left and what it waits for. Times, numbers and bytes come back from JSON as they were.
create or replace function millrace.operation_traces(the_job bigint) returns jsonb
language sql stable as $$
    select jsonb_strip_nulls(jsonb_build_object('progress', (select to_jsonb(p) from millrace.progress p where p.job = the_job),
                                                'kind', (select j.kind from millrace.job j where j.id = the_job)))
           || jsonb_build_object(
               'steps', (select jsonb_agg(to_jsonb(s)) from millrace.step s where s.job = the_job),
               'output', (select to_jsonb(o) from millrace.output o where o.job = the_job),
               'published', (select jsonb_agg(to_jsonb(p)) from millrace.published p where p.job = the_job),
               'wait', (select to_jsonb(w) from millrace.wait w where w.job = the_job),
               'approvals', (select jsonb_agg(to_jsonb(a)) from millrace.approval a where a.job = the_job),
               'people', (select jsonb_agg(to_jsonb(p)) from millrace.approval_person p where p.job = the_job),
               'old_ways', (select jsonb_agg(to_jsonb(o)) from millrace.old_way o where o.job = the_job))
$$;

-- Keeps all that is known of these jobs.
create or replace function millrace.operation_keep(the_operation bigint, ids bigint[]) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
begin
    insert into millrace.operation_kept (operation, job, rows)
    select the_operation, i.id, millrace.operation_traces(i.id) || jsonb_strip_nulls(jsonb_build_object(
               'lines', (select jsonb_agg(to_jsonb(l)) from millrace.log_line l where l.job = i.id))) || jsonb_build_object(
               'job', (select to_jsonb(j) from millrace.job j where j.id = i.id),
               'runs', (select jsonb_agg(to_jsonb(h)) from millrace.history h where h.id = i.id),
               'result', (select to_jsonb(r) from millrace.result r where r.job = i.id),
               'fork', (select to_jsonb(f) from millrace.fork f where f.job = i.id),
               'undos', (select jsonb_agg(to_jsonb(u)) from (
                    select u.* from millrace.undo u where u.job = i.id union select u.* from millrace.undo u where u.undo_job = i.id) u),
               'edges', (select jsonb_agg(to_jsonb(e)) from (
                    select e.* from millrace.edge e where e.succ = i.id union all select e.* from millrace.edge e where e.pred = i.id limit 10000) e))
      from (select distinct unnest(ids) as id) i
        on conflict do nothing;
end $$;

-- Does the action to these jobs: together where they can be, and the others one by one.
create or replace function millrace.operation_act(the_operation bigint, ids bigint[]) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    op millrace.operation;
    t timestamptz := millrace.now();
    taken bigint[] := '{}';
    together bigint[];
    one bigint;
    code text;
    message text;
begin
    select o.* into strict op from millrace.operation o where o.id = the_operation;
    ids := array(
        select i from unnest(ids) i where i <= op.bound
        except select x.job from millrace.operation_items_of(the_operation, ids) x order by 1);
    perform pg_current_xact_id();                         -- before numbers are drawn: see horizon()
    if op.action = 'delete' then
        taken := millrace.operation_delete_ended(the_operation, ids, t);
    else
        -- An undo is cancelled by itself, or not at all: see undo_end_check.
        together := case when op.action = 'cancel' then array(
            select i from unnest(ids) i where not exists (select from millrace.undo u where u.undo_job = i offset 0)) else ids end;
        taken := millrace.operation_move(op, together, t);
        if op.action in ('retry', 'retry_fresh') then
            taken := taken || millrace.operation_retry_plain(op, array(select i from unnest(together) i except select unnest(taken)), t);
        end if;
    end if;
    foreach one in array array(select i from unnest(ids) i except select unnest(taken) order by 1) loop
        begin
            perform millrace.operation_act_one(op, one);
        exception when no_data_found or unique_violation or object_not_in_prerequisite_state or lock_not_available or serialization_failure then
            get stacked diagnostics code = returned_sqlstate, message = message_text;
            perform millrace.operation_note(the_operation, one, t, 3,
                case when code = '55P03' then 'a transaction that is still open holds the job' else message end);
        end;
    end loop;
end $$;

-- Puts a job that operation_move has taken out of its place back, and says why.
create or replace function millrace.operation_refuse(op millrace.operation, item millrace.operation_item, refusal text) returns void
language plpgsql volatile as $$
begin
    perform millrace.place_put(item.job, item.was, item.seq, item.queue, item.kind, item.lane, item.due, item.gate, item.attempt, item.crashes, item.more);
    delete from millrace.operation_item i where i.operation = op.id and i.job = item.job;
    perform millrace.operation_note(op.id, item.job, item.at, 3, refusal);
end $$;

-- Puts jobs that operation_move has taken out of their places where they are to be at another time, and those that have no time back. What
-- they wait for is looked at only now: until they were taken, a run could have begun to wait.
create or replace function millrace.operation_reschedule(op millrace.operation, ids bigint[], new_due timestamptz) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    item millrace.operation_item;
    refusal text;
    later boolean := new_due > millrace.now();
    moved bigint[] := ids;
begin
    for item in
        select i.* from millrace.operation_items_of(op.id, ids) i
         where exists (select from millrace.wait w where w.job = i.job and w.what in (2, 4) offset 0)
            or exists (select from millrace.undo u where u.undo_job = i.job offset 0)
    loop
        refusal := millrace.reschedule_refusal(item.job, item.was, item.due);
        continue when refusal is null;
        moved := array_remove(moved, item.job);
        perform millrace.operation_refuse(op, item, refusal);
    end loop;
    -- In the middle of their work they wait until the other time.
    update millrace.operation_item i set more = jsonb_build_object('waits_until', w.due)
      from (select w.* from unnest(moved) m(job) cross join lateral (select x.job, x.due, x.place from millrace.wait x where x.job = m.job and x.what = 1 offset 0) w) w
     where i.operation = op.id and i.job = w.job and i.was = 'timer' and i.due = w.place;
    update millrace.wait w set due = new_due, place = new_due
     where w.job = any (array(select i.job from millrace.operation_items_of(op.id, moved) i where i.more ? 'waits_until'));
    perform millrace.place_put(i.job, case when i.was = 'blocked' then i.was when later then 'timer' else 'ready' end, i.became, i.queue, i.kind,
                millrace.lane_of(i.lane, i.crashes, false), new_due, null, i.attempt, i.crashes, i.more)
       from millrace.operation_items_of(op.id, moved) i;
end $$;

-- The jobs among these that wait, moved in one statement for each place. Returns which they were, refused ones too.
create or replace function millrace.operation_move(op millrace.operation, ids bigint[], t timestamptz) returns bigint[]
language plpgsql volatile set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    new_due timestamptz := (op.args ->> 'run_at')::timestamptz;
    plain int := (op.args ->> 'priority')::int * 4 + 1;
    later boolean := coalesce(new_due > millrace.now(), false);
    taken bigint[];
    moved bigint[];
    item millrace.operation_item;
begin
    if op.action = 'priority' then
        ids := array(select i from unnest(ids) i cross join lateral (select j.lane from millrace.job j where j.id = i offset 0) j where j.lane <> plain);
    end if;
    with moved as (
        insert into millrace.operation_item (operation, job, at, outcome, was, seq, queue, kind, lane, due, gate, attempt, crashes, more, became)
        select op.id, p.job, t, 1, p.was, p.seq, p.queue, p.kind, p.lane, p.due, p.gate, p.attempt, p.crashes,
               case when op.action = 'priority' then coalesce(p.more, '{}') || jsonb_build_object('lane', (select j.lane from millrace.job j where j.id = p.job))
                    else p.more end,
               case when p.was <> 'blocked' and (op.action in ('retry', 'retry_fresh') or (op.action = 'reschedule' and not later) or (op.action = 'priority' and p.was = 'ready'))
                    then nextval('millrace.seq') end
          from millrace.places_take(ids, case when op.action in ('retry', 'retry_fresh') then array['timer'] else array['timer', 'ready', 'parked', 'blocked'] end) p
        returning job
    )
    select coalesce(array_agg(m.job), '{}') into taken from moved m;
    if taken = '{}' then
        return taken;
    end if;
    case op.action
    when 'cancel' then
        update millrace.operation_item i set more = coalesce(i.more, '{}') || jsonb_build_object('key', k.key)
          from millrace.operation_keys(taken) k where i.operation = op.id and i.job = k.job;
        perform millrace.end_without_run_at(array_agg(i.job), null, array_agg(i.attempt), array_agg(i.crashes), t)
           from millrace.operation_items_of(op.id, taken) i;
        return taken;
    when 'priority' then
        update millrace.job j set lane = plain where j.id = any (taken);
        perform millrace.place_put(i.job, i.was, i.became, i.queue, i.kind, (plain & ~3) | (i.lane & 3), i.due, i.gate, i.attempt, i.crashes, i.more)
           from millrace.operation_items_of(op.id, taken) i;
    when 'reschedule' then
        perform millrace.operation_reschedule(op, taken, new_due);
    else                                                  -- a retry of what waits for its time
        moved := taken;
        if op.action = 'retry_fresh' then
            -- Looked at only now, as in operation_reschedule: a run could have done a step.
            for item in
                select i.* from millrace.operation_items_of(op.id, taken) i where exists (select from millrace.undo u where u.job = i.job offset 0)
            loop
                moved := array_remove(moved, item.job);
                perform millrace.operation_refuse(op, item, millrace.undo_fresh_refusal(item.job));
            end loop;
        end if;
        perform millrace.place_put(i.job, 'ready', i.became, i.queue, i.kind, i.lane, null, null, i.attempt, i.crashes, null)
           from millrace.operation_items_of(op.id, moved) i;
        if op.action = 'retry_fresh' then
            perform millrace.operation_fresh(op.id, i) from unnest(moved) i;
        end if;
    end case;
    return taken;
end $$;

-- A job that was not found where it could be taken together with others: locked, running, waiting for a key's holder, or ended.
create or replace function millrace.operation_act_one(op millrace.operation, the_job bigint) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    t timestamptz := millrace.now();
    head record;
    held record;
begin
    select j.* into head from millrace.job j where j.id = the_job;
    if not found and op.action not in ('delete', 'retry', 'retry_fresh') then
        perform millrace.operation_note(op.id, the_job, t, 2, 'it is no longer kept');
        return;
    end if;
    if op.action = 'delete' then
        perform millrace.operation_delete_one(op.id, the_job, t);
        return;
    elsif op.action in ('retry', 'retry_fresh') then
        perform millrace.place_lock(the_job);             -- waits for the one that has it
        if millrace.operation_move(op, array[the_job], t) = '{}' then
            perform millrace.operation_retry_one(op, the_job, t);
        end if;
        return;
    elsif op.action = 'cancel' then
        perform millrace.undo_end_check(the_job, named => false);
    elsif op.action = 'priority' and head.lane >> 2 = (op.args ->> 'priority')::int then
        perform millrace.operation_note(op.id, the_job, t, 2, 'it has this priority');
        return;
    end if;
    for tries in 1 .. 4 loop
        perform millrace.place_lock(the_job);             -- waits for the one that has it
        if millrace.operation_move(op, array[the_job], t) <> '{}' then
            return;
        end if;
        select r.* into held from millrace.job_running(the_job) r limit 1;
        if found then
            if op.action = 'cancel' then
                insert into millrace.cancel (seq, session, number, job, at) values (nextval('millrace.seq'), held.session, held.number, the_job, t);
                perform millrace.operation_note(op.id, the_job, t, 1, null, 'running');
            else
                perform millrace.operation_note(op.id, the_job, t, 2, 'it runs');
            end if;
            return;
        end if;
        select u.job, u.due into held from millrace.unique_lock u where u.hash = head.unique_hash and u.next = the_job for update;
        if found then
            perform millrace.operation_note(op.id, the_job, t, 1, null, 'follows', held.due, jsonb_build_object('holder', held.job, 'lane', head.lane));
            if op.action = 'cancel' then
                update millrace.unique_lock u set next = null, due = null where u.hash = head.unique_hash and u.next = the_job;
                perform millrace.end_without_run_at(array[the_job], null, null, null, t);
            elsif op.action = 'reschedule' then
                update millrace.unique_lock u set due = (op.args ->> 'run_at')::timestamptz where u.hash = head.unique_hash and u.next = the_job;
            else
                update millrace.job j set lane = (op.args ->> 'priority')::int * 4 + 1 where j.id = the_job;
            end if;
            return;
        end if;
    end loop;
    perform millrace.operation_note(op.id, the_job, t, 2, 'it has ended');
end $$;

-- Whether all that an ended job's return concerns is the job: it is there, and has no unique key and no flow.
create or replace function millrace.is_retried_plainly(the_job bigint) returns boolean
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    return exists (select from millrace.job j where j.id = the_job and j.unique_hash is null)
       and not exists (select from millrace.edge e where e.pred = the_job) and not exists (select from millrace.edge e where e.succ = the_job);
end $$;

-- The ended jobs among these that have no key and no flow, again with one statement for each table. Returns which they were. See redrive.
create or replace function millrace.operation_retry_plain(op millrace.operation, ids bigint[], t timestamptz) returns bigint[]
language plpgsql volatile set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    again bigint[];
begin
    -- The row lock settles two concurrent redrives, or a redrive and a deletion. Whether a job is plain is looked at in the same moment: the end of
    -- a run may bring a flow, or steps to undo.
    with redriven as (
        update millrace.history h set outcome = case h.outcome when 3 then 4 else 6 end
         where h.id = any (ids) and h.outcome in (2, 3) and millrace.is_retried_plainly(h.id)
        returning h.id, h.session, h.number, h.started, h.class, case h.outcome when 4 then 3 else 2 end as outcome
    ), noted as (
        insert into millrace.operation_item (operation, job, at, outcome, was, queue, kind, lane, attempt, crashes, more, became)
        select op.id, r.id, t, 1, 'ended', j.queue, j.kind, j.lane, 0, 0,
               jsonb_build_object('run', jsonb_build_object('session', r.session, 'number', r.number, 'started', r.started, 'class', r.class, 'outcome', r.outcome)),
               nextval('millrace.seq')
          from (select distinct on (r.id) r.* from redriven r) r
         cross join lateral (select j.queue, j.kind, j.lane from millrace.job j where j.id = r.id offset 0) j
        returning job
    )
    select coalesce(array_agg(n.job), '{}') into again from noted n;
    delete from millrace.cancel c where c.job = any (again);   -- it spoke of a run that is over
    perform millrace.place_put(i.job, 'ready', i.became, i.queue, i.kind, i.lane, null, null, 0::smallint, 0::smallint, null)
       from millrace.operation_items_of(op.id, again) i;
    if op.action = 'retry_fresh' then
        perform millrace.operation_fresh(op.id, i) from unnest(again) i;
    end if;
    return again;
end $$;

-- Runs an ended job again, as redrive does, and keeps what that changes.
create or replace function millrace.operation_retry_one(op millrace.operation, the_job bigint, t timestamptz) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    run record;
    key jsonb := (select k.key from millrace.operation_keys(array[the_job]) k);
    edges jsonb;
    undos jsonb;
    place bigint;
    fresh boolean := op.action = 'retry_fresh';
begin
    select h.session, h.number, h.started, h.class, h.outcome into run from millrace.history h where h.id = the_job and h.outcome in (2, 3) limit 1;
    if run is null then
        perform millrace.operation_note(op.id, the_job, t, 2, 'it is neither dead nor cancelled');
        return;
    end if;
    edges := (select jsonb_agg(jsonb_build_array(e.succ, e.outcome)) from millrace.edge e where e.pred = the_job and e.outcome in (2, 3));
    -- Undos that were cancelled are planned again: see undos_back.
    undos := (select jsonb_agg(jsonb_build_object('job', h.id, 'session', h.session, 'number', h.number, 'started', h.started,
                                   'edges', (select jsonb_agg(jsonb_build_array(e.succ, e.outcome)) from millrace.edge e where e.pred = h.id and e.outcome is not null)))
                from millrace.undo u join millrace.history h on h.id = u.undo_job and h.outcome = 2 where u.job = the_job);
    perform millrace.operation_keep_traces(op.id, the_job, fresh);
    if not millrace.redrive(the_job, fresh => fresh) then
        delete from millrace.operation_kept k where k.operation = op.id and k.job = the_job;
        perform millrace.operation_note(op.id, the_job, t, 2, 'it is neither dead nor cancelled');
        return;
    end if;
    select r.seq into place from millrace.ready r where r.job = the_job and r.seq <> r.job;
    perform millrace.operation_note(op.id, the_job, t, 1, null, 'ended', null,
        jsonb_build_object('run', to_jsonb(run), 'key', key, 'edges', edges, 'undos', undos), place);
end $$;

-- What a retry changes of what stands beside the job, and what a fresh one forgets, for who undoes that.
create or replace function millrace.operation_keep_traces(the_operation bigint, the_job bigint, fresh boolean) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
    insert into millrace.operation_kept (operation, job, rows)
    select the_operation, the_job, case when fresh then millrace.operation_traces(the_job) else jsonb_build_object('wait', to_jsonb(w)) end || jsonb_build_object(
               'edges', (select jsonb_agg(to_jsonb(e)) from millrace.edge e where w.what = 3 and e.succ = w.job and e.pred = any (w.jobs)))
      from (select the_job as job) x left join millrace.wait w on w.job = x.job
     where fresh or w.job is not null
        on conflict do nothing;
end $$;

create or replace function millrace.operation_fresh(the_operation bigint, the_job bigint) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
    perform millrace.operation_keep_traces(the_operation, the_job, true);
    perform millrace.steps_forget(the_job);
end $$;

-- The ended jobs among these that hold no key and have nothing to do with an undo: with one statement for each table. Returns which they
-- were.
create or replace function millrace.operation_delete_ended(the_operation bigint, ids bigint[], t timestamptz) returns bigint[]
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    ended bigint[];
begin
    ended := array(
        select h.id from millrace.history h
         where h.id = any (ids) and h.outcome in (1, 2, 3) and millrace.is_deleted_plainly(h.id)
         order by h.id for update);
    ended := array(select distinct e from unnest(ended) e);
    if ended <> '{}' then
        perform millrace.operation_keep(the_operation, ended);
        perform millrace.jobs_delete_ended(ended);
        insert into millrace.operation_item (operation, job, at, outcome, was) select the_operation, e, t, 1, 'ended' from unnest(ended) e;
    end if;
    return ended;
end $$;

create or replace function millrace.operation_delete_one(the_operation bigint, the_job bigint, t timestamptz) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    the_hash bytea := (select j.unique_hash from millrace.job j where j.id = the_job);
    key jsonb;
    follows record;
    place record;
begin
    if not exists (select from millrace.job j where j.id = the_job) then
        perform millrace.operation_note(the_operation, the_job, t, 2, 'it is no longer kept');
        return;
    end if;
    perform from millrace.unique_lock u where u.hash = the_hash for update;     -- before its place, like a replacement
    if exists (select from millrace.job_running(the_job)) then
        perform millrace.operation_note(the_operation, the_job, t, 3, 'it is running: cancel it first');
        return;
    end if;
    perform millrace.place_lock(the_job);                 -- before what is kept of it is read; where a run has it by now, the deletion is refused
    key := (select k.key from millrace.operation_keys(array[the_job]) k);
    select u.job, u.due into follows from millrace.unique_lock u where u.hash = the_hash and u.next = the_job;
    perform millrace.operation_keep(the_operation, array[the_job]);
    -- Its place is noted and put back, so that the deletion finds it as it would any other.
    select p.* into place from millrace.places_take(array[the_job]) p;
    insert into millrace.operation_item (operation, job, at, outcome, was, seq, queue, kind, lane, due, gate, attempt, crashes, more)
    values (the_operation, the_job, t, 1, coalesce(place.was, case when follows.job is not null then 'follows' else 'ended' end), place.seq, place.queue, place.kind,
            place.lane, coalesce(place.due, follows.due), place.gate, place.attempt, place.crashes,
            coalesce(place.more, '{}') || jsonb_strip_nulls(jsonb_build_object('holder', follows.job)) || jsonb_build_object('key', key));
    if place.was is not null then
        perform millrace.place_put(place.job, place.was, place.seq, place.queue, place.kind, place.lane, place.due, place.gate, place.attempt, place.crashes, place.more);
    end if;
    perform millrace.job_delete_now(the_job);
end $$;
