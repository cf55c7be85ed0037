-- Moods: an append-only log with tombstones, and the streak of days that have one.

create or replace function millrace.mood_color(color text) returns text
language plpgsql immutable as $$
declare
    found_one text;
begin
    select n into found_one
      from (values ('happy', '#ffd700'), ('excited', '#ff6b6b'), ('calm', '#4ecdc4'), ('anxious', '#9b59b6'), ('sad', '#5dade2'), ('angry', '#e74c3c'),
                   ('confused', '#f39c12'), ('tired', '#95a5a6')) c(n, hex)
     where lower(color) in (n, hex);
    if found_one is null then
        perform millrace.refuse(format('the mood %L is unknown', left(color, 60)), 'color',
            'Give happy, excited, calm, anxious, sad, angry, confused or tired.');
    end if;
    return found_one;
end $$;

create or replace function millrace.mood_log(
    person text, color text, emoji text default null, at timestamptz default null, buffer interval default null, id uuid default null, actor text default null, caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz;
    f millrace.quest_family;
    rules millrace.quest_rule;
    the_id uuid := coalesce(mood_log.id, gen_random_uuid());
    the_color text := millrace.mood_color(mood_log.color);
    the_day date;
    the_at timestamptz;
    wait interval;
    old millrace.mood;
begin
    perform millrace.acts_as_person(mood_log.actor, mood_log.person, caller => mood_log.caller);
    if length(mood_log.emoji) not between 1 and millrace.most('emoji') then
        perform millrace.refuse('the emoji is empty or too long', 'emoji', 'Give one emoji, or null.');
    end if;
    if mood_log.buffer < interval '0' or mood_log.buffer > interval '1 day' then
        perform millrace.refuse('the buffer is out of range', 'buffer', 'Give an interval from 0 to a day.');
    end if;
    f := millrace.quest_family_of(millrace.family_lock_or_own(mood_log.person));
    t := millrace.now();
    the_at := millrace.happened(mood_log.at, t);
    if mood_log.id is not null then
        select * into old from millrace.mood m where m.id = mood_log.id;
        if found then
            if (old.person, old.color, old.emoji) is distinct from (mood_log.person, the_color, mood_log.emoji)
                or the_at < old.at - interval '2 minutes' then    -- a later one may have counted as now
                perform millrace.refuse(format('mood %s is already logged with different content', mood_log.id), 'id',
                    'Repeating an id with the same content returns the first answer; use a new id for another mood.', '23505', 'conflict');
            end if;
            return old.id;
        end if;
    end if;
    select * into strict rules from millrace.quest_rule;
    the_day := millrace.quest_day(f, null, the_at, t);
    the_at := coalesce(the_at, t);
    wait := coalesce(mood_log.buffer, rules.mood_buffer);
    insert into millrace.mood (id, person, family, day, color, emoji, at, shared_at)
    values (the_id, mood_log.person, f.family, the_day, the_color, mood_log.emoji, the_at, the_at + wait);
    perform millrace.mood_day_added(f, mood_log.person, the_day);
    perform millrace.notice_cancel(mood_log.person, 'daily_reminder:' || the_day);
    if f.family is null then                              -- there is nobody to share it with, and no quest
        return the_id;
    end if;
    if the_at + wait > t then
        perform millrace.notice_send(mood_log.person, 'mood_buffer', jsonb_build_object('text', 'Your mood is ready to share', 'mood', the_id),
            key => 'mood_buffer:' || the_id, at => millrace.notice_loud(the_at + wait, f.zone, rules.quiet_from, rules.quiet_to));
    end if;
    perform millrace.quest_do_if(f, mood_log.person, the_day, 'daily_mood', the_at, t);
    return the_id;
end $$;
select millrace.door_is('quests', 'mood_log', 'client, worker', 'actor person', 'Logs a mood. Returns its id.',
    words => '{"color": ["happy", "excited", "calm", "anxious", "sad", "angry", "confused", "tired"]}',
    who_may => array['log a mood for them: itself, back end, staff']);

-- All or nothing; at most 500.
create or replace function millrace.mood_log_many(moods jsonb, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    answer jsonb := '[]';
    one jsonb;
begin
    perform millrace.quest_batch(moods, 'moods', array['person', 'color', 'emoji', 'at', 'buffer', 'id']);
    for one in select e from jsonb_array_elements(moods) e loop
        answer := answer || to_jsonb(millrace.mood_log(one ->> 'person', one ->> 'color', one ->> 'emoji', millrace.time_given(one -> 'at', 'moods'),
            (one ->> 'buffer')::interval, (one ->> 'id')::uuid, mood_log_many.actor, caller => mood_log_many.caller));
    end loop;
    return answer;
exception when data_exception then
    perform millrace.quest_batch_refused('moods', sqlstate, sqlerrm);
    raise;
end $$;
select millrace.door_is('quests', 'mood_log_many', 'client, worker', 'actor person', 'Logs many moods, all or none.');

-- An action also completes the quest, if the quest is of that kind.
create or replace function millrace.quest_do_if(f millrace.quest_family, the_person text, the_day date, the_kind text, done_at timestamptz, t timestamptz) returns int
language plpgsql volatile as $$
declare
    kind text;
begin
    select i.kind into kind
      from millrace.quest_rule r
      left join millrace.quest q on q.family = f.family and q.day = the_day
      join millrace.quest_item i on i.id = coalesce(q.item, millrace.quest_item_of(f.family, the_day, r.rotation));
    return case when kind = the_kind then millrace.quest_do(f, the_person, the_day, done_at, t) else 0 end;
end $$;

-- Usually the mood is the newest, and extends the streak by one step; for any other day the streak is computed again.
create or replace function millrace.mood_day_added(f millrace.quest_family, the_person text, the_day date) returns void
language plpgsql volatile as $$
declare
    m millrace.quest_person;
    s int[];
    missed int;
begin
    perform from millrace.family_member x where x.person = the_person for no key update;
    select * into m from millrace.quest_person x where x.person = the_person;
    if m.mood_last = the_day then
        return;
    end if;
    if m.mood_last > the_day then
        perform millrace.mood_refold(the_person);
        return;
    end if;
    s := array[coalesce(m.mood_streak, 0), coalesce(m.mood_best, 0), coalesce(m.mood_freezes, 0)];
    missed := millrace.days_missed(f.family, f.zone, m.mood_last, the_day);
    for n in 1 .. missed loop
        s := millrace.streak_step(s, 'missed');
    end loop;
    s := millrace.streak_step(s, 'done');
    perform millrace.mood_streak_put(the_person, s, the_day);
    if s[1] % 7 = 0 then
        perform millrace.points_book(the_person, 'mood_streak:' || the_day, r.streak, 'mood_streak', the_day) from millrace.quest_rule r;
    end if;
end $$;

create or replace function millrace.mood_streak_put(the_person text, s int[], last date) returns void
language sql volatile as $$
    insert into millrace.quest_person (person, mood_streak, mood_best, mood_freezes, mood_last) values (the_person, s[1], s[2], s[3], last)
        on conflict (person) do update
            set mood_streak = excluded.mood_streak, mood_best = excluded.mood_best, mood_freezes = excluded.mood_freezes, mood_last = excluded.mood_last
$$;

-- Three missed days end any streak, so no more are counted.
create or replace function millrace.days_missed(the_family text, zone text, one date, other date) returns int
language sql stable as $$
    select case when one is null or other - one < 2 then 0 when other - one > 12 then 3
                else least(3, millrace.lived_between(the_family, zone, one, other)) end
$$;

-- The streak of moods from the moods, and the awards that go with it.
create or replace function millrace.mood_refold(the_person text) returns boolean
language plpgsql volatile as $$
declare
    m millrace.family_member;
    old millrace.quest_person;
    the_zone text;
    s int[] := '{0,0,0}';
    last date;
    d date;
    earned date[] := '{}';
    changed boolean;
    surplus record;
    booked int := 0;
begin
    select * into strict m from millrace.family_member x where x.person = the_person for no key update;
    select * into old from millrace.quest_person x where x.person = the_person;
    the_zone := coalesce((select f.zone from millrace.family f where f.family = m.family), millrace.zone_of(the_person), 'UTC');
    for d in select distinct o.day from millrace.mood o where o.person = the_person and o.deleted_at is null order by 1 loop
        for n in 1 .. millrace.days_missed(m.family, the_zone, last, d) loop
            s := millrace.streak_step(s, 'missed');
        end loop;
        s := millrace.streak_step(s, 'done');
        last := d;
        if s[1] % 7 = 0 then
            earned := earned || d;
        end if;
    end loop;
    changed := (coalesce(old.mood_streak, 0), coalesce(old.mood_best, 0), coalesce(old.mood_freezes, 0), old.mood_last) is distinct from (s[1], s[2], s[3], last);
    if changed then
        perform millrace.mood_streak_put(the_person, s, last);
    end if;
    for surplus in
        select distinct regexp_replace(l.key, '(#[0-9]+)?(/undo)?$', '') as base from millrace.points_ledger l
         where l.person = the_person and l.key > 'mood_streak:' and l.key < 'mood_streak;'
    loop
        if substr(surplus.base, 13)::date <> all (earned) then
            booked := booked + abs(millrace.points_unbook(the_person, surplus.base));
        end if;
    end loop;
    foreach d in array earned loop
        booked := booked + (select millrace.points_book(the_person, 'mood_streak:' || d, r.streak, 'mood_streak', d) from millrace.quest_rule r);
    end loop;
    return changed or booked > 0;
end $$;

-- A tombstone. Streaks follow, and so does the award that hung on the day; a quest that the mood completed stays done.
create or replace function millrace.mood_delete(id uuid, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(mood_delete.actor, caller => mood_delete.caller);
    old millrace.mood;
begin
    select * into old from millrace.mood m where m.id = mood_delete.id;
    if not found or old.person <> me then
        perform millrace.refuse(format('there is no mood %s of this person', mood_delete.id), 'id', null, 'P0002', 'not_found');
    end if;
    perform from millrace.family x join millrace.family_member m on m.family = x.family where m.person = me for no key update of x;
    update millrace.mood m set deleted_at = millrace.now() where m.id = mood_delete.id and m.deleted_at is null;
    if not found then
        return false;
    end if;
    perform millrace.notice_cancel(me, 'mood_buffer:' || mood_delete.id);
    perform millrace.ai_erase_ref('moods', mood_delete.id);
    if not exists (select from millrace.mood m where m.person = me and m.day = old.day and m.deleted_at is null
                      and m.at > old.at - interval '3 days' and m.at < old.at + interval '3 days') then
        perform millrace.mood_refold(me);
    end if;
    return true;
end $$;
select millrace.door_is('quests', 'mood_delete', 'client, worker', 'actor mood', 'Deletes a mood.',
    who_may => array['delete one of their moods: itself, back end, staff']);

-- The notice that a mood may be shared is not sent. The mood is shared all the same. False: the notice did not wait any more, or there was none.
create or replace function millrace.mood_notice_cancel(id uuid, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.acting_person(mood_notice_cancel.actor, caller => mood_notice_cancel.caller);
begin
    if not exists (select from millrace.mood m where m.id = mood_notice_cancel.id and m.person = me) then
        perform millrace.refuse(format('there is no mood %s of this person', mood_notice_cancel.id), 'id', null, 'P0002', 'not_found');
    end if;
    return millrace.notice_cancel(me, 'mood_buffer:' || mood_notice_cancel.id);
end $$;
select millrace.door_is('quests', 'mood_notice_cancel', 'client, worker', 'actor mood', 'Cancels the notice that a mood may be shared.',
    who_may => array['silence the notice about one of their moods: itself, back end, staff']);

-- Newest first, after the id in `after`. Other members see the moods that were logged in the family, each after its delay.
create or replace function millrace.moods(
    person text, since timestamptz default null, after text default null, page int default 50, actor text default null, caller millrace.caller_name default current_user
) returns table (id uuid, day date, color text, emoji text, at timestamptz, shared_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(moods.actor, caller => moods.caller);
    t timestamptz := millrace.now();
    last millrace.mood;
    shared text;
begin
    perform millrace.valid_name(moods.person, 'person');
    perform millrace.valid_page(moods.page);
    select a.family into shared from millrace.family_member a join millrace.family_member b on a.family = b.family where a.person = me and b.person = moods.person;
    if me <> moods.person and shared is null then
        perform millrace.refuse('only the family may see these moods', 'actor', 'Act as a member.', '42501', 'permission');
    end if;
    if moods.after is not null then
        select * into last from millrace.mood m where m.id = millrace.after_id(moods.after) and m.person = moods.person and (me = m.person or m.family = shared);
        if not found then
            perform millrace.refuse('there is no such mood', 'after', null, 'P0002', 'not_found');
        end if;
    end if;
    return query
        select m.id, m.day, m.color, m.emoji, m.at, m.shared_at from millrace.mood m
         where m.person = moods.person and m.deleted_at is null and (me = m.person or (m.shared_at <= t and m.family = shared))
           and (moods.since is null or m.at >= moods.since) and (moods.after is null or (m.at, m.id) < (last.at, last.id))
         order by m.at desc, m.id desc limit moods.page;
end $$;
select millrace.door_is('quests', 'moods', 'client, worker', 'actor person', 'Moods of a person, newest first.',
    answers => '{"color": ["happy", "excited", "calm", "anxious", "sad", "angry", "confused", "tired"]}',
    who_may => array['see their moods, once no longer private: itself, teen, parent, back end, staff']);

create or replace function millrace.streak(person text, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    m millrace.quest_person;
    f millrace.quest_family;
    the_zone text;
    today date;
    s int[];
begin
    perform millrace.person_sees_since(streak.actor, streak.person, caller => streak.caller);
    select * into m from millrace.quest_person x where x.person = streak.person;
    select x.* into f from millrace.family_member y join millrace.quest_family x on x.family = y.family where y.person = streak.person;
    the_zone := coalesce(f.zone, millrace.zone_of(streak.person), 'UTC');
    today := case when f.family is null then millrace.day_at(millrace.now(), the_zone) else (millrace.quest_clock(f, millrace.now())).today end;
    s := array[coalesce(m.mood_streak, 0), coalesce(m.mood_best, 0), coalesce(m.mood_freezes, 0)];
    for n in 1 .. millrace.days_missed(f.family, the_zone, m.mood_last, today) loop
        s := millrace.streak_step(s, 'missed');
    end loop;
    return jsonb_build_object('person', streak.person, 'day', today, 'current', s[1], 'best', s[2], 'freezes', s[3], 'last_day', m.mood_last,
        'moods_today', (select count(*) from millrace.mood o where o.person = streak.person and o.day = today and o.deleted_at is null
            and o.at > millrace.now() - interval '3 days'));
end $$;
select millrace.door_is('quests', 'streak', 'client, worker', 'actor person',
    'The person''s streak of days with a mood.', who_may => array['see their streak: itself, parent, back end, staff']);
