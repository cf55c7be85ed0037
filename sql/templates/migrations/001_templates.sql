-- Templates of mails: every version that was published, which of them is live, and who made it so.

create table millrace.template_version (
    name         text not null,
    locale       text not null,
    version      int not null,
    subject      text not null,
    html         text,
    plain        text not null,
    variables    jsonb not null,
    note         text,
    published_by text not null,
    published_at timestamptz not null,
    checked_at timestamptz,                               -- when a worker or the command line has compiled it; nothing else is used
    problem text,                                         -- why it cannot be
    awaited boolean not null default false,               -- it becomes live as soon as it was checked
    primary key (name, locale, version),
    constraint a_version_counts_from_one check (version >= 1),
    constraint what_has_a_problem_was_checked check (problem is null or checked_at is not null),
    constraint what_was_checked_is_not_awaited check (not awaited or checked_at is null)
);
create unique index template_version_awaited on millrace.template_version (name, locale) where awaited;
create index template_version_unchecked on millrace.template_version (published_at) where checked_at is null;

create table millrace.template_live (
    name    text not null,
    locale  text not null,
    version int not null,
    primary key (name, locale),
    foreign key (name, locale, version) references millrace.template_version
);

-- Never changed, and nothing is taken away.
create table millrace.template_event (
    id      bigint generated always as identity primary key,
    at      timestamptz not null,
    name    text not null,
    locale  text not null,
    version int not null,
    change  text not null,
    by      text not null,
    note    text,
    constraint a_template_is_published_or_used check (change in ('published', 'used'))
);
