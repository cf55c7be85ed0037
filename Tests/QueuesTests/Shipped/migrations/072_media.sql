-- Files that are made as jobs: thumbnails, pictures without their metadata, rendered templates.

create table millrace.media (
    id uuid primary key,
    what text not null,
    blob bytea,                                            -- the picture; null once it has ended, and for a template
    wish jsonb,                                            -- what was asked for; null once it has ended
    digest bytea,                                          -- of what was asked for: the same again, or something else
    tenant text,
    owner text,                                            -- the person
    caller text not null,                                  -- the role that asked
    job bigint,
    status text not null,
    mime_type text,                                        -- what the picture was found to be
    reason text,
    sentence text,
    created_at timestamptz not null,
    ended_at timestamptz,
    constraint media_is_of_a_known_sort check (what in ('picture', 'template')),
    constraint media_has_a_known_status check (status in ('waiting', 'done', 'failed')),
    constraint ended_media_says_when check ((status = 'waiting') = (ended_at is null))
);
create index media_open on millrace.media (created_at) where status = 'waiting';
create index media_failed on millrace.media (ended_at) where status = 'failed';
create index media_of on millrace.media (owner) where owner is not null;
create index media_of_tenant on millrace.media (tenant) where tenant is not null;

create table millrace.media_file (
    media uuid not null references millrace.media on delete cascade,
    kind text not null,                                    -- thumbnail, picture; html, text, pdf
    blob bytea not null,
    size bigint not null,
    mime_type text not null,
    width int,
    height int,
    primary key (media, kind)
);

-- It has parameters more, with defaults: callers from before call it as they did.
drop function if exists millrace.template_render(text, jsonb, text, text, text, millrace.caller_name);
