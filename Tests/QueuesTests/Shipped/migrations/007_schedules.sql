-- What runs by the clock. A worker that finds a schedule due works out its times and writes jobs and fires in one transaction.

create table millrace.schedule (
    id int generated always as identity primary key,
    name text not null unique,
    kind text not null,
    args jsonb not null,
    queue text,                                           -- null: the kind's own
    priority smallint,
    tenant text,
    expression text not null,                             -- a cron expression or an interval; the workers understand it, SQL does not
    zone text not null,
    catch_up text not null,                               -- what becomes of times that passed while nobody looked
    catch_up_limit int not null,                          -- with all: so many at most, the newest
    overlap text not null,                                -- what happens when the last job has not ended
    jitter interval not null,
    anchor timestamptz not null,                          -- intervals count from here
    paused_at timestamptz,
    revision bigint not null default 1,                   -- grows with every change: what was worked out for another one does not count
    planned_from timestamptz not null,                    -- next_at is the first time after this one, while it is null
    next_at timestamptz,                                  -- null: a worker has still to work it out
    problem text,                                         -- why no worker could
    problem_at timestamptz,
    last_fire_at timestamptz,
    last_job bigint,
    fired bigint not null default 0,
    skipped bigint not null default 0,
    missed bigint not null default 0,
    last_missed_at timestamptz,
    created_at timestamptz not null,
    changed_at timestamptz not null,
    constraint a_schedule_name_is_well_formed check (name ~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$'),
    constraint a_catch_up_is_known check (catch_up in ('none', 'latest', 'all')),
    constraint a_catch_up_is_bounded check (catch_up_limit between 1 and 10000),
    constraint an_overlap_is_known check (overlap in ('allow', 'skip', 'replace')),
    constraint a_jitter_is_bounded check (jitter >= interval '0' and jitter <= interval '1 day'),
    constraint a_problem_says_when check ((problem is null) = (problem_at is null)),
    constraint a_paused_schedule_has_no_next_time check (paused_at is null or next_at is null)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
create index schedule_next on millrace.schedule (next_at) where paused_at is null;

-- One row per time that was dealt with: never a second one.
create table millrace.schedule_fire (
    schedule int not null references millrace.schedule on delete cascade,
    fire_at timestamptz not null,                         -- the scheduled time; of missed ones the first
    what text not null,
    job bigint,
    fired_at timestamptz not null,                        -- when it was dealt with
    missed bigint,                                        -- how many were missed, from fire_at
    until timestamptz,                                    -- to here
    primary key (schedule, fire_at),
    constraint a_fire_is_of_a_known_kind check (what in ('fired', 'manual', 'skipped', 'missed')),
    constraint a_fire_has_its_job check ((job is not null) = (what in ('fired', 'manual'))),
    constraint missed_fires_are_counted check ((what = 'missed') = (missed is not null and until is not null))
);
