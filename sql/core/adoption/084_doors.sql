-- The functions and views that roles may use: see sql/core/base/doors.sql. Only the owner of the schema writes here.
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
