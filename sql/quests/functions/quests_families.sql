-- Quests of families: their schedule, their clocks, a family's move to another zone, what is erased. A move never makes a day come twice.

-- Each zone's days begin at a quarter of an hour, somewhere; the schedule looks then, and stays quiet until there is a family.
create or replace function millrace.quest_arm() returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from millrace.schedule s where s.name = 'quests.rollover') then
        return false;
    end if;
    return millrace.schedule_put('quests.rollover', '*/15 * * * *', 'quests.rollover', '{}', 'UTC', 'quests', null, null, 'latest', 1000, 'skip', '0', null, null) = 'created';
end $$;

-- The clock and the streak of a family that the caller has locked. One without a name is a person's own, by its zone.
create or replace function millrace.quest_family_of(locked millrace.family) returns millrace.quest_family
language plpgsql volatile as $$
declare
    f millrace.quest_family;
begin
    if locked.family is null then
        f.zone := locked.zone;
        f.today := millrace.day_at(millrace.now(), f.zone);
        f.opened_at := millrace.day_start(f.today, f.zone);
        f.next_rollover_at := millrace.day_start(f.today + 1, f.zone);
        return f;
    end if;
    select * into strict f from millrace.quest_family x where x.family = locked.family;  -- behind the lock
    return f;
end $$;

-- The caller has locked the family, and its zone has changed. East: a day that the move ends early has its grace period from the move on, and skipped
-- days are marked so. West: today continues until the clock there reaches its end.
create or replace function millrace.quest_zone_moved() returns trigger
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    f millrace.quest_family;
    ends timestamptz;
    rules millrace.quest_rule;
begin
    select * into strict rules from millrace.quest_rule;
    begin
        perform millrace.quest_roll(array[new.family], t);  -- what is due is due by the old clock
    exception when others then
        if sqlstate like '40%' then raise; end if;        -- a clock that fails is what this call may be there to replace
    end;
    f := millrace.quest_family_of(new);
    ends := case when millrace.day_at(t, new.zone) > f.today then t else millrace.day_start(f.today + 1, new.zone) end;
    update millrace.quest_family x set zone = new.zone, next_rollover_at = ends, due_at = ends where x.family = f.family;
    perform millrace.quest_roll(array[f.family], t);
    f := millrace.quest_family_of(new);
    perform millrace.notice_retime(n.id, n.due, f.next_rollover_at)
       from (select o.id, millrace.quest_due(o.kind, f.today, f.zone, rules, millrace.reminder_hour_of(o.person)) as due
               from millrace.family_member m join millrace.notice o on o.person = m.person
              where m.family = f.family and o.status = 'pending' and o.due_at > t
                and o.key in ('daily_reminder:' || f.today, 'quest_available:' || f.today, 'streak_at_risk:' || f.today)) n
      where n.due is not null;
    return null;
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
    perform millrace.ai_erase_ref('moods', x.ref)
       from (select distinct q.ref from millrace.mood m join millrace.ai_question q on q.room = 'moods' and q.ref = m.id where m.person = quests_erase_person.person) x;
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
    delete from millrace.quest_person p where p.person = quests_erase_person.person;  -- counted with the member's row
    return gone;
end $$;

create or replace view millrace.quests as
select q.family, q.day, i.kind, i.title, q.state,
       (select count(*) from millrace.quest_completion c where c.family = q.family and c.day = q.day and c.undone_at is null) as completions,
       i.name as id, i.description
  from millrace.quest q join millrace.quest_item i on i.id = q.item;
select millrace.view_is('quests', 'quests', 'worker, operator');

create or replace view millrace.families as
select f.family, f.zone, f.week_starts, (select count(*) from millrace.family_member m where m.family = f.family) as members, q.today,
       q.next_rollover_at, q.streak, q.best, q.freezes, q.failures, q.problem, f.created_at
  from millrace.family f join millrace.quest_family q on q.family = f.family;
select millrace.view_is('quests', 'families', 'worker, operator');

-- The kinds of this room's jobs, which name its rows.
create or replace function millrace.quest_kinds() returns setof text
language sql immutable parallel safe as 'select ''quests.rollover''';

-- What this room keeps of a person: see person_export.
create or replace function millrace.quests_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'mood', m.id::text, to_jsonb(m) from millrace.mood m where m.person = quests_export_person.person
    union all
    select 'mood_streak', '', to_jsonb(p) from millrace.quest_person p where p.person = quests_export_person.person
    union all
    select 'hobby', h.id::text, to_jsonb(h) || jsonb_build_object('facts', coalesce((select jsonb_agg(c.fact order by c.at, c.id) from millrace.card c where c.hobby = h.id), '[]'))
      from millrace.hobby h where h.person = quests_export_person.person
    union all
    select 'hobby_seen', v.hobby::text, to_jsonb(v) from millrace.hobby_view v where v.person = quests_export_person.person
    union all
    select 'card_answer', r.card::text, to_jsonb(r) from millrace.card_reply r where r.person = quests_export_person.person
    union all
    select 'quest', c.family || '/' || c.day, to_jsonb(c) from millrace.quest_completion c where c.person = quests_export_person.person
    union all
    select 'points', l.key, to_jsonb(l) from millrace.points_ledger l where l.person = quests_export_person.person
$$;
