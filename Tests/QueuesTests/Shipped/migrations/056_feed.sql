-- The feed of changes for people: what an app on a phone is told. A row concerns one person, or everybody who may see the tenant.
create sequence millrace.feed_seq;
create table millrace.feed (
    place bigint generated always as identity primary key,
    seq bigint,                                            -- null: nobody has read it yet
    at timestamptz not null,
    topic text not null,
    person text,                                           -- null: of the tenant
    tenant text,
    lesson text,
    ref text not null,                                     -- what has changed
    change text not null,
    data jsonb not null,
    family text,                                           -- goes when the person leaves this family
    about text,                                            -- another person, of whom it tells
    actor text,                                            -- another person, who did it
    due_at timestamptz,                                    -- nobody reads it before
    constraint a_change_concerns_somebody check (person is not null or tenant is not null)
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);
-- A writer adds to the first of these and to the primary key, at their ends; readers fill the others when they number.
create index feed_fresh on millrace.feed (place) where seq is null and due_at is null;
create index feed_later on millrace.feed (due_at) where seq is null and due_at is not null;
create unique index feed_in_order on millrace.feed (seq) where seq is not null;
create index feed_of_person on millrace.feed (person, seq) where seq is not null and person is not null;
create index feed_of_tenant on millrace.feed (tenant, seq) where seq is not null and person is null;
create index feed_about on millrace.feed (about) where about is not null;
create index feed_by on millrace.feed (actor) where actor is not null;

-- One row: the last number of which a change has expired, and up to which plain check-ins were thinned out.
create table millrace.feed_mark (
    one boolean primary key default true check (one),
    gone bigint not null default 0,
    thinned bigint not null default 0
);
insert into millrace.feed_mark default values;
