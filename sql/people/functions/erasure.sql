-- A person who wants to be forgotten.

-- For the person itself, or for a back end; a back end that names an actor acts as that person. No parent can erase anybody. Every room that keeps a
-- person's data has a hook that returns how many rows it handled. They are called in their order, and a person is erased wholly or not at all.
create or replace function millrace.person_erase(person text, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.actor_of(person_erase.actor, caller => person_erase.caller);
    one record;
    n bigint;
    answer jsonb := '{}';
    said text;
    hint text;
begin
    perform millrace.valid_name(person_erase.person, 'person');
    if me <> person_erase.person then
        perform millrace.refuse('only that person may do this', 'actor', 'Act as the person. A parent removes somebody from the family with family_leave.',
            '42501', 'permission');
    end if;
    for one in select * from millrace.hooks_of('erase') loop
        begin
            execute format('select %s($1)', one.call) into n using person_erase.person;
        exception when others then
            get stacked diagnostics said = pg_exception_detail, hint = pg_exception_hint;
            raise exception using errcode = sqlstate, message = format('nothing of this person was erased, because %s failed: %s', one.function, sqlerrm),
                detail = coalesce(said, ''), hint = coalesce(hint, '');
        end;
        answer := answer || jsonb_build_object(one.name, coalesce((answer ->> one.name)::bigint, 0) + n);
    end loop;
    return answer;
end $$;
select millrace.door_is('people', 'person_erase', 'client, worker', 'actor person', 'Erases everything stored about a person.',
    who_may => array['erase them: itself, back end, staff']);

-- Joins in person_erase, behind the quests, which lock the family.
create or replace function millrace.members_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    gone bigint;
    n bigint;
begin
    delete from millrace.family_invitation i where i.person = members_erase_person.person or i.invited_by = members_erase_person.person;
    get diagnostics gone = row_count;
    delete from millrace.family_member m where m.person = members_erase_person.person;
    get diagnostics n = row_count;
    return gone + n;
end $$;

create or replace function millrace.profile_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    gone bigint;
begin
    delete from millrace.notice_preference p where p.person = profile_erase_person.person;
    delete from millrace.profile p where p.person = profile_erase_person.person;
    get diagnostics gone = row_count;
    return gone;
end $$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.people_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'profile', '', to_jsonb(p) from millrace.profile p where p.person = people_export_person.person
    union all
    select 'preferences', '', to_jsonb(p) from millrace.notice_preference p where p.person = people_export_person.person
    union all
    select 'membership', '', to_jsonb(m) from millrace.family_member m where m.person = people_export_person.person and m.family is not null
    union all
    select 'invitation', i.family, to_jsonb(i) from millrace.family_invitation i where i.person = people_export_person.person
$$;

-- What is kept of a person, row by row, behind the `place` in `after`; for the person itself, or a back end, as with person_erase. Room by room in the
-- order of their hooks. A page ends early where it would be too large, so the last one is that without rows. Secrets, hashes and what only the machine
-- needs are left out; files are named, and are got by their own doors.
create or replace function millrace.person_export(
    person text, after text default null, page int default 500, actor text default null, caller millrace.caller_name default current_user
) returns table (place text, room text, thing text, data jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    me text := millrace.actor_of(person_export.actor, caller => person_export.caller);
    at_room text := split_part(person_export.after, '/', 1);
    at_key text := substr(person_export.after, length(at_room) + 2);
    one record;
    size bigint;
    rows int := 0;
    taken bigint := 0;
begin
    perform millrace.valid_name(person_export.person, 'person');
    perform millrace.valid_page(person_export.page);
    if me <> person_export.person then
        perform millrace.refuse('only that person may do this', 'actor', 'Act as the person.', '42501', 'permission');
    end if;
    if at_room is not null and not exists (select from millrace.hooks_of('export') h where h.name = at_room) then
        perform millrace.refuse('after is not a position of an export', 'after', 'Give the place of the previous page''s last row.');
    end if;
    if person_export.after is null then
        perform millrace.audited('person.export', person_export.person, null, caller => person_export.caller);
    end if;
    for one in select h.* from millrace.hooks_of('export') with ordinality h(function, call, name, fails, n)
                where at_room is null or h.n >= (select min(x.n) from millrace.hooks_of('export') with ordinality x(function, call, name, fails, n) where x.name = at_room)
                order by h.n
    loop
        for place, room, thing, data in execute format(
            'select concat_ws(''/'', $1, k.key), $1, x.thing, x.data from %s($2) x cross join lateral (select concat_ws(''/'', x.thing, coalesce(x.id, '''')) as key) k
              where $3 is null or k.key > $3 collate "C" order by k.key collate "C" limit $4', one.call)
            using one.name, person_export.person, case when one.name = at_room then at_key end, person_export.page - rows
        loop
            size := octet_length(row(place, room, thing, data)::text);
            if not millrace.page_takes('person_export', taken, size) then
                return;
            end if;
            taken := taken + size;
            rows := rows + 1;
            return next;
        end loop;
        exit when rows >= person_export.page;
    end loop;
end $$;
select millrace.door_is('people', 'person_export', 'client, worker', 'actor person', 'Everything stored about a person, row by row.', audited => true,
    who_may => array['read everything stored about them: itself, back end, staff']);
