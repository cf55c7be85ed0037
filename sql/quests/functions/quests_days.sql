-- The quest of the day: reading it, completing it, undoing it; and the effects.

-- Records a completion; the points it brought. The family is locked by the caller.
create or replace function millrace.quest_do(f millrace.quest_family, the_person text, the_day date, done_at timestamptz, t timestamptz) returns int
language plpgsql volatile as $$
declare
    rules millrace.quest_rule;
    before text;
begin
    select * into strict rules from millrace.quest_rule;
    select q.state into before from millrace.quest q where q.family = f.family and q.day = the_day;
    if before = 'not_lived' then
        perform millrace.refuse(format('the day %s did not take place', the_day), 'day', 'It has no quest.', '55000', 'wrong_state');
    end if;
    insert into millrace.quest_completion as c (family, day, person, at, late)
    values (f.family, the_day, the_person, done_at, the_day < f.today)
        on conflict (family, day, person) do update set turn = c.turn + 1, undone_at = null, at = excluded.at where c.undone_at is not null;
    if not found then
        return 0;
    end if;
    if before is distinct from 'done' then
        insert into millrace.quest as q (family, day, item, state)
        values (f.family, the_day, millrace.quest_item_of(f.family, the_day, rules.rotation), 'done')
            on conflict (family, day) do update set state = 'done';
        if the_day < f.today then
            perform millrace.quest_refold(f.family);
        end if;
        perform millrace.notices_stop(array(
            select n.id from millrace.family_member m join millrace.notice n on n.person = m.person and n.key = 'streak_at_risk:' || the_day and n.status = 'pending'
             where m.family = f.family));
    end if;
    perform millrace.notice_cancel(the_person, 'quest_available:' || the_day);
    return millrace.points_book(the_person, 'quest:' || f.family || ':' || the_day, rules.quest, 'quest', the_day);
end $$;

-- Computes the family's streak again from its days.
create or replace function millrace.quest_refold(the_family text) returns boolean
language plpgsql volatile as $$
declare
    s int[];
begin
    select millrace.streak_fold(q.state order by q.day) into s
      from millrace.quest_family f join millrace.quest q on q.family = f.family and q.day < f.today where f.family = the_family;
    s := coalesce(s, '{0,0,0}');
    update millrace.quest_family f set streak = s[1], best = s[2], freezes = s[3]
     where f.family = the_family and (f.streak, f.best, f.freezes) is distinct from (s[1], s[2], s[3]);
    return found;
end $$;

create or replace function millrace.quest_complete(
    family text, person text, day date default null, at timestamptz default null, actor text default null, caller millrace.caller_name default current_user
) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    f millrace.quest_family;
    the_day date;
    the_at timestamptz;
    awarded int;
begin
    perform millrace.acts_as_person(quest_complete.actor, quest_complete.person, caller => quest_complete.caller);
    perform millrace.family_actor(quest_complete.actor, quest_complete.family, caller => quest_complete.caller);
    f := millrace.quest_family_of(millrace.family_lock(quest_complete.family));
    t := millrace.now();                                   -- the lock may have taken its time
    the_at := millrace.happened(quest_complete.at, t);
    the_day := millrace.quest_day(f, quest_complete.day, the_at, t);
    awarded := millrace.quest_do(f, quest_complete.person, the_day, coalesce(the_at, t), t);
    return jsonb_build_object('completed', true, 'awarded', awarded, 'total', millrace.points_total(quest_complete.person), 'day', the_day);
end $$;
select millrace.door_is('quests', 'quest_complete', 'client, worker', 'actor member',
    'Completes the quest of the day.', who_may => array['complete their quest: itself, back end, staff']);

