-- Schedules: the operators' functions and the workers'. There is no leader: the worker that gets a due row's lock fires it, and the others
-- skip it. A computed time counts only while the schedule is still the one it was computed for.

create or replace function millrace.schedule_must_exist(the_name text) returns void
language plpgsql as $$
begin
    perform millrace.refuse(format('there is no schedule %L', left(the_name, 60)), 'name',
        'millrace schedules list shows them all.', 'P0002', 'not_found');
end $$;

-- Makes a schedule or changes it; 'unchanged' when it is all of this already. paused: null leaves it as it is.
create or replace function millrace.schedule_set(
    name text, expression text, kind text, args jsonb default '{}', zone text default 'UTC', queue text default null,
    priority int default null, tenant text default null, catch_up text default 'latest', catch_up_limit int default 1000,
    overlap text default 'allow', jitter interval default '0', anchor timestamptz default null, paused boolean default null,
    caller millrace.caller_name default current_user
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    change text := millrace.schedule_put(name, expression, kind, args, zone, queue, priority, tenant, catch_up, catch_up_limit, overlap, jitter, anchor, paused);
begin
    if change <> 'unchanged' then
        perform millrace.audited('schedule.set', name, jsonb_build_object('change', change, 'expression', expression, 'zone', zone, 'kind', kind, 'queue', queue),
            caller => schedule_set.caller);
    end if;
    return change;
end $$;
select millrace.door_is('queue', 'schedule_set', 'worker', 'staff', audited => true);

create or replace function millrace.schedule_put(
    name text, expression text, kind text, args jsonb, zone text, queue text,
    priority int, tenant text, catch_up text, catch_up_limit int,
    overlap text, jitter interval, anchor timestamptz, paused boolean
) returns text
language plpgsql volatile as $$
declare
    t timestamptz := millrace.now();
    old millrace.schedule;
    new millrace.schedule;
begin
    if schedule_put.name is null or schedule_put.name !~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$' then
        perform millrace.refuse(format('the schedule''s name %L is malformed', left(schedule_put.name, 60)), 'name',
            'A name has 1 to 128 letters, digits and _ . : / - and begins with a letter or digit.');
    end if;
    if length(schedule_put.expression) not between 1 and 200 or schedule_put.expression is null then
        perform millrace.refuse('expression must have 1 to 200 characters', 'expression', 'Give for example 0 2 * * * or every 15m.');
    end if;
    if schedule_put.zone is null or schedule_put.zone !~ '^[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,3}$' then
        perform millrace.refuse(format('the time zone %L is malformed', left(schedule_put.zone, 60)), 'zone', 'Give a name such as Europe/Berlin.');
    end if;
    if schedule_put.args is null then
        perform millrace.refuse('args is null', 'args', 'Give a JSON value, {} for none.');
    end if;
    if pg_column_size(schedule_put.args) > 1048576 then
        perform millrace.refuse(format('args take %s bytes, more than the 1048576 allowed', pg_column_size(schedule_put.args)), 'args',
            'Store large data elsewhere and pass a reference.', '53400', 'too_large');
    end if;
    if schedule_put.priority not between 0 and 9 then
        perform millrace.refuse(format('priority %s is out of range', schedule_put.priority), 'priority', 'Give 0 (first) to 9 (last); 4 is the default.');
    end if;
    if millrace.is_no_tenant(schedule_put.tenant) then
        perform millrace.refuse('tenant must have 1 to 128 characters', 'tenant');
    end if;
    if schedule_put.catch_up is null or schedule_put.catch_up not in ('none', 'latest', 'all') then
        perform millrace.refuse(format('catch_up %L is unknown', left(schedule_put.catch_up, 60)), 'catch_up', 'Give none, latest or all.');
    end if;
    if schedule_put.catch_up_limit is null or schedule_put.catch_up_limit not between 1 and 10000 then
        perform millrace.refuse('catch_up_limit is out of range', 'catch_up_limit', 'Give 1 to 10000.');
    end if;
    if schedule_put.overlap is null or schedule_put.overlap not in ('allow', 'skip', 'replace') then
        perform millrace.refuse(format('overlap %L is unknown', left(schedule_put.overlap, 60)), 'overlap', 'Give allow, skip or replace.');
    end if;
    if schedule_put.jitter is null or schedule_put.jitter < interval '0' or schedule_put.jitter > interval '1 day' then
        perform millrace.refuse('jitter is out of range', 'jitter', 'Give an interval from 0 to a day.');
    end if;
    if schedule_put.anchor in ('infinity', '-infinity') then
        perform millrace.refuse('anchor is infinite', 'anchor', 'Give a point in time.');
    end if;
    perform millrace.kind_id(schedule_put.kind);
    if schedule_put.queue is not null then
        perform millrace.queue_id(schedule_put.queue);
    end if;

    insert into millrace.schedule (name, kind, args, queue, priority, tenant, expression, zone, catch_up, catch_up_limit, overlap, jitter,
        anchor, paused_at, planned_from, created_at, changed_at)
    values (schedule_put.name, schedule_put.kind, schedule_put.args, schedule_put.queue, schedule_put.priority, schedule_put.tenant,
        schedule_put.expression, schedule_put.zone, schedule_put.catch_up, schedule_put.catch_up_limit, schedule_put.overlap, schedule_put.jitter,
        date_trunc('second', coalesce(schedule_put.anchor, t)), case when schedule_put.paused then t end, t, t, t)
    on conflict on constraint schedule_name_key do nothing;
    if found then
        perform pg_notify('millrace', 'schedules');       -- rare: tell everybody
        return 'created';
    end if;

    select s.* into strict old from millrace.schedule s where s.name = schedule_put.name for update;
    new := old;
    new.kind := schedule_put.kind;
    new.args := schedule_put.args;
    new.queue := schedule_put.queue;
    new.priority := schedule_put.priority;
    new.tenant := schedule_put.tenant;
    new.expression := schedule_put.expression;
    new.zone := schedule_put.zone;
    new.catch_up := schedule_put.catch_up;
    new.catch_up_limit := schedule_put.catch_up_limit;
    new.overlap := schedule_put.overlap;
    new.jitter := schedule_put.jitter;
    new.anchor := date_trunc('second', coalesce(schedule_put.anchor, case when old.expression = new.expression then old.anchor else t end));
    if schedule_put.paused is not null and schedule_put.paused <> (old.paused_at is not null) then
        new.paused_at := case when schedule_put.paused then t end;
    end if;
    if new = old then
        return 'unchanged';
    end if;
    if (new.expression, new.zone, new.anchor) is distinct from (old.expression, old.zone, old.anchor) or new.paused_at is distinct from old.paused_at then
        new.planned_from := t;
        new.next_at := null;
    end if;
    update millrace.schedule s
       set kind = new.kind, args = new.args, queue = new.queue, priority = new.priority, tenant = new.tenant, expression = new.expression,
           zone = new.zone, catch_up = new.catch_up, catch_up_limit = new.catch_up_limit, overlap = new.overlap, jitter = new.jitter,
           anchor = new.anchor, paused_at = new.paused_at, planned_from = new.planned_from, next_at = new.next_at, revision = old.revision + 1,
           problem = null, problem_at = null, changed_at = t
     where s.id = old.id;
    perform pg_notify('millrace', 'schedules');
    return 'changed';
end $$;

create or replace function millrace.schedule_remove(name text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.schedule s where s.name = schedule_remove.name;
    if not found then
        perform millrace.schedule_must_exist(schedule_remove.name);
    end if;
    perform pg_notify('millrace', 'schedules');
    perform millrace.audited('schedule.remove', schedule_remove.name, null, caller => schedule_remove.caller);
    return true;
end $$;
select millrace.door_is('queue', 'schedule_remove', 'admin', 'staff', audited => true);

-- The times of a pause are neither missed nor made good: it was wanted.
create or replace function millrace.schedule_pause(name text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
begin
    update millrace.schedule s
       set paused_at = t, next_at = null, revision = s.revision + 1, problem = null, problem_at = null, changed_at = t
     where s.name = schedule_pause.name and s.paused_at is null;
    if not found then
        if not exists (select from millrace.schedule s where s.name = schedule_pause.name) then
            perform millrace.schedule_must_exist(schedule_pause.name);
        end if;
        return false;
    end if;
    perform pg_notify('millrace', 'schedules');
    perform millrace.audited('schedule.pause', schedule_pause.name, null, caller => schedule_pause.caller);
    return true;
end $$;
select millrace.door_is('queue', 'schedule_pause', 'admin, operator', 'staff', audited => true);

create or replace function millrace.schedule_resume(name text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
begin
    update millrace.schedule s
       set paused_at = null, planned_from = t, revision = s.revision + 1, changed_at = t
     where s.name = schedule_resume.name and s.paused_at is not null;
    if not found then
        if not exists (select from millrace.schedule s where s.name = schedule_resume.name) then
            perform millrace.schedule_must_exist(schedule_resume.name);
        end if;
        return false;
    end if;
    perform pg_notify('millrace', 'schedules');
    perform millrace.audited('schedule.resume', schedule_resume.name, null, caller => schedule_resume.caller);
    return true;
end $$;
select millrace.door_is('queue', 'schedule_resume', 'admin, operator', 'staff', audited => true);

-- Enqueues a schedule's job. The caller holds the lock of the schedule's row.
create or replace function millrace.schedule_enqueue(the_id int, the_time timestamptz, by_hand boolean) returns bigint
language plpgsql volatile as $$
declare
    the_schedule millrace.schedule;
    share float8;
begin
    select s.* into strict the_schedule from millrace.schedule s where s.id = the_id;
    -- The same for every caller: computed from the name and the time.
    share := (hashtextextended(the_schedule.name || '@' || extract(epoch from the_time), 0) & 2147483647)::float8 / 2147483648;
    return millrace.enqueue(
        the_schedule.kind, the_schedule.args, queue => the_schedule.queue, priority => the_schedule.priority::int,
        run_at => case when by_hand then null else the_time + share * the_schedule.jitter end, tenant => the_schedule.tenant,
        metadata => jsonb_build_object('schedule', the_schedule.name,
            'fire_at', to_char(the_time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
            || case when by_hand then '{"manual": true}'::jsonb else '{}' end);
end $$;

-- Fires now, even if it is paused or its last job has not ended; its planned times stay.
create or replace function millrace.schedule_run(name text, caller millrace.caller_name default current_user) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.schedule;
    t timestamptz := millrace.now();
    the_job bigint;
begin
    select s.* into one from millrace.schedule s where s.name = schedule_run.name for update;
    if not found then
        perform millrace.schedule_must_exist(schedule_run.name);
    end if;
    while exists (select from millrace.schedule_fire f where f.schedule = one.id and f.fire_at = t) loop
        t := t + interval '1 microsecond';
    end loop;
    the_job := millrace.schedule_enqueue(one.id, t, true);
    insert into millrace.schedule_fire (schedule, fire_at, what, job, fired_at) values (one.id, t, 'manual', the_job, t);
    update millrace.schedule s set last_job = the_job where s.id = one.id;
    perform millrace.audited('schedule.run', schedule_run.name, jsonb_build_object('job', the_job), caller => schedule_run.caller);
    return the_job;
end $$;
select millrace.door_is('queue', 'schedule_run', 'admin, operator', 'staff', audited => true);

-- When the next look is due; null: nothing is planned. A schedule with a problem is looked at again after ten seconds: the next worker may
-- know its zone, or the full queue may have room again.
create or replace function millrace.schedule_wait(out now timestamptz, out next_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    now := millrace.now();
    if exists (select from millrace.schedule s
                where s.paused_at is null and s.next_at is null and (s.problem_at is null or s.problem_at < schedule_wait.now - interval '10 s')) then
        next_at := now;
        return;
    end if;
    select s.next_at into next_at from millrace.schedule s
     where s.paused_at is null and s.next_at is not null and (s.problem_at is null or s.problem_at < schedule_wait.now - interval '10 s')
     order by s.next_at limit 1;
end $$;
select millrace.door_is('queue', 'schedule_wait', 'worker', 'staff');

-- Those that need a worker: due, or without a next time.
create or replace function millrace.schedules_due(wanted int default 100)
returns table (id int, name text, expression text, zone text, anchor timestamptz, catch_up text, catch_up_limit int, revision bigint,
    planned_from timestamptz, next_at timestamptz, problem text, now timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    t timestamptz := millrace.now();
begin
    return query
    select s.id, s.name, s.expression, s.zone, s.anchor, s.catch_up, s.catch_up_limit, s.revision, s.planned_from, s.next_at, s.problem, t
      from millrace.schedule s
     where s.paused_at is null and (s.next_at <= t or s.next_at is null) and (s.problem_at is null or s.problem_at < t - interval '10 s')
     order by s.next_at nulls first
     limit wanted;
end $$;
select millrace.door_is('queue', 'schedules_due', 'worker', 'staff');

-- Takes a worker's plan for a schedule: its fires, oldest first, the missed times, and the next time. All of it or nothing; null when the
-- schedule has changed meanwhile, or when another worker has it. Returns how many jobs were enqueued.
create or replace function millrace.schedule_advance(
    the_id int, the_revision bigint, expected timestamptz, fires timestamptz[], missed_first timestamptz, missed_last timestamptz,
    missed_count bigint, following timestamptz
) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.schedule;
    at timestamptz;
    t timestamptz := millrace.now();
    enqueued int := 0;
begin
    select s.* into one from millrace.schedule s where s.id = the_id for update skip locked;
    if not found or one.revision <> the_revision or one.paused_at is not null or one.next_at is distinct from expected then
        return null;
    end if;
    if missed_count > 0 then
        insert into millrace.schedule_fire (schedule, fire_at, what, fired_at, missed, until)
        values (the_id, missed_first, 'missed', t, missed_count, missed_last) on conflict do nothing;
        one.missed := one.missed + missed_count;
        one.last_missed_at := missed_last;
    end if;
    foreach at in array fires loop
        -- After a failover the clock may show a time again.
        continue when exists (select from millrace.schedule_fire f where f.schedule = the_id and f.fire_at = at);
        if one.last_job is not null and one.overlap <> 'allow' and millrace.job_lives(one.last_job) then
            if one.overlap = 'skip' then
                insert into millrace.schedule_fire (schedule, fire_at, what, fired_at) values (the_id, at, 'skipped', t);
                one.skipped := one.skipped + 1;
                continue;
            end if;
            perform millrace.cancel_now(one.last_job);
        end if;
        one.last_job := millrace.schedule_enqueue(one.id, at, false);
        one.last_fire_at := at;
        one.fired := one.fired + 1;
        insert into millrace.schedule_fire (schedule, fire_at, what, job, fired_at) values (the_id, at, 'fired', one.last_job, t);
        enqueued := enqueued + 1;
    end loop;
    update millrace.schedule s
       set next_at = following, last_job = one.last_job, last_fire_at = one.last_fire_at, fired = one.fired, skipped = one.skipped,
           missed = one.missed, last_missed_at = one.last_missed_at, problem = null, problem_at = null
     where s.id = the_id;
    return enqueued;
end $$;
select millrace.door_is('queue', 'schedule_advance', 'worker', 'staff');

-- A worker could not understand it, or the database refused its job. Not before two seconds have passed: a worker that lacks the zone
-- must not speak for one that has it, and fires at once.
create or replace function millrace.schedule_problem(the_id int, the_revision bigint, the_problem text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    update millrace.schedule s set problem = left(the_problem, 500), problem_at = millrace.now()
     where s.id = the_id and s.revision = the_revision and s.paused_at is null
       and coalesce(s.next_at, s.planned_from) < millrace.now() - interval '2 s';
    return found;
end $$;
select millrace.door_is('queue', 'schedule_problem', 'worker', 'staff');

create or replace view millrace.schedules as
select s.name, s.kind, s.expression, s.zone, s.queue, s.priority::int as priority, s.tenant, s.args, s.catch_up, s.catch_up_limit, s.overlap, s.jitter,
       s.paused_at, s.anchor, s.next_at, s.last_fire_at, s.last_job, s.fired, s.skipped, s.missed, s.last_missed_at, s.problem, s.problem_at,
       s.created_at, s.changed_at
  from millrace.schedule s;
select millrace.view_is('queue', 'schedules', 'worker, operator');

-- The results of a schedule's times, newest first.
create or replace function millrace.schedule_fires(name text, page int default 20)
returns table (fire_at timestamptz, what text, job bigint, fired_at timestamptz, missed bigint, until timestamptz)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select f.fire_at, f.what, f.job, f.fired_at, f.missed, f.until
      from millrace.schedule s join millrace.schedule_fire f on f.schedule = s.id
     where s.name = schedule_fires.name
     order by f.fire_at desc limit least(page, 10000)
$$;
select millrace.door_is('queue', 'schedule_fires', 'admin, viewer', 'staff');

-- Fires are kept for 14 days, and of each schedule 10,000 at most.
create or replace function millrace.schedule_trim() returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    one int;
    beyond timestamptz;
    gone bigint;
    trimmed bigint := 0;
begin
    for one in select s.id from millrace.schedule s loop
        select f.fire_at into beyond from millrace.schedule_fire f where f.schedule = one order by f.fire_at desc offset 10000 limit 1;
        delete from millrace.schedule_fire f
         where f.schedule = one and f.fire_at <= greatest(beyond, millrace.now() - interval '14 days');
        get diagnostics gone = row_count;
        trimmed := trimmed + gone;
    end loop;
    return trimmed;
end $$;
