-- A fork: a new job that begins with the steps that another has on record before a certain one.

-- The recorded steps of a job in their order, and whether a fork from this step has them; null: all. Refuses what cannot be forked.
create or replace function millrace.fork_check(the_job bigint, from_step text, live boolean) returns table (name text, place int, taken boolean)
language plpgsql volatile set enable_seqscan = off as $$
#variable_conflict use_column
declare
    names text[];
    n int;
    owed record;
begin
    names := array(select s.name from millrace.step s where s.job = the_job order by s.place nulls first, s.at, s.name);
    n := case when from_step is null then cardinality(names) + 1 else array_position(names, from_step) end;
    if n is null and exists (select from millrace.wait w where w.job = the_job and w.step = from_step) then
        n := cardinality(names) + 1;                      -- it waits there
    end if;
    if n is null then
        perform millrace.refuse(format('job %s has no step %L on record', the_job, left(from_step, 60)), 'from_step',
            case when names = '{}' then 'It has none: enqueue a job with its arguments.'
                 else format('It has %s. Without a step the fork has all of them.', array_to_string(names[1:20], ', ') || case when cardinality(names) > 20 then ', …' else '' end) end,
            'P0002', 'not_found');
    end if;
    if exists (select from millrace.job j where j.id = the_job and j.options ? 'undo') then
        perform millrace.refuse(format('job %s undoes a step of another job', the_job), 'id', 'Fork that one.', '55000', 'conflict');
    end if;
    if not coalesce(live, false) and millrace.job_lives(the_job) then
        perform millrace.refuse(format('job %s has not ended: it and its fork would both do what comes next', the_job), 'id',
            'Cancel it first, or say that both may: --live, in SQL live => true.', '55000', 'conflict');
    end if;
    -- A fork undoes none of these steps, and must not rely on one that somebody else may undo.
    select u.step, u.undo_job into owed from millrace.undo u where u.job = the_job and u.step = any (names[1 : n - 1]) order by array_position(names, u.step) limit 1;
    if found then
        perform millrace.refuse(format('step %L of job %s is undone by job %s if that has not happened yet', left(owed.step, 60), the_job, owed.undo_job), 'from_step',
            'Fork from that step or from an earlier one, or wait until nothing of the job is left to undo.', '55000', 'conflict');
    end if;
    return query select x.name, x.place::int, x.place < n from unnest(names) with ordinality x(name, place) order by x.place;
end $$;

