-- How documents and pages are read where that is decided apart from registering them: by tenant before, and by page afterwards.

-- The options of a tenant's documents that say nothing of their own. null: none any more. Existing documents stay as they are.
create or replace function millrace.document_default_set(tenant text, options jsonb, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if document_default_set.tenant is null or millrace.is_no_tenant(document_default_set.tenant)
        or document_default_set.tenant ~ E'[\\u0001-\\u001f\\u007f-\\u009f]'
    then
        perform millrace.refuse('the tenant is missing, too long, or has control characters', 'tenant', 'Give 1 to 128 characters.');
    end if;
    if document_default_set.options is null then
        delete from millrace.document_default f where f.tenant = document_default_set.tenant;
        if not found then
            return false;
        end if;
    else
        perform millrace.document_options(document_default_set.options);
        perform millrace.document_choices(document_default_set.options);
        insert into millrace.document_default as f (tenant, options, changed_at, changed_by)
        values (document_default_set.tenant, document_default_set.options, millrace.now(), document_default_set.caller)
            on conflict on constraint document_default_pkey do update
           set options = excluded.options, changed_at = excluded.changed_at, changed_by = excluded.changed_by;
    end if;
    perform millrace.audited('document.default', document_default_set.tenant, jsonb_build_object('options', document_default_set.options),
        caller => document_default_set.caller);
    return true;
end $$;
select millrace.door_is('documents', 'document_default_set', 'admin', 'staff', audited => true);

-- Of all tenants that have some, or of one.
create or replace function millrace.document_defaults(of_tenant text default null) returns table (tenant text, options jsonb, changed_at timestamptz, changed_by text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query select f.tenant, f.options, f.changed_at, f.changed_by from millrace.document_default f
      where document_defaults.of_tenant is null or f.tenant = document_defaults.of_tenant order by f.tenant;
end $$;
select millrace.door_is('documents', 'document_defaults', 'admin', 'staff');

-- {"pages": {"4": "force"}}: the pages that are read in another way than their document; {} when there are none.
create or replace function millrace.document_page_modes(the_id uuid) returns jsonb
language sql stable as $$
    select coalesce(jsonb_build_object('pages', nullif(jsonb_object_agg(p.page, p.mode), '{}')), '{}')
      from millrace.document_page p where p.document = the_id and p.mode is not null having count(*) > 0
$$;

-- Reads again what could not be read, or these pages; with a mode these pages, or all, in another way from now on. The other pages stay as they
-- are, and the copy is made again. False: there is nothing to be read again.
create or replace function millrace.document_retry(id uuid, pages int[] default null, actor text default null, mode text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    d millrace.document := millrace.document_must_see(document_retry.id, document_retry.actor, caller => document_retry.caller);
    again int[];
begin
    if document_retry.mode not in ('skip', 'force', 'redo') then
        perform millrace.refuse(format('the mode %L is unknown', left(document_retry.mode, 60)), 'mode', 'Give skip, force or redo.');
    end if;
    if d.status not in ('completed', 'failed') then
        perform millrace.refuse(format('document %s is %s', d.id, d.status), 'id', 'Wait until it has ended.', '55000', 'conflict');
    end if;
    if d.encrypted or d.reason in ('encrypted', 'wrong_password') then
        perform millrace.refuse('the document''s password is no longer stored', 'id', 'Register it again, with its password.', '55000', 'conflict');
    end if;
    if d.inspection is null then
        if document_retry.pages is not null then
            perform millrace.refuse('the document''s pages are not known', 'pages', 'Leave pages out.', '55000', 'conflict');
        end if;
        if d.status = 'completed' then
            return false;
        end if;
    elsif exists (select from unnest(document_retry.pages) n where n is null or n not between 1 and d.pages) then
        perform millrace.refuse(format('the document has the pages 1 to %s', d.pages), 'pages');
    end if;
    again := array(select p.page from millrace.document_page p
                    where p.document = d.id and case when document_retry.pages is not null then p.page = any (document_retry.pages)
                                                        else document_retry.mode is not null or p.status in ('failed', 'skipped') end
                      and coalesce(d.inspection #>> array['pages', (p.page - 1)::text, 'refusal'], '') = '' order by p.page);
    if d.inspection is not null and cardinality(again) = 0 and d.status = 'completed' then
        return false;
    end if;
    delete from millrace.document_content c where c.document = d.id and c.page = any (again);
    update millrace.document_page p
       set status = 'waiting', stage = 'classify', reason = null, sentence = null, words = null, confidence = null, cached = false, tries = 0, job = null,
           mode = coalesce(document_retry.mode, p.mode), changed_at = millrace.now()
     where p.document = d.id and p.page = any (again);
    update millrace.document x
       set status = 'processing', stage = case when d.inspection is null then 'receive' else 'classify' end, round = x.round + 1,
           choices = case when d.inspection is null and document_retry.mode is not null then millrace.document_choices(x.choices || jsonb_build_object('mode', document_retry.mode)) else x.choices end, reason = null, sentence = null, finished_at = null,
           pages_done = (select count(*) from millrace.document_page p where p.document = d.id and p.status = 'done'),
           pages_failed = (select count(*) from millrace.document_page p where p.document = d.id and p.status = 'failed'),
           cached = (select count(*) from millrace.document_page p where p.document = d.id and p.cached), changed_at = millrace.now()
     where x.id = d.id returning x.* into d;
    update millrace.document x
       set job = (millrace.enqueue_one('document.receive', jsonb_build_object('document', d.id, 'round', d.round), 'documents', 3, null, null, 'skip', null, d.tenant, null, '{}',
               '{}', '{}', caller => document_retry.caller)).id
     where x.id = d.id;
    perform millrace.document_changed(d.id, 'updated');
    return true;
end $$;
select millrace.door_is('documents', 'document_retry', 'client, worker, operator', 'tenant document',
    'Tries a failed document, or pages of it, again.', words => '{"mode": ["skip", "force", "redo"]}');
