-- One sending of a notice: by which channel, to which address, and what became of it.

alter table millrace.notice add column channel text, add column address text;

alter table millrace.notice
    add column parent uuid,                               -- the notice this is one sending of, or the summary that tells of it
    add column provider text,
    add column attempts int not null default 0,
    add column duplicates int not null default 0,         -- times it was sent again although an earlier time may have come through
    add column holder bigint,                             -- who is at it, while attempting
    add column wait_until timestamptz,                    -- attempting: the end of the lease; pending: when it is tried again
    add column accepted_at timestamptz,
    add column error text,
    add column error_class text,
    add column reply text,                                -- what the provider calls it
    add column mail uuid;                                 -- the message it was handed over as

-- A sending is ready when it has an address; before, it is a notice of which nobody knows yet how it will be told.
drop index millrace.notice_due;
create index notice_raw on millrace.notice (alarm, (coalesce(wait_until, due_at))) where status = 'pending' and address is null;
create index notice_ready on millrace.notice (alarm, (coalesce(wait_until, due_at))) where status in ('pending', 'attempting') and address is not null;
create index notice_of on millrace.notice (parent) where parent is not null;
create index notice_mail on millrace.notice (mail) where mail is not null;
create index notice_over on millrace.notice (due_at) where status not in ('pending', 'attempting');
create index notice_lost on millrace.notice (due_at) where alarm and status = 'failed';

create table millrace.notice_attempt (
    notice uuid not null references millrace.notice on delete cascade,
    n int not null,
    provider text not null,
    outcome text not null,
    error text,
    code text,
    at timestamptz not null,
    ms int,
    constraint a_try_has_a_known_outcome check (outcome in ('accepted', 'refused', 'gone', 'throttled', 'failed', 'unknown', 'lost'))
);
create index notice_attempt_of on millrace.notice_attempt (notice, n);

-- What a person's apps are reached by. A token is one device's, and goes with it to whoever signs in there.
create table millrace.device (
    token text primary key,
    person text not null,
    platform text not null check (platform in ('apns', 'apns_sandbox', 'fcm')),
    app text,
    seen_at timestamptz not null
);
create index device_of on millrace.device (person);

create table millrace.notice_preference (
    person text primary key,
    zone text not null,
    quiet_from time not null,
    quiet_to time not null,
    channels jsonb not null,
    locale text,
    changed_at timestamptz not null
);

-- A token that all workers use alike, made by whoever holds the lease; sealed with what only they know.
create table millrace.provider_token (
    name text primary key,
    sealed jsonb,
    made_at timestamptz,
    holder bigint,
    held_until timestamptz
);
