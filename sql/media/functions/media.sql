-- Media as apps see them: files that a job makes of a picture or of a template, and files of a person's own. They stay until they are deleted, or their person is erased.

-- What is wrong with the options is said; nothing is returned.
create or replace function millrace.media_options(given jsonb) returns void
language plpgsql immutable as $$
declare
    example constant text := 'Such as {"thumbnail": {"width": 320, "height": 320}, "strip": true, "format": "jpeg"}.';
    unknown text;
begin
    if jsonb_typeof(given) is distinct from 'object' then
        perform millrace.refuse('options is not a JSON object', 'options', example);
    end if;
    if millrace.true_bytes(given) > millrace.most('options') then
        perform millrace.refuse(format('options take more than %s bytes', millrace.most('options')), 'options', null, '53400', 'too_large');
    end if;
    select k into unknown from jsonb_object_keys(given) k where k not in ('thumbnail', 'strip', 'format') limit 1;
    if found then
        perform millrace.refuse(format('options.%s is unknown', left(unknown, 60)), 'options', 'Allowed: thumbnail, strip and format.');
    end if;
    if given ? 'strip' and jsonb_typeof(given -> 'strip') <> 'boolean' then
        perform millrace.refuse('options.strip is neither true nor false', 'options.strip', example);
    end if;
    if given ? 'format' and given -> 'format' not in ('"jpeg"', '"png"') then
        perform millrace.refuse('options.format is unknown', 'options.format', 'Allowed: jpeg and png.');
    end if;
    if given ? 'thumbnail' then
        if jsonb_typeof(given -> 'thumbnail') <> 'object' or not given -> 'thumbnail' ?| array['width', 'height']
            or exists (select from jsonb_object_keys(given -> 'thumbnail') k where k not in ('width', 'height'))
        then
            perform millrace.refuse('options.thumbnail has neither a width nor a height', 'options.thumbnail', example);
        end if;
        if exists (select from jsonb_each(given -> 'thumbnail') e
                    where case when jsonb_typeof(e.value) = 'number' then e.value::numeric not between 1 and millrace.most('thumbnail') or e.value::numeric % 1 <> 0 else true end)
        then
            perform millrace.refuse(format('a side of options.thumbnail is not a whole number, or is more than %s', millrace.most('thumbnail')), 'options.thumbnail',
                format('Give 1 to %s pixels.', millrace.most('thumbnail')));
        end if;
    end if;
    if not given ? 'thumbnail' and given -> 'strip' is distinct from 'true' then
        perform millrace.refuse('options do not ask for anything', 'options', example);
    end if;
end $$;

