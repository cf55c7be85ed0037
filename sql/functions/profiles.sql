-- A person's name, language and time zone: for alarms, their page, and every other text that names a person.

create or replace function millrace.person_profile(
    person text, display_name text default null, locale text default null, zone text default null, actor text default null,
    caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.quest_acts_as(person_profile.actor, person_profile.person, caller => person_profile.caller);
    if person_profile.display_name is not null and (btrim(person_profile.display_name) = '' or length(person_profile.display_name) > millrace.most('display_name')
        or person_profile.display_name ~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]') then
        perform millrace.refuse('display_name is empty, too long, or has control characters', 'display_name', 'Give 1 to 100 characters, or null to leave it as it is.');
    end if;
    if person_profile.display_name ~* '(://|@|www[.]|[.][a-z]{2,}/)' then
        perform millrace.refuse('display_name looks like an address', 'display_name', 'It is shown to others: give a name.');
    end if;
    if person_profile.locale is not null and person_profile.locale !~ '^[A-Za-z0-9-]{1,35}$' then
        perform millrace.refuse('the locale is malformed', 'locale', 'Give for example pt-BR, or null to leave it as it is.');
    end if;
    begin
        perform millrace.now() at time zone person_profile.zone;
    exception when invalid_parameter_value then
        perform millrace.refuse(format('the zone %L is unknown', left(person_profile.zone, 60)), 'zone', 'Give for example Europe/Berlin, or null to leave it as it is.');
    end;
    insert into millrace.profile as p (person, display_name, locale, zone, changed_at)
    values (person_profile.person, btrim(person_profile.display_name), person_profile.locale, person_profile.zone, millrace.now())
        on conflict (person) do update set display_name = coalesce(excluded.display_name, p.display_name), locale = coalesce(excluded.locale, p.locale),
            zone = coalesce(excluded.zone, p.zone), changed_at = excluded.changed_at;
    return true;
end $$;

create or replace function millrace.display_name(the_person text) returns text
language sql stable as $$
    select coalesce((select p.display_name from millrace.profile p where p.person = the_person), the_person)
$$;

-- A person's language: from its profile, else from its preferences for notices. null: not known.
create or replace function millrace.language_of(the_person text) returns text
language sql stable as $$
    select lower(split_part(coalesce((select p.locale from millrace.profile p where p.person = the_person),
                                     (select n.locale from millrace.notice_preference n where n.person = the_person)), '-', 1))
$$;

create or replace function millrace.zone_of(the_person text) returns text
language sql stable as $$
    select coalesce((select p.zone from millrace.profile p where p.person = the_person),
                    (select n.zone from millrace.notice_preference n where n.person = the_person))
$$;

-- A contact's account, if the contact has accepted this itself. Anybody may name a contact by another person's id, and that alone reveals
-- nothing.
create or replace function millrace.contact_account(the_person text, the_contact text) returns text
language sql stable as $$
    select x.contact from millrace.watch_address x
     where x.person = the_person and x.contact = the_contact and x.channel = 'push' and x.verified_at is not null and x.declined_at is null limit 1
$$;

-- The name that others see of a contact, or of the person itself, that answered.
create or replace function millrace.contact_name(the_person text, the_contact text) returns text
language sql stable as $$
    select coalesce(millrace.display_name(case when the_contact = the_person then the_person else millrace.contact_account(the_person, the_contact) end), the_contact)
$$;

-- In which language and zone a contact reads of a person's alarm; without a contact, the person itself.
create or replace function millrace.alarm_language(the_person text, reader text) returns text
language sql stable as $$
    select case when coalesce(millrace.language_of(millrace.contact_account(the_person, reader)), millrace.language_of(the_person)) = 'de' then 'de' else 'en' end
$$;

create or replace function millrace.alarm_zone(the_person text, reader text) returns text
language sql stable as $$
    select coalesce(millrace.zone_of(millrace.contact_account(the_person, reader)), (select w.zone from millrace.watch w where w.person = the_person), 'UTC')
$$;
