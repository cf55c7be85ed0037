-- Who hears of threads and messages: their members. A row names threads, numbers and persons, and has no word of what was written.

-- One row for all members that see the message; it goes with the sender.
create or replace function millrace.feed_chat_message() returns trigger
language plpgsql as $$
declare
    told jsonb := jsonb_build_object('thread', new.thread, 'n', new.n);
    whose text;                                            -- null: nobody is named
    said text;
begin
    if new.deleted_at is null then
        whose := new.sender;
        told := told || jsonb_build_object('sender', whose);
    end if;
    said := millrace.feed_say(array[millrace.feed_change(at => new.received_at, topic => 'chat', thread => new.thread, n => new.n, ref => new.id::text,
        change => case when new.deleted_at is null then 'message' else 'deleted' end, data => told, about => whose)]);  -- assigned, not performed, as in feed_wake
    return null;
end $$;

-- How far somebody has come: one row for the other members, and one for the person's own devices, which says what is unread.
create or replace function millrace.feed_chat_mark() returns trigger
language plpgsql as $$
declare
    is_read boolean := new.read_n <> old.read_n;
    n bigint := case when is_read then new.read_n else new.delivered_n end;
    what text := case when is_read then 'read' else 'delivered' end;
    told jsonb := jsonb_build_object('person', new.person, 'n', n);
    t timestamptz := millrace.now();
    said text;
begin
    said := millrace.feed_say(array(
        select millrace.feed_change(at => t, topic => 'chat', thread => new.thread, n => n, ref => new.thread::text, change => what, data => told, about => new.person)
        union all
        select millrace.feed_change(at => t, topic => 'chat', person => new.person, ref => new.thread::text, change => what,
                   data => told || jsonb_build_object('unread', millrace.chat_unread_of(new, h.last_n)), family => h.family)
          from millrace.chat_thread h where h.id = new.thread));
    return null;
end $$;

-- Who comes into a thread, and who leaves it. Who has left hears that, and keeps nothing; with the last member all goes.
create or replace function millrace.feed_chat_member() returns trigger
language plpgsql as $$
declare
    who millrace.chat_member := case when tg_op = 'INSERT' then new else old end;
    the_change text := case when tg_op = 'INSERT' then 'joined' else 'left' end;
begin
    perform millrace.feed_say(array(
        select millrace.feed_change(at => millrace.now(), topic => 'chat', person => m.person, ref => who.thread::text, change => the_change,
                   data => jsonb_build_object('person', who.person), family => t.family, about => nullif(who.person, m.person))
          from millrace.chat_member m join millrace.chat_thread t on t.id = m.thread where m.thread = who.thread));
    if tg_op = 'DELETE' then
        perform millrace.feed_chat_forget(who.person, who.thread);
        if not exists (select from millrace.chat_member m where m.thread = who.thread) then
            perform millrace.feed_chat_end(who.thread);
        end if;
        perform millrace.feed_say(array[millrace.feed_change(at => millrace.now(), topic => 'chat', person => who.person, ref => who.thread::text, change => 'left',
            data => jsonb_build_object('person', who.person))]);
    end if;
    return null;
end $$;

-- Two contacts: closed, both keep nothing of it; opened again, each may load it again.
create or replace function millrace.feed_chat_thread() returns trigger
language plpgsql as $$
begin
    if new.closed_at is not null then
        perform millrace.feed_chat_forget(m.person, new.id) from millrace.chat_member m where m.thread = new.id;
        perform millrace.feed_chat_end(new.id);
    end if;
    perform millrace.feed_say(array(
        select millrace.feed_change(at => millrace.now(), topic => 'chat', person => m.person, ref => new.id::text,
                   change => case when new.closed_at is null then 'opened' else 'closed' end, data => '{}')
          from millrace.chat_member m where m.thread = new.id));
    return null;
end $$;

do $$
begin
    if exists (select from pg_trigger g where g.tgrelid = 'millrace.chat_message'::regclass and g.tgname = 'a_feed_has_its_new_message') then
        return;
    end if;
    create trigger a_feed_has_its_new_message after insert on millrace.chat_message for each row
        execute function millrace.feed_chat_message();
    create trigger a_feed_has_its_deleted_message after update on millrace.chat_message for each row
        when (old.deleted_at is null and new.deleted_at is not null)
        execute function millrace.feed_chat_message();
    create trigger a_feed_has_its_marks after update on millrace.chat_member for each row
        when (new.read_n <> old.read_n or new.delivered_n <> old.delivered_n)
        execute function millrace.feed_chat_mark();
    create trigger a_feed_has_its_new_chat_member after insert on millrace.chat_member for each row
        execute function millrace.feed_chat_member();
    create trigger a_feed_has_its_last_chat_member after delete on millrace.chat_member for each row
        execute function millrace.feed_chat_member();
    create trigger a_feed_has_its_thread after update on millrace.chat_thread for each row
        when ((new.closed_at is null) <> (old.closed_at is null) and new.family is null)
        execute function millrace.feed_chat_thread();
end $$;
