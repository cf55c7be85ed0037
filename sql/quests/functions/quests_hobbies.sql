-- Hobbies, and the flash cards that their facts become.

create or replace function millrace.hobby_presets() returns setof text
language sql immutable security definer set search_path = pg_catalog, pg_temp as $$
    select unnest(array['Reading', 'Drawing', 'Painting', 'Photography', 'Cooking', 'Baking', 'Gardening', 'Hiking', 'Cycling', 'Swimming', 'Running',
        'Climbing', 'Yoga', 'Dancing', 'Singing', 'Guitar', 'Piano', 'Drums', 'Chess', 'Board games', 'Video games', 'Programming', 'Robotics',
        'Astronomy', 'Bird watching', 'Fishing', 'Camping', 'Football', 'Basketball', 'Tennis', 'Skateboarding', 'Skiing', 'Knitting', 'Sewing',
        'Pottery', 'Woodworking', 'Writing', 'Languages', 'Volunteering', 'Collecting'])
$$;
select millrace.door_is('quests', 'hobby_presets', 'client, worker', 'open', 'Names of hobbies to choose from.');

create or replace function millrace.hobby_text(value text, field text, most int) returns text
language plpgsql immutable as $$
declare
    tidy text := regexp_replace(trim(value), E'\\s+', ' ', 'g');
begin
    if tidy is null or length(tidy) not between 1 and most or tidy ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse(format('%s is missing, too long, or has control characters', field), field, format('Give 1 to %s characters.', most));
    end if;
    return tidy;
end $$;

-- A fact is shown to the family that it was noted in, and to no other. One that was noted in no family is shared by being noted again in one.
create or replace function millrace.card_put(the_hobby uuid, the_fact text, the_family text, t timestamptz) returns void
language plpgsql volatile as $$
declare
    usual uuid := md5(the_hobby || ':' || lower(the_fact))::uuid;
begin
    if the_family is null then
        insert into millrace.card (id, hobby, fact, at) values (usual, the_hobby, the_fact, t) on conflict do nothing;
        return;
    end if;
    insert into millrace.hobby_share as s (hobby, family, fact, at) values (the_hobby, the_family, the_fact, t)
        on conflict (hobby, family) do update set fact = excluded.fact where s.fact <> excluded.fact;
    if exists (select from millrace.card c where c.hobby = the_hobby and c.family = the_family and lower(c.fact) = lower(the_fact)) then
        return;
    end if;
    insert into millrace.card as c (id, hobby, fact, at, family) values (usual, the_hobby, the_fact, t, the_family)
        on conflict (id) do update set family = excluded.family where c.family is null;
    if not found then                                     -- another family has this fact on its card
        insert into millrace.card (id, hobby, fact, at, family)
        values (md5(the_hobby || ':' || lower(the_fact) || chr(31) || the_family)::uuid, the_hobby, the_fact, t, the_family) on conflict do nothing;
    end if;
end $$;

-- A person has each hobby once, whatever the case and spaces of its name; each new fact about it becomes a card.
create or replace function millrace.hobby_save(person text, name text, fact text, id uuid default null, actor text default null, caller millrace.caller_name default current_user) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz;
    f millrace.quest_family;
    the_id uuid := coalesce(hobby_save.id, gen_random_uuid());
    the_name text := millrace.hobby_text(hobby_save.name, 'name', millrace.most('hobby')::int);
    the_fact text := millrace.hobby_text(hobby_save.fact, 'fact', millrace.most('fact')::int);
    the_day date;
    old millrace.hobby;
