-- Who hears of documents, mail, notices, check-ins and alarms. A row holds what the person's own doors show: ids, states and times; no
-- addresses, and nothing that another person wrote.

-- The owner; a document of nobody in particular is for all of its tenant. Who wants to be told that a document is ready gets a notice, too; the parts of
-- one are told with it.
create or replace function millrace.feed_documents() returns trigger
language plpgsql as $$
begin
    perform millrace.notice_about(n.owner, 'document.ready', 'document:' || n.document || ':' || extract(epoch from n.at),
        jsonb_strip_nulls(jsonb_build_object('document', n.document, 'lesson', n.lesson_id, 'status', n.data ->> 'status', 'body', d.title)),
        case d.status when 'completed' then array['Your document is ready', 'Dein Dokument ist fertig', 'مستندك جاهز']
                      else array['A document could not be read', 'Ein Dokument ließ sich nicht lesen', 'تعذّرت قراءة مستند'] end)
       from news n join millrace.document d on d.id = n.document
      where n.change = 'processing_complete' and n.owner is not null and d.parent is null;
    perform millrace.feed_say(array(
        select millrace.feed_change(at => n.at, topic => 'documents', person => n.owner, tenant => n.tenant, lesson => n.lesson_id, ref => n.document::text,
                   change => n.change, data => n.data)
          from news n where n.owner is not null or n.tenant is not null));
    return null;
end $$;

-- What a client sent is of its tenant, which without a tenant in the claims is the person. What a server sent is the server's, and that of the person
-- whom it named as the reader. switched_from: another service had been tried before.
create or replace function millrace.feed_mail() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_say(array(
        select millrace.feed_change(at => n.at, topic => 'mail', person => case when not s.is_clients then m.person end, tenant => case when s.is_clients then m.tenant end,
                   ref => n.message::text, change => n.change,
                   data => n.data || jsonb_strip_nulls(jsonb_build_object('template', m.template, 'switched_from', (
                       select a.provider from millrace.mail_attempt a where a.message = m.id and a.provider <> m.service order by a.n desc limit 1))))
          from news n join millrace.mail m on m.id = n.message
         cross join lateral (select m.tenant is not null and not millrace.is_backend(m.owner) as is_clients) s
         where s.is_clients or m.person is not null));
    return null;
end $$;

-- What became of a person's own notices. What goes to an address that somebody else has given is not the person's.
create or replace function millrace.feed_notice() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_say(array[millrace.feed_change(at => millrace.now(), topic => 'notices', person => new.person, ref => new.id::text,
        change => case when tg_op = 'INSERT' then 'scheduled' when new.status <> old.status then new.status else 'moved' end,
        data => jsonb_strip_nulls(jsonb_build_object('kind', new.kind, 'key', case when new.kind like 'own.%' then substr(new.key, 5) end, 'status', new.status,
            'channel', new.channel, 'due_at', new.due_at, 'accepted_at', new.accepted_at)))]);
    return null;
end $$;

-- On the way of every check-in, so it makes no call that it can spare.
create or replace function millrace.feed_watch() returns trigger
language plpgsql as $$
declare
    what text := 'armed';
    said text;                                             -- assigned, not performed, as in feed_wake
begin
    if new.state = 'disarmed' and (tg_op = 'INSERT' or old.state = 'disarmed') then
        what := case when tg_op = 'INSERT' or new.last_checked_in is not distinct from old.last_checked_in then 'interval' else 'checked_in' end;
    elsif tg_op = 'UPDATE' then
        what := case when new.last_checked_in is distinct from old.last_checked_in then
                    case when old.state = 'disarmed' or new.every <> old.every or new.grace <> old.grace or new.warnings <> old.warnings or new.zone <> old.zone
                         then 'armed' else 'checked_in' end
                when new.state <> old.state then new.state
                when new.every <> old.every then 'interval'
                else new.state end;
    end if;
    said := millrace.feed_say(array[millrace.feed_change(at => millrace.now(), topic => 'check-ins', person => new.person, ref => new.person, change => what,
        data => jsonb_build_object('state', new.state, 'last_checked_in', new.last_checked_in, 'check_in_interval', new.every, 'check_in_expiration', new.expires_at)
            || case new.state when 'paused' then jsonb_build_object('paused_until', new.wake_at) else '{}' end)]);
    -- Contacts hear of another state where the person shares it; not of each check-in, whose times the door shows.
    if (tg_op = 'INSERT' and new.state <> 'disarmed')
        or (tg_op = 'UPDATE' and new.state <> old.state and not (new.state in ('armed', 'warned') and old.state in ('armed', 'warned'))) then
        perform millrace.feed_say(array(
            select millrace.feed_change(at => millrace.now(), topic => 'check-ins', person => c.contact, ref => new.person, change => 'watched',
                       data => jsonb_build_object('person', new.person) || millrace.watch_shared(new.person, c.shares), about => new.person)
              from millrace.watch_contact c
             where c.person = new.person and c.shares <> 'nothing' and millrace.contact_account(c.person, c.contact) is not null));
    end if;
    return null;
