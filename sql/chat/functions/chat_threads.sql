-- Threads: who begins them, who is in them, how they end. Families are locked before threads, threads before their members.

-- The id, given or new. With members of one's own family, or without members for the whole family, also those who join later. With one
-- contact: the one thread of the two, also if the other has begun it.
create or replace function millrace.chat_thread_create(
    members text[] default null, family text default null, title text default null, id uuid default null, actor text default null,
    caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(chat_thread_create.actor, caller => chat_thread_create.caller);
    others text[] := array(select distinct o from unnest(chat_thread_create.members) o where o is distinct from me order by o);
    the_title text := millrace.chat_title(chat_thread_create.title);
    the_family text := chat_thread_create.family;
    the_id uuid := coalesce(chat_thread_create.id, gen_random_uuid());
    the_digest bytea;
    old millrace.chat_thread;
    t timestamptz;
begin
    if cardinality(chat_thread_create.members) > millrace.most('thread_members') then
        perform millrace.refuse(format('members has more than %s names', millrace.most('thread_members')), 'members', 'Name fewer, or leave it empty for the whole family.', '53400', 'too_large');
    end if;
    perform millrace.valid_name(o, 'members') from unnest(others) o;
    if the_family is not null then
        perform millrace.valid_name(the_family, 'family');
    elsif chat_thread_create.members is null or not exists (
        select from unnest(others) o where not exists (
            select from millrace.family_member a join millrace.family_member b on a.family = b.family where a.person = me and b.person = o)) then
        the_family := (select m.family from millrace.family_member m where m.person = me);
    end if;
    the_digest := sha256(convert_to(jsonb_build_array(me, the_family, case when chat_thread_create.members is not null then to_jsonb(others) end, the_title)::text, 'UTF8'));
    if the_family is null then
        return millrace.chat_two(the_id, me, others, the_title, the_digest);
    end if;
    perform millrace.family_lock_as(the_family, me, false);
    t := millrace.now();
    if chat_thread_create.members is not null and cardinality(others) = 0 then
        perform millrace.refuse('members has nobody but the person', 'members', 'Name the members, or leave it empty for the whole family.');
    end if;
    if exists (select from unnest(others) o where not millrace.family_has(the_family, o, false)) then
        perform millrace.refuse('members names somebody who is neither in the family nor an accepted contact', 'members', null, '42501', 'permission');
    end if;
    select * into old from millrace.chat_thread h where h.id = the_id;
    if not found then
        perform millrace.day_must_take('chat_thread', millrace.keyed_hash('person', me), millrace.counted('threads'), 'the limit of 50 new threads a day is reached', 'members');
        insert into millrace.chat_thread (id, family, everybody, title, created_by, digest, last_seq, last_at, created_at)
        values (the_id, the_family, chat_thread_create.members is null, the_title, me, the_digest, nextval('millrace.chat_seq'), t, t)
            on conflict (id) do nothing;
        if found then
            insert into millrace.chat_member (thread, person, since_n, joined_at)
            select the_id, p, 1, t
              from (select me as p union select o from unnest(others) o
                    union select m.person from millrace.family_member m where m.family = the_family and chat_thread_create.members is null) x order by p;
            return the_id;
        end if;
        select * into old from millrace.chat_thread h where h.id = the_id;
    end if;
    perform millrace.chat_thread_same(old, me, the_digest, the_id);
    return the_id;
end $$;
select millrace.door_is('chat', 'chat_thread_create', 'client, worker', 'actor',
    'Begins a thread with members of the family, or with a contact.');

create or replace function millrace.chat_thread_same(old millrace.chat_thread, me text, the_digest bytea, the_id uuid) returns void
language plpgsql volatile as $$
begin
    if old.digest is distinct from the_digest or not exists (select from millrace.chat_member m where m.thread = old.id and m.person = me) then
        perform millrace.refuse(format('thread %s already exists with different content', the_id), 'id',
            'Repeating an id with the same content returns the first answer; use a new id for another thread.', '23505', 'conflict');
    end if;
end $$;

-- The thread with a contact. The contact's agreement stays locked until the commit: who withdraws it then finds the thread, and closes it.
create or replace function millrace.chat_two(the_id uuid, me text, others text[], the_title text, the_digest bytea) returns uuid
language plpgsql volatile as $$
#variable_conflict use_column
declare
    one text := least(me, others[1]);
    other text := greatest(me, others[1]);
    t timestamptz := millrace.now();
    h millrace.chat_thread;
begin
    if cardinality(others) = 1 then
        perform from millrace.watch_address a
          where (a.person, a.contact) in ((me, others[1]), (others[1], me)) and a.channel = 'push' order by a.ref for share;
    end if;
    if cardinality(others) <> 1 or not millrace.chat_are_contacts(me, others[1]) then
        perform millrace.refuse('members names somebody who is neither in the family nor an accepted contact', 'members',
            'A thread is between members of a family, or with one contact that has agreed to be one.', '42501', 'permission');
    end if;
    select * into h from millrace.chat_thread x where x.first_person = one and x.second_person = other and x.family is null for no key update;
    if h.id is null then
        perform millrace.day_must_take('chat_thread', millrace.keyed_hash('person', me), millrace.counted('threads'), 'the limit of 50 new threads a day is reached', 'members');
        insert into millrace.chat_thread (id, first_person, second_person, title, created_by, digest, last_seq, last_at, created_at)
        values (the_id, one, other, the_title, me, the_digest, nextval('millrace.chat_seq'), t, t)
            on conflict do nothing returning * into h;
        if h.id is not null then
            insert into millrace.chat_member (thread, person, since_n, joined_at) values (h.id, one, 1, t), (h.id, other, 1, t);
            return h.id;
        end if;
        select * into h from millrace.chat_thread x where x.first_person = one and x.second_person = other and x.family is null for no key update;
        if h.id is null then
            select * into h from millrace.chat_thread x where x.id = the_id;
            perform millrace.chat_thread_same(h, me, the_digest, the_id);
        end if;
    end if;
    update millrace.chat_thread x set closed_at = null where x.id = h.id and x.closed_at is not null;
    return h.id;
end $$;

-- The newest first, after the `next` of the last row.
create or replace function millrace.chat_threads(after text default null, page int default 50, actor text default null, caller millrace.caller_name default current_user)
returns table (id uuid, family text, title text, members jsonb, unread int, read_n bigint, last_n bigint, last_at timestamptz, created_at timestamptz, next text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(chat_threads.actor, caller => chat_threads.caller);
    behind bigint := millrace.after_number(chat_threads.after);
    size bigint;
    taken bigint := 0;
begin
    perform millrace.valid_page(chat_threads.page);
    for id, family, title, members, unread, read_n, last_n, last_at, created_at, next in
        select t.id, t.family, t.title,
               (select jsonb_agg(jsonb_build_object('person', o.person, 'name', millrace.display_name(o.person), 'read_n', o.read_n, 'delivered_n', o.delivered_n) order by o.person)
                  from millrace.chat_member o where o.thread = t.id),
               millrace.chat_unread_of(m, t.last_n), m.read_n, t.last_n, t.last_at, t.created_at, t.last_seq::text
          from millrace.chat_member m join millrace.chat_thread t on t.id = m.thread
         where m.person = me and t.closed_at is null and (behind is null or t.last_seq < behind)
         order by t.last_seq desc limit chat_threads.page
    loop
        size := octet_length(row(id, family, title, members, unread, read_n, last_n, last_at, created_at, next)::text);
        exit when not millrace.page_takes('chat_threads', taken, size);
        taken := taken + size;
        return next;
    end loop;
end $$;
select millrace.door_is('chat', 'chat_threads', 'client, worker', 'actor person',
    'The person''s threads, the newest first.');

-- All unread messages of the person.
create or replace function millrace.chat_unread(actor text default null, caller millrace.caller_name default current_user) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.acting_person(chat_unread.actor, caller => chat_unread.caller);
begin
    return (select coalesce(sum(millrace.chat_unread_of(m, t.last_n)), 0) from millrace.chat_member m join millrace.chat_thread t on t.id = m.thread where m.person = me and t.closed_at is null);
end $$;
select millrace.door_is('chat', 'chat_unread', 'client, worker', 'actor person',
    'How many messages the person has not read.');

-- Leaves a thread of the family. What was sent stays, and nothing of what comes is seen.
create or replace function millrace.chat_leave(thread uuid, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.acting_person(chat_leave.actor, caller => chat_leave.caller);
    h millrace.chat_thread := millrace.chat_lock(chat_leave.thread, me);
begin
    if h.family is null then
        perform millrace.refuse('a thread with a contact can only end together with the contact', 'thread', 'Remove the contact with check_in_contact_remove, or decline with check_in_accept.',
            '55000', 'wrong_state');
    end if;
    return millrace.chat_member_gone(h, me);
end $$;
select millrace.door_is('chat', 'chat_leave', 'client, worker', 'actor thread', 'Leaves a thread of the family.');

-- With the thread locked.
create or replace function millrace.chat_member_gone(h millrace.chat_thread, the_person text) returns boolean
language plpgsql volatile as $$
declare
    gone millrace.chat_member;
begin
    delete from millrace.chat_member m where m.thread = h.id and m.person = the_person returning * into gone;
    if gone.person is null then
        return false;
    end if;
    perform millrace.notices_stop(array[gone.notice]);
    if not exists (select from millrace.chat_member m where m.thread = h.id) then
        perform millrace.chat_thread_gone(h);
    end if;
    return true;
end $$;

-- With the thread locked. A long one goes piece by piece, by chat_expire; nobody sees it from now on.
create or replace function millrace.chat_thread_gone(h millrace.chat_thread) returns void
language plpgsql volatile as $$
begin
    delete from millrace.chat_member m where m.thread = h.id;
    perform millrace.chat_messages_gone(array(select m.id from millrace.chat_message m where m.thread = h.id order by m.n limit 10000));
    if exists (select from millrace.chat_message m where m.thread = h.id) then
        update millrace.chat_thread t set closed_at = '-infinity', title = null, created_by = null where t.id = h.id;
    else
        delete from millrace.chat_thread t where t.id = h.id;
    end if;
end $$;

-- With their threads locked: the rows go, and with them their files.
create or replace function millrace.chat_messages_gone(the_ids uuid[]) returns bigint
language plpgsql volatile as $$
declare
    gone bigint;
begin
    perform millrace.blob_release(a.blob, 'chat:' || a.message || ':' || a.n) from millrace.chat_attachment a where a.message = any (the_ids) order by a.blob;
    delete from millrace.chat_attachment a where a.message = any (the_ids);
    perform millrace.ai_erase_ref('chat', m) from unnest(the_ids) m;
    perform millrace.ai_erase_ref('threads', x.thread) from (select distinct m.thread from millrace.chat_message m where m.id = any (the_ids)) x;
    delete from millrace.chat_message m where m.id = any (the_ids);
    get diagnostics gone = row_count;
    return gone;
end $$;

-- Who leaves a family leaves its threads; who joins it comes into those of the whole family, and sees what is written from then on.
create or replace function millrace.chat_family_changed() returns trigger
language plpgsql as $$
declare
    was text := case when tg_op <> 'INSERT' then old.family end;
    is_now text := case when tg_op <> 'DELETE' then new.family end;
    h millrace.chat_thread;
begin
    for h in
        select t.* from millrace.chat_thread t
         where t.family = was and exists (select from millrace.chat_member m where m.thread = t.id and m.person = old.person) order by t.id for no key update
    loop
        perform millrace.chat_member_gone(h, old.person);
    end loop;
    for h in select t.* from millrace.chat_thread t where t.family = is_now and t.everybody and t.closed_at is null order by t.id for no key update loop
        insert into millrace.chat_member (thread, person, since_n, read_n, delivered_n, joined_at)
        values (h.id, new.person, h.last_n + 1, h.last_n, h.last_n, millrace.now()) on conflict do nothing;
    end loop;
    return null;
end $$;

-- A thread of two contacts is open while one of them is the other's accepted contact.
create or replace function millrace.chat_contact_changed() returns trigger
language plpgsql as $$
declare
    one text := coalesce(new.person, old.person);
    other text := coalesce(new.contact, old.contact);
begin
    if coalesce(new.channel, old.channel) = 'push' then
        update millrace.chat_thread t
           set closed_at = case when millrace.chat_are_contacts(one, other) then null else coalesce(t.closed_at, millrace.now()) end
         where t.first_person = least(one, other) and t.second_person = greatest(one, other) and t.family is null
           and (t.closed_at is null) is distinct from millrace.chat_are_contacts(one, other);
    end if;
    return null;
end $$;

do $$
begin
    if exists (select from pg_trigger g where g.tgrelid = 'millrace.family_member'::regclass and g.tgname = 'chat_follows_a_member') then
        return;
    end if;
    create trigger chat_follows_a_new_member after insert on millrace.family_member for each row
        when (new.family is not null)
        execute function millrace.chat_family_changed();
    create trigger chat_follows_a_member after update on millrace.family_member for each row
        when (new.family is distinct from old.family)
        execute function millrace.chat_family_changed();
    create trigger chat_follows_a_last_member after delete on millrace.family_member for each row
        when (old.family is not null)
        execute function millrace.chat_family_changed();
    create trigger chat_follows_a_contact after update on millrace.watch_address for each row
        when ((new.verified_at is null) <> (old.verified_at is null) or (new.declined_at is null) <> (old.declined_at is null))
        execute function millrace.chat_contact_changed();
    create trigger chat_follows_a_removed_contact after delete on millrace.watch_address for each row
        execute function millrace.chat_contact_changed();
end $$;
