-- A hash alone opens nothing: who is no staff may name a blob only where it was given to it. And a link is used once: it is reserved before
-- a byte of what comes by it is stored.

create table millrace.blob_grant (
    blob bytea not null references millrace.blob on delete cascade,
    owner text,                                           -- the role; null: any role, within the tenant
    tenant text,
    at timestamptz not null,
    constraint a_grant_is_to_somebody check (owner is not null or tenant is not null)
);
create unique index blob_grant_to on millrace.blob_grant (blob, coalesce(owner, ''), coalesce(tenant, ''));

-- A link to put a blob by. Links from before have none until they are used.
create table millrace.upload (
    id uuid primary key,
    owner text,                                           -- for whom it was made
    tenant text,
    expires_at timestamptz not null,
    held uuid,                                            -- the one put that goes on
    held_until timestamptz,
    used_at timestamptz,
    constraint a_hold_has_an_end check ((held is null) = (held_until is null)),
    constraint a_used_link_is_not_held check (used_at is null or held is null)
);
create index upload_expires on millrace.upload (expires_at);

-- Whoever has a blob already goes on having it: by a document, by what was made of one, by a message.
insert into millrace.blob_grant (blob, owner, tenant, at)
select distinct x.blob, x.owner, x.tenant, now()
  from (select d.blob, d.caller as owner, d.tenant from millrace.document d where d.blob is not null
        union all
        select o.blob, d.caller, d.tenant from millrace.document_output o join millrace.document d on d.id = o.document
        union all
        select decode(a ->> 'blob', 'hex'), m.owner, m.tenant
          from millrace.mail_content c join millrace.mail m on m.id = c.message cross join lateral jsonb_array_elements(c.attachments) a
         where c.attachments <> '[]') x
  join millrace.blob b on b.id = x.blob;

-- They have parameters more, with defaults: workers from before call them as they did.
drop function if exists millrace.link_key_set(bytea, text);
drop function if exists millrace.upload_link(bigint, text, interval);
drop function if exists millrace.upload_arrived(uuid, bytea);
