-- One row per ended run; dropped by partition: first the retention class, then the day the run started.
-- By start, not by end: a finish repeated across midnight must meet its own first copy in the unique index of its day.

create table millrace.history (
    id bigint not null,
    session bigint not null,                              -- the token of the run: (session, number); 0 when no worker ran it
    number bigint not null,
    started timestamptz not null,
    finished timestamptz not null,
    kind int not null,
    queue int not null,
    ms int,                                               -- how long the handler ran
    class smallint not null,
    outcome smallint not null,
    attempt smallint not null,
    crashes smallint not null,
    error text,
    constraint an_outcome_is_known check (outcome between 1 and 7),
    constraint a_failed_run_says_why check (outcome not in (3, 4, 7) or error is not null)
) partition by list (class);

create table millrace.history_short partition of millrace.history for values in (0) partition by range (started);
create table millrace.history_standard partition of millrace.history for values in (1) partition by range (started);
create table millrace.history_long partition of millrace.history for values in (2) partition by range (started);

-- What the workers counted, a row every few seconds for each queue and kind: rates without counting.
create table millrace.tally (
    at timestamptz not null,
    session bigint not null,
    queue int not null,
    kind int not null,
    succeeded int not null default 0,
    failed int not null default 0,                        -- runs that ended in a retry, in death or in a crash
    dead int not null default 0,
    cancelled int not null default 0,
    snoozed int not null default 0,
    ms bigint not null default 0
);
create index tally_at on millrace.tally (at);

-- How far the sequence had come, hourly: which ids are older than a time.
create table millrace.watermark (
    at timestamptz primary key,
    seq bigint not null
);

-- Never lose the record of a run for want of a leaf.
create table millrace.history_short_default partition of millrace.history_short default;
create table millrace.history_standard_default partition of millrace.history_standard default;
create table millrace.history_long_default partition of millrace.history_long default;
create unique index on millrace.history_short_default (id, session, number);
create unique index on millrace.history_standard_default (id, session, number);
create unique index on millrace.history_long_default (id, session, number);
