-- Who hears of moods, hobbies, cards, quests and points: the person, and the members of its family who may see them by the doors. Rows that others
-- have through a family go when one of the two leaves it.

-- The other members.
create or replace function millrace.feed_others(the_family text, the_person text) returns setof text
language sql stable as $$
    select m.person from millrace.family_member m where m.family = the_family and m.person is distinct from the_person
$$;

-- Others see a mood that was logged in their family when its delay is over; not one that was deleted before, or whose person has left.
create or replace function millrace.feed_mood() returns trigger
language plpgsql as $$
declare
    t timestamptz := millrace.now();
    is_gone boolean := new.deleted_at is not null;
    what text := case when is_gone then 'deleted' else 'logged' end;
    seen jsonb := case when is_gone then '{}'::jsonb else jsonb_build_object('day', new.day, 'color', new.color, 'at', new.at) end;
begin
    if is_gone then
        perform millrace.feed_take_back('moods', new.id::text, new.person);
    end if;
    perform millrace.feed_say(array(
        select millrace.feed_change(at => t, topic => 'moods', person => new.person, ref => new.id::text, change => what,
                   data => seen || case when is_gone then '{}' else jsonb_strip_nulls(jsonb_build_object('emoji', new.emoji, 'shared_at', new.shared_at)) end)
        union all
        select millrace.feed_change(at => t, topic => 'moods', person => m, ref => new.id::text, change => what, data => seen || jsonb_build_object('person', new.person),
                   family => new.family, about => new.person, due_at => case when new.shared_at > t then new.shared_at end)
          from millrace.feed_others(new.family, new.person) m where not is_gone or (new.shared_at <= t and millrace.family_has(new.family, new.person, false))));
    return null;
end $$;

-- A row for the person itself; with a family, one without more than the id for each of the others.
create or replace function millrace.feed_hobby_row(the_change text, the_ref uuid, the_person text, own jsonb, the_family text) returns void
language plpgsql volatile as $$
begin
    perform millrace.feed_say(array(
        select millrace.feed_change(at => millrace.now(), topic => 'quests', person => the_person, ref => the_ref::text, change => the_change, data => own) where own is not null
        union all
        select millrace.feed_change(at => millrace.now(), topic => 'quests', person => m, ref => the_ref::text, change => the_change,
                   data => jsonb_build_object('person', the_person), family => the_family, about => the_person)
          from millrace.feed_others(the_family, the_person) m where the_family is not null));
end $$;

create or replace function millrace.feed_hobby() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_hobby_row('hobby_saved', new.id, new.person, jsonb_build_object('name', new.name, 'day', new.day, 'at', new.at), null);
    return null;
end $$;

create or replace function millrace.feed_hobby_share() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_hobby_row('hobby_shared', h.id, h.person, null, new.family) from millrace.hobby h where h.id = new.hobby;
    return null;
end $$;

create or replace function millrace.feed_card() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_hobby_row('card_added', new.id, h.person, null, new.family) from millrace.hobby h where h.id = new.hobby;
    return null;
end $$;

create or replace function millrace.feed_card_reply() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_hobby_row('card_answered', new.card, new.person, jsonb_build_object('right', new.is_right, 'day', new.day), null);
    return null;
end $$;

-- The one who has seen it, and the one whose hobby it is.
create or replace function millrace.feed_hobby_view() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_say(array(
        select millrace.feed_change(at => millrace.now(), topic => 'quests', person => p, ref => new.hobby::text, change => 'hobby_seen',
                   data => jsonb_build_object('seen_by', new.person), actor => nullif(new.person, p))
          from millrace.hobby h cross join unnest(array[h.person, new.person]) p where h.id = new.hobby));
    return null;
end $$;

-- All members of the family.
create or replace function millrace.feed_quest() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_say(array(
        select millrace.feed_change(at => millrace.now(), topic => 'quests', person => m.person, ref => new.day::text,
                   change => case when new.undone_at is null then 'completed' else 'undone' end,
                   data => jsonb_build_object('family', new.family, 'day', new.day, 'person', new.person, 'at', new.at, 'late', new.late),
                   family => new.family, about => nullif(new.person, m.person))
          from millrace.family_member m where m.family = new.family));
    return null;
end $$;

