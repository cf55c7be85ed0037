-- Workers' reports about running jobs, a batch at a time: objects with session, number, job, attempt; age, fraction, stage and note of the
-- last progress, if any (age in seconds: the worker's clock is not the database's); lines of {level, age, line}, and how many lines before
-- them were skipped. Progress needs a live lease. Lines do not, because they tell what has happened; they carry the run's token. The newest
-- 200 lines and 64 KiB of a job are kept. Returns the jobs to report again later, because an open transaction has locked their row.
create or replace function millrace.report(runs jsonb) returns bigint[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
declare
    t timestamptz := millrace.now();
    one record;
    held record;
    moves boolean;
    fresh int;
    size bigint;
    total record;
    later bigint[] := '{}';
begin
    -- Progress need not wait for the disk; lines of the log do.
    if not exists (select from jsonb_array_elements(report.runs) r where jsonb_typeof(r -> 'lines') = 'array' and r -> 'lines' <> '[]') then
        perform set_config('synchronous_commit', 'off', true);
    end if;
    for one in                                            -- in one order, so that two workers never wait for each other in a circle
        select r.* from jsonb_to_recordset(report.runs) r(session bigint, number bigint, job bigint, attempt int,
               age float8, fraction float8, stage text, note text, lines jsonb, skipped int)
         order by r.job
    loop
        moves := false;
        if one.age is not null then
            -- It never waits: a lease that is being ended or rescued counts as gone.
            select l.at into held from millrace.lease l
             where l.session = one.session and l.number = one.number and one.job = any (l.ids)
               for key share skip locked;
            -- A run that its handler's own transaction has ended well may still say how far it came.
            moves := found and not exists (
                select from millrace.history h
                 where h.class = (one.number & 3)::smallint and h.started = held.at and h.id = one.job
                   and h.session = one.session and h.number = one.number and h.outcome <> 1);
        end if;
        fresh := coalesce(jsonb_array_length(one.lines), 0);
        continue when (not moves and fresh = 0) or not exists (select from millrace.job j where j.id = one.job);
        perform from millrace.progress p where p.job = one.job for update skip locked;
        if not found and exists (select from millrace.progress p where p.job = one.job) then
            later := later || one.job;
            continue;
        end if;
        select coalesce(sum(octet_length(x.line)), 0) into size from jsonb_to_recordset(one.lines) x(line text);
        insert into millrace.progress as p (job, session, number, fraction, stage, note, at, lines, bytes)
        select one.job, x.*, fresh + coalesce(one.skipped, 0), size
          from (select one.session, one.number, case when one.fraction is not null then least(greatest(one.fraction, 0), 1) end,
                       left(one.stage, 128), left(one.note, 1000), t - make_interval(secs => greatest(one.age, 0)) where moves
                union all
                select null, null, null, null, null, null where not moves) x
            on conflict (job) do update
           set lines = p.lines + excluded.lines, bytes = p.bytes + excluded.bytes,
               session = case when moves then excluded.session else p.session end,
               number = case when moves then excluded.number else p.number end,
               fraction = case when moves then excluded.fraction else p.fraction end,
               stage = case when moves then excluded.stage else p.stage end,
               note = case when moves then excluded.note else p.note end,
               at = case when moves then excluded.at else p.at end
        returning p.lines, p.bytes into total;
        if fresh > 0 then
            insert into millrace.log_line (job, n, at, level, session, number, attempt, line)
            select one.job, total.lines - fresh + x.place, t - make_interval(secs => greatest((x.said ->> 'age')::float8, 0)),
                   (x.said ->> 'level')::smallint, one.session, one.number, one.attempt, x.said ->> 'line'
              from jsonb_array_elements(one.lines) with ordinality x(said, place);
            if total.lines > 200 or total.bytes > 65536 then
                delete from millrace.log_line l
                 where l.job = one.job and l.n < (
                    select min(k.n) from (
                        select x.n, sum(octet_length(x.line)) over (order by x.n desc) as size
                          from millrace.log_line x where x.job = one.job) k
                     where k.n > total.lines - 200 and k.size <= 65536);
            end if;
        end if;
    end loop;
    return later;
end $$;
select millrace.door_is('queue', 'report', 'worker', 'staff');

-- The kept lines of a job after the given one, oldest first.
create or replace function millrace.logs(id bigint, after bigint default 0, caller millrace.caller_name default current_user)
returns table (n bigint, at timestamptz, level text, attempt int, token text, line text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
begin
    perform millrace.must_see(logs.id, caller => logs.caller);
    return query
    select l.n, l.at, (array['debug', 'info', 'warning', 'error'])[l.level + 1], l.attempt::int,
           format('%s-%s-%s', to_hex(l.session), l.number, l.job), l.line
      from millrace.log_line l where l.job = logs.id and l.n > coalesce(logs.after, 0) order by l.n;
end $$;
select millrace.door_is('queue', 'logs', 'worker, operator', 'staff');

create or replace function millrace.progress_of(the_job bigint) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select jsonb_build_object('fraction', p.fraction, 'stage', p.stage, 'note', p.note, 'at', p.at)
      from millrace.progress p where p.job = the_job and p.at is not null
$$;
select millrace.door_is('queue', 'progress_of', 'admin', 'staff');

create or replace function millrace.result_of(the_job bigint) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select r.value from millrace.result r where r.job = the_job
$$;
select millrace.door_is('queue', 'result_of', 'admin', 'staff');

-- The result of a job that the caller may see; null: it has none, or none yet.
create or replace function millrace.result(id bigint, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.must_see(result.id, caller => result.caller);
    return millrace.result_of(result.id);
end $$;
select millrace.door_is('queue', 'result', 'client, worker, operator', 'tenant job',
    'The result of one of the caller''s jobs.');

-- Waits until a job has ended, at most for 5 seconds, and returns the state that it has then. The caller's statement keeps its snapshot
-- meanwhile, and old row versions with it, so a call is short and a longer wait is several calls. It holds no lock while it sleeps: each look
-- is undone, and with it go the locks on the tables that it read.
create or replace function millrace.wait_for(id bigint, within interval default '5 s', caller millrace.caller_name default current_user) returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
declare
    pause float8 := 0.01;
    over timestamptz;
    the_state text;
begin
    if wait_for.within is null or wait_for.within not between interval '0' and interval '5 seconds' then
        perform millrace.refuse('one call waits for 0 to 5 seconds', 'within', 'Call it again until the job has ended.');
    end if;
    if wait_for.within > interval '0' and (pg_current_xact_id_if_assigned() is not null or current_setting('transaction_isolation') <> 'read committed') then
        perform millrace.refuse('a transaction that has written, or that keeps to one snapshot, cannot wait for a job', 'within',
            'Commit first: workers see a job after the commit, and others would wait for what this transaction holds.', '55000', 'conflict');
    end if;
    over := clock_timestamp() + wait_for.within;
    loop
        begin
            perform millrace.must_see(wait_for.id, caller => wait_for.caller);
            the_state := (select j.state from millrace.job(wait_for.id, caller => wait_for.caller) j);
            raise sqlstate 'MR001';                       -- undoes the look; variables stay
        exception when sqlstate 'MR001' then null;
        end;
        exit when the_state in ('succeeded', 'cancelled', 'dead') or clock_timestamp() >= over;
        perform pg_sleep(least(pause, greatest(0.001, extract(epoch from over - clock_timestamp()))));
        pause := least(pause * 1.5, 0.25);
    end loop;
    return the_state;
end $$;
select millrace.door_is('queue', 'wait_for', 'client, worker, operator', 'tenant job',
    'Waits until one of the caller''s jobs has ended. For back ends with their own connection.', for_apps => false);

-- Which build of its program a worker is, by what it says of its version; null: it does not say.
create or replace function millrace.build_of(version text) returns text
language sql immutable as $$ select nullif(substr(version, nullif(position('+' in version), 0) + 1), '') $$;

-- The runs of a job, the first first: each with its worker and that worker's build. At most the last 100 that ended, and the one that is
-- under way, which has no end.
create or replace function millrace.runs(id bigint, caller millrace.caller_name default current_user)
returns table (attempt int, started_at timestamptz, ended_at timestamptz, outcome text, worker text, build text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
begin
    perform millrace.must_see(runs.id, caller => runs.caller);
    return query
    select h.attempt::int, h.started, h.finished,
           (array['succeeded', 'cancelled', 'dead', 'retried', 'snoozed', 'released', 'crashed', 'waiting'])[h.outcome], p.name, millrace.build_of(p.version)
      from (select x.* from millrace.history x where x.id = runs.id and x.session <> 0 order by x.finished desc limit 100) h
      left join millrace.process p on p.session = h.session
     order by h.finished;
    return query
    select r.attempt, r.at, null::timestamptz, 'running', p.name, millrace.build_of(p.version)
      from millrace.job_running(runs.id) r left join millrace.process p on p.session = r.session;
end $$;
select millrace.door_is('queue', 'runs', 'worker, viewer', 'staff');

-- Keeps the results of the jobs that succeeded. There is no limit here, because one result must not fail the ends of other jobs: the
-- library and complete have refused results that are too large.
create or replace function millrace.results_keep(ids bigint[], results text[]) returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    insert into millrace.result (job, value)
    select r.id, r.value::jsonb from unnest(ids, results) r(id, value)
        on conflict (job) do update set value = excluded.value
$$;

-- In full, because a table has a column of this name too.
create or replace function millrace.trace_forget(jobs bigint[]) returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    delete from millrace.step s where s.job = any (trace_forget.jobs);
    delete from millrace.progress p where p.job = any (trace_forget.jobs);
    delete from millrace.log_line l where l.job = any (trace_forget.jobs);
    delete from millrace.result r where r.job = any (trace_forget.jobs);
    delete from millrace.wait w where w.job = any (trace_forget.jobs);
    delete from millrace.undo u where u.job = any (trace_forget.jobs);
    delete from millrace.undo u where u.undo_job = any (trace_forget.jobs);
    delete from millrace.fork f where f.job = any (trace_forget.jobs);
    delete from millrace.approval a where a.job = any (trace_forget.jobs);
    delete from millrace.approval_person p where p.job = any (trace_forget.jobs);
    delete from millrace.output o where o.job = any (trace_forget.jobs);
    delete from millrace.published p where p.job = any (trace_forget.jobs);
    delete from millrace.old_way o where o.job = any (trace_forget.jobs);
    delete from millrace.job_field x where x.job = any (trace_forget.jobs);
    -- Of edges to others stays what these still have to know: see flows_expire.
    delete from millrace.edge e where e.pred = any (trace_forget.jobs) and (e.outcome = 1 or not exists (select from millrace.job j where j.id = e.succ))
$$;

-- Traces are deleted after their jobs, in whatever way those went. The sweep walks in order of jobs, `stretch` jobs a minute, and continues
-- at once where it found something. Nobody sees the leftovers meanwhile, because every door looks for the job first. Steps that are still to be
-- undone stay as long as the job that undoes them. Returns how many rows it deleted.
create or replace function millrace.trace_sweep(stretch int default 20000) returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off as $$
declare
    one record;
    place bigint;
    last bigint;
    n int;
    gone bigint;
    total bigint := 0;
begin
    for one in select w.of, w.upto from millrace.trace_sweep w order by w.of for update loop
        place := one.upto;
        for turn in 1 .. 10 loop
            execute format('select max(x.job), count(*) from (select e.job from millrace.%I e where e.job > $1 order by e.job limit $2) x', one.of)
               into last, n using place, stretch;
            execute format('delete from millrace.%I e where e.job > $1 and e.job <= $2 and not exists (select from millrace.job j where j.id = e.job)%s', one.of,
                case when one.of in ('step', 'undo') then ' and not exists (select from millrace.undo u join millrace.job j on j.id = u.undo_job where u.job = e.job)' else '' end)
              using place, last;
            get diagnostics gone = row_count;
            total := total + gone;
            place := case when n < stretch then 0 else last end;
            exit when place = 0 or gone = 0;
        end loop;
        if place <> one.upto then
            update millrace.trace_sweep w set upto = place where w.of = one.of;
        end if;
    end loop;
    return total;
end $$;
