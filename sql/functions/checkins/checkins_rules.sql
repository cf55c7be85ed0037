-- The rules that the other check-in functions use: when a watch wakes, who may be told, and in what words.

-- The next warning after `t`, or the expiry. A warning that is not shorter than the interval would come before the check-in itself, so it
-- is skipped.
create or replace function millrace.watch_next(expires_at timestamptz, warnings interval[], every interval, t timestamptz) returns timestamptz
language sql immutable as $$
    select least(min(expires_at - w), expires_at) from unnest(warnings) w where w < every and expires_at - w > t
$$;

-- The latest warning that has come due by `t` and was not given; null for none.
create or replace function millrace.watch_warns(expires_at timestamptz, warnings interval[], every interval, warned_at timestamptz, t timestamptz) returns interval
language sql immutable as $$
    select min(w) from unnest(warnings) w where w < every and expires_at - w <= t and (warned_at is null or expires_at - w > warned_at)
$$;

-- When a watch wakes after its deadline was moved: at once, if less time is left than before a warning.
create or replace function millrace.watch_wake(expires_at timestamptz, warnings interval[], every interval, t timestamptz) returns timestamptz
language sql immutable as $$
    select case when millrace.watch_warns(expires_at, warnings, every, null, t) is null then millrace.watch_next(expires_at, warnings, every, t) else t end
$$;

-- How often a chain goes through all its steps before the contacts count as unreachable.
create or replace function millrace.alarm_rounds() returns int
language sql immutable as 'select 3';

create or replace function millrace.checkin_changed(the_person text, the_alarm uuid, the_change text, the_data jsonb default '{}') returns void
language sql volatile as $$
    insert into millrace.checkin_change (at, person, alarm, change, data) values (millrace.now(), the_person, the_alarm, the_change, the_data)
$$;

create or replace function millrace.watch_span(span interval, field text, least_seconds float8, most_seconds float8) returns void
language plpgsql immutable as $$
begin
    if span is null or extract(epoch from span) not between least_seconds and most_seconds then
        perform millrace.refuse(format('%s is missing or out of range', field), field,
            format('Give from %s to %s.', make_interval(secs => least_seconds), make_interval(secs => most_seconds)));
    end if;
end $$;

-- The steps in which somebody may be told, in order.
create or replace function millrace.watch_steps(the_person text) returns int[]
language sql stable as $$
    select array(select distinct c.step from millrace.watch_contact c join millrace.watch_address d on d.person = c.person and d.contact = c.contact
                  where c.person = the_person and d.verified_at is not null and d.declined_at is null order by 1)
$$;

-- In UTC where the zone is one that this server does not know any more: nothing may keep an alarm from being told.
create or replace function millrace.alarm_time(t timestamptz, zone text) returns text
language plpgsql stable as $$
begin
    return to_char(t at time zone zone, 'YYYY-MM-DD HH24:MI') || ' (' || zone || ')';
exception when invalid_parameter_value then
    return to_char(t at time zone 'UTC', 'YYYY-MM-DD HH24:MI') || ' (UTC)';
end $$;

-- A title and a sentence for every stage, in the reader's language: English, where it is none of those here. What is only a test says so first.
-- `reader` is a contact of the alarm's person; without one the language is that person's own.
create or replace function millrace.alarm_words(a millrace.alarm, stage text, who text default null, reader text default null) returns jsonb
language plpgsql stable as $$
declare
    w millrace.watch;
    zone text := millrace.alarm_zone(a.person, reader);
    title text;
    body text;
    german boolean := millrace.alarm_language(a.person, reader) = 'de';
    test text := case when a.cause = 'drill' then 'TEST: ' else '' end;
    name text := millrace.display_name(a.person);
    contact text := coalesce(millrace.contact_name(a.person, who), case when german then 'Ein Kontakt' else 'A contact' end);
    due text;
begin
    select * into w from millrace.watch x where x.person = a.person;
    due := millrace.alarm_time(a.expired_at, zone);
    case stage
    when 'raised', 'escalated' then
        title := case when a.cause = 'help' then format(case when german then '%s bittet um Hilfe' else '%s asks for help' end, name)
            else format(case when german then '%s hat sich nicht gemeldet' else '%s has not checked in' end, name) end;
        body := case a.cause
            when 'help' then format(case when german then '%s hat um %s um Hilfe gebeten.' else '%s asked for help at %s.' end, name, due)
            when 'drill' then format(case when german then 'Das ist eine Probe des Alarms um %s. Es ist nichts passiert.'
                else 'This is a test of the alarm for %s. Nothing has happened.' end, name)
            else format(case when german then '%s hätte sich bis %s melden sollen und hat es nicht getan.' else '%s should have checked in by %s and has not.' end, name, due) end;
        if a.late_by > interval '1 minute' then
            body := body || format(case when german then ' Diese Nachricht kommt um %s zu spät.' else ' This message is late by %s.' end, date_trunc('second', a.late_by));
        end if;
        if a.note is not null then
            body := body || ' ' || format(case when german then 'Notiz: %s' else 'Note: %s' end, a.note);
        end if;
        if stage = 'escalated' then
            body := body || case when german then ' Es hat noch niemand geantwortet.' else ' Nobody has answered yet.' end;
        end if;
        body := body || case when a.cause = 'drill' then case when german then ' Bitte antworte, dass du sie bekommen hast.' else ' Please say that you got it.' end
            else case when german then ' Bitte antworte, ob du dich kümmern kannst.' else ' Please say whether you can look after it.' end end;
    when 'acknowledged' then
        title := format(case when german then '%s kümmert sich um %s' else '%s looks after %s' end, contact, name);
        body := format(case when german then '%s hat auf den Alarm um %s geantwortet.' else '%s has answered the alarm about %s.' end, contact, name);
    when 'resolved' then
        title := format(case when german then 'Der Alarm um %s ist vorbei' else 'The alarm about %s is over' end, name);
        body := case a.resolution
            when 'late_check_in' then format(case when german then '%s hat sich um %s gemeldet, zu spät.' else '%s has checked in late, at %s.' end, name,
                millrace.alarm_time(w.last_checked_in, zone))
            when 'contact' then format(case when german then '%s sagt, dass %s in Sicherheit ist.' else '%s says that %s is safe.' end, contact, name)
            when 'drill' then case when german then 'Die Probe ist vorbei.' else 'The test is over.' end
            else case when german then 'Der Betreiber hat ihn beendet.' else 'It was ended by an operator.' end || coalesce(' ' || a.reason, '') end;
        body := case when a.cause = 'drill' then case when german then 'Die Probe ist vorbei.' else 'The test is over.' end else body end;
    else
        title := stage;
        body := stage;
    end case;
    return jsonb_build_object('title', test || title, 'body', test || body);
