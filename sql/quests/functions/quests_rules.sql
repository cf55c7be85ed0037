-- The rules that the other quest functions use: a family's clock, streaks, points.

-- [length, best, freezes] after one more day. A day that was done makes it longer, and each seventh in a row earns a freeze, of which two
-- are kept; a missed day costs a freeze and leaves the length, or ends it; a day that was not lived does nothing.
create or replace function millrace.streak_step(s int[], outcome text) returns int[]
language sql immutable parallel safe as $$
    select case
        when outcome = 'done' then
            array[s[1] + 1, greatest(s[2], s[1] + 1), case when (s[1] + 1) % 7 = 0 then least(s[3] + 1, 2) else s[3] end]
        when outcome = 'missed' and s[1] > 0 and s[3] > 0 then array[s[1], s[2], s[3] - 1]
        when outcome = 'missed' then array[0, s[2], s[3]]
        else s end
$$;

create or replace aggregate millrace.streak_fold(text) (sfunc = millrace.streak_step, stype = int[], initcond = '{0,0,0}');

-- A day's quest, by the day and the family's own place in the rotation.
create or replace function millrace.quest_item_of(family text, day date, rotation int[]) returns int
language sql immutable parallel safe as $$
    select rotation[1 + ((day - date '2000-01-01') + abs(hashtextextended(family, 0) % 1000)) % cardinality(rotation)]
$$;

-- How many days between two days (both excluded) were lived. For an opened day its quest says so, for others the calendar.
create or replace function millrace.lived_between(the_family text, zone text, one date, other date) returns int
language sql stable as $$
    select count(*)::int
      from generate_series(one + 1, other - 1, interval '1 day') g(d)
      left join millrace.quest q on q.family = the_family and q.day = g.d::date
     where coalesce(q.state <> 'not_lived', millrace.day_start(g.d::date, zone) < millrace.day_start(g.d::date + 1, zone))
$$;

-- A family's clock at `t`, whether or not a worker has rolled it over its midnights since.
create or replace function millrace.quest_clock(f millrace.quest_family, t timestamptz, out today date, out opened_at timestamptz, out ends_at timestamptz, out before date)
language plpgsql stable as $$
declare
    ends timestamptz;
begin
    today := f.today;
    opened_at := f.opened_at;
    ends_at := f.next_rollover_at;
    while ends_at <= t loop
        if ends_at > opened_at then
            before := today;
        end if;
        today := today + 1;
        ends := greatest(millrace.day_start(today + 1, f.zone), ends_at);
        opened_at := ends_at;
        ends_at := ends;
    end loop;
    if f.family is null then
        before := coalesce(before, today - case when millrace.day_start(today - 1, f.zone) < millrace.day_start(today, f.zone) then 1 else 2 end);
    elsif before is null then
        select q.day into before from millrace.quest q
         where q.family = f.family and q.day < f.today and q.state <> 'not_lived' order by q.day desc limit 1;
    end if;
end $$;

-- The day that something done at `at` belongs to: the open one, or within the grace the last one before it. What lies ahead counts as now.
create or replace function millrace.quest_day(f millrace.quest_family, day date, at timestamptz, t timestamptz) returns date
language plpgsql stable as $$
declare
    c record;
    the_day date := day;
    grace interval;
