-- Who is told of events by HTTP, and what became of each telling.

create table millrace.webhook (
    id uuid primary key,
    url text not null,
    types text[] not null,                                -- a * at the end stands for whatever follows
    mode text not null,
    tenant text,                                          -- null: it is told of everybody's
    handshake boolean not null,
    state text not null,
    reason text,
    since bigint not null,                                -- only events behind this one are for it
    origin text,                                          -- who has its consent
    rate int,                                             -- requests a minute of the whole fleet; null: any
    rate_at timestamptz not null,                         -- when all of the rate is free again
    blocked_until timestamptz not null,
    tries int not null default 0,                         -- handshakes that came to nothing
    failing_since timestamptz,
    succeeded_at timestamptz,
    created_at timestamptz not null,
    constraint a_target_has_a_known_mode check (mode in ('binary', 'structured', 'batch')),
    constraint a_target_has_a_known_state check (state in ('pending', 'active', 'disabled')),
    constraint a_disabled_target_says_why check (state <> 'disabled' or reason is not null),
    constraint a_rate_lets_something_through check (rate > 0)
);

-- All of them sign, until their time is over.
create table millrace.webhook_secret (
    webhook uuid not null references millrace.webhook on delete cascade,
    n int not null,
    secret jsonb not null,                                -- a text, or what a worker with keys has made of it
    until timestamptz,                                    -- null: the newest
    primary key (webhook, n)
);

-- One for each event and target, made once. While it is pending somebody may hold it, under a token and until it is due again.
create table millrace.webhook_delivery (
    webhook uuid not null references millrace.webhook on delete cascade,
    event uuid not null,
    seq bigint not null,
    state text not null,
    due_at timestamptz not null,
    token bigint,
    attempts int not null default 0,
    alone boolean not null default false,                 -- a batch with it was refused
    code int,
    error text,
    first_at timestamptz,
    done_at timestamptz,
    primary key (webhook, event),
    constraint a_delivery_has_a_known_state check (state in ('pending', 'delivered', 'failed')),
    constraint a_settled_delivery_says_when check ((state = 'pending') = (done_at is null))
);
create index webhook_delivery_due on millrace.webhook_delivery (webhook, due_at, seq) where state = 'pending';
create index webhook_delivery_event on millrace.webhook_delivery (event);
create index webhook_delivery_seq on millrace.webhook_delivery (seq);

-- How far the feed of events has been turned into deliveries.
create table millrace.webhook_feed (
    one boolean primary key default true check (one),
    seq bigint not null
);
insert into millrace.webhook_feed (seq) select coalesce(max(e.seq), 0) from millrace.event e;