end $$;

-- What the person itself reads before the expiry.
create or replace function millrace.warning_words(w millrace.watch) returns jsonb
language plpgsql stable as $$
declare
    due text := millrace.alarm_time(w.expires_at, millrace.alarm_zone(w.person, null));
    locale text := millrace.alarm_locale(w.person, null);
begin
    return jsonb_build_object('locale', locale) || case millrace.words_language(locale)
        when 'de' then jsonb_build_object('title', 'Bitte melde dich', 'body', format('Bitte melde dich bis %s, sonst erfahren es deine Kontakte.', due))
        else jsonb_build_object('title', 'Please check in', 'body', format('Please check in by %s, or your contacts are told.', due)) end;
end $$;

-- What an address reads that is asked whether it wants to be told.
create or replace function millrace.consent_words(the_person text, the_contact text, the_channel text) returns jsonb
language plpgsql stable as $$
declare
    locale text := millrace.consent_locale(the_person, the_contact, the_channel);
    name text := millrace.display_name(the_person);
begin
    return jsonb_build_object('locale', locale) || case millrace.words_language(locale)
        when 'de' then jsonb_build_object('title', format('%s nennt dich als Kontakt', name), 'body',
            format('%s fragt, ob du es erfahren willst, wenn %s sich nicht meldet. Bitte antworte mit Ja, Nein oder „Nie wieder fragen“.', name, name))
        else jsonb_build_object('title', format('%s names you as a contact', name), 'body',
            format('%s asks whether you want to be told when they do not check in. Please say yes, no, or never ask me again.', name)) end;
end $$;

-- One notice for each verified address of these contacts: of those steps, or of those names.
create or replace function millrace.alarm_tell(a millrace.alarm, stage text, steps int[], contacts text[], t timestamptz, who text default null) returns int
language plpgsql volatile as $$
declare
    d record;
    words jsonb;
    the_notice uuid;
    n int := 0;
begin
    for d in
        select x.ref, x.contact, x.channel, x.address, c.step
          from millrace.watch_contact c join millrace.watch_address x on x.person = c.person and x.contact = c.contact
         where c.person = a.person and x.verified_at is not null and x.declined_at is null
           and (steps is null or c.step = any (steps)) and (contacts is null or c.contact = any (contacts))
         order by c.step, c.contact, x.channel
    loop
        begin                                              -- one that cannot be written keeps no other from being told
            words := millrace.alarm_words(a, stage, who, d.contact);
            the_notice := millrace.notice_put(d.contact, case when a.cause = 'drill' then 'alarm.drill' else 'alarm.' || stage end, d.channel, d.address,
                words || jsonb_build_object('locale', millrace.alarm_locale(a.person, d.contact), 'alarm', a.id, 'ref', d.ref, 'person', a.person, 'stage', stage, 'cause', a.cause, 'test', a.cause = 'drill',
                    'step', a.step, 'round', a.round, 'expired_at', a.expired_at, 'late_seconds', round(extract(epoch from a.late_by))),
                'alarm:' || a.id || ':' || case when stage in ('raised', 'escalated') then d.step || ':' || a.round else stage end || ':' || d.channel,
                t, t + interval '24 hours', true);
            insert into millrace.alarm_event (alarm, at, what, contact, notice, step, round, channel)
            values (a.id, t, case when stage in ('raised', 'escalated') then 'told' else 'told_' || stage end, d.contact, the_notice, d.step, a.round, d.channel);
            n := n + 1;
        exception when others then
            if sqlstate like '40%' or sqlstate like '53%' or sqlstate like '57%' then
                raise;
            end if;
            perform millrace.alarm_note(a.id, t, 'not_told', d.contact, null, d.step, a.round);
        end;
    end loop;
    return n;
end $$;

create or replace function millrace.alarm_note(the_alarm uuid, t timestamptz, what text, contact text default null, who text default null, step int default null, round int default null) returns void
language sql volatile as $$
    insert into millrace.alarm_event (alarm, at, what, contact, by, step, round) values (the_alarm, t, what, contact, who, step, round)
$$;
