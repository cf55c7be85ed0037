-- Why something of a room or of a schedule does not move, in the shape of millrace.why. Null: nothing waits there.

create or replace function millrace.why_parked(the_message uuid, n bigint) returns jsonb
language sql stable as $$
    select millrace.why_put('mail_parked', case when n = 1 then format('message %s waits for a human: nobody knows whether it was sent', the_message)
                else format('%s wait for a human, the oldest is %s: nobody knows whether they were sent', millrace.why_count(n, 'message'), the_message) end,
        'ask the mail service for it, then millrace mail resolve <id> accepted, refused or again', jsonb_build_object('message', the_message, 'count', n),
        format('millrace mail show %s', the_message),
        array[format('%s parked', case when n = 1 then '1 message is' else millrace.why_count(n, 'message') || ' are' end),
            coalesce((select format('the service %s was called, and its answer never came: sending again might send twice', a.provider)
                        from millrace.mail_attempt a where a.message = the_message order by a.n desc limit 1), 'a call was made, and its answer never came: sending again might send twice')])
$$;

-- A document that is worked on: the page that it waits for, and what that page's job waits for.
create or replace function millrace.why_document(the_document uuid, depth int, the_staff boolean default false) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    d millrace.document;
    p record;
    job_id bigint;
    said jsonb;
    words text;
begin
    select x.* into d from millrace.document x where x.id = the_document and x.status = 'processing';
    if not found then
        return null;
    end if;
    select x.page, x.job, x.status, x.tries into p from millrace.document_page x where x.document = d.id and x.status in ('waiting', 'running') order by x.page limit 1;
    job_id := coalesce(p.job, d.job);
    if depth < 3 and job_id is not null then
        said := millrace.why_of(job_id, the_staff, depth + 1);
    end if;
    words := case when p.page is not null then format('document %s waits for its page %s of %s', d.id, p.page, d.pages) else format('document %s is at the stage %s', d.id, d.stage) end;
    return millrace.why_put(case when p.page is not null then 'document_page' else 'document_stage' end,
        words || case when said is not null then format(': %s', said ->> 'sentence') when p.status = 'running' then ', which is being read' else '' end,
        said ->> 'hint', jsonb_build_object('document', d.id, 'page', p.page, 'job', job_id)
            || case when said is not null then jsonb_build_object('root', coalesce(said -> 'root', jsonb_build_object('job', job_id, 'reason', said -> 'reason'))) else '{}' end,
        coalesce(said ->> 'command', format('millrace documents show %s', d.id)),
        array[words] || case when said is not null then array(select x from jsonb_array_elements_text(said -> 'chain') x where x not like 'to do: %') else '{}' end);
end $$;

create or replace function millrace.why_mail_room() returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    one uuid;
    n bigint;
begin
    select count(*), (array_agg(x.id order by x.changed_at))[1] into n, one
      from (select m.id, m.status, m.changed_at from millrace.mail m where m.status in ('unknown', 'parked') order by m.changed_at limit 10000) x where x.status = 'parked';
    return case when n > 0 then millrace.why_parked(one, n) end;
end $$;

create or replace function millrace.why_documents() returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    return millrace.why_document((select d.id from millrace.document d where d.status = 'processing' order by d.changed_at limit 1), 0, true);
end $$;

-- No living worker serves the room; null when one does, or may.
create or replace function millrace.why_unserved(the_room text, words text, flag text) returns jsonb
language sql volatile as $$
    select case when not exists (select from millrace.session s where s.rooms ? the_room or s.rooms is null)
        then millrace.why_put('room_unserved', format('%s, and no living worker serves %s', words, the_room), format('start a worker with %s', flag),
            jsonb_build_object('room', the_room), 'millrace workers list') end
$$;

create or replace function millrace.why_notices() returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    t timestamptz := millrace.now();
    is_alarm boolean;
    one record;
    words text;
    said jsonb;
