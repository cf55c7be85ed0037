-- Hooks: the core calls what the rooms above it have registered, and names none of them. Each room says in a file of its own, <room>_hooks.sql, which
-- of its functions belong to which event; only the owner of the schema can, because what is called here runs with the owner's rights. A function is
-- named without its schema, and is looked for in this one alone.
--
--   event      called with            answers                                        called by
--   expire     ()                     anything                                       maintain, once a minute
--   knows      (me text, other text)  whether me may see the name of other           person_knows
--   reader     (about jsonb)          a person's name, language and zone             approval_page, with {"person"}
--   notice     (about jsonb)          the state of a notice                          approval_people, with {"notice"}
--   lanes      (cap int)              rows like those of room_lanes                  room_lanes
--   served     ()                     rows like those of rooms                       rooms
--   kinds      ()                     patterns of LIKE, for kinds of the room's jobs rooms
--   rows       ()                     such patterns, for jobs that name its rows     millrace move
--   state      ()                     the room's part of status, an object           room_states
--   export     (person text)          thing, id and data of the person's rows        person_export
--   measure    (t timestamptz)        name, labels, value                            measure_rooms
--   why_queue  (about jsonb)          as why; {}: it is mine, and nothing waits      why_queue, with {"queue"}
--   why_later  (about jsonb)          as why                                         why, with {"job", "kind", "staff"}
--   why_ended  (about jsonb)          as why                                         why, with {"job", "kind", "staff", "depth"}
--   why_failed (about jsonb)          as why, what its failures have in common       why, with {"job", "kind", "error", "said"}
--   why_running (about jsonb)         {"trouble", "crashes"} of a run                why, with {"job"}
--
-- null: the hook has nothing to say, and the next is asked. These belong to what the caller does; where one fails, nothing of it is done:
--
--   erase          (person text)   how many rows it handled; rooms of one name are added up            person_erase
--   erase_address  (about jsonb)   how many rows it handled                                            mail_erase, with {"address"}
--   keeps          ()              names of arguments, with which jobs of the room keep theirs         jobs_erase_person
--   approval_tell  (about jsonb)   1; a person hears of a question: {"ref", "person", "stage", …}      approval_tell
--   answered       (about jsonb)   anything; a question to a language model has ended: its row         ai_put_to_use
--   quota_said     (about jsonb)   anything; an admin has said a quota: {"tenant", "allowed"}          quota_set
--   quota_warned   (about jsonb)   anything; a quota is nearly used up: {"tenant", "name", "share", …} quota_use
--   avatar         (about jsonb)   anything; a person sets a picture: {"person", "avatar", …}          person_profile
--   check          (about jsonb)   how many it ended of what lost its job; {"most"}                    documents_check
--
-- No claim and no end of a job calls a hook, but for what asks why.

-- All hooks of a room, as a list of {"event", "function", "position", "name"}; the name is the room's if there is none. What is not listed is gone.
create or replace function millrace.hooks_are(the_room text, hooks jsonb) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    missing text := (select h ->> 'function' from jsonb_array_elements(hooks) h
                      where not exists (select from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.proname = h ->> 'function') limit 1);
begin
    if missing is not null then
        raise exception 'the room % names the hook %, and there is no such function in the schema', the_room, missing;
    end if;
    delete from millrace.hook k where k.room = the_room and not exists (
        select from jsonb_array_elements(hooks) h where h ->> 'event' = k.event and h ->> 'function' = k.function);
    insert into millrace.hook as k (event, room, function, name, position)
    select h ->> 'event', the_room, h ->> 'function', coalesce(h ->> 'name', the_room), (h ->> 'position')::int from jsonb_array_elements(hooks) h
        on conflict (event, function) do update set room = excluded.room, name = excluded.name, position = excluded.position
            where (k.room, k.name, k.position) is distinct from (excluded.room, excluded.name, excluded.position);
    perform millrace.hooks_tidy();
end $$;

-- Forgets hooks whose function is gone, and failures of hooks that are gone.
create or replace function millrace.hooks_tidy() returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.hook k where not exists (select from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.proname = k.function);
    delete from millrace.hook_failure f where not exists (select from millrace.hook k where k.event = f.event and k.function = f.function);
