-- What a key knows beyond its holder: who comes next, and how long it stays held after an end.

alter table millrace.unique_lock
    add next bigint,                                      -- the successor that waits until the holder, which runs or has run, has ended
    add due timestamptz,                                  -- its time; null: at once
    add ended boolean not null default false,             -- the holder has ended, and the key stays held: options.unique_for
    add until timestamptz,                                -- until then; once a replacement holds the key, the earliest time it may run
    add constraint a_hold_says_until_when check (not ended or until is not null),
    add constraint nobody_follows_a_hold check (not ended or next is null);
create unique index unique_lock_next on millrace.unique_lock (next) where next is not null;
create index unique_lock_until on millrace.unique_lock (until) where ended;

-- Holders that ended while somebody's open transaction had the key's row locked. A worker's flush waits for no caller: it leaves
-- a note here, and every worker looks once a second.
create table millrace.unique_ended (
    hash bytea not null,
    job bigint not null,
    primary key (hash, job)
);
