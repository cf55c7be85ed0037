-- Templates rendered as jobs of the kind template.render: a worker stores what came of it as the job's result, or as files.

-- Where the rendered parts go. to: result, the job's result; blob, a file for each part; pdf, a file of the text part under its subject, or with part html
-- of pages that the HTML part says. pictures: those that it names by cid:, by their storage_url.
create or replace function millrace.template_render_options(given jsonb) returns text
language plpgsql immutable as $$
declare
    unknown text;
begin
    if jsonb_typeof(given) is distinct from 'object' then
        perform millrace.refuse('options is not a JSON object', 'options', 'Give for example {"to": "pdf"}.');
    end if;
    select k into unknown from jsonb_object_keys(given) k where k not in ('to', 'part', 'pictures') limit 1;
    if found then
        perform millrace.refuse(format('options.%s is unknown', left(unknown, 60)), 'options', 'Allowed: to, part and pictures.');
    end if;
    if given ? 'part' and given -> 'part' not in ('"text"', '"html"') then
        perform millrace.refuse('options.part is unknown', 'options.part', 'Allowed: text and html.');
    end if;
    if given ?| array['part', 'pictures'] and given -> 'to' is distinct from '"pdf"' then
        perform millrace.refuse('options.part and pictures are only for a PDF', 'options.to', 'Give {"to": "pdf", "part": "html"}.');
    end if;
    if given ? 'pictures' and given -> 'part' is distinct from '"html"' then
        perform millrace.refuse('options.pictures is only for the HTML part', 'options.part', 'Give {"to": "pdf", "part": "html"}.');
    end if;
    if given ? 'pictures' and (jsonb_typeof(given -> 'pictures') <> 'object' or exists (
        select from jsonb_each(given -> 'pictures') e
         where e.key !~ '^[A-Za-z0-9_.-]{1,64}$' or coalesce(e.value #>> '{}', '') !~ '^(blob:[0-9a-f]{64}|upload:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$'))
    then
        perform millrace.refuse('options.pictures is not an object of names with the storage_url of each', 'options.pictures', 'Such as {"logo": "blob:<sha256>"}.');
    end if;
    if (select count(*) from jsonb_object_keys(coalesce(given -> 'pictures', '{}'))) > 50 then
        perform millrace.refuse('options.pictures are more than 50', 'options.pictures', null, '53400', 'too_large');
    end if;
    if given ? 'to' and given -> 'to' not in ('"result"', '"blob"', '"pdf"') then
        perform millrace.refuse('options.to is unknown', 'options.to', 'Allowed: result, blob and pdf.');
    end if;
    return coalesce(given ->> 'to', 'result');
end $$;

-- The hashes of the pictures, which are kept until the media have ended.
create or replace function millrace.template_pictures(given jsonb, the_media uuid, caller name) returns jsonb
language plpgsql volatile as $$
declare
    one record;
    the_blob bytea;
    hashes jsonb := '{}';
begin
    for one in select e.key as name, e.value as url from jsonb_each_text(coalesce(given, '{}')) e order by 1 loop
        the_blob := case when one.url like 'upload:%' then millrace.upload_blob(substr(one.url, 8)::uuid) else decode(substr(one.url, 6), 'hex') end;
        perform from millrace.blob b
         where b.id = the_blob
           and (one.url like 'upload:%' or millrace.blob_may_use(the_blob, caller, millrace.is_staff(caller), millrace.caller_tenant(caller)))
           for key share;
        if not found then
            perform millrace.refuse(format('there is nothing under the storage_url of the picture %s', one.name), 'options.pictures',
                'Upload it first, for example to the url of document_upload.', 'P0002', 'not_found');
        end if;
        perform millrace.blob_keep(the_blob, 'media:' || the_media || ':of:' || one.name);
        hashes := hashes || jsonb_build_object(one.name, encode(the_blob, 'hex'));
    end loop;
    return hashes;
end $$;

-- The job's id. Nothing is added to the data: a mail's defaults, such as app_name, are the mail room's. Files are media of the actor's, whose id is in the job's
-- arguments and in its result.
create or replace function millrace.template_render(
    template text, data jsonb default '{}', locale text default null, queue text default null, tenant text default null, options jsonb default '{}',
    actor text default null, caller millrace.caller_name default current_user
) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_kind constant text := 'template.render';
    missing text;
    the_args jsonb;
    to_file boolean;
    the_media uuid;
    the_job bigint;
begin
    if template_render.caller is distinct from current_user and not millrace.is_staff(template_render.caller) then
        -- Before anything is said of a template.
        perform millrace.check_client(the_kind, coalesce(template_render.queue,
            (select q.name from millrace.kind k join millrace.queue q on q.id = k.queue where k.name = the_kind and k.line = ''), 'default'), template_render.caller);
    end if;
    perform millrace.template_check_name(template_render.template, coalesce(template_render.locale, 'en'));
    if jsonb_typeof(template_render.data) is distinct from 'object' then
        perform millrace.refuse('data is not a JSON object', 'data', 'Give for example {"user_name": "Ada"}.');
    end if;
    if millrace.true_bytes(template_render.data) > millrace.most('mail_data') then
        perform millrace.refuse(format('data takes %s bytes, more than the %s allowed', millrace.true_bytes(template_render.data), millrace.most('mail_data')), 'data',
            'Give only what the template shows.', '53400', 'too_large');
    end if;
    select string_agg(r, ', ' order by r) into missing from unnest(millrace.template_requires(template_render.template)) r
     where coalesce(btrim(template_render.data ->> r), '') = '';
    if missing is not null then
        perform millrace.refuse(format('the template %s requires %s', template_render.template, missing), 'data', 'Give a text for each in data.');
    end if;
    the_args := jsonb_build_object('template', template_render.template, 'locale', template_render.locale, 'data', template_render.data);
    to_file := millrace.template_render_options(template_render.options) <> 'result';
    if to_file then
        the_media := gen_random_uuid();
        insert into millrace.media (id, what, wish, tenant, owner, caller, status, created_at)
        values (the_media, 'template', the_args || jsonb_build_object('to', template_render.options -> 'to', 'part', template_render.options -> 'part',
                'pictures', millrace.template_pictures(template_render.options -> 'pictures', the_media, template_render.caller)),
            millrace.tenant_of(template_render.tenant, template_render.caller), millrace.document_actor(template_render.actor, caller => template_render.caller),
            template_render.caller, 'waiting', millrace.now());
        the_args := jsonb_build_object('media', the_media);
    end if;
    the_job := (millrace.enqueue_one(the_kind, the_args, template_render.queue, null, null, null, 'skip', null, template_render.tenant, null, null, null, null,
        caller => template_render.caller)).id;
    if to_file then
        update millrace.media m set job = the_job where m.id = the_media;
    end if;
    return the_job;
end $$;
select millrace.door_is('media', 'template_render', 'client, worker', 'granted', 'Fills in a template.');
