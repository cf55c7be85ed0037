-- Doors: the functions and views of this schema that roles may use. Each says so on a line beside it, which every migrate runs again; what is not said
-- again is closed. From this one table come the grants (see grants.sql), the gateway's list of functions and its description, and the pages that
-- deploy/door-pages makes. Only the owner of the schema can write here.
--
--   roles      client, worker, admin, viewer, operator, gateway. An admin may use what a worker may, and an operator what a viewer may, without being named.
--   rule       how the function knows whose row it is, and what a call names, where it names one thing:
--                open              it need not know: each caller gets the same
--                granted [of]      an admin has granted it to the caller's role; of a kind with grant_enqueue, of a type with grant_publish
--                tenant [of]       by the role that handed the row in, and the tenant of its claims
--                actor [of]        by the person who acts: see actor_of
--                backend           it is for calls without claims, of the app itself
--                staff             it need not know: who may use it may see every row
--   sentence   what it does. A client's door needs one, for the gateway's description.
--   audited    it writes down what operators and admins do with it: see audit.sql
--   for_apps   whether apps may call it through the gateway; as a rule, when clients may
--   words      of arguments, and answers of columns of the result: the words that it is one of. Those of answers are whole, because clients made from
--              the description may rely on them.
--   who_may    acts upon a person, and by whom, for the page "Who may speak for whom": 'see their points: itself, parent, back end, staff'

-- The roles, and whose doors each has beside its own.
create or replace function millrace.door_roles() returns table (role text, includes text)
language sql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
    values ('client', null), ('worker', null), ('admin', 'worker'), ('viewer', null), ('operator', 'viewer'), ('gateway', null)
$$;

-- Takes a door from roles. Rights that others were given by hand stay.
create or replace function millrace.door_close(the_name text, of_view boolean, the_roles text[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    one record;
begin
    for one in
        select o.what, r.role
          from (select format('select on millrace.%I', c.relname) as what from pg_class c
                 where of_view and c.relnamespace = 'millrace'::regnamespace and c.relname = the_name
                union all
                select format('execute on function %s', p.oid::regprocedure) from pg_proc p
                 where not of_view and p.pronamespace = 'millrace'::regnamespace and p.proname = the_name) o
         cross join (select millrace.role_name(x) as role from unnest(the_roles) x) r
         where to_regrole(quote_ident(r.role)) is not null
    loop
        execute format('revoke %s from %I', one.what, one.role);
    end loop;
end $$;

create or replace function millrace.door_is(the_room text, the_name text, the_roles text, the_rule text, the_sentence text default null, audited boolean default false,
    for_apps boolean default null, words jsonb default '{}', answers jsonb default '{}', who_may text[] default '{}', of_view boolean default false)
returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    named text[] := string_to_array(the_roles, ', ');
    opened text[] := array(select r.role from millrace.door_roles() r where r.role = any (named) or r.includes = any (named));
    was text[];
begin
    if cardinality(named) is distinct from (select count(*)::int from millrace.door_roles() r where r.role = any (named)) or named = '{}' then
        raise exception 'the room % says that % may use %; the roles are %, separated by a comma', the_room, the_roles, the_name,
            (select string_agg(r.role, ', ') from millrace.door_roles() r);
    end if;
    select d.roles into was from millrace.door d where d.name = the_name and d.is_view = of_view;
    if not was <@ opened then
        perform millrace.door_close(the_name, of_view, array(select r from unnest(was) r where r <> all (opened)));
    end if;
    insert into millrace.door (name, is_view, room, roles, rule, about, sentence, audited, for_apps, words, answers, who_may)
    values (the_name, of_view, the_room, opened, split_part(the_rule, ' ', 1), nullif(split_part(the_rule, ' ', 2), ''), the_sentence, door_is.audited,
            coalesce(door_is.for_apps, 'client' = any (opened)), door_is.words, door_is.answers, door_is.who_may)
        on conflict (name, is_view) do update
            set room = excluded.room, roles = excluded.roles, rule = excluded.rule, about = excluded.about, sentence = excluded.sentence, audited = excluded.audited,
                for_apps = excluded.for_apps, words = excluded.words, answers = excluded.answers, who_may = excluded.who_may;
end $$;

-- The same for a view, or a table that roles may read.
create or replace function millrace.view_is(the_room text, the_name text, the_roles text) returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select millrace.door_is(the_room, the_name, the_roles, 'staff', of_view => true)
$$;

-- Closes the doors that were not said again: their function is gone, or was made again without a line, or the view's room has spoken without it. Then a
-- line without its function is an error of the room's.
create or replace function millrace.doors_tidy() returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    this constant xid := pg_current_xact_id()::xid;
    one record;
begin
    for one in
        delete from millrace.door d
         where d.xmin <> this and case when d.is_view
            then to_regclass(format('millrace.%I', d.name)) is null or exists (select from millrace.door o where o.room = d.room and o.xmin = this)
            else not exists (select from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.proname = d.name and p.xmin <> this) end
        returning d.*
    loop
        perform millrace.door_close(one.name, one.is_view, one.roles);
    end loop;
    for one in
        select d.room, d.name, case when d.is_view then 'view' else 'function' end as what from millrace.door d
         where case when d.is_view then to_regclass(format('millrace.%I', d.name)) is null
            else not exists (select from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.proname = d.name) end
         order by d.room, d.name limit 1
    loop
        raise exception 'the room % says who may use the % %, and there is none in the schema', one.room, one.what, one.name;
    end loop;
end $$;
