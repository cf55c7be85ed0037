-- Documents: what was handed in, its pages, and what was read on them.

create table millrace.document (
    id uuid primary key,
    seq bigint not null generated always as identity,
    title text,
    mime_type text,
    size bigint,
    blob bytea,                                           -- the original, once it is here
    source text,                                          -- where it comes from; shown to nobody, for an address may be signed
    lesson_id text,
    tenant text,
    owner text,                                           -- the person it belongs to
    caller text not null,                                 -- the role that handed it in
    status text not null,
    stage text not null,
    round int not null default 1,                         -- a retry begins another: jobs of an earlier one do nothing
    job bigint,                                           -- that receives it, or finishes it
    pages int,
    pages_done int not null default 0,
    pages_failed int not null default 0,
    cached int not null default 0,
    reason text,
    sentence text,                                        -- the reason for an operator
    signed boolean not null default false,
    encrypted boolean not null default false,
    inspection jsonb,
    languages text[] not null,
    policy text not null,
    dpi int not null,
    outputs text[] not null,
    cpu_ms bigint not null default 0,
    created_at timestamptz not null,
    changed_at timestamptz not null,
    finished_at timestamptz,
    digest bytea not null,                                -- of what was asked for: the same again, or something else
    choices jsonb not null default '{}',                  -- how its pages are read, and what its copy is; the defaults: document_choices
    parent uuid,                                          -- the document that this one is a part of,
    parent_pages int4range,                               -- and its first and last page there
    constraint a_document_has_a_known_status check (status in ('uploading', 'processing', 'completed', 'failed', 'deleted')),
    constraint a_document_has_a_known_policy check (policy in ('partial', 'strict')),
    constraint a_document_has_a_known_stage check (stage in ('receive', 'sniff', 'inspect', 'classify', 'split', 'raster', 'orient',
        'ocr', 'assemble', 'preview', 'report', 'publish', 'completed', 'failed'))
) with (fillfactor = 70);
create unique index document_seq on millrace.document (seq);
create index document_lesson on millrace.document (lesson_id, seq) where lesson_id is not null;
create index document_tenant on millrace.document (tenant, seq) where tenant is not null;
create index document_owner on millrace.document (owner) where owner is not null;
create index document_open on millrace.document (changed_at) where status = 'processing';
create index document_parent on millrace.document (parent) where parent is not null;

-- A password is here only while its document is worked on.
create table millrace.document_secret (
    document uuid primary key references millrace.document,
    password text not null
);

-- Its pages, each with how it was read.
create table millrace.document_page (
    document uuid not null references millrace.document,
    page int not null,
    status text not null,
    stage text not null,
    reason text,
    sentence text,
    words int,
    confidence real,
    rotation int,
    dpi real,
    cpu_ms int not null default 0,
    cached boolean not null default false,
    tries int not null default 0,                         -- runs that ended in what may go well another time
    job bigint,
    changed_at timestamptz not null,
    mode text,                                            -- it is read in another way than its document
    languages text[],                                     -- the models it was read with, where they were found and not given
    primary key (document, page),
    constraint a_page_has_a_known_status check (status in ('waiting', 'running', 'done', 'skipped', 'failed')),
    constraint a_page_has_a_known_mode check (mode in ('skip', 'force', 'redo'))
) with (fillfactor = 70);
create index document_page_open on millrace.document_page (document, page) where status in ('waiting', 'running');

-- What was read on a page: written once. Another page with the same picture, read the same way, takes it over by its key.
create table millrace.document_content (
    document uuid not null,
    page int not null,
    tenant text,
    key bytea,
    config text not null,                                 -- the text search configuration
    text text not null,
    content jsonb not null,                               -- words with their boxes and confidences
    search tsvector not null,
    primary key (document, page),
    foreign key (document, page) references millrace.document_page
);
create index document_content_search on millrace.document_content using gin (search);
create index document_content_key on millrace.document_content (key) where key is not null;

-- What was made of it.
create table millrace.document_output (
    document uuid not null references millrace.document,
    kind text not null,
    blob bytea not null,
    size bigint not null,
    about jsonb,                                          -- its format, pages that became pictures, sizes of pictures before and after
    primary key (document, kind),
    constraint an_output_is_of_a_known_kind check (kind in ('pdf', 'report', 'preview', 'markdown', 'hocr', 'alto'))
);

-- The feed: numbered by its reader, as events are.
create sequence millrace.document_change_seq;
create table millrace.document_change (
    place bigint generated always as identity primary key,
    seq bigint unique,
    at timestamptz not null,
    document uuid not null,
    change text not null,
    data jsonb not null,
    lesson_id text,                                       -- whose document it is of, so that each feed is read by an index
    tenant text,
    owner text,
    constraint a_change_is_known check (change in ('created', 'updated', 'deleted', 'processing_complete'))
);
create index document_change_fresh on millrace.document_change (place) where seq is null;
create index document_change_at on millrace.document_change (at);
create index document_change_own on millrace.document_change (owner, seq) where owner is not null;
create index document_change_lesson on millrace.document_change (lesson_id, seq) where lesson_id is not null;
create index document_change_tenant on millrace.document_change (tenant, seq) where tenant is not null;
-- Of nobody in particular: read by everybody who may see the lesson or the tenant.
create index document_change_lesson_all on millrace.document_change (lesson_id, seq) where lesson_id is not null and owner is null;
create index document_change_tenant_all on millrace.document_change (tenant, seq) where tenant is not null and owner is null;

-- What a tenant's documents are given where they say nothing.
create table millrace.document_default (
    tenant text primary key,
    options jsonb not null,
    changed_at timestamptz not null,
    changed_by text not null
);
