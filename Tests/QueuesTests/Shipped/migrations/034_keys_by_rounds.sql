-- A key's row goes on to another round whenever the key changes hands, and is looked for from the highest: what an old snapshot keeps of it lies
-- below. Its holder needs no index any more.
alter table millrace.unique_lock
    add round bigint not null default 1,
    drop constraint unique_lock_pkey,
    add primary key (hash, round),
    set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
drop index if exists millrace.unique_lock_job;
-- That there is one row for a key, at whatever round. Comes and goes with it.
create table millrace.unique_key (
    hash bytea primary key
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
insert into millrace.unique_key select hash from millrace.unique_lock;
-- Whoever replaces a waiting job asks whether a cancel speaks of it.
create index cancel_job on millrace.cancel (job);
-- A replacement names the holder that it has found, an end says whether the key goes for good, and who lets go of keys how far it has come: these
-- functions are made anew. Nobody outside the schema calls them.
drop function if exists millrace.unique_replace(bytea, bigint, int, int, int, timestamptz, jsonb, text, int, text[], jsonb, jsonb);
drop function if exists millrace.unique_end(bigint[], boolean);
drop function if exists millrace.unique_expire(int);
