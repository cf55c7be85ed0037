-- A version is used once a worker or the command line has compiled it. What was published before counts as checked.
alter table millrace.template_version
    add column checked_at timestamptz,
    add column problem text,
    add column awaited boolean not null default false;
update millrace.template_version set checked_at = published_at;
alter table millrace.template_version
    add constraint what_has_a_problem_was_checked check (problem is null or checked_at is not null),
    add constraint what_was_checked_is_not_awaited check (not awaited or checked_at is null);

-- At most one of a name and locale becomes live as soon as it was checked.
create unique index template_version_awaited on millrace.template_version (name, locale) where awaited;
create index template_version_unchecked on millrace.template_version (published_at) where checked_at is null;
