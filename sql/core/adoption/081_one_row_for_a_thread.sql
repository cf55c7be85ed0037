-- A change of a thread is one row of the feed for all of its members, and a message changes no member but its sender. Numbering looks only at
-- transactions that were not seen by the numbering before.

-- Numbers behind the member's mark that count for nothing: its own messages, and those that are gone. What is left of `last_n` is unread.
alter table millrace.chat_member add column passed bigint not null default 0;
update millrace.chat_member m set passed = t.last_n - greatest(m.read_n, m.since_n - 1) - m.unread from millrace.chat_thread t where t.id = m.thread;
alter table millrace.chat_member drop column unread;

alter table millrace.feed
    add column thread uuid,                                -- concerns the members of a thread that see its message `n`
    add column n bigint,
    add column xid xid8,                                   -- who wrote it; null: numbered before this was kept
    add column counted_to xid8,                            -- of the last row of a numbering: it saw all transactions below this,
    add column counted_open xid8[],                        -- but for these,
    add column counted_at timestamptz;                     -- and all that was due
alter table millrace.feed alter column xid set default pg_current_xact_id();
update millrace.feed f set xid = pg_current_xact_id() where f.seq is null;
alter table millrace.feed drop constraint a_change_concerns_somebody;
alter table millrace.feed add constraint a_change_concerns_somebody check (person is not null or tenant is not null or thread is not null) not valid;
alter table millrace.feed add constraint a_thread_has_its_number check ((thread is null) = (n is null)) not valid;
alter table millrace.feed validate constraint a_change_concerns_somebody, validate constraint a_thread_has_its_number;
drop index millrace.feed_of_tenant;
create index feed_of_tenant on millrace.feed (tenant, seq) where seq is not null and person is null and tenant is not null;
create index feed_of_thread on millrace.feed (thread, seq) where seq is not null and thread is not null;
create index feed_begun on millrace.feed (xid) where seq is null and xid is not null;  -- so no other search takes it
create index feed_counted on millrace.feed (seq) where counted_to is not null;
