-- In which order the steps of a job were recorded (null: before this column was; such steps come first, by their time), and what a step that waited
-- had asked for.
alter table millrace.step add column place int;
alter table millrace.step add column asked jsonb;

-- Jobs that began with the steps of another.
create table millrace.fork (
    job bigint primary key,
    origin bigint not null,
    step text,                                            -- the first that it does itself; null: it has all that were on record
    at timestamptz not null
);
create index fork_of on millrace.fork (origin, job);
insert into millrace.trace_sweep (of, upto) values ('fork', 0);
