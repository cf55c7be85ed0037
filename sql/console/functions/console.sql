-- What the console reads beside the doors of the command line. Each reads a bounded number of rows, and shows nothing that a viewer may not see:
-- no contents of messages and documents, and no addresses.

-- Schedules; null: all, up to 500. Their arguments are redacted.
create or replace function millrace.schedules_shown(the_name text default null) returns setof millrace.schedules
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    one millrace.schedules;
begin
    for one in select * from millrace.schedules s where the_name is null or s.name = the_name order by s.name limit 500 loop
        one.args := millrace.redact(one.kind, one.args);
        return next one;
    end loop;
end $$;
select millrace.door_is('console', 'schedules_shown', 'admin, viewer', 'staff');

-- A message without its recipients and contents.
create or replace function millrace.mail_shown(the_id uuid) returns jsonb
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$ select millrace.mail_story(the_id, false) $$;
select millrace.door_is('console', 'mail_shown', 'admin, viewer', 'staff');

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

-- Several jobs as job_shown shows one, in the order of the ids; those that are gone are left out.
create or replace function millrace.jobs_shown(ids bigint[]) returns setof millrace.jobs
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    n bigint;
    one millrace.jobs;
begin
    if ids is null or cardinality(ids) > 500 then
        perform millrace.refuse('ids must be at most 500', 'ids');
    end if;
    foreach n in array ids loop
        for one in select j.* from millrace.job(n) j loop
            return next millrace.job_redacted(one);
        end loop;
    end loop;
end $$;
select millrace.door_is('console', 'jobs_shown', 'admin, viewer', 'staff');

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
