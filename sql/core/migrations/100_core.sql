-- The core: jobs, queues, workers, limits, schedules, flows, waiting, versions, operations, the past, providers. Every installation has it.

-- Who calls a door. A value of this type can only name the role that makes it: Postgres checks that where the call is written, as the role
-- that runs the statement there. So a door knows its caller whatever session it runs in: an index expression, a trigger, a cast or a policy of
-- somebody else is its owner, or the role that runs it, and never the session around it.
create domain millrace.caller_name as name
    constraint a_caller_names_itself check (value is not null and value = current_user);
revoke usage on type millrace.caller_name from public;

-- # Base: settings, who may call what, the audit

-- What the operator and the migrations have set.
create table millrace.setting (
    name text primary key,
    value text not null
);

-- A client role may enqueue only what stands here; '*' is any.
create table millrace.client_grant (
    role text not null,
    kind text not null default '*',
    queue text not null default '*',
    granted_at timestamptz not null default clock_timestamp(),
    primary key (role, kind, queue)
);

-- Turns that must exclude are row locks here, and no advisory locks: any login can take an advisory lock, and only the schema's
-- functions can lock these rows. A row is locked and never changed, so the table does not grow. turns.sql names them.
create table millrace.turn (
    name text not null,
    bucket int not null,
    primary key (name, bucket)
);

-- What migrations have made, so that the next one notices what somebody else has put into the schema.
create table millrace.made (
    kind text not null,
    identity text not null,
    primary key (kind, identity)
);

-- What operators did.
create table millrace.audit (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    who text not null,                                    -- the role, which Postgres has verified
    said_by text,                                         -- who it is as the program says, which nobody has verified
    action text not null,
    object text,
    detail jsonb,
    login text                                            -- who was signed in to the database, and may have taken the role on
);
create index audit_at on millrace.audit (at);
create index audit_action on millrace.audit (action, id);
create index audit_who on millrace.audit (who, id);
create index audit_said_by on millrace.audit (said_by, id);
create index audit_login on millrace.audit (login, id);

-- What rooms have the core call: see base/hooks.sql. Only the owner of the schema writes here.
create table millrace.hook (
    event text not null,
    room text not null,
    function text not null,                               -- its name in this schema
    name text not null,                                   -- what it is called in answers
    position int not null,                                -- the lowest of an event is called first
    primary key (event, function),
    constraint a_hook_names_a_function check (function ~ '^[a-z][a-z0-9_]{0,62}$')
);

-- Hooks that fail, until they go well again.
create table millrace.hook_failure (
    event text not null,
    function text not null,
    since timestamptz not null,
    at timestamptz not null,
    times int not null,
    code text not null,
    sentence text not null,
    primary key (event, function)
);

-- The functions and views that roles may use: see base/doors.sql. Only the owner of the schema writes here.
create table millrace.door (
    name text not null,
    is_view boolean not null,
    room text not null,
    roles text[] not null,                                -- all that may use it
    rule text not null,
    about text,                                           -- what a call names, if the rule asks whose that is
    sentence text,
    audited boolean not null,
    for_apps boolean not null,
    words jsonb not null,
    answers jsonb not null,
    who_may text[] not null,
    primary key (name, is_view),
    constraint a_door_has_a_rule check (rule in ('open', 'granted', 'tenant', 'actor', 'backend', 'staff')),
    constraint a_door_of_apps_is_for_clients check (not for_apps or 'client' = any (roles)),
    constraint a_door_of_apps_says_what_it_does check (not for_apps or coalesce(sentence ~ '^[A-Z].*[.]$', false))
);

-- # Providers: the health of outside services, flags

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
    vote       text,                                      -- its own breaker is open, and why
    called_at  timestamptz,
    seen_at    timestamptz not null,
    primary key (provider, class, member)
) with (fillfactor = 60);

-- Calls that a circuit which is being probed has let through.
create table millrace.provider_lease (
    lease      bigint generated always as identity primary key,
    provider   text not null,
    class      text not null,
    generation bigint not null,
    member     bigint not null,
    until      timestamptz not null
);

-- How fast a provider may be called, as it said itself.
create table millrace.provider_pace (
    provider        text primary key,
    rate            float8,
    blocked_until   timestamptz,
    quota_used      bigint,
    quota_limit     bigint,
    quota_resets_at timestamptz,
    changed_at      timestamptz not null
);

-- Changes of circuits.
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
create index provider_event_at on millrace.provider_event (at);

-- Switches that a part of the fleet, or of its users, has on.
create table millrace.flag (
    name       text primary key,
    percent    int not null,
    always     text[] not null,
    reason     text,
    changed_by text not null,
    changed_at timestamptz not null,
    constraint a_flag_is_on_for_a_share check (percent between 0 and 100)
);

-- # Queue: jobs, where they wait, who runs them, and what runs leave

-- ## Names