-- Makes a thumbnail of a picture, or a copy without its metadata, or both: in the caller's transaction, a row and a job of the kind media.process. Returns the id,
-- given or new; `media` says how it stands. With an id that is known and the same content it answers as the first time.
create or replace function millrace.media_process(
    storage_url text, options jsonb, tenant text default null, id uuid default null, actor text default null, caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.document_actor(media_process.actor, caller => media_process.caller);
    the_tenant text := media_process.tenant;
    the_id uuid := coalesce(media_process.id, gen_random_uuid());
    the_digest bytea;
    the_blob bytea;
    old record;
begin
    perform millrace.media_options(media_process.options);
    if millrace.is_no_tenant(the_tenant) or the_tenant ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the tenant is empty, too long, or has control characters', 'tenant', 'Give 1 to 128 characters, or null.');
    end if;
    the_tenant := millrace.tenant_of(the_tenant, media_process.caller);
    if storage_url is null or storage_url !~ '^(blob:[0-9a-f]{64}|upload:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$' then
        perform millrace.refuse('the storage_url has an unknown form', 'storage_url', 'Give blob:<sha256>, or what document_upload or chat_upload returned.');
    end if;
    the_digest := sha256(convert_to(jsonb_build_array(storage_url, media_process.options, millrace.tenant_digested(the_tenant), me)::text, 'UTF8'));
    select m.digest, m.caller, m.tenant into old from millrace.media m where m.id = the_id;
    if not found then
        the_blob := case when storage_url like 'upload:%' then millrace.upload_blob(substr(storage_url, 8)::uuid) else decode(substr(storage_url, 6), 'hex') end;
        -- A hash alone opens nothing: for another's blob the answer is the same as for one that does not exist.
        perform from millrace.blob b
         where b.id = the_blob
           and (storage_url like 'upload:%' or millrace.blob_may_use(the_blob, media_process.caller, millrace.is_staff(media_process.caller), millrace.caller_tenant(media_process.caller)))
           for key share;
        if not found then
            perform millrace.refuse('there is nothing under this storage_url', 'storage_url', 'Upload the picture first, for example to the url of document_upload.', 'P0002', 'not_found');
        end if;
        if millrace.quota_left(the_tenant, 'cpu_seconds') <= 0 then
            perform millrace.refuse_quota('the tenant has used up its computing time for this period', 'tenant', 'See the view quotas for when the next one begins.',
                q.allowed, ceil(q.used), millrace.quota_reset(q.period, q.since)) from millrace.quota q where q.tenant = the_tenant and q.name = 'cpu_seconds';
        end if;
        insert into millrace.media (id, what, blob, wish, digest, tenant, owner, caller, status, created_at)
        values (the_id, 'picture', the_blob, media_process.options, the_digest, the_tenant, me, media_process.caller, 'waiting', millrace.now())
            on conflict do nothing;
        if found then
            perform millrace.blob_keep(the_blob, 'media:' || the_id);
            update millrace.media m
               set job = (millrace.enqueue_one('media.process', jsonb_build_object('media', the_id), 'media', 3, null, null, 'skip', null, the_tenant,
                       null, '{}', '{}', '{}', caller => media_process.caller)).id
             where m.id = the_id;
            return the_id;
        end if;
        select m.digest, m.caller, m.tenant into old from millrace.media m where m.id = the_id;
        if not found then
            raise exception using errcode = '40001', message = 'media with this id were asked for by a concurrent transaction';
        end if;
    end if;
    if old.digest is distinct from the_digest or not millrace.may_see(old.caller, old.tenant, caller => media_process.caller) then
        perform millrace.refuse(format('media %s already exist with different content', the_id), 'id',
            'Repeating an id with the same content returns the first answer; use a new id for other media.', '23505', 'conflict');
    end if;
    return the_id;
end $$;
select millrace.door_is('media', 'media_process', 'client, worker', 'actor person',
    'Makes a thumbnail of a picture, or a copy without its metadata. Returns the id.');

create or replace function millrace.media_sees(m millrace.media, me text, caller name) returns boolean
language sql stable as $$
    select (millrace.may_see(m.caller, m.tenant, caller => media_sees.caller) and (me is null or m.owner is null or m.owner = me))
        or millrace.is_handed_in_for(m.owner, m.caller, m.tenant, caller => media_sees.caller)
$$;

create or replace function millrace.media_files(the_id uuid) returns jsonb
language sql stable as $$
    select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('kind', f.kind, 'storage_url', 'blob:' || encode(f.blob, 'hex'), 'size', f.size,
               'mime_type', f.mime_type, 'width', f.width, 'height', f.height, 'name', f.name)) order by f.kind), '[]')
      from millrace.media_file f where f.media = the_id
$$;

