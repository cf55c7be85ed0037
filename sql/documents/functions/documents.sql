-- Documents as applications see them: register, delete, try again.

-- The acting person. Staff may act for nobody in particular.
create or replace function millrace.document_actor(actor text, caller name) returns text
language plpgsql stable as $$
declare
    me text := millrace.actor_of(actor, document_actor.caller);
begin
    if me is null and not millrace.is_staff(document_actor.caller) then
        perform millrace.refuse('the actor is missing', 'actor', 'A back end that sets no request.jwt.claims gives the actor.');
    end if;
    return me;
end $$;

-- Whether the claims are those of a person for whom the app's server, or an operator, has handed something in: it is that person's, within the tenant
-- that it names. What another app's people have handed in is none of it, whatever they are called.
create or replace function millrace.is_handed_in_for(the_owner text, by text, the_tenant text, caller name) returns boolean
language sql stable as $$
    select coalesce(the_owner = millrace.claims(is_handed_in_for.caller) ->> 'sub' and millrace.claims_count(is_handed_in_for.caller)
        and (the_tenant is null or the_tenant = millrace.caller_tenant(is_handed_in_for.caller))
        and millrace.is_backend(by), false)
$$;

-- A person acts on their own documents. A document without an owner, or one of the tenant that the claims name, may be used by every caller
-- that may see it.
create or replace function millrace.document_sees(d millrace.document, me text, caller name) returns boolean
language sql stable as $$
    select (millrace.may_see(d.caller, d.tenant, caller => document_sees.caller)
       and (me is null or d.owner is null or d.owner = me
            or coalesce(nullif(millrace.claims(document_sees.caller) ->> 'tenant', '') = d.tenant, false)))
       or millrace.is_handed_in_for(d.owner, d.caller, d.tenant, caller => document_sees.caller)
$$;

-- Locks the document if the caller may see it: a caller neither waits for others' documents nor blocks them.
create or replace function millrace.document_must_see(the_id uuid, actor text, caller name) returns millrace.document
language plpgsql volatile as $$
declare
    d millrace.document;
    me text := millrace.document_actor(actor, caller => document_must_see.caller);
begin
    -- The locking statement checks the right, too, so a caller that may not see the document blocks nobody.
    select * into d from millrace.document x
     where x.id = the_id and millrace.document_sees(x, me, caller => document_must_see.caller) for no key update;
    if not found then
        perform millrace.refuse(format('there is no document %s', the_id), 'id', null, 'P0002', 'not_found');
    end if;
    return d;
end $$;

-- The choices among the options, without those that are the default:
--   mode      skip: a page's own text counts; force: every page is read in its picture; redo: so is a page that was read before
--   format    pdf; pdfa-2b: a copy for an archive
--   level     true: pages askew are levelled in the copy
--   clean     true: pages are cleaned in the copy
--   pictures  keep; lossless: smaller without loss; small: smaller with some loss
--   languages given: they are the document's; else the languages of each page are found
--   split     off; separators: a page with a separating barcode ends a document
--   analyze   true: a model summarizes what was read
create or replace function millrace.document_choices(given jsonb) returns jsonb
language plpgsql immutable as $$
declare
    rule record;
    choices jsonb := '{}';
begin
    for rule in
        select * from (values ('mode', '["skip", "force", "redo"]'::jsonb), ('format', '["pdf", "pdfa-2b"]'), ('level', '[false, true]'), ('clean', '[false, true]'),
            ('pictures', '["keep", "lossless", "small"]'), ('split', '["off", "separators"]'), ('analyze', '[false, true]')) r (name, known)
    loop
        if given ? rule.name then
            if not rule.known @> jsonb_build_array(given -> rule.name) then
                perform millrace.refuse(format('options.%s is unknown', rule.name), 'options.' || rule.name, format('Allowed: %s.',
                    (select string_agg(k, ', ') from jsonb_array_elements_text(rule.known) k)));
            end if;
            if given -> rule.name <> rule.known -> 0 then
                choices := choices || jsonb_build_object(rule.name, given -> rule.name);
            end if;
        end if;
    end loop;
    if given ? 'languages' and given -> 'languages' <> '["auto"]' then
        choices := choices || '{"languages": "given"}';
    end if;
    return choices;
