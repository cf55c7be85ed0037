-- What an earlier run, a provider or an end has to do with a job that does not run; and millrace.why, which looks at all of it.

-- A provider's name in the error of a call that was not made; null: the error is another. The program writes these sentences (CallRefusal.swift).
create or replace function millrace.why_refusing(error text) returns text
language sql immutable as $$
    select rtrim(coalesce((regexp_match(left(error, 500), '([a-z0-9][a-z0-9_.:-]*) (?:is not called for now|has just come back, and|is called as often as it allows)'))[1],
        (regexp_match(left(error, 500), '(?:stopped calls|all slots for calls|the quota|many of the calls) of ([a-z0-9][a-z0-9_.:-]*)'))[1]), ':.')
$$;

-- Why a provider is not called now; null when it is.
create or replace function millrace.why_provider(the_provider text, the_staff boolean default false) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    c millrace.provider_circuit;
    p millrace.provider_pace;
    more jsonb := jsonb_build_object('provider', the_provider);
    show text := format('millrace providers show %s', millrace.why_word(the_provider));
    told text;
begin
    select x.* into c from millrace.provider_circuit x
     where x.provider = the_provider and (x.state in ('open', 'probing') or (x.state = 'forced_open' and x.until > t))
     order by x.state = 'forced_open' desc, x.class limit 1;
    if found then
        told := case when the_staff then coalesce(': ' || c.reason, '') else '' end;
        if c.state = 'forced_open' then
            return millrace.why_put('provider_forced', format('%s has stopped calls of %s until %s%s', case when the_staff then c.forced_by else 'an operator' end,
                    the_provider, millrace.why_time(c.until), told),
                format('millrace providers reset %s', the_provider), more || jsonb_build_object('until', c.until), format('millrace providers reset %s', millrace.why_word(the_provider)));
        end if;
        return millrace.why_put('provider_open', format('%s is not called, because its calls failed%s', the_provider, told),
            'calls resume by themselves; look at the provider', more || jsonb_build_object('until', c.until), show,
            array[format('the breaker of %s has been %s since %s%s', the_provider, c.state, millrace.why_time(c.changed_at), told),
                case when c.until > t then format('the next probe is due in %s', millrace.why_span(extract(epoch from c.until - t)::float8)) else 'a worker is about to probe it' end]);
    end if;
    select x.* into p from millrace.provider_pace x where x.provider = the_provider;
    if p.blocked_until > t then
        return millrace.why_put('provider_throttled', format('%s wants no calls for %s: it was called more often than it allows', the_provider,
                millrace.why_span(extract(epoch from p.blocked_until - t)::float8)),
            null, more || jsonb_build_object('until', p.blocked_until), show);
    end if;
    -- The last tenth is kept for what is urgent.
    if p.quota_limit > 0 and p.quota_used >= p.quota_limit - greatest(1, p.quota_limit / 10) and coalesce(p.quota_resets_at > t, true) then
        return millrace.why_put('provider_quota', format('the quota of %s is used up: %s of %s%s', the_provider, p.quota_used, p.quota_limit,
                coalesce(format(', until %s', millrace.why_time(p.quota_resets_at)), '')),
            'raise the quota there, or wait', more || jsonb_build_object('used', p.quota_used, 'limit', p.quota_limit, 'until', p.quota_resets_at), show);
    end if;
    return null;
end $$;

-- A job's last run, of those in the last hour if there are any.
create or replace function millrace.why_last_run(the_job bigint, out outcome int, out error text, out finished timestamptz, out attempt int, out crashes int)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    t timestamptz := millrace.now();
begin
    select x.outcome, x.error, x.finished, x.attempt, x.crashes into outcome, error, finished, attempt, crashes
      from (select h.* from millrace.history h where h.id = the_job and h.started > t - interval '1 hour' limit 5000) x order by x.finished desc limit 1;
    if outcome is null then
        select x.outcome, x.error, x.finished, x.attempt, x.crashes into outcome, error, finished, attempt, crashes
          from (select h.* from millrace.history h where h.id = the_job limit 5000) x order by x.finished desc limit 1;
    end if;
end $$;

