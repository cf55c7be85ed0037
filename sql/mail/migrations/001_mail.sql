-- Mail: what is to be sent, what was asked of providers, and what became of it.

create table millrace.mail (
    id uuid primary key,
    seq bigint not null generated always as identity,
    kind text not null,
    status text not null,
    job bigint,
    direct boolean not null,                              -- its job came first: the arguments stand there too
    service text,
    template text,
    version int,
    locale text,
    priority text not null,
    purpose text not null,
    on_unknown text not null,
    fallback boolean not null default true,               -- false: not by way of Supabase, whose token the link would break
    receipt boolean not null,
    tenant text,
    owner text not null,
    sender text,
    domains text[] not null,                              -- of its recipients
    attempts int not null default 0,
    batch bigint,                                         -- the request it is part of, while that is not settled
    provider_message_id text,
    created_at timestamptz not null,
    scheduled_at timestamptz,
    expires_at timestamptz,
    began_at timestamptz,                                 -- its first request
    sent_at timestamptz,
    changed_at timestamptz not null,
    error text,
    error_class text,
    digest bytea not null,                                -- of what was asked for: the same again, or something else
    person text,                                          -- who reads it, where that is known: for erasing it with the person
    constraint a_message_has_a_known_status check (status in ('scheduled', 'queued', 'sending', 'unknown', 'parked', 'accepted', 'delayed',
        'delivered', 'bounced', 'complained', 'failed', 'suppressed', 'expired', 'cancelled')),
    constraint a_message_has_a_known_priority check (priority in ('low', 'normal', 'high', 'urgent')),
    constraint a_message_has_a_known_purpose check (purpose in ('transactional', 'security', 'alarm', 'marketing'))
) with (fillfactor = 80);
create unique index mail_seq on millrace.mail (seq);
create index mail_of_provider on millrace.mail (provider_message_id) where provider_message_id is not null;
create index mail_stuck on millrace.mail (changed_at) where status in ('unknown', 'parked');
create index mail_silent on millrace.mail (changed_at) where status in ('accepted', 'delayed');
create index mail_sender on millrace.mail (sender, began_at) where sender is not null;
create index mail_domains on millrace.mail using gin (domains) where began_at is not null;
create index mail_person on millrace.mail (person) where person is not null;

-- All that is about a person; erasure takes this row away.
create table millrace.mail_content (
    message uuid primary key references millrace.mail,
    recipients text[] not null,
    cc text[] not null,
    bcc text[] not null,
    reply_to text,
    subject text,
    body_text text,
    body_html text,
    data jsonb,                                           -- null once it is rendered: a token lies only in the message itself
    headers jsonb not null,
    attachments jsonb not null,                           -- {filename, content_type, blob, size, content_id}
    tags jsonb not null,
    addresses text[] not null,                            -- of all its recipients, as they are compared
    frozen_at timestamptz,                                -- from here on a repeated request has the bytes of the first
    from_address text,
    from_name text
);
create index mail_content_addresses on millrace.mail_content using gin (addresses);

-- A request of a provider: these messages in this order under this key. Retried as it is.
create table millrace.mail_batch (
    id bigint generated always as identity primary key,
    provider text not null,
    key text not null unique,
    messages uuid[] not null,
    state text not null,
    attempt int not null,
    recorded int not null,                                -- attempts whose outcome is written down
    holder bigint not null,                               -- the session of the worker that is at it
    held_until timestamptz not null,                      -- nobody else takes it before
    first_at timestamptz not null,
    constraint a_request_has_a_known_state check (state in ('open', 'settled', 'split', 'parked'))
);
create index mail_batch_open on millrace.mail_batch (held_until) where state = 'open';

-- What was answered to each request, message by message. Only ever added to.
create table millrace.mail_attempt (
    message uuid not null,
    n int not null,
    provider text not null,
    outcome text not null,
    error text,
    code text,
    batch bigint not null,
    key text not null,
    at timestamptz not null,
    ms int,
    primary key (message, n),
    constraint an_attempt_has_a_known_outcome check (outcome in ('accepted', 'refused', 'throttled', 'unknown'))
);

-- What providers and people tell of a message. message is null while nobody knows whose it is.
create table millrace.mail_note (
    id bigint generated always as identity primary key,
    message uuid,
    at timestamptz not null,
    type text not null,
    recipient text,
    data jsonb not null,
    provider text,
    provider_event text,
    provider_message_id text,
    seen_at timestamptz not null,
    unique (provider, provider_event)
);
create index mail_note_of on millrace.mail_note (message, id);
create index mail_note_stray on millrace.mail_note (provider_message_id) where message is null;

-- Addresses that are sent nothing, or nothing of a purpose.
create table millrace.mail_suppression (
    hash bytea not null,                                  -- of the address with the salt: stays when the address is erased
    purpose text not null,
    reason text not null,
    address text,
    by text not null,
    at timestamptz not null,
    primary key (hash, purpose)
);

-- Who did what: never an address. Nobody changes these rows.
create table millrace.mail_audit (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    by text not null,
    what text not null,
    message uuid,
    detail jsonb not null default '{}'
);

-- What analytics are told of mail.
create table millrace.mail_tale (
    id bigint generated always as identity primary key,
    type text not null,
    service text,
    template text,
    success boolean not null,
    at timestamptz not null,
    error text,
    constraint a_tale_has_a_known_type check (type in ('emailSent', 'emailFailed', 'serviceSwitched', 'templateLoaded'))
);
create index mail_tale_at on millrace.mail_tale (at);

-- Which service mail goes by, one row: the switch to another is told once.
create table millrace.mail_route (
    one boolean primary key default true,
    chosen text not null,
    current text not null,
    reason text,
    changed_at timestamptz not null,
    constraint there_is_one_route check (one)
);

-- The feed: numbered by its reader, as events are.
create sequence millrace.mail_change_seq;
create table millrace.mail_change (
    place bigint generated always as identity primary key,
    seq bigint unique,
    at timestamptz not null,
    message uuid not null,
    change text not null,
    data jsonb not null
);
create index mail_change_fresh on millrace.mail_change (place) where seq is null;
create index mail_change_at on millrace.mail_change (at);

create function millrace.mail_never() returns trigger
language plpgsql as $$
begin
    raise exception using errcode = '55000', message = format('%I is only ever added to', tg_table_name);
end $$;
create trigger nobody_changes_the_audit before update or delete on millrace.mail_audit for each row execute function millrace.mail_never();
create trigger nobody_empties_the_audit before truncate on millrace.mail_audit for each statement execute function millrace.mail_never();
create trigger nobody_changes_an_attempt before update or delete on millrace.mail_attempt for each row execute function millrace.mail_never();
create trigger nobody_empties_the_attempts before truncate on millrace.mail_attempt for each statement execute function millrace.mail_never();