-- How media stand. files: [{kind, storage_url, size, mime_type, width, height}], once they are done.
create or replace function millrace.media(id uuid, actor text default null, caller millrace.caller_name default current_user)
returns table (media uuid, what text, status text, reason text, sentence text, mime_type text, files jsonb, job bigint, created_at timestamptz, ended_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.document_actor(media.actor, caller => media.caller);
begin
    return query
        select m.id, m.what, m.status, m.reason, m.sentence, m.mime_type, millrace.media_files(m.id), m.job, m.created_at, m.ended_at
          from millrace.media m where m.id = media.id and millrace.media_sees(m, me, caller => media.caller);
    if not found then
        perform millrace.refuse('there are no such media', 'id', null, 'P0002', 'not_found');
    end if;
end $$;
select millrace.door_is('media', 'media', 'client, worker', 'tenant media',
    'The state of a thumbnail, a cleaned picture or a rendered file, and where its files are.',
    who_may => array['see the state of their media: itself, staff']);

-- A link to one of the files. Who has the link can read the file, so it expires by itself, and with the media.
create or replace function millrace.media_link(
    id uuid, kind text, valid interval default '1 hour', actor text default null, caller millrace.caller_name default current_user
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.document_actor(media_link.actor, caller => media_link.caller);
    m millrace.media;
    f millrace.media_file;
begin
    if media_link.valid is null or media_link.valid not between interval '1 minute' and interval '1 day' then
        perform millrace.refuse('valid is out of range', 'valid', 'Give 1 minute to 1 day.');
    end if;
    select x.* into m from millrace.media x where x.id = media_link.id and millrace.media_sees(x, me, caller => media_link.caller);
    if not found then
        perform millrace.refuse('there are no such media', 'id', null, 'P0002', 'not_found');
    end if;
    select x.* into f from millrace.media_file x where x.media = m.id and x.kind = media_link.kind;
    if not found then
        perform millrace.refuse('there is no file of this kind', 'kind', format('There are %s now.', coalesce((select string_agg(x.kind, ', ' order by x.kind)
            from millrace.media_file x where x.media = m.id), 'none')), '55000', 'conflict');
    end if;
    if m.what = 'file' then
        return millrace.blob_link(f.blob, millrace.media_shown_as(f.mime_type), coalesce(f.name, 'file'), media_link.valid, 'media:' || m.id || ':' || f.kind);
    end if;
    return millrace.blob_link(f.blob, f.mime_type, f.kind || case f.mime_type when 'image/jpeg' then '.jpg' when 'image/png' then '.png' when 'application/pdf' then '.pdf'
        when 'text/html; charset=utf-8' then '.html' else '.txt' end, media_link.valid, 'media:' || m.id || ':' || f.kind);
end $$;
select millrace.door_is('media', 'media_link', 'client, worker', 'tenant media', 'A link to a file of media.');

-- What pages were to be drawn with, once nobody needs it.
create or replace function millrace.media_pictures_gone(m millrace.media) returns void
language sql volatile as $$
    select millrace.blob_release(decode(e.value, 'hex'), 'media:' || m.id || ':of:' || e.key)
      from jsonb_each_text(case when m.what = 'template' then coalesce(m.wish -> 'pictures', '{}') else '{}' end) e order by e.value
$$;

-- With the row locked. Nothing is left of it; the blobs go with the next sweep, if nothing else refers to them.
create or replace function millrace.media_gone(m millrace.media) returns void
language plpgsql volatile as $$
begin
    if m.status = 'waiting' and m.job is not null then
        perform millrace.cancel_now(m.job);
    end if;
    perform millrace.blob_release(r.blob, r.owner) from (
        select f.blob, 'media:' || m.id || ':' || f.kind as owner from millrace.media_file f where f.media = m.id
        union all select m.blob, 'media:' || m.id where m.blob is not null) r order by r.blob;
    perform millrace.media_pictures_gone(m);
    delete from millrace.media x where x.id = m.id;
end $$;

-- Deletes media, and cancels a job that has not ended. False: there are none of the actor's.
create or replace function millrace.media_delete(id uuid, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.document_actor(media_delete.actor, caller => media_delete.caller);
    m millrace.media;
begin
    select x.* into m from millrace.media x where x.id = media_delete.id and millrace.media_sees(x, me, caller => media_delete.caller) for update;
    if not found then
        perform millrace.refuse('there are no such media', 'id', null, 'P0002', 'not_found');
    end if;
    perform millrace.media_gone(m);
    perform millrace.media_told(m, 'deleted', '{}');
    return true;
end $$;
select millrace.door_is('media', 'media_delete', 'client, worker', 'tenant media',
    'Deletes media, and cancels a job that has not ended.', who_may => array['delete their media: itself, staff']);

-- Joins in person_erase: how many went.
create or replace function millrace.media_erase_person(person text) returns bigint
language plpgsql volatile as $$
declare
    m millrace.media;
    n bigint := 0;
begin
    perform millrace.blob_release(millrace.avatar_blob(p.avatar), 'avatar:' || p.person) from millrace.profile p
      where p.person = media_erase_person.person and p.avatar like 'blob:%';
    for m in select x.* from millrace.media x where x.owner = media_erase_person.person or x.tenant = millrace.personal_tenant(media_erase_person.person) order by x.id for update loop
        perform millrace.media_gone(m);
        n := n + 1;
    end loop;
    return n;
end $$;

-- The person hears of it.
create or replace function millrace.media_told(m millrace.media, the_change text, the_data jsonb) returns void
language plpgsql volatile as $$
begin
    if m.owner is null and m.tenant is null then
        return;
    end if;
    perform millrace.feed_say(array[millrace.feed_change(at => millrace.now(), topic => 'media', person => m.owner, tenant => m.tenant, ref => m.id::text, change => the_change,
        data => jsonb_build_object('what', m.what) || the_data)]);
end $$;

-- For operators: whose media they are, how they stand, and what was made. A subquery, not a join: a list then reads the files of its own page only.
create or replace view millrace.media_overview as
select m.id, m.what, m.status, m.reason, m.sentence, m.mime_type, m.tenant, m.owner, m.job,
       (select coalesce(jsonb_agg(jsonb_build_object('kind', f.kind, 'storage_url', 'blob:' || encode(f.blob, 'hex'), 'size', f.size, 'mime_type', f.mime_type,
                   'width', f.width, 'height', f.height) order by f.kind), '[]')
          from millrace.media_file f where f.media = m.id) as files,
       m.created_at, m.ended_at
  from millrace.media m;
select millrace.view_is('media', 'media_overview', 'worker');

-- What this room keeps of a person: see person_export.
create or replace function millrace.media_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'media', m.id::text, to_jsonb(m) - array['digest', 'caller', 'job', 'blob'] || jsonb_build_object('files',
               coalesce((select jsonb_agg(jsonb_build_object('kind', f.kind, 'blob', encode(f.blob, 'hex')) order by f.kind)
                           from (select 'original' as kind, m.blob union all select x.kind, x.blob from millrace.media_file x where x.media = m.id) f
                          where f.blob is not null), '[]'))
      from millrace.media m
     where m.owner = media_export_person.person or m.tenant = millrace.personal_tenant(media_export_person.person)
$$;