-- The key that a run had not; null: its error is another.
create or replace function millrace.why_key(the_job bigint, error text) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    key text := (select left(j.args ->> 'key', 32) from millrace.job j where j.id = the_job and j.args ->> '$millrace' = 'sealed');
begin
    if key is null or error is null or error !~ '(encrypted with key .* which is not here|MILLRACE_ENCRYPTION_KEY|do not open with key)' then
        return null;
    end if;
    return millrace.why_put('key_missing', format('its arguments are encrypted with key %s, which the worker does not have', key),
        'add that key to MILLRACE_ENCRYPTION_KEY of the workers and restart them', jsonb_build_object('key', key), 'millrace keys list',
        array[format('its last run ended with: %s', millrace.error_gist(error)), format('key %s is missing in MILLRACE_ENCRYPTION_KEY of the worker, or differs from the key of that name', key)]);
end $$;

-- Who was asked for an answer, and what comes if nobody gives one.
create or replace function millrace.why_asked(the_approval uuid) returns text
language sql stable as $$
    select coalesce('; asked: ' || (select string_agg(millrace.approval_name(p.person), ', ' order by p.at, p.how, p.person) from millrace.approval_person p where p.approval = a.id), '')
               || case when a.reminded > 0 then format('; reminded %s', case a.reminded when 1 then 'once' else a.reminded || ' times' end) else '' end
               || case when a.next_at is not null then coalesce('; the next reminder is due ' || millrace.why_time(a.remind_at), '')
                       || coalesce('; ' || (select string_agg(millrace.approval_name(n), ', ') from unnest(a.escalate_to) n) || ' will be asked ' || millrace.why_time(a.escalate_at), '')
                    else '' end
      from millrace.approval a where a.id = the_approval
$$;

-- What a job waits for in the middle of its work; null: it does not.
create or replace function millrace.why_waiting(the_job bigint, the_staff boolean) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    w jsonb := millrace.wait_of(the_job);
    until text := case when w ? 'due' then format(', at most until %s', millrace.why_time((w ->> 'due')::timestamptz)) else '' end;
begin
    return case w ->> 'what'
        when 'time' then millrace.why_put('waits_time', format('its step %L waits until %s', w ->> 'step', millrace.why_time((w ->> 'due')::timestamptz)), null, jsonb_build_object('wait', w))
        when 'signal' then millrace.why_put('waits_signal', format('its step %L waits for the signal %L%s%s', w ->> 'step', w ->> 'name',
                case when w ->> 'key' <> '' then format(' with the key %L', w ->> 'key') else '' end, until), null, jsonb_build_object('wait', w),
            format('millrace signal %s%s', millrace.why_word(w ->> 'name'), case when w ->> 'key' <> '' then ' --key ' || millrace.why_word(w ->> 'key') else '' end))
        when 'approval' then millrace.why_put('waits_approval', format('its step %L waits for a person''s answer%s%s', w ->> 'step', until, case when the_staff then millrace.why_asked((w ->> 'approval')::uuid) else '' end), null,
            jsonb_build_object('wait', w),
            format('millrace approvals answer %s --yes', w ->> 'approval')) end;
end $$;

-- A job whose time has not come: it was asked for later, or an earlier run put it off.
create or replace function millrace.why_later(the_job bigint, kind_name text, due timestamptz, attempts int, the_staff boolean) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    run record;
    said jsonb;
    again text := format('millrace jobs retry %s', the_job);
    wait text := millrace.why_span(extract(epoch from due - t)::float8);
