-- What rooms have the core call: see sql/functions/base/hooks.sql. Only the owner of the schema writes here.
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
