-- Operations: one action on all jobs that a filter names, at a pace, which can be undone. And the audit: what operators did.

create table millrace.operation (
    id bigint generated always as identity primary key,
    key text,                                             -- the client's own: who starts it twice starts it once
    action text not null,
    filter jsonb not null,
    args jsonb not null,
    pace int,                                             -- jobs a second; null: as fast as it goes
    state text not null default 'running',
    is_undoing boolean not null default false,
    who text not null,
    said_by text,
    bound bigint not null,                                -- only jobs up to this number: what came later is none of it
    jobs bigint not null,                                 -- what it was to reach, as counted or estimated at the start
    is_exact boolean not null,
    places text[] not null,                               -- the states still to be looked through, the present one first
    after bigint not null,                                -- and there, jobs below this number
    round smallint not null default 1,
    next_at timestamptz not null,                         -- not before this time, for the pace
    looked bigint not null default 0,
    done bigint not null default 0,
    nothing bigint not null default 0,
    refused bigint not null default 0,
    undone bigint not null default 0,
    past bigint not null default 0,
    undo_after bigint not null default 0,                 -- items up to this job have been undone
    started_at timestamptz not null,
    changed_at timestamptz not null,
    ended_at timestamptz,
    undo_by text,
    undo_said_by text,
    undo_started_at timestamptz,
    undo_ended_at timestamptz,
    tidied smallint not null default 0,                   -- 1: what undoing needs is forgotten; 2: the items too
    constraint a_state_is_known check (state in ('running', 'paused', 'finished', 'stopped', 'undoing', 'undone')),
    constraint a_pace_is_positive check (pace > 0)
) with (fillfactor = 50);
create unique index operation_key on millrace.operation (key) where key is not null;
create index operation_open on millrace.operation (next_at) where state in ('running', 'undoing');
create index operation_untidy on millrace.operation (id) where tidied < 2;

-- What an operation did to each job, and where the job stood before.
create table millrace.operation_item (
    operation bigint not null,
    job bigint not null,
    at timestamptz not null,
    outcome smallint not null,                            -- 1 done, 2 there was nothing to do, 3 refused
    reason text,
    was text,                                             -- timer, ready, parked, blocked, follows, running or ended
    seq bigint,
    queue int,
    kind int,
    lane int,
    due timestamptz,
    gate bigint,
    attempt smallint,
    crashes smallint,
    more jsonb,                                           -- its key, its flow, its ended run
    became bigint,                                        -- the place in line that the action gave it
    undo smallint,                                        -- 1 undone, 2 gone past
    undo_reason text,
    primary key (operation, job)
) with (fillfactor = 80);
create index operation_item_odd on millrace.operation_item (operation, job) where outcome <> 1 or undo = 2;

-- Everything that is known of a job whose deletion can still be undone, and the steps that a fresh retry has forgotten.
create table millrace.operation_kept (
    operation bigint not null,
    job bigint not null,
    rows jsonb not null,
    primary key (operation, job)
);

create table millrace.audit (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    who text not null,                                    -- the role, which Postgres has verified
    said_by text,                                         -- who it is as the program says, which nobody has verified
    action text not null,
    object text,
    detail jsonb
);
create index audit_at on millrace.audit (at);
create index audit_action on millrace.audit (action, id);
create index audit_who on millrace.audit (who, id);
create index audit_said_by on millrace.audit (said_by, id);
