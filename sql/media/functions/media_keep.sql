-- Files of a person's own, such as a recording: kept as they are, by no job.

-- Stores an uploaded file. Returns the id, given or new: media_link leads to its `file`, chat_send takes its storage_url, media_delete ends it. With
-- an id that is known and the same content it answers as the first time. Nobody looks into it: its type is what the caller says.
create or replace function millrace.media_keep(
    storage_url text, mime_type text, name text default null, tenant text default null, id uuid default null, actor text default null,
    caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.document_actor(media_keep.actor, caller => media_keep.caller);
    the_tenant text := media_keep.tenant;
    the_id uuid := coalesce(media_keep.id, gen_random_uuid());
    the_type text := lower(media_keep.mime_type);
    the_digest bytea;
    the_blob bytea;
    the_size bigint;
    old record;
    m millrace.media;
begin
    if millrace.is_no_tenant(the_tenant) or the_tenant ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the tenant is empty, too long, or has control characters', 'tenant', 'Give 1 to 128 characters, or null.');
    end if;
    the_tenant := millrace.tenant_of(the_tenant, media_keep.caller);
    if media_keep.storage_url is null or media_keep.storage_url !~ '^(blob:[0-9a-f]{64}|upload:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$' then
        perform millrace.refuse('the storage_url has an unknown form', 'storage_url', 'Give blob:<sha256>, or what document_upload or chat_upload returned.');
    end if;
    if the_type is null or the_type !~ '^[a-z0-9!#$&^_.+-]{1,80}/[a-z0-9!#$&^_.+-]{1,80}$' then
        perform millrace.refuse('the mime_type is missing or malformed', 'mime_type', 'Give for example audio/mp4.');
    end if;
    if length(media_keep.name) not between 1 and 200 or media_keep.name ~ E'[\\u0001-\\u001f\\u007f-\\u009f/\\\\]' then
        perform millrace.refuse('the name is empty, too long, or has control characters or slashes', 'name', 'Give 1 to 200 characters, or null.');
    end if;
    the_digest := sha256(convert_to(jsonb_build_array(media_keep.storage_url, the_type, media_keep.name, millrace.tenant_digested(the_tenant), me)::text, 'UTF8'));
    select x.digest, x.caller, x.tenant into old from millrace.media x where x.id = the_id;
    if found then
        if old.digest is distinct from the_digest or not millrace.may_see(old.caller, old.tenant, caller => media_keep.caller) then
            perform millrace.refuse(format('media %s already exist with different content', the_id), 'id',
                'Repeating an id with the same content returns the first answer; use a new id for other media.', '23505', 'conflict');
        end if;
        return the_id;
    end if;
    the_blob := case when media_keep.storage_url like 'upload:%' then millrace.upload_blob(substr(media_keep.storage_url, 8)::uuid) else decode(substr(media_keep.storage_url, 6), 'hex') end;
    select b.size into the_size from millrace.blob b
     where b.id = the_blob
       and (media_keep.storage_url like 'upload:%' or millrace.blob_may_use(the_blob, media_keep.caller, millrace.is_staff(media_keep.caller), millrace.caller_tenant(media_keep.caller)))
       for key share;
    if not found then
        perform millrace.refuse('there is nothing under this storage_url', 'storage_url', 'Upload the file first, for example to the url of document_upload.', 'P0002', 'not_found');
    end if;
    insert into millrace.media (id, what, digest, tenant, owner, caller, status, mime_type, created_at, ended_at)
    values (the_id, 'file', the_digest, the_tenant, me, media_keep.caller, 'done', the_type, millrace.now(), millrace.now())
        on conflict do nothing returning * into m;
    if m.id is null then
        raise exception using errcode = '40001', message = 'media with this id were asked for by a concurrent transaction';
    end if;
    if not millrace.quota_use(the_tenant, 'bytes', the_size) then
        perform millrace.refuse_quota('the tenant has used up its storage for this period', 'tenant', 'See the view quotas for when the next one begins.',
            q.allowed, q.used, millrace.quota_reset(q.period, q.since)) from millrace.quota q where q.tenant = the_tenant and q.name = 'bytes';
    end if;
    perform millrace.blob_keep(the_blob, 'media:' || the_id || ':file');
    perform millrace.blob_allow(the_blob, media_keep.caller, the_tenant);
    if media_keep.storage_url like 'upload:%' then
        perform millrace.blob_release(the_blob, media_keep.storage_url);
    end if;
    insert into millrace.media_file (media, kind, blob, size, mime_type, name) values (the_id, 'file', the_blob, the_size, the_type, media_keep.name);
    perform millrace.media_told(m, 'done', jsonb_build_object('files', millrace.media_files(the_id)));
    return the_id;
end $$;
select millrace.door_is('media', 'media_keep', 'client, worker', 'actor person', 'Stores an uploaded file. Returns the id.');

-- What a browser may show of a file whose type its person has said: the rest is saved.
create or replace function millrace.media_shown_as(the_type text) returns text
language sql immutable parallel safe as $$
    select case when the_type in ('image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/heic', 'application/pdf') or the_type ~ '^(audio|video)/' then the_type
                else 'application/octet-stream' end
$$;

-- The kinds of this room's jobs, which name its rows.
create or replace function millrace.media_kinds() returns setof text
language sql immutable parallel safe as 'select ''media.%''';
