-- What status, metrics and operators look at.

-- The rooms that a worker serves beside its jobs' kinds, each with how; null: a worker of an earlier version, which does not say.
alter table millrace.session add rooms jsonb;

-- Jobs that wait for another attempt, among any number of scheduled ones. Only a retry adds an entry.
create index timer_retry on millrace.timer (queue, kind) where attempt > 0;

-- What was measured last for all collectors of numbers: one row, locked by who measures.
create table millrace.measured (
    one boolean primary key default true check (one),
    at timestamptz not null,
    value jsonb not null
) with (fillfactor = 50);
insert into millrace.measured (at, value) values ('-infinity', '[]');
