-- Waiting in the middle of a handler: the run ends, its slot and its lease are free, and when the thing has come the next run finds it on
-- record. Steps have names, and the next run begins at the top: it gets what is on record, and goes on behind the wait.

-- The time that {"seconds": …}, {"at": …} or {"local": …, "zone": …} names, counted from t.
create or replace function millrace.wait_time(given jsonb, t timestamptz) returns timestamptz
language plpgsql stable as $$
declare
    seconds numeric;
    due timestamptz;
begin
    begin
        if given ? 'seconds' then
            seconds := (given ->> 'seconds')::numeric;
            if seconds is null or seconds not between 0 and 3155760000 then
                perform millrace.refuse('a wait takes 0 seconds to 100 years', 'seconds');
            end if;
            return t + make_interval(secs => seconds::float8);
        elsif given ? 'at' then
            due := (given ->> 'at')::timestamptz;
        elsif given ? 'local' then
            due := (given ->> 'local')::timestamp at time zone coalesce(given ->> 'zone', 'UTC');
        else
            return null;
        end if;
    exception when invalid_datetime_format or datetime_field_overflow or invalid_text_representation or invalid_parameter_value then
        perform millrace.refuse(format('%s is not a time', left(given::text, 100)), 'at', 'Give a time with its zone, such as 2027-01-31T09:00:00+01:00.');
    end;
    if due is null or due in ('infinity', '-infinity') or due > t + interval '100 years' then
        perform millrace.refuse('the time is missing, or more than 100 years away', 'at');
    end if;
    return due;
end $$;

-- Waits for a time (what: time), a signal (signal), other jobs (jobs) or a person's answer (approval), in the step of this name. Returns the
-- recorded value if that has come. null: this run has ended, and the job waits; the handler must return. Everything is one transaction: the
-- record of the run, the wait, the jobs to wait for, and the place in the timer.
create or replace function millrace.wait(token text, name text, what text, options jsonb default '{}') returns jsonb
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off as $$
#variable_conflict use_variable
declare
    t timestamptz := millrace.now();
    run record;
    held record;
    head record;
    w millrace.wait;
    ended smallint;
    answer jsonb;
    kind smallint := array_position(array['time', 'signal', 'jobs', 'approval'], wait.what);
    signal_name text;
    signal_key text;
    the_attempt smallint;
    the_crashes smallint;
    n int;
    last int;
