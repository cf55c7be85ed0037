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
        perform millrace.refuse('only the person itself may do this', 'actor', 'Act as the person. A parent removes somebody from the family with family_leave.',
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
