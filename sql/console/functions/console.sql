-- What the console reads beside the doors of the command line. Each reads a bounded number of rows, and shows nothing that a viewer may not see:
-- no contents of messages and documents, and no addresses.

-- Schedules; null: all, up to 500. Their arguments are redacted.
create or replace function millrace.schedules_shown(the_name text default null, after text default null, page int default 500, is_brief boolean default false)
returns setof millrace.schedules
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    one millrace.schedules;
begin
    for one in
        select * from millrace.schedules s where (the_name is null or s.name = the_name) and (after is null or s.name > after)
         order by s.name limit least(greatest(page, 1), 500)
    loop
        one.args := case when not is_brief then millrace.redact(one.kind, one.args) end;
        return next one;
    end loop;
end $$;
select millrace.door_is('console', 'schedules_shown', 'admin, viewer', 'staff');

-- A message without its recipients and contents.
create or replace function millrace.mail_shown(the_id uuid) returns jsonb
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$ select millrace.mail_story(the_id, false) $$;
select millrace.door_is('console', 'mail_shown', 'admin, viewer', 'staff');

-- What a message says, and to whom. That somebody has read it is in the audit. Those of the purpose security may hold a link that signs somebody in.
create or replace function millrace.mail_content_shown(the_id uuid, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    story jsonb := millrace.mail_story(mail_content_shown.the_id, true);
begin
    if story is null or jsonb_typeof(story -> 'content') is distinct from 'object' then
        perform millrace.refuse(format('there is no message %s, or what it said is no longer kept', mail_content_shown.the_id), 'the_id', null, 'P0002', 'not_found');
    end if;
    if story ->> 'purpose' = 'security' then
        perform millrace.refuse('what this message says is not shown', 'the_id', 'A message of the purpose security may hold a code, or a link that signs somebody in.',
            '42501', 'permission');
    end if;
    perform millrace.audited('mail.read', mail_content_shown.the_id::text, null, caller => mail_content_shown.caller);
    return story -> 'content';
end $$;
select millrace.door_is('console', 'mail_content_shown', 'admin, operator', 'staff', audited => true);

-- Messages to an address, or with this in their subject; of the latter those among the newest 5,000 below `after`. Newest first.
create or replace function millrace.mails_found(the_recipient text default null, the_subject text default null, after uuid default null, page int default 50,
    caller millrace.caller_name default current_user)
returns table (id uuid, kind text, status text, created_at timestamptz, sent_at timestamptz, error text, subject text, recipients text[])
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    address text := millrace.mail_bare(nullif(btrim(mails_found.the_recipient), ''));
    part text := lower(nullif(btrim(mails_found.the_subject), ''));
    last_seq bigint := coalesce((select m.seq from millrace.mail m where m.id = mails_found.after), 9223372036854775807);
begin
    perform millrace.valid_page(mails_found.page);
    if address is null and part is null then
        perform millrace.refuse('a recipient or a part of the subject is needed', 'the_recipient');
    elsif length(address) > millrace.most('mailbox') or length(part) > millrace.most('subject') then
        perform millrace.refuse('the recipient or the subject is too long', 'the_recipient');
    end if;
    perform millrace.audited('mail.search', millrace.audit_address(address), jsonb_build_object('by_subject', part is not null), caller => mails_found.caller);
    return query
    select m.id, m.kind, m.status, m.created_at, m.sent_at, m.error, c.subject, c.recipients
      from (
        (select x.* from millrace.mail x where address is null and x.seq < last_seq order by x.seq desc limit 5000)
        union all
        (select x.* from millrace.mail_content a join millrace.mail x on x.id = a.message
          where address is not null and a.addresses @> array[address] and x.seq < last_seq order by x.seq desc limit 5000)) m
      join millrace.mail_content c on c.message = m.id
     where part is null or position(part in lower(c.subject)) > 0
     order by m.seq desc limit mails_found.page;
end $$;
select millrace.door_is('console', 'mails_found', 'admin, operator', 'staff', audited => true);

-- Documents without title and owner, newest first.
create or replace function millrace.documents_shown(the_status text default null, after uuid default null, page int default 50)
returns table (id uuid, mime_type text, size bigint, tenant text, status text, stage text, pages int, pages_done int, pages_failed int, reason text,
    created_at timestamptz, finished_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    last_seq bigint := (select d.seq from millrace.document d where d.id = documents_shown.after);
begin
    if documents_shown.page is null or documents_shown.page not between 1 and 500 then
        perform millrace.refuse('a page has 1 to 500 documents', 'page');
    end if;
    return query
    select d.id, d.mime_type, d.size, d.tenant, d.status, d.stage, d.pages, d.pages_done, d.pages_failed, d.reason, d.created_at, d.finished_at
      from (select x.* from millrace.document x
             where last_seq is null or x.seq < last_seq order by x.seq desc limit 10000) d
     where the_status is null or d.status = the_status
     order by d.seq desc limit documents_shown.page;
end $$;
select millrace.door_is('console', 'documents_shown', 'admin, viewer', 'staff');

create or replace function millrace.document_shown(the_id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    select millrace.document_story(the_id) - 'title' - 'owner' - 'sha256' - 'made'
$$;
select millrace.door_is('console', 'document_shown', 'admin, viewer', 'staff');

-- The coming midnights: how many families each takes over, by zone. It looks at the next 10,000 families.
create or replace function millrace.quest_waves() returns table (at timestamptz, zone text, families bigint, cap bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
    select f.next_rollover_at, f.zone, count(*), 10000::bigint
      from (select x.next_rollover_at, x.zone from millrace.quest_family x order by x.due_at limit 10000) f
     group by 1, 2 order by 1, 2 limit 100
$$;
select millrace.door_is('console', 'quest_waves', 'admin, viewer', 'staff');

-- Alarms, the newest first; the open ones before all others. It reads the view with the caller's rights, so the view decides who reads the note.
create or replace function millrace.alarms_shown(page int default 50) returns setof millrace.alarms
language sql stable set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
    (select a.* from millrace.alarms a where a.state <> 'resolved' order by a.raised_at desc limit page)
    union all
    (select a.* from millrace.alarms a where a.state = 'resolved' order by a.raised_at desc limit page)
$$;
select millrace.door_is('console', 'alarms_shown', 'admin, viewer', 'staff');

-- Whose check-in expires next.
create or replace function millrace.check_ins_due(page int default 50) returns setof millrace.check_ins
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
    select c.* from (select w.person from millrace.watch w where w.wake_at is not null order by w.wake_at limit page) w
      join millrace.check_ins c on c.person = w.person order by c.check_in_expiration
$$;
select millrace.door_is('console', 'check_ins_due', 'admin, viewer', 'staff');

-- Subscriptions, those that changed last first, without the names of persons and tenants.
create or replace function millrace.subscriptions_shown(the_state text default null, the_plan text default null, the_store text default null, after uuid default null,
    page int default 50)
returns table (id uuid, store text, plan text, product text, state text, renews boolean, period_end timestamptz, next_at timestamptz, is_owned boolean,
    created_at timestamptz, changed_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    last record;
begin
    if subscriptions_shown.page is null or subscriptions_shown.page not between 1 and 500 then
        perform millrace.refuse('a page has 1 to 500 subscriptions', 'page');
    end if;
    select s.changed_at, s.id into last from millrace.subscription s where s.id = subscriptions_shown.after;
    return query
    select s.id, s.store, s.plan, s.product, s.state, s.renews, s.period_end, s.next_at, s.account is not null, s.created_at, s.changed_at
      from (select x.* from millrace.subscription x
             where subscriptions_shown.after is null or (x.changed_at, x.id) < (last.changed_at, last.id) order by x.changed_at desc, x.id desc limit 10000) s
     where (the_state is null or s.state = the_state) and (the_plan is null or s.plan = the_plan) and (the_store is null or s.store = the_store)
     order by s.changed_at desc, s.id desc limit subscriptions_shown.page;
end $$;
select millrace.door_is('console', 'subscriptions_shown', 'admin, viewer', 'staff');

-- One subscription with its events, without the names of persons and tenants.
create or replace function millrace.subscription_shown(the_id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    select millrace.subscription_row(s) - array['person', 'tenant'] || jsonb_build_object('is_owned', s.account is not null, 'events', coalesce((
        select jsonb_agg(jsonb_build_object('id', e.id, 'type', e.type, 'at', e.at, 'arrived_at', e.arrived_at, 'status', e.facts -> 'status', 'product', e.facts -> 'product',
                   'period_end', e.facts -> 'period_end', 'renews', e.facts -> 'renews') order by e.at desc, e.rank desc, e.id desc)
          from (select * from millrace.subscription_event y where y.subscription = s.id order by y.at desc, y.rank desc, y.id desc limit 200) e), '[]'))
      from millrace.subscription s where s.id = the_id
$$;
select millrace.door_is('console', 'subscription_shown', 'admin, viewer', 'staff');

-- Somebody has signed out of a console: the cookie of that session is worth nothing more, at every console of this database.
create or replace function millrace.console_sign_out(session bytea, until timestamptz) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    if console_sign_out.session is null or octet_length(console_sign_out.session) <> 32 then
        perform millrace.refuse('a session is named by 32 bytes', 'session', 'The console names it.');
    end if;
    if console_sign_out.until is null or console_sign_out.until > now() + interval '1 day' then
        perform millrace.refuse('a session does not last that long', 'until', 'Give when its cookie ends, at most a day ahead.');
    end if;
    delete from millrace.console_signed_out o
     where o.session = any (array(select x.session from millrace.console_signed_out x where x.until < now() order by x.until limit 100 for update skip locked));
    if (select count(*) from (select from millrace.console_signed_out limit 100000) x) = 100000 then
        perform millrace.refuse('100000 sessions have been signed out of within a day', 'session', 'Wait until some of them would have ended.', '53400', 'too_large');
    end if;
    insert into millrace.console_signed_out (session, until) values (console_sign_out.session, console_sign_out.until) on conflict do nothing;
    return found;
end $$;
select millrace.door_is('console', 'console_sign_out', 'admin, viewer', 'staff');

create or replace function millrace.console_signed_out(session bytea) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select exists (select from millrace.console_signed_out o where o.session = console_signed_out.session)
$$;
select millrace.door_is('console', 'console_signed_out', 'admin, viewer', 'staff');

-- What lists of jobs show of each.
create or replace function millrace.jobs_brief(ids bigint[]) returns setof millrace.jobs
language plpgsql volatile set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    names text := millrace.redact_names();
begin
    return query
    select s.job, s.kind, q.name, s.state, j.lane >> 2, null::jsonb,
           case when s.state in ('scheduled', 'blocked') then coalesce(s.until, j.enqueued_at) else coalesce(j.run_at, j.enqueued_at) end,
           s.attempt, j.max_attempts::int, null::int, j.unique_key, j.limit_key, j.tenant, coalesce(j.tags, '{}'), null::jsonb, j.enqueued_at, s.since,
           case when s.state in ('succeeded', 'cancelled', 'dead') then s.until end, p.name,
           (select g.value || jsonb_build_object('stage', millrace.redact_said(g.value ->> 'stage', names), 'note', millrace.redact_said(g.value ->> 'note', names))
              from millrace.progress_of(s.job) g(value) where s.state = 'running' and g.value is not null),
           case when e.error is null then '[]' else jsonb_build_array(jsonb_build_object('error', millrace.redact_said(e.error, names))) end,
           null::bigint[], null::text, null::jsonb
      from unnest(jobs_brief.ids) with ordinality i(id, place)
      join millrace.job_states(jobs_brief.ids) s on s.job = i.id and s.state is not null
      join millrace.job j on j.id = s.job
      join millrace.queue q on q.id = j.queue
      left join millrace.process p on p.session = s.session
      left join lateral (
        select s.error where s.error is not null
         union all
        (select h.error from millrace.history h where s.error is null and s.state <> 'succeeded' and s.attempt > 0 and h.id = s.job and h.error is not null
          order by h.finished desc limit 1)
         limit 1) e on true
     order by i.place;
end $$;

-- Several jobs as job_shown shows one, in the order of the ids; those that are gone are left out. Brief: without arguments, result, metadata
-- and crashes, and of errors the last alone. That is what lists and live pages show, for a tenth of what whole ones cost.
create or replace function millrace.jobs_shown(ids bigint[], is_brief boolean default false) returns setof millrace.jobs
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    n bigint;
    one millrace.jobs;
begin
    if ids is null or cardinality(ids) > 500 then
        perform millrace.refuse('ids must be at most 500', 'ids');
    end if;
    if is_brief then
        return query select b.* from millrace.jobs_brief(jobs_shown.ids) b;
        return;
    end if;
    foreach n in array ids loop
        for one in select j.* from millrace.job(n) j loop
            return next millrace.job_redacted(one);
        end loop;
    end loop;
end $$;
select millrace.door_is('console', 'jobs_shown', 'admin, viewer', 'staff');

-- Jobs of a state, of which the ids are known, in another order: number, kind, queue, time (the one that the list of this state shows) or attempts. In the
-- usual direction small numbers and names stand first, late times and many attempts; reversed, the other way round.
create or replace function millrace.jobs_sorted(the_state text, ids bigint[], sort text, reversed boolean default false) returns bigint[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    ended constant boolean := the_state in ('succeeded', 'cancelled', 'dead');
    falls boolean := coalesce(jobs_sorted.sort in ('time', 'attempts'), false) <> coalesce(jobs_sorted.reversed, false);
begin
    if jobs_sorted.ids is null or cardinality(jobs_sorted.ids) > 500 then
        perform millrace.refuse('ids must be at most 500', 'ids');
    end if;
    if jobs_sorted.sort is null or jobs_sorted.sort not in ('number', 'kind', 'queue', 'time', 'attempts') then
        perform millrace.refuse(format('jobs cannot be sorted by %L', left(jobs_sorted.sort, 60)), 'sort', 'Give number, kind, queue, time or attempts.');
    end if;
    return array(
        select x.id
          from (select i.id, case jobs_sorted.sort when 'kind' then k.name when 'queue' then q.name end collate "C" as word,
                       case jobs_sorted.sort when 'number' then i.id when 'attempts' then coalesce(h.attempt, d.attempt)
                           when 'time' then extract(epoch from case when ended then h.finished when the_state in ('scheduled', 'retrying') then d.due
                               when the_state = 'running' then r.at else j.enqueued_at end) end as number
                  from unnest(jobs_sorted.ids) i(id)
                  left join millrace.job j on j.id = i.id
                  left join lateral (select y.attempt, y.finished, y.kind, y.queue from millrace.history y where ended and y.id = i.id and y.outcome in (1, 2, 3) limit 1) h on true
                  left join lateral (select y.attempt, y.due from millrace.timer y where not ended and y.job = i.id limit 1) d on true
                  left join lateral (select y.at from millrace.job_running(i.id) y where the_state = 'running' limit 1) r on true
                  left join millrace.kind k on k.id = coalesce(j.kind, h.kind)
                  left join millrace.queue q on q.id = coalesce(j.queue, h.queue)) x
         order by case when not falls then x.word end, case when falls then x.word end desc nulls last,
               case when not falls then x.number end, case when falls then x.number end desc nulls last, x.id desc);
end $$;
select millrace.door_is('console', 'jobs_sorted', 'admin, viewer', 'staff');

-- A question to a person as the console shows it: what the kind's rules hide is redacted, and there are no addresses.
create or replace function millrace.approval_row(a millrace.approval) returns jsonb
language sql stable as $$
    select jsonb_build_object('id', a.id, 'job', a.job, 'kind', k.name, 'step', a.step, 'request', millrace.redact(k.name, a.request), 'tenant', a.tenant, 'asked_at', a.asked_at,
               'due', a.due, 'state', millrace.approval_state(a), 'answered_at', a.answered_at, 'approved', a.approved, 'answered_by', case when exists (select from millrace.approval_person p where p.approval = a.id and p.person = a.answered_by)
                   then millrace.approval_name(a.answered_by) else a.answered_by end,
               'comment', a.comment, 'reminded', a.reminded, 'remind_at', case when a.next_at is not null then a.remind_at end,
               'escalate_at', case when a.next_at is not null then a.escalate_at end, 'escalated_at', a.escalated_at,
               'people', (select coalesce(jsonb_agg(p || jsonb_build_object('person', millrace.approval_name(p ->> 'person')) order by n), '[]')
                            from jsonb_array_elements(millrace.approval_people(a.id)) with ordinality x(p, n)))
      from (select) one
      left join millrace.job j on j.id = a.job
      left join millrace.kind k on k.id = j.kind
$$;

create or replace function millrace.approvals_shown(only_open boolean default true, page int default 100) returns setof jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if approvals_shown.page is null or approvals_shown.page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    return query
    select millrace.approval_row(a) from millrace.approval a
     where (a.answered_at is null and millrace.approval_waits(a)) = approvals_shown.only_open
     order by case when approvals_shown.only_open then a.asked_at end, a.asked_at desc, a.id limit approvals_shown.page;
end $$;
select millrace.door_is('console', 'approvals_shown', 'admin, viewer', 'staff');

create or replace function millrace.approval_shown(id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select millrace.approval_row(a) from millrace.approval a where a.id = approval_shown.id
$$;
select millrace.door_is('console', 'approval_shown', 'admin, viewer', 'staff');

-- Saved searches of jobs, by name.
create or replace function millrace.console_searches() returns setof millrace.console_search
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select s.* from millrace.console_search s order by s.name limit 100
$$;
select millrace.door_is('console', 'console_searches', 'admin, viewer', 'staff');

-- Saves a search, or changes the one with this name. False: it has these conditions already.
create or replace function millrace.console_search_save(name text, filter jsonb, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    known constant text[] := '{state,queue,kind,tag,tenant,unique,limit,error,since,until,group,field,value,sort}';
begin
    if console_search_save.name is null or length(console_search_save.name) not between 1 and 128 or console_search_save.name ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the name of a search has 1 to 128 characters and no control characters', 'name');
    end if;
    if jsonb_typeof(console_search_save.filter) is distinct from 'object' or octet_length(console_search_save.filter::text) > 4096
        or exists (select from jsonb_each(console_search_save.filter) e where not e.key = any (known) or jsonb_typeof(e.value) <> 'string')
    then
        perform millrace.refuse('a search has conditions that the list of jobs knows, each a text, in 4096 bytes at most', 'filter',
            format('The list knows %s.', array_to_string(known, ', ')));
    end if;
    if (select count(*) from millrace.console_search) >= 100 and not exists (select from millrace.console_search s where s.name = console_search_save.name) then
        perform millrace.refuse('100 searches are saved already', 'name', 'Remove one that nobody needs.', '53400', 'too_large');
    end if;
    insert into millrace.console_search as s (name, filter, saved_by, saved_at)
    values (console_search_save.name, console_search_save.filter, millrace.said_by(), millrace.now())
        on conflict (name) do update set filter = excluded.filter, saved_by = excluded.saved_by, saved_at = excluded.saved_at where s.filter <> excluded.filter;
    if not found then
        return false;
    end if;
    perform millrace.audited('search.save', console_search_save.name, jsonb_build_object('filter', console_search_save.filter), caller => console_search_save.caller);
    return true;
end $$;
select millrace.door_is('console', 'console_search_save', 'admin, operator', 'staff', audited => true);

create or replace function millrace.console_search_remove(name text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.console_search s where s.name = console_search_remove.name;
    if not found then
        return false;
    end if;
    perform millrace.audited('search.remove', console_search_remove.name, null, caller => console_search_remove.caller);
    return true;
end $$;
select millrace.door_is('console', 'console_search_remove', 'admin, operator', 'staff', audited => true);
-- What happened to a job, for one axis of time, by when it began: its runs, the steps they recorded, what it waits for now, jobs that it made or
-- waited for in the middle of its work, and what was asked of providers for it. sort: run, step, wait, child or call. A step has only the time at which it was recorded, as its end. ended_at is null while something lasts.
-- At most the newest 100 runs, 1,000 steps, 100 children and 200 calls.
create or replace function millrace.job_waterfall(the_job bigint)
returns table (sort text, name text, began_at timestamptz, ended_at timestamptz, outcome text, attempt int, job bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
#variable_conflict use_column
declare
    args jsonb := (select j.args from millrace.job j where j.id = the_job);
    message uuid := case when args ->> 'message' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (args ->> 'message')::uuid end;
    question uuid := case when args ->> 'question' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then (args ->> 'question')::uuid end;
    child record;
begin
    return query select 'run', r.worker, r.started_at, r.ended_at, r.outcome, r.attempt, null::bigint from millrace.runs(the_job) r;
    return query select 'step', s.name, null::timestamptz, s.at, null::text, s.attempt, null::bigint from (select x.* from millrace.steps(the_job) x limit 1000) s;
    return query
    select 'wait', w.step, w.since, (select max(h.finished) from millrace.history h where h.id = the_job and h.outcome in (1, 2, 3)), (array['time', 'signal', 'jobs', 'approval'])[w.what], w.attempt::int, null::bigint
      from millrace.wait w where w.job = the_job;
    for child in
        select x.id from (
            (select e.succ as id from millrace.edge e where e.pred = the_job and e.number is not null order by e.succ limit 100)
            union
            (select e.pred from millrace.edge e where e.succ = the_job and e.pred > the_job and e.number is null order by e.pred limit 100)) x
         order by x.id limit 100
    loop
        return query
        select 'child', j.kind, coalesce(j.started_at, j.enqueued_at), j.finished_at, j.state, j.attempt, j.id from millrace.job(child.id) j;
    end loop;
    return query
    select 'call', a.provider, a.at - make_interval(secs => coalesce(a.ms, 0) / 1000.0), a.at, a.outcome, a.n, null::bigint
      from millrace.mail m join millrace.mail_attempt a on a.message = m.id where m.id = message and m.job = the_job order by a.n desc limit 200;
    return query
    select 'call', c.provider, c.at, case when c.outcome <> 'running' then c.at + make_interval(secs => coalesce(c.ms, 0) / 1000.0) end, c.outcome, c.n, null::bigint
      from millrace.ai_question q join millrace.ai_call c on c.question = q.id where q.id = question and q.job = the_job order by c.n desc limit 200;
end $$;
select millrace.door_is('console', 'job_waterfall', 'admin, viewer', 'staff');
