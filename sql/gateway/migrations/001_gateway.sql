-- The gateway: who takes calls, how many each caller may still make, answers that are told again, and what phones did offline.

-- Gateways that are alive. Silent after 15 seconds, and gone after a day.
create table millrace.gateway (
    name text primary key,
    address text,
    version text,
    streams int not null,
    requests bigint not null,
    started_at timestamptz not null,
    beat_at timestamptz not null
) with (fillfactor = 50);

-- A bucket for each caller, address and door. After a crash all are full.
create unlogged table millrace.gateway_bucket (
    key text primary key,
    rate float8 not null,
    burst float8 not null,
    tokens float8 not null,
    want int not null,                                    -- of the last take
    given int not null,
    at timestamptz not null,
    full_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Answers to calls with an Idempotency-Key, kept for a day. Without a status: the call is not finished.
create table millrace.gateway_answer (
    person text not null,
    key text not null,
    request bytea not null,                               -- its hash
    status int,
    answer jsonb,
    at timestamptz not null,
    tenant text not null default '',                      -- '' is no tenant
    primary key (person, tenant, key)
);
create index gateway_answer_at on millrace.gateway_answer (at);

-- A person's pushes happen one after the other: each locks this row.
create table millrace.sync_person (
    person text primary key,
    pushed_at timestamptz not null
) with (fillfactor = 50);
create index sync_person_at on millrace.sync_person (pushed_at);

-- Operations of offline devices that were carried out. Kept for 90 days.
create table millrace.sync_done (
    person text not null,
    id uuid not null,
    digest bytea not null,
    device text not null,
    op text not null,
    result jsonb,
    at timestamptz not null,
    tenant text not null default '',
    primary key (person, tenant, id)
);
create index sync_done_at on millrace.sync_done (at);

-- The newest operation on each thing, so that an older one that arrives later does not undo it. The field '' stands for the thing itself.
create table millrace.sync_newest (
    person text not null,
    target bytea not null,                                -- the hash of what it is about
    field text not null,
    at timestamptz not null,
    id uuid not null,
    value jsonb,
    applied_at timestamptz not null,
    primary key (person, target, field)
);
create index sync_newest_at on millrace.sync_newest (at);

-- Devices that may push with a token of their own. The token is known by its hash alone.
create table millrace.sync_device (
    person text not null,
    device text not null,
    name text,
    token bytea not null unique,
    claims jsonb not null,
    made_at timestamptz not null,
    used_at timestamptz,
    expires_at timestamptz not null,
    primary key (person, device)
);
create index sync_device_expires on millrace.sync_device (expires_at);
