-- What a job's runs give out while they run: its present state, and the head of its stream of values.
create table millrace.output (
    job bigint primary key,
    state jsonb,                                          -- the last one given; null: none
    state_attempt smallint,                               -- the run that gave it
    state_at timestamptz,
    last bigint not null default 0,                       -- the number of the newest value ever published
    kept int not null default 0,                          -- how many of them are there
    bytes bigint not null default 0,                      -- and how large they are
    constraint a_state_says_when check ((state is null) = (state_at is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The values of the stream. Who publishes holds the row of output until the commit, so that numbers appear in their order and without a gap.
create table millrace.published (
    job bigint not null,
    n bigint not null,
    key text,                                             -- the handler's own: the same key again is the same value
    value jsonb not null,
    session bigint not null,                              -- the token of the run that published it
    number bigint not null,
    call bigint,                                          -- which of this run's calls it was, if it has no key
    attempt smallint not null,
    at timestamptz not null,
    primary key (job, n),
    constraint a_key_is_short check (length(key) between 1 and 512)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2);
create unique index published_key on millrace.published (job, key) where key is not null;
create unique index published_call on millrace.published (job, session, number, call) where call is not null;

insert into millrace.trace_sweep (of) values ('output'), ('published');