begin
    select * into run from millrace.read_token(wait.token);
    if kind is null then
        perform millrace.refuse(format('a job cannot wait for %L', left(wait.what, 60)), 'what', 'Give time, signal, jobs or approval.');
    end if;
    if wait.name is null or length(wait.name) not between 1 and 128 then
        perform millrace.refuse('a step''s name must have 1 to 128 characters', 'name');
    end if;
    select l.at, array_position(l.ids, run.job) as place, l.attempts, l.crashes, l.ids, l.slot_all, l.slot_jobs, l.slot_gates into held
      from millrace.lease l where l.session = run.session and l.number = run.number and run.job = any (l.ids) for key share;
    if not found then
        -- The last answer may have been lost, and the lease has gone since.
        if exists (select from millrace.history h where h.id = run.job and h.session = run.session and h.number = run.number and h.outcome = 8) then
            return null;
        end if;
        perform millrace.refuse(format('the lease is lost: step %L does not wait', left(wait.name, 60)), 'token',
            'Roll back and stop: another run has the job, or will have it.', '55000', 'lease_lost');
    end if;
    select h.outcome into ended from millrace.history h
     where h.class = (run.number & 3)::smallint and h.started = held.at and h.id = run.job and h.session = run.session and h.number = run.number;
    if ended = 8 then
        return null;                                      -- the answer was lost
    elsif ended is not null then
        perform millrace.refuse(format('this run has ended: step %L does not wait', left(wait.name, 60)), 'token', 'Wait before the run''s end.', '55000', 'conflict');
    end if;
    perform millrace.build_keeps(run.session, run.job);
    select j.kind, j.queue, j.lane, j.tenant, j.owner into head from millrace.job j where j.id = run.job;
    if not found then
        perform millrace.refuse(format('job %s was deleted: step %L does not wait', run.job, left(wait.name, 60)), 'token', 'Stop.', '55000', 'lease_lost');
    end if;
    the_attempt := coalesce(held.attempts[held.place], 0);
    the_crashes := coalesce(held.crashes[held.place], 0);

    if kind = 2 then
        signal_name := wait.options ->> 'name';
        signal_key := coalesce(wait.options ->> 'key', '');
        perform millrace.signal_check(signal_name, signal_key);
        if signal_key like 'millrace.job.%' and signal_key <> 'millrace.job.' || run.job then
            perform millrace.refuse(format('the key %L is for the signals of another job', left(signal_key, 60)), 'key', null, '42501', 'permission');
        end if;
    elsif kind = 4 then
        signal_name := 'millrace.approval';
        signal_key := millrace.approval_ask(run.job, wait.name, wait.options, head.tenant, head.owner, t)::text;
    end if;
    if signal_name is not null then
        perform millrace.turns_wait('signal', array[millrace.signal_bucket(signal_name, signal_key)]);
    end if;
    select jsonb_build_object('recorded', s.value) into answer from millrace.step s where s.job = run.job and s.name = wait.name;
    if found then
        return answer -> 'recorded';
    end if;
    select count(*), coalesce(max(s.place), 0) into n, last from millrace.step s where s.job = run.job;
    if n >= millrace.counted('steps') then
        perform millrace.refuse(format('job %s already has 1000 steps on record, the maximum', run.job), 'name',
            'Record fewer, larger steps.', '53400', 'too_large');
    end if;
    select x.* into w from millrace.wait x where x.job = run.job;
    if w.job is null or w.step <> wait.name then          -- a run that waits elsewhere now does not wait where it did
        w.job := run.job;
        w.step := wait.name;
        w.what := kind;
        w.name := signal_name;
        w.key := signal_key;
        w.since := t;
        w.due := case when kind = 3 then null else millrace.wait_time(coalesce(wait.options, '{}'), t) end;
        w.jobs := case when kind = 3 then millrace.wait_jobs(run.job, wait.options, head.tenant) end;
        if kind = 1 and w.due is null then
            perform millrace.refuse('the time to wait until is missing', 'options', 'Give {"seconds": 60} or {"at": "2027-01-31T09:00:00+01:00"}.');
        end if;
    end if;
    w.attempt := the_attempt;
    w.crashes := the_crashes;
    -- An older snapshot shows no signal that has been kept since: signals_tell looks once more.
    w.look_at := case when kind in (2, 4) and current_setting('transaction_isolation') <> 'read committed' then t end;

    answer := case
        when kind in (2, 4) then coalesce(millrace.signal_take(run.job, signal_name, signal_key), case when w.due <= t then '{"timeout": true}'::jsonb end)
        when kind = 1 and w.due <= t then 'null'::jsonb
        when kind = 3 then millrace.wait_results(run.job, w.jobs) end;
    if answer is not null then
        delete from millrace.wait x where x.job = run.job;
        insert into millrace.step (job, name, value, session, number, attempt, at, place, asked)
        values (run.job, wait.name, answer, run.session, run.number, the_attempt + 1, t, greatest(n, last) + 1, millrace.wait_asked(w));
        return answer;
    end if;

    -- The run ends, as one that was put off.
    w.place := case when kind <> 3 then coalesce(w.due, t + interval '100 years') end;
    insert into millrace.wait select w.*
        on conflict (job) do update set step = excluded.step, what = excluded.what, name = excluded.name, key = excluded.key, since = excluded.since,
            due = excluded.due, place = excluded.place, attempt = excluded.attempt, crashes = excluded.crashes, jobs = excluded.jobs, look_at = excluded.look_at;
    insert into millrace.history (id, session, number, started, finished, kind, queue, ms, class, outcome, attempt, crashes)
    values (run.job, run.session, run.number, held.at, t, head.kind, head.queue, (extract(epoch from t - held.at) * 1000)::int, run.number & 3, 8,
            the_attempt + 1, the_crashes);
    perform millrace.lease_slots_free(held.slot_all, coalesce(held.slot_jobs, held.ids), held.slot_gates, array[run.job]);
    if kind = 3 then
        insert into millrace.blocked (job, due, starts, waits, fresh) values (run.job, null, 2, true, true);
        perform pg_notify('millrace', 'flows');
    else
        insert into millrace.timer (due, job, queue, kind, lane, attempt, crashes)
        values (w.place, run.job, head.queue, head.kind, millrace.lane_of(head.lane, the_crashes, false), the_attempt, the_crashes);
        if w.place < t + interval '2 s' then
            perform millrace.wake(head.queue, millrace.lane_of(head.lane, the_crashes, false));
        end if;
    end if;
    if exists (select from millrace.cancel c where c.session = run.session and c.number = run.number and c.job = run.job) then
        perform millrace.cancel_now(run.job);             -- it was cancelled while it ran
    end if;
    perform millrace.flows_note(array[run.job], array[8::smallint], run.session, array[run.number]);
    return null;
