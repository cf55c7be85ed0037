-- What may be chosen for a document: how its pages are read, and what its copy is. Documents that a scan is split into.

-- Only what differs from the defaults, which are in the function document_choices.
alter table millrace.document add column choices jsonb not null default '{}';
-- The document that this one is a part of, and its first and last page there.
alter table millrace.document add column parent uuid;
alter table millrace.document add column parent_pages int4range;
create index document_parent on millrace.document (parent) where parent is not null;

-- A page may be read in another way than its document.
alter table millrace.document_page add column mode text;
alter table millrace.document_page add constraint a_page_has_a_known_mode check (mode in ('skip', 'force', 'redo')) not valid;
alter table millrace.document_page validate constraint a_page_has_a_known_mode;
-- The models it was read with, where they were found and not given.
alter table millrace.document_page add column languages text[];

alter table millrace.document drop constraint a_document_has_a_known_stage;
alter table millrace.document add constraint a_document_has_a_known_stage check (stage in ('receive', 'sniff', 'inspect', 'classify', 'split', 'raster', 'orient',
    'ocr', 'assemble', 'preview', 'report', 'publish', 'completed', 'failed')) not valid;
alter table millrace.document validate constraint a_document_has_a_known_stage;

alter table millrace.document_output drop constraint an_output_is_of_a_known_kind;
alter table millrace.document_output add constraint an_output_is_of_a_known_kind check (kind in ('pdf', 'report', 'preview', 'markdown', 'hocr', 'alto')) not valid;
alter table millrace.document_output validate constraint an_output_is_of_a_known_kind;

-- What a tenant's documents are given where they say nothing.
create table millrace.document_default (
    tenant text primary key,
    options jsonb not null,
    changed_at timestamptz not null,
    changed_by text not null
);

-- Its result has a column more.
drop function if exists millrace.document_take(text, uuid, int, int);
-- It has a parameter more.
drop function if exists millrace.document_list(text, text, text, timestamptz, text, int, text, millrace.caller_name);

-- What a copy is beside its bytes: its format, pages that became pictures, sizes of pictures before and after.
alter table millrace.document_output add column about jsonb;
-- It takes a mode more.
drop function if exists millrace.document_retry(uuid, int[], text, millrace.caller_name);
