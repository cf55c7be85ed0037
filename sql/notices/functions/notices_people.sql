-- How a person can be reached, and its quiet hours.

-- With claims one acts as oneself; a back end may act for anybody.
create or replace function millrace.notice_acts_as(actor text, person text, caller name) returns void
language plpgsql stable as $$
begin
    perform millrace.valid_name(person, 'person');
    if millrace.subject(notice_acts_as.caller) is null and actor is null and millrace.is_staff(notice_acts_as.caller) then
        return;
    end if;
    perform millrace.acts_as_person(actor, person, caller => notice_acts_as.caller);
end $$;

-- False: it was already known as this person's. The holder of a token has the device, so the device becomes the caller's, and its last
-- owner gets nothing there any more. A person has at most fifty devices, loses the ones not seen for longest, and adds at most twenty a
-- day.
create or replace function millrace.device_add(person text, platform text, token text, app text default null, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    was text;
begin
    perform millrace.notice_acts_as(device_add.actor, device_add.person, caller => device_add.caller);
    if device_add.platform is null or device_add.platform not in ('apns', 'apns_sandbox', 'fcm') then
        perform millrace.refuse(format('the platform %L is unknown', left(device_add.platform, 60)), 'platform', 'Give apns, apns_sandbox or fcm.');
    end if;
    if device_add.token is null or device_add.token !~ '^[A-Za-z0-9_:.=-]+$' or length(device_add.token) not between 8 and millrace.most('device_token') then
        perform millrace.refuse('the token is missing or malformed', 'token', 'Give the token from the device''s system; for APNs in hexadecimal.');
    end if;
    if device_add.app !~ '^[A-Za-z0-9._-]{1,255}$' then
        perform millrace.refuse('the app is malformed', 'app', 'Give its bundle identifier, or null.');
    end if;
    select d.person into was from millrace.device d where d.token = device_add.token;
    if was is distinct from device_add.person and millrace.subject(device_add.caller) is not null then
        perform millrace.day_must_take('device', millrace.keyed_hash('person', device_add.person), millrace.counted('new_devices'), 'the limit of 20 new devices a day is reached', 'token');
    end if;
    insert into millrace.device as d (token, person, platform, app, seen_at)
    values (device_add.token, device_add.person, device_add.platform, device_add.app, millrace.now())
        on conflict (token) do update set person = excluded.person, platform = excluded.platform, app = excluded.app, seen_at = excluded.seen_at;
    delete from millrace.device d where d.token in (
        select o.token from millrace.device o where o.person = device_add.person order by o.seen_at desc, o.token offset 50);
    return was is distinct from device_add.person;
end $$;
select millrace.door_is('notices', 'device_add', 'client, worker', 'actor person', 'Adds a device for push notices.',
    words => '{"platform": ["apns", "apns_sandbox", "fcm"]}',
    who_may => array['add a device for them: itself, back end, staff']);

create or replace function millrace.device_remove(token text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.subject(device_remove.caller);
begin
    delete from millrace.device d where d.token = device_remove.token and (me is null or d.person = me);
    return found;
end $$;
select millrace.door_is('notices', 'device_remove', 'client, worker', 'actor token', 'Removes a device.',
    who_may => array['remove one of their devices: itself, back end, staff']);

create or replace function millrace.device_list(of_person text default null, after text default null, page int default 50)
returns table (token text, person text, platform text, app text, seen_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.valid_page(device_list.page);
    return query select d.token, d.person, d.platform, d.app, d.seen_at from millrace.device d
      where (of_person is null or d.person = of_person) and (device_list.after is null or d.token > device_list.after)
      order by d.token limit device_list.page;
end $$;
select millrace.door_is('notices', 'device_list', 'worker', 'staff');

-- channels: {"push": true, "mail": "ada@example.org", "sms": "+4930123456", "voice": "+4930123456", "kinds": {"daily_reminder": ["push"], "quest_available": []}}.
-- Without a list for its kind a notice goes by push and mail; sms and voice are for alarms, which use all channels, at any hour. The same
-- time twice means no quiet hours. Nobody checks that an address is the person's own; so a signed-in person may give at most five new
-- addresses a day, and at most three people a day may give the same one. For a back end the app is responsible.
create or replace function millrace.notice_preferences(
    person text, zone text, quiet_from time, quiet_to time, channels jsonb, locale text, actor text default null, caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    name text;
    value jsonb;
    is_right boolean;
    hint constant text := 'Give for example {"push": true, "mail": "ada@example.org", "kinds": {"daily_reminder": ["push"]}}.';
begin
    perform millrace.notice_acts_as(notice_preferences.actor, notice_preferences.person, caller => notice_preferences.caller);
    begin
        perform millrace.now() at time zone notice_preferences.zone;
    exception when invalid_parameter_value then
        perform millrace.refuse(format('the zone %L is unknown', left(notice_preferences.zone, 60)), 'zone', 'Give for example Europe/Berlin.');
    end;
    if notice_preferences.zone is null or notice_preferences.quiet_from is null or notice_preferences.quiet_to is null then
        perform millrace.refuse('the zone or the quiet hours are missing', 'zone', 'For no quiet hours give the same time twice.');
    end if;
    if notice_preferences.channels is null or jsonb_typeof(notice_preferences.channels) <> 'object' or octet_length(notice_preferences.channels::text) > millrace.most('channels') then
        perform millrace.refuse('channels is not a JSON object, or too large', 'channels', hint);
    end if;
    for name, value in select * from jsonb_each(notice_preferences.channels) loop
        is_right := case name
            when 'push' then jsonb_typeof(value) = 'boolean'
            when 'mail' then jsonb_typeof(value) = 'string'
            when 'sms' then jsonb_typeof(value) = 'string' and value #>> '{}' ~ E'^\\+[0-9]{6,15}$'
            when 'voice' then jsonb_typeof(value) = 'string' and value #>> '{}' ~ E'^\\+[0-9]{6,15}$'
            when 'kinds' then jsonb_typeof(value) = 'object' and not exists (
                select from jsonb_each(value) k where jsonb_typeof(k.value) <> 'array' or not k.value <@ '["push", "mail", "sms", "voice"]')
            else false end;
        if is_right is not true then
            perform millrace.refuse(format('channels has a malformed or unknown %s', left(name, 60)), 'channels', hint);
        end if;
        if name = 'mail' then
            perform millrace.mail_check_mailbox(value #>> '{}', 'channels');
        end if;
    end loop;
    if notice_preferences.locale !~ '^[A-Za-z0-9-]{1,35}$' then
        perform millrace.refuse('the locale is malformed', 'locale', 'Give for example pt-BR.');
    end if;
    if millrace.subject(notice_preferences.caller) is not null then
        perform millrace.preference_count(notice_preferences.person, notice_preferences.channels);
    end if;
    perform millrace.preference_put(notice_preferences.person, notice_preferences.zone, notice_preferences.quiet_from, notice_preferences.quiet_to, notice_preferences.channels,
        notice_preferences.locale);
    return true;
end $$;
select millrace.door_is('notices', 'notice_preferences', 'client, worker', 'actor person',
    'Sets how and when a person gets notices.', who_may => array['set how they are told: itself, back end, staff']);

-- By which channels one kind of notice is told; an empty list: not at all; null: as if nothing had been said of it. All other preferences stay as they
-- are. Who has none yet has no quiet hours. False: it was so already.
create or replace function millrace.notice_kind(
    person text, kind text, channels text[] default null, actor text default null, caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    p millrace.notice_preference;
    kinds jsonb;
begin
    perform millrace.notice_acts_as(notice_kind.actor, notice_kind.person, caller => notice_kind.caller);
    if notice_kind.kind is null or notice_kind.kind !~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$' then
        perform millrace.refuse(format('the kind %L is malformed', left(notice_kind.kind, 60)), 'kind', 'Give for example daily_reminder.');
    end if;
    if not notice_kind.channels <@ array['push', 'mail', 'sms', 'voice'] or cardinality(notice_kind.channels) > 4 then
        perform millrace.refuse('channels may hold only push, mail, sms and voice', 'channels', 'Give an empty list for none, or null for the default.');
    end if;
    perform millrace.preference_begin(notice_kind.person);
    select * into strict p from millrace.notice_preference n where n.person = notice_kind.person for no key update;
    kinds := coalesce(p.channels -> 'kinds', '{}');
    kinds := case when notice_kind.channels is null then kinds - notice_kind.kind else kinds || jsonb_build_object(notice_kind.kind, to_jsonb(notice_kind.channels)) end;
    if octet_length((p.channels || jsonb_build_object('kinds', kinds))::text) > millrace.most('channels') then
        perform millrace.refuse('the person has settings for too many kinds of notices', 'kind', 'Reset some with null.', '53400', 'too_large');
    end if;
    if kinds = coalesce(p.channels -> 'kinds', '{}') then
        return false;
    end if;
    perform millrace.preference_put(p.person, p.zone, p.quiet_from, p.quiet_to, p.channels || jsonb_build_object('kinds', kinds), p.locale);
    return true;
end $$;
select millrace.door_is('notices', 'notice_kind', 'client, worker', 'actor person', 'Sets by which channels a person is told of one kind of notice.',
    who_may => array['set how they are told of one kind: itself, back end, staff']);

create or replace function millrace.preference_count(the_person text, the_channels jsonb) returns void
language plpgsql volatile as $$
declare
    one record;
begin
    for one in
        select distinct millrace.consent_hash(c.channel, the_channels ->> c.channel, the_person) as hash
          from (values ('mail'), ('sms'), ('voice')) c(channel)
         where the_channels ? c.channel
        except
        select millrace.consent_hash(c.channel, p.channels ->> c.channel, the_person)
          from (values ('mail'), ('sms'), ('voice')) c(channel) join millrace.notice_preference p on p.person = the_person and p.channels ? c.channel
    loop
        perform millrace.day_must_take('preference', millrace.keyed_hash('person', the_person), millrace.counted('new_addresses'), 'the limit of 5 new addresses a day is reached', 'channels');
        -- Who gives it again counts once, or one person could use up what all may give.
        if millrace.day_take('preference_giver', sha256(one.hash || millrace.keyed_hash('person', the_person)), 1) then
            perform millrace.day_must_take('preference_address', one.hash, millrace.counted('givers'), 'three people have already given this address today', 'channels', 'Check that it is the person''s own. ');
        end if;
    end loop;
end $$;

create or replace function millrace.notices_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    gone bigint := 0;
    n bigint;
begin
    delete from millrace.notice y where y.person = notices_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    -- Others' notices that name it.
    update millrace.notice y set data = y.data - array['person', 'name'] where y.data ->> 'person' = notices_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.device d where d.person = notices_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    return gone;
end $$;

-- Joins in person_erase: mails that told others of this person. Those that the person itself was to read are found by their reader.
create or replace function millrace.notice_mails_erase_person(person text) returns bigint
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select millrace.mails_erase(array(
        select m.id from millrace.notice n join millrace.mail m on m.id = n.mail
         where n.data ->> 'person' = notice_mails_erase_person.person and m.person is distinct from notice_mails_erase_person.person))
$$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.notices_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'notice', n.id::text, to_jsonb(n) - array['holder', 'mail', 'reply'] from millrace.notice n where n.person = notices_export_person.person and n.parent is null
    union all
    select 'device', left(encode(sha256(convert_to(d.token, 'UTF8')), 'hex'), 16), to_jsonb(d) - 'token' from millrace.device d where d.person = notices_export_person.person
$$;

-- A notice of a kind that a person gets only after it has said so: a list of channels under that name in the `kinds` of its preferences. The titles are
-- English, German and Arabic.
create or replace function millrace.notice_about(the_person text, the_kind text, the_key text, the_data jsonb, titles text[]) returns void
language plpgsql volatile as $$
begin
    if exists (select from millrace.notice_preference p where p.person = the_person and jsonb_array_length(p.channels -> 'kinds' -> the_kind) > 0) then
        perform millrace.notice_send(the_person, the_kind,
            the_data || jsonb_build_object('title', millrace.in_language(millrace.words_language(millrace.notice_locale(the_person)), titles[1], titles[2], titles[3])), key => the_key);
    end if;
end $$;
