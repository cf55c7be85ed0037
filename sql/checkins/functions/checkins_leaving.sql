-- How a contact, a person or an address leaves. Everybody who was told of an alarm learns that it is over for them.

-- What is said at the end. Where the person is being erased it is not named, and the time says which alarm is meant.
create or replace function millrace.alarm_farewell_words(a millrace.alarm, is_erased boolean, locale text, zone text) returns jsonb
language plpgsql stable as $$
declare
    language text := millrace.words_language(alarm_farewell_words.locale);
    due text := millrace.time_within(language, millrace.time_in_zone(a.expired_at, alarm_farewell_words.zone));
    test text := case when a.cause = 'drill' then millrace.in_language(language, 'TEST: ', 'TEST: ', 'TEST (تجربة): ') else '' end;
    name text := millrace.display_name(a.person);
begin
    return jsonb_build_object(
        'locale', alarm_farewell_words.locale,
        'title', test || case when is_erased then millrace.in_language(language, 'An alarm is over', 'Ein Alarm ist vorbei', 'انتهى إنذار')
                              else format(millrace.in_language(language, 'The alarm about %s is over for you', 'Der Alarm um %s ist für dich vorbei', 'انتهى بالنسبة إليك الإنذار الخاص بـ %s'), name) end,
        'body', test
            || format(case when a.cause = 'help' then millrace.in_language(language, 'You were told that somebody asked for help at %s.', 'Du hast erfahren, dass jemand um %s um Hilfe gebeten hat.', 'أُبلغت بطلب مساعدة في %s.')
                           else millrace.in_language(language, 'You were told of a check-in that was due by %s.', 'Du hast von einer Meldung erfahren, die bis %s fällig war.', 'أُبلغت بتأكيد سلامة كان منتظرًا حتى %s.') end, due)
            || ' '
            || case when is_erased then millrace.in_language(language, 'This person no longer uses this service.', 'Die Person nutzt diesen Dienst nicht mehr.', 'لم يعد هذا الشخص يستخدم هذه الخدمة.')
                    else format(millrace.in_language(language, 'You are no longer a contact of %s there.', 'Du bist dort kein Kontakt von %s mehr.', 'لم تعد من جهات اتصال %s.'), name) end
            || millrace.in_language(language, ' You do not need to do anything.', ' Du musst nichts weiter tun.', ' لا يُطلب منك شيء آخر.'));
end $$;

-- Tells contacts who were told of this alarm, and who are about to be removed, that it is over for them: either one contact, at the
-- addresses that `kept` does not have, or all contacts. Notices that were not taken yet are not sent any more. With a `why` the person is
-- being erased.
create or replace function millrace.alarm_farewell(a millrace.alarm, the_contact text, kept jsonb, why text, t timestamptz) returns int
language plpgsql volatile as $$
declare
    d record;
    the_notice uuid;
    n int := 0;
begin
    for d in
        select x.contact, x.channel, x.address from millrace.watch_address x
         where x.person = a.person and (the_contact is null or x.contact = the_contact) and x.verified_at is not null and x.declined_at is null
           and not (kept ? x.channel and (x.channel = 'push' or kept ->> x.channel = x.address))
           and exists (select from millrace.alarm_event e where e.alarm = a.id and e.what = 'told' and e.contact = x.contact)
         order by x.contact, x.channel
    loop
        perform millrace.notices_stop(array(select e.notice from millrace.alarm_event e
                                             where e.alarm = a.id and e.contact = d.contact and e.channel = d.channel and e.what = 'told'));
        the_notice := millrace.notice_put(d.contact, case when a.cause = 'drill' then 'alarm.drill' else 'alarm.resolved' end, d.channel, d.address,
            jsonb_build_object('stage', 'resolved', 'cause', a.cause, 'test', a.cause = 'drill') 
                || millrace.alarm_farewell_words(a, why is not null, millrace.alarm_locale(a.person, d.contact), millrace.alarm_zone(a.person, d.contact)),
            'alarm:' || a.id || ':left:' || d.channel || ':' || extract(epoch from t), t, t + interval '24 hours', true);
        insert into millrace.alarm_event (alarm, at, what, contact, notice, channel) values (a.id, t, 'told_left', d.contact, the_notice, d.channel);
        n := n + 1;
    end loop;
    return n;
end $$;

create or replace function millrace.checkins_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
    gone bigint := 0;
    n bigint;
    a millrace.alarm;
    told record;
