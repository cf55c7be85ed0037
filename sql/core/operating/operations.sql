-- Operations: one action on all jobs that a filter names. Starting one only writes its row; a worker, or a caller who asks for it, then takes
-- step after step. A step holds the operation's row, so that one at a time is taken, and stopping waits for no more than one.

create or replace function millrace.operation_undo_span() returns interval
language sql immutable parallel safe return interval '10 minutes';

create or replace view millrace.operations as
select o.id, o.action, o.filter, o.args, o.pace, o.state, o.is_undoing, o.who, o.said_by, o.jobs, o.is_exact, o.looked, o.done, o.nothing, o.refused,
       o.undone, o.past, o.started_at, o.changed_at, o.ended_at,
       case when o.ended_at is not null and not o.is_undoing then o.ended_at + millrace.operation_undo_span() end as undo_until,
       not o.is_undoing and o.tidied = 0 and coalesce(o.ended_at + millrace.operation_undo_span() > millrace.now(), true) as can_undo,
       o.undo_by, o.undo_said_by, o.undo_started_at, o.undo_ended_at, o.key, o.login, o.undo_login
  from millrace.operation o;

create or replace function millrace.operation_start(
    action text, filter jsonb, args jsonb default '{}', pace int default null, key text default null, caller millrace.caller_name default current_user
) returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    places text[] := millrace.operation_check(operation_start.action, operation_start.filter, operation_start.args);
    counted record;
    drawn bigint;
    known record;
    t timestamptz := millrace.now();
    new_id bigint;
begin
    if operation_start.action = 'delete' and not millrace.is_admin(operation_start.caller) then
        perform millrace.refuse('only an admin may delete jobs', 'action', 'Cancel them, or ask an admin.', '42501', 'permission');
    end if;
    if operation_start.pace not between 1 and 10000 then
        perform millrace.refuse('pace must be 1 to 10000 jobs a second', 'pace', 'Leave it out to go as fast as possible.');
    end if;
    if length(operation_start.key) not between 1 and 128 then
        perform millrace.refuse('key must have 1 to 128 characters', 'key');
    end if;
    select case when s.is_called then s.last_value else 0 end into drawn from millrace.seq s;
    select c.* into counted from millrace.operation_count(operation_start.filter, places) c;
    insert into millrace.operation (key, action, filter, args, pace, who, login, said_by, bound, jobs, is_exact, places, after, next_at, started_at, changed_at)
    values (operation_start.key, operation_start.action, operation_start.filter, operation_start.args, operation_start.pace, operation_start.caller,
            session_user, millrace.said_by(), drawn, counted.jobs, counted.is_exact, places, drawn + 1, t, t, t)
        on conflict do nothing returning id into new_id;
    if new_id is null then
        select o.id, o.action, o.filter, o.args, o.pace into strict known from millrace.operation o where o.key = operation_start.key;
        if (known.action, known.filter, known.args, known.pace) is distinct from
           (operation_start.action, operation_start.filter, operation_start.args, operation_start.pace) then
            perform millrace.refuse(format('operation %s has this key and does something else', known.id), 'key', 'Use another key.', '23505', 'conflict');
        end if;
        return known.id;
    end if;
    perform millrace.audited('operation.start', new_id::text, jsonb_build_object('action', operation_start.action, 'filter', operation_start.filter,
        'args', operation_start.args, 'pace', operation_start.pace, 'jobs', counted.jobs, 'exact', counted.is_exact), caller => operation_start.caller);
    perform pg_notify('millrace', 'operations');
    return new_id;
end $$;
select millrace.door_is('operating', 'operation_start', 'admin, operator', 'staff', audited => true);

-- Locked, so that nobody takes a step meanwhile.
create or replace function millrace.operation_must_exist(the_id bigint) returns millrace.operation
language plpgsql volatile as $$
declare
    one millrace.operation;
begin
    select o.* into one from millrace.operation o where o.id = the_id for update;
    if not found then
        perform millrace.refuse(format('there is no operation %s', the_id), 'id', null, 'P0002', 'not_found');
    end if;
    return one;
end $$;

