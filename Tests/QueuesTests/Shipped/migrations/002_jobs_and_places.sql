-- The cold half, written once, and the places a waiting job can stand in.

create table millrace.job (
    id bigint not null primary key,
    kind int not null,
    queue int not null,
    lane int not null,                                    -- priority * 4 + 1: where a plain enqueue stands in ready
    max_attempts smallint,                                -- null: the worker's policy for the kind
    enqueued_at timestamptz not null,
    run_at timestamptz,                                   -- null: at once
    args jsonb not null,
    unique_hash bytea,
    unique_key text,
    limit_key text,
    tenant text,
    owner text not null,                                  -- the role that enqueued it
    tags text[],
    metadata jsonb,
    options jsonb,
    constraint a_lane_holds_a_priority check (lane between 0 and 39),
    constraint attempts_are_bounded check (max_attempts between 1 and 1000),
    constraint a_key_has_its_hash check ((unique_key is null) = (unique_hash is null))
) partition by range (id);

-- Rows that no range covers, and the few that outlive their range.
create table millrace.job_default partition of millrace.job default;
create table millrace.job_0 partition of millrace.job for values from (minvalue) to (16777216);
create table millrace.job_16777216 partition of millrace.job for values from (16777216) to (33554432);

-- Rows here are inserted and deleted, never updated. lane = priority * 4 + (0 put back, 1 normal, 2 suspect, 3 lone suspect).
create table millrace.ready (
    seq bigint not null,
    job bigint not null,
    queue int not null,
    kind int not null,
    lane int not null,
    attempt smallint not null default 0,                  -- runs that counted so far
    crashes smallint not null default 0,
    primary key (queue, lane, seq)
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
create index ready_moved on millrace.ready (job) where seq <> job;      -- plain rows are found as (queue, lane, id)

create table millrace.timer (
    due timestamptz not null,
    job bigint not null primary key,
    queue int not null,
    kind int not null,
    lane int not null,
    attempt smallint not null default 0,
    crashes smallint not null default 0
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
create index timer_due on millrace.timer (due, job);

-- Held while its job lives.
create table millrace.unique_lock (
    hash bytea primary key,
    job bigint not null
);