begin
    said := millrace.why_waiting(the_job, the_staff);
    if said is not null then
        return said;
    end if;
    select * into run from millrace.why_last_run(the_job);
    if run.outcome is not null then
        said := millrace.why_key(the_job, run.error);
        if said is null and run.outcome in (4, 5) then
            said := case when millrace.why_refusing(run.error) is not null then millrace.why_provider(millrace.why_refusing(run.error), the_staff)
                         else millrace.hooks_ask('why_later', jsonb_build_object('job', the_job, 'kind', kind_name, 'staff', the_staff)) end;
        end if;
        if said is not null then
            return said || jsonb_build_object('due', due, 'chain', said -> 'chain' || jsonb_build_array(format('it is tried again in %s, at %s', wait, millrace.why_time(due))));
        end if;
    end if;
    if attempts > 0 then
        said := millrace.hooks_ask('why_failed', jsonb_build_object('job', the_job, 'kind', kind_name, 'said', format('attempt %s is due in %s', attempts + 1, wait)));
        if said is not null then
            return said || jsonb_build_object('due', due, 'attempt', attempts + 1);
        end if;
        return millrace.why_put('retry', format('attempt %s is due in %s, at %s', attempts + 1, wait, millrace.why_time(due)), again,
            jsonb_build_object('due', due, 'attempt', attempts + 1), again,
            case when run.error is not null then array[format('attempt %s failed: %s', run.attempt, millrace.error_gist(run.error))] else '{}' end
                || format('attempt %s is due in %s, at %s', attempts + 1, wait, millrace.why_time(due)));
    end if;
    if run.outcome = 5 then
        return millrace.why_put('snoozed', format('its last run put it off: it runs again in %s, at %s', wait, millrace.why_time(due)), again,
            jsonb_build_object('due', due), again);
    end if;
    return millrace.why_put('time', format('its time has not come: it is due in %s, at %s', wait, millrace.why_time(due)), null, jsonb_build_object('due', due));
end $$;

-- A handler that ignores its cancellation ends with its process.
create or replace function millrace.why_restart(the_host text, the_pid int, the_staff boolean) returns text
language sql immutable as $$
    select 'its handler ends only with its process: '
        || case when the_staff then format('restart that worker (on %s: kill %s), and make the handler heed its cancellation', the_host, the_pid)
                else 'its worker has to be restarted' end
$$;

-- A run that does not go on; null when nothing is known against it.
create or replace function millrace.why_running(the_job bigint, the_staff boolean) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    w record;
    who text;
    more jsonb;
begin
    select s.name, s.host, s.pid, b.at, b.state, b.running, b.stuck, r.at as claimed_at,
           (select min(c.at) from millrace.cancel c where c.session = r.session and c.number = r.number and c.job = the_job) as cancelled_at into w
      from millrace.job_running(the_job) r join millrace.session s on s.id = r.session join millrace.beat b on b.session = s.id limit 1;
    if not found then
        return null;
    end if;
    who := case when the_staff then format('worker %s on %s', w.name, w.host) else 'its worker' end;
    more := case when the_staff then jsonb_build_object('worker', w.name) else '{}' end;
    if w.at < t - millrace.why_silence() then
        return millrace.why_put('worker_frozen', format('%s, which runs it, has been silent for %s: frozen, dead, or without a network', who, millrace.why_span(extract(epoch from t - w.at)::float8)),
            'another worker takes its jobs over within half a minute; look at that machine', more, 'millrace workers list');
    elsif w.state = 'cut off' then
        return millrace.why_put('worker_cut_off', format('%s, which runs it, is cut off from the database: connections from it do not get through', who),
            'look at the network between that machine and the database, and at its log', more, 'millrace workers list');
    elsif w.cancelled_at < t - interval '5 s' then
        return millrace.why_put('cancel_ignored', format('it was cancelled %s ago, and its handler still runs and holds its slot on %s',
                millrace.why_span(extract(epoch from t - w.cancelled_at)::float8), who),
            millrace.why_restart(w.host, w.pid, the_staff), more || jsonb_build_object('cancelled_at', w.cancelled_at), case when the_staff then format('kill %s', w.pid) end);
    elsif w.stuck > 0 and w.stuck >= w.running then
        return millrace.why_put('worker_stuck', format('all %s runs of %s ignore their cancellation', w.stuck, who), millrace.why_restart(w.host, w.pid, the_staff),
            more || jsonb_build_object('stuck', w.stuck), case when the_staff then format('kill %s', w.pid) else 'millrace workers list' end);
    elsif w.stuck > 0 and millrace.hooks_ask('why_running', jsonb_build_object('job', the_job)) ->> 'trouble' = 'stuck' then
        return millrace.why_put('worker_stuck', format('%s has %s that %s, and this run is one of its longest', who, millrace.why_count(w.stuck, 'handler'),
                case w.stuck when 1 then 'ignores its cancellation' else 'ignore their cancellation' end),
            millrace.why_restart(w.host, w.pid, the_staff), more || jsonb_build_object('stuck', w.stuck),
            case when the_staff then format('kill %s', w.pid) else 'millrace workers list' end);
    end if;
    return (select millrace.why_crashed(the_job, (x ->> 'crashes')::int, millrace.why_put('next', 'it runs again'))
              from millrace.hooks_ask('why_running', jsonb_build_object('job', the_job)) x where x ->> 'trouble' = 'crashes');
