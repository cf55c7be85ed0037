-- Jobs that wait for jobs.

-- succ waits for pred. Kept as long as both jobs are, for the tree and for the results.
create table millrace.edge (
    pred bigint not null,
    succ bigint not null,
    outcome smallint,                                     -- how pred ended: 1 succeeded, 2 cancelled, 3 dead; null: it has not
    session bigint,                                       -- the run of pred that made succ, if one did:
    number bigint,                                        -- succ exists for others only once that very run has succeeded
    primary key (pred, succ),
    constraint an_outcome_is_final check (outcome between 1 and 3),
    constraint nobody_waits_for_itself check (pred <> succ),
    constraint a_maker_is_a_run check ((session is null) = (number is null))
);
create index edge_succ on millrace.edge (succ, pred);
create index edge_open on millrace.edge (succ, pred) where outcome is null;
create index edge_bad on millrace.edge (succ, pred) where outcome in (2, 3);

create table millrace.blocked (
    job bigint primary key,
    due timestamptz,                                      -- when it may run at the earliest; null: at once
    starts smallint not null,                             -- 1 when all have succeeded, 2 when all have ended, 3 when one has not succeeded
    waits boolean not null,                               -- when it cannot start any more: false it is cancelled, true it waits for a redrive
    fresh boolean not null,                               -- one it waits for may have ended beside its enqueue: to be looked at
    constraint a_start_is_known check (starts between 1 and 3)
);
create index blocked_fresh on millrace.blocked (job) where fresh;

-- Ends of jobs that others wait for, until those have been told. An end only adds a row here: it waits for nobody.
create sequence millrace.ending_seq;
create table millrace.ending (
    seq bigint primary key default nextval('millrace.ending_seq'),
    pred bigint not null,
    outcome smallint not null,                            -- as in history: 1, 2, 3, or else the run is over and the job is not
    session bigint,
    number bigint
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = off);
create index ending_pred on millrace.ending (pred);

-- How far maintenance has walked through the edges, looking for jobs that are gone.
create table millrace.edge_sweep (
    upto bigint not null
);
insert into millrace.edge_sweep values (0);
