-- From due notices to sendings under way: who is told, how, and by which worker.

-- The addresses of a person for these channels. Push has one for each device.
create or replace function millrace.notice_places(the_person text, the_channels text[], wanted jsonb) returns table (channel text, address text)
language sql stable as $$
    select 'push', d.token from millrace.device d
     where d.person = the_person and 'push' = any (the_channels) and coalesce(wanted -> 'push', 'true') <> 'false'
    union
    select c, wanted ->> c from unnest(the_channels) c where c in ('mail', 'sms', 'voice') and wanted ->> c is not null
$$;

-- The state of a notice that has several sendings follows from theirs: accepted with the first, and ended badly when all have.
create or replace function millrace.notice_fold(the_id uuid) returns void
language plpgsql volatile as $$
declare
    one millrace.notice;
    s record;
begin
    select * into one from millrace.notice n where n.id = the_id for update;
    if not found then
        return;
    end if;
    select count(*) filter (where c.status in ('pending', 'attempting')) as open, min(c.accepted_at) filter (where c.status = 'accepted') as accepted,
           sum(c.attempts) as attempts, sum(c.duplicates) as duplicates, bool_or(c.status = 'failed') as failed, bool_or(c.status = 'expired') as expired,
           bool_and(c.status = 'cancelled') as cancelled, string_agg(distinct c.error, '; ') as error
      into s from millrace.notice c where c.parent = the_id;
    update millrace.notice n
       set attempts = s.attempts, duplicates = s.duplicates, accepted_at = s.accepted,
           status = case when s.accepted is not null then 'accepted' when s.open > 0 then 'attempting' when s.failed then 'failed'
                         when s.expired then 'expired' when s.cancelled then 'cancelled' else 'suppressed' end,
           error = case when s.accepted is null then left(s.error, 500) end
     where n.id = the_id;
end $$;

create or replace function millrace.notice_settle(one millrace.notice, the_status text, the_class text, the_error text) returns void
language plpgsql volatile as $$
begin
    update millrace.notice n set status = the_status, error_class = the_class, error = the_error, holder = null, wait_until = null where n.id = one.id;
    if one.parent is not null then
        perform millrace.notice_fold(one.parent);
    end if;
end $$;

-- Joins notices that piled up while no worker sent them into one short notice. False: there are too few.
create or replace function millrace.notice_sum_up(one millrace.notice, t timestamptz) returns boolean
language plpgsql volatile as $$
declare
    late uuid[];
    told jsonb;
    the_summary uuid := gen_random_uuid();
begin
    if one.due_at > t - interval '1 hour' then
        return false;
    end if;
    late := array(select n.id from millrace.notice n
        where n.person = one.person and n.status = 'pending' and n.address is null and n.channel is null and not n.alarm and n.kind <> 'summary' and n.kind not like 'approval.%'
          and n.due_at <= t - interval '1 hour' and coalesce(n.wait_until, n.due_at) <= t and coalesce(n.expires_at > t, true)
        order by n.due_at limit 500 for update skip locked);
    if cardinality(late) < 3 then
        return false;
    end if;
    select jsonb_build_object('count', cardinality(late), 'since', min(n.due_at), 'kinds', jsonb_object_agg(n.kind, n.times)) into told
      from (select x.kind, count(*) as times, min(x.due_at) as due_at from millrace.notice x where x.id = any (late) group by x.kind) n;
    insert into millrace.notice (id, person, kind, data, alarm, status, due_at, created_at)
    values (the_summary, one.person, 'summary', told, false, 'pending', t, t);
    update millrace.notice n set status = 'suppressed', parent = the_summary, error_class = 'cancelled', error = 'included in a summary' where n.id = any (late);
    return true;
end $$;

-- Decides how a notice is sent: by its own row, if one sending is enough, else by a row for each sending. Alarms ignore quiet hours and
-- preferences.
create or replace function millrace.notice_expand(one millrace.notice, t timestamptz) returns void
language plpgsql volatile as $$
declare
    p millrace.notice_preference;
    loud timestamptz;
    wanted text[];
    places text[][];
    place record;
    n int;
