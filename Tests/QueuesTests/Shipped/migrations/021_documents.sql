-- Documents: what was handed in, its pages, what was read on them, and how much tenants may use.

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
    constraint a_document_has_a_known_status check (status in ('uploading', 'processing', 'completed', 'failed', 'deleted')),
    constraint a_document_has_a_known_stage check (stage in ('receive', 'sniff', 'inspect', 'classify', 'raster', 'orient', 'ocr', 'assemble', 'preview',
        'report', 'publish', 'completed', 'failed')),
    constraint a_document_has_a_known_policy check (policy in ('partial', 'strict'))
) with (fillfactor = 70);
create unique index document_seq on millrace.document (seq);
create index document_lesson on millrace.document (lesson_id, seq) where lesson_id is not null;
create index document_tenant on millrace.document (tenant, seq) where tenant is not null;
create index document_owner on millrace.document (owner) where owner is not null;
create index document_open on millrace.document (changed_at) where status = 'processing';

-- A password is here only while its document is worked on.
create table millrace.document_secret (
    document uuid primary key references millrace.document,
    password text not null
);

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
    primary key (document, page),
    constraint a_page_has_a_known_status check (status in ('waiting', 'running', 'done', 'skipped', 'failed'))
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

create table millrace.document_output (
    document uuid not null references millrace.document,
    kind text not null,
    blob bytea not null,
    size bigint not null,
    primary key (document, kind),
    constraint an_output_is_of_a_known_kind check (kind in ('pdf', 'report', 'preview'))
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
    constraint a_change_is_known check (change in ('created', 'updated', 'deleted', 'processing_complete'))
);
create index document_change_fresh on millrace.document_change (place) where seq is null;
create index document_change_at on millrace.document_change (at);

create table millrace.quota (
    tenant text not null,
    name text not null,
    allowed bigint,                                       -- null: only counted
    period text not null,
    since timestamptz not null,                           -- when the period began that `used` is of
    used numeric not null,
    warned int not null,                                  -- 0, 80 or 100: told of in this period
    primary key (tenant, name),
    constraint a_quota_has_a_known_name check (name in ('documents', 'pages', 'bytes', 'cpu_seconds')),
    constraint a_quota_has_a_known_period check (period in ('day', 'week', 'month', 'year'))
) with (fillfactor = 50);
