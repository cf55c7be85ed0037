-- A queue's jobs wait in lines: one for each tenant, and those with a limit key apart from those without. A line is a row of
-- queue with its queue's name and lanes of its own, so that a claim goes from line to line as it goes from queue to queue.

alter table millrace.queue
    drop constraint queue_name_key,
    add main int references millrace.queue,               -- null: the queue itself, where jobs of no tenant and without a key wait
    add tenant text,
    add keyed boolean not null default false,
    add constraint a_line_is_of_a_tenant_or_keyed check ((main is null) = (tenant is null and not keyed));
create unique index queue_line on millrace.queue (name, coalesce(tenant, ''), keyed);
create index queue_lines on millrace.queue (main) where main is not null;

-- What may run at once, and how often. A key that ends in * is the rule for every key that begins so, each for itself.
create table millrace.limit_rule (
    scope text not null,
    name text not null,
    concurrency int,
    rate int,                                             -- so many starts
    per float8,                                           -- in so many seconds
    burst int,                                            -- and so many at once after a rest
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
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
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
    autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off
);
create index parked_job on millrace.parked (job);

-- The gate of a waiting job's key, where whoever put it in line knew it; null costs nothing, and says to look at the job.
alter table millrace.ready add gate bigint;

-- The slots that a lease's jobs hold, so that whoever ends the lease gives them back.
alter table millrace.lease
    add slot_all bigint[],                                -- gates at which each of its jobs holds a slot
    add slot_jobs bigint[],                               -- and for gates that concern only some: which job,
    add slot_gates bigint[],                              -- and which gate
    alter slot_jobs set storage external,
    alter slot_gates set storage external,
    add constraint slots_have_their_jobs check (coalesce(cardinality(slot_jobs), 0) = coalesce(cardinality(slot_gates), 0));

drop function if exists millrace.claim(bigint, bigint, int[], int[], int[], bigint[], bigint[], int[], int, int[], int[]);
drop function if exists millrace.finish(bigint, bigint[], bigint[], smallint[], int[], int[], smallint[], smallint[], int[], bigint[], bigint[], int[], text[], float8[], bigint[]);
drop function if exists millrace.queue_list();
drop function if exists millrace.horizon();
drop function if exists millrace.enqueue_bulk(text, text[], text, int, timestamptz, text, int);
