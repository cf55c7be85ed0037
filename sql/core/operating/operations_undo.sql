-- Undoing an operation: each job goes back to where it stood, with its attempts, its key and its flow, or it is listed as gone past with a
-- reason. What a job has done since is never undone.

-- Why a job cannot go back any more.
create or replace function millrace.operation_past(the_job bigint) returns text
language plpgsql volatile as $$
declare
    state text := (select j.state from millrace.job(the_job) j limit 1);
begin
    return case when state is null then 'it has been deleted, or its retention has passed'
        when state in ('succeeded', 'dead', 'cancelled') then format('it has ended since: %s', state)
        when state = 'running' then 'it is running now' else format('it has moved on since: %s', state) end;
end $$;

create or replace function millrace.operation_ran_since(the_job bigint, t timestamptz) returns boolean
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
    return exists (select from millrace.history h where h.id = the_job and h.finished >= t) or exists (select from millrace.job_running(the_job));
end $$;

-- Gives a job its key back. Null: it has it; else the job that holds it now.
create or replace function millrace.operation_key_back(the_job bigint, the_hash bytea, key jsonb) returns bigint
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    holder bigint;
begin
    if (key ->> 'ended')::boolean then
        -- It only held the key a while longer: somebody else may have it by now.
        if not exists (select from millrace.unique_lock u where u.hash = the_hash) then
            insert into millrace.unique_key (hash) values (the_hash) on conflict do nothing;
            if found then
                insert into millrace.unique_lock (hash, job, ended, until) values (the_hash, the_job, true, (key ->> 'until')::timestamptz);
            end if;
        else
            update millrace.unique_lock u set ended = true, until = (key ->> 'until')::timestamptz, round = u.round + 1
             where u.hash = the_hash and u.job = the_job and u.next is null;
        end if;
        return null;
    end if;
    holder := millrace.unique_take(the_hash, the_job);
    if holder <> the_job then
        return holder;
    end if;
    update millrace.unique_lock u set until = (key ->> 'until')::timestamptz where u.hash = the_hash and u.job = the_job;
    return null;
end $$;

-- Jobs that wait for this one were told that it was cancelled: they wait for it again, those too that were cancelled for that reason alone.
-- And it waits again for those that the same operation has cancelled and that are still to come back.
create or replace function millrace.operation_edges_back(the_operation bigint, the_job bigint, since timestamptz) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    one record;
begin
    perform millrace.back_beside(the_job);
    for one in
        select e.succ, h.session, h.number, h.started, h.error from millrace.edge e
          left join lateral (select h.* from millrace.history h where h.id = e.succ and h.outcome in (2, 3) limit 1) h on true
         where e.pred = the_job and e.outcome = 2 and h.id is not null
    loop
        update millrace.edge e set outcome = null where e.pred = the_job and e.succ = one.succ;
        continue when one.session is distinct from 0 or one.started < since
            or one.error is distinct from format('job %s, which it waits for, was cancelled', the_job);
        begin
            perform millrace.operation_follower_back(the_operation, one.succ, one.number, one.started, since);
        exception when object_not_in_prerequisite_state then
            null;                                         -- it is being undone, and stays cancelled
        end;
    end loop;
    update millrace.edge e set outcome = null
     where e.succ = the_job and e.outcome = 2
       and exists (select from millrace.operation_item i where i.operation = the_operation and i.job = e.pred and i.outcome = 1 and i.undo is null);
end $$;

-- A job that was cancelled because one that it waits for was, and that waits again.
create or replace function millrace.operation_follower_back(the_operation bigint, the_job bigint, the_number bigint, ended timestamptz, since timestamptz) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    head record;
    starts smallint;