begin
    select * into p from millrace.notice_preference x where x.person = one.person;
    if found and not one.alarm then
        loud := millrace.notice_loud(t, p.zone, p.quiet_from, p.quiet_to);
        if loud > t then
            if one.expires_at <= loud then
                perform millrace.notice_settle(one, 'suppressed', 'cancelled', 'it expires within the quiet hours');
            else
                update millrace.notice y set due_at = loud, wait_until = null where y.id = one.id;
            end if;
            return;
        end if;
    end if;
    if not one.alarm and one.channel is null and one.kind <> 'summary' and one.kind not like 'approval.%' and millrace.notice_sum_up(one, t) then
        return;
    end if;
    wanted := coalesce(
        case when one.channel is not null then array[one.channel] end,
        one.channels,
        case when one.alarm then array['push', 'mail', 'sms', 'voice'] end,
        case when p.channels #> array['kinds', one.kind] is not null then array(select jsonb_array_elements_text(p.channels #> array['kinds', one.kind])) end,
        array['push', 'mail']);
    select count(*) into n from millrace.notice_places(one.person, wanted, p.channels);
    if n = 0 then
        perform millrace.notice_settle(one, case when one.alarm then 'failed' else 'suppressed' end, 'not_found',
            case when cardinality(wanted) = 0 then 'the person wants no notices of this kind' else 'the person has no address or device for this' end);
    elsif n = 1 then
        update millrace.notice y set channel = x.channel, address = x.address
          from millrace.notice_places(one.person, wanted, p.channels) x where y.id = one.id;
    else
        update millrace.notice y set status = 'attempting', wait_until = null where y.id = one.id;
        insert into millrace.notice (id, person, kind, data, alarm, status, due_at, expires_at, created_at, channel, address, parent)
        select gen_random_uuid(), one.person, one.kind, one.data, one.alarm, 'pending', one.due_at, one.expires_at, t, x.channel, x.address, one.id
          from millrace.notice_places(one.person, wanted, p.channels) x;
    end if;
end $$;