-- Which steps a fork would have.
create or replace function millrace.fork_preview(id bigint, from_step text default null, live boolean default false, caller millrace.caller_name default current_user)
returns table (name text, taken boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.retry_check(fork_preview.id, caller => fork_preview.caller);
    return query select c.name, c.taken from millrace.fork_check(fork_preview.id, fork_preview.from_step, fork_preview.live) c order by c.place;
end $$;
select millrace.door_is('queue', 'fork_preview', 'worker, operator', 'staff');

-- Makes a job of the same kind, queue, priority, tenant, owner, tags, metadata and options, with the steps that are on record before from_step
-- (null: all of them). It has the unique key if that is free, waits for no other job, and does not end with the other's time. It undoes none of
-- the steps it was given: these stay the other job's. An operator forks with the arguments as they are.
create or replace function millrace.fork(
    id bigint, from_step text default null, args jsonb default null, queue text default null, live boolean default false,
    caller millrace.caller_name default current_user
) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
#variable_conflict use_variable
declare
    j millrace.job;
    new_id bigint;
    the_queue text;
    the_gate bigint;
    n int;
begin
    perform millrace.retry_check(fork.id, caller => fork.caller);
    if fork.args is not null then
        if not millrace.is_admin(fork.caller) and millrace.is_operator(fork.caller) then
            perform millrace.refuse('an operator may fork a job only with its own arguments', 'args', 'An admin may give other arguments.', '42501', 'permission');
        end if;
        if millrace.true_bytes(fork.args) > millrace.most('args') then
            perform millrace.refuse(format('args take %s bytes, more than the %s allowed', millrace.true_bytes(fork.args), millrace.most('args')), 'args',
                'Store large data elsewhere and pass a reference.', '53400', 'too_large');
        end if;
        perform millrace.check_sealed(fork.args);
    end if;
    -- Its steps are not deleted while they are copied.
    select x.* into j from millrace.job x where x.id = fork.id for share;
    if not found then
        perform millrace.must_see(fork.id, caller => fork.caller);
    end if;
    if fork.args is not null and millrace.is_sealed(j.args) and not millrace.is_sealed(fork.args) then
        perform millrace.refuse('the job''s arguments are encrypted, and these are not', 'args',
            'millrace jobs fork encrypts them; in SQL give what the library has encrypted.');
    end if;
    select q.name into the_queue from millrace.queue q where q.id = j.queue;
    if fork.queue is not null and fork.queue <> the_queue then
        the_queue := fork.queue;
        j.queue := millrace.queue_line(the_queue, j.tenant, j.limit_key is not null);
    end if;
    j.args := coalesce(fork.args, j.args);
    j.options := coalesce(j.options, '{}') - array['after', 'fence', 'before', 'undo', 'expires_at'];
    new_id := case when pg_current_xact_id() is not null then nextval('millrace.seq') end;    -- its id before numbers are drawn: see horizon()
    if j.unique_hash is not null and millrace.unique_take(j.unique_hash, new_id) <> new_id then
        j.unique_hash := null;
        j.unique_key := null;
    end if;
    if j.unique_hash is null then
        j.options := j.options - array['unique_for', 'unique_scope'];
    end if;

    insert into millrace.step (job, name, value, session, number, attempt, at, place, asked)
    select new_id, s.name, s.value, s.session, s.number, s.attempt, s.at, c.place, s.asked
      from millrace.fork_check(fork.id, fork.from_step, fork.live) c
      join millrace.step s on s.job = fork.id and s.name = c.name
     where c.taken;
    get diagnostics n = row_count;
    insert into millrace.job (id, kind, queue, lane, max_attempts, enqueued_at, args, unique_hash, unique_key, limit_key, limit_scope, tenant, owner, tags, metadata, options)
    values (new_id, j.kind, j.queue, j.lane, j.max_attempts, millrace.now(), j.args, j.unique_hash, j.unique_key, j.limit_key, j.limit_scope, j.tenant, j.owner,
            j.tags, j.metadata, nullif(j.options, '{}'));
    if (select k.searchable from millrace.kind k where k.id = j.kind) then
        perform millrace.fields_put(new_id, j.kind, j.args);
    end if;
    -- What it can read of the jobs before it.
    insert into millrace.edge (pred, succ, outcome) select e.pred, new_id, e.outcome from millrace.edge e where e.succ = fork.id and e.outcome in (1, 2, 3);
    insert into millrace.fork (job, origin, step, at) values (new_id, fork.id, fork.from_step, millrace.now());
    the_gate := millrace.key_gate(j.limit_key, j.limit_scope);
    if j.limit_key is not null and millrace.gate_has_parked(the_gate) then
        insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes) values (the_gate, j.lane, new_id, j.queue, j.kind, 0, 0);
    else
        insert into millrace.ready (seq, job, queue, kind, lane, gate) values (new_id, new_id, j.queue, j.kind, j.lane, the_gate);
        perform millrace.wake(j.queue, j.lane);
    end if;
    perform millrace.audited('job.fork', fork.id::text, jsonb_build_object('job', new_id, 'step', fork.from_step, 'steps', n,
        'args', case when fork.args is not null then 'others' end, 'queue', fork.queue), caller => fork.caller);
    return new_id;
end $$;
select millrace.door_is('queue', 'fork', 'worker, operator', 'staff', audited => true);

-- Where a job was forked from, and its own forks, the first twenty.
create or replace function millrace.forks_of(id bigint, caller millrace.caller_name default current_user) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
    perform millrace.must_see(forks_of.id, caller => forks_of.caller);
    return jsonb_build_object(
        'from', (select jsonb_build_object('job', f.origin, 'step', f.step) from millrace.fork f where f.job = forks_of.id),
        'as', coalesce((select jsonb_agg(jsonb_build_object('job', x.job, 'step', x.step) order by x.job)
                          from (select f.job, f.step from millrace.fork f where f.origin = forks_of.id order by f.job limit 20) x), '[]'));
end $$;
select millrace.door_is('queue', 'forks_of', 'worker, viewer', 'staff');
