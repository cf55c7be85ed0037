-- The offline intake: what a phone did while it had no connection, handed in later, perhaps twice, in any order, by several devices at once.

-- The person whose devices these are: the claims'. A back end has no devices.
create or replace function millrace.sync_person(caller name) returns text
language plpgsql stable as $$
declare
    me text := millrace.subject(sync_person.caller);
begin
    if me is null then
        perform millrace.refuse('the offline intake belongs to a person, and there are no claims', 'actor',
            'Call through a gateway that sets request.jwt.claims.', '42501', 'permission');
    end if;
    return me;
end $$;

-- The person's row, locked, so that what its devices hand in comes one after the other. A push takes five seconds at most; who waits holds a
-- connection, so it does not wait that long, and comes again. A gateway lets a person's pushes come one after the other before.
create or replace function millrace.sync_turn(me text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '2s' as $$
begin
    insert into millrace.sync_person as p (person, pushed_at) values (me, millrace.now())
        on conflict (person) do update set pushed_at = greatest(excluded.pushed_at, p.pushed_at);
exception when lock_not_available then
    perform millrace.refuse('another device of this person is sending a lot right now', 'device', 'Send it again.', '55P03', 'transient');
end $$;

create or replace function millrace.sync_device_named(device text) returns void
language plpgsql immutable as $$
begin
    if device is null or device !~ '^[A-Za-z0-9][A-Za-z0-9._:-]*$' or length(device) > millrace.most('name') then
        perform millrace.refuse('the device is missing or malformed', 'device', 'Give 1 to 128 letters, digits and . _ : - that the app made up for this installation.');
    end if;
end $$;

-- True: somebody changed the target directly, and not by a push, after `at`. Then the change is newer.
create or replace function millrace.sync_changed_since(me text, the_topic text, the_op text, at timestamptz, applied_at timestamptz) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(x.changed_at > at and x.changed_at > coalesce(sync_changed_since.applied_at, '-infinity'), false)
      from (select case the_topic
                when 'preferences' then (select p.changed_at from millrace.notice_preference p where p.person = me)
                when 'profile' then (select p.changed_at from millrace.profile p where p.person = me)
                when 'watch' then (select max(c.at) from millrace.checkin_change c
                                    where c.person = me and c.change = any (case the_op when 'check_in_set_interval' then '{armed,interval}'::text[] else '{armed,disarmed,paused}' end))
                end as changed_at) x
$$;

-- The arguments, complete: each time by the clock that counts, `at` where the door takes it, and the day that an offline quest is about.
create or replace function millrace.sync_arguments(d record, args jsonb, at timestamptz, happened timestamptz) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    name text;
    made timestamptz;
begin
    foreach name in array array['at', 'until'] loop        -- all that doors call their times
        if coalesce(args -> name, 'null') <> 'null' then
            args := args || jsonb_build_object(name, millrace.by_our_clock(millrace.time_given(args -> name, name)));
        end if;
    end loop;
    if d.has_at and at is not null then
        args := args || jsonb_build_object('at', happened);
    end if;
    made := millrace.by_our_clock(millrace.sync_time(args #> '{place,at}'));
    if made is not null then                               -- the door refuses what is not a time
        args := jsonb_set(args, '{place,at}', to_jsonb(made));
    end if;
    if d.op = 'quest_undo' and coalesce(args -> 'day', 'null') = 'null' then
        args := args || jsonb_build_object('day', (select millrace.day_at(happened, f.zone) from millrace.family f where f.family = args ->> 'family'));
    end if;
    return args;
end $$;

-- What an operation is about, as a hash.
create or replace function millrace.sync_target(d record, args jsonb, happened timestamptz) returns bytea
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    parts text[] := array[d.topic];
    name text;
begin
    foreach name in array d.target loop
        parts := parts || coalesce(case
            when d.topic = 'quest' and name = 'day' then
                coalesce(args ->> 'day', (select millrace.day_at(happened, f.zone)::text from millrace.family f where f.family = args ->> 'family'))
            when d.topic = 'hobby' then lower(regexp_replace(trim(args ->> name), E'\\s+', ' ', 'g'))
            else args ->> name end, '');
    end loop;
    return sha256(convert_to(to_jsonb(parts)::text, 'UTF8'));
end $$;

-- A check-in that is older than the last one says nothing new. One older than a day says nothing of now, and only the person can mend that.
create or replace function millrace.sync_check_in_is_old(me text, happened timestamptz) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    last timestamptz;
begin
    select w.last_checked_in into last from millrace.watch w where w.person = me for no key update;
    if happened < last then
        return true;
    end if;
    if happened < millrace.now() - interval '24 hours' then
        perform millrace.refuse('this check-in is more than a day old: it does not say how the person is now', 'at', 'Check in again.', '55000', 'wrong_state');
    end if;
    return false;
end $$;

-- Carries one operation out, unless a newer one on the same thing is in force. Returns the door's answer.
create or replace function millrace.sync_apply(me text, the_id uuid, at timestamptz, d record, given jsonb, caller millrace.caller_name) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    superseded constant jsonb := '{"superseded": true}';
    said timestamptz := coalesce(case when d.has_at then millrace.time_given(given -> 'at', 'at') end, sync_apply.at);
    happened timestamptz := coalesce(millrace.happened(said, millrace.now()), millrace.now());
    args jsonb := millrace.sync_arguments(d, given, said, happened);
    the_target bytea;
    one record;
    written text[] := '{}';
    newer jsonb := '{}';
    answer jsonb;
begin
    if coalesce(given ->> 'person', me) <> me then
        return millrace.sync_call(d.op, args, sync_apply.caller);   -- another's: the door decides, whatever is in force here
    end if;
    if d.op = 'check_in' and said is not null and millrace.sync_check_in_is_old(me, happened) then
        return superseded;
    end if;
    if d.topic is null then
        return millrace.sync_call(d.op, args, sync_apply.caller);
    end if;
    the_target := millrace.sync_target(d, args, happened);
    for one in
        select f.field, n.value, (n.at, n.id) > (happened, the_id) as is_newer,
               (f.field = '' or not d.decides) and millrace.sync_changed_since(me, d.topic, d.op, happened,
                   (select max(x.applied_at) from millrace.sync_newest x where x.person = me and x.target = the_target)) as is_changed
          from unnest(d.fields || case when d.decides then '{""}'::text[] else '{}' end) f(field)
          left join millrace.sync_newest n on n.person = me and n.target = the_target and n.field = f.field
         where d.decides or coalesce(args -> f.field, 'null') <> 'null'
    loop
        if one.is_newer or one.is_changed then
            if one.field = '' then
                return superseded;
            end if;
            newer := newer || jsonb_build_object(one.field, case when not one.is_changed then one.value end);
        else
            written := written || one.field;
        end if;
    end loop;
    if written = '{}' and newer <> '{}' and not d.is_kept then
        return superseded;
    end if;
    if d.is_kept then
        answer := millrace.sync_call(d.op, args, sync_apply.caller);
        if newer <> '{}' then
            perform millrace.sync_call(d.op, args || newer, sync_apply.caller);
        end if;
    else
        answer := millrace.sync_call(d.op, args || newer, sync_apply.caller);
    end if;
    -- With no field to set: when this was done, all the same, so that it does not look like a change by somebody else.
    insert into millrace.sync_newest as n (person, target, field, at, id, value, applied_at)
    select me, the_target, f, happened, the_id, args -> f, millrace.now() from unnest(case when written = '{}' then '{.}' else written end) f
        on conflict (person, target, field) do update set at = excluded.at, id = excluded.id, value = excluded.value, applied_at = excluded.applied_at;
    return answer;
end $$;

-- One operation of a push, in a savepoint of its own. What was refused changed nothing, so nothing is kept of it.
create or replace function millrace.sync_one(me text, device text, one jsonb, caller millrace.caller_name) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    the_id uuid := millrace.sync_id(one -> 'id');
    the_at timestamptz := millrace.sync_time(one -> 'at');
    args jsonb := coalesce(nullif(one -> 'args', 'null'), '{}');
    the_tenant text := coalesce(millrace.caller_tenant(sync_one.caller), '');
    d record;
    done record;
    the_digest bytea;
    answer jsonb;
    state text; sentence text; detail text; hint text;
begin
    for tries in 1 .. 3 loop
        begin
            if one ? 'unreadable' then
                perform millrace.refuse('the operation cannot be read', 'args',
                    'Text must not contain a NUL or half of a surrogate pair, a key may appear only once in its object, and nesting may be at most 64 levels deep.');
            end if;
            if jsonb_typeof(one) <> 'object' or jsonb_typeof(args) <> 'object' or one - array['id', 'op', 'at', 'args'] <> '{}' then
                perform millrace.refuse('an operation is not an object of id, op, at and args', 'args', 'Give {"id": …, "op": …, "at": …, "args": {…}}.');
            end if;
            if the_id is null then
                perform millrace.refuse('the id is missing or malformed', 'id', 'Give a UUID that the device made up for this operation.');
            end if;
            if coalesce(one -> 'at', 'null') <> 'null' and the_at is null then
                perform millrace.refuse('at is malformed', 'at', 'Give for example 2026-11-27T09:30:00.123Z.');
            end if;
            if millrace.by_our_clock(the_at) < millrace.now() - interval '90 days' then
                perform millrace.refuse('this happened more than 90 days ago', 'at', 'Duplicates can be recognised for 90 days only.');
            end if;
            select * into d from millrace.sync_operations() o where o.op = one ->> 'op';
            if not found then
                perform millrace.refuse(format('%L cannot be done offline', left(one ->> 'op', 60)), 'op',
                    format('Allowed: %s.', (select string_agg(o.op, ', ' order by o.op) from millrace.sync_operations() o)), '0A000', 'unsupported');
            end if;
            the_digest := sha256(convert_to(jsonb_build_array(d.op, to_char(the_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'), args)::text, 'UTF8'));
            -- Without a tenant: of before operations were a tenant's.
            select s.digest, s.result into done from millrace.sync_done s where s.person = me and s.tenant in (the_tenant, '') and s.id = the_id;
            if found and done.digest = the_digest then
                return jsonb_build_object('outcome', 'same', 'result', done.result);
            elsif found then
                return millrace.sync_refusal('23505', 'an operation with this id was already carried out with different content', '{"error": "conflict", "field": "id"}',
                    'Give another operation another id.', d.op, args) || '{"outcome": "conflict"}';
            end if;
            answer := millrace.sync_apply(me, the_id, the_at, d, args, sync_one.caller);
            insert into millrace.sync_done (person, tenant, id, digest, device, op, result, at)
            values (me, the_tenant, the_id, the_digest, sync_one.device, d.op, answer, millrace.now());
            return jsonb_build_object('outcome', 'applied', 'result', answer);
        exception
            when others then
                get stacked diagnostics state = returned_sqlstate, sentence = message_text, detail = pg_exception_detail, hint = pg_exception_hint;
        end;
        exit when state not in ('40001', '40P01');
    end loop;
    return millrace.sync_refusal(state, sentence, detail, hint, one ->> 'op', case when jsonb_typeof(args) = 'object' then args else '{}' end);
end $$;

-- Up to 500 operations {id, op, at, args}, answered in the order in which they were given. What has to do with check-ins is done first, and
-- the rest by `at`. None holds back another: each has its own savepoint, waits two seconds for a lock at most, and after five seconds the rest
-- is answered as transient, to be sent again.
create or replace function millrace.sync_push(device text, ops jsonb, caller millrace.caller_name default current_user)
returns table (id uuid, outcome text, class text, field text, message text, hint text, user_message text, result jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s' set jit = off as $$
#variable_conflict use_column
declare
    me text := millrace.sync_person(sync_push.caller);
    began timestamptz := clock_timestamp();
    answers jsonb[];
    one record;
begin
    perform millrace.sync_device_named(sync_push.device);
    if coalesce(millrace.claims(sync_push.caller) ->> 'device', sync_push.device) <> sync_push.device then
        perform millrace.refuse('the token belongs to another device', 'device', 'Give the device that the token was made for.', '42501', 'permission');
    end if;
    if sync_push.ops is null or jsonb_typeof(sync_push.ops) <> 'array' or jsonb_array_length(sync_push.ops) not between 1 and millrace.most('sync_ops') then
        perform millrace.refuse('ops is not a list of 1 to 500 operations', 'ops', 'Give [{"id": …, "op": …, "at": …, "args": {…}}]; send more in several calls.');
    end if;
    if millrace.true_bytes(sync_push.ops) > millrace.most('sync_bytes') then
        perform millrace.refuse('ops takes more than the 4 MiB allowed', 'ops', 'Send it in several calls.', '53400', 'too_large');
    end if;
    -- The other pushes of this person come before or after this one, and never in between.
    perform millrace.sync_turn(me);
    answers := array_fill(null::jsonb, array[jsonb_array_length(sync_push.ops)]);
    for one in
        select e.value, e.n::int as n
          from jsonb_array_elements(sync_push.ops) with ordinality e(value, n)
          left join millrace.sync_operations() o on o.op = e.value ->> 'op'
         order by o.is_urgent is not true, millrace.sync_time(e.value -> 'at') nulls last, millrace.sync_id(e.value -> 'id'), e.n
    loop
        answers[one.n] := case
            when clock_timestamp() < began + interval '5 seconds' then millrace.sync_one(me, sync_push.device, one.value, sync_push.caller)
            else millrace.sync_refusal('55P03', 'the push took too long, and this operation was not tried', null, null, one.value ->> 'op', '{}') end;
    end loop;
    return query
        select millrace.sync_id(sync_push.ops -> (a.n - 1)::int -> 'id'), a.answer ->> 'outcome', a.answer ->> 'class', a.answer ->> 'field', a.answer ->> 'message',
               a.answer ->> 'hint', a.answer ->> 'user_message', a.answer -> 'result'
          from unnest(answers) with ordinality a(answer, n) order by a.n;
end $$;
select millrace.door_is('gateway', 'sync_push', 'client', 'actor claims',
    'Submits what a device did while it was offline.',
    answers => '{"outcome": ["applied", "same", "conflict", "refused"]}',
    who_may => array['submit what they did offline: itself']);

-- Operations as jsonb. What jsonb cannot hold, such as a character 0, a half of a surrogate pair or a number with a million digits, is left
-- out of its operation only, which is then refused by itself.
create or replace function millrace.sync_readable(ops text) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    answer jsonb[] := '{}';
    one json;
    read jsonb;
begin
    begin
        return ops::jsonb;
    exception when data_exception then
        null;
    end;
    for one in select e from json_array_elements(ops::json) e loop
        begin
            read := one::jsonb;
        exception when data_exception then
            begin
                read := jsonb_build_object('unreadable', true, 'id',
                    regexp_replace(one::text, E'\\\\u(0000|d[89a-f][0-9a-f]{2})|[e][+-]?[0-9]{4,}', '', 'gi')::jsonb -> 'id');
            exception when data_exception then
                read := '{"unreadable": true}';
            end;
        end;
        answer := answer || read;
    end loop;
    return to_jsonb(answer);
exception when data_exception or statement_too_complex then
    perform millrace.refuse('ops is not a JSON array', 'ops', 'Give [{"id": …, "op": …, "at": …, "args": {…}}].');
end $$;

-- The same as sync_push, with the operations as text, as a gateway receives them: one that jsonb cannot hold does not hold back the others.
create or replace function millrace.sync_push_text(device text, ops text, caller millrace.caller_name default current_user)
returns table (id uuid, outcome text, class text, field text, message text, hint text, user_message text, result jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.sync_person(sync_push_text.caller);
    if octet_length(sync_push_text.ops) > millrace.most('sync_bytes') then
        perform millrace.refuse('ops takes more than the 4 MiB allowed', 'ops', 'Send it in several calls.', '53400', 'too_large');
    end if;
    return query select * from millrace.sync_push(sync_push_text.device, millrace.sync_readable(sync_push_text.ops), caller => sync_push_text.caller);
end $$;
select millrace.door_is('gateway', 'sync_push_text', 'client', 'actor claims',
    'The same as sync_push, with the operations as JSON text.',
    answers => '{"outcome": ["applied", "same", "conflict", "refused"]}');
