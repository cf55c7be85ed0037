-- Builds of the workers' program, and jobs that are under way while the code changes.

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
insert into millrace.trace_sweep (of, upto) values ('old_way', 0);

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
-- Which percentage of new jobs of a kind is drawn for a build; on the row without a line.
alter table millrace.kind add split smallint;
-- The build to which a worker is pinned.
alter table millrace.session add pin text;
