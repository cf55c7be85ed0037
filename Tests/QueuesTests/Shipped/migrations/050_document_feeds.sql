-- Feeds of one lesson, tenant or person read a page by index: a change says whose document it is of.
alter table millrace.document_change add column lesson_id text, add column tenant text, add column owner text;
update millrace.document_change c set lesson_id = d.lesson_id, tenant = d.tenant, owner = d.owner from millrace.document d where d.id = c.document;
create index document_change_own on millrace.document_change (owner, seq) where owner is not null;
create index document_change_lesson on millrace.document_change (lesson_id, seq) where lesson_id is not null;
create index document_change_tenant on millrace.document_change (tenant, seq) where tenant is not null;
-- Of nobody in particular: read by everybody who may see the lesson or the tenant.
create index document_change_lesson_all on millrace.document_change (lesson_id, seq) where lesson_id is not null and owner is null;
create index document_change_tenant_all on millrace.document_change (tenant, seq) where tenant is not null and owner is null;
