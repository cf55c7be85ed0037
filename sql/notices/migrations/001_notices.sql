-- Notices: what people are to be told, and how each was sent.

-- What another room has sent as notices; with a type, so that one call takes many.
create type millrace.notice_to_send as (person text, kind text, key text, data jsonb, due_at timestamptz, expires_at timestamptz);

-- What a person is to be told, and each sending of it. A sending is ready when it has an address; before, it is a notice of which nobody knows
-- yet how it will be told.
create table millrace.notice (
    id uuid primary key,
    person text not null,
    kind text not null,
    key text,
    data jsonb not null,
    channels text[],
    alarm boolean not null default false,
    status text not null check (status in ('pending', 'attempting', 'accepted', 'failed', 'suppressed', 'expired', 'cancelled')),
    due_at timestamptz not null,
    expires_at timestamptz,
    created_at timestamptz not null,
    channel text,                                         -- of one sending: by which channel,
    address text,                                         -- and to which address
    parent uuid,                                          -- the notice this is one sending of, or the summary that tells of it
    provider text,
    attempts int not null default 0,
    duplicates int not null default 0,                    -- times it was sent again although an earlier time may have come through
    holder bigint,                                        -- who is at it, while attempting
    wait_until timestamptz,                               -- attempting: the end of the lease; pending: when it is tried again
    accepted_at timestamptz,
    error text,
    error_class text,
    reply text,                                           -- what the provider calls it
    mail uuid,                                            -- the message it was handed over as
    unique (person, key)
) with (fillfactor = 90);
create index notice_raw on millrace.notice (alarm, (coalesce(wait_until, due_at))) where status = 'pending' and address is null;
create index notice_ready on millrace.notice (alarm, (coalesce(wait_until, due_at))) where status in ('pending', 'attempting') and address is not null;
create index notice_of on millrace.notice (parent) where parent is not null;
create index notice_mail on millrace.notice (mail) where mail is not null;
create index notice_over on millrace.notice (due_at) where status not in ('pending', 'attempting');
create index notice_lost on millrace.notice (due_at) where alarm and status = 'failed';
-- Notices that name a sender go when the sender is erased.
create index notice_chat_sender on millrace.notice ((data ->> 'sender')) where kind = 'chat.message';

-- Each try of a sending.
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

-- What a person's apps are reached by. A token is one device's, and goes with it to the person who signs in there.
create table millrace.device (
    token text primary key,
    person text not null,
    platform text not null check (platform in ('apns', 'apns_sandbox', 'fcm')),
    app text,
    seen_at timestamptz not null
);
create index device_of on millrace.device (person);

-- A token that all workers use alike. The holder of the lease makes it, and it is sealed with what only workers know.
create table millrace.provider_token (
    name text primary key,
    sealed jsonb,
    made_at timestamptz,
    holder bigint,
    held_until timestamptz
);