begin
    perform millrace.acts_as_person(hobby_save.actor, hobby_save.person, caller => hobby_save.caller);
    f := millrace.quest_family_of(millrace.family_lock_or_own(hobby_save.person));
    t := millrace.now();
    the_day := millrace.quest_day(f, null, null, t);
    select * into old from millrace.hobby h where h.id = hobby_save.id;
    if found and (old.person, old.folded) is distinct from (hobby_save.person, lower(the_name)) then
        perform millrace.refuse(format('hobby %s is already saved with different content', hobby_save.id), 'id',
            'Repeating an id with the same content returns the first answer; use a new id for another hobby.', '23505', 'conflict');
    end if;
    if not found then
        select * into old from millrace.hobby h where h.person = hobby_save.person and h.folded = lower(the_name);
        if found and hobby_save.id is not null then
            perform millrace.refuse('this hobby is already saved under another id', 'id', format('It is %s.', old.id), '23505', 'conflict');
        end if;
    end if;
    if old.id is null then
        insert into millrace.hobby (id, person, family, name, folded, fact, day, at)
        values (the_id, hobby_save.person, f.family, the_name, lower(the_name), the_fact, the_day, t);
        perform millrace.points_book(hobby_save.person, 'hobby:' || lower(the_name), r.hobby, 'hobby', the_day) from millrace.quest_rule r;
    else
        the_id := old.id;
        update millrace.hobby h set fact = the_fact where h.id = old.id and h.fact <> the_fact;
    end if;
    perform millrace.card_put(the_id, the_fact, f.family, t);
    if f.family is not null then
        perform millrace.quest_do_if(f, hobby_save.person, the_day, 'share_hobby', t, t);
    end if;
    return the_id;
end $$;
select millrace.door_is('quests', 'hobby_save', 'client, worker', 'actor person', 'Saves a hobby and a fact about it.',
    who_may => array['save a hobby for them: itself, back end, staff']);

-- Newest first, after the id in `after`; with who of the family has seen each. Without a family: all that the actor has saved itself.
create or replace function millrace.hobbies(family text, after text default null, page int default 50, actor text default null, caller millrace.caller_name default current_user)
returns table (id uuid, person text, name text, fact text, at timestamptz, seen_by text[])
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text;
    last_id uuid := millrace.after_id(hobbies.after);
    last_at timestamptz;
    size bigint;
    taken bigint := 0;
begin
    perform millrace.valid_page(hobbies.page);
    if hobbies.family is null then
        me := millrace.acting_person(hobbies.actor, caller => hobbies.caller);
        select h.at into last_at from millrace.hobby h where h.id = last_id and h.person = me;
    else
        perform millrace.family_actor(hobbies.actor, hobbies.family, caller => hobbies.caller);
        select s.at into last_at from millrace.hobby_share s where s.hobby = last_id and s.family = hobbies.family;
    end if;
    if last_id is not null and last_at is null then
        perform millrace.refuse('there is no such hobby', 'after', null, 'P0002', 'not_found');
    end if;
    if me is not null then
        for id, person, name, fact, at, seen_by in
            select h.id, h.person, h.name, h.fact, h.at, array(select v.person from millrace.hobby_view v where v.hobby = h.id order by v.at, v.person)
              from millrace.hobby h
             where h.person = me and (last_id is null or (h.at, h.id) < (last_at, last_id))
             order by h.at desc, h.id desc limit hobbies.page
        loop
            size := octet_length(row(id, person, name, fact, at, seen_by)::text);
            exit when not millrace.page_takes('hobbies', taken, size);
            taken := taken + size;
            return next;
        end loop;
        return;
    end if;
    for id, person, name, fact, at, seen_by in
        select h.id, h.person, h.name, s.fact, s.at,
               array(select v.person from millrace.hobby_view v join millrace.family_member m on m.person = v.person
                      where v.hobby = h.id and m.family = hobbies.family order by v.at, v.person)
          from millrace.hobby_share s join millrace.hobby h on h.id = s.hobby
         where s.family = hobbies.family and (last_id is null or (s.at, s.hobby) < (last_at, last_id))
         order by s.at desc, s.hobby desc limit hobbies.page
    loop
        size := octet_length(row(id, person, name, fact, at, seen_by)::text);
        exit when not millrace.page_takes('hobbies', taken, size);
        taken := taken + size;
        return next;
    end loop;
end $$;
select millrace.door_is('quests', 'hobbies', 'client, worker', 'actor member', 'Hobbies of the person or the family.',
    who_may => array['see the family''s hobbies: itself, teen, parent, back end, staff']);

