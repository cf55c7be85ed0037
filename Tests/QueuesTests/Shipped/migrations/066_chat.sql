-- Chat: threads between the members of a family, or between a person and an accepted contact.
create sequence millrace.chat_seq;

create table millrace.chat_thread (
    id uuid primary key,
    family text,                                           -- null: between two contacts
    everybody boolean not null default false,              -- all members of the family, also those who join later
    first_person text,                                     -- the two contacts, in their order
    second_person text,
    title text,
    created_by text,                                       -- null: erased
    digest bytea not null,                                 -- of what was asked for: the same again, or something else
    last_n bigint not null default 0,                      -- the number of the newest message
    last_seq bigint not null,                              -- threads in the order of their newest messages
    last_at timestamptz not null,
    created_at timestamptz not null,
    closed_at timestamptz,                                 -- the two are not contacts any more; -infinity: nobody is left
    constraint a_thread_is_of_a_family_or_of_two check ((family is null) = (first_person is not null and second_person is not null))
) with (fillfactor = 70);
create unique index chat_thread_of_two on millrace.chat_thread (first_person, second_person) where family is null;
create index chat_thread_of_family on millrace.chat_thread (family) where family is not null;
create index chat_thread_closed on millrace.chat_thread (closed_at) where closed_at is not null;

-- Who is in a thread, and how far each has come. `unread` is what a count over the messages would give.
create table millrace.chat_member (
    thread uuid not null references millrace.chat_thread,
    person text not null check (length(person) between 1 and 128),
    since_n bigint not null,                               -- sees messages from this one on
    read_n bigint not null default 0,
    delivered_n bigint not null default 0,
    unread int not null default 0,
    notice uuid,                                           -- the last one about this thread
    joined_at timestamptz not null,
    read_at timestamptz,
    primary key (thread, person)
) with (fillfactor = 70);
create index chat_member_of on millrace.chat_member (person, thread);

-- No reference to the thread: who writes here has locked its row.
create table millrace.chat_message (
    id uuid primary key,                                   -- the client's own
    thread uuid not null,
    n bigint not null,                                     -- its number in the thread
    seq bigint not null,                                   -- its number among all
    sender text,                                           -- null: erased
    text text,                                             -- null: only attachments, or deleted
    digest bytea not null,                                 -- of what was sent; empty: erased
    at timestamptz not null,                               -- when it was written
    received_at timestamptz not null,
    deleted_at timestamptz,
    search tsvector generated always as (to_tsvector('simple'::regconfig, coalesce(text, ''))) stored
) with (fillfactor = 90);
create unique index chat_message_in_thread on millrace.chat_message (thread, n);
create unique index chat_message_in_order on millrace.chat_message (seq);
create index chat_message_by on millrace.chat_message (sender, thread) where sender is not null;
create index chat_message_search on millrace.chat_message using gin (search);

create table millrace.chat_attachment (
    message uuid not null references millrace.chat_message,
    n int not null,
    blob bytea not null,
    size bigint not null,
    mime_type text not null,
    name text,
    primary key (message, n)
);

-- Notices that name a sender go when the sender is erased.
create index notice_chat_sender on millrace.notice ((data ->> 'sender')) where kind = 'chat.message';

alter table millrace.quota drop constraint a_quota_has_a_known_name;
alter table millrace.quota add constraint a_quota_has_a_known_name check (name in ('documents', 'pages', 'bytes', 'cpu_seconds', 'messages'));
