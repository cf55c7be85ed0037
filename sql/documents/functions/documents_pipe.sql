-- What a worker does to a document. Every call names the run's token; a call from an earlier round, or for a document that is no longer
-- being worked on, writes nothing. Every call locks the document's row before the lease. Plans are kept here: elsewhere tables with leaves
-- are planned at each call, but for these functions planning cost more than the calls.

-- What a run writes before its end need not be on disk at once: the end's commit carries it along. If the database loses it, by a crash or
-- by a switch to a lagging standby, the run's next step finds the last one missing, and the run starts again.
create or replace function millrace.document_unforced() returns void
language plpgsql volatile as $$
begin
    perform set_config('synchronous_commit', 'off', true);
end $$;

create or replace function millrace.document_wants(there boolean) returns void
language plpgsql volatile as $$
begin
    if not coalesce(there, false) then
        perform millrace.refuse('the database has lost what this run wrote before', 'token', 'Roll back and start the run again.', '55000', 'conflict');
    end if;
end $$;

create or replace function millrace.document_changed(the_id uuid, the_change text) returns void
language plpgsql volatile as $$
begin
    insert into millrace.document_change (at, document, lesson_id, tenant, owner, change, data)
    select millrace.now(), d.id, d.lesson_id, d.tenant, d.owner, the_change, jsonb_strip_nulls(jsonb_build_object('status', d.status, 'stage', d.stage, 'pages', d.pages, 'pages_done', d.pages_done,
        'pages_failed', d.pages_failed, 'reason', d.reason, 'lesson_id', d.lesson_id, 'tenant', d.tenant, 'parent', d.parent))
      from millrace.document d where d.id = the_id;
end $$;

-- The document, locked, if this run may still do something to it; else null.
create or replace function millrace.document_held(token text, the_id uuid, the_round int) returns millrace.document
language plpgsql volatile as $$
declare
    d millrace.document;
    run record;
begin
    select * into d from millrace.document x where x.id = the_id for no key update;
    if not found or d.status <> 'processing' or d.round <> the_round then
        return null;
    end if;
    select * into run from millrace.live_run(token);
    if not millrace.job_serves(run.job, d.job, d.caller, d.tenant)
        and not exists (select from millrace.document_page p where p.document = d.id and p.job = run.job) then
        return null;
    end if;
    return d;
end $$;

