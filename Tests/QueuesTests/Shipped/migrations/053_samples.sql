-- The past: what the fleet looked like every ten seconds, and what happened. See sql/functions/operating/samples_take.sql.

-- Names in samples, so that a removed queue or an ended worker keeps its past. what: see sample_rules().
create table millrace.sample_key (
    id int generated always as identity primary key,
    what smallint not null,
    name text not null,
    detail text not null,
    queue text not null,
    seen_at timestamptz not null,
    unique (what, name, detail, queue)
);

-- The samples of the last minutes: a row for each time, with as many values for each key as its rule has columns.
create table millrace.sample_fresh (
    what smallint not null,
    at timestamptz not null,
    keys int[] not null,
    vals bigint[] not null,
    primary key (what, at)
);

-- Older ones: a row for each key and each run of `sample_slots()` times, column after column, without zeros.
create table millrace.sample_pack (
    what smallint not null,
    step int not null,
    key int not null,
    at timestamptz not null,
    body bytea not null,
    primary key (what, step, key, at)
);

-- How far each step has come, and how far within the chunk that is being packed.
create table millrace.sample_done (
    what smallint not null,
    step int not null,
    upto timestamptz not null,
    key_done int not null default 0,
    primary key (what, step)
);

-- What the next sample goes on from: one row.
create table millrace.sample_state (
    one boolean primary key default true check (one),
    tally_at timestamptz not null,
    server_started timestamptz,
    timeline int
);
insert into millrace.sample_state (tally_at) values ('-infinity');

-- What no other table remembers: pauses, rescues, restarts and failovers of the server.
create table millrace.fleet_event (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    event text not null,
    subject text not null,
    by text,
    detail text
);
create index fleet_event_at on millrace.fleet_event (at);

-- Sessions by time, for events; and how long runs took and waited, where the worker says so (see sample_times).
create index process_started on millrace.process (started_at);
create index process_ended on millrace.process (ended_at) where ended_at is not null;
create index provider_event_at on millrace.provider_event (at);
alter table millrace.tally add wait_ms bigint, add waits int, add times text;
