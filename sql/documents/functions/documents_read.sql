-- Reading documents: views, text, search, the feed.

create or replace view millrace.documents as
select d.id, d.title, d.mime_type, d.size, encode(d.blob, 'hex') as sha256, d.lesson_id, d.tenant, d.owner, d.status, d.stage, d.pages, d.pages_done, d.pages_failed, d.cached,
       d.reason, d.signed, d.languages, d.outputs, d.created_at, d.finished_at, d.parent
  from millrace.document d;
select millrace.view_is('documents', 'documents', 'worker, operator');

create or replace view millrace.document_pages as
select p.document, p.page, p.status, p.stage, p.reason, p.words, p.confidence, p.rotation, p.dpi, p.cpu_ms, p.cached, p.mode
  from millrace.document_page p;
select millrace.view_is('documents', 'document_pages', 'worker, viewer');

-- One document, if the caller may see it.
create or replace function millrace.document(id uuid, actor text default null, caller millrace.caller_name default current_user)
returns setof millrace.documents
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.document_actor(document.actor, document.caller);
begin
    return query select v.* from millrace.documents v join millrace.document d on d.id = v.id
      where d.id = document.id and millrace.document_sees(d, me, document.caller);
end $$;
select millrace.door_is('documents', 'document', 'client, worker', 'tenant document', 'One document.');

-- The newest first, after `after`.
create or replace function millrace.document_list(
    status text default null, lesson_id text default null, tenant text default null, since timestamptz default null, after text default null, page int default 50,
    actor text default null, parent uuid default null, caller millrace.caller_name default current_user
) returns setof millrace.documents
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.document_actor(document_list.actor, caller => document_list.caller);
    last_seq bigint;
    shown millrace.documents;
    size bigint;
    taken bigint := 0;
begin
    if document_list.page is null or document_list.page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 documents', 'page');
    end if;
    if document_list.after is not null then
        select d.seq into last_seq from millrace.document d where d.id::text = document_list.after;
        if not found then
            perform millrace.refuse(format('there is no document %s', left(document_list.after, 60)), 'after', null, 'P0002', 'not_found');
        end if;
    end if;
    for shown in
        select v.* from millrace.document d join millrace.documents v on v.id = d.id
         where (document_list.status is null or d.status = document_list.status) and (document_list.lesson_id is null or d.lesson_id = document_list.lesson_id)
           and (document_list.tenant is null or d.tenant = document_list.tenant) and (document_list.since is null or d.created_at >= document_list.since)
           and (document_list.parent is null or d.parent = document_list.parent)
           and (last_seq is null or d.seq < last_seq) and millrace.document_sees(d, me, caller => document_list.caller)
         order by d.seq desc limit document_list.page
    loop
        size := octet_length(shown::text);
        exit when not millrace.page_takes('document_list', taken, size);
        taken := taken + size;
        return next shown;
    end loop;
end $$;
select millrace.door_is('documents', 'document_list', 'client, worker', 'actor person', 'Documents, newest first.',
    words => '{"status": ["uploading", "processing", "completed", "failed", "deleted"]}');

