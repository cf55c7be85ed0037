-- Who hears of profiles and invitations: the person, and those who see its name by the doors, which are its family and contacts who have agreed.

-- Those who see this person's name. Rows that are for a family go when the person leaves it.
create or replace function millrace.feed_knows(the_person text) returns table (person text, family text)
language sql stable as $$
    select k.person, max(k.family) from (
        select b.person, b.family from millrace.family_member a join millrace.family_member b on b.family = a.family where a.person = the_person
        union all
        select d.contact, null from millrace.watch_address d
         where d.person = the_person and d.channel = 'push' and d.verified_at is not null and d.declined_at is null
        union all
        select d.person, null from millrace.watch_contact c join millrace.watch_address d on d.person = c.person and d.contact = c.contact
         where c.contact = the_person and d.channel = 'push' and d.verified_at is not null and d.declined_at is null) k
     where k.person <> the_person group by k.person
$$;

-- The person hears of all that it has set, others of its name and picture alone.
create or replace function millrace.feed_profile() returns trigger
language plpgsql as $$
declare
    shown jsonb := jsonb_build_object('person', new.person, 'display_name', new.display_name, 'avatar', new.avatar);
    is_shown boolean := coalesce(new.display_name, new.avatar) is not null;
begin
    if tg_op = 'UPDATE' then
        is_shown := (new.display_name, new.avatar) is distinct from (old.display_name, old.avatar);
    end if;
    perform millrace.feed_say(array(
        select millrace.feed_change(at => millrace.now(), topic => 'people', person => new.person, ref => new.person, change => 'profile',
                   data => shown || jsonb_build_object('locale', new.locale, 'zone', new.zone, 'reminder_hour', new.reminder_hour, 'map', new.map))
        union all
        select millrace.feed_change(at => millrace.now(), topic => 'people', person => k.person, ref => new.person, change => 'profile', data => shown,
                   family => k.family, about => new.person)
          from millrace.feed_knows(new.person) k where is_shown));
    return null;
end $$;

-- What a person has said of notices has addresses, so its other devices hear only that it has changed.
create or replace function millrace.feed_preference() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_say(array[millrace.feed_change(at => millrace.now(), topic => 'people', person => new.person, ref => new.person,
        change => 'preferences', data => '{}')]);
    return null;
end $$;

-- The one who is invited, and the parents of the family. One that has run out ends without a word, for both know when.
create or replace function millrace.feed_invitation() returns trigger
language plpgsql as $$
declare
    i millrace.family_invitation := case when tg_op = 'DELETE' then old else new end;
    what text := case when tg_op = 'DELETE' then 'invitation_ended' when i.declined_at is not null then 'invitation_declined' else 'invited' end;
begin
    if tg_op = 'DELETE' and i.expires_at <= millrace.now() then
        return null;
    end if;
    perform millrace.feed_say(array(
        select millrace.feed_change(at => millrace.now(), topic => 'people', person => i.person, ref => i.family, change => what,
                   data => jsonb_build_object('family', i.family) || case when tg_op = 'DELETE' then '{}'
                       else jsonb_strip_nulls(jsonb_build_object('role', i.role, 'invited_by', i.invited_by, 'expires_at', i.expires_at)) end,
                   actor => case when tg_op <> 'DELETE' then i.invited_by end)
        union all
        select millrace.feed_change(at => millrace.now(), topic => 'people', person => m.person, ref => i.family, change => what,
                   data => jsonb_build_object('family', i.family, 'person', i.person, 'role', i.role, 'expires_at', i.expires_at), family => i.family, about => i.person)
          from millrace.family_member m where m.family = i.family and m.role = 'parent'));
    return null;
end $$;

-- They come and stay together.
do $$
begin
    if exists (select from pg_trigger g where g.tgrelid = 'millrace.profile'::regclass and g.tgname = 'a_feed_has_its_new_profile') then
        return;
    end if;
    create trigger a_feed_has_its_new_profile after insert on millrace.profile for each row
        execute function millrace.feed_profile();
    create trigger a_feed_has_its_profile after update on millrace.profile for each row
        when ((new.display_name, new.avatar, new.locale, new.zone, new.reminder_hour, new.map)
            is distinct from (old.display_name, old.avatar, old.locale, old.zone, old.reminder_hour, old.map))
        execute function millrace.feed_profile();
    create trigger a_feed_has_its_preferences after insert or update on millrace.notice_preference for each row
        execute function millrace.feed_preference();
    create trigger a_feed_has_its_new_invitation after insert on millrace.family_invitation for each row
        execute function millrace.feed_invitation();
    create trigger a_feed_has_its_invitation after update on millrace.family_invitation for each row
        when ((new.role, new.expires_at, new.declined_at) is distinct from (old.role, old.expires_at, old.declined_at))
        execute function millrace.feed_invitation();
    create trigger a_feed_has_its_ended_invitation after delete on millrace.family_invitation for each row
        execute function millrace.feed_invitation();
end $$;
