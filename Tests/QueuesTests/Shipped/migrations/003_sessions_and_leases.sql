-- Who runs jobs, and what they hold.

-- One row per living worker session, immutable: a lease refers to it, so that nothing can be claimed once it is gone.
create table millrace.session (
    id bigint primary key,
    name text not null,
    host text not null,
    pid int not null,
    version text not null,
    started_at timestamptz not null,
    queues text[],                                        -- null: all
    kinds int[] not null,
    slots int not null,
    direct boolean not null                               -- it holds its session lock on a direct connection
);

-- What it says every two seconds; apart from session, so that a lease's reference check walks over no old beats.
create table millrace.beat (
    session bigint primary key references millrace.session on delete cascade,
    beat bigint not null default 0,
    at timestamptz not null,
    state text not null default 'working',
    running int not null default 0,
    waiting int not null default 0,                       -- claimed, not started
    stuck int not null default 0,
    constraint a_worker_works_or_drains check (state in ('working', 'draining', 'cut off'))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- The log of sessions: names for the history.
create table millrace.process (
    session bigint primary key,
    name text not null,
    host text not null,
    pid int not null,
    version text not null,
    started_at timestamptz not null,
    ended_at timestamptz,
    ending text,
    constraint an_ended_process_says_how check ((ended_at is null) = (ending is null))
);

-- One row per claimed batch, inserted and deleted, never updated. number: low two bits the retention class, third bit a
-- lone suspect. Under a pinned horizon an update would leave a version to walk over; a row lock leaves none.
create table millrace.lease (
    session bigint not null references millrace.session,
    number bigint not null,
    at timestamptz not null,
    n int not null,
    lo bigint not null,
    hi bigint not null,
    ids bigint[] not null,
    attempts smallint[],                                  -- parallel to ids; null when all are zero
    crashes smallint[],
    primary key (session, number),
    constraint a_lease_counts_its_jobs check (n = cardinality(ids) and n > 0),
    constraint a_lease_knows_its_range check (lo <= hi),
    constraint attempts_stand_beside_ids check (attempts is null or cardinality(attempts) = n),
    constraint crashes_stand_beside_ids check (crashes is null or cardinality(crashes) = n)
) with (
    toast_tuple_target = 128, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
alter table millrace.lease alter ids set storage external;

-- Cancels that must reach a running job; workers read their own twice a second.
create table millrace.cancel (
    seq bigint not null,
    session bigint not null,
    number bigint not null,
    job bigint not null,
    at timestamptz not null,
    primary key (session, seq)
);
