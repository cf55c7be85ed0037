-- Subscriptions: what customers have bought.

-- Plans with their quotas.
create table millrace.subscription_plan (
    name text primary key,
    title text,                                           -- what people read; null: the name
    rank int not null,                                    -- of an account's plans the one with the highest rank counts
    quotas jsonb not null,                                -- {"pages": 1000}; a quota without an entry has no bound
    period text not null,
    grace interval not null,                              -- how long it lasts without payment, where the store says nothing
    notice interval not null,                             -- how long before its end the person is told
    is_default boolean not null,                          -- of accounts without a subscription
    changed_at timestamptz not null,
    constraint a_plan_has_a_known_period check (period in ('day', 'week', 'month', 'year'))
);
create unique index subscription_plan_default on millrace.subscription_plan (is_default) where is_default;

-- What a store calls a plan: a price of Stripe, a product of Apple.
create table millrace.subscription_product (
    store text not null,
    product text not null,
    plan text not null references millrace.subscription_plan on delete cascade,
    primary key (store, product)
);
create index subscription_product_of on millrace.subscription_product (plan);

-- What was bought, as the store says.
create table millrace.subscription (
    id uuid primary key,
    store text not null,
    ref text not null,                                    -- the store's name for it
    person text,
    tenant text,
    is_linked boolean not null default false,             -- a back end has said whose it is; events do not change that
    product text,
    plan text,
    state text not null,
    status text,                                          -- what the store said last
    renews boolean not null default true,
    period_end timestamptz,
    grace_until timestamptz,
    revoked_at timestamptz,
    unpaid_since timestamptz,
    told_at timestamptz,                                  -- the store's time of the newest event
    next_at timestamptz,                                  -- when its state changes without an event
    notice_key text,
    created_at timestamptz not null,
    changed_at timestamptz not null,
    account text generated always as (coalesce(tenant, 'person:' || person)) stored,     -- whose quotas it sets; null: nobody knows yet
    unique (store, ref),
    constraint a_subscription_has_a_known_store check (store in ('stripe', 'apple', 'manual')),
    constraint a_subscription_has_a_known_state check (state in ('new', 'trial', 'active', 'grace', 'cancelled', 'expired', 'revoked', 'incomplete', 'paused'))
);
create index subscription_person on millrace.subscription (person) where person is not null;
create index subscription_plan_of on millrace.subscription (plan, id);
create index subscription_product_is on millrace.subscription (store, product, id);
create index subscription_next on millrace.subscription (next_at) where next_at is not null;
-- The console lists the newest first.
create index subscription_changed on millrace.subscription (changed_at, id);
create index subscription_of on millrace.subscription (account) where account is not null;

-- One row for each event, with what it says in our words. The state of a subscription is computed from all of its events, so their order of arrival
-- does not matter.
create table millrace.subscription_event (
    store text not null,
    id text not null,
    subscription uuid not null references millrace.subscription on delete cascade,
    type text not null,
    at timestamptz not null,                              -- the store's own time
    rank int not null,                                    -- between events of the same time
    item text not null,                                   -- a transaction of Apple; else the subscription
    facts jsonb not null,
    arrived_at timestamptz not null,
    primary key (store, id)
);
create index subscription_event_of on millrace.subscription_event (subscription, at, rank, id);
create index subscription_event_old on millrace.subscription_event (arrived_at);

-- Which plan an account has.
create table millrace.subscription_account (
    account text primary key,
    plan text,
    changed_at timestamptz not null
);
create index subscription_account_plan on millrace.subscription_account (plan, account);

-- Events of these are not listened to any more: their person was erased. Hashes with the salt of this database.
create table millrace.subscription_erased (
    ref bytea primary key,
    at timestamptz not null
);

-- Messages that came to a store's address and were not taken: a row for each store and reason, however many there are.
create table millrace.subscription_refusal (
    store text not null,
    why text not null,
    messages bigint not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    primary key (store, why),
    constraint a_refusal_is_of_a_known_store check (store in ('stripe', 'apple')),
    constraint a_refusal_says_why check (length(why) between 1 and 100)
);