begin
    perform from millrace.watch w where w.person = checkins_erase_person.person for update;
    for a in select x.* from millrace.alarm x where x.person = checkins_erase_person.person and x.state <> 'resolved' order by x.id for no key update loop
        perform millrace.alarm_farewell(a, null, '{}', 'erased', millrace.now());
    end loop;
    -- Unsent notices of an end are sent, without the name; all other notices about this person are deleted.
    for told in
        delete from millrace.alarm_event e using millrace.alarm x, millrace.notice m
         where x.person = checkins_erase_person.person and e.alarm = x.id and e.what = 'told_left' and m.id = e.notice and m.status in ('pending', 'attempting')
        returning e.notice, e.contact, x as alarm, m.data ->> 'locale' as locale
    loop
        perform millrace.notice_reword(told.notice,
            millrace.alarm_farewell_words(told.alarm, true, told.locale, millrace.alarm_zone(checkins_erase_person.person, told.contact)));
    end loop;
    -- All notices to others about this person.
    gone := gone + millrace.notices_drop(array(
        select m.id from millrace.alarm a join millrace.alarm_event e on e.alarm = a.id join millrace.notice m on m.parent = e.notice
         where a.person = checkins_erase_person.person));
    gone := gone + millrace.notices_drop(array(
        select e.notice from millrace.alarm a join millrace.alarm_event e on e.alarm = a.id where a.person = checkins_erase_person.person));
    gone := gone + millrace.notices_drop(array(
        select m.id from millrace.watch_address d join millrace.notice m on m.person = d.contact and m.key like 'consent:' || d.ref || ':%'
         where d.person = checkins_erase_person.person));
    delete from millrace.alarm_event e using millrace.alarm a where a.person = checkins_erase_person.person and e.alarm = a.id;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.place p where p.person = checkins_erase_person.person;
    delete from millrace.alarm a where a.person = checkins_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.watch_contact c where c.person = checkins_erase_person.person or c.contact = checkins_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.watch w where w.person = checkins_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    -- Where this person looked after somebody's alarm, the other contacts are told again.
    for a in
        select x.* from millrace.alarm x
         where x.acknowledged_by = checkins_erase_person.person and x.state = 'acknowledged' order by x.id for no key update
    loop
        perform millrace.alarm_let_go(a, checkins_erase_person.person, millrace.now());
    end loop;
    -- Others' alarms keep the record that somebody was told, but not who.
    update millrace.alarm_event e set contact = 'erased' where e.contact = checkins_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    update millrace.alarm_event e set by = 'erased' where e.by = checkins_erase_person.person;
    update millrace.alarm a set acknowledged_by = 'erased' where a.acknowledged_by = checkins_erase_person.person;
    delete from millrace.checkin_change c where c.person = checkins_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.checkin_change c where c.data ? 'contact' and c.data ->> 'contact' = checkins_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    return gone;
end $$;

-- An erased address gets nothing any more, from check-ins or anything else.
create or replace function millrace.checkins_erase_address(about jsonb) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    gone bigint;
begin
    delete from millrace.watch_address d where d.channel = 'mail' and millrace.mail_bare(d.address) = millrace.mail_bare(about ->> 'address');
    get diagnostics gone = row_count;
    return gone;
end $$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.checkins_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'watch', '', to_jsonb(w) - 'problem' from millrace.watch w where w.person = checkins_export_person.person
    union all
    select 'contact', c.contact, to_jsonb(c) from millrace.watch_contact c where c.person = checkins_export_person.person
    union all
    select 'address', d.contact || '/' || d.channel, to_jsonb(d) - array['ref', 'hash'] from millrace.watch_address d where d.person = checkins_export_person.person
    union all
    select 'contact_of', c.person, jsonb_build_object('person', c.person, 'since', c.created_at) from millrace.watch_contact c where c.contact = checkins_export_person.person
    union all
    select 'alarm', a.id::text, to_jsonb(a) - 'problem' from millrace.alarm a where a.person = checkins_export_person.person
    union all
    select 'answer', e.id::text, to_jsonb(e) - array['notice', 'id'] from millrace.alarm_event e join millrace.alarm a on a.id = e.alarm
     where checkins_export_person.person in (a.person, e.contact, e.by)
    union all
    select 'place', concat_ws('/', p.alarm, extract(epoch from p.at)), to_jsonb(p) from millrace.place p where p.person = checkins_export_person.person
$$;