-- The person, and the parents of its family.
create or replace function millrace.feed_points() returns trigger
language plpgsql as $$
begin
    perform millrace.feed_say(array(
        select millrace.feed_change(at => n.at, topic => 'quests', person => p.person, ref => n.day::text, change => 'points',
                   data => jsonb_build_object('person', n.person, 'delta', n.delta, 'day', n.day)
                       || case when p.person = n.person then jsonb_build_object('reason', n.reason) else '{}' end,
                   family => p.family, about => nullif(n.person, p.person))
          from news n cross join lateral (
            select n.person, null::text as family
            union all
            select a.person, a.family from millrace.family_member b join millrace.family_member a on a.family = b.family
             where b.person = n.person and a.role = 'parent' and a.person <> b.person) p));
    return null;
end $$;

-- Who joins, who gets another role, who leaves. A person who leaves keeps nothing of the family's; of one that was erased nobody hears the name.
create or replace function millrace.feed_member() returns trigger
language plpgsql as $$
declare
    was text := case when tg_op <> 'INSERT' then old.family end;
    is_now text := case when tg_op <> 'DELETE' then new.family end;
    who text := case when tg_op <> 'DELETE' then new.person else old.person end;
begin
    if was is distinct from is_now and was is not null then
        perform millrace.feed_drop(who, was);
        perform millrace.feed_forget(who, was);
        perform millrace.feed_say(array(
            select millrace.feed_change(at => millrace.now(), topic => 'quests', person => p.person, ref => was, change => 'left',
                       data => jsonb_strip_nulls(jsonb_build_object('family', was, 'person', case when tg_op <> 'DELETE' then who end)),
                       family => p.family, about => case when tg_op <> 'DELETE' then nullif(who, p.person) end)
              from (select who, null::text as family union all select m, was from millrace.feed_others(was, who) m) p(person, family)));
    end if;
    if is_now is not null then
        perform millrace.feed_say(array(
            select millrace.feed_change(at => millrace.now(), topic => 'quests', person => m.person, ref => is_now,
                       change => case when was is distinct from is_now then 'joined' else 'role' end,
                       data => jsonb_build_object('family', is_now, 'person', who, 'role', new.role), family => is_now, about => nullif(who, m.person))
              from millrace.family_member m where m.family = is_now));
    end if;
    return null;
end $$;

-- They come and stay together.
do $$
begin
    if exists (select from pg_trigger g where g.tgrelid = 'millrace.mood'::regclass and g.tgname = 'a_feed_has_its_new_mood') then
        return;
    end if;
    create trigger a_feed_has_its_new_mood after insert on millrace.mood for each row
        execute function millrace.feed_mood();
    create trigger a_feed_has_its_mood after update on millrace.mood for each row
        when (old.deleted_at is null and new.deleted_at is not null)
        execute function millrace.feed_mood();
    create trigger a_feed_has_its_new_hobby after insert on millrace.hobby for each row
        execute function millrace.feed_hobby();
    create trigger a_feed_has_its_hobby after update on millrace.hobby for each row
        when (new.fact <> old.fact)
        execute function millrace.feed_hobby();
    create trigger a_feed_has_its_new_hobby_share after insert on millrace.hobby_share for each row
        execute function millrace.feed_hobby_share();
    create trigger a_feed_has_its_hobby_share after update on millrace.hobby_share for each row
        when (new.fact <> old.fact)
        execute function millrace.feed_hobby_share();
    create trigger a_feed_has_its_hobby_view after insert on millrace.hobby_view for each row
        execute function millrace.feed_hobby_view();
    create trigger a_feed_has_its_new_card after insert on millrace.card for each row
        when (new.family is not null)
        execute function millrace.feed_card();
    create trigger a_feed_has_its_card after update on millrace.card for each row
        when (new.family is not null and new.family is distinct from old.family)
        execute function millrace.feed_card();
    create trigger a_feed_has_its_card_reply after insert on millrace.card_reply for each row
        execute function millrace.feed_card_reply();
    create trigger a_feed_has_its_new_quest after insert on millrace.quest_completion for each row
        execute function millrace.feed_quest();
    create trigger a_feed_has_its_quest after update on millrace.quest_completion for each row
        when (new.person = old.person and (new.turn <> old.turn or new.undone_at is distinct from old.undone_at))
        execute function millrace.feed_quest();
    create trigger a_feed_has_its_points after insert on millrace.points_ledger referencing new table as news for each statement
        execute function millrace.feed_points();
    create trigger a_feed_has_its_new_member after insert on millrace.family_member for each row
        when (new.family is not null)
        execute function millrace.feed_member();
    create trigger a_feed_has_its_member after update on millrace.family_member for each row
        when (new.family is distinct from old.family or new.role is distinct from old.role)
        execute function millrace.feed_member();
    create trigger a_feed_has_its_last_member after delete on millrace.family_member for each row
        when (old.family is not null)
        execute function millrace.feed_member();
end $$;
