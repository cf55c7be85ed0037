-- Lessons: what documents belong to by their lesson_id.

-- A lesson is of its tenant; without one, of its owner.
create table millrace.lesson (
    place bigint generated always as identity primary key,
    id text not null check (length(id) between 1 and 128),
    tenant text,
    owner text,                                           -- the person it belongs to
    caller text not null,                                 -- the role that put it
    title text,
    data jsonb not null default '{}',
    created_at timestamptz not null,
    changed_at timestamptz not null,
    is_going boolean not null default false               -- within the transaction that deletes it
);
create unique index lesson_is_one on millrace.lesson (id, coalesce(tenant, ''), (case when tenant is null then coalesce(owner, '') else '' end));
create index lesson_owner on millrace.lesson (owner, place) where owner is not null;
create index lesson_tenant on millrace.lesson (tenant, place) where tenant is not null;

-- Apart from the lesson, whose row is locked by who deletes it: documents that end lock this one, so that one of them is the last.
create table millrace.lesson_progress (
    lesson bigint primary key references millrace.lesson on delete cascade,
    completed_at timestamptz                              -- when the last document under way ended
);