end $$;

-- The hooks of an event, in order, as they are written in a statement; `fails`: it did the last time.
create or replace function millrace.hooks_of(the_event text) returns table (function text, call text, name text, fails boolean)
language sql stable as $$
    select k.function, format('millrace.%I', k.function), k.name,
           exists (select from millrace.hook_failure f where f.event = k.event and f.function = k.function)
      from millrace.hook k where k.event = the_event order by k.position, k.function
$$;

-- Notes how a call went, unless the transaction only reads. A row that another session has is left to it, so nobody waits here.
create or replace function millrace.hook_went(the_event text, the_function text, the_code text default null, the_sentence text default null) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
begin
    if current_setting('transaction_read_only')::boolean then
        return;
    end if;
    perform from millrace.hook_failure f where f.event = the_event and f.function = the_function for update skip locked;
    if found and the_code is null then
        delete from millrace.hook_failure f where f.event = the_event and f.function = the_function;
    elsif found then
        update millrace.hook_failure f set at = t, times = f.times + 1, code = the_code, sentence = left(the_sentence, 300)
         where f.event = the_event and f.function = the_function;
    elsif the_code is not null then
        insert into millrace.hook_failure (event, function, since, at, times, code, sentence)
        values (the_event, the_function, t, t, 1, the_code, left(the_sentence, 300)) on conflict do nothing;
    end if;
end $$;

-- Calls each hook of an event in a subtransaction of its own: one that fails is noted and stops no other.
create or replace function millrace.hooks_call(the_event text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    one record;
begin
    for one in select * from millrace.hooks_of(the_event) loop
        begin
            execute format('select %s()', one.call);
            if one.fails then
                perform millrace.hook_went(the_event, one.function);
            end if;
        exception when others then
            perform millrace.hook_went(the_event, one.function, sqlstate, sqlerrm);
        end;
    end loop;
end $$;

-- The first answer that is not null.
create or replace function millrace.hooks_ask(the_event text, about jsonb) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    one record;
    answer jsonb;
begin
    for one in select * from millrace.hooks_of(the_event) loop
        begin
            execute format('select %s($1)', one.call) into answer using about;
            if one.fails then
                perform millrace.hook_went(the_event, one.function);
            end if;
        exception when others then
            answer := null;
            perform millrace.hook_went(the_event, one.function, sqlstate, sqlerrm);
        end;
        if answer is not null then
            return answer;
        end if;
    end loop;
    return null;
end $$;

-- What the hooks list, each of them texts; `must`: an error of one is the caller's.
create or replace function millrace.hooks_list(the_event text, must boolean default false) returns table (name text, said text)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    one record;
begin
    for one in select * from millrace.hooks_of(the_event) loop
        begin
            return query execute format('select $1, x from %s() x', one.call) using one.name;
            if one.fails then
                perform millrace.hook_went(the_event, one.function);
            end if;
        exception when others then
            if must then raise; end if;
            perform millrace.hook_went(the_event, one.function, sqlstate, sqlerrm);
        end;
    end loop;
end $$;

-- For what must happen in the caller's transaction or not at all: what the hooks answer is added up, and an error of one is the caller's.
create or replace function millrace.hooks_must(the_event text, about jsonb) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    one record;
    n bigint;
    done bigint := 0;
begin
    for one in select * from millrace.hooks_of(the_event) loop
        execute format('select %s($1)', one.call) into n using about;
        done := done + coalesce(n, 0);
    end loop;
    return done;
end $$;

-- Hooks that fail now. What a lock or a collision stopped is named from its fifth failure in a row on.
create or replace function millrace.hook_troubles(most int default 50)
returns table (event text, room text, function text, since timestamptz, times int, sentence text)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    select f.event, k.room, f.function, f.since, f.times, f.sentence
      from millrace.hook_failure f join millrace.hook k on k.event = f.event and k.function = f.function
     where f.times >= case when f.code in ('40001', '40P01', '55P03') then 5 else 1 end
     order by f.since, f.event, f.function limit most
$$;
select millrace.door_is('base', 'hook_troubles', 'worker, viewer', 'staff');
