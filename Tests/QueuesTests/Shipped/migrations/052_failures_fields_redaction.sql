-- Failures grouped by cause, arguments that can be searched, and rules for hiding arguments.

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

-- How far the failures from before this migration are counted, by the outcome of the run; a row is deleted when all are.
create table millrace.failure_past (
    outcome smallint primary key,
    below bigint not null,
    until timestamptz not null
);
insert into millrace.failure_past (outcome, below, until)
select o, 9223372036854775807, clock_timestamp() from unnest(array[3, 4, 7]) o;

-- searchable: it has fields, and its jobs do not take the short way of enqueue_as. _declared is what programs say, _set what an operator
-- says instead (fields) or besides (redactions).
alter table millrace.kind
    add searchable boolean not null default false,
    add fields_declared text[],
    add fields_set text[],
    add redactions_declared text[],
    add redactions_set text[];

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

create table millrace.job_field (
    job bigint not null,
    field int not null,
    value text collate "C" not null,
    primary key (job, field)
);
create index job_field_value on millrace.job_field (field, value, job);
insert into millrace.trace_sweep (of) values ('job_field');