end $$;

create or replace function millrace.document_options(given jsonb, out languages text[], out policy text, out dpi int, out outputs text[])
language plpgsql immutable as $$
declare
    name text;
begin
    if millrace.true_bytes(given) > millrace.most('options') then
        perform millrace.refuse(format('options take more than %s bytes', millrace.most('options')), 'options', null, '53400', 'too_large');
    end if;
    if jsonb_typeof(given) is distinct from 'object' then
        perform millrace.refuse('options is not a JSON object', 'options', 'Give an object such as {"languages": ["eng"]}.');
    end if;
    select k into name from jsonb_object_keys(given) k where k not in ('languages', 'policy', 'dpi', 'outputs', 'mode', 'format', 'level', 'clean', 'pictures', 'split', 'analyze') limit 1;
    if found then
        perform millrace.refuse(format('options.%s is unknown', left(name, 60)), 'options', 'Allowed: languages, policy, dpi, outputs, mode, format, level, clean, pictures, split and analyze.');
    end if;
    if given ? 'languages' and (jsonb_typeof(given -> 'languages') <> 'array' or jsonb_array_length(given -> 'languages') not between 1 and 8
        or exists (select from jsonb_array_elements(given -> 'languages') e where jsonb_typeof(e) <> 'string' or e #>> '{}' !~ '^[a-z]{3}(_[A-Za-z]{1,12})?$'))
        and given -> 'languages' <> '["auto"]'
    then
        perform millrace.refuse('options.languages is not a list of 1 to 8 languages', 'options.languages', 'Give names of models such as ["eng", "deu"], or ["auto"] to have them found.');
    end if;
    if given ? 'outputs' and (jsonb_typeof(given -> 'outputs') <> 'array'
        or exists (select from jsonb_array_elements(given -> 'outputs') e where coalesce(e #>> '{}', '') not in ('text', 'json', 'pdf', 'preview', 'report', 'markdown', 'hocr', 'alto')))
    then
        perform millrace.refuse('options.outputs may hold only text, json, pdf, preview, report, markdown, hocr and alto', 'options.outputs');
    end if;
    languages := array(select jsonb_array_elements_text(coalesce(nullif(given -> 'languages', '["auto"]'), '["eng"]')));
    policy := coalesce(given ->> 'policy', 'partial');
    if policy not in ('partial', 'strict') then
        perform millrace.refuse('options.policy is unknown', 'options.policy', 'Give partial: what can be read counts; or strict: a page that cannot be read fails the document.');
    end if;
    if given ? 'dpi' and (jsonb_typeof(given -> 'dpi') <> 'number' or (given -> 'dpi')::numeric not between 72 and 600) then
        perform millrace.refuse('options.dpi is out of range', 'options.dpi', 'Give 72 to 600: pages are drawn no finer; 300 is the default.');
    end if;
    dpi := coalesce((given ->> 'dpi')::numeric::int, 300);
    outputs := array(select distinct e from jsonb_array_elements_text(coalesce(given -> 'outputs', '["text", "json", "pdf", "preview", "report"]')) e order by e);
end $$;

-- Where to put a document's content, once, and what to register then. The url is valid for an hour, for exactly this size and type.
create or replace function millrace.document_upload(name text, mime_type text, size bigint, tenant text default null, actor text default null, caller millrace.caller_name default current_user)
returns table (url text, storage_url text, expires_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.document_actor(document_upload.actor, caller => document_upload.caller);
begin
    if document_upload.name is null or length(document_upload.name) not between 1 and millrace.most('title') or document_upload.name ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the name is missing, too long, or has control characters', 'name', format('Give 1 to %s characters.', millrace.most('title')));
    end if;
    if millrace.is_no_tenant(document_upload.tenant) or document_upload.tenant ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the tenant is empty, too long, or has control characters', 'tenant', 'Give 1 to 128 characters, or null.');
    end if;
    return query select l.url, l.storage_url, l.expires_at
        from millrace.upload_link(document_upload.size, lower(document_upload.mime_type), the_owner => document_upload.caller,
            the_tenant => millrace.tenant_of(document_upload.tenant, document_upload.caller)) l;
end $$;
select millrace.door_is('documents', 'document_upload', 'client, worker', 'actor person',
    'A signed link to upload a file to.');

-- The id, given or new. With an id that is known and the same content it answers as the first time.
create or replace function millrace.document_register(
    storage_url text, title text default null, mime_type text default null, size bigint default null, lesson_id text default null, tenant text default null,
    options jsonb default '{}', password text default null, id uuid default null, actor text default null, caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    me text := millrace.document_actor(document_register.actor, caller => document_register.caller);
    the_tenant text := document_register.tenant;
    chosen jsonb := coalesce(document_register.options, '{}');
    o record;
    b record;
    old record;
    the_blob bytea;
    the_size bigint := document_register.size;
    the_id uuid := coalesce(document_register.id, gen_random_uuid());
    the_digest bytea;
    t timestamptz := millrace.now();
begin
    select * into o from millrace.document_options(chosen);
    if length(document_register.title) > millrace.most('title') or document_register.title ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the title is too long, or has control characters', 'title', 'Give at most 500 characters.');
    end if;
    if document_register.mime_type !~ '^[A-Za-z0-9!#$&^_.+-]{1,80}/[A-Za-z0-9!#$&^_.+-]{1,80}$' then
        perform millrace.refuse('the mime_type is malformed', 'mime_type', 'Give for example application/pdf. It is only a claim: the content decides.');
    end if;
    if length(document_register.lesson_id) not between 1 and millrace.most('name') or document_register.lesson_id ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the lesson_id is empty, too long, or has control characters', 'lesson_id', 'Give 1 to 128 characters, or null.');
    end if;
    if millrace.is_no_tenant(the_tenant) or the_tenant ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the tenant is empty, too long, or has control characters', 'tenant', 'Give 1 to 128 characters, or null.');
    end if;
    if the_size < 0 then
        perform millrace.refuse('the size is negative', 'size');
    end if;
    if length(document_register.password) > millrace.most('password') then
        perform millrace.refuse('the password is longer than 512 characters', 'password');
    end if;
    the_tenant := millrace.tenant_of(the_tenant, document_register.caller);
    select f.options || chosen into chosen from millrace.document_default f where f.tenant = the_tenant;
    if found then
        select * into o from millrace.document_options(chosen);
    else
        chosen := coalesce(document_register.options, '{}');
    end if;
    if document_register.options -> 'analyze' = 'true' then
        perform millrace.ai_must_be_on(the_tenant, me);
    end if;

    if storage_url ~ '^blob:[0-9a-f]{64}$' then
        the_blob := decode(substr(storage_url, 6), 'hex');
    elsif storage_url ~ '^upload:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        null;
    elsif storage_url ~ E'^https://[^/?#\\s@]+([/?#][^\\s]*)?$' and length(storage_url) <= millrace.most('storage_url') then
        null;
    elsif storage_url ~ E'^file:/[^\\u0001-\\u001f\\u007f]+$' and length(storage_url) <= millrace.most('storage_url') then
        if not millrace.is_admin(document_register.caller) then
            perform millrace.refuse('only an admin may name a file on the workers'' machines', 'storage_url', 'Store its content as a blob, and give blob:<sha256>.',
                '42501', 'permission');
        end if;
    else
        perform millrace.refuse('the storage_url has an unknown form', 'storage_url', 'Give what document_upload returned, blob:<sha256>, or an https:// address.');
    end if;

    the_digest := sha256(convert_to(concat_ws(chr(31), storage_url, document_register.title, document_register.mime_type, document_register.size, document_register.lesson_id,
        millrace.tenant_digested(the_tenant), document_register.options, me), 'UTF8'));
    select d.digest, d.caller, d.tenant into old from millrace.document d where d.id = the_id;
    if not found then
        if storage_url like 'upload:%' then
            the_blob := millrace.upload_blob(substr(storage_url, 8)::uuid);
            if the_blob is null then
                perform millrace.refuse('nothing has been uploaded under this storage_url, or it was already used', 'storage_url',
                    'First upload the content to the url that document_upload returned; it is kept for two days.', 'P0002', 'not_found');
            end if;
        end if;
        if the_blob is not null then
            -- A hash alone opens nothing: for another's blob the answer is the same as for one that does not exist. Content that came by a
            -- link is named by the link, which nobody can guess.
            select x.size into b from millrace.blob x
             where x.id = the_blob
               and (storage_url like 'upload:%' or millrace.blob_may_use(the_blob, document_register.caller, millrace.is_staff(document_register.caller), millrace.caller_tenant(document_register.caller)))
               for key share;
            if not found then
                perform millrace.refuse(format('there is no blob %s', substr(storage_url, 6)), 'storage_url', 'Put its content first.', 'P0002', 'not_found');
            end if;
            if the_size <> b.size then
                perform millrace.refuse(format('the blob has %s bytes, not %s', b.size, the_size), 'size');
            end if;
            the_size := b.size;
        end if;
        insert into millrace.document (id, title, mime_type, size, blob, source, lesson_id, tenant, owner, caller, status, stage, languages, policy, dpi, outputs,
            choices, created_at, changed_at, digest)
        values (the_id, document_register.title, lower(document_register.mime_type), the_size, the_blob, case when the_blob is null then storage_url end,
            document_register.lesson_id, the_tenant, me, document_register.caller, 'processing', 'receive', o.languages, o.policy, o.dpi, o.outputs,
            millrace.document_choices(chosen), t, t, the_digest)
            on conflict do nothing;
        if found then
            if not millrace.quota_use(the_tenant, 'documents', 1) then
                perform millrace.refuse_quota('the tenant has used up its documents for this period', 'tenant', 'See the view quotas for when the next one begins.',
                    q.allowed, q.used, millrace.quota_reset(q.period, q.since)) from millrace.quota q where q.tenant = the_tenant and q.name = 'documents';
            end if;
            if the_blob is not null then
                perform millrace.blob_keep(the_blob, 'document:' || the_id);
                perform millrace.blob_allow(the_blob, document_register.caller, the_tenant);
            end if;
            if storage_url like 'upload:%' then
                perform millrace.blob_release(the_blob, storage_url);
            end if;
            if document_register.password is not null then
                insert into millrace.document_secret (document, password) values (the_id, document_register.password);
            end if;
            update millrace.document d
               set job = (millrace.enqueue_one('document.receive', jsonb_build_object('document', the_id, 'round', 1), 'documents', 3, null, null, 'skip', null, the_tenant,
                       null, '{}', '{}', '{}', caller => document_register.caller)).id
             where d.id = the_id;
            perform millrace.document_changed(the_id, 'created');
            return the_id;
        end if;
        select d.digest, d.caller, d.tenant into old from millrace.document d where d.id = the_id;
        if not found then                                 -- committed since our snapshot, at a stricter level
            raise exception using errcode = '40001', message = 'a document with this id was registered by a concurrent transaction';
        end if;
    end if;
    if old.digest <> the_digest or not millrace.may_see(old.caller, old.tenant, caller => document_register.caller) then
        perform millrace.refuse(format('document %s already exists with different content', the_id), 'id',
            'Repeating an id with the same content returns the first answer; use a new id for another document.', '23505', 'conflict');
    end if;
    return the_id;
end $$;
select millrace.door_is('documents', 'document_register', 'client, worker', 'actor person',
    'Registers an uploaded file as a document.');

-- With the document locked. What is left of it is that it was there.
create or replace function millrace.document_gone(d millrace.document) returns void
language plpgsql volatile as $$
declare
    running bigint;
begin
    -- Waiting jobs find nothing to do; running ones may stop.
    for running in
        select j from (select d.job as j union all
                       select p.job from millrace.document_page p where p.document = d.id and p.status = 'running') x
         where j is not null and d.status = 'processing'
    loop
        perform millrace.cancel_now(running);
    end loop;
    perform millrace.blob_release(r.blob, r.owner) from (
        select o.blob, 'document:' || d.id || ':' || o.kind as owner from millrace.document_output o where o.document = d.id
        union all select d.blob, 'document:' || d.id where d.blob is not null) r;
    delete from millrace.document_output o where o.document = d.id;
    delete from millrace.document_content c where c.document = d.id;
    delete from millrace.document_page p where p.document = d.id;
    delete from millrace.document_secret s where s.document = d.id;
    perform millrace.ai_erase_ref('documents', d.id);
    update millrace.document x
       set status = 'deleted', title = null, source = null, blob = null, inspection = null, reason = null, sentence = null, job = null,
           finished_at = coalesce(x.finished_at, millrace.now()), changed_at = millrace.now()
     where x.id = d.id;
    perform millrace.document_changed(d.id, 'deleted');
end $$;

-- At most ten a call, by their ids or by a lesson: call again until no row comes. deleted: false for one that was deleted before.
create or replace function millrace.document_delete(ids uuid[] default null, lesson_id text default null, actor text default null, caller millrace.caller_name default current_user) returns table (id uuid, deleted boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.document_actor(document_delete.actor, caller => document_delete.caller);
    d millrace.document;
    chosen uuid[] := document_delete.ids;
begin
    if (document_delete.ids is null) = (document_delete.lesson_id is null) then
        perform millrace.refuse('ids and lesson_id are both missing, or both given', 'ids', 'Give one of them.');
    end if;
    if cardinality(document_delete.ids) > millrace.most('ids') then
        perform millrace.refuse('more than 10 documents at once', 'ids', 'Delete at most ten at a time.', '53400', 'too_large');
    end if;
    if document_delete.lesson_id is not null then
        chosen := array(
            select x.id from millrace.document x
             where x.lesson_id = document_delete.lesson_id and x.status <> 'deleted' and millrace.document_sees(x, me, caller => document_delete.caller) order by x.seq limit 10);
    end if;
    for d in
        select x.* from millrace.document x
         where x.id = any (chosen) and millrace.document_sees(x, me, document_delete.caller)
         order by x.id for no key update
    loop
        document_delete.id := d.id;
        document_delete.deleted := d.status <> 'deleted';
        if document_delete.deleted then
            perform millrace.document_gone(d);
        end if;
        return next;
    end loop;
end $$;
select millrace.door_is('documents', 'document_delete', 'client, worker', 'tenant document', 'Deletes documents.');

-- Joins in person_erase: how many documents went.
create or replace function millrace.documents_erase_person(person text) returns bigint
language plpgsql volatile as $$
declare
    d millrace.document;
    n bigint := 0;
begin
    for d in select x.* from millrace.document x where x.owner = documents_erase_person.person order by x.id for no key update loop
        if d.status <> 'deleted' then
            perform millrace.document_gone(d);
        end if;
        n := n + 1;
    end loop;
    delete from millrace.document_change c where c.owner = documents_erase_person.person and c.change <> 'deleted';
    update millrace.document_change c set owner = null, lesson_id = null, data = c.data - 'lesson_id' where c.owner = documents_erase_person.person;
    update millrace.document x set owner = null, lesson_id = null where x.owner = documents_erase_person.person;
    -- Where the person is its own tenant.
    update millrace.document x set tenant = null where x.tenant = millrace.personal_tenant(documents_erase_person.person) and x.status = 'deleted';
    update millrace.document_change c set tenant = null, data = c.data - 'tenant' where c.tenant = millrace.personal_tenant(documents_erase_person.person);
    return n;
end $$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.documents_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'document', d.id::text, to_jsonb(d) - array['digest', 'caller', 'policy', 'job', 'round', 'blob'] || jsonb_build_object('files',
               coalesce((select jsonb_agg(jsonb_build_object('kind', f.kind, 'blob', encode(f.blob, 'hex')) order by f.kind)
                           from (select 'original' as kind, d.blob union all select o.kind, o.blob from millrace.document_output o where o.document = d.id) f
                          where f.blob is not null), '[]'))
      from millrace.document d where d.owner = documents_export_person.person and d.status <> 'deleted'
    union all
    select 'text', d.id || '/' || lpad(c.page::text, 6, '0'), jsonb_build_object('document', d.id, 'page', c.page, 'text', c.text)
      from millrace.document d join millrace.document_content c on c.document = d.id where d.owner = documents_export_person.person and d.status <> 'deleted' and c.text is not null
$$;
