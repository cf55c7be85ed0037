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

-- What changes is told to workers; and of watches and alarms an event goes to the app's own server, without what anybody wrote and without a contact.
create or replace function millrace.checkin_changed(the_person text, the_alarm uuid, the_change text, the_data jsonb default '{}') returns void
language plpgsql volatile as $$
declare
    said text;                                            -- assigned, not performed: Postgres prepares a `perform` again in every call
begin
    insert into millrace.checkin_change (at, person, alarm, change, data) values (millrace.now(), the_person, the_alarm, the_change, the_data);
    if the_alarm is not null and the_change in ('raised', 'escalated', 'answered', 'unreachable', 'resolved') then
        said := millrace.event_say('millrace.alarm.' || the_change, '/millrace/check-ins', the_alarm::text, null,
            jsonb_build_object('person', the_person, 'alarm', the_alarm) || (the_data - array['contact', 'reason']));
    elsif the_alarm is null and the_change in ('armed', 'paused', 'disarmed') then
        said := millrace.event_say('millrace.check_in.' || the_change, '/millrace/check-ins', the_person, null,
            jsonb_build_object('person', the_person) || (the_data - array['contact', 'reason']));
    end if;
end $$;

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

-- A time within words of this language. Among Arabic letters its numbers would change places; a mark that nobody sees keeps them in order.
create or replace function millrace.time_within(language text, words text) returns text
language sql immutable as $$
    select case when language = 'ar' then chr(8206) || words || chr(8206) else words end
$$;

-- A title and a sentence for every stage, in the reader's language: English, where it is none of those here. What is only a test says so first.
-- `reader` is a contact of the alarm's person; without one the language is that person's own. `said_in`: the language that the reader has chosen on a page.
create or replace function millrace.alarm_words(a millrace.alarm, stage text, who text default null, reader text default null, said_in text default null) returns jsonb
language plpgsql stable as $$
declare
    w millrace.watch;
    zone text := millrace.alarm_zone(a.person, reader);
    title text;
    body text;
    language text := coalesce(said_in, millrace.alarm_language(a.person, reader));
    test text := case when a.cause = 'drill' then millrace.in_language(language, 'TEST: ', 'TEST: ', 'TEST (تجربة): ') else '' end;
    name text := millrace.display_name(a.person);
    contact text := coalesce(millrace.contact_name(a.person, who), millrace.in_language(language, 'A contact', 'Ein Kontakt', 'إحدى جهات الاتصال'));
    due text;