end $$;

-- What became of a job that has ended, other than success; and of a mail or a document whose jobs have ended and which has not.
create or replace function millrace.why_ended(the_job bigint, kind_name text, depth int, the_staff boolean) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    run record;
    said jsonb;
    again text := format('millrace jobs retry %s', the_job);
    show text := format('millrace jobs show %s', the_job);
begin
    select * into run from millrace.why_last_run(the_job);
    case run.outcome
    when 1 then
        return millrace.hooks_ask('why_ended', jsonb_build_object('job', the_job, 'kind', kind_name, 'staff', the_staff, 'depth', depth));
    when 2 then
        return millrace.why_put('cancelled', format('it was cancelled at %s%s', millrace.why_time(run.finished), coalesce(': ' || millrace.error_gist(run.error), '')), again,
            jsonb_build_object('finished', run.finished), again);
    when 3 then
        said := millrace.why_key(the_job, run.error);
        if said is not null then
            return said || jsonb_build_object('chain', said -> 'chain' || to_jsonb(format('it died at attempt %s; with the key there: %s', run.attempt, again)));
        elsif run.error like 'quarantined:%' then
            return millrace.why_put('quarantined', format('it crashed its worker %s times, the last time while it ran alone, and was quarantined at %s', run.crashes, millrace.why_time(run.finished)),
                format('correct its handler, then %s', again), jsonb_build_object('crashes', run.crashes, 'finished', run.finished), show,
                array[format('workers died %s times while they held it', run.crashes), 'it ran alone at the last of them, so it is to blame', millrace.error_gist(run.error)]);
        end if;
        said := millrace.hooks_ask('why_failed', jsonb_build_object('job', the_job, 'kind', kind_name, 'error', run.error,
            'said', format('it died at attempt %s: %s', run.attempt, millrace.error_gist(run.error))));
        if said is not null then
            return said || jsonb_build_object('attempt', run.attempt, 'finished', run.finished);
        end if;
        return millrace.why_put('dead', format('it died at attempt %s: %s', run.attempt, millrace.error_gist(run.error)), again,
            jsonb_build_object('attempt', run.attempt, 'finished', run.finished), again);
    else
        return null;
    end case;
end $$;

