-- What a run leaves beside its end: its traces. All of it is cold: no enqueue and no claim touches it, and a finish only where there
-- is a result.

-- A step's value, recorded once under a live lease; whoever runs the job again is given it.
create table millrace.step (
    job bigint not null,
    name text not null,
    value jsonb not null,
    session bigint not null,                              -- the token that recorded it
    number bigint not null,
    attempt smallint not null,
    at timestamptz not null,
    primary key (job, name),
    constraint a_step_name_is_short check (length(name) between 1 and 128)
);

-- How far a job has come, as its run said last, and how much it has logged. The one that is updated: half-filled pages and no index
-- but its key keep a row's versions on one page. No claim reads it, so a pinned horizon slows reports alone.
create table millrace.progress (
    job bigint primary key,
    session bigint,                                       -- the token that reported it; null: nothing but lines so far
    number bigint,
    fraction float8,
    stage text,
    note text,
    at timestamptz,
    lines bigint not null default 0,                      -- ever written: the first line kept says by its number how many were cut
    bytes bigint not null default 0,
    constraint a_fraction_is_one check (fraction between 0 and 1)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

create table millrace.log_line (
    job bigint not null,
    n bigint not null,                                    -- counted from 1 for each job
    at timestamptz not null,
    level smallint not null,
    session bigint not null,                              -- the token of the run that said it, live or not
    number bigint not null,
    attempt smallint not null,
    line text not null,
    primary key (job, n),
    constraint a_level_is_known check (level between 0 and 3)
);

create table millrace.result (
    job bigint primary key,
    value jsonb not null
);

-- How far maintenance has walked through each of these tables, looking for jobs that are gone.
create table millrace.trace_sweep (
    of text primary key,
    upto bigint not null default 0
);
insert into millrace.trace_sweep (of) values ('step'), ('progress'), ('log_line'), ('result');

-- Both take a result now.
drop function if exists millrace.complete(text);
drop function if exists millrace.finish(
    bigint, bigint[], bigint[], smallint[], int[], int[], smallint[], smallint[], int[], bigint[], bigint[], int[], text[], float8[], bigint[],
    bigint[], bigint[]);