-- One row when there is something to be done: all that a run has to know.
create or replace function millrace.document_take(token text, id uuid, round int, the_page int default null)
returns table (title text, source text, blob bytea, size bigint, mime_type text, inspection jsonb, languages text[], policy text, dpi int, outputs text[], tenant text,
    pages int, pages_done int, pages_failed int, signed boolean, encrypted boolean, password text, tries int, cpu_ms bigint, cpu_left float8, created_at timestamptz, choices jsonb,
    trouble text, waits boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    d millrace.document;
    p millrace.document_page;
    waits boolean := false;
    the_job bigint;
begin
    -- A page's run does not lock the document, because runs of its other pages work beside it.
    select * into d from millrace.document x where x.id = document_take.id;
    if not found or d.status <> 'processing' or d.round <> document_take.round then
        return;
    end if;
    the_job := t.job from millrace.read_token(document_take.token) t;
    if document_take.the_page is null and not millrace.job_serves(the_job, d.job, d.caller, d.tenant) then
        return;
    end if;
    if document_take.the_page is not null then
        select * into p from millrace.document_page x where x.document = d.id and x.page = document_take.the_page for no key update;
        if not found or p.status not in ('waiting', 'running') or not millrace.job_serves(the_job, p.job, d.caller, d.tenant) then
            return;
        end if;
        perform millrace.live_run(document_take.token);
        perform millrace.document_unforced();
        waits := millrace.document_page_waits(d, p.page);
        update millrace.document_page x set status = case when waits then 'waiting' else 'running' end, stage = 'raster', changed_at = millrace.now()
         where x.document = d.id and x.page = p.page;
    end if;
    return query
        select d.title, d.source, d.blob, d.size, d.mime_type, d.inspection, d.languages, d.policy, d.dpi, d.outputs, d.tenant, d.pages, d.pages_done, d.pages_failed,
               d.signed, d.encrypted, (select s.password from millrace.document_secret s where s.document = d.id), coalesce(p.tries, 0), d.cpu_ms,
               millrace.quota_left(d.tenant, 'cpu_seconds')::float8, d.created_at,
               d.choices || case when p.mode is not null then jsonb_build_object('mode', p.mode) when the_page is null then coalesce(millrace.document_page_modes(d.id), '{}') else '{}' end,
               p.reason, waits;
end $$;
select millrace.door_is('documents', 'document_take', 'worker', 'staff');

create or replace function millrace.document_stage(token text, id uuid, round int, stage text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    d millrace.document := millrace.document_held(document_stage.token, document_stage.id, document_stage.round);
begin
    if d.id is null then
        return false;
    end if;
    perform millrace.document_unforced();
    update millrace.document x set stage = document_stage.stage, changed_at = millrace.now() where x.id = d.id;
    perform millrace.document_changed(d.id, 'updated');
    return true;
end $$;
select millrace.door_is('documents', 'document_stage', 'worker', 'staff');

-- Its content is here, and stays as long as the document does. The answer is a reason when it may not: quota.
create or replace function millrace.document_received(token text, id uuid, round int, the_blob bytea, the_size bigint) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    d millrace.document := millrace.document_held(document_received.token, document_received.id, document_received.round);
begin
    if d.id is null then
        return 'over';
    end if;
    perform millrace.document_unforced();
    if d.stage = 'receive' then
        if d.size is not null and d.size <> the_size then
            return 'malformed';
        end if;
        if not millrace.quota_use(d.tenant, 'bytes', the_size) then
            return 'quota';
        end if;
    end if;
    if d.blob is distinct from the_blob then
        perform millrace.blob_keep(the_blob, 'document:' || d.id);
        perform millrace.blob_allow(the_blob, d.caller, d.tenant);
    end if;
    update millrace.document x set blob = the_blob, size = the_size, source = null, stage = case when d.stage = 'receive' then 'sniff' else d.stage end, changed_at = millrace.now()
     where x.id = d.id;
    perform millrace.document_changed(d.id, 'updated');
    return 'taken';
end $$;
select millrace.door_is('documents', 'document_received', 'worker', 'staff');

-- Stores what the probe found, and creates the pages. refused: [{page, reason, sentence}], pages that cannot be read.
create or replace function millrace.document_inspected(token text, id uuid, round int, seen jsonb, mime text, pages int, signed boolean, encrypted boolean, refused jsonb, cpu_ms int) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    d millrace.document := millrace.document_held(document_inspected.token, document_inspected.id, document_inspected.round);
    t timestamptz := millrace.now();
begin
    if d.id is null then
        return 'over';
    end if;
    perform millrace.document_wants(d.blob is not null);
    perform millrace.document_unforced();
    if d.inspection is not null then
        return 'taken';
    end if;
    if not millrace.quota_use(d.tenant, 'pages', document_inspected.pages) then
        return 'quota';
    end if;
    perform millrace.quota_use(d.tenant, 'cpu_seconds', document_inspected.cpu_ms / 1000.0, false);
    insert into millrace.document_page (document, page, status, stage, changed_at)
    select d.id, n, 'waiting', 'classify', t from generate_series(1, document_inspected.pages) n on conflict do nothing;
    update millrace.document_page p set status = 'failed', stage = 'failed', reason = r.reason, sentence = left(r.sentence, 500)
      from jsonb_to_recordset(document_inspected.refused) r(page int, reason text, sentence text)
     where p.document = d.id and p.page = r.page;
    update millrace.document x
       set inspection = document_inspected.seen, mime_type = document_inspected.mime, pages = document_inspected.pages, signed = document_inspected.signed,
           encrypted = document_inspected.encrypted, pages_failed = jsonb_array_length(document_inspected.refused), stage = 'classify',
           cpu_ms = x.cpu_ms + document_inspected.cpu_ms, changed_at = t
     where x.id = d.id;
    perform millrace.document_changed(d.id, 'updated');
    return 'taken';
end $$;
select millrace.door_is('documents', 'document_inspected', 'worker', 'staff');

create or replace function millrace.document_waiting(id uuid) returns int[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
    return array(select p.page from millrace.document_page p where p.document = document_waiting.id and p.status in ('waiting', 'running') order by p.page);
end $$;
select millrace.door_is('documents', 'document_waiting', 'worker', 'staff');

-- Another page of the same tenant with the same picture, read by the same engine in the same way.
create or replace function millrace.document_cached(the_tenant text, the_key bytea) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select c.content from millrace.document_content c where c.key = the_key and c.tenant is not distinct from the_tenant limit 1
$$;
select millrace.door_is('documents', 'document_cached', 'worker', 'staff');

-- Writes down pages. results: [{page, status, reason, sentence, text, content, key, words, confidence, rotation, dpi, cpu_ms, cached}]; status again: it
-- waits for another run of its job. ends: this run is a page's, and ends with the write. False: nothing was written.
create or replace function millrace.document_pages_put(token text, id uuid, round int, results jsonb, spent int, ends boolean) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    d millrace.document := millrace.document_held(document_pages_put.token, document_pages_put.id, document_pages_put.round);
    t timestamptz := millrace.now();
    again boolean;
    ended record;
begin
    if d.id is null then
        return false;
    end if;
    perform millrace.document_wants(d.inspection is not null);
    if not ends then
        perform millrace.document_unforced();
    end if;
    with given as materialized (
        select r.* from jsonb_to_recordset(results)
            r(page int, status text, reason text, sentence text, text text, content jsonb, key text, words int, confidence real, rotation int, dpi real, cpu_ms int, cached boolean, languages text[])
    ), written as (
        update millrace.document_page p
           set status = case g.status when 'again' then 'waiting' else g.status end, stage = case g.status when 'again' then 'raster' when 'failed' then 'failed' else 'completed' end,
               reason = g.reason, sentence = left(g.sentence, 500), words = g.words, confidence = g.confidence, rotation = g.rotation, dpi = g.dpi, languages = g.languages,
               cpu_ms = p.cpu_ms + coalesce(g.cpu_ms, 0), cached = coalesce(g.cached, false), tries = p.tries + (g.status = 'again')::int, changed_at = t
          from given g where p.document = d.id and p.page = g.page and p.status in ('waiting', 'running')
        returning p.page, g.status, p.cached, g.text, g.content, g.key, g.languages
    ), kept as (
        insert into millrace.document_content (document, page, tenant, key, config, text, content, search)
        select d.id, w.page, d.tenant, decode(w.key, 'hex'), c.config, w.text, w.content, millrace.document_index(c.config::regconfig, w.text, w.content)
          from written w cross join lateral (select millrace.document_config(coalesce(w.languages, d.languages)) as config) c
         where w.content is not null
            on conflict (document, page) do update
           set tenant = excluded.tenant, key = excluded.key, config = excluded.config, text = excluded.text, content = excluded.content, search = excluded.search
    )
    select count(*) filter (where w.status in ('done', 'skipped')) as done, count(*) filter (where w.status = 'failed') as failed,
           count(*) filter (where w.cached) as cached, count(*) as written, coalesce(bool_or(w.status = 'again'), false) as again
      into ended from written w;
    again := ended.again;
    if ended.written = 0 and jsonb_array_length(results) > 0 and not ends then
        return true;                                      -- an earlier run of the same job has written them
    end if;
    perform millrace.quota_use(d.tenant, 'cpu_seconds', spent / 1000.0, false);
    update millrace.document x
       set pages_done = x.pages_done + ended.done, pages_failed = x.pages_failed + ended.failed, cached = x.cached + ended.cached, cpu_ms = x.cpu_ms + spent,
           stage = case when ends then 'ocr' else x.stage end, changed_at = t
     where x.id = d.id returning x.* into d;
    perform millrace.document_changed(d.id, 'updated');
    if ends and not again then
        perform millrace.document_settle(d);
        if not millrace.complete(document_pages_put.token) then
            perform millrace.refuse('the lease is lost: the page is not recorded', 'token', 'Roll back and stop: another run has the job, or will have it.', '55000', 'lease_lost');
        end if;
    end if;
    return true;
end $$;
select millrace.door_is('documents', 'document_pages_put', 'worker', 'staff');

-- What is searched for beside a page's text.
create or replace function millrace.document_code_texts(content jsonb) returns text
language sql immutable as $$
    select coalesce((select left(string_agg(' ' || (c.code ->> 'text'), ''), 20000)
                       from jsonb_array_elements(case when jsonb_typeof(content -> 'codes') = 'array' then content -> 'codes' else '[]' end) c(code)), '')
$$;

-- A text with the words whole that a hyphen parts at the end of a line.
create or replace function millrace.document_joined(page_text text) returns text
language sql immutable as $$
    select regexp_replace(page_text, E'([[:alpha:]])[-\\u00AD\\u2010][ \\t]*\\r?\\n[ \\t]*([[:lower:]])', E'\\1\\2', 'g')
$$;

-- What a search looks into. A word that was parted is found whole, with its hyphen, which may belong to it, and in its parts.
create or replace function millrace.document_index(config regconfig, page_text text, content jsonb) returns tsvector
language sql immutable as $$
    select to_tsvector(config, left(page_text, 250000) || millrace.document_code_texts(content))
        || case when page_text ~ E'[-\\u00AD\\u2010][ \\t]*\\r?\\n'
                then to_tsvector(config, millrace.document_joined(left(page_text, 100000)))
                     || to_tsvector(config, regexp_replace(left(page_text, 100000), E'([[:alpha:]]-)[ \\t]*\\r?\\n[ \\t]*([[:lower:]])', E'\\1\\2', 'g'))
                else '' end
$$;

create or replace function millrace.document_config(languages text[]) returns text
language sql immutable as $$
    select case languages[1] when 'eng' then 'english' when 'deu' then 'german' when 'fra' then 'french' when 'spa' then 'spanish' when 'ita' then 'italian'
        when 'por' then 'portuguese' when 'nld' then 'dutch' when 'dan' then 'danish' when 'swe' then 'swedish' when 'nor' then 'norwegian' when 'fin' then 'finnish'
        when 'rus' then 'russian' when 'hun' then 'hungarian' when 'ron' then 'romanian' when 'tur' then 'turkish' else 'simple' end
$$;

-- With the document locked: decides what comes next when no page is left. The end of every page calls it, so the last page finds it.
create or replace function millrace.document_settle(d millrace.document) returns void
language plpgsql volatile as $$
declare
    bad record;
begin
    if d.pages_failed > 0 and (d.policy = 'strict' or d.pages_failed >= d.pages) then
        select p.page, p.reason, p.sentence into bad from millrace.document_page p where p.document = d.id and p.status = 'failed' order by p.page limit 1;
        perform millrace.document_end(d.id, 'failed', coalesce(bad.reason, 'internal'), format('page %s: %s', bad.page, bad.sentence));
    elsif d.pages_done + d.pages_failed >= d.pages then
        update millrace.document x
           set stage = 'assemble', job = (millrace.enqueue_one('document.finish', jsonb_build_object('document', d.id, 'round', d.round), 'documents', 2, null, null, 'skip', null,
                   d.tenant, null, '{}', '{}', '{}', caller => current_user)).id
         where x.id = d.id;
    end if;
end $$;

-- A job for each page that has not been read. The first ones go before other documents' later ones. Ends the run.
create or replace function millrace.document_spread(token text, id uuid, round int) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    d millrace.document := millrace.document_held(document_spread.token, document_spread.id, document_spread.round);
begin
    if d.id is null then
        return false;
    end if;
    perform millrace.document_wants(d.inspection is not null);
    perform millrace.document_enqueue_pages(d);
    if not millrace.complete(document_spread.token) then
        perform millrace.refuse('the lease is lost: the pages are not enqueued', 'token', 'Roll back and stop: another run has the job, or will have it.', '55000', 'lease_lost');
    end if;
    return true;
end $$;
select millrace.door_is('documents', 'document_spread', 'worker', 'staff');

create or replace function millrace.document_enqueue_pages(d millrace.document) returns void
language plpgsql volatile as $$
declare
    waiting int[] := array(select p.page from millrace.document_page p where p.document = d.id and p.status in ('waiting', 'running') order by p.page);
    n int;
    made bigint;
begin
    if d.policy = 'strict' and d.pages_failed > 0 then
        waiting := '{}';
    end if;
    for n in 1 .. cardinality(waiting) loop
        made := (millrace.enqueue_one('document.page', jsonb_build_object('document', d.id, 'round', d.round, 'page', waiting[n]), 'documents.pages',
            case when n = 1 then 2 when n <= 4 then 3 else 5 end, null, null, 'skip', null, d.tenant, null, '{}', '{}', case when n > 1 then '{"wake": false}' else '{}' end::jsonb, caller => current_user)).id;
        update millrace.document_page p set job = made, status = 'waiting' where p.document = d.id and p.page = waiting[n];
    end loop;
    if cardinality(waiting) = 0 then
        perform millrace.document_settle(d);
    else
        update millrace.document x set stage = 'raster', job = null, changed_at = millrace.now() where x.id = d.id;
        perform millrace.document_changed(d.id, 'updated');
    end if;
end $$;

-- Ends the document, well or badly; deletes its password, and publishes the end.
create or replace function millrace.document_end(the_id uuid, the_status text, the_reason text, the_sentence text) returns void
language plpgsql volatile as $$
declare
    d millrace.document;
begin
    update millrace.document x
       set status = the_status, stage = the_status, reason = the_reason, sentence = left(the_sentence, 500), finished_at = millrace.now(), changed_at = millrace.now(), job = null
     where x.id = the_id returning x.* into d;
    update millrace.document_page p set status = 'skipped', stage = 'failed', changed_at = millrace.now() where p.document = the_id and p.status in ('waiting', 'running');
    delete from millrace.document_secret s where s.document = the_id;
    perform millrace.document_changed(the_id, 'processing_complete');
    perform millrace.event_say('com.classnotes.document.processed', '/millrace/documents', the_id::text, d.tenant,
        jsonb_build_object('document_id', the_id, 'lesson_id', d.lesson_id, 'status', the_status, 'pages', coalesce(d.pages, 0), 'failed_pages', d.pages_failed)
            || case when d.parent is null then '{}' else jsonb_build_object('parent', d.parent) end);
    if the_status = 'completed' and d.choices -> 'analyze' = 'true' then
        perform millrace.ai_document(d);
    end if;
end $$;

-- Ends the document and the run. outputs: [{kind, blob (hex), size}]. A reason together with completed says what could not be made.
create or replace function millrace.document_ended(token text, id uuid, round int, status text, reason text, sentence text, outputs jsonb, spent int) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
    d millrace.document := millrace.document_held(document_ended.token, document_ended.id, document_ended.round);
    one record;
begin
    if d.id is null then
        return false;
    end if;
    perform millrace.document_wants(document_ended.status <> 'completed' or d.inspection is not null and d.pages_done + d.pages_failed >= d.pages);
    for one in select o.kind, decode(o.blob, 'hex') as blob, o.size, o.about from jsonb_to_recordset(document_ended.outputs) o(kind text, blob text, size bigint, about jsonb) loop
        perform millrace.document_output_drop(d.id, one.kind, one.blob);
        perform millrace.blob_keep(one.blob, 'document:' || d.id || ':' || one.kind);
        perform millrace.blob_allow(one.blob, d.caller, d.tenant);
        insert into millrace.document_output (document, kind, blob, size, about) values (d.id, one.kind, one.blob, one.size, one.about)
            on conflict on constraint document_output_pkey do update set about = excluded.about;
    end loop;
    perform millrace.quota_use(d.tenant, 'cpu_seconds', spent / 1000.0, false);
    update millrace.document x set cpu_ms = x.cpu_ms + spent where x.id = d.id;
    perform millrace.document_end(d.id, document_ended.status, document_ended.reason, document_ended.sentence);
    if not millrace.complete(document_ended.token) then
        perform millrace.refuse('the lease is lost: the document is not ended', 'token', 'Roll back and stop: another run has the job, or will have it.', '55000', 'lease_lost');
    end if;
    return true;
end $$;
select millrace.door_is('documents', 'document_ended', 'worker', 'staff');

-- Drops an output of an earlier round.
create or replace function millrace.document_output_drop(the_id uuid, the_kind text, but bytea) returns void
language plpgsql volatile as $$
declare
    old bytea;
begin
    delete from millrace.document_output o where o.document = the_id and (the_kind is null or o.kind = the_kind) and o.blob is distinct from but returning o.blob into old;
    if found then
        perform millrace.blob_release(old, 'document:' || the_id || ':' || the_kind);
    end if;
end $$;

-- Pages' contents, in order; only_read: those that an engine has read.
create or replace function millrace.document_contents(id uuid, first int, most int, only_read boolean) returns table (page int, text text, content jsonb)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
    return query
    select c.page, c.text, c.content from millrace.document_content c
     where c.document = document_contents.id and c.page >= document_contents.first and (not only_read or c.content ->> 'origin' in ('read', 'mixed'))
     order by c.page limit most;
end $$;
select millrace.door_is('documents', 'document_contents', 'worker, operator', 'staff');

-- Ends documents and media whose job is gone without ending them, because it was cancelled or given up after crashes. Returns how many it ended.
create or replace function millrace.documents_check(most int default 100) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    d millrace.document;
    page record;
    checked int := 0;
begin
    for d in
        select x.* from millrace.document x where x.status = 'processing' and x.changed_at < millrace.now() - interval '30 s'
         order by x.changed_at limit most for no key update skip locked
    loop
        if d.job is not null then
            if exists (select from millrace.history h where h.id = d.job and h.outcome in (2, 3)) then
                perform millrace.document_end(d.id, 'failed', 'internal', 'its job was cancelled, or given up');
                checked := checked + 1;
            end if;
            continue;
        end if;
        for page in
            select p.page, h.error from millrace.document_page p
             cross join lateral (select h.error from millrace.history h where h.id = p.job and h.outcome in (2, 3) limit 1) h
             where p.document = d.id and p.status in ('waiting', 'running') order by p.page
        loop
            update millrace.document_page p set status = 'failed', stage = 'failed', reason = 'internal', sentence = 'its job was cancelled, or given up', changed_at = millrace.now()
             where p.document = d.id and p.page = page.page;
            update millrace.document x set pages_failed = x.pages_failed + 1, changed_at = millrace.now() where x.id = d.id returning x.* into d;
            checked := checked + 1;
        end loop;
        if d.pages_done + d.pages_failed >= d.pages or d.policy = 'strict' then
            perform millrace.document_settle(d);
        end if;
    end loop;
    return checked + millrace.hooks_must('check', jsonb_build_object('most', most));
end $$;
select millrace.door_is('documents', 'documents_check', 'worker', 'staff');

-- The kinds of this room's jobs, which name its rows.
create or replace function millrace.document_kinds() returns setof text
language sql immutable parallel safe as 'select ''document.%''';

-- Jobs of this room name their row by this argument, and keep it when a person is erased: see jobs_erase_person.
create or replace function millrace.document_keeps() returns setof text
language sql immutable parallel safe as 'select ''document''';
