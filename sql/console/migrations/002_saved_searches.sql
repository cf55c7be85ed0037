-- Searches of jobs that somebody has saved under a name, for everybody who uses the console.
create table millrace.console_search (
    name text primary key,
    filter jsonb not null,                                -- the conditions, as the address of the list has them
    saved_by text,                                        -- as the program said
    saved_at timestamptz not null,
    constraint a_search_has_a_name check (length(name) between 1 and 128),
    constraint a_search_has_conditions check (jsonb_typeof(filter) = 'object')
);