-- The chain's first and last words: what is seen, and what is to be done. What a waited-for job waits for stands between.
create or replace function millrace.why_chained(said jsonb, seen text, depth int, the_staff boolean) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    inner_one jsonb;
    other bigint := (said #>> '{jobs,0}')::bigint;
begin
    if said is null then
        return null;
    end if;
    if the_staff and depth < 3 and other is not null and said ->> 'reason' in ('waits_for', 'key_held') then
        inner_one := millrace.why_of(other, true, depth + 1);
        if inner_one is not null then
            said := said || jsonb_build_object('command', coalesce(inner_one ->> 'command', said ->> 'command'), 'root', coalesce(inner_one -> 'root', jsonb_build_object('job', other, 'reason', inner_one -> 'reason')),
                'chain', said -> 'chain' || (inner_one -> 'chain'));
            return said || jsonb_build_object('chain', to_jsonb(seen) || (said -> 'chain'));
        end if;
    end if;
    return said || jsonb_build_object('chain', to_jsonb(seen) || (said -> 'chain')
        || to_jsonb(case when said ->> 'hint' is not null and said ->> 'hint' is distinct from said ->> 'command' then 'to do: ' || (said ->> 'hint')
                         when said ->> 'command' is not null then 'to do: ' || (said ->> 'command') else 'to do: just wait' end));
end $$;

-- The same as why, without asking who calls.
create or replace function millrace.why_of(the_job bigint, the_staff boolean, depth int) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    head record;
    place record;
    said jsonb;
    seen text;
    t timestamptz := millrace.now();
begin
    select j.queue, j.kind, j.lane, j.limit_key, j.limit_scope, k.name as kind_name, q.name as queue_name, greatest(j.enqueued_at, coalesce(j.run_at, j.enqueued_at)) as since
      into head
      from millrace.job j join millrace.kind k on k.id = j.kind join millrace.queue q on q.id = j.queue where j.id = the_job;
    if not found then
        return null;
    end if;
    for tries in 1 .. 3 loop                              -- it may move between two looks
        select r.queue, r.kind, r.lane, r.seq, r.crashes into place from millrace.ready r where r.queue = head.queue and r.lane = head.lane and r.seq = the_job;
        if not found then
            select r.queue, r.kind, r.lane, r.seq, r.crashes into place from millrace.ready r where r.job = the_job and r.seq <> r.job;
        end if;
        if found then
            seen := format('job %s (%s) is ready in the queue %s%s', the_job, head.kind_name, head.queue_name,
                case when head.since < t then format(', and has waited for %s', millrace.why_span(extract(epoch from t - head.since)::float8)) else '' end);
            said := coalesce(millrace.why_nobody(place.queue, place.kind, the_staff), millrace.why_limits(place.queue, head.limit_key, head.limit_scope, the_staff),
                millrace.why_line(place.queue, place.kind, place.lane, place.seq, the_staff, head.since));
            return millrace.why_chained(millrace.why_crashed(the_job, place.crashes, said), seen, depth, the_staff);
        end if;
        select p.queue, p.kind, p.crashes into place from millrace.parked p where p.job = the_job;
        if found then
            return millrace.why_chained(
                millrace.why_crashed(the_job, place.crashes,
                    coalesce(millrace.why_nobody(place.queue, place.kind, the_staff), millrace.why_limits(place.queue, head.limit_key, head.limit_scope, the_staff),
                        millrace.why_put('key_opens', format('its limit key %s has room again; it is about to be put back in line', head.limit_key), null,
                            jsonb_build_object('key', head.limit_key)))),
                format('job %s (%s) of the queue %s is set aside for its limit key', the_job, head.kind_name, head.queue_name), depth, the_staff);
        end if;
        select d.queue, d.kind, d.due, d.attempt, d.crashes into place from millrace.timer d where d.job = the_job;
        if found then
            seen := format('job %s (%s) of the queue %s is scheduled for %s', the_job, head.kind_name, head.queue_name, millrace.why_time(place.due));
            return millrace.why_chained(
                millrace.why_crashed(the_job, place.crashes,
                    case when place.due > t then millrace.why_later(the_job, head.kind_name, place.due, place.attempt, the_staff)
                        else coalesce(millrace.why_nobody(place.queue, place.kind, the_staff), millrace.why_put('due', 'its time has come; a worker is about to put it in line',
                            null, jsonb_build_object('due', place.due))) end), seen, depth, the_staff);
        end if;
        said := millrace.why_blocked(the_job);
        if said is not null then
            return millrace.why_chained(said, format('job %s (%s) of the queue %s is blocked', the_job, head.kind_name, head.queue_name), depth, the_staff);
        end if;
        if exists (select from millrace.job_running(the_job)) then
            return millrace.why_chained(millrace.why_running(the_job, the_staff), format('job %s (%s) runs', the_job, head.kind_name), depth, the_staff);
        end if;
        said := millrace.why_ended(the_job, head.kind_name, depth, the_staff);
        if said is not null then
            return millrace.why_chained(said, format('job %s (%s) has ended', the_job, head.kind_name), depth, the_staff);
        end if;
    end loop;
    return null;
end $$;

-- null when the job runs well or has succeeded, or is none that the caller may see.
create or replace function millrace.why(id bigint, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    head record;
begin
    select j.owner, j.tenant into head from millrace.job j where j.id = why.id;
    if not found or not millrace.may_see(head.owner, head.tenant, caller => why.caller) then
        return null;
    end if;
    return millrace.why_of(why.id, millrace.is_staff(why.caller), 0);
end $$;
select millrace.door_is('queue', 'why', 'client, worker, viewer', 'tenant job', 'Why a job is not running.');
