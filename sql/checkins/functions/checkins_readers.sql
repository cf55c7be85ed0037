-- Who reads of an alarm, in which language and zone.

-- The account behind a contact, if it has accepted this itself. Anybody may name a contact by another's id: that alone shows nothing of them.
create or replace function millrace.contact_account(the_person text, the_contact text) returns text
language sql stable as $$
    select x.contact from millrace.watch_address x
     where x.person = the_person and x.contact = the_contact and x.channel = 'push' and x.verified_at is not null and x.declined_at is null limit 1
$$;

-- What others read of who answered: a contact, or the person itself.
create or replace function millrace.contact_name(the_person text, the_contact text) returns text
language sql stable as $$
    select coalesce(millrace.display_name(case when the_contact = the_person then the_person else millrace.contact_account(the_person, the_contact) end), the_contact)
$$;

-- In which locale, language and zone a contact reads of a person's alarm; without a contact, the person itself.
create or replace function millrace.alarm_locale(the_person text, reader text) returns text
language sql stable as $$
    select coalesce(millrace.locale_of(millrace.contact_account(the_person, reader)), millrace.locale_of(the_person))
$$;

-- The question whether somebody wants to be a contact. By push only the account itself reads it, so it may be in that account's language; any other
-- address is one that the asker gave.
create or replace function millrace.consent_locale(the_person text, the_contact text, the_channel text) returns text
language sql stable as $$
    select coalesce(case when the_channel = 'push' then millrace.locale_of(the_contact) end, millrace.alarm_locale(the_person, the_contact))
$$;

create or replace function millrace.alarm_language(the_person text, reader text) returns text
language sql stable as $$
    select millrace.words_language(millrace.alarm_locale(the_person, reader))
$$;

create or replace function millrace.alarm_zone(the_person text, reader text) returns text
language sql stable as $$
    select coalesce(millrace.zone_of(millrace.contact_account(the_person, reader)), (select nullif(w.zone, 'UTC') from millrace.watch w where w.person = the_person), millrace.zone_of(the_person), 'UTC')
$$;

-- The map that links to places open for a reader.
create or replace function millrace.alarm_map(the_person text, reader text) returns text
language sql stable as $$
    select coalesce((select p.map from millrace.profile p where p.person = millrace.contact_account(the_person, reader)),
                    (select p.map from millrace.profile p where p.person = the_person), 'osm')
$$;

-- One is the other's contact and has agreed.
create or replace function millrace.contact_knows(me text, other text) returns boolean
language sql stable as $$
    select millrace.contact_account(other, me) is not null or millrace.contact_account(me, other) is not null
$$;
