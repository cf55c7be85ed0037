-- Quests of families: their schedule, a family's move to another zone, what is erased. A move never makes a day come twice.

-- Each zone's days begin at a quarter of an hour, somewhere; the schedule looks then, and stays quiet until there is a family.
create or replace function millrace.quest_arm() returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from millrace.schedule s where s.name = 'quests.rollover') then
        return false;
    end if;
    return millrace.schedule_put('quests.rollover', '*/15 * * * *', 'quests.rollover', '{}', 'UTC', 'quests', null, null, 'latest', 1000, 'skip', '0', null, null) = 'created';
end $$;

-- East: a day that the move ends early has its grace period from the move on, and skipped days are marked so. West: today continues until
-- the clock there reaches its end.
create or replace function millrace.family_zone(family text, zone text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    f millrace.family;
    there date;
    rules millrace.quest_rule;
begin
    perform millrace.valid_name(family_zone.family, 'family');
    perform millrace.valid_zone(family_zone.zone);
    f := millrace.family_lock_as(family_zone.family, millrace.subject(family_zone.caller), true);
    if f.zone = family_zone.zone then
        return false;
    end if;
    select * into strict rules from millrace.quest_rule;
    begin
        perform millrace.quest_roll(array[f.family], t);  -- what is due is due by the old clock
    exception when others then
        if sqlstate like '40%' then raise; end if;        -- a clock that fails is what this call may be there to replace
    end;
    f := millrace.family_lock(f.family);
    there := millrace.day_at(t, family_zone.zone);
    update millrace.family x
       set zone = family_zone.zone,
           next_rollover_at = case when there > f.today then t else millrace.day_start(f.today + 1, family_zone.zone) end,
           due_at = case when there > f.today then t else millrace.day_start(f.today + 1, family_zone.zone) end
     where x.family = f.family;
    perform millrace.quest_roll(array[f.family], t);
    update millrace.notice n
       set due_at = millrace.quest_due(n.kind, x.today, family_zone.zone, rules, millrace.reminder_hour_of(n.person))
      from millrace.family_member m, millrace.family x
     where x.family = f.family and m.family = f.family and n.person = m.person and n.status = 'pending'
       and n.key in ('daily_reminder:' || x.today, 'quest_available:' || x.today, 'streak_at_risk:' || x.today)
       and n.due_at > t and millrace.quest_due(n.kind, x.today, family_zone.zone, rules, millrace.reminder_hour_of(n.person)) is not null;
    return true;
end $$;

-- What was done stays done: a family keeps its days, without the erased person's name.
create or replace function millrace.quests_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    gone bigint := 0;
    n bigint;
begin
    perform x.family from millrace.family x join millrace.family_member m on m.family = x.family
      where m.person = quests_erase_person.person for no key update of x;
    update millrace.quest_completion c set person = 'erased:' || gen_random_uuid() where c.person = quests_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.mood m where m.person = quests_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.hobby_view v where v.person = quests_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.card_reply r where r.person = quests_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    -- Others keep the points that they earned with these: their ledger stays, without its cause.
    update millrace.points_ledger l set key = 'erased:' || gen_random_uuid(), reason = 'erased'
      from millrace.hobby h join millrace.hobby_view v on v.hobby = h.id
     where h.person = quests_erase_person.person and l.person = v.person and l.key = 'seen:' || h.id;
    update millrace.points_ledger l set key = 'erased:' || gen_random_uuid(), reason = 'erased'
      from millrace.hobby h join millrace.card c on c.hobby = h.id join millrace.card_reply r on r.card = c.id
     where h.person = quests_erase_person.person and l.person = r.person and l.key = 'card:' || c.id;
    delete from millrace.hobby h where h.person = quests_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.points_ledger l where l.person = quests_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    return gone;
end $$;

create or replace view millrace.quests as
select q.family, q.day, i.kind, i.title, q.state,
       (select count(*) from millrace.quest_completion c where c.family = q.family and c.day = q.day and c.undone_at is null) as completions,
       i.name as id, i.description
  from millrace.quest q join millrace.quest_item i on i.id = q.item;