-- Where jobs wait. A queue's jobs wait in lines: one for each tenant, and those with a limit key apart from those without. A line is a row here
-- with its queue's name and lanes of its own, so that a claim goes from line to line as it goes from queue to queue.
create table millrace.queue (
    id int generated always as identity primary key,
    name text not null,
    paused_at timestamptz,
    retention smallint not null default 1,                -- 0 short, 1 standard, 2 long: see retention()
    created_at timestamptz not null default clock_timestamp(),
    main int references millrace.queue,                   -- null: the queue itself, where jobs of no tenant and without a key wait
    tenant text,
    keyed boolean not null default false,
    retention_cancelled smallint,                         -- of jobs that were cancelled; null: as long as those that succeeded
    retention_dead smallint,                              -- of dead ones
    constraint a_queue_name_is_well_formed check (name ~ '^[A-Za-z0-9][A-Za-z0-9_./-]{0,127}$'),
    constraint a_retention_class_exists check (retention between 0 and 2),
    constraint a_line_is_of_a_tenant_or_keyed check ((main is null) = (tenant is null and not keyed)),
    constraint a_state_has_a_retention_class check (retention_cancelled between 0 and 2 and retention_dead between 0 and 2)
);
create index queue_paused on millrace.queue (id) where paused_at is not null;
create unique index queue_line on millrace.queue (name, coalesce(tenant, ''), keyed);
create index queue_lines on millrace.queue (main) where main is not null;