begin
    foreach is_alarm in array array[true, false] loop
        select x.* into one
          from ((select n.id, n.due_at, n.wait_until, n.status, n.provider, n.error from millrace.notice n where n.alarm = is_alarm and n.status = 'pending' and n.address is null
                  order by n.alarm, coalesce(n.wait_until, n.due_at) limit 1)
                union all
                (select n.id, n.due_at, n.wait_until, n.status, n.provider, n.error from millrace.notice n where n.alarm = is_alarm and n.status in ('pending', 'attempting')
                    and n.address is not null order by n.alarm, coalesce(n.wait_until, n.due_at) limit 1)) x
         where x.due_at <= t order by x.due_at limit 1;
        continue when not found;
        words := format('%s %s is due since %s', case when is_alarm then 'alarm' else 'notice' end, one.id, millrace.why_time(one.due_at));
        said := coalesce(millrace.why_unserved('notices', words, '--notices'), case when one.provider is not null then millrace.why_provider(one.provider, true) end);
        if said is null and one.wait_until > t and one.status = 'pending' then
            said := millrace.why_put('retry', format('%s is tried again in %s%s', words, millrace.why_span(extract(epoch from one.wait_until - t)::float8),
                    coalesce(': ' || one.error, '')), null, jsonb_build_object('due', one.wait_until), format('millrace notices show %s', one.id));
        end if;
        said := coalesce(said, millrace.why_put('next', format('%s and a worker is about to take it', words), null, '{}', format('millrace notices show %s', one.id)));
        return said || jsonb_build_object('notice', one.id, 'chain', to_jsonb(words) || (said -> 'chain'));
    end loop;
    return null;
end $$;

create or replace function millrace.why_webhooks() returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    t timestamptz := millrace.now();
    w record;
    words text;
    said jsonb;
begin
    select x.id, x.blocked_until, x.state, d.due_at, d.attempts, d.error, d.token into w
      from (select y.* from millrace.webhook y where y.state <> 'disabled' order by y.id limit 500) x
     cross join lateral (select e.due_at, e.attempts, e.error, e.token from millrace.webhook_delivery e where e.webhook = x.id and e.state = 'pending'
                          order by e.due_at, e.seq limit 1) d
     order by d.due_at limit 1;
    if found then
        words := format('an event waits for the webhook %s', w.id);
        said := coalesce(millrace.why_unserved('webhooks', words, '--webhooks'), millrace.why_provider('webhook:' || w.id, true));
        if said is null and greatest(w.due_at, w.blocked_until) > t and w.token is null then
            said := millrace.why_put('retry', format('%s: it is called again in %s%s', words, millrace.why_span(extract(epoch from greatest(w.due_at, w.blocked_until) - t)::float8),
                coalesce(': ' || w.error, '')), null, jsonb_build_object('due', greatest(w.due_at, w.blocked_until)), format('millrace webhooks test %s', w.id));
        end if;
        said := coalesce(said, millrace.why_put('next', words || ' and a worker is about to call it', null, '{}', format('millrace webhooks deliveries --to %s', w.id)));
        return said || jsonb_build_object('webhook', w.id, 'chain', to_jsonb(words) || (said -> 'chain'));
    end if;
    select x.id, x.reason into w from (select y.* from millrace.webhook y where y.state = 'disabled' order by y.id limit 500) x order by x.id limit 1;
    return case when found then millrace.why_put('webhook_off', format('the webhook %s is switched off: %s', w.id, w.reason), 'see to its receiver, then switch it on',
        jsonb_build_object('webhook', w.id), format('millrace webhooks enable %s', w.id)) end;
end $$;

create or replace function millrace.why_checkins() returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    t timestamptz := millrace.now();
    a record;
    reach jsonb;
    beat timestamptz := (select max(m.beat_at) from millrace.watchman m);
begin
    select x.id, x.person, x.raised_at, x.next_at into a from millrace.alarm x where x.state = 'unreachable' order by x.id limit 1;
    if not found then
        -- Nobody confirmed an address: the alarm will come to nothing, though its steps are not over.
        select x.id, x.person, x.raised_at, x.next_at into a
          from (select y.* from millrace.alarm y where y.next_at is not null order by y.next_at limit 50) x
         where (millrace.alarm_reach(x.id) ->> 'reaches_nobody')::boolean order by x.raised_at limit 1;
    end if;
    if found then
        reach := millrace.alarm_reach(a.id);
        return millrace.why_put('alarm_unreachable', format('alarm %s of %s reaches nobody: %s', a.id, a.person,
                case when (reach ->> 'reaches_nobody')::boolean then 'no contact has a confirmed address' else 'all contacts were told, and nobody answered' end),
            'tell somebody by telephone, and give that person a contact who can be reached', jsonb_build_object('alarm', a.id),
            format('millrace checkins contacts %s', millrace.why_word(a.person)),
            array[format('alarm %s is open since %s', a.id, millrace.why_time(a.raised_at)), coalesce('its contacts: ' || (reach ->> 'sentence'), 'nobody can be told')]);
    end if;
    if exists (select from millrace.watch w where w.wake_at is not null) and coalesce(beat < t - interval '1 min', true) then
        return coalesce(millrace.why_unserved('check-ins', 'people are watched over', '--checkins'),
            millrace.why_put('worker_frozen', coalesce(format('no worker has looked at the check-ins since %s', millrace.why_time(beat)), 'no worker has ever looked at the check-ins'),
                'look at the workers that serve check-ins', '{}', 'millrace workers list'));
    end if;
    return null;
