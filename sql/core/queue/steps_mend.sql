-- Mending a job's record: an admin says what a step has given, or that it was not done.

-- Takes a job out of its place until the transaction ends, so that no run begins on what is being changed. No row: it has ended, and does not run
-- again meanwhile. A job that runs is refused.
create or replace function millrace.record_hold(the_job bigint)
returns table (job bigint, was text, seq bigint, queue int, kind int, lane int, due timestamptz, gate bigint, attempt smallint, crashes smallint, more jsonb)
language plpgsql volatile set enable_seqscan = off set jit = off as $$
begin
    perform pg_current_xact_id();                         -- before numbers are drawn: see horizon()
    for tries in 1 .. 4 loop
        perform millrace.place_lock(the_job);
        return query select * from millrace.places_take(array[the_job]);
        if found then
            return;
        end if;
        if exists (select from millrace.job_running(the_job)) then
            perform millrace.refuse(format('job %s is running, and its run would not see the change', the_job), 'id', 'Wait for its end, or cancel it first.', '55000', 'conflict');
        end if;
        perform from millrace.history h where h.id = the_job and h.outcome in (1, 2, 3) for update;
        if found then
            return;
        end if;
        -- Or it waits for its key's holder.
        perform from millrace.unique_lock u where u.next = the_job and u.hash = (select j.unique_hash from millrace.job j where j.id = the_job) for update;
        if found then
            return;
        end if;
    end loop;
    perform millrace.refuse(format('job %s keeps changing', the_job), 'id', 'Try again.', '40001', 'conflict');
end $$;

-- A step's value as the audit keeps it: without what the kind hides, of encrypted jobs nothing, and of large ones their size.
create or replace function millrace.step_audited(the_job bigint, the_step text, value jsonb) returns jsonb
language plpgsql stable as $$
declare
    head record;
    shown jsonb;
begin
    if value is null then
        return null;
    end if;
    select k.name as kind, millrace.is_sealed(j.args) as sealed into head from millrace.job j join millrace.kind k on k.id = j.kind where j.id = the_job;
    if head.sealed then
        return '"[redacted]"';
    end if;
    shown := millrace.redact(head.kind, jsonb_build_object(the_step, value)) -> the_step;
    return case when octet_length(shown::text) > 2000 then jsonb_build_object('bytes', octet_length(shown::text)) else shown end;
end $$;

create or replace function millrace.step_unknown(the_job bigint, the_step text, hint text) returns void
language plpgsql stable as $$
declare
    names text[] := array(select s.name from millrace.step s where s.job = the_job order by s.place nulls first, s.at, s.name limit 21);
begin
    perform millrace.refuse(format('job %s has no step %L on record', the_job, left(the_step, 60)), 'name',
        case when names = '{}' then 'It has none.' else format('It has %s.', array_to_string(names[1:20], ', ') || case when cardinality(names) > 20 then ', …' else '' end) end
            || coalesce(' ' || hint, ''), 'P0002', 'not_found');
end $$;