-- What jobs are of. A kind may have lines: the same kind to everybody who looks, but the jobs of a line are taken only by workers that have
-- registered it. A claim names the kinds that it takes by number, so workers of earlier versions obey too.
create table millrace.kind (
    id int generated always as identity primary key,
    name text not null,
    queue int references millrace.queue,                  -- where its jobs go when the caller names no queue
    searchable boolean not null default false,            -- it has fields, and its jobs do not take the short way of enqueue_as
    fields_declared text[],                               -- which of the arguments can be searched, as programs say
    fields_set text[],                                    -- and as an operator says instead
    redactions_declared text[],                           -- which arguments are hidden, as programs say
    redactions_set text[],                                -- and which an operator hides besides
    line text not null default '',                        -- of the kind's lines this one; '' is the kind itself
    split smallint,                                       -- the share of its new jobs that is drawn for a build, in percent; on the row ''
    constraint a_kind_name_is_well_formed check (name ~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$'),
    constraint a_line_is_short check (length(line) <= 200),
    constraint a_line_is_there_once unique (name, line)
);

-- What everything else refers to: settings, kinds, queues, and who may enqueue what.
-- Ids and places in line. Its cache is 1: a newer transaction draws larger values.
create sequence millrace.seq;

-- ## Jobs, and the places that a waiting job can stand in

-- Jobs. This is the cold half: written once, and found by the id. Where a job waits or runs stands in other tables.
create table millrace.job (
    id bigint not null primary key,
    kind int not null,
    queue int not null,
    lane int not null,                                    -- priority * 4 + 1: where a plain enqueue stands in ready
    max_attempts smallint,                                -- null: the worker's policy for the kind
    enqueued_at timestamptz not null,
    run_at timestamptz,                                   -- null: at once
    args jsonb not null,
    unique_hash bytea,
    unique_key text,
    limit_key text,
    tenant text,
    owner text not null,                                  -- the role that enqueued it
    tags text[],
    metadata jsonb,
    options jsonb,
    limit_scope text                                      -- whose limit key it is: a client's tenant and role; null for staff; see key_gate
) partition by range (id);
-- Which jobs need which key: for the doctor, and for sealing them again under another. It has an entry for each encrypted job only.
create index job_sealed on millrace.job ((left(args ->> 'key', 32)), id) where args ->> '$millrace' = 'sealed';
-- Rows that no range covers, and the few that outlive their range.
create table millrace.job_default partition of millrace.job default;
create table millrace.job_0 partition of millrace.job for values from (minvalue) to (16777216);
create table millrace.job_16777216 partition of millrace.job for values from (16777216) to (33554432);

-- Jobs that can be claimed. Rows are inserted and deleted, never updated. lane = priority * 4 + (0 put back, 1 normal, 2 suspect, 3 lone suspect).
-- A vacuum of the tables that jobs pass through rests as long as it works: while an old snapshot is held it comes every minute and finds nothing
-- to take away, and without a rest it took a core from those who wait.
create table millrace.ready (
    seq bigint not null,
    job bigint not null,
    queue int not null,
    kind int not null,
    lane int not null,
    attempt smallint not null default 0,                  -- runs that counted so far
    crashes smallint not null default 0,
    gate bigint,                                          -- of its limit key, where that was known; null costs nothing: look at the job
    primary key (queue, lane, seq)
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 2, vacuum_truncate = off,
    autovacuum_vacuum_cost_limit = 200
);
create index ready_moved on millrace.ready (job) where seq <> job;      -- plain rows are found as (queue, lane, id)

-- Jobs that wait for a time.
create table millrace.timer (
    due timestamptz not null,
    job bigint not null primary key,
    queue int not null,
    kind int not null,
    lane int not null,
    attempt smallint not null default 0,
    crashes smallint not null default 0
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 2, vacuum_truncate = off,
    autovacuum_vacuum_cost_limit = 200
);
create index timer_due on millrace.timer (due, job);
-- Jobs that wait for another attempt, among any number of scheduled ones. Only a retry adds an entry.
create index timer_retry on millrace.timer (queue, kind) where attempt > 0;

-- Unique keys, each held while its job lives: who holds it, who comes next, and how long it stays held after an end. A key's row goes on to
-- another round whenever the key changes hands, and is looked for from the highest: what an old snapshot keeps of it lies below.
create table millrace.unique_lock (
    hash bytea not null,
    job bigint not null,
    next bigint,                                          -- the successor that waits until the holder, which runs or has run, has ended
    due timestamptz,                                      -- its time; null: at once
    ended boolean not null default false,                 -- the holder has ended, and the key stays held: options.unique_for
    until timestamptz,                                    -- until then; once a replacement holds the key, the earliest time it may run
    round bigint not null default 1,
    constraint a_hold_says_until_when check (not ended or until is not null),
    constraint nobody_follows_a_hold check (not ended or next is null),
    primary key (hash, round)
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 2, vacuum_truncate = off,
    autovacuum_vacuum_cost_limit = 200
);
create unique index unique_lock_next on millrace.unique_lock (next) where next is not null;
create index unique_lock_until on millrace.unique_lock (until) where ended;

-- ## Who runs jobs, and what they hold

-- One row per living worker session, immutable: a lease refers to it, so that nothing can be claimed once it is gone.
create table millrace.session (
    id bigint primary key,
    name text not null,
    host text not null,
    pid int not null,
    version text not null,
    started_at timestamptz not null,
    queues text[],                                        -- null: all
    kinds int[] not null,
    slots int not null,
    direct boolean not null,                              -- it holds its session lock on a direct connection
    rooms jsonb,                                          -- those that it serves, each with how; null: an earlier version, which does not say
    pin text                                              -- the build to which it is pinned
);

-- What it says every two seconds; apart from session, so that a lease's reference check walks over no old beats.
create table millrace.beat (
    session bigint primary key references millrace.session on delete cascade,
    beat bigint not null default 0,
    at timestamptz not null,
    state text not null default 'working',
    running int not null default 0,
    waiting int not null default 0,                       -- claimed, not started
    stuck int not null default 0,
    ahead real,                                           -- seconds that its clock is ahead of the database's; null: it does not say
    constraint a_worker_works_or_drains check (state in ('working', 'draining', 'cut off'))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- The log of sessions: names for the history.
create table millrace.process (
    session bigint primary key,
    name text not null,
    host text not null,
    pid int not null,
    version text not null,
    started_at timestamptz not null,
    ended_at timestamptz,
    ending text,
    constraint an_ended_process_says_how check ((ended_at is null) = (ending is null))
);
-- Sessions by time, for events.
create index process_started on millrace.process (started_at);
create index process_ended on millrace.process (ended_at) where ended_at is not null;

-- One row per claimed batch, inserted and deleted, never updated. number: low two bits the retention class, third bit a
-- lone suspect. Under a pinned horizon an update would leave a version to walk over; a row lock leaves none.
create table millrace.lease (
    session bigint not null references millrace.session,
    number bigint not null,
    at timestamptz not null,
    n int not null,
    lo bigint not null,
    hi bigint not null,
    ids bigint[] not null,
    attempts smallint[],                                  -- parallel to ids; null when all are zero
    crashes smallint[],
    -- The slots that its jobs hold. They are given back with the lease.
    slot_all bigint[],                                    -- gates at which each of its jobs holds a slot
    slot_jobs bigint[],                                   -- and for gates that concern only some: which job,
    slot_gates bigint[],                                  -- and which gate; without slot_jobs: a gate for each of the ids
    primary key (session, number)
) with (
    toast_tuple_target = 128, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 2,
    vacuum_truncate = off, autovacuum_vacuum_cost_limit = 200
);
alter table millrace.lease alter ids set storage external;
alter table millrace.lease alter slot_jobs set storage external;
alter table millrace.lease alter slot_gates set storage external;

-- Cancels that must reach a running job; workers read their own twice a second.
create table millrace.cancel (
    seq bigint not null,
    session bigint not null,
    number bigint not null,
    job bigint not null,
    at timestamptz not null,
    primary key (session, seq)
);
-- Who replaces a waiting job asks whether a cancel speaks of it.
create index cancel_job on millrace.cancel (job);

-- ## Runs that have ended

-- One row per ended run; dropped by partition: first the retention class, then the day the run started.
-- By start, not by end: a finish repeated across midnight must meet its own first copy in the unique index of its day.
create table millrace.history (
    id bigint not null,
    session bigint not null,                              -- the token of the run: (session, number); 0 when no worker ran it
    number bigint not null,
    started timestamptz not null,
    finished timestamptz not null,
    kind int not null,
    queue int not null,
    ms int,                                               -- how long the handler ran
    class smallint not null,
    outcome smallint not null,
    attempt smallint not null,
    crashes smallint not null,
    error text
) partition by list (class);
create table millrace.history_short partition of millrace.history for values in (0) partition by range (started);
create table millrace.history_standard partition of millrace.history for values in (1) partition by range (started);
create table millrace.history_long partition of millrace.history for values in (2) partition by range (started);
-- No record of a run is lost because its leaf is missing.
create table millrace.history_short_default partition of millrace.history_short default;
create unique index on millrace.history_short_default (id, session, number);
create table millrace.history_standard_default partition of millrace.history_standard default;
create unique index on millrace.history_standard_default (id, session, number);
create table millrace.history_long_default partition of millrace.history_long default;
create unique index on millrace.history_long_default (id, session, number);

-- What the workers counted, a row every few seconds for each queue and kind: rates without counting.
create table millrace.tally (
    at timestamptz not null,
    session bigint not null,
    queue int not null,
    kind int not null,
    succeeded int not null default 0,
    failed int not null default 0,                        -- runs that ended in a retry, in death or in a crash
    dead int not null default 0,
    cancelled int not null default 0,
    snoozed int not null default 0,
    ms bigint not null default 0,
    wait_ms bigint,                                       -- how long jobs had waited; null: the worker does not say
    waits int,
    times text                                            -- how long runs took and jobs waited, as sample_times reads it
);
create index tally_at on millrace.tally (at);

-- How far the sequence had come, hourly: which ids are older than a time.
create table millrace.watermark (
    at timestamptz primary key,
    seq bigint not null
);

-- ## Keys, limits, schedules

-- Holders that ended while somebody's open transaction had the key's row locked. A worker's flush waits for no caller: it leaves
-- a note here, and every worker looks once a second.
create table millrace.unique_ended (
    hash bytea not null,
    job bigint not null,
    primary key (hash, job)
);

-- What may run at once, and how often. A key that ends in * is the rule for every key that begins so, each for itself.
create table millrace.limit_rule (
    scope text not null,
    name text not null,
    concurrency int,
    rate int,                                             -- starts allowed
    per float8,                                           -- in this many seconds
    burst int,                                            -- starts allowed at once after a rest
    weight float8,                                        -- a tenant's share beside the others
    changed_at timestamptz not null,
    primary key (scope, name),
    constraint a_scope_is_known check (scope in ('queue', 'key', 'tenant')),
    constraint a_rule_says_something check (num_nonnulls(concurrency, rate, weight) > 0),
    constraint a_rate_is_whole check (num_nulls(rate, per, burst) in (0, 3)),
    constraint only_a_tenant_has_a_weight check (weight is null or scope = 'tenant'),
    constraint figures_are_positive check (concurrency >= 0 and rate > 0 and per > 0 and burst > 0 and weight > 0)
);

-- Slots taken (n > 0) and given back (n < 0) at a gate, and the time up to which its rate is used up. Rows are added and folded,
-- never updated. A base row holds the sum of all before it: a count starts at the newest base and walks over no folded row.
create sequence millrace.slot_seq;
create table millrace.slot (
    gate bigint not null,
    seq bigint not null default nextval('millrace.slot_seq'),
    n int not null,
    used_until timestamptz,
    base boolean not null default false,
    primary key (gate, seq)
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 2, vacuum_truncate = off,
    autovacuum_vacuum_cost_limit = 200
);
create index slot_base on millrace.slot (gate, seq) where base;

-- Jobs that a claim found their key's gate shut for. Moved back in line when it opens, in their old order.
create table millrace.parked (
    gate bigint not null,
    lane int not null,
    job bigint not null,
    queue int not null,
    kind int not null,
    attempt smallint not null,
    crashes smallint not null,
    primary key (gate, lane, job)
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 2, vacuum_truncate = off,
    autovacuum_vacuum_cost_limit = 200
);
create index parked_job on millrace.parked (job);

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
    catch_up_limit int not null,                          -- with all: at most this many times, the newest
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

-- ## What a run leaves beside its end. No enqueue and no claim touches it, and an end only where there is a result

-- A step's value, recorded once under a live lease; the next run of the job is given it.
create table millrace.step (
    job bigint not null,
    name text not null,
    value jsonb not null,
    session bigint not null,                              -- the token that recorded it
    number bigint not null,
    attempt smallint not null,
    at timestamptz not null,
    place int,                                            -- its number among the job's steps; null: recorded by an earlier version, and first
    asked jsonb,                                          -- what a step that waited had asked for
    primary key (job, name),
    constraint a_step_name_is_short check (length(name) between 1 and 128)
);

-- How far a job has come, as its run said last, and how much it has logged. Of the traces of runs this is the one that is updated:
-- half-filled pages and no index but its key keep a row's versions on one page. No claim reads it, so a pinned horizon slows reports alone.
create table millrace.progress (
    job bigint primary key,
    session bigint,                                       -- the token that reported it; null: nothing but lines so far
    number bigint,
    fraction float8,
    stage text,
    note text,
    at timestamptz,
    lines bigint not null default 0,                      -- ever written: the first line kept says by its number how many were cut
    bytes bigint not null default 0,
    constraint a_fraction_is_one check (fraction between 0 and 1)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- What runs have logged.
create table millrace.log_line (
    job bigint not null,
    n bigint not null,                                    -- counted from 1 for each job
    at timestamptz not null,
    level smallint not null,
    session bigint not null,                              -- the token of the run that said it, live or not
    number bigint not null,
    attempt smallint not null,
    line text not null,
    primary key (job, n),
    constraint a_level_is_known check (level between 0 and 3)
);

-- What a job has resulted in.
create table millrace.result (
    job bigint primary key,
    value jsonb not null
);

-- How far maintenance has walked through each of these tables, looking for jobs that are gone.
create table millrace.trace_sweep (
    of text primary key,
    upto bigint not null default 0
);

-- ## Jobs that wait for jobs

-- succ waits for pred. Kept as long as both jobs are, for the tree and for the results.
create table millrace.edge (
    pred bigint not null,
    succ bigint not null,
    outcome smallint,                                     -- how pred ended: 1 succeeded, 2 cancelled, 3 dead; null: it has not
    session bigint,                                       -- the run of pred that made succ, if one did:
    number bigint,                                        -- succ exists for others only once that very run has succeeded
    primary key (pred, succ),
    constraint an_outcome_is_final check (outcome between 1 and 3),
    constraint nobody_waits_for_itself check (pred <> succ),
    constraint a_maker_is_a_run check ((session is null) = (number is null))
);
create index edge_succ on millrace.edge (succ, pred);
create index edge_open on millrace.edge (succ, pred) where outcome is null;
create index edge_bad on millrace.edge (succ, pred) where outcome in (2, 3);

-- Jobs that wait for other jobs.
create table millrace.blocked (
    job bigint primary key,
    due timestamptz,                                      -- when it may run at the earliest; null: at once
    starts smallint not null,                             -- 1 when all have succeeded, 2 when all have ended, 3 when one has not succeeded, 4 an undo
    waits boolean not null,                               -- when it cannot start any more: false it is cancelled, true it waits for a redrive
    fresh boolean not null,                               -- one it waits for may have ended beside its enqueue: to be looked at
    constraint a_start_is_known check (starts between 1 and 4)
);
create index blocked_fresh on millrace.blocked (job) where fresh;

-- Ends of jobs that others wait for, until those have been told. An end only adds a row here: it waits for nobody.
create sequence millrace.ending_seq;
create table millrace.ending (
    seq bigint primary key default nextval('millrace.ending_seq'),
    pred bigint not null,
    outcome smallint not null,                            -- as in history: 1, 2, 3, or else the run is over and the job is not
    session bigint,
    number bigint,
    look_at timestamptz                                   -- null: at once; else somebody's transaction has kept it from being told
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, vacuum_truncate = off);
create index ending_pred on millrace.ending (pred);

-- How far maintenance has walked through the edges, looking for jobs that are gone.
create table millrace.edge_sweep (
    upto bigint not null
);

-- ## Short ways

-- Where plain jobs go, by the names their callers give: one look-up instead of three for each enqueue. A copy of what `kind` and `queue` say;
-- the name of the queue is '' where callers give none. Workers note that of their kinds, callers the rest; without a row a job goes the longer way.
-- Few routes are read through, which is cheaper than to descend an index that nothing else keeps warm; many are found by their key. A page holds a
-- dozen routes, so that the planner changes over to the index at some seventy. It is analysed below: Postgres takes a table
-- that never was for ten pages.
create table millrace.route (
    kind_name text not null,
    queue_name text not null,
    kind int not null references millrace.kind (id) on delete cascade,
    queue int not null references millrace.queue (id) on delete cascade,
    primary key (kind_name, queue_name)
) with (
    fillfactor = 10, autovacuum_analyze_threshold = 0
);

-- That there is one row for a key, at whatever round. Comes and goes with it.
create table millrace.unique_key (
    hash bytea primary key
) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 2, vacuum_truncate = off,
    autovacuum_vacuum_cost_limit = 200
);

-- ## Failures, and arguments that can be searched

-- What workers and rescues have seen since the last fold: a row for each queue, kind, session and error. Rows are inserted and deleted.
create table millrace.failure_note (
    n bigint generated always as identity primary key,
    first_at timestamptz not null,
    at timestamptz not null,
    session bigint not null,
    queue int not null,
    kind int not null,
    error text,                                           -- one of the errors as it was; null: of several that had no room
    failed bigint not null,
    dead bigint not null,
    jobs bigint[] not null,                               -- some of the jobs, the latest first
    lo bigint not null,                                   -- the smallest and the largest id of the jobs
    hi bigint not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Failures that have one cause.
create table millrace.failure_group (
    id bigint generated always as identity primary key,
    kind int not null,
    class text not null,
    gist text not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    first_version text,
    last_version text,
    failed bigint not null,
    dead bigint not null,
    examples bigint[] not null,
    lo bigint not null,
    hi bigint not null,
    constraint a_cause_is_one_group unique (kind, class, gist)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
create index failure_group_last on millrace.failure_group (last_at);

-- The same by queue.
create table millrace.failure_place (
    failure bigint not null references millrace.failure_group on delete cascade,
    queue int not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    failed bigint not null,
    dead bigint not null,
    primary key (failure, queue)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- How far failures that were there before groups were are counted, by the outcome of the run; a row is deleted when all are.
create table millrace.failure_past (
    outcome smallint primary key,
    below bigint not null,
    until timestamptz not null
);

-- Arguments of a kind that can be searched.
create table millrace.kind_field (
    id int generated always as identity primary key,
    kind int not null references millrace.kind,
    path text not null,
    steps text[] not null,
    live boolean not null default true,                   -- false: its values are being deleted
    waits text[],                                         -- transactions that may have enqueued without it; null: not looked yet
    below bigint,                                         -- jobs with smaller ids are still to be indexed; null: those have not ended yet
    filled boolean not null default false,
    constraint a_field_is_there_once unique (kind, path)
);

-- Their values.
create table millrace.job_field (
    job bigint not null,
    field int not null,
    value text collate "C" not null,
    primary key (job, field)
);
create index job_field_value on millrace.job_field (field, value, job);

-- ## What happened to the fleet

-- What no other table remembers: pauses, rescues, restarts and failovers of the server.
create table millrace.fleet_event (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    event text not null,
    subject text not null,
    by text,
    detail text
);
create index fleet_event_at on millrace.fleet_event (at);

-- Workers that could not start because their program and the schema do not fit. They have no session, so they say so here, and `why` can tell why
-- nobody takes a job.
create table millrace.refused_worker (
    host text not null,
    name text not null,
    pid int not null,
    version text not null,
    schema int not null,                                  -- the schema version that its program speaks
    kinds text[] not null,
    queues text[],                                        -- null: all
    at timestamptz not null,
    primary key (host, name)
);

-- ## Waiting, signals, questions to people

-- What a job waits for between two of its runs. It waits for one thing at a time. Its place is in timer; while it waits for other jobs, in
-- blocked.
create table millrace.wait (
    job bigint primary key,
    step text not null,
    what smallint not null,                               -- 1 a time, 2 a signal, 3 other jobs, 4 an answer
    name text,                                            -- of the signal
    key text,
    since timestamptz not null,
    due timestamptz,                                      -- when it goes on without what it waits for; null: never
    place timestamptz,                                    -- the time in its timer; null: it is blocked
    attempt smallint not null,
    crashes smallint not null,
    jobs bigint[],                                        -- those that it waits for
    look_at timestamptz                                   -- when to look for signals again: it was elsewhere; null: nothing was kept for it
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2);
create index wait_for_signal on millrace.wait (name, key, since, job) where name is not null;
create index wait_look on millrace.wait (look_at) where look_at is not null;

-- What was signalled, kept for who waits later.
create table millrace.signal (
    seq bigint generated always as identity primary key,
    name text not null,
    key text not null,
    id text,                                              -- the sender's own: the same id again is the same signal
    payload jsonb not null,
    to_all boolean not null,                              -- for every job that waits for it, and not for one
    owner text not null,                                  -- which jobs it may reach: see may_see
    tenant text,
    anywhere boolean not null,
    at timestamptz not null,
    expires_at timestamptz not null,
    state smallint not null default 0,                    -- 0 nobody was told yet, 1 kept, 2 taken
    taken_by bigint,
    look_at timestamptz                                   -- it is told later: somebody had locked the job that waits; null: at once
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2);
create index signal_expires on millrace.signal (expires_at);
-- What a sender keeps is counted, and what reaches a job is looked for, without walking over others' signals.
create index signal_kept_of on millrace.signal (name, key, owner, tenant, seq) where state < 2;
create index signal_kept_anywhere on millrace.signal (name, key, seq) where state < 2 and anywhere;
-- The id of a signal is its sender's own, also where many persons call as one role.
create unique index signal_id_of_owner on millrace.signal (owner, name, id) where id is not null and tenant is null;
create unique index signal_id_of_tenant on millrace.signal (owner, tenant, name, id) where id is not null and tenant is not null;
create index signal_fresh on millrace.signal ((coalesce(look_at, '-infinity'::timestamptz)), seq) where state = 0;

-- Which jobs have had a signal that is for all.
create table millrace.signal_taken (
    signal bigint not null,
    job bigint not null,
    primary key (signal, job)
);

-- A question to a person, for which a job waits. Its answer is a signal with its id as the key.
create table millrace.approval (
    id uuid primary key,
    job bigint not null,
    step text not null,
    request jsonb not null,
    tenant text,
    owner text not null,
    asked_at timestamptz not null,
    due timestamptz,
    answered_at timestamptz,
    approved boolean,
    answered_by text,
    comment text,
    -- People who are asked get a link of their own each; see approval_person.
    remind interval,                                      -- how often those who were asked are reminded; null: never
    reminded int not null default 0,
    remind_at timestamptz,
    escalate_at timestamptz,
    escalate_to text[],
    escalated_at timestamptz,
    next_at timestamptz,                                  -- when somebody is told next; null: nobody is
    constraint an_answer_is_whole check ((answered_at is null) = (approved is null))
);
create unique index approval_of_step on millrace.approval (job, step);
create index approval_open on millrace.approval (asked_at, id) where answered_at is null;
create index approval_next on millrace.approval (next_at) where next_at is not null;

-- Steps that are undone if their job dies or is cancelled. Each has a job that waits for the end of its own, and for the undo of the step after
-- it.
create table millrace.undo (
    undo_job bigint primary key,
    job bigint not null,
    step text not null,
    constraint a_step_is_undone_once unique (job, step)
);

-- Who is asked.
create table millrace.approval_person (
    ref uuid primary key,                                 -- what stands in the link
    approval uuid not null,
    job bigint not null,
    person text not null,
    how smallint not null,                                -- 1 asked at once, 2 because nobody had answered, 3 given a link by hand
    at timestamptz not null,
    notice uuid,                                          -- the last that was sent to them
    constraint a_person_is_asked_once unique (approval, person)
);
create index approval_person_job on millrace.approval_person (job);
create index approval_person_person on millrace.approval_person (person);

-- ## What runs give out while they run

-- What a job's runs give out while they run: its present state, and the head of its stream of values.
create table millrace.output (
    job bigint primary key,
    state jsonb,                                          -- the last one given; null: none
    state_attempt smallint,                               -- the run that gave it
    state_at timestamptz,
    last bigint not null default 0,                       -- the number of the newest value ever published
    kept int not null default 0,                          -- how many of them are there
    bytes bigint not null default 0,                      -- and how large they are
    constraint a_state_says_when check ((state is null) = (state_at is null))
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- The values of the stream. Who publishes holds the row of output until the commit, so that numbers appear in their order and without a gap.
create table millrace.published (
    job bigint not null,
    n bigint not null,
    key text,                                             -- the handler's own: the same key again is the same value
    value jsonb not null,
    session bigint not null,                              -- the token of the run that published it
    number bigint not null,
    call bigint,                                          -- which of this run's calls it was, if it has no key
    attempt smallint not null,
    at timestamptz not null,
    primary key (job, n),
    constraint a_key_is_short check (length(key) between 1 and 512)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2);
create unique index published_key on millrace.published (job, key) where key is not null;
create unique index published_call on millrace.published (job, session, number, call) where call is not null;

-- ## Builds of the workers' program, and jobs that are under way while the code changes

-- Which builds ask for a change in the code of a kind: see changed().
create table millrace.build_change (
    kind text not null,
    name text not null,
    build text not null,
    at timestamptz not null,
    primary key (kind, name, build)
);

-- Jobs that go the old way of a change.
create table millrace.old_way (
    job bigint not null,
    change text not null,
    primary key (job, change)
);
create index old_way_change on millrace.old_way (change, job);

-- Builds that pinned workers have said. kinds: those that they know, without lines. Of the builds that know a kind, the one that was promoted
-- last gets its new jobs; percent: it gets this share of them meanwhile. heir: who goes on with its jobs under way, a build or '',
-- whichever gets new jobs.
create table millrace.build (
    name text primary key,
    kinds int[] not null,
    seen_at timestamptz not null,
    promoted_at timestamptz,
    percent smallint,
    drained_at timestamptz,
    heir text,
    changed_at timestamptz not null,
    constraint a_percentage_is_a_part check (percent between 1 and 99),
    constraint a_drained_build_gets_nothing check (drained_at is null or promoted_at is null and percent is null)
);

-- Jobs that began with the steps of another.
create table millrace.fork (
    job bigint primary key,
    origin bigint not null,
    step text,                                            -- the first that it does itself; null: it has all that were on record
    at timestamptz not null
);
create index fork_of on millrace.fork (origin, job);

-- # Operating: operations on many jobs, and the past

-- What was measured last for all collectors of numbers: one row, locked by who measures.
create table millrace.measured (
    one boolean primary key default true check (one),
    at timestamptz not null,
    value jsonb not null
) with (fillfactor = 50);

-- Operations: one action on all jobs that a filter names, at a pace, which can be undone.
create table millrace.operation (
    id bigint generated always as identity primary key,
    key text,                                             -- the client's own: who starts it twice starts it once
    action text not null,
    filter jsonb not null,
    args jsonb not null,
    pace int,                                             -- jobs a second; null: as fast as it goes
    state text not null default 'running',
    is_undoing boolean not null default false,
    who text not null,
    said_by text,
    bound bigint not null,                                -- only jobs up to this number: what came later is none of it
    jobs bigint not null,                                 -- what it was to reach, as counted or estimated at the start
    is_exact boolean not null,
    places text[] not null,                               -- the states still to be looked through, the present one first
    after bigint not null,                                -- and there, jobs below this number
    round smallint not null default 1,
    next_at timestamptz not null,                         -- not before this time, for the pace
    looked bigint not null default 0,
    done bigint not null default 0,
    nothing bigint not null default 0,
    refused bigint not null default 0,
    undone bigint not null default 0,
    past bigint not null default 0,
    undo_after bigint not null default 0,                 -- items up to this job have been undone
    started_at timestamptz not null,
    changed_at timestamptz not null,
    ended_at timestamptz,
    undo_by text,
    undo_said_by text,
    undo_started_at timestamptz,
    undo_ended_at timestamptz,
    tidied smallint not null default 0,                   -- 1: what undoing needs is forgotten; 2: the items too
    login text,
    undo_login text,
    constraint a_state_is_known check (state in ('running', 'paused', 'finished', 'stopped', 'undoing', 'undone')),
    constraint a_pace_is_positive check (pace > 0)
) with (fillfactor = 50);
create unique index operation_key on millrace.operation (key) where key is not null;
create index operation_open on millrace.operation (next_at) where state in ('running', 'undoing');
create index operation_untidy on millrace.operation (id) where tidied < 2;

-- What an operation did to each job, and where the job stood before.
create table millrace.operation_item (
    operation bigint not null,
    job bigint not null,
    at timestamptz not null,
    outcome smallint not null,                            -- 1 done, 2 there was nothing to do, 3 refused
    reason text,
    was text,                                             -- timer, ready, parked, blocked, follows, running or ended
    seq bigint,
    queue int,
    kind int,
    lane int,
    due timestamptz,
    gate bigint,
    attempt smallint,
    crashes smallint,
    more jsonb,                                           -- its key, its flow, its ended run
    became bigint,                                        -- the place in line that the action gave it
    undo smallint,                                        -- 1 undone, 2 gone past
    undo_reason text,
    primary key (operation, job)
) with (fillfactor = 80);
create index operation_item_odd on millrace.operation_item (operation, job) where outcome <> 1 or undo = 2;

-- Everything that is known of a job whose deletion can still be undone, and the steps that a fresh retry has forgotten.
create table millrace.operation_kept (
    operation bigint not null,
    job bigint not null,
    rows jsonb not null,
    primary key (operation, job)
);

-- Names in samples of the past, which are taken every ten seconds: see operating/samples_take.sql. A name stands here, so that a removed queue
-- or an ended worker keeps its past. what: see sample_rules().
create table millrace.sample_key (
    id int generated always as identity primary key,
    what smallint not null,
    name text not null,
    detail text not null,
    queue text not null,
    seen_at timestamptz not null,
    unique (what, name, detail, queue)
);

-- The samples of the last minutes: a row for each time, with as many values for each key as its rule has columns.
create table millrace.sample_fresh (
    what smallint not null,
    at timestamptz not null,
    keys int[] not null,
    vals bigint[] not null,
    primary key (what, at)
);

-- Older ones: a row for each key and each run of `sample_slots()` times, column after column, without zeros.
create table millrace.sample_pack (
    what smallint not null,
    step int not null,
    key int not null,
    at timestamptz not null,
    body bytea not null,
    primary key (what, step, key, at)
);

-- How far each step has come, and how far within the chunk that is being packed.
create table millrace.sample_done (
    what smallint not null,
    step int not null,
    upto timestamptz not null,
    key_done int not null default 0,
    primary key (what, step)
);

-- What the next sample goes on from: one row.
create table millrace.sample_state (
    one boolean primary key default true check (one),
    tally_at timestamptz not null,
    server_started timestamptz,
    timeline int
);

-- # What there is from the beginning

-- What keyed hashes are made with, so that another database's say nothing here.
insert into millrace.setting (name, value)
values ('salt', replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''));
insert into millrace.trace_sweep (of)
values ('step'), ('progress'), ('log_line'), ('result'), ('job_field'), ('wait'), ('approval'), ('approval_person'), ('undo'), ('output'), ('published'),
    ('old_way'), ('fork');
insert into millrace.edge_sweep values (0);
insert into millrace.measured (at, value) values ('-infinity', '[]');
insert into millrace.sample_state (tally_at) values ('-infinity');

-- Names and numbers of kinds and queues never change; which queue a kind's jobs go to may.
create function millrace.route_moves() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        perform millrace.refuse(format('the queue of the kind %s can be changed in a transaction that is read committed only', new.name), 'queue',
            'What others have noted of it since the transaction began could not be seen.', code => '25001');
    end if;
    delete from millrace.route r where r.kind_name = old.name and r.queue_name = '';
    return null;
end $$;
create trigger a_route_follows_its_kind after update of queue on millrace.kind for each row
    when (new.queue is distinct from old.queue) execute function millrace.route_moves();
analyze millrace.route;