end $$;

create or replace function millrace.why_schedule(the_name text) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    s millrace.schedule;
    said jsonb;
    more jsonb;
    word text;
begin
    select x.* into s from millrace.schedule x where x.name = the_name;
    if not found then
        return null;
    end if;
    word := millrace.why_word(s.name);
    more := jsonb_build_object('schedule', s.name);
    if s.paused_at is not null then
        return millrace.why_put('schedule_paused', format('the schedule %s is paused since %s', s.name, millrace.why_time(s.paused_at)),
            format('millrace schedules resume %s', word), more || jsonb_build_object('since', s.paused_at), format('millrace schedules resume %s', word));
    elsif s.problem is not null then
        return millrace.why_put('schedule_problem', format('the schedule %s cannot fire: %s', s.name, s.problem), 'correct it with millrace schedules add under the same name',
            more || jsonb_build_object('since', s.problem_at), format('millrace schedules show %s', word));
    elsif coalesce(s.next_at, s.planned_from) < t - interval '1 min' then
        if not exists (select from millrace.session) then
            said := millrace.why_absent(true);
            return said || more || jsonb_build_object('due', s.next_at,
                'sentence', format('the schedule %s was due at %s, and no worker lives', s.name, millrace.why_time(coalesce(s.next_at, s.planned_from))));
        end if;
        return millrace.why_put('schedule_overdue', format('the schedule %s was due at %s, and no worker has fired it', s.name, millrace.why_time(coalesce(s.next_at, s.planned_from))),
            'start a worker that has time zones', more || jsonb_build_object('due', s.next_at), 'millrace workers list');
    end if;
    if s.last_job is not null and s.overlap = 'skip' then
        said := millrace.why_of(s.last_job, true, 1);
        if said is not null and said ->> 'reason' not in ('dead', 'quarantined', 'cancelled') then
            return said || jsonb_build_object('schedule', s.name, 'sentence', format('job %s of the schedule %s has not ended, and the next is skipped until then: %s', s.last_job, s.name, said ->> 'sentence'));
        end if;
    end if;
    if s.last_missed_at > t - interval '1 hour' then
        return millrace.why_put('schedule_missed', format('the schedule %s missed times, the last at %s: no worker looked then, and it does not catch them up', s.name,
                millrace.why_time(s.last_missed_at)),
            format('run it now with millrace schedules run %s; if each time counts, set --catch-up all', word), more || jsonb_build_object('missed', s.missed, 'due', s.next_at),
            format('millrace schedules run %s', word),
            array[format('it fires next at %s', coalesce(millrace.why_time(s.next_at), 'a time that a worker is about to compute')),
                format('%s of its times were missed in all, the last at %s', s.missed, millrace.why_time(s.last_missed_at))]);
    end if;
    return millrace.why_put('time', format('the schedule %s fires next at %s', s.name, coalesce(millrace.why_time(s.next_at), 'a time that a worker is about to compute')), null,
        more || jsonb_build_object('due', s.next_at), format('millrace schedules next %s', word));
end $$;

-- A schedule that should put jobs into this queue, and does not.
create or replace function millrace.why_feeding(the_queue text) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    one text;
begin
    select s.name into one
      from (select x.name, x.queue, x.kind, x.paused_at, x.problem from millrace.schedule x order by x.id limit 5000) s
      left join millrace.kind k on k.name = s.kind and k.line = '' left join millrace.queue q on q.id = k.queue
     where (s.paused_at is not null or s.problem is not null) and coalesce(s.queue, q.name, 'default') = the_queue
     order by s.problem is not null desc, s.name limit 1;
    return case when found then millrace.why_schedule(one) end;
end $$;
