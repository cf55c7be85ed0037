-- How a person is called, and in which language and zone it reads: for alarms, their page, notices, mails, and whatever else names somebody.

-- null leaves a value as it is, and an empty text clears it.
create or replace function millrace.person_profile(
    person text, display_name text default null, locale text default null, zone text default null, actor text default null,
    reminder_hour int default null, avatar text default null, map text default null, caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.acts_as_person(person_profile.actor, person_profile.person, caller => person_profile.caller);
    if person_profile.display_name <> '' and (btrim(person_profile.display_name) = '' or length(person_profile.display_name) > millrace.most('display_name')
        or person_profile.display_name ~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]') then
        perform millrace.refuse('display_name is blank, too long, or has control characters', 'display_name',
            'Give 1 to 100 characters, null to leave it as it is, or an empty text to clear it.');
    end if;
    if person_profile.display_name ~* '(://|@|www[.]|[.][a-z]{2,}/)' then
        perform millrace.refuse('display_name looks like an address', 'display_name', 'It is shown to others: give a name.');
    end if;
    if person_profile.locale !~ '^[A-Za-z0-9-]{0,35}$' then
        perform millrace.refuse('the locale is malformed', 'locale', 'Give for example pt-BR, null to leave it as it is, or an empty text to clear it.');
    end if;
    begin
        perform millrace.now() at time zone nullif(person_profile.zone, '');
    exception when invalid_parameter_value then
        perform millrace.refuse(format('the zone %L is unknown', left(person_profile.zone, 60)), 'zone', 'Give for example Europe/Berlin, null to leave it as it is, or an empty text to clear it.');
    end;
    if person_profile.reminder_hour not between -1 and 23 then
        perform millrace.refuse('the reminder_hour is out of range', 'reminder_hour', 'Give 0 to 23, -1 for the default hour, or null to leave it as it is.');
    end if;
    if person_profile.avatar !~ '^(|blob:[0-9a-f]{64}|https://[!-~]+)$' or length(person_profile.avatar) > millrace.most('avatar') then
        perform millrace.refuse('the avatar is malformed', 'avatar', 'Give blob: and the hash of a blob, an address that begins with https://, null to leave it as it is, or an empty text to clear it.');
    end if;
    if person_profile.map not in ('', 'geo', 'osm', 'apple', 'google') then
        perform millrace.refuse(format('the map %L is unknown', left(person_profile.map, 60)), 'map', 'Give geo (an app of the device), osm, apple or google, null to leave it as it is, or an empty text to clear it.');
    end if;
    if person_profile.avatar is not null then              -- a room that keeps pictures says whether the caller may name this one
        perform millrace.hooks_must('avatar', jsonb_build_object('person', person_profile.person, 'avatar', person_profile.avatar, 'caller', person_profile.caller,
            'was', (select p.avatar from millrace.profile p where p.person = person_profile.person)));
    end if;
    insert into millrace.profile as p (person, display_name, locale, zone, reminder_hour, avatar, map, changed_at)
    values (person_profile.person, nullif(btrim(person_profile.display_name), ''), nullif(person_profile.locale, ''), nullif(person_profile.zone, ''),
            nullif(person_profile.reminder_hour, -1), nullif(person_profile.avatar, ''), nullif(person_profile.map, ''), millrace.now())
        on conflict (person) do update
       set display_name = case when person_profile.display_name is null then p.display_name else excluded.display_name end,
           locale = case when person_profile.locale is null then p.locale else excluded.locale end,
           zone = case when person_profile.zone is null then p.zone else excluded.zone end,
           reminder_hour = case when person_profile.reminder_hour is null then p.reminder_hour else excluded.reminder_hour end,
           avatar = case when person_profile.avatar is null then p.avatar else excluded.avatar end,
           map = case when person_profile.map is null then p.map else excluded.map end,
           changed_at = excluded.changed_at;
    return true;
end $$;
select millrace.door_is('people', 'person_profile', 'client, worker', 'actor person',
    'Sets a person''s name, locale, time zone and hour of reminders.',
    words => '{"map": ["", "geo", "osm", "apple", "google"]}',
    who_may => array['set their name and preferences: itself, back end, staff']);

-- A person's profile and what it has said of notices, in one answer. Members of its family, and those whose contact it has agreed to be or who have agreed
-- to be its own, see the name and the picture alone.
create or replace function millrace.person_show(person text, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.actor_of(person_show.actor, caller => person_show.caller);
    p millrace.profile;
    n millrace.notice_preference;
    m millrace.family_member;
    shown jsonb;
begin
    perform millrace.valid_name(person_show.person, 'person');
    if me <> person_show.person and not millrace.person_knows(me, person_show.person) then
        perform millrace.refuse('only that person, their family and their contacts may see this', 'actor', 'Act as one of them.', '42501', 'permission');
    end if;
    select * into p from millrace.profile x where x.person = person_show.person;
    select * into n from millrace.notice_preference x where x.person = person_show.person;
    shown := jsonb_build_object('person', person_show.person, 'display_name', p.display_name, 'avatar', p.avatar);
    if me <> person_show.person then
        return shown;
    end if;
    select * into m from millrace.family_member x where x.person = person_show.person;
    return shown || jsonb_build_object('family', m.family, 'role', m.role, 'locale', p.locale, 'zone', p.zone, 'reminder_hour', p.reminder_hour, 'map', p.map,
        'notices', case when n.person is not null then jsonb_build_object('zone', n.zone, 'quiet_from', n.quiet_from, 'quiet_to', n.quiet_to, 'channels', n.channels, 'locale', n.locale) end);
end $$;
select millrace.door_is('people', 'person_show', 'client, worker', 'actor person',
    'A person''s profile and preferences; for somebody else, only name and picture.',
    who_may => array['see their name and picture: itself, teen, parent, back end, staff']);

-- In one family, or known by what rooms say, such as a contact who has agreed. A hook that fails is an error here, so nobody is shown more.
create or replace function millrace.person_knows(me text, other text) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    one record;
    knows boolean := exists (select from millrace.family_member a join millrace.family_member b on b.family = a.family where a.person = me and b.person = other);
begin
    for one in select * from millrace.hooks_of('knows') loop
        exit when knows;
        execute format('select %s($1, $2)', one.call) into knows using me, other;
    end loop;
    return coalesce(knows, false);
end $$;

create or replace function millrace.display_name(the_person text) returns text
language sql stable as $$
    select coalesce((select p.display_name from millrace.profile p where p.person = the_person), the_person)
$$;

-- The locale of a person: what its profile says, else its preferences for notices. null: nobody has said.
create or replace function millrace.locale_of(the_person text) returns text
language sql stable as $$
    select coalesce((select p.locale from millrace.profile p where p.person = the_person),
                    (select n.locale from millrace.notice_preference n where n.person = the_person))
$$;

-- For plain notices it is the other way round: what was said of notices goes first.
create or replace function millrace.notice_locale(the_person text) returns text
language sql stable as $$
    select coalesce((select n.locale from millrace.notice_preference n where n.person = the_person),
                    (select p.locale from millrace.profile p where p.person = the_person))
$$;

create or replace function millrace.zone_of(the_person text) returns text
language sql stable as $$
    select coalesce((select p.zone from millrace.profile p where p.person = the_person),
                    (select n.zone from millrace.notice_preference n where n.person = the_person))
$$;

-- Of the languages that the check-ins' words are written in.
create or replace function millrace.words_language(the_locale text) returns text
language sql immutable as $$
    select case when lower(split_part(the_locale, '-', 1)) in ('ar', 'de') then lower(split_part(the_locale, '-', 1)) else 'en' end
$$;

create or replace function millrace.in_language(language text, english text, german text, arabic text) returns text
language sql immutable as $$
    select case language when 'de' then german when 'ar' then arabic else english end
$$;

-- What the core shows of a reader.
create or replace function millrace.person_reads(about jsonb) returns jsonb
language sql stable as $$
    select jsonb_build_object('name', millrace.display_name(about ->> 'person'), 'zone', millrace.zone_of(about ->> 'person'),
        'language', case when l.locale is not null then millrace.words_language(l.locale) end)
      from (select millrace.locale_of(about ->> 'person') as locale) l
     where about ->> 'person' is not null
$$;

-- Somebody who has said nothing yet has no quiet hours.
create or replace function millrace.preference_begin(the_person text) returns void
language sql volatile as $$
    insert into millrace.notice_preference as p (person, zone, quiet_from, quiet_to, channels, changed_at)
    values (the_person, coalesce(millrace.zone_of(the_person), 'UTC'), '0:00', '0:00', '{}', millrace.now())
        on conflict (person) do nothing
$$;

create or replace function millrace.preference_put(the_person text, the_zone text, the_from time, the_to time, the_channels jsonb, the_locale text) returns void
language sql volatile as $$
    insert into millrace.notice_preference as p (person, zone, quiet_from, quiet_to, channels, locale, changed_at)
    values (the_person, the_zone, the_from, the_to, the_channels, the_locale, millrace.now())
        on conflict (person) do update set zone = excluded.zone, quiet_from = excluded.quiet_from, quiet_to = excluded.quiet_to,
            channels = excluded.channels, locale = excluded.locale, changed_at = excluded.changed_at
$$;