-- Sets what a step has given: of one on record, of the one at which the job waits, which goes on with it, or with `adds` of one that no run has come
-- to. What a wait for a signal or an answer has given is {"value": …} or {"timeout": true}. False: it has that value already.
create or replace function millrace.step_set(id bigint, name text, value jsonb, adds boolean default false, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    place record;
    old record;
    w millrace.wait;
    given jsonb := coalesce(step_set.value, 'null');
    asked jsonb;
    awaited boolean := false;
    is_known boolean;
    n int;
    last int;
begin
    perform millrace.must_see(step_set.id, caller => step_set.caller);
    if step_set.name is null or length(step_set.name) not between 1 and 128 then
        perform millrace.refuse('a step''s name must have 1 to 128 characters', 'name');
    end if;
    if pg_column_size(given) > 1048576 then
        perform millrace.refuse(format('the value takes %s bytes, more than the 1048576 allowed', pg_column_size(given)), 'value', null, '53400', 'too_large');
    end if;
    select h.* into place from millrace.record_hold(step_set.id) h;
    select s.value, s.asked into old from millrace.step s where s.job = step_set.id and s.name = step_set.name;
    is_known := found;
    select x.* into w from millrace.wait x where x.job = step_set.id and x.step = step_set.name;
    awaited := found and not is_known and (place.was = 'timer' and place.due = w.place or place.was = 'blocked' and w.what = 3);
    asked := case when is_known then old.asked when awaited then millrace.wait_asked(w) end;
    if asked ->> 'what' in ('signal', 'approval') and given is distinct from '{"timeout": true}' and (jsonb_typeof(given) <> 'object' or not given ? 'value') then
        perform millrace.refuse(format('step %L is waiting, and cannot be given this value', left(step_set.name, 60)), 'value', 'Give {"value": …} or {"timeout": true}.');
    end if;
    if is_known and old.value = given then
        n := 0;
    elsif is_known then
        update millrace.step s set value = given where s.job = step_set.id and s.name = step_set.name;
    else
        if not awaited and not coalesce(step_set.adds, false) then
            perform millrace.step_unknown(step_set.id, step_set.name, 'To record a step that no run has reached, add --new (in SQL adds => true).');
        end if;
        select count(*), coalesce(max(s.place), 0) into n, last from millrace.step s where s.job = step_set.id;
        if n >= millrace.counted('steps') then
            perform millrace.refuse(format('job %s already has 1000 steps on record, the maximum', step_set.id), 'name', null, '53400', 'too_large');
        end if;
        insert into millrace.step (job, name, value, session, number, attempt, at, place, asked)
        values (step_set.id, step_set.name, given, 0, 0, coalesce(place.attempt, 0), millrace.now(), greatest(n, last) + 1, asked);
        n := null;
    end if;
    if awaited then                                       -- it goes on, as after a signal
        delete from millrace.wait x where x.job = step_set.id;
        perform millrace.place_put(step_set.id, 'ready', nextval('millrace.seq'), place.queue, place.kind, millrace.lane_of(place.lane, w.crashes, true), null,
            place.gate, w.attempt, w.crashes, null);
    elsif place.was is not null then
        perform millrace.place_put(step_set.id, place.was, case place.was when 'ready' then nextval('millrace.seq') end, place.queue, place.kind,
            case place.was when 'ready' then millrace.lane_of(place.lane, place.crashes, true) else place.lane end, place.due, place.gate, place.attempt,
            place.crashes, place.more);
    end if;
    if n = 0 then
        return false;
    end if;
    perform millrace.audited('job.step_set', step_set.id::text, jsonb_build_object('step', step_set.name,
        'before', case when is_known then millrace.step_audited(step_set.id, step_set.name, old.value) end,
        'after', millrace.step_audited(step_set.id, step_set.name, given), 'new', case when not is_known then true end), caller => step_set.caller);
    return true;
end $$;
select millrace.door_is('queue', 'step_set', 'admin', 'staff', audited => true);

-- Takes a step from the record: the next run does it again. It is undone no more, and a question that it asked is asked again.
create or replace function millrace.step_forget(id bigint, name text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    place record;
    old jsonb;
    undos bigint[];
begin
    perform millrace.must_see(step_forget.id, caller => step_forget.caller);
    select h.* into place from millrace.record_hold(step_forget.id) h;
    delete from millrace.step s where s.job = step_forget.id and s.name = step_forget.name returning s.value into old;
    if not found then
        perform millrace.step_unknown(step_forget.id, step_forget.name, null);
    end if;
    delete from millrace.approval a where a.job = step_forget.id and a.step = step_forget.name;
    with gone as (delete from millrace.undo u where u.job = step_forget.id and u.step = step_forget.name returning u.undo_job)
    select array_agg(g.undo_job) into undos from gone g join millrace.blocked b on b.job = g.undo_job;
    if undos is not null then
        perform millrace.flow_forget(undos);
        perform millrace.ends_note(undos, 9);
    end if;
    if place.was is not null then
        perform millrace.place_put(step_forget.id, place.was, case place.was when 'ready' then nextval('millrace.seq') end, place.queue, place.kind,
            case place.was when 'ready' then millrace.lane_of(place.lane, place.crashes, true) else place.lane end, place.due, place.gate, place.attempt,
            place.crashes, place.more);
    end if;
    perform millrace.audited('job.step_forget', step_forget.id::text, jsonb_build_object('step', step_forget.name,
        'before', millrace.step_audited(step_forget.id, step_forget.name, old), 'undo', case when undos is not null then 'forgotten' end), caller => step_forget.caller);
    return true;
end $$;
select millrace.door_is('queue', 'step_forget', 'admin', 'staff', audited => true);