end $$;
select millrace.door_is('queue', 'wait', 'worker', 'staff');

-- The jobs that a run makes and waits for: {"jobs": [{"kind": …, "args": …}, …]}. They are of the same tenant, unless they say another.
create or replace function millrace.wait_jobs(the_job bigint, options jsonb, the_tenant text) returns bigint[]
language plpgsql volatile as $$
declare
    ids bigint[];
begin
    if jsonb_typeof(options -> 'jobs') is distinct from 'array' or jsonb_array_length(options -> 'jobs') not between 1 and 1000 then
        perform millrace.refuse('a run waits for 1 to 1000 jobs at once', 'jobs', 'Spawn more, and wait for one job that follows them all.');
    end if;
    select array_agg(e.id order by e.id) into ids
      from millrace.enqueue_many((select jsonb_agg(case when the_tenant is null or j ? 'tenant' then j else j || jsonb_build_object('tenant', the_tenant) end order by n)
                                    from jsonb_array_elements(options -> 'jobs') with ordinality x(j, n))) e;
    if the_job = any (ids) then
        perform millrace.refuse(format('job %s would wait for itself: it has the unique key of a job that it makes', the_job), 'jobs',
            'Give that job another key, or another scope of its key.');
    elsif millrace.flow_waits(ids, the_job) then
        perform millrace.refuse(format('job %s would wait for itself: a job that it makes waits for its end', the_job), 'jobs',
            'A job that a run waits for must not come after that run''s job, and must not replace the holder of its unique key.');
    end if;
    -- It may have waited for one of them before, or one may have ended.
    insert into millrace.edge (pred, succ, outcome)
    select i.id, the_job, (select h.outcome from millrace.history h where h.id = i.id and h.outcome in (1, 2, 3) limit 1)
      from (select distinct unnest(ids) as id) i
        on conflict (pred, succ) do update set outcome = excluded.outcome, session = null, number = null;
    return ids;
end $$;

-- What became of these jobs, in the order in which they were made; null while one of them has not ended.
create or replace function millrace.wait_results(the_job bigint, ids bigint[]) returns jsonb
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    results jsonb;
    n int;
begin
    -- One that was deleted has not succeeded.
    select count(*) filter (where e.outcome is not null or not exists (select from millrace.job j where j.id = i.id)),
           jsonb_agg(jsonb_build_object('id', i.id, 'succeeded', coalesce(e.outcome = 1, false), 'result', millrace.result_of(i.id)) order by i.place)
      into n, results
      from unnest(ids) with ordinality i(id, place)
      left join lateral (
        select coalesce((select x.outcome from millrace.history x where x.id = i.id and x.outcome in (1, 2, 3) limit 1),
                        (select d.outcome from millrace.edge d where d.pred = i.id and d.succ = the_job)) as outcome) e on true;
    return case when n = cardinality(ids) then jsonb_build_object('jobs', results) end;
end $$;

-- What a job waits for, in words and fields; null: it waits for nothing.
create or replace function millrace.wait_of(the_job bigint) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select jsonb_strip_nulls(jsonb_build_object('step', w.step, 'what', (array['time', 'signal', 'jobs', 'approval'])[w.what], 'name', case when w.what = 2 then w.name end,
               'key', case when w.what = 2 then w.key end, 'approval', case when w.what = 4 then w.key end, 'since', w.since, 'due', w.due, 'jobs', to_jsonb(w.jobs)))
      from millrace.wait w
     where w.job = the_job
       and (exists (select from millrace.timer d where d.job = w.job and d.due = w.place) or exists (select from millrace.blocked b where b.job = w.job and w.what = 3))
$$;