begin
    select * into w from millrace.watch x where x.person = a.person;
    due := millrace.time_within(language, millrace.time_in_zone(a.expired_at, zone));
    case stage
    when 'raised', 'escalated' then
        title := case when a.cause = 'help' then format(millrace.in_language(language, '%s asks for help', '%s bittet um Hilfe', 'طلب مساعدة من %s'), name)
            else format(millrace.in_language(language, '%s has not checked in', '%s hat sich nicht gemeldet', 'لم يصل تأكيد السلامة من %s'), name) end;
        body := case a.cause
            when 'help' then format(millrace.in_language(language, '%s asked for help at %s.', '%s hat um %s um Hilfe gebeten.', 'وصل طلب مساعدة من %s في %s.'), name, due)
            when 'drill' then format(millrace.in_language(language, 'This is a test of the alarm for %s. Nothing has happened.', 'Das ist eine Probe des Alarms um %s. Es ist nichts passiert.', 'هذه تجربة للإنذار الخاص بـ %s. لم يحدث شيء.'), name)
            else format(millrace.in_language(language, '%s should have checked in by %s and has not.', '%s hätte sich bis %s melden sollen und hat es nicht getan.', 'كان تأكيد السلامة من %s منتظرًا حتى %s، ولم يصل.'), name, due) end;
        if a.late_by > interval '1 minute' then
            body := body || format(millrace.in_language(language, ' This message is late by %s.', ' Diese Nachricht kommt um %s zu spät.', ' تأخرت هذه الرسالة بمقدار %s.'), date_trunc('second', a.late_by));
        end if;
        if a.note is not null then
            body := body || ' ' || format(millrace.in_language(language, 'Note: “%s”', 'Notiz: „%s“', 'ملاحظة: «%s»'), a.note);
        end if;
        if stage = 'escalated' then
            body := body || millrace.in_language(language, ' Nobody has answered yet.', ' Es hat noch niemand geantwortet.', ' لم يجب أحد بعد.');
        end if;
        body := body || case when a.cause = 'drill' then millrace.in_language(language, ' Please confirm that you got it.', ' Bitte antworte, dass du sie bekommen hast.', ' يرجى الرد بأنها وصلت.')
            else millrace.in_language(language, ' Please say whether you can help.', ' Bitte antworte, ob du dich kümmern kannst.', ' يرجى الرد إن كان بإمكانكم متابعة الأمر.') end;
    when 'acknowledged' then
        title := format(millrace.in_language(language, '%s looks after %s', '%s kümmert sich um %s', 'رد من %s على إنذار %s'), contact, name);
        body := format(millrace.in_language(language, '%s has answered the alarm about %s.', '%s hat auf den Alarm um %s geantwortet.', 'وصل رد من %s على الإنذار الخاص بـ %s.'), contact, name);
    when 'resolved' then
        title := format(millrace.in_language(language, 'The alarm about %s is over', 'Der Alarm um %s ist vorbei', 'انتهى الإنذار الخاص بـ %s'), name);
        body := case a.resolution
            when 'late_check_in' then format(millrace.in_language(language, '%s has checked in late, at %s.', '%s hat sich um %s gemeldet, zu spät.', 'وصل تأكيد السلامة من %s متأخرًا، في %s.'), name,
                millrace.time_within(language, millrace.time_in_zone(w.last_checked_in, zone)))
            when 'contact' then format(millrace.in_language(language, '%s says that %s is safe.', '%s sagt, dass %s in Sicherheit ist.', 'بحسب %s: %s بخير.'), contact, name)
            when 'drill' then millrace.in_language(language, 'The test is over.', 'Die Probe ist vorbei.', 'انتهت التجربة.')
            else millrace.in_language(language, 'It was ended by an operator.', 'Der Betreiber hat ihn beendet.', 'أنهاه مشغّل الخدمة.') || coalesce(' ' || a.reason, '') end;
        body := case when a.cause = 'drill' then millrace.in_language(language, 'The test is over.', 'Die Probe ist vorbei.', 'انتهت التجربة.') else body end;
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
    due text := millrace.time_in_zone(w.expires_at, millrace.alarm_zone(w.person, null));
    locale text := millrace.alarm_locale(w.person, null);
begin
    return jsonb_build_object('locale', locale) || case millrace.words_language(locale)
        when 'de' then jsonb_build_object('title', 'Bitte melde dich', 'body', format('Bitte melde dich bis %s, sonst erfahren es deine Kontakte.', due))
        when 'ar' then jsonb_build_object('title', 'يرجى تأكيد السلامة', 'body', format('يرجى تأكيد السلامة حتى %s، وإلا فستُبلَّغ جهات الاتصال.', millrace.time_within('ar', due)))
        else jsonb_build_object('title', 'Please check in', 'body', format('Please check in by %s, or your contacts will be told.', due)) end;
end $$;

-- What an address reads that is asked whether it wants to be told.
create or replace function millrace.consent_words(the_person text, the_contact text, the_channel text) returns jsonb
language plpgsql stable as $$
declare
    locale text := millrace.consent_locale(the_person, the_contact, the_channel);
    name text := millrace.display_name(the_person);
begin
    return jsonb_build_object('locale', locale) || case millrace.words_language(locale)
        when 'de' then jsonb_build_object('title', format('%s möchte dich als Notfallkontakt', name), 'body',
            format('%s fragt, ob du es erfahren willst, wenn %s sich nicht meldet. Bitte antworte mit Ja, Nein oder „Nie wieder fragen“.', name, name))
        when 'ar' then jsonb_build_object('title', format('طلب من %s لتكون جهة اتصال', name), 'body',
            format('السؤال من %s: هل تريد أن تُبلَّغ إذا لم يصل تأكيد السلامة؟ يرجى الرد بنعم أو لا أو «لا تسألوني مرة أخرى».', name))
        else jsonb_build_object('title', format('%s wants you as an emergency contact', name), 'body',
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