-- All or nothing; at most 500.
create or replace function millrace.quest_complete_many(completions jsonb, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    answer jsonb := '[]';
    one jsonb;
begin
    perform millrace.quest_batch(completions, 'completions', array['family', 'person', 'day', 'at']);
    for one in select e from jsonb_array_elements(completions) e loop
        answer := answer || millrace.quest_complete(one ->> 'family', one ->> 'person', (one ->> 'day')::date, millrace.time_given(one -> 'at', 'completions'), quest_complete_many.actor, caller => quest_complete_many.caller);
    end loop;
    return answer;
exception when data_exception then
    perform millrace.quest_batch_refused('completions', sqlstate, sqlerrm);
    raise;
end $$;
select millrace.door_is('quests', 'quest_complete_many', 'client, worker', 'actor member',
    'Completes many quests, all or none.');

-- The error for an entry of a wrong type is Postgres's own and does not name the field's kind; ours are 22023.
create or replace function millrace.quest_batch_refused(field text, code text, sentence text) returns void
language plpgsql immutable as $$
begin
    if code <> '22023' then
        perform millrace.refuse(left(sentence, 200), field, 'Give each entry as the function for a single one takes it.');
    end if;
end $$;

create or replace function millrace.quest_batch(items jsonb, field text, known text[]) returns void
language plpgsql immutable as $$
declare
    strange text;
begin
    if items is null or jsonb_typeof(items) <> 'array' or jsonb_array_length(items) > millrace.most('batch') then
        perform millrace.refuse(format('%s is not a list of at most 500 objects', field), field, 'Give a JSON array of objects.');
    end if;
    if exists (select from jsonb_array_elements(items) e where jsonb_typeof(e) <> 'object') then
        perform millrace.refuse(format('%s holds something that is not an object', field), field, 'Give a JSON array of objects.');
    end if;
    select k into strange from jsonb_array_elements(items) e, jsonb_object_keys(e) k where k <> all (known) limit 1;
    if strange is not null then
        perform millrace.refuse(format('%L is unknown in %s', left(strange, 60), field), field, format('Allowed: %s.', array_to_string(known, ', ')));
    end if;
end $$;

-- Takes a completion back: its point by a row of its own, the day and the streak as if it had never been. For the person or a parent, both
-- in this
-- family.
create or replace function millrace.quest_undo(family text, person text, day date default null, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    f millrace.quest_family;
    the_day date := quest_undo.day;
    taken int := 0;
    undone boolean;
begin
    perform millrace.person_sees_since(quest_undo.actor, quest_undo.person, caller => quest_undo.caller);
    f := millrace.quest_family_of(millrace.family_lock_as(quest_undo.family, quest_undo.person, false));
    the_day := coalesce(the_day, (millrace.quest_clock(f, millrace.now())).today);
    update millrace.quest_completion c set undone_at = millrace.now()
     where c.family = f.family and c.day = the_day and c.person = quest_undo.person and c.undone_at is null;
    undone := found;
    if undone then
        taken := millrace.points_unbook(quest_undo.person, 'quest:' || f.family || ':' || the_day);
        if not exists (select from millrace.quest_completion c where c.family = f.family and c.day = the_day and c.undone_at is null) then
            update millrace.quest q set state = case when the_day < f.today then 'missed' else 'open' end
             where q.family = f.family and q.day = the_day;
            if the_day < f.today then
                perform millrace.quest_refold(f.family);
            end if;
        end if;
    end if;
    return jsonb_build_object('undone', undone, 'awarded', taken, 'total', millrace.points_total(quest_undo.person), 'day', the_day);
end $$;
select millrace.door_is('quests', 'quest_undo', 'client, worker', 'actor member', 'Takes a completion back.',
    who_may => array['take back one of their completions: itself, parent, back end, staff']);

create or replace function millrace.quest_today(family text, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.family_actor(quest_today.actor, quest_today.family, caller => quest_today.caller);
    f millrace.quest_family;
    c record;
    answer jsonb;
    s int[];
begin
    select * into strict f from millrace.quest_family x where x.family = quest_today.family;
    c := millrace.quest_clock(f, millrace.now());
    s := array[f.streak, f.best, f.freezes];
    -- Days that no rollover has closed yet count as they will.
    select coalesce(millrace.streak_now(s, array_agg(coalesce(q.state, 'missed') order by g)), s) into s
      from generate_series(f.today, c.today - 1, interval '1 day') g
      left join millrace.quest q on q.family = f.family and q.day = g::date;
    select jsonb_build_object('family', f.family, 'day', c.today, 'kind', i.kind, 'title', i.title, 'id', i.name, 'description', i.description, 'state', coalesce(q.state, 'open'),
               'ends_at', c.ends_at, 'streak', case when q.state = 'done' then (millrace.streak_step(s, 'done'))[1] else s[1] end, 'freezes', s[3],
               'completed_by', coalesce((select jsonb_agg(k.person order by k.at, k.person) from millrace.quest_completion k
                    where k.family = f.family and k.day = c.today and k.undone_at is null), '[]'),
               'completed', exists (select from millrace.quest_completion k
                    where k.family = f.family and k.day = c.today and k.person = me and k.undone_at is null))
      into answer
      from millrace.quest_rule r
      left join millrace.quest q on q.family = f.family and q.day = c.today
      join millrace.quest_item i on i.id = coalesce(q.item, millrace.quest_item_of(f.family, c.today, r.rotation));
    return answer;
end $$;
select millrace.door_is('quests', 'quest_today', 'client, worker', 'actor member', 'The family''s quest of today.',
    who_may => array['see the family''s quest: itself, teen, parent, back end, staff']);

create or replace function millrace.streak_now(s int[], outcomes text[]) returns int[]
language plpgsql immutable as $$
declare
    one text;
begin
    foreach one in array coalesce(outcomes, '{}') loop
        s := millrace.streak_step(s, case when one = 'open' then 'missed' else one end);
    end loop;
    return s;
end $$;

create or replace function millrace.points(person text, actor text default null, caller millrace.caller_name default current_user) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    return millrace.points_total(points.person, millrace.person_sees_since(points.actor, points.person, caller => points.caller));
end $$;
select millrace.door_is('quests', 'points', 'client, worker', 'actor person', 'The points of a person.',
    who_may => array['see their points: itself, parent, back end, staff']);

-- An award of the app's own, once per key; false when it was booked before.
create or replace function millrace.points_award(person text, delta int, key text, reason text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.must_be_backend('award points', caller => points_award.caller);
    perform millrace.valid_name(points_award.person, 'person');
    if points_award.key is null or length(points_award.key) not between 1 and 200 then
        perform millrace.refuse('the key is missing or too long', 'key', 'Give 1 to 200 characters; each key counts once per person.');
    end if;
    if coalesce(points_award.delta, 0) = 0 or abs(points_award.delta) > 1000000 then
        perform millrace.refuse('delta is 0, missing or too large', 'delta', 'Give points from -1000000 to 1000000.');
    end if;
    if points_award.reason is null or length(points_award.reason) not between 1 and 200 then
        perform millrace.refuse('the reason is missing or too long', 'reason', 'Give 1 to 200 characters.');
    end if;
    insert into millrace.points_ledger (person, key, delta, reason, day, at)
    select points_award.person, 'award:' || points_award.key, points_award.delta, points_award.reason,
           coalesce((select (millrace.quest_clock(f, millrace.now())).today from millrace.family_member m join millrace.quest_family f on f.family = m.family
                      where m.person = points_award.person), (millrace.now() at time zone 'UTC')::date), millrace.now()
        on conflict do nothing;
    return found;
end $$;
select millrace.door_is('quests', 'points_award', 'client, worker', 'backend', 'Awards a person points from the app itself, once per key. For back ends.', for_apps => false,
    who_may => array['award them points: back end, staff']);

-- A family's days as one member saw them, newest first, after the day in `after`; with `of_kind` those whose quest was of that kind.
create or replace function millrace.quest_history(
    person text, after text default null, page int default 50, actor text default null, of_kind text default null, caller millrace.caller_name default current_user
) returns table (day date, kind text, title text, state text, completed boolean, at timestamptz, late boolean, id text, description text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    since timestamptz := millrace.person_sees_since(quest_history.actor, quest_history.person, caller => quest_history.caller);
    size bigint;
    taken bigint := 0;
begin
    perform millrace.valid_page(quest_history.page);
    if of_kind not in ('share_hobby', 'daily_mood', 'family_chat') then
        perform millrace.refuse(format('the kind %L is unknown', left(of_kind, 60)), 'of_kind', 'Give share_hobby, daily_mood or family_chat, or null for all.');
    end if;
    for day, kind, title, state, completed, at, late, id, description in
        select q.day, i.kind, i.title, q.state, c.person is not null, c.at, coalesce(c.late, false), i.name, i.description
          from millrace.family_member m
          join millrace.family f on f.family = m.family
          join millrace.quest q on q.family = m.family
          join millrace.quest_item i on i.id = q.item
          left join millrace.quest_completion c on c.family = q.family and c.day = q.day and c.person = m.person and c.undone_at is null
         where m.person = quest_history.person and (since = '-infinity' or q.day >= (since at time zone f.zone)::date)
           and (quest_history.after is null or q.day < millrace.after_day(quest_history.after)) and (of_kind is null or i.kind = of_kind)
         order by q.day desc limit quest_history.page
    loop
        size := octet_length(row(day, kind, title, state, completed, at, late, id, description)::text);
        exit when not millrace.page_takes('quest_history', taken, size);
        taken := taken + size;
        return next;
    end loop;
end $$;
select millrace.door_is('quests', 'quest_history', 'client, worker', 'actor person',
    'The family''s days as the person saw them, newest first.',
    words => '{"of_kind": ["share_hobby", "daily_mood", "family_chat"]}',
    who_may => array['see their days: itself, parent, back end, staff']);

-- One week of local dates, the one that `week` lies in: counted from the events each time, so that it cannot disagree with them.
create or replace function millrace.weekly_stats(person text, week date default null, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    f millrace.quest_family;
    first date;
    since timestamptz := millrace.person_sees_since(weekly_stats.actor, weekly_stats.person, caller => weekly_stats.caller);
begin
    if weekly_stats.week not between date '2000-01-01' and date '9999-12-24' then
        perform millrace.refuse('the week is out of range', 'week', 'Give a day from 2000 to 9999, or null for this week.');
    end if;
    select x.* into f from millrace.quest_family x join millrace.family_member m on m.family = x.family where m.person = weekly_stats.person;
    first := coalesce(weekly_stats.week, case when f.family is null then millrace.day_at(millrace.now(), coalesce(millrace.zone_of(weekly_stats.person), 'UTC')) else (millrace.quest_clock(f, millrace.now())).today end);
    first := first - (extract(dow from first)::int - coalesce((select x.week_starts from millrace.family x where x.family = f.family), 1) + 7) % 7;
    return millrace.week_of(weekly_stats.person, first, since);
end $$;
select millrace.door_is('quests', 'weekly_stats', 'client, worker', 'actor person', 'One week of the person in numbers.',
    who_may => array['see their week: itself, parent, back end, staff']);

create or replace function millrace.week_of(the_person text, first date, since timestamptz) returns jsonb
language sql stable as $$
    select jsonb_build_object('person', the_person, 'from', first, 'to', first + 6,
        'moods', (select count(*) from millrace.mood m where m.person = the_person and m.day between first and first + 6 and m.deleted_at is null
                     and m.at >= greatest(first - interval '3 days', since) and m.at < first + interval '10 days'),
        'mood_days', (select count(distinct m.day) from millrace.mood m where m.person = the_person and m.day between first and first + 6 and m.deleted_at is null
                     and m.at >= greatest(first - interval '3 days', since) and m.at < first + interval '10 days'),
        'colors', (select coalesce(jsonb_object_agg(x.color, x.n), '{}') from (
                    select m.color, count(*) as n from millrace.mood m where m.person = the_person and m.day between first and first + 6 and m.deleted_at is null
                       and m.at >= greatest(first - interval '3 days', since) and m.at < first + interval '10 days' group by m.color) x),
        'quests', (select count(*) from millrace.quest_completion c where c.person = the_person and c.day between first and first + 6 and c.undone_at is null and c.at >= since),
        'hobbies', (select count(*) from millrace.hobby h where h.person = the_person and h.day between first and first + 6 and h.at >= since),
        'cards', (select count(*) from millrace.card_reply r where r.person = the_person and r.day between first and first + 6 and r.at >= since),
        'points', (select coalesce(sum(l.delta), 0) from millrace.points_ledger l where l.person = the_person and l.day between first and first + 6 and l.at >= since))
$$;