create or replace function millrace.operation_pause(id bigint, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.operation := millrace.operation_must_exist(operation_pause.id);
begin
    if one.state not in ('running', 'undoing') then
        return false;
    end if;
    update millrace.operation o set state = 'paused', changed_at = millrace.now() where o.id = one.id;
    perform millrace.audited('operation.pause', one.id::text, null, caller => operation_pause.caller);
    return true;
end $$;
select millrace.door_is('operating', 'operation_pause', 'admin, operator', 'staff', audited => true);

create or replace function millrace.operation_resume(id bigint, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.operation := millrace.operation_must_exist(operation_resume.id);
begin
    if one.state <> 'paused' then
        return false;
    end if;
    update millrace.operation o set state = case when o.is_undoing then 'undoing' else 'running' end, next_at = millrace.now(), changed_at = millrace.now()
     where o.id = one.id;
    perform millrace.audited('operation.resume', one.id::text, null, caller => operation_resume.caller);
    perform pg_notify('millrace', 'operations');
    return true;
end $$;
select millrace.door_is('operating', 'operation_resume', 'admin, operator', 'staff', audited => true);

-- Ends it where it is. What it has done stays done, and can be undone.
create or replace function millrace.operation_stop(id bigint, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.operation := millrace.operation_must_exist(operation_stop.id);
begin
    if one.is_undoing and one.state <> 'undone' then
        perform millrace.refuse(format('operation %s is being undone', one.id), 'id', 'Let it end, or pause it.', '55000', 'conflict');
    elsif one.state not in ('running', 'paused') then
        return false;
    end if;
    update millrace.operation o set state = 'stopped', ended_at = millrace.now(), changed_at = millrace.now() where o.id = one.id;
    perform millrace.audited('operation.stop', one.id::text, jsonb_build_object('done', one.done), caller => operation_stop.caller);
    return true;
end $$;
select millrace.door_is('operating', 'operation_stop', 'admin, operator', 'staff', audited => true);

-- Takes it back, while it runs or within ten minutes of its end.
create or replace function millrace.operation_undo(id bigint, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.operation := millrace.operation_must_exist(operation_undo.id);
    t timestamptz := millrace.now();
begin
    if one.is_undoing then
        return false;
    end if;
    if one.tidied > 0 or one.ended_at + millrace.operation_undo_span() <= t then
        perform millrace.refuse(format('operation %s ended at %s, and can no longer be undone', one.id, to_char(one.ended_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')), 'id',
            'An operation can be undone for ten minutes after its end.', '55000', 'conflict');
    end if;
    update millrace.operation o
       set state = 'undoing', is_undoing = true, ended_at = coalesce(o.ended_at, t), next_at = t, changed_at = t,
           undo_by = operation_undo.caller, undo_login = session_user, undo_said_by = millrace.said_by(), undo_started_at = t
     where o.id = one.id;
    perform millrace.audited('operation.undo', one.id::text, jsonb_build_object('done', one.done), caller => operation_undo.caller);
    perform pg_notify('millrace', 'operations');
    return true;
end $$;
select millrace.door_is('operating', 'operation_undo', 'admin, operator', 'staff', audited => true);

create or replace function millrace.operation(id bigint, caller millrace.caller_name default current_user) returns setof millrace.operations
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select o.* from millrace.operations o where o.id = operation.id
$$;
select millrace.door_is('operating', 'operation', 'admin, viewer', 'staff');

-- Newest first, below the id `after`.
create or replace function millrace.operation_list(after bigint default null, page int default 50, caller millrace.caller_name default current_user)
returns setof millrace.operations
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    return query select o.* from millrace.operations o where o.id < coalesce(after, 9223372036854775807) order by o.id desc limit page;
end $$;
select millrace.door_is('operating', 'operation_list', 'admin, viewer', 'staff');

-- What became of each job, the largest number first, below the job `after`. Forgotten a day after the end.
create or replace function millrace.operation_items(
    id bigint, which text default null, after bigint default null, page int default 100, caller millrace.caller_name default current_user
) returns table (job bigint, outcome text, reason text, at timestamptz, undo text, undo_reason text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    low bigint := coalesce(operation_items.after, 9223372036854775807);
begin
    if not exists (select from millrace.operation o where o.id = operation_items.id) then
        perform millrace.refuse(format('there is no operation %s', operation_items.id), 'id', null, 'P0002', 'not_found');
    end if;
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    if which not in ('done', 'nothing', 'refused', 'undone', 'past') then
        perform millrace.refuse(format('no jobs are called %L', left(which, 60)), 'which', 'Give done, nothing, refused, undone or past; null is all.');
    end if;
    return query
    select i.job, (array['done', 'nothing', 'refused'])[i.outcome], i.reason, i.at, (array['undone', 'past'])[i.undo], i.undo_reason
      from (
        (select x.* from millrace.operation_item x
          where coalesce(which in ('done', 'undone'), true) and x.operation = operation_items.id and x.job < low
            and (which is null or (which = 'done' and x.outcome = 1) or (which = 'undone' and x.undo = 1))
          order by x.job desc limit page)
        union all
        (select x.* from millrace.operation_item x          -- by the index of the few
          where which in ('nothing', 'refused', 'past') and x.operation = operation_items.id and x.job < low and (x.outcome <> 1 or x.undo = 2)
            and ((which = 'nothing' and x.outcome = 2) or (which = 'refused' and x.outcome = 3) or (which = 'past' and x.undo = 2))
          order by x.job desc limit page)) i
     order by i.job desc;
end $$;
select millrace.door_is('operating', 'operation_items', 'admin, viewer', 'staff');

-- Takes the next step of this operation, or of any that is due: up to `most` jobs, and no more than a second's worth of its pace. Returns
-- which it was, its state, how many jobs it came to, and after how many seconds the next step is due. No operation: none is open, or all
-- are being stepped by others; wait then says when one will be due, null if never.
create or replace function millrace.operation_step(
    id bigint default null, most int default 2000, caller millrace.caller_name default current_user,
    out operation bigint, out state text, out acted int, out wait float8
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set lock_timeout = '2s'
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    op millrace.operation;
    t timestamptz := millrace.now();
    last bigint;
begin
    if most is null or most not between 1 and 5000 then
        perform millrace.refuse('most must be 1 to 5000', 'most');
    end if;
    acted := 0;
    select o.* into op from millrace.operation o
     where o.state in ('running', 'undoing') and (operation_step.id is null or o.id = operation_step.id) and o.next_at <= t
     order by o.next_at limit 1 for update skip locked;
    if not found then
        if operation_step.id is null then
            select case when min(o.next_at) <= t then 1 else extract(epoch from min(o.next_at) - t) end into wait from millrace.operation o where o.state in ('running', 'undoing');
            return;
        end if;
        select o.id, o.state, case when o.state in ('running', 'undoing') then greatest(extract(epoch from o.next_at - t), 0.05) end into operation, state, wait
          from millrace.operation o where o.id = operation_step.id;
        if operation is null then
            perform millrace.refuse(format('there is no operation %s', operation_step.id), 'id', null, 'P0002', 'not_found');
        end if;
        return;
    end if;
    if op.state = 'running' then
        acted := millrace.operation_forward(op, least(most, coalesce(op.pace, most)));
    else
        last := millrace.operation_undo_chunk(op.id, least(most, coalesce(op.pace, most)));
        update millrace.operation o
           set undo_after = coalesce(last, o.undo_after), undone = s.undone, past = s.past,
               state = case when last is null then 'undone' else o.state end, undo_ended_at = case when last is null then millrace.now() end, changed_at = millrace.now()
          from (select op.undone + count(*) filter (where i.undo = 1) as undone, op.past + count(*) filter (where i.undo = 2) as past, count(i.undo) as n
                  from millrace.operation_item i where i.operation = op.id and i.job > op.undo_after and i.job <= last) s
         where o.id = op.id returning (s.n) into acted;
    end if;
    update millrace.operation o set next_at = t + make_interval(secs => case when op.pace > 0 then acted::float8 / op.pace else 0 end)
     where o.id = op.id returning o.id, o.state, extract(epoch from o.next_at - millrace.now()) into operation, state, wait;
    wait := case when state in ('running', 'undoing') then greatest(wait, 0) end;
end $$;
select millrace.door_is('operating', 'operation_step', 'worker, operator', 'staff');

-- The next chunk: looks for jobs, acts on them, and notes how far it has come. Returns how many jobs that were.
create or replace function millrace.operation_forward(op millrace.operation, wanted int) returns int
language plpgsql volatile as $$
declare
    places_left text[] := op.places;
    from_job bigint := op.after;
    walk int := op.round;
    seen int := 0;
    ids bigint[] := '{}';
    found record;
    sum record;
begin
    while cardinality(places_left) > 0 and cardinality(ids) < wanted and seen < 10000 loop
        select p.* into found from millrace.operation_page(op.filter, places_left[1], from_job, least(500, wanted - cardinality(ids)), 2500) p;
        ids := ids || found.ids;
        seen := seen + found.looked;
        from_job := found.next;
        if from_job is null then
            places_left := places_left[2:];
            from_job := op.bound + 1;
            -- Jobs whose runs ended in a retry while it looked are met by a second walk, in which those it has cancelled are gone.
            if places_left = '{}' and op.action = 'cancel' and walk = 1 and not op.filter ? 'ids' then
                places_left := millrace.operation_check(op.action, op.filter, op.args);
                walk := 2;
            end if;
        end if;
    end loop;
    if ids <> '{}' then
        perform millrace.operation_act(op.id, ids);
    end if;
    select count(*) as n, count(*) filter (where i.outcome = 1) as done, count(*) filter (where i.outcome = 2) as nothing, count(*) filter (where i.outcome = 3) as refused
      into sum
      from (select distinct i.id from unnest(ids) i(id)) x
     cross join lateral (select i.outcome from millrace.operation_item i where i.operation = op.id and i.job = x.id and i.at >= op.changed_at offset 0) i;
    update millrace.operation o
       set places = places_left, after = from_job, round = walk, looked = o.looked + seen,
           done = o.done + sum.done, nothing = o.nothing + sum.nothing, refused = o.refused + sum.refused, changed_at = millrace.now(),
           state = case when places_left = '{}' then 'finished' else o.state end,
           ended_at = case when places_left = '{}' then millrace.now() end
     where o.id = op.id;
    return sum.n;
end $$;

-- Forgets what undoing needs once it cannot be undone any more, and the items a day after the end. The row stays with the audit. One that has
-- been paused for a day is ended: what was deleted must not be kept because somebody forgot it.
create or replace function millrace.operations_expire(most int default 20000) returns int
language plpgsql volatile set enable_seqscan = off as $$
declare
    one record;
    n int;
    expired int := 0;
begin
    update millrace.operation o
       set state = case when o.is_undoing then 'undone' else 'stopped' end, changed_at = millrace.now(), ended_at = coalesce(o.ended_at, millrace.now()),
           undo_ended_at = case when o.is_undoing then millrace.now() end
     where o.state = 'paused' and o.tidied < 2 and o.changed_at < millrace.now() - interval '1 day';
    for one in
        select o.id, o.tidied, coalesce(o.undo_ended_at, o.ended_at) as ended from millrace.operation o
         where o.tidied < 2 and case when o.is_undoing then o.state = 'undone' else o.state in ('finished', 'stopped') and o.ended_at < millrace.now() - millrace.operation_undo_span() end
         order by o.id limit 100 for update skip locked
    loop
        exit when expired >= most;
        if one.tidied = 0 then
            delete from millrace.operation_kept k where k.operation = one.id
               and k.job = any (array(select x.job from millrace.operation_kept x where x.operation = one.id order by x.job limit most - expired));
            get diagnostics n = row_count;
            expired := expired + n;
            if n < most then
                update millrace.operation o set tidied = 1 where o.id = one.id;
            end if;
        elsif one.ended < millrace.now() - interval '1 day' then
            delete from millrace.operation_item i where i.operation = one.id
               and i.job = any (array(select x.job from millrace.operation_item x where x.operation = one.id order by x.job limit most - expired));
            get diagnostics n = row_count;
            expired := expired + n;
            if n < most then
                update millrace.operation o set tidied = 2 where o.id = one.id;
            end if;
        end if;
    end loop;
    delete from millrace.operation o where o.tidied = 2 and o.ended_at < millrace.now() - make_interval(days => millrace.audit_days());
    return expired;
end $$;
