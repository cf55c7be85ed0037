-- Contents by their hash, and who refers to them. The bytes lie here or in a directory.

create sequence millrace.blob_upload_seq;

create table millrace.blob (
    id bytea primary key,                                 -- the SHA-256 of the content
    size bigint not null,
    upload bigint unique,                                 -- where its pieces lie; null: not here
    stored_at timestamptz not null,
    touched_at timestamptz not null,                      -- when it was last put, or read: a sweep waits from here
    constraint an_id_is_a_hash check (octet_length(id) = 32),
    constraint a_size_is_no_less_than_none check (size >= 0)
);

create table millrace.blob_reference (
    blob bytea not null references millrace.blob,
    owner text not null,
    at timestamptz not null,
    primary key (blob, owner),
    constraint an_owner_is_named check (length(owner) between 1 and 256)
);

-- A put that has not ended, or never will.
create table millrace.blob_upload (
    id bigint primary key,
    at timestamptz not null
);

-- Bytes that are compressed already, as documents and pictures are, gain nothing by another try.
create table millrace.blob_piece (
    upload bigint not null,
    n int not null,
    bytes bytea not null,
    primary key (upload, n)
);
alter table millrace.blob_piece alter column bytes set storage external;
