-- What has come by a link so far, where it is put in parts: each is a blob of its own until all of them have come.
create table millrace.upload_part (
    upload uuid not null references millrace.upload on delete cascade,
    n int not null,
    place bigint not null,                                -- where its bytes belong
    size bigint not null,
    blob bytea not null,                                  -- kept as `part:<upload>`
    primary key (upload, n),
    constraint a_part_has_bytes check (n > 0 and place >= 0 and size > 0)
);
