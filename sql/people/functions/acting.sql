-- Who acts for whom: a person for itself, a parent for its family.

-- The person that acts: the claims', or the one that a back end names. Null when a back end names none.
create or replace function millrace.actor_of(actor text, caller name) returns text
language plpgsql stable as $$
declare
    sub text := millrace.subject(caller);
begin
    if length(actor) not between 1 and 128 or actor ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the actor is too long, or has control characters', 'actor', 'Give 1 to 128 characters.');
    end if;
    if actor <> sub then
        perform millrace.refuse('the actor is not the subject of the claims', 'actor', 'Leave it out: it is taken from the claims.', '42501', 'permission');
    end if;
    return coalesce(sub, actor);
end $$;

-- The account that a family has: no tenant may have such a name.
create or replace function millrace.family_account(family text) returns text
language sql immutable parallel safe
return 'family:' || family;

-- The acting person. There must be one: a back end names it, and claims name it by themselves.
create or replace function millrace.acting_person(actor text, caller name) returns text
language plpgsql stable as $$
declare
    me text := millrace.actor_of(actor, acting_person.caller);
begin
    if me is null then
        perform millrace.refuse('the actor is missing', 'actor', 'A back end that sets no request.jwt.claims gives the actor.');
    end if;
    return me;
end $$;

create or replace function millrace.acts_as_person(actor text, person text, caller name) returns void
language plpgsql stable as $$
begin
    perform millrace.valid_name(person, 'person');
    if millrace.acting_person(actor, caller => acts_as_person.caller) <> person then
        perform millrace.refuse('only that person may do this', 'actor', 'Act as the person.', '42501', 'permission');
    end if;
end $$;

-- Since when the actor sees what this person does: always, for itself; for a parent of its family, since the person has been in it.
create or replace function millrace.person_sees_since(actor text, person text, caller name) returns timestamptz
language plpgsql stable as $$
declare
    me text := millrace.acting_person(actor, caller => person_sees_since.caller);
    since timestamptz;
begin
    perform millrace.valid_name(person, 'person');
    if me = person then
        return '-infinity';
    end if;
    select b.joined_at into since from millrace.family_member a join millrace.family_member b on a.family = b.family
     where a.person = me and a.role = 'parent' and b.person = person_sees_since.person;
    if not found then
        perform millrace.refuse('only that person or a parent of the family may see this', 'actor', 'Act as one of them.', '42501', 'permission');
    end if;
    return coalesce(since, '-infinity');
end $$;
