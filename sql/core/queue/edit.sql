-- What people change in a form: a dead job's arguments, and a schedule. The form shows them redacted. What is hidden in it says "[redacted]" before and
-- after, and stays as it is.

-- The given arguments with what is hidden in the old ones. shown: the old ones, redacted.
create or replace function millrace.args_with_hidden(old jsonb, shown jsonb, given jsonb, place text default '') returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if shown = '"[redacted]"' then
        if given is distinct from shown and old <> shown then
            perform millrace.refuse(format('the value at %s is hidden, so it stays as it is', left(ltrim(place, '.'), 200)), 'args',
                'Leave "[redacted]" there. Where it has to change, enqueue a job with all of its arguments.');
        end if;
        return case when given = shown then old else given end;
    elsif shown = old then
        return given;                                     -- nothing is hidden in it
    elsif jsonb_typeof(given) is distinct from jsonb_typeof(shown)
        or jsonb_typeof(shown) = 'array' and jsonb_array_length(given) < jsonb_array_length(shown)
    then
        perform millrace.refuse(format('%s has hidden values, so it keeps them', coalesce(nullif(left(ltrim(place, '.'), 200), ''), 'the object')), 'args',
            'Change the values beside them.');
    elsif jsonb_typeof(shown) = 'array' then
        return (select jsonb_agg(case when g.n <= jsonb_array_length(shown)
                                      then millrace.args_with_hidden(old -> (g.n - 1)::int, shown -> (g.n - 1)::int, g.value, place || '.' || (g.n - 1)) else g.value end order by g.n)
                  from jsonb_array_elements(given) with ordinality g(value, n));
    end if;
    return given || (select jsonb_object_agg(s.key, millrace.args_with_hidden(old -> s.key, s.value, given -> s.key, place || '.' || s.key))
                       from jsonb_each(shown) s where s.value is distinct from old -> s.key);
end $$;

-- What a form with arguments means: what it shows may be changed, and what a rule hides may not. the_kind: whose arguments they were; new_kind: whose they
-- will be.
create or replace function millrace.args_edited(the_kind text, new_kind text, old jsonb, given jsonb) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    shown constant jsonb := millrace.redact(the_kind, old);
    hidden constant jsonpath := 'strict $.** ? (@ == "[redacted]")';
    edited jsonb;
begin
    if given is null then
        perform millrace.refuse('args is null', 'args', 'Give a JSON value, {} for none.');
    end if;
    perform millrace.check_sealed(given);
    if millrace.is_sealed(old) <> millrace.is_sealed(given) then
        perform millrace.refuse(case when millrace.is_sealed(old) then 'the arguments are encrypted, and these are not' else 'the arguments are not encrypted, and these are' end, 'args',
            'millrace jobs edit encrypts what replaces encrypted arguments, where MILLRACE_ENCRYPTION_KEY has the key.');
    end if;
    edited := case when millrace.is_sealed(given) then given else millrace.args_with_hidden(old, shown, given) end;
    if not millrace.is_sealed(given) then
        if (select count(*) from jsonb_path_query(given, hidden)) > (select count(*) from jsonb_path_query(shown, hidden)) then
            perform millrace.refuse('"[redacted]" is given where nothing was hidden', 'args', 'Give the value itself.');
        elsif millrace.redact(new_kind, edited) <> given then
            perform millrace.refuse('a rule hides a value that these arguments add or would show, so a form cannot set it', 'args',
                'Take it out, or enqueue a job with all of its arguments; millrace kinds list shows what is hidden.');
        end if;
    end if;
    if millrace.true_bytes(edited) > millrace.most('args') then
        perform millrace.refuse(format('args take %s bytes, more than the %s allowed', millrace.true_bytes(edited), millrace.most('args')), 'args',
            'Store large data elsewhere and pass a reference.', '53400', 'too_large');
    end if;
    return edited;
end $$;

-- Where two redacted arguments differ, for the audit: the first 200 characters of each value.
create or replace function millrace.args_changes(old jsonb, new jsonb, place text default '') returns setof jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    name text;
begin
    if jsonb_typeof(old) = 'object' and jsonb_typeof(new) = 'object' and not millrace.is_sealed(old) then
        for name in select x.k from (select jsonb_object_keys(old) union select jsonb_object_keys(new)) x(k) where old -> x.k is distinct from new -> x.k order by x.k limit 20 loop
            return query select c from millrace.args_changes(old -> name, new -> name, place || '.' || left(name, 60)) c;
        end loop;
    elsif old is distinct from new then
        return next case when millrace.is_sealed(old) then jsonb_build_object('args', 'encrypted again')
                         else jsonb_build_object('at', ltrim(left(place, 200), '.'), 'before', left(old::text, 200), 'after', left(new::text, 200)) end;
    end if;
