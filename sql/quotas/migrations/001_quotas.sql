-- Quotas: how much a tenant may use.

create table millrace.quota (
    tenant text not null,
    name text not null,
    allowed bigint,                                       -- null: only counted
    period text not null,
    since timestamptz not null,                           -- when the period began that `used` is of
    used numeric not null,
    warned int not null,                                  -- 0, 80 or 100: told of in this period
    by_hand boolean not null default false,               -- an admin's own bound goes before the plan's
    primary key (tenant, name),
    constraint a_quota_has_a_known_period check (period in ('day', 'week', 'month', 'year')),
    constraint a_quota_has_a_known_name
        check (name in ('documents', 'pages', 'bytes', 'cpu_seconds', 'messages', 'lessons', 'ai_tokens') or name ~ '^ai_tokens:[a-z][a-z0-9_]{0,59}$')
) with (fillfactor = 50);
