-- Documents that a scan was split into. A part is a document of its own: with a file of its own, and with the text that was read for the
-- whole. Quotas do not count it: its pages were counted, read and paid for with the whole.

-- The same parent and pages always make the same part, so that a run that is repeated finds what the one before it has made.
create or replace function millrace.document_part_id(parent uuid, first int, last int) returns uuid
language sql immutable as $$
    select encode(substr(sha256(convert_to(concat_ws('/', 'part', document_part_id.parent, document_part_id.first, document_part_id.last), 'UTF8')), 1, 16), 'hex')::uuid
$$;

-- The texts of the codes of each page that has some.
create or replace function millrace.document_codes(id uuid) returns table (page int, texts text[])
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
    return query
    select c.page, array(select e.code ->> 'text' from jsonb_array_elements(c.content -> 'codes') e(code))
      from millrace.document_content c
     where c.document = document_codes.id and jsonb_typeof(c.content -> 'codes') = 'array' order by c.page;
end $$;
select millrace.door_is('documents', 'document_codes', 'worker', 'staff');

-- Makes a document of the pages first to last, with its file, its text and the job that finishes it, or none of these. The answer is there;
-- missing: it is not there, and no file was given; over: the whole document is no longer being worked on. A part that was deleted is there.
create or replace function millrace.document_part(token text, id uuid, round int, first int, last int, title text, the_blob bytea default null, the_size bigint default null, seen jsonb default null)
returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    d millrace.document := millrace.document_held(document_part.token, document_part.id, document_part.round);
    part millrace.document;
    the_id uuid := millrace.document_part_id(document_part.id, document_part.first, document_part.last);
    t timestamptz := millrace.now();
begin
    if d.id is null then
        return 'over';
    end if;
    if exists (select from millrace.document x where x.id = the_id) then
        return 'there';
    end if;
    if the_blob is null then
        return 'missing';
    end if;
    perform millrace.document_wants(d.inspection is not null and d.pages_done + d.pages_failed >= d.pages);
    insert into millrace.document (id, title, mime_type, size, blob, lesson_id, tenant, owner, caller, status, stage, languages, policy, dpi, outputs, choices, inspection,
        pages, parent, parent_pages, created_at, changed_at, digest)
    values (the_id, document_part.title, 'application/pdf', the_size, the_blob, d.lesson_id, d.tenant, d.owner, d.caller, 'processing', 'classify', d.languages, d.policy,
        d.dpi, d.outputs, d.choices - 'split', document_part.seen, document_part.last - document_part.first + 1, d.id,
        int4range(document_part.first, document_part.last, '[]'), t, t, sha256(convert_to('part ' || the_id, 'UTF8')));
    insert into millrace.document_page (document, page, status, stage, reason, sentence, words, confidence, rotation, dpi, cached, changed_at, mode, languages)
    select the_id, p.page - document_part.first + 1, p.status, p.stage, p.reason, p.sentence, p.words, p.confidence, p.rotation, p.dpi, p.cached, t, p.mode, p.languages
      from millrace.document_page p where p.document = d.id and p.page between document_part.first and document_part.last;
    -- Without the key: the whole document has the picture's, and one that can be found is enough.
    insert into millrace.document_content (document, page, tenant, config, text, content, search)
    select the_id, c.page - document_part.first + 1, c.tenant, c.config, c.text, c.content, c.search
      from millrace.document_content c where c.document = d.id and c.page between document_part.first and document_part.last;
    update millrace.document x
       set pages_done = n.done, pages_failed = n.failed, cached = n.cached
      from (select count(*) filter (where p.status in ('done', 'skipped')) as done, count(*) filter (where p.status = 'failed') as failed, count(*) filter (where p.cached) as cached
              from millrace.document_page p where p.document = the_id) n
     where x.id = the_id returning x.* into part;
    perform millrace.blob_keep(the_blob, 'document:' || the_id);
    perform millrace.blob_allow(the_blob, d.caller, d.tenant);
    perform millrace.document_changed(the_id, 'created');
    perform millrace.document_settle(part);
    return 'there';
end $$;
select millrace.door_is('documents', 'document_part', 'worker', 'staff');

-- Whether a page must wait for others: it begins only if its tenant's CPU time suffices also for the pages that are being read now. So pages that
-- are read at once exceed the quota by about as much as one page does. What a page will take is not known before: as much as the
-- document's pages took in the mean, or ten seconds.
create or replace function millrace.document_page_waits(d millrace.document, the_page int) returns boolean
language plpgsql volatile as $$
declare
    q millrace.quota;
    running int;
begin
    if d.tenant is null or millrace.quota_left(d.tenant, 'cpu_seconds') is null then
        return false;
    end if;
    -- One page after the other asks.
    select * into q from millrace.quota x where x.tenant = d.tenant and x.name = 'cpu_seconds' for no key update;
    select count(*) into running
      from millrace.document o join millrace.document_page p on p.document = o.id
     where o.status = 'processing' and o.tenant = d.tenant and p.status = 'running' and (p.document, p.page) <> (d.id, the_page);
    return running > 0 and millrace.quota_left(d.tenant, 'cpu_seconds') - running * (
        select coalesce(avg(p.cpu_ms) / 1000.0, 10) from millrace.document_page p where p.document = d.id and p.status in ('done', 'failed') and p.cpu_ms > 0) <= 0;
end $$;