-- All that is known of a document, as `documents show` prints it.
create or replace function millrace.document_story(the_id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select to_jsonb(v) || jsonb_build_object('policy', d.policy, 'dpi', d.dpi, 'sentence', d.sentence, 'encrypted', d.encrypted, 'active', coalesce(d.inspection -> 'active', '[]'),
        'cpu_ms', d.cpu_ms, 'round', d.round, 'job', d.job, 'choices', d.choices,
        'parts', (select coalesce(jsonb_agg(jsonb_build_object('id', x.id, 'title', x.title, 'status', x.status, 'first', lower(x.parent_pages), 'last', upper(x.parent_pages) - 1)
                                            order by x.parent_pages), '[]') from millrace.document x where x.parent = d.id),
        'made', (select coalesce(jsonb_agg(jsonb_build_object('kind', o.kind, 'blob', encode(o.blob, 'hex'), 'size', o.size, 'about', o.about) order by o.kind), '[]')
                   from millrace.document_output o where o.document = d.id),
        'page', (select coalesce(jsonb_agg(to_jsonb(p) - 'document' || jsonb_build_object('sentence', x.sentence, 'languages', x.languages) order by p.page), '[]')
                   from millrace.document_pages p join millrace.document_page x on x.document = p.document and x.page = p.page where p.document = d.id))
      from millrace.documents v join millrace.document d on d.id = v.id where d.id = the_id
$$;
select millrace.door_is('documents', 'document_story', 'worker, operator', 'staff');

-- The pages that have changed since; watchers call it repeatedly. The returned clock is for the next call.
create or replace function millrace.document_progress(the_id uuid, since timestamptz default null) returns table (page int, status text, reason text, words int, at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select p.page, p.status, p.reason, p.words, p.changed_at from millrace.document_page p
     where p.document = the_id and (since is null or p.changed_at > since) order by p.changed_at, p.page limit 1000
$$;
select millrace.door_is('documents', 'document_progress', 'worker', 'staff');

create or replace function millrace.document_output_of(the_id uuid, the_kind text) returns table (blob bytea, size bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select o.blob, o.size from millrace.document_output o where o.document = the_id and o.kind = the_kind
$$;
select millrace.door_is('documents', 'document_output_of', 'worker, operator', 'staff');

-- A link to the document, or to one of its outputs, for an app that opens it on a phone. The link is all that is needed, so it expires by
-- itself, after a day at most.
create or replace function millrace.document_link(
    id uuid, kind text default 'pdf', valid interval default '1 hour', actor text default null, caller millrace.caller_name default current_user
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.document_actor(document_link.actor, caller => document_link.caller);
    d millrace.document;
    content bytea;
    the_type text := case kind when 'original' then null when 'preview' then 'image/png' when 'markdown' then 'text/markdown; charset=utf-8'
        when 'hocr' then 'application/xhtml+xml' when 'alto' then 'application/xml' else 'application/pdf' end;
begin
    if kind is null or kind not in ('original', 'pdf', 'preview', 'report', 'markdown', 'hocr', 'alto') then
        perform millrace.refuse('kind is not known', 'kind', 'Give original, pdf, preview, report, markdown, hocr or alto.');
    end if;
    if valid is null or valid not between interval '1 minute' and interval '1 day' then
        perform millrace.refuse('valid is out of range', 'valid', 'Give 1 minute to 1 day.');
    end if;
    select x.* into d from millrace.document x where x.id = document_link.id and millrace.document_sees(x, me, caller => document_link.caller);
    if not found then
        perform millrace.refuse('there is no such document', 'id', null, 'P0002', 'not_found');
    end if;
    if kind = 'original' then
        content := d.blob;
        the_type := case when d.mime_type in ('application/pdf', 'image/png', 'image/jpeg', 'image/tiff', 'image/heic', 'image/avif', 'image/gif', 'image/bmp', 'image/webp', 'image/jp2') then d.mime_type else 'application/octet-stream' end;
    else
        select o.blob into content from millrace.document_output o where o.document = d.id and o.kind = document_link.kind;
    end if;
    if content is null then
        perform millrace.refuse(format('the document has no %s now', kind), 'kind', 'Its status says whether it is still being read, its outputs which files are made.',
            '55000', 'conflict');
    end if;
    return millrace.blob_link(content, the_type,
        left(coalesce(nullif(btrim(d.title), ''), 'document'), 100) || case the_type when 'application/pdf' then case when d.title ~* '[.]pdf$' then '' else '.pdf' end
            when 'image/png' then case when d.title ~* '[.]png$' then '' else '.png' end else case kind when 'markdown' then '.md' when 'hocr' then '.hocr' when 'alto' then '.alto.xml'
            else '' end end, valid, 'document:' || d.id || case kind when 'original' then '' else ':' || kind end);
end $$;
select millrace.door_is('documents', 'document_link', 'client, worker', 'tenant document',
    'A signed link to a file of a document.',
    words => '{"kind": ["original", "pdf", "preview", "report", "markdown", "hocr", "alto"]}',
    who_may => array['get a link to one of their documents: itself, staff']);

-- The pages that have been read so far, from first to last, with a form feed between them. At most 1 MiB, or a single page; staff gets 100 MB.
create or replace function millrace.document_text(id uuid, first int default 1, last int default null, actor text default null, caller millrace.caller_name default current_user) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.document_actor(document_text.actor, document_text.caller);
    d millrace.document;
    most bigint := case when millrace.is_staff(document_text.caller) then 100000000 else (select b.most from millrace.answer_bounds() b where b.door = 'document_text') end;
    total bigint;
    fits int;
    pages int;
begin
    select * into d from millrace.document x where x.id = document_text.id;
    if not found or not millrace.document_sees(d, me, document_text.caller) then
        perform millrace.refuse(format('there is no document %s', document_text.id), 'id', null, 'P0002', 'not_found');
    end if;
    select max(x.total), max(x.page) filter (where x.total <= most), count(*) into total, fits, pages
      from (select c.page, sum(octet_length(c.text)) over (order by c.page) as total from millrace.document_content c
             where c.document = d.id and c.page >= coalesce(document_text.first, 1) and (document_text.last is null or c.page <= document_text.last)) x;
    if total > most and pages > 1 then
        perform millrace.refuse(format('the text of these %s pages takes %s bytes, more than the %s allowed', pages, total, most), 'last',
            format('Ask for it in parts, starting with the pages up to %s.', coalesce(fits, coalesce(document_text.first, 1))), '53400', 'too_large');
    end if;
    return (select string_agg(c.text, chr(12) order by c.page) from millrace.document_content c
             where c.document = d.id and c.page >= coalesce(document_text.first, 1) and (document_text.last is null or c.page <= document_text.last));
end $$;
select millrace.door_is('documents', 'document_text', 'client, worker', 'tenant document',
    'The text of a document''s pages.');

-- The query in every text configuration, for the index; each page is then matched in its own.
create or replace function millrace.document_query(query text) returns tsquery
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    whole tsquery := websearch_to_tsquery('simple', query);
    one text;
begin
    foreach one in array array['english', 'german', 'french', 'spanish', 'italian', 'portuguese', 'dutch', 'danish', 'swedish', 'norwegian', 'finnish', 'russian', 'hungarian',
        'romanian', 'turkish'] loop
        if numnode(websearch_to_tsquery(one::regconfig, query)) > 0 then
            whole := whole || websearch_to_tsquery(one::regconfig, query);
        end if;
    end loop;
    return whole;
end $$;

-- Where the words stand that a highlight marks: left, top, right and bottom, as parts of the page's width and height, from the top. Of a word that
-- a hyphen parts these are both parts, of one in a code the code. A path with a pattern looks at the words without taking them apart.
create or replace function millrace.document_boxes(content jsonb, highlight text) returns jsonb
language sql immutable as $$
    with marked as materialized (
        select array_agg(distinct lower(m[1])) as words,
               string_agg(distinct regexp_replace(lower(m[1]), '[^[:alnum:]]', '.', 'g'), '|') as pattern
          from regexp_matches(highlight, '⟦([^⟧]+)⟧', 'g') m
    ), line as materialized (
        select l.n, l.line -> 'words' as words
          from jsonb_path_query(case when jsonb_path_exists(content, E'$.blocks[*].lines[*] ? (@.words[last].text like_regex "[-\\u00AD\\u2010]$")') then content else '{}' end,
                   '$.blocks[*].lines[*]') with ordinality l(line, n)
    ), box as (
        select jsonb_path_query(content, format('$.blocks[*].lines[*].words[*] ? (@.text like_regex %s flag "i").box',
                   to_json('^[^[:alnum:]]*(' || m.pattern || ')[^[:alnum:]]*$'))::jsonpath) as box from marked m where m.pattern <> ''
        union all
        select unnest(array[l.words -> -1 -> 'box', after.words -> 0 -> 'box'])
          from line l join line after on after.n = l.n + 1, marked m
         where right(l.words -> -1 ->> 'text', 1) in ('-', E'\u00AD', E'\u2010')
           and regexp_replace(lower(left(l.words -> -1 ->> 'text', -1) || (after.words -> 0 ->> 'text')), '^[^[:alnum:]]+|[^[:alnum:]]+$', '', 'g') = any(m.words)
        union all
        select jsonb_path_query(content, format('$.codes[*] ? (@.text like_regex %s flag "i").box', to_json(m.pattern))::jsonpath) from marked m where m.pattern <> ''
    )
    select coalesce(jsonb_agg(jsonb_build_array(round(f.x / f.width, 4), round(f.y / f.height, 4), round(f.right / f.width, 4), round(f.bottom / f.height, 4))
                              order by f.y, f.x), '[]')
      from (select (b.box ->> 'left')::numeric as x, (b.box ->> 'top')::numeric as y, (b.box ->> 'right')::numeric as right, (b.box ->> 'bottom')::numeric as bottom,
                   nullif((content ->> 'width')::numeric, 0) as width, nullif((content ->> 'height')::numeric, 0) as height
              from box b where b.box is not null order by 2, 1 limit 20) f
$$;

-- Words, "phrases", or, -without, as people write them. The newest document first, or with `sort` the page that fits best; matches stand between
-- ⟦ and ⟧, and `boxes` has their places on the page. `next` of the last row is the `after` of the next call.
create or replace function millrace.document_search(
    query text, tenant text default null, after text default null, page int default 50, actor text default null, sort text default 'newest',
    caller millrace.caller_name default current_user
) returns table (document uuid, number int, title text, lesson_id text, highlight text, next text, rank real, boxes jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.document_actor(document_search.actor, caller => document_search.caller);
    is_ranked boolean := document_search.sort = 'rank';
    place text[] := regexp_match(document_search.after, case when is_ranked then E'^(\\d(?:[.]\\d{1,12})?(?:e-\\d{1,2})?)/(\\d{1,18})/(\\d{1,9})$'
        else E'^()(\\d{1,18})/(\\d{1,9})$' end);
    size bigint;
    taken bigint := 0;
begin
    if document_search.page is null or document_search.page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 results', 'page');
    end if;
    if document_search.query is null or length(document_search.query) not between 1 and millrace.most('query') then
        perform millrace.refuse('the query is empty or too long', 'query', 'Give 1 to 1000 characters.');
    end if;
    if document_search.sort is null or document_search.sort not in ('newest', 'rank') then
        perform millrace.refuse('sort is not known', 'sort', 'Give newest or rank.');
    end if;
    if document_search.after is not null and place is null then
        perform millrace.refuse('after is malformed', 'after', 'Give the next of the last row, with the same sort.');
    end if;
    for document, number, title, lesson_id, highlight, next, rank, boxes in
        with matching as materialized (
            select c.document, c.page, c.config, d.seq, d.title, d.lesson_id, d.tenant, d.caller, d.owner, d,
                   -- Of two pages with as many of the words the shorter one fits better.
                   case when is_ranked then ts_rank(c.search, websearch_to_tsquery(c.config::regconfig, document_search.query), 1) else 0 end as fit
              from millrace.document_content c join millrace.document d on d.id = c.document
             where c.search @@ millrace.document_query(document_search.query)
               and c.search @@ websearch_to_tsquery(c.config::regconfig, document_search.query)
               and (document_search.tenant is null or c.tenant = document_search.tenant)
        ), shown as (
            select * from matching f
             where (place is null or (-f.fit, -f.seq, f.page) > (-(coalesce(nullif(place[1], ''), '0')::real), -(place[2]::bigint), place[3]::int))
               and millrace.document_sees(f.d, me, caller => document_search.caller)
             order by f.fit desc, f.seq desc, f.page limit document_search.page
        )
        select s.document, s.page, s.title, s.lesson_id, h.highlight, case when is_ranked then s.fit || '/' else '' end || s.seq || '/' || s.page,
               case when is_ranked then s.fit end, millrace.document_boxes(c.content, h.highlight)
          from shown s join millrace.document_content c on c.document = s.document and c.page = s.page
         cross join lateral (select ts_headline(s.config::regconfig, millrace.document_joined(left(c.text, 100000)) || millrace.document_code_texts(c.content),
                   websearch_to_tsquery(s.config::regconfig, document_search.query),
                   'StartSel=⟦, StopSel=⟧, MaxFragments=2, MinWords=5, MaxWords=18, FragmentDelimiter=" … "') as highlight offset 0) h
         order by s.fit desc, s.seq desc, s.page limit document_search.page   -- with a limit no headline is made before it is wanted
    loop
        size := octet_length(row(document, number, title, lesson_id, highlight, next, rank, boxes)::text);
        exit when not millrace.page_takes('document_search', taken, size);
        taken := taken + size;
        return next;
    end loop;
end $$;
select millrace.door_is('documents', 'document_search', 'client, worker', 'actor person',
    'Searches the text of documents.',
    words => '{"sort": ["newest", "rank"]}');

-- As with events: readers number what was committed, one reader at a time.
create or replace function millrace.document_changes_number() returns void
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    if exists (select from millrace.document_change c where c.seq is null) and millrace.turn_try('document changes') then
        update millrace.document_change c set seq = n.seq
          from (select o.place, nextval('millrace.document_change_seq') as seq
                  from (select x.place from millrace.document_change x where x.seq is null order by x.place limit 10000) o) n
         where c.place = n.place;
    end if;
end $$;

create or replace function millrace.documents_changes(since bigint default 0, page int default 50)
returns table (seq bigint, at timestamptz, id uuid, change text, data jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    if page is null or page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 changes', 'page');
    end if;
    perform millrace.document_changes_number();
    return query select c.seq, c.at, c.document, c.change, c.data from millrace.document_change c where c.seq > coalesce(since, 0) order by c.seq limit page;
end $$;
select millrace.door_is('documents', 'documents_changes', 'worker', 'staff');

-- The same for who may see the documents: of a lesson, of a tenant, or of both; without either, of the actor's own. Each case reads its index
-- from `since` on, and what the reader may see is part of what it reads by. Plans are made for each call: one for all lessons walks over every change.
create or replace function millrace.document_feed(
    lesson_id text default null, tenant text default null, since bigint default 0, page int default 50, actor text default null,
    caller millrace.caller_name default current_user
) returns table (seq bigint, at timestamptz, id uuid, change text, data jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
    me text := millrace.document_actor(document_feed.actor, caller => document_feed.caller);
    own_tenant text := case when not millrace.is_staff(document_feed.caller) then millrace.caller_tenant(document_feed.caller) end;
    of_tenant text := coalesce(document_feed.tenant, own_tenant);
    sees_all boolean := me is null or coalesce(millrace.claims(document_feed.caller) ->> 'tenant', '') <> '';
    behind bigint := coalesce(document_feed.since, 0);
begin
    if document_feed.page is null or document_feed.page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 changes', 'page');
    end if;
    if length(document_feed.lesson_id) not between 1 and millrace.most('name') or document_feed.lesson_id ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the lesson_id is empty, too long, or has control characters', 'lesson_id', 'Give 1 to 128 characters, or null.');
    end if;
    if millrace.is_no_tenant(document_feed.tenant) or document_feed.tenant ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the tenant is empty, too long, or has control characters', 'tenant', 'Give 1 to 128 characters, or null.');
    end if;
    if document_feed.lesson_id is null and document_feed.tenant is null and me is null then
        perform millrace.refuse('neither a lesson, nor a tenant, nor an actor is given', 'lesson_id', 'Give one of them; documents_changes has all changes.');
    end if;
    perform millrace.document_changes_number();
    if of_tenant <> own_tenant then                       -- another's: nothing, as in document_list
        return;
    end if;
    if (document_feed.lesson_id is null and document_feed.tenant is null) or not sees_all then
        return query
            select x.seq, x.at, x.document, x.change, x.data from (
                (select c.* from millrace.document_change c join millrace.document d on d.id = c.document
                  where c.owner = me and c.seq > behind and (document_feed.lesson_id is null or c.lesson_id = document_feed.lesson_id)
                    and (of_tenant is null or c.tenant = of_tenant or (c.tenant is null and document_feed.tenant is null)) and millrace.document_sees(d, me, caller => document_feed.caller)
                  order by c.seq limit document_feed.page)
                union all
                (select c.* from millrace.document_change c join millrace.document d on d.id = c.document
                  where c.lesson_id = document_feed.lesson_id and c.owner is null and c.seq > behind
                    and (of_tenant is null or c.tenant = of_tenant) and millrace.document_sees(d, me, caller => document_feed.caller)
                  order by c.seq limit document_feed.page)
                union all
                (select c.* from millrace.document_change c join millrace.document d on d.id = c.document
                  where document_feed.lesson_id is null and c.tenant = document_feed.tenant and c.owner is null and c.seq > behind
                    and millrace.document_sees(d, me, caller => document_feed.caller)
                  order by c.seq limit document_feed.page)
            ) x order by x.seq limit document_feed.page;
    elsif document_feed.lesson_id is not null then
        return query
            select c.seq, c.at, c.document, c.change, c.data from millrace.document_change c join millrace.document d on d.id = c.document
             where c.lesson_id = document_feed.lesson_id and c.seq > behind and (of_tenant is null or c.tenant = of_tenant)
               and millrace.document_sees(d, me, caller => document_feed.caller)
             order by c.seq limit document_feed.page;
    else
        return query
            select c.seq, c.at, c.document, c.change, c.data from millrace.document_change c join millrace.document d on d.id = c.document
             where c.tenant = document_feed.tenant and c.seq > behind and millrace.document_sees(d, me, caller => document_feed.caller)
             order by c.seq limit document_feed.page;
    end if;
end $$;
select millrace.door_is('documents', 'document_feed', 'client, worker', 'actor person',
    'What has happened to documents since a position.',
    who_may => array['see what happens to their documents: itself, staff']);

-- Kept for 14 days, as events are.
create or replace function millrace.documents_expire(most int default 20000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    gone bigint;
begin
    delete from millrace.document_change c
     where c.ctid = any (array(select x.ctid from millrace.document_change x where x.at < millrace.now() - interval '14 days' order by x.at limit most));
    get diagnostics gone = row_count;
    return gone;
end $$;

-- The documents' part of status.
create or replace function millrace.document_state(out processing bigint, out waiting_pages bigint, out failed_today bigint, out oldest timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
    select count(*), min(x.created_at) into processing, oldest from (select d.created_at from millrace.document d where d.status = 'processing' limit 10000) x;
    waiting_pages := (select count(*) from (select from millrace.document_page p where p.status in ('waiting', 'running') limit 100000) x);
    failed_today := (select count(*) from (select d.status, d.finished_at from millrace.document d order by d.seq desc limit 10000) x
                      where x.status = 'failed' and x.finished_at > millrace.now() - interval '1 day');
end $$;
select millrace.door_is('documents', 'document_state', 'worker, viewer', 'staff');

-- What status says of this room: see room_states.
create or replace function millrace.document_status_part() returns jsonb
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select to_jsonb(s) from millrace.document_state() s
$$;