-- Leases due notices to the caller: new ones, and those whose worker did not report back, which are sent again. A duplicate is better than
-- silence.
create or replace function millrace.notice_take(is_alarm boolean, most int, the_holder bigint, lease float8)
returns table (id uuid, person text, kind text, key text, data jsonb, channel text, address text, alarm boolean, platform text, app text, attempt int,
    is_again boolean, due_at timestamptz, expires_at timestamptz, at timestamptz, locale text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    one millrace.notice;
begin
    for one in
        select n.* from millrace.notice n
         where n.alarm = is_alarm and n.status = 'pending' and n.address is null and coalesce(n.wait_until, n.due_at) <= t
         order by n.alarm, coalesce(n.wait_until, n.due_at) limit most for update skip locked
    loop
        select n.* into one from millrace.notice n where n.id = one.id;       -- an earlier one of this batch may have summed it up
        if one.status <> 'pending' then
            continue;
        end if;
        if one.expires_at <= t then
            perform millrace.notice_settle(one, 'expired', 'timeout', 'it expired before it could be sent');
        elsif millrace.approval_notice_is_late(one) then
            perform millrace.notice_settle(one, 'suppressed', 'cancelled', 'the question was no longer open');
        else
            perform millrace.notice_expand(one, t);
        end if;
    end loop;
    for one in
        select n.* from millrace.notice n
         where n.alarm = is_alarm and n.status in ('pending', 'attempting') and n.address is not null and coalesce(n.wait_until, n.due_at) <= t
         order by n.alarm, coalesce(n.wait_until, n.due_at) limit most for update skip locked
    loop
        if one.status = 'attempting' then
            insert into millrace.notice_attempt (notice, n, provider, outcome, error, at)
            values (one.id, one.attempts, coalesce(one.provider, one.channel), 'lost', 'the worker that sent it did not report back', t);
        end if;
        if one.expires_at <= t then
            perform millrace.notice_settle(one, 'expired', 'timeout', coalesce(one.error, 'it expired before it could be sent'));
            continue;
        elsif millrace.approval_notice_is_late(one) then
            perform millrace.notice_settle(one, 'suppressed', 'cancelled', 'the question was no longer open');
            continue;
        end if;
        update millrace.notice n
           set status = 'attempting', holder = the_holder, wait_until = t + make_interval(secs => lease), attempts = n.attempts + 1,
               duplicates = n.duplicates + (one.status = 'attempting')::int
         where n.id = one.id;
        id := one.id; person := one.person; kind := one.kind; key := one.key; data := one.data; channel := one.channel; address := one.address;
        alarm := one.alarm; attempt := one.attempts + 1; is_again := one.attempts > 0; due_at := one.due_at; expires_at := one.expires_at; at := t;
        select d.platform, d.app into platform, app from millrace.device d where one.channel = 'push' and d.token = one.address;
        -- What the check-ins write says itself in which locale: a contact's name may be another person's id.
        locale := case when one.kind like 'alarm.%' and one.data ? 'stage' then one.data ->> 'locale' else millrace.notice_locale(one.person) end;
        return next;
    end loop;
end $$;
select millrace.door_is('notices', 'notice_take', 'worker', 'staff');

-- Seconds until something of this lane is due; null when nothing waits.
create or replace function millrace.notice_next(is_alarm boolean) returns float8
language sql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_sort = off set enable_bitmapscan = off set jit = off as $$
    select extract(epoch from least(
        (select coalesce(n.wait_until, n.due_at) from millrace.notice n where n.alarm = is_alarm and n.status = 'pending' and n.address is null
          order by n.alarm, coalesce(n.wait_until, n.due_at) limit 1),
        (select coalesce(n.wait_until, n.due_at) from millrace.notice n where n.alarm = is_alarm and n.status in ('pending', 'attempting') and n.address is not null
          order by n.alarm, coalesce(n.wait_until, n.due_at) limit 1)) - millrace.now())::float8
$$;
select millrace.door_is('notices', 'notice_next', 'worker', 'staff');

-- Enqueues mails, in one transaction with the record here, so they are accepted exactly once. A refused one gets the reason.
create or replace function millrace.notice_mail(the_holder bigint, mails jsonb) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    m record;
    one millrace.notice;
    the_mail uuid;
    done int := 0;
    t timestamptz := millrace.now();
begin
    for m in select * from jsonb_to_recordset(mails) x(id uuid, subject text, body text) loop
        select * into one from millrace.notice n where n.id = m.id and n.status = 'attempting' and n.holder = the_holder for update;
        continue when not found;
        begin
            the_mail := millrace.mail_put('mail.send', jsonb_build_object('recipients', jsonb_build_array(one.address), 'subject', m.subject, 'body_text', m.body,
                'expires_at', case when one.expires_at > t then one.expires_at end, 'priority', case when one.alarm then 'urgent' else 'normal' end,
                'purpose', case when one.alarm then 'alarm' else 'transactional' end, 'on_unknown', case when one.alarm then 'again' else 'park' end), null, null, caller => current_user);
            perform millrace.mail_is_read_by(the_mail, one.person);
            update millrace.notice n
               set status = 'accepted', accepted_at = t, provider = 'mail', mail = the_mail, reply = the_mail::text, holder = null, wait_until = null, error = null, error_class = null
             where n.id = one.id;
            insert into millrace.notice_attempt (notice, n, provider, outcome, at) values (one.id, one.attempts, 'mail', 'accepted', t);
            if one.parent is not null then
                perform millrace.notice_fold(one.parent);
            end if;
            done := done + 1;
        exception when data_exception or integrity_constraint_violation or insufficient_privilege or sqlstate '53400' then
            insert into millrace.notice_attempt (notice, n, provider, outcome, error, at) values (one.id, one.attempts, 'mail', 'refused', left(sqlerrm, 500), t);
            perform millrace.notice_settle(one, 'failed', 'invalid', left(sqlerrm, 500));
        end;
    end loop;
    return done;
end $$;
select millrace.door_is('notices', 'notice_mail', 'worker', 'staff');
