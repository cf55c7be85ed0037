-- What quests do when something changes among people: a family is made, a person leaves one, or wants to be reminded at another hour.

-- The clock of a family begins with its day, whose quest is open.
create or replace function millrace.quest_family_open(f millrace.family) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    d date := millrace.day_at(millrace.now(), f.zone);
    ends timestamptz := millrace.day_start(d + 1, f.zone);
begin
    insert into millrace.quest_family (family, zone, today, opened_at, next_rollover_at, due_at)
    values (f.family, f.zone, d, millrace.day_start(d, f.zone), ends, ends)
        on conflict do nothing;
    if found then
        insert into millrace.quest (family, day, item, state)
        select f.family, d, millrace.quest_item_of(f.family, d, r.rotation), 'open' from millrace.quest_rule r
            on conflict do nothing;
    end if;
end $$;

create or replace function millrace.quest_family_made() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.quest_family_open(new);
    perform millrace.quest_arm();
    return null;
end $$;

create or replace function millrace.quest_member_left() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.notices_stop(array(
        select n.id from millrace.notice n
         where n.person = new.person and n.status = 'pending'
           and n.kind in ('daily_reminder', 'quest_available', 'streak_at_risk', 'quest_summary', 'mood_buffer')));
    return null;
end $$;

create or replace function millrace.quest_hour_said() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.reminder_move(new.person, millrace.now());
    return null;
end $$;

do $$
begin
    if not exists (select from pg_trigger g where g.tgrelid = 'millrace.family'::regclass and g.tgname = 'a_clock_follows_its_zone') then
        -- Families that were there before their quests.
        perform millrace.quest_family_open(f) from millrace.family f where not exists (select from millrace.quest_family q where q.family = f.family);
        create trigger a_clock_follows_its_zone after update on millrace.family for each row
            when (new.zone <> old.zone) execute function millrace.quest_zone_moved();
    end if;
    if exists (select from pg_trigger g where g.tgrelid = 'millrace.family'::regclass and g.tgname = 'a_new_family_has_its_quest') then
        return;
    end if;
    create trigger a_new_family_has_its_quest after insert on millrace.family for each row execute function millrace.quest_family_made();
    create trigger who_leaves_is_reminded_no_more after update on millrace.family_member for each row
        when (old.family is not null and new.family is null) execute function millrace.quest_member_left();
    create trigger a_reminder_moves_with_its_hour after update on millrace.profile for each row
        when (old.reminder_hour is distinct from new.reminder_hour) execute function millrace.quest_hour_said();
    create trigger a_reminder_has_its_hour after insert on millrace.profile for each row
        when (new.reminder_hour is not null) execute function millrace.quest_hour_said();
end $$;
