-- Families and their members. A family's days are those of its zone; a move to another zone never makes a day come twice.

create or replace function millrace.quest_zone(zone text) returns void
language plpgsql volatile as $$
begin
    if zone is null or zone !~ '^[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,3}$' then
        perform millrace.refuse(format('the time zone %L is malformed', left(zone, 60)), 'zone', 'Give a name such as Europe/Berlin.');
    end if;
    if exists (select from millrace.family_clock c where c.zone = quest_zone.zone) then
        return;
    end if;
    if not exists (select from pg_catalog.pg_timezone_names n where n.name = quest_zone.zone) then
        perform millrace.refuse(format('the time zone %L is unknown', left(zone, 60)), 'zone', 'Give a name such as Europe/Berlin.');
    end if;
    insert into millrace.family_clock (zone, from_day, print, checked_at)
    values (quest_zone.zone, millrace.now()::date, millrace.zone_print(quest_zone.zone, millrace.now()::date), millrace.now())
        on conflict do nothing;
end $$;

-- A zone's UTC offsets at noon and at midnight of each of 800 days.
create or replace function millrace.zone_print(zone text, from_day date) returns text
language sql stable as $$
    select md5(string_agg(((x.t at time zone zone) - (x.t at time zone 'UTC'))::text, ',' order by x.t))
      from (select from_day::timestamp at time zone 'UTC' + n * interval '12 hours' as t from generate_series(0, 1600) n) x
$$;

-- A signed-in person who makes a family becomes its first parent. A family that a back end makes stays empty until a back end adds a
-- member, so the first comer cannot take it over.
create or replace function millrace.family_create(family text, zone text, week_starts int default 1, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    d date;
    the_end timestamptz;
    old millrace.family;
    me text := millrace.subject(family_create.caller);
begin
    perform millrace.quest_name(family_create.family, 'family');
    if family_create.week_starts is null or family_create.week_starts not between 0 and 6 then
        perform millrace.refuse('week_starts is out of range', 'week_starts', 'Give 0 for Sunday to 6 for Saturday; 1 is the default.');
    end if;
    perform millrace.quest_zone(family_create.zone);
    d := millrace.day_at(t, family_create.zone);
    the_end := millrace.day_start(d + 1, family_create.zone);
    if exists (select from millrace.family_member m where m.person = me and m.family <> family_create.family) then
        perform millrace.refuse('this person is in another family', 'family', 'Leave it with family_leave first.', '55000', 'conflict');
    end if;
    insert into millrace.family (family, zone, week_starts, today, opened_at, next_rollover_at, due_at, created_at)
    values (family_create.family, family_create.zone, family_create.week_starts, d, millrace.day_start(d, family_create.zone), the_end, the_end, t)
        on conflict do nothing;
    if not found then
        select * into old from millrace.family f where f.family = family_create.family;
        if me is not null and not exists (select from millrace.family_member m where m.person = me and m.family = old.family) then
            perform millrace.refuse(format('family %L exists', left(family_create.family, 60)), 'family', 'Give another name.', '23505', 'conflict');
        end if;
        if (old.zone, old.week_starts) is distinct from (family_create.zone, family_create.week_starts::smallint) then
            perform millrace.refuse(format('family %L exists, with another zone or week', left(family_create.family, 60)), 'family',
                'Change the zone with family_zone.', '23505', 'conflict');
        end if;
        return false;
    end if;
    insert into millrace.quest (family, day, item, state)
    select family_create.family, d, millrace.quest_item_of(family_create.family, d, r.rotation), 'open' from millrace.quest_rule r;
    if me is not null then
        perform millrace.member_put(family_create.family, me, 'parent', t);
    end if;
    perform millrace.quest_arm();
    return true;
end $$;

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
    perform millrace.quest_name(family_zone.family, 'family');
    perform millrace.quest_zone(family_zone.zone);
    f := millrace.quest_lock_as(family_zone.family, millrace.subject(family_zone.caller), true);
    if f.zone = family_zone.zone then
        return false;
    end if;
    select * into strict rules from millrace.quest_rule;
    begin
        perform millrace.quest_roll(array[f.family], t);  -- what is due is due by the old clock
    exception when others then
        if sqlstate like '40%' then raise; end if;        -- a clock that fails is what this call may be there to replace
    end;
    f := millrace.quest_lock(f.family);
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
    delete from millrace.family_invitation i where i.person = quests_erase_person.person or i.invited_by = quests_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.family_member m where m.person = quests_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    return gone;
end $$;

-- For the person itself, or for a back end; a back end that names an actor acts as that person. No parent can erase anybody. Every room
-- that keeps a person's data has a function <room>_erase_person(text), which returns how many rows it handled. They are listed here and not
-- looked up by name, because everything called here runs with the owner's rights.
create or replace function millrace.person_erase(person text, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.actor_of(person_erase.actor, caller => person_erase.caller);
begin
    perform millrace.quest_name(person_erase.person, 'person');
    if me <> person_erase.person then
        perform millrace.refuse('only the person itself may do this', 'actor', 'Act as the person. A parent removes somebody from the family with family_leave.',
            '42501', 'permission');
    end if;
    return jsonb_build_object(
        'mail', millrace.mails_erase_person(person_erase.person),     -- before the alarms and notices that it told of
        'ai', millrace.ai_erase_person(person_erase.person),
        'approvals', millrace.approvals_erase_person(person_erase.person),
        'checkins', millrace.checkins_erase_person(person_erase.person),
        'chat', millrace.chat_erase_person(person_erase.person),
        'documents', millrace.documents_erase_person(person_erase.person),
        'lessons', millrace.lessons_erase_person(person_erase.person),
        'media', millrace.media_erase_person(person_erase.person),
        'events', millrace.events_erase_person(person_erase.person),
        'gateway', millrace.gateway_erase_person(person_erase.person),
        'notices', millrace.notices_erase_person(person_erase.person),
        'quests', millrace.quests_erase_person(person_erase.person),
        'subscriptions', millrace.subscriptions_erase_person(person_erase.person))
        || jsonb_build_object('feed', millrace.feed_erase_person(person_erase.person), 'jobs', millrace.jobs_erase_person(person_erase.person));
end $$;

create or replace view millrace.families as
select f.family, f.zone, f.week_starts, (select count(*) from millrace.family_member m where m.family = f.family) as members, f.today,
       f.next_rollover_at, f.streak, f.best, f.freezes, f.failures, f.problem, f.created_at
  from millrace.family f;

create or replace view millrace.quests as
select q.family, q.day, i.kind, i.title, q.state,
       (select count(*) from millrace.quest_completion c where c.family = q.family and c.day = q.day and c.undone_at is null) as completions,
       i.name as id, i.description
  from millrace.quest q join millrace.quest_item i on i.id = q.item;
