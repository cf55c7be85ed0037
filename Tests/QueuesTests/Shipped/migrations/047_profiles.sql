-- How a person is called, and in which language and zone it reads. What nobody has said is null.
create table millrace.profile (
    person text primary key,
    display_name text,
    locale text,
    zone text,
    changed_at timestamptz not null
);
