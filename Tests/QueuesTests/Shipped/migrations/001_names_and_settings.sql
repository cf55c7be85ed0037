-- What everything else refers to: settings, kinds, queues, and who may enqueue what.

create sequence millrace.seq;                             -- ids and places in line; cache 1: a newer transaction draws larger values

create table millrace.setting (
    name text primary key,
    value text not null
);

create table millrace.queue (
    id int generated always as identity primary key,
    name text not null unique,
    paused_at timestamptz,
    retention smallint not null default 1,                -- 0 short, 1 standard, 2 long: see retention()
    created_at timestamptz not null default clock_timestamp(),
    constraint a_queue_name_is_well_formed check (name ~ '^[A-Za-z0-9][A-Za-z0-9_./-]{0,127}$'),
    constraint a_retention_class_exists check (retention between 0 and 2)
);
create index queue_paused on millrace.queue (id) where paused_at is not null;

create table millrace.kind (
    id int generated always as identity primary key,
    name text not null unique,
    queue int references millrace.queue,                  -- where its jobs go when the caller names no queue
    constraint a_kind_name_is_well_formed check (name ~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$')
);

-- A client role may enqueue only what stands here; '*' is any.
create table millrace.client_grant (
    role text not null,
    kind text not null default '*',
    queue text not null default '*',
    granted_at timestamptz not null default clock_timestamp(),
    primary key (role, kind, queue)
);