end $$;

-- given: the new ones, as the form had them.
create or replace function millrace.args_changed(the_kind text, old jsonb, given jsonb) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(jsonb_agg(c), '[]') from (select x as c from millrace.args_changes(millrace.redact(the_kind, old), given) x limit 20) y
$$;

-- Gives a dead or cancelled job other arguments and runs it again from its first attempt. fresh: its steps, too, which else stay as the old arguments
-- have made them.
create or replace function millrace.retry_with(id bigint, args jsonb, fresh boolean default false, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    j millrace.job;
    k millrace.kind;
    edited jsonb;
begin
    perform millrace.retry_check(retry_with.id, caller => retry_with.caller);
    -- Brought back first: then it is ours until the commit, and nobody runs it before.
    if not millrace.redrive(retry_with.id, fresh => coalesce(retry_with.fresh, false)) then
        perform millrace.refuse(format('job %s is neither dead nor cancelled, so its arguments stay as they are', retry_with.id), 'id',
            'It has been run again in the meantime, or has succeeded; its page says where it is.', '55000', 'conflict');
    end if;
    select x.* into strict j from millrace.job x where x.id = retry_with.id for update;
    select x.* into strict k from millrace.kind x where x.id = j.kind;
    edited := millrace.args_edited(k.name, k.name, j.args, retry_with.args);
    update millrace.job x set args = edited where x.id = retry_with.id;
    if (select x.searchable from millrace.kind x where x.name = k.name and x.line = '') then
        delete from millrace.job_field f where f.job = retry_with.id;
        perform millrace.fields_put(retry_with.id, j.kind, edited);
    end if;
    perform millrace.audited('job.edit', retry_with.id::text,
        jsonb_build_object('fresh', nullif(coalesce(retry_with.fresh, false), false), 'changes', millrace.args_changed(k.name, j.args, retry_with.args)), caller => retry_with.caller);
    return true;
end $$;
select millrace.door_is('queue', 'retry_with', 'admin', 'staff', audited => true);

-- Makes a schedule, or changes what its form has: the rest stays as it is. was: when the schedule was last changed, as the form's reader saw it; null: it
-- is new, and its name is free. args: null leaves them as they are. Returns created, changed or unchanged.
create or replace function millrace.schedule_save(
    name text, expression text, kind text, args jsonb, zone text default 'UTC', queue text default null, was timestamptz default null,
    caller millrace.caller_name default current_user
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    old millrace.schedule;
    given jsonb;
    edited jsonb;
    change text;
begin
    select s.* into old from millrace.schedule s where s.name = schedule_save.name for update;
    if schedule_save.was is null then
        change := case when old.id is null then millrace.schedule_put(schedule_save.name, schedule_save.expression, schedule_save.kind, coalesce(schedule_save.args, '{}'),
            schedule_save.zone, schedule_save.queue, null, null, 'latest', 1000, 'allow', '0', null, null) end;
        if change is distinct from 'created' then
            perform millrace.refuse(format('there is already a schedule %L', left(schedule_save.name, 128)), 'name', 'Give another name, or change that one on its own page.', '23505', 'conflict');
        end if;
        perform millrace.audited('schedule.set', schedule_save.name, jsonb_build_object('change', change, 'expression', schedule_save.expression, 'zone', schedule_save.zone,
            'kind', schedule_save.kind, 'queue', schedule_save.queue), caller => schedule_save.caller);
        return change;
    end if;
    if old.id is null then
        perform millrace.schedule_must_exist(schedule_save.name);
    elsif old.changed_at <> schedule_save.was then
        perform millrace.refuse(format('the schedule %s has been changed since you opened its form', schedule_save.name), 'was', 'Open the form again.', '55000', 'conflict');
    end if;
    given := coalesce(schedule_save.args, millrace.redact(old.kind, old.args));
    edited := millrace.args_edited(old.kind, schedule_save.kind, old.args, given);
    change := millrace.schedule_put(old.name, schedule_save.expression, schedule_save.kind, edited, schedule_save.zone, schedule_save.queue, old.priority, old.tenant,
        old.catch_up, old.catch_up_limit, old.overlap, old.jitter, null, null);
    if change <> 'unchanged' then
        perform millrace.audited('schedule.set', old.name, jsonb_build_object('change', change, 'expression', schedule_save.expression, 'zone', schedule_save.zone,
            'kind', schedule_save.kind, 'queue', schedule_save.queue,
            'before', jsonb_build_object('expression', old.expression, 'zone', old.zone, 'kind', old.kind, 'queue', old.queue),
            'changes', nullif(millrace.args_changed(old.kind, old.args, given), '[]')), caller => schedule_save.caller);
    end if;
    return change;
end $$;
select millrace.door_is('queue', 'schedule_save', 'admin', 'staff', audited => true);
