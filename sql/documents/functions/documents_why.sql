-- Why a document is not done, in the shape of millrace.why.

-- A document that is worked on: the page that it waits for, and what that page's job waits for.
create or replace function millrace.why_document(the_document uuid, depth int, the_staff boolean default false) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    d millrace.document;
    p record;
    job_id bigint;
    said jsonb;
    words text;
begin
    select x.* into d from millrace.document x where x.id = the_document and x.status = 'processing';
    if not found then
        return null;
    end if;
    select x.page, x.job, x.status, x.tries into p from millrace.document_page x where x.document = d.id and x.status in ('waiting', 'running') order by x.page limit 1;
    job_id := coalesce(p.job, d.job);
    if depth < 3 and job_id is not null then
        said := millrace.why_of(job_id, the_staff, depth + 1);
    end if;
    words := case when p.page is not null then format('document %s waits for its page %s of %s', d.id, p.page, d.pages) else format('document %s is at the stage %s', d.id, d.stage) end;
    return millrace.why_put(case when p.page is not null then 'document_page' else 'document_stage' end,
        words || case when said is not null then format(': %s', said ->> 'sentence') when p.status = 'running' then ', which is being read' else '' end,
        said ->> 'hint', jsonb_build_object('document', d.id, 'page', p.page, 'job', job_id)
            || case when said is not null then jsonb_build_object('root', coalesce(said -> 'root', jsonb_build_object('job', job_id, 'reason', said -> 'reason'))) else '{}' end,
        coalesce(said ->> 'command', format('millrace documents show %s', d.id)),
        array[words] || case when said is not null then array(select x from jsonb_array_elements_text(said -> 'chain') x where x not like 'to do: %') else '{}' end);
end $$;

create or replace function millrace.why_documents() returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    return millrace.why_document((select d.id from millrace.document d where d.status = 'processing' order by d.changed_at limit 1), 0, true);
end $$;

create or replace function millrace.document_why_queue(about jsonb) returns jsonb
language sql volatile as $$
    select case when about ->> 'queue' in ('documents', 'documents.pages') then coalesce(millrace.why_documents(), '{}') end
$$;

create or replace function millrace.document_why_ended(about jsonb) returns jsonb
language plpgsql volatile as $$
declare
    given text;
begin
    if about ->> 'kind' in ('document.receive', 'document.finish') then
        given := (select j.args ->> 'document' from millrace.job j where j.id = (about ->> 'job')::bigint);
    end if;
    return case when given ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then millrace.why_document(given::uuid, (about ->> 'depth')::int, (about ->> 'staff')::boolean) end;
end $$;

-- What collectors of metrics read of this room: see measure_rooms.
create or replace function millrace.document_measures(t timestamptz) returns table (name text, labels text[], value float8)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    return query
    select v.name, null::text[], v.n
      from (select count(*)::float8 as n, coalesce(extract(epoch from t - min(x.changed_at)), 0)::float8 as idle
              from (select o.changed_at from millrace.document o where o.status = 'processing' order by o.changed_at limit 10000) x) d
     cross join lateral (values ('documents_processing', d.n), ('documents_idle_seconds', greatest(0, d.idle)),
            ('documents_pages_waiting', (select count(*) from (select from millrace.document_page p where p.status in ('waiting', 'running') limit 10000) p)::float8)) v(name, n);
end $$;