end $$;

-- What a person shares with a contact has changed.
create or replace function millrace.feed_sharing() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_say(array(
        select millrace.feed_change(at => millrace.now(), topic => 'check-ins', person => new.contact, ref => new.person, change => 'watched',
                   data => jsonb_build_object('person', new.person, 'shares', new.shares) || millrace.watch_shared(new.person, new.shares), about => new.person)
         where millrace.contact_account(new.person, new.contact) is not null));
    return null;
end $$;

-- An account that was asked, or has agreed, is no contact any more.
create or replace function millrace.feed_contact_gone() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_say(array[millrace.feed_change(at => millrace.now(), topic => 'check-ins', person => old.contact, ref => old.person, change => 'unwatched',
        data => jsonb_build_object('person', old.person), about => old.person)]);
    return null;
end $$;

-- A watch's contacts, and the account that is asked to be one, or has answered on another of its devices; alarms have triggers of their own.
create or replace function millrace.feed_contacts() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_say(array(
        select millrace.feed_change(at => n.at, topic => 'check-ins', person => n.person, ref => n.person, change => n.change, data => n.data, about => n.data ->> 'contact')
          from news n where n.change in ('contact', 'contact_removed', 'consent_given', 'consent_declined', 'at_not_used')
        union all
        select millrace.feed_change(at => n.at, topic => 'check-ins', person => n.data ->> 'contact', ref => n.person,
                   change => case n.change when 'asked' then 'asked' else 'answered' end,
                   data => jsonb_build_object('person', n.person) || case n.change when 'asked' then '{}' else jsonb_build_object('agrees', n.change = 'consent_given') end,
                   about => n.person)
          from news n where n.change in ('asked', 'consent_given', 'consent_declined') and n.data ->> 'channel' = 'push'));
    return null;
end $$;

create or replace function millrace.feed_may_tell(the_person text, the_contact text) returns boolean
language sql stable as $$
    select exists (select from millrace.watch_address d
                    where d.person = the_person and d.contact = the_contact and d.verified_at is not null and d.declined_at is null)
$$;

-- The contacts that were told of an alarm and may still be told: one that has declined, or was removed, hears nothing more.
create or replace function millrace.feed_told(the_alarm uuid, the_person text) returns setof text
language sql stable as $$
    select distinct e.contact from millrace.alarm_event e
     where e.alarm = the_alarm and e.what = 'told' and millrace.feed_may_tell(the_person, e.contact)
$$;

create or replace function millrace.feed_alarm_data(a millrace.alarm) returns jsonb
language sql stable as $$
    select jsonb_strip_nulls(jsonb_build_object('person', a.person, 'state', a.state, 'cause', a.cause, 'test', a.cause = 'drill', 'raised_at', a.raised_at,
        'expired_at', a.expired_at, 'acknowledged_by', a.acknowledged_by, 'acknowledged_at', a.acknowledged_at, 'resolved_at', a.resolved_at, 'resolution', a.resolution))
$$;

-- The person, and the contacts that were told.
create or replace function millrace.feed_alarm() returns trigger
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
    perform millrace.feed_say(array(
        select millrace.feed_change(at => millrace.now(), topic => 'alarms', person => p.person, ref => new.id::text,
                   change => case new.state when 'open' then 'raised' else new.state end, data => millrace.feed_alarm_data(new),
                   about => nullif(new.person, p.person), actor => nullif(new.acknowledged_by, p.person))
          from (select new.person union all select t from millrace.feed_told(new.id, new.person) t where tg_op = 'UPDATE') p(person)));
    return null;
end $$;

