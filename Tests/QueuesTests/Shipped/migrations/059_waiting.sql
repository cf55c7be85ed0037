-- What a job waits for between two of its runs. It waits for one thing at a time. Its place is in timer; while it waits for other jobs, in
-- blocked.
create table millrace.wait (
    job bigint primary key,
    step text not null,
    what smallint not null,                               -- 1 a time, 2 a signal, 3 other jobs, 4 an answer
    name text,                                            -- of the signal
    key text,
    since timestamptz not null,
    due timestamptz,                                      -- when it goes on without what it waits for; null: never
    place timestamptz,                                    -- the time in its timer; null: it is blocked
    attempt smallint not null,
    crashes smallint not null,
    jobs bigint[]                                         -- those that it waits for
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2);
create index wait_for_signal on millrace.wait (name, key, since, job) where name is not null;

-- What was signalled, kept for who waits later.
create table millrace.signal (
    seq bigint generated always as identity primary key,
    name text not null,
    key text not null,
    id text,                                              -- the sender's own: the same id again is the same signal
    payload jsonb not null,
    to_all boolean not null,                              -- for every job that waits for it, and not for one
    owner text not null,                                  -- which jobs it may reach: see may_see
    tenant text,
    anywhere boolean not null,
    at timestamptz not null,
    expires_at timestamptz not null,
    state smallint not null default 0,                    -- 0 nobody was told yet, 1 kept, 2 taken
    taken_by bigint
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2);
create unique index signal_id on millrace.signal (owner, name, id) where id is not null;
create index signal_fresh on millrace.signal (seq) where state = 0;
create index signal_kept on millrace.signal (name, key, seq) where state < 2;
create index signal_expires on millrace.signal (expires_at);

-- Which jobs have had a signal that is for all.
create table millrace.signal_taken (
    signal bigint not null,
    job bigint not null,
    primary key (signal, job)
);

-- A question to a person, for which a job waits. Its answer is a signal with its id as the key.
create table millrace.approval (
    id uuid primary key,
    job bigint not null,
    step text not null,
    request jsonb not null,
    tenant text,
    owner text not null,
    asked_at timestamptz not null,
    due timestamptz,
    answered_at timestamptz,
    approved boolean,
    answered_by text,
    comment text,
    constraint an_answer_is_whole check ((answered_at is null) = (approved is null))
);
create unique index approval_of_step on millrace.approval (job, step);
create index approval_open on millrace.approval (asked_at, id) where answered_at is null;

insert into millrace.trace_sweep (of, upto) values ('wait', 0), ('approval', 0);
