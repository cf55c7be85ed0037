-- Blobs: contents by their hash, who refers to them, and links to upload and download them. The bytes lie here or in a directory.

create table millrace.blob (
    id bytea primary key,                                 -- the SHA-256 of the content
    size bigint not null,
    upload bigint unique,                                 -- where its pieces lie; null: not here
    stored_at timestamptz not null,
    touched_at timestamptz not null,                      -- when it was last put, or read: a sweep waits from here
    constraint an_id_is_a_hash check (octet_length(id) = 32),
    constraint a_size_is_no_less_than_none check (size >= 0)
);

-- A blob that nobody refers to is swept.
create table millrace.blob_reference (
    blob bytea not null references millrace.blob,
    owner text not null,
    at timestamptz not null,
    primary key (blob, owner),
    constraint an_owner_is_named check (length(owner) between 1 and 256)
);

-- A put that has not ended, or never will.
create sequence millrace.blob_upload_seq;
create table millrace.blob_upload (
    id bigint primary key,
    at timestamptz not null
);

-- The bytes, in pieces. They are not compressed: documents and pictures are already.
create table millrace.blob_piece (
    upload bigint not null,
    n int not null,
    bytes bytea not null,
    primary key (upload, n)
);
alter table millrace.blob_piece alter column bytes set storage external;

-- A hash alone opens nothing: who is no staff may name a blob only where it was given to it.
create table millrace.blob_grant (
    blob bytea not null references millrace.blob on delete cascade,
    owner text,                                           -- the role; null: any role, within the tenant
    tenant text,
    at timestamptz not null,
    constraint a_grant_is_to_somebody check (owner is not null or tenant is not null)
);
create unique index blob_grant_to on millrace.blob_grant (blob, coalesce(owner, ''), coalesce(tenant, ''));

-- A link to put a blob by. It is used once: it is reserved before a byte of what comes by it is stored.
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
