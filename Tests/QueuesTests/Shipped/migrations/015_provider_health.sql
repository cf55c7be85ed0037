-- How the fleet judges the providers it calls. Small tables: a row per provider and class, and one per worker beside it.

create table millrace.provider_circuit (
    provider      text not null,
    class         text not null,
    state         text not null,
    generation    bigint not null,
    reason        text,
    forced_by     text,
    until         timestamptz,
    streak        int not null default 0,
    ramp_from     timestamptz,
    probes_passed int not null default 0,
    changed_at    timestamptz not null,
    primary key (provider, class),
    constraint a_circuit_has_a_known_state check (state in ('closed', 'open', 'probing', 'ramping', 'forced_open', 'forced_closed', 'observing')),
    constraint a_forced_circuit_says_who_and_until_when check ((state in ('forced_open', 'forced_closed', 'observing')) = (forced_by is not null)
        and (forced_by is null or until is not null)),
    constraint an_open_circuit_says_until_when check (state <> 'open' or until is not null),
    constraint a_ramp_has_a_beginning check ((state = 'ramping') = (ramp_from is not null))
);
create index provider_circuit_changed on millrace.provider_circuit (changed_at);

-- What one worker has seen in its window, whole, and not what was added since: a write that is lost or done twice changes nothing.
create table millrace.provider_seen (
    provider   text not null,
    class      text not null,
    member     bigint not null,
    name       text not null,
    generation bigint not null,
    ok         int not null,
    failed     int not null,
    throttled  int not null,
    slow       int not null,
    unknown    int not null,
    latencies  int[] not null,
    vote       text,                       -- its own breaker is open, and why
    called_at  timestamptz,
    seen_at    timestamptz not null,
    primary key (provider, class, member)
) with (fillfactor = 60);

create table millrace.provider_lease (
    lease      bigint generated always as identity primary key,
    provider   text not null,
    class      text not null,
    generation bigint not null,
    member     bigint not null,
    until      timestamptz not null
);

create table millrace.provider_pace (
    provider        text primary key,
    rate            float8,
    blocked_until   timestamptz,
    quota_used      bigint,
    quota_limit     bigint,
    quota_resets_at timestamptz,
    changed_at      timestamptz not null
);

create table millrace.provider_event (
    id         bigint generated always as identity primary key,
    at         timestamptz not null,
    provider   text not null,
    class      text not null,
    from_state text not null,
    to_state   text not null,
    generation bigint not null,
    by         text not null,
    reason     text
);
create index provider_event_of on millrace.provider_event (provider, id);

create table millrace.flag (
    name       text primary key,
    percent    int not null,
    always     text[] not null,
    reason     text,
    changed_by text not null,
    changed_at timestamptz not null,
    constraint a_flag_is_on_for_a_share check (percent between 0 and 100)
);