begin
    select j.* into head from millrace.job j where j.id = the_job;
    if not found or (head.unique_hash is not null and millrace.operation_key_back(the_job, head.unique_hash, '{}') is not null) then
        return;
    end if;
    delete from millrace.history h where h.id = the_job and h.session = 0 and h.number = the_number and h.started = ended and h.outcome = 2;
    if not found then
        return;
    end if;
    starts := millrace.flow_starts_again(the_job, head.options);
    perform millrace.place_put(the_job, 'blocked', null, head.queue, head.kind, head.lane, head.run_at, null, 0::smallint, 0::smallint,
        jsonb_build_object('starts', starts, 'waits', starts in (2, 4) or coalesce(head.options #>> '{after,any_dead}' = 'wait', false)));
    perform millrace.operation_edges_back(the_operation, the_job, since);
end $$;

-- One job of an operation. Null: it is as before; else why it is not.
create or replace function millrace.operation_undo_one(op millrace.operation, item millrace.operation_item) returns text
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    the_hash bytea := (select j.unique_hash from millrace.job j where j.id = item.job);
begin
    if the_hash is not null then
        perform from millrace.unique_lock u where u.hash = the_hash order by u.round desc limit 1 for update;     -- before its place
    end if;
    return case op.action
        when 'cancel' then millrace.operation_undo_cancel(item, the_hash)
        when 'delete' then millrace.operation_undo_delete(item)
        when 'retry' then millrace.operation_undo_retry(item, the_hash)
        when 'retry_fresh' then millrace.operation_undo_retry(item, the_hash)
        else millrace.operation_undo_move(op, item, the_hash) end;
end $$;

create or replace function millrace.operation_undo_cancel(item millrace.operation_item, the_hash bytea) returns text
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    run record;
    holder bigint;
begin
    if item.was = 'running' then
        return 'it was running, and was told to stop';
    end if;
    select h.number into run from millrace.history h
     where h.id = item.job and h.session = 0 and h.started = item.at and h.outcome = 2 for update;
    if not found or not exists (select from millrace.job j where j.id = item.job) then
        return millrace.operation_past(item.job);
    end if;
    if item.was = 'follows' then
        update millrace.unique_lock u set next = item.job, due = item.due
         where u.hash = the_hash and u.job = (item.more ->> 'holder')::bigint and not u.ended and u.next is null;
        if not found then
            return format('job %s, whose end it waited for, has ended or has another successor', item.more ->> 'holder');
        end if;
    elsif item.more -> 'key' is not null then
        holder := millrace.operation_key_back(item.job, the_hash, item.more -> 'key');
        if holder is not null then
            return format('job %s holds its unique key', holder);
        end if;
    end if;
    delete from millrace.history h where h.id = item.job and h.session = 0 and h.number = run.number and h.started = item.at;
    perform millrace.back_beside(item.job);
    if item.was <> 'follows' then
        perform millrace.place_put(item.job, item.was, item.seq, item.queue, item.kind, item.lane, item.due, item.gate, item.attempt, item.crashes, item.more);
    end if;
    perform millrace.operation_edges_back(item.operation, item.job, item.at);
    return null;
end $$;

create or replace function millrace.operation_undo_retry(item millrace.operation_item, the_hash bytea) returns text
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    gone bigint;
    run jsonb := item.more -> 'run';
    one jsonb;
begin
    delete from millrace.ready r where r.job = item.job and r.seq = item.became and r.seq <> r.job returning r.job into gone;
    if gone is null and item.was = 'ended' and item.became is null then
        delete from millrace.blocked b where b.job = item.job returning b.job into gone;
    end if;
    if gone is null then
        return millrace.operation_past(item.job);
    end if;
    if item.was = 'timer' then
        perform millrace.place_put(item.job, item.was, null, item.queue, item.kind, item.lane, item.due, null, item.attempt, item.crashes, null);
    else
        update millrace.history h set outcome = (run ->> 'outcome')::smallint
         where h.id = item.job and h.session = (run ->> 'session')::bigint and h.number = (run ->> 'number')::bigint and h.started = (run ->> 'started')::timestamptz;
        if jsonb_typeof(item.more -> 'key') = 'object' then
            perform millrace.operation_key_back(item.job, the_hash, item.more -> 'key');
        elsif the_hash is not null then
            perform millrace.unique_end(array[item.job], for_good => true);
        end if;
        if jsonb_typeof(item.more -> 'edges') = 'array' then
            update millrace.edge e set outcome = (x.pair ->> 1)::smallint
              from jsonb_array_elements(item.more -> 'edges') x(pair) where e.pred = item.job and e.succ = (x.pair ->> 0)::bigint and e.outcome is null;
            -- Its end may not have been told before.
            update millrace.blocked b set fresh = true
              from jsonb_array_elements(item.more -> 'edges') x(pair) where b.job = (x.pair ->> 0)::bigint;
        end if;
        perform millrace.ends_note(array[item.job], (run ->> 'outcome')::int);    -- for those that wait for it by now
        if jsonb_typeof(item.more -> 'undos') = 'array' then
            for one in select u from jsonb_array_elements(item.more -> 'undos') u loop
                delete from millrace.blocked b where b.job = (one ->> 'job')::bigint;
                update millrace.history h set outcome = 2
                 where h.id = (one ->> 'job')::bigint and h.session = (one ->> 'session')::bigint and h.number = (one ->> 'number')::bigint
                   and h.started = (one ->> 'started')::timestamptz;
                update millrace.edge e set outcome = (x.pair ->> 1)::smallint
                  from jsonb_array_elements(nullif(one -> 'edges', 'null')) x(pair) where e.pred = (one ->> 'job')::bigint and e.succ = (x.pair ->> 0)::bigint;
            end loop;
        end if;
    end if;
    perform millrace.operation_traces_back(item.operation, item.job);
    return null;
end $$;

-- After a change of time or priority.
create or replace function millrace.operation_undo_move(op millrace.operation, item millrace.operation_item, the_hash bytea) returns text
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    place record;
    due timestamptz := (op.args ->> 'run_at')::timestamptz;
    plain int := (op.args ->> 'priority')::int * 4 + 1;
begin
    if item.was = 'follows' then
        if op.action = 'reschedule' then
            update millrace.unique_lock u set due = item.due where u.hash = the_hash and u.next = item.job;
        else
            update millrace.job j set lane = (item.more ->> 'lane')::int
             where j.id = item.job and j.lane = plain and exists (select from millrace.unique_lock u where u.hash = j.unique_hash and u.next = j.id);
        end if;
        return case when not found then millrace.operation_past(item.job) end;
    end if;
    perform millrace.place_lock(item.job);
    if millrace.operation_ran_since(item.job, item.at) then
        return millrace.operation_past(item.job);
    end if;
    select p.* into place from millrace.places_take(array[item.job]) p;
    if place.was is null then
        return millrace.operation_past(item.job);
    end if;
    if op.action = 'reschedule' then
        if (place.was in ('timer', 'blocked') and place.due is distinct from due) or (item.was = 'blocked') <> (place.was = 'blocked') then
            perform millrace.place_put(place.job, place.was, place.seq, place.queue, place.kind, place.lane, place.due, place.gate, place.attempt, place.crashes, place.more);
            return 'it has been moved to another time since';
        end if;
        perform millrace.place_put(item.job, item.was, item.seq, item.queue, item.kind, item.lane, item.due, item.gate, item.attempt, item.crashes, item.more);
        if item.more ? 'waits_until' then
            update millrace.wait w set due = (item.more ->> 'waits_until')::timestamptz, place = item.due where w.job = item.job and w.what = 1;
        end if;
        return null;
    end if;
    if place.lane >> 2 <> plain >> 2 then
        perform millrace.place_put(place.job, place.was, place.seq, place.queue, place.kind, place.lane, place.due, place.gate, place.attempt, place.crashes, place.more);
        return 'it has been given another priority since';
    end if;
    update millrace.job j set lane = (item.more ->> 'lane')::int where j.id = item.job;
    perform millrace.place_put(place.job, place.was, case when item.was = 'ready' and place.was = 'ready' then item.seq when place.was = 'ready' then place.seq end, place.queue,
        place.kind, ((item.more ->> 'lane')::int & ~3) | (place.lane & 3), place.due, place.gate, place.attempt, place.crashes, place.more);
    return null;
end $$;

-- Puts back what a fresh retry or a deletion has taken: all that operation_traces has kept.
create or replace function millrace.operation_traces_back(the_operation bigint, the_job bigint) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
    kept jsonb;
begin
    delete from millrace.operation_kept k where k.operation = the_operation and k.job = the_job returning k.rows into kept;
    if kept is null then
        return;
    end if;
    if jsonb_typeof(kept -> 'kind') = 'number' then
        update millrace.job j set kind = (kept ->> 'kind')::int where j.id = the_job and j.kind <> (kept ->> 'kind')::int;
    end if;
    if jsonb_typeof(kept -> 'steps') = 'array' then
        insert into millrace.step (job, name, value, session, number, attempt, at, place, asked)
        select s.job, s.name, coalesce(s.value, 'null'), s.session, s.number, s.attempt, s.at, s.place, s.asked
          from jsonb_populate_recordset(null::millrace.step, kept -> 'steps') s on conflict do nothing;
    end if;
    if jsonb_typeof(kept -> 'wait') = 'object' then
        delete from millrace.wait w where w.job = the_job;
        insert into millrace.wait
        select w.* from jsonb_populate_record(null::millrace.wait,
            kept -> 'wait' || jsonb_build_object('look_at', case when kept #>> '{wait,what}' in ('2', '4') then millrace.now() end)) w;
    end if;
    if jsonb_typeof(kept -> 'approvals') = 'array' then
        insert into millrace.approval select a.* from jsonb_populate_recordset(null::millrace.approval,
            (select jsonb_agg(case when a -> 'request' = 'null' then a || '{"request": {}}' else a end) from jsonb_array_elements(kept -> 'approvals') a)) a on conflict do nothing;
        update millrace.approval a set request = 'null'
          from jsonb_array_elements(kept -> 'approvals') x where a.id = (x ->> 'id')::uuid and x -> 'request' = 'null';
    end if;
    if jsonb_typeof(kept -> 'people') = 'array' then
        insert into millrace.approval_person select p.* from jsonb_populate_recordset(null::millrace.approval_person, kept -> 'people') p on conflict do nothing;
    end if;
    if jsonb_typeof(kept -> 'old_ways') = 'array' then
        insert into millrace.old_way select o.* from jsonb_populate_recordset(null::millrace.old_way, kept -> 'old_ways') o on conflict do nothing;
    end if;
    if jsonb_typeof(kept -> 'edges') = 'array' then
        insert into millrace.edge select e.* from jsonb_populate_recordset(null::millrace.edge, kept -> 'edges') e
         where exists (select from millrace.job j where j.id = e.succ) on conflict do nothing;
    end if;
    if jsonb_typeof(kept -> 'output') = 'object' then
        delete from millrace.output o where o.job = the_job;
        delete from millrace.published p where p.job = the_job;
        insert into millrace.output (job, state, state_attempt, state_at, last, kept, bytes)
        select o.job, case when o.state_at is not null then coalesce(o.state, 'null') end, o.state_attempt, o.state_at, o.last, o.kept, o.bytes
          from jsonb_populate_record(null::millrace.output, kept -> 'output') o;
    end if;
    if jsonb_typeof(kept -> 'published') = 'array' then
        insert into millrace.published (job, n, key, value, session, number, call, attempt, at)
        select p.job, p.n, p.key, coalesce(p.value, 'null'), p.session, p.number, p.call, p.attempt, p.at
          from jsonb_populate_recordset(null::millrace.published, kept -> 'published') p;
    end if;
    if jsonb_typeof(kept -> 'progress') = 'object' then
        delete from millrace.progress p where p.job = the_job;
        insert into millrace.progress select p.* from jsonb_populate_record(null::millrace.progress, kept -> 'progress') p;
    end if;
    if jsonb_typeof(kept -> 'lines') = 'array' then
        insert into millrace.log_line select l.* from jsonb_populate_recordset(null::millrace.log_line, kept -> 'lines') l on conflict do nothing;
    end if;
end $$;

create or replace function millrace.operation_undo_delete(item millrace.operation_item) returns text
language plpgsql volatile set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    kept jsonb := (select k.rows from millrace.operation_kept k where k.operation = item.operation and k.job = item.job);
    head millrace.job := jsonb_populate_record(null::millrace.job, nullif(kept -> 'job', 'null'));
    key jsonb := nullif(item.more -> 'key', 'null');
    holder bigint;
begin
    if kept is null then
        return 'its record is no longer kept';
    elsif exists (select from millrace.job j where j.id = item.job) then
        return 'there is a job with this number again';
    elsif head.id is not null and not exists (select from millrace.queue q where q.id = head.queue) then
        return 'its queue has been removed';
    end if;
    if head.unique_hash is not null then
        perform from millrace.unique_lock u where u.hash = head.unique_hash order by u.round desc limit 1 for update;
    end if;
    if item.was = 'follows' then
        update millrace.unique_lock u set next = item.job, due = item.due
         where u.hash = head.unique_hash and u.job = (item.more ->> 'holder')::bigint and not u.ended and u.next is null;
        if not found then
            return format('job %s, whose end it waited for, has ended or has another successor', item.more ->> 'holder');
        end if;
    elsif key is not null then
        holder := millrace.operation_key_back(item.job, head.unique_hash, key);
        if holder is not null then
            return format('job %s holds its unique key', holder);
        end if;
    end if;
    if head.id is not null then
        insert into millrace.job select head.*;
    end if;
    delete from millrace.history h where h.id = item.job; -- what a living lease still counted, without its contents
    if jsonb_typeof(kept -> 'runs') = 'array' then
        insert into millrace.history select h.* from jsonb_populate_recordset(null::millrace.history, kept -> 'runs') h;
    end if;
    if jsonb_typeof(kept -> 'result') = 'object' then
        insert into millrace.result select r.* from jsonb_populate_record(null::millrace.result, kept -> 'result') r on conflict do nothing;
    end if;
    if jsonb_typeof(kept -> 'fork') = 'object' then
        insert into millrace.fork select f.* from jsonb_populate_record(null::millrace.fork, kept -> 'fork') f on conflict do nothing;
    end if;
    if jsonb_typeof(kept -> 'undos') = 'array' then
        -- An undo that was forgotten with the deletion does not come back; one that the operation has deleted, too, has kept the same row.
        insert into millrace.undo select u.* from jsonb_populate_recordset(null::millrace.undo, kept -> 'undos') u
         where exists (select from millrace.job j where j.id = u.job) and exists (select from millrace.job j where j.id = u.undo_job) on conflict do nothing;
    end if;
    if head.id is not null and (select k.searchable from millrace.kind k where k.id = millrace.kind_plain(head.kind)) then
        perform millrace.fields_put(head.id, head.kind, head.args);
    end if;
    perform millrace.operation_traces_back(item.operation, item.job);
    if item.was in ('timer', 'ready', 'parked', 'blocked') then
        perform millrace.place_put(item.job, item.was, item.seq, item.queue, item.kind, item.lane, item.due, item.gate, item.attempt, item.crashes, item.more);
    end if;
    if item.was <> 'ended' then
        perform millrace.operation_edges_back(item.operation, item.job, item.at);
    end if;
    return null;
end $$;

-- The plain ones among cancelled jobs, back in their places with one statement for each: those without a key and that nobody waited for.
create or replace function millrace.operation_undo_plain(the_operation bigint, ids bigint[]) returns void
language plpgsql volatile set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    one record;
    back bigint[] := '{}';
    came bigint[];
    t timestamptz := millrace.now();
begin
    for one in
        select i.at, array_agg(i.job) as jobs from millrace.operation_items_of(the_operation, ids) i
         where exists (select from millrace.job j where j.id = i.job offset 0) group by i.at
    loop
        -- The one that takes away the record of the end has the job: a retry and a deletion want the same row.
        with gone as (
            delete from millrace.history h
             where h.started = one.at and h.id = any (one.jobs) and h.session = 0 and h.outcome = 2
            returning h.id
        )
        select array_agg(g.id) into came from gone g;
        back := back || coalesce(came, '{}');
    end loop;
    -- Their end is no longer to be told, and cancels of a run that is over are none of the next one: see back_beside.
    delete from millrace.ending n where n.pred = any (back);
    delete from millrace.cancel c where c.job = any (back);
    update millrace.edge e set outcome = null
     where e.pred = any (back) and e.outcome in (2, 3) and exists (select from millrace.blocked b where b.job = e.succ);
    insert into millrace.timer (due, job, queue, kind, lane, attempt, crashes)
    select i.due, i.job, i.queue, i.kind, i.lane, i.attempt, i.crashes
      from millrace.operation_items_of(the_operation, back) i where i.was = 'timer';
    update millrace.wait w set look_at = t where w.job = any (back) and w.what in (2, 4);     -- see signals_tell
    insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes, gate)
    select i.seq, i.job, i.queue, i.kind, i.lane, i.attempt, i.crashes, i.gate
      from millrace.operation_items_of(the_operation, back) i where i.was = 'ready';
    insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes)
    select i.gate, i.lane, i.job, i.queue, i.kind, i.attempt, i.crashes
      from millrace.operation_items_of(the_operation, back) i where i.was = 'parked';
    if found then
        perform pg_notify('millrace', 'limits');
    end if;
    perform millrace.wake(w.queue, w.lane)
       from (select distinct i.queue, i.lane from millrace.operation_items_of(the_operation, back) i
              where i.was = 'ready' or (i.was = 'timer' and i.due < t + interval '2 s')) w;
    update millrace.operation_item i set undo = 1 where i.operation = the_operation and i.job = any (back);
    update millrace.operation_item i set undo = 2, undo_reason = millrace.operation_past(i.job)
     where i.operation = the_operation and i.job = any (ids) and i.undo is null;
end $$;

-- The next jobs of an operation, from the smallest number on. Returns the last one; null: that was all.
create or replace function millrace.operation_undo_chunk(the_operation bigint, most int) returns bigint
language plpgsql volatile set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    op millrace.operation;
    item millrace.operation_item;
    ids bigint[];
    plain bigint[] := '{}';
    why text;
begin
    select o.* into strict op from millrace.operation o where o.id = the_operation;
    ids := array(
        select i.job from millrace.operation_item i
         where i.operation = op.id and i.job > op.undo_after order by i.job limit most);
    if ids = '{}' then
        return null;
    end if;
    perform pg_current_xact_id();
    if millrace.flows_in_use() then
        perform millrace.turns_wait('flows');             -- see flows_advance
    end if;
    if op.action = 'cancel' then
        plain := array(
            select i.job from millrace.operation_items_of(op.id, ids) i
             where i.outcome = 1 and i.was in ('timer', 'ready', 'parked') and i.more is null
               and not exists (select from millrace.edge e where e.pred = i.job offset 0));     -- a look-up for each, and no join
        perform millrace.operation_undo_plain(op.id, plain);
    end if;
    for item in
        select i.* from millrace.operation_items_of(op.id, ids) i
         where i.outcome = 1 and i.undo is null order by i.job
    loop
        begin
            why := millrace.operation_undo_one(op, item);
        exception when no_data_found or unique_violation or object_not_in_prerequisite_state or lock_not_available or serialization_failure then
            why := sqlerrm;
        end;
        update millrace.operation_item i set undo = case when why is null then 1 else 2 end, undo_reason = left(why, 500)
         where i.operation = item.operation and i.job = item.job;
    end loop;
    return ids[cardinality(ids)];
end $$;

-- What operations have kept to be undone, and this is said in, is kept no more.
create or replace function millrace.operations_forget(words text) returns void
language sql volatile as $$
    delete from millrace.operation_kept k
     where lower(k.rows::text) like '%' || replace(replace(replace(words, E'\\', E'\\\\'), '%', E'\\%'), '_', E'\\_') || '%'
$$;