begin
    c := millrace.quest_clock(f, t);
    if the_day is null then
        the_day := case when at is null or at >= c.opened_at then c.today else coalesce(c.before, c.today - 1) end;
    end if;
    if the_day = c.today then
        return the_day;
    end if;
    if the_day > c.today then
        perform millrace.refuse(format('the day %s has not begun for this family', the_day), 'day', format('Its day is %s.', c.today));
    end if;
    select r.grace into grace from millrace.quest_rule r;
    if the_day is distinct from c.before or t > c.opened_at + grace or at >= c.opened_at then
        perform millrace.refuse(format('the day %s is over', the_day), 'day',
            format('The last day counts until %s, for what was done before its end.', to_char((c.opened_at + grace) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
            '55000', 'wrong_state');
    end if;
    if at < c.opened_at - interval '50 hours' then
        perform millrace.refuse('at lies before that day', 'at', 'Give when it was done.', '55000', 'wrong_state');
    end if;
    return the_day;
end $$;

-- Books an award; 0 when it is booked already. What was undone may be booked once more: the keys then end in #2, #3 and so on.
create or replace function millrace.points_book(the_person text, base text, points int, why text, the_day date) returns int
language plpgsql volatile as $$
declare
    turns int;
    undone int;
begin
    select count(*) filter (where l.key !~ '/undo$'), count(*) filter (where l.key ~ '/undo$') into turns, undone
      from millrace.points_ledger l
     where l.person = the_person and (l.key in (base, base || '/undo') or (l.key > base || '#' and l.key < base || '$'));
    if turns > undone then
        return 0;
    end if;
    insert into millrace.points_ledger (person, key, delta, reason, day, at)
    values (the_person, base || case when turns = 0 then '' else '#' || turns + 1 end, points, why, the_day, millrace.now())
        on conflict do nothing;
    return case when found then points else 0 end;
end $$;

-- A row that takes an award back; the award stays to be seen.
create or replace function millrace.points_unbook(the_person text, base text) returns int
language plpgsql volatile as $$
declare
    taken int;
begin
    insert into millrace.points_ledger (person, key, delta, reason, day, at)
    select l.person, l.key || '/undo', -l.delta, 'undo', l.day, millrace.now()
      from millrace.points_ledger l
     where l.person = the_person and (l.key = base or (l.key > base || '#' and l.key < base || '$')) and l.key !~ '/undo$'
       and not exists (select from millrace.points_ledger u where u.person = the_person and u.key = l.key || '/undo')
        on conflict do nothing
    returning delta into taken;
    return coalesce(taken, 0);
end $$;

create or replace function millrace.points_total(the_person text, since timestamptz default '-infinity') returns bigint
language sql stable as 'select coalesce(sum(l.delta), 0)::bigint from millrace.points_ledger l where l.person = the_person and l.at >= since';

-- An operator's settings; names that are left out stay as they are.
create or replace function millrace.quest_rules_set(rules jsonb, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    old millrace.quest_rule;
    new millrace.quest_rule;
    strange text;
    items int[];
    told boolean := false;                                -- the texts of a quest have changed
begin
    select string_agg(k, ', ') into strange from jsonb_object_keys(rules) k
     where k not in ('grace', 'mood_buffer', 'reminder_hour', 'quiet_from', 'quiet_to', 'hobby', 'card', 'quest', 'streak', 'seen', 'catalogue');
    if strange is not null then
        perform millrace.refuse(format('rules unknown: %s', strange), 'rules',
            'Allowed: grace, mood_buffer, reminder_hour, quiet_from, quiet_to, hobby, card, quest, streak, seen and catalogue.');
    end if;
    select * into strict old from millrace.quest_rule for update;
    new := jsonb_populate_record(old, rules - 'catalogue');
    if rules ? 'catalogue' then
        if jsonb_typeof(rules -> 'catalogue') <> 'array' or jsonb_array_length(rules -> 'catalogue') not between 1 and 366 then
            perform millrace.refuse('the catalogue is not a list of 1 to 366 quests', 'catalogue', 'Give [{"kind": "share_hobby", "title": "…"}, …].');
        end if;
        if exists (select from jsonb_array_elements(rules -> 'catalogue') e
             where coalesce(e ->> 'kind', '') not in ('share_hobby', 'daily_mood', 'family_chat') or length(coalesce(e ->> 'title', '')) not between 1 and 200) then
            perform millrace.refuse('a quest of the catalogue has no known kind or no title of 1 to 200 characters', 'catalogue',
                'Kinds are share_hobby, daily_mood and family_chat.');
        end if;
        if exists (select from jsonb_array_elements(rules -> 'catalogue') e
             where length(e ->> 'id') not between 1 and 128 or length(e ->> 'description') not between 1 and 1000) then
            perform millrace.refuse('a quest of the catalogue has an id or a description that is empty or too long', 'catalogue',
                'An id has 1 to 128 characters, a description 1 to 1000; leave out what does not apply.');
        end if;
        insert into millrace.quest_item as i (kind, title, name, description)
        select distinct on (e ->> 'kind', e ->> 'title') e ->> 'kind', e ->> 'title', e ->> 'id', e ->> 'description'
          from jsonb_array_elements(rules -> 'catalogue') e
            on conflict (kind, title) do update set name = excluded.name, description = excluded.description
                where (i.name, i.description) is distinct from (excluded.name, excluded.description);
        told := found;
        select array_agg(i.id order by e.n) into items
          from jsonb_array_elements(rules -> 'catalogue') with ordinality e(v, n)
          join millrace.quest_item i on i.kind = e.v ->> 'kind' and i.title = e.v ->> 'title';
        new.rotation := items;
    end if;
    if new = old then
        if told then
            perform millrace.audited('quest.rules', null, '{"names": ["catalogue"]}', caller => quest_rules_set.caller);
        end if;
        return told;
    end if;
    update millrace.quest_rule
       set grace = new.grace, mood_buffer = new.mood_buffer, reminder_hour = new.reminder_hour, quiet_from = new.quiet_from, quiet_to = new.quiet_to,
           hobby = new.hobby, card = new.card, quest = new.quest, streak = new.streak, seen = new.seen, rotation = new.rotation;
    perform millrace.audited('quest.rules', null, jsonb_build_object('names', (select jsonb_agg(k) from jsonb_object_keys(rules) k)), caller => quest_rules_set.caller);
    return true;
end $$;
select millrace.door_is('quests', 'quest_rules_set', 'worker', 'staff', audited => true);