-- A contact hears of an alarm when it is told of it, by whatever channel: when its step has come, or at the end. `left`: it is over for this
-- contact, who is one no more. Answers are for all who were told. An event stands there once for each channel.
create or replace function millrace.feed_alarm_events() returns trigger
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
    perform millrace.feed_say(array(
        select millrace.feed_change(at => n.at, topic => 'alarms', person => x.person, ref => n.alarm::text, change => x.change, data => x.data,
                   about => nullif(a.person, x.person), actor => nullif(x.actor, x.person))
          from news n join millrace.alarm a on a.id = n.alarm
         cross join lateral (
            select a.person as person, 'escalated' as change, jsonb_build_object('step', n.step, 'round', n.round) as data, null::text as actor where n.what = 'escalated'
            union all
            select n.contact, 'raised', millrace.feed_alarm_data(a), a.acknowledged_by
             where n.what = 'told' and millrace.feed_may_tell(a.person, n.contact)
               and not exists (select from millrace.alarm_event e where e.alarm = n.alarm and e.contact = n.contact and e.what = 'told' and e.id < n.id)
            union all
            select n.contact, case n.what when 'told_left' then 'left' else 'resolved' end,
                   case n.what when 'told_left' then jsonb_build_object('person', a.person, 'test', a.cause = 'drill') else millrace.feed_alarm_data(a) end, null
             where n.what in ('told_left', 'told_resolved')
               and not exists (select from millrace.alarm_event e
                    where e.alarm = n.alarm and e.contact = n.contact and (e.what = 'told' and n.what = 'told_resolved' or e.what = n.what and e.at = n.at and e.id < n.id))
            union all
            select p.person, 'answered', jsonb_build_object('person', a.person, 'contact', n.contact, 'answer', n.what), n.contact
              from (select a.person union select n.contact union select t from millrace.feed_told(n.alarm, a.person) t) p(person)
             where n.what in ('acknowledged', 'on_my_way', 'cannot', 'safe')
         ) x));
    return null;
end $$;

-- They come and stay together.
do $$
begin
    if exists (select from pg_trigger g where g.tgrelid = 'millrace.document_change'::regclass and g.tgname = 'a_feed_has_its_documents') then
        return;
    end if;
    create trigger a_feed_has_its_documents after insert on millrace.document_change referencing new table as news for each statement
        execute function millrace.feed_documents();
    create trigger a_feed_has_its_mail after insert on millrace.mail_change referencing new table as news for each statement
        execute function millrace.feed_mail();
    create trigger a_feed_has_its_contacts after insert on millrace.checkin_change referencing new table as news for each statement
        execute function millrace.feed_contacts();
    create trigger a_feed_has_its_new_watch after insert on millrace.watch for each row
        execute function millrace.feed_watch();
    create trigger a_feed_has_its_watch after update on millrace.watch for each row
        when (new.last_checked_in is distinct from old.last_checked_in or new.state <> old.state or new.every <> old.every or (new.state = 'paused' and new.wake_at <> old.wake_at))
        execute function millrace.feed_watch();
    create trigger a_feed_has_its_new_alarm after insert on millrace.alarm for each row
        execute function millrace.feed_alarm();
    create trigger a_feed_has_its_alarm after update on millrace.alarm for each row
        when (new.state <> old.state or new.cause <> old.cause)
        execute function millrace.feed_alarm();
    create trigger a_feed_has_its_alarm_events after insert on millrace.alarm_event referencing new table as news for each statement
        execute function millrace.feed_alarm_events();
    create trigger a_feed_has_its_own_notice after insert on millrace.notice for each row
        when (new.parent is null and new.kind like 'own.%')
        execute function millrace.feed_notice();
    create trigger a_feed_has_its_notice after update on millrace.notice for each row
        when (new.parent is null and (new.status <> old.status and (new.status in ('accepted', 'failed') or new.kind like 'own.%' and new.status <> 'attempting') or new.kind like 'own.%' and new.due_at <> old.due_at) and (new.kind not like 'alarm.%' or new.kind = 'alarm.warning' or new.channel is not distinct from 'push'))
        execute function millrace.feed_notice();
end $$;

do $$
begin
    if exists (select from pg_trigger g where g.tgrelid = 'millrace.watch_contact'::regclass and g.tgname = 'a_feed_has_its_sharing') then
        return;
    end if;
    create trigger a_feed_has_its_sharing after update on millrace.watch_contact for each row
        when (new.shares <> old.shares)
        execute function millrace.feed_sharing();
    create trigger a_feed_has_its_former_contact after delete on millrace.watch_address for each row
        when (old.channel = 'push' and (old.asked_at is not null or old.verified_at is not null))
        execute function millrace.feed_contact_gone();
end $$;
