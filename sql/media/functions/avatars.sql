-- Pictures of profiles that are kept here. A profile names one as `blob:` and its hash; it is kept for as long as the profile names it.

create or replace function millrace.avatar_blob(avatar text) returns bytea
language sql immutable as $$
    select case when avatar_blob.avatar ~ '^blob:[0-9a-f]{64}$' then decode(substr(avatar_blob.avatar, 6), 'hex') end
$$;

-- A hash alone opens nothing: a person names a picture that was given to it, as by an upload. Called by person_profile, before it writes.
create or replace function millrace.avatar_keep(about jsonb) returns bigint
language plpgsql volatile as $$
declare
    the_owner text := 'avatar:' || (about ->> 'person');
    the_caller name := about ->> 'caller';
    the_blob bytea := millrace.avatar_blob(about ->> 'avatar');
    was bytea := millrace.avatar_blob(about ->> 'was');
begin
    if the_blob is not null and not millrace.blob_link_holds(the_blob, the_owner) then
        perform from millrace.blob b
         where b.id = the_blob and millrace.blob_may_use(the_blob, the_caller, millrace.is_staff(the_caller), millrace.caller_tenant(the_caller))
           for key share;
        if not found then
            perform millrace.refuse('there is no such picture', 'avatar', 'Upload it first, or make one with media_process, and give its storage_url.', 'P0002', 'not_found');
        end if;
        perform millrace.blob_keep(the_blob, the_owner);
    end if;
    if was is distinct from the_blob and was is not null then
        perform millrace.blob_release(was, the_owner);
    end if;
    return 1;
end $$;

-- For the person, its family, and contacts who have agreed: those who see its name. The link ends when the picture changes. An avatar that is an
-- address elsewhere is given as it is.
create or replace function millrace.person_avatar_link(
    person text, valid interval default '1 hour', actor text default null, caller millrace.caller_name default current_user
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.actor_of(person_avatar_link.actor, caller => person_avatar_link.caller);
    the_avatar text;
    the_blob bytea;
    the_type text;
begin
    perform millrace.valid_name(person_avatar_link.person, 'person');
    if person_avatar_link.valid is null or person_avatar_link.valid not between interval '1 minute' and interval '1 day' then
        perform millrace.refuse('valid is out of range', 'valid', 'Give 1 minute to 1 day.');
    end if;
    if me <> person_avatar_link.person and not millrace.person_knows(me, person_avatar_link.person) then
        perform millrace.refuse('only that person, their family and their contacts may see this', 'actor', 'Act as one of them.', '42501', 'permission');
    end if;
    the_avatar := (select p.avatar from millrace.profile p where p.person = person_avatar_link.person);
    if the_avatar like 'https://%' then
        return the_avatar;
    end if;
    the_blob := millrace.avatar_blob(the_avatar);
    if the_blob is null or not millrace.blob_link_holds(the_blob, 'avatar:' || person_avatar_link.person) then
        perform millrace.refuse('this person has no picture here', 'person', 'person_profile sets one.', 'P0002', 'not_found');
    end if;
    the_type := millrace.picture_type(millrace.blob_piece(the_blob, 0));
    return millrace.blob_link(the_blob, coalesce(the_type, 'application/octet-stream'), 'avatar', person_avatar_link.valid, 'avatar:' || person_avatar_link.person);
end $$;
select millrace.door_is('media', 'person_avatar_link', 'client, worker', 'actor person',
    'A link to the picture of a person.',
    who_may => array['get a link to their picture: itself, teen, parent, back end, staff']);

-- What a file says of itself in its first bytes. null: no picture that apps show, or its bytes lie elsewhere.
create or replace function millrace.picture_type(bytes bytea) returns text
language sql immutable as $$
    select case when substr(bytes, 1, 3) = E'\\xffd8ff' then 'image/jpeg'
                when substr(bytes, 1, 8) = E'\\x89504e470d0a1a0a' then 'image/png'
                when substr(bytes, 1, 4) = E'\\x47494638' then 'image/gif'
                when substr(bytes, 1, 4) = E'\\x52494646' and substr(bytes, 9, 4) = E'\\x57454250' then 'image/webp'
                when substr(bytes, 5, 8) in (E'\\x6674797068656963', E'\\x6674797068656978', E'\\x667479706d696631') then 'image/heic' end
$$;
