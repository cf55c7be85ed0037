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