-- True the first time. One's own hobby is not news.
create or replace function millrace.hobby_seen(hobby uuid, person text, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    f millrace.quest_family;
    h millrace.hobby;
    the_day date;
begin
    perform millrace.acts_as_person(hobby_seen.actor, hobby_seen.person, caller => hobby_seen.caller);
    f := millrace.quest_family_of(millrace.family_lock_of(hobby_seen.person));
    select x.* into h from millrace.hobby x join millrace.hobby_share s on s.hobby = x.id and s.family = f.family where x.id = hobby_seen.hobby;
    if not found then
        perform millrace.refuse(format('there is no hobby %s in this family', hobby_seen.hobby), 'hobby', null, 'P0002', 'not_found');
    end if;
    if h.person = hobby_seen.person then
        return false;
    end if;
    the_day := millrace.quest_day(f, null, null, millrace.now());
    insert into millrace.hobby_view (hobby, person, day, at) values (h.id, hobby_seen.person, the_day, millrace.now()) on conflict do nothing;
    if not found then
        return false;
    end if;
    perform millrace.points_book(hobby_seen.person, 'seen:' || h.id, r.seen, 'hobby_seen', the_day) from millrace.quest_rule r;
    return true;
end $$;
select millrace.door_is('quests', 'hobby_seen', 'client, worker', 'actor person',
    'Marks somebody else''s hobby as seen.');

-- The quiz: the answers are the names of the hobbies. Cards that the actor has answered show the answer.
create or replace function millrace.cards(family text, after text default null, page int default 50, actor text default null, caller millrace.caller_name default current_user)
returns table (id uuid, person text, fact text, at timestamptz, answered boolean, question text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.family_actor(cards.actor, cards.family, caller => cards.caller);
    size bigint;
    taken bigint := 0;
begin
    perform millrace.valid_page(cards.page);
    for id, person, fact, at, answered, question in
        select c.id, h.person, c.fact, c.at, r.card is not null, c.question
          from millrace.card c
          join millrace.hobby h on h.id = c.hobby
          left join millrace.card_reply r on r.card = c.id and r.person = me
         where c.family = cards.family and (cards.after is null or c.id > millrace.after_id(cards.after))
         order by c.id limit cards.page
    loop
        size := octet_length(row(id, person, fact, at, answered, question)::text);
        exit when not millrace.page_takes('cards', taken, size);
        taken := taken + size;
        return next;
    end loop;
end $$;
select millrace.door_is('quests', 'cards', 'client, worker', 'actor member', 'The cards of the family''s quiz.',
    who_may => array['see the family''s cards: itself, teen, parent, back end, staff']);

-- Right is the name of the hobby, in any case. Points for an answer, right or wrong, and for the first one only.
create or replace function millrace.card_answer(card uuid, person text, answer text, at timestamptz default null, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz;
    f millrace.quest_family;
    h millrace.hobby;
    the_answer text := millrace.hobby_text(card_answer.answer, 'answer', millrace.most('answer')::int);
    the_day date;
    is_right boolean;
    awarded int := 0;
begin
    perform millrace.acts_as_person(card_answer.actor, card_answer.person, caller => card_answer.caller);
    f := millrace.quest_family_of(millrace.family_lock_of(card_answer.person));
    t := millrace.now();
    select x.* into h from millrace.card c join millrace.hobby x on x.id = c.hobby where c.id = card_answer.card and c.family = f.family;
    if not found then
        perform millrace.refuse(format('there is no card %s in this family', card_answer.card), 'card', null, 'P0002', 'not_found');
    end if;
    if h.person = card_answer.person then
        perform millrace.refuse('a person cannot answer their own card', 'card', 'The other members answer it.', '42501', 'permission');
    end if;
    the_day := millrace.quest_day(f, null, null, t);
    is_right := lower(the_answer) = h.folded;
    insert into millrace.card_reply (card, person, answer, is_right, day, at)
    values (card_answer.card, card_answer.person, the_answer, is_right, the_day, coalesce(millrace.happened(card_answer.at, t), t))
        on conflict do nothing;
    if found then
        select millrace.points_book(card_answer.person, 'card:' || card_answer.card, r.card, 'card', the_day) into awarded from millrace.quest_rule r;
    else
        select r.is_right into strict is_right from millrace.card_reply r where r.card = card_answer.card and r.person = card_answer.person;
    end if;
    return jsonb_build_object('right', is_right, 'awarded', awarded, 'total', millrace.points_total(card_answer.person), 'name', h.name);
end $$;
select millrace.door_is('quests', 'card_answer', 'client, worker', 'actor person',
    'Answers a card of the family''s quiz.');
