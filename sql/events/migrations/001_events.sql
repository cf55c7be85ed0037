-- Events: what has happened, for others to read. An outbox: a publisher's transaction adds a row to `event` and one to `event_fresh`, and
-- waits for nobody. A reader numbers the fresh ones, so that numbers grow in the order in which events came to be seen.

create sequence millrace.event_seq;
create table millrace.event (
    id uuid primary key,
    seq bigint unique,                                    -- null: nobody has read it yet
    type text not null,
    source text not null,
    subject text,
    tenant text,
    at timestamptz not null,
    owner text not null,
    data jsonb not null,
    constraint a_type_is_well_formed check (type ~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$')
);
create index event_at on millrace.event (at);

-- Rows are inserted and deleted, never updated. Its sequence has a cache of 1: who publishes after another's commit draws more.
create sequence millrace.event_fresh_seq;
create table millrace.event_fresh (
    place bigint primary key default nextval('millrace.event_fresh_seq'),
    id uuid not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = off);

-- Which types a client role may publish; '*' is any. Apart from client_grant: who may enqueue anything must not thereby speak for us.
create table millrace.event_grant (
    role text not null,
    type text not null,
    granted_at timestamptz not null default clock_timestamp(),
    primary key (role, type)
);
