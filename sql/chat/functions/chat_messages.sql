-- Messages: sending, reading, deleting, searching. What changes a thread's messages holds its lock; what moves a member's mark holds the member's row.

-- The family, locked, if this message may complete their quest of today; null: there is nothing to complete. Families are locked before threads.
-- One query on the way of every message; a family that no worker has taken over its midnight yet is looked at more closely.
create or replace function millrace.chat_quest_family(the_thread uuid, me text) returns millrace.quest_family
language plpgsql volatile as $$
declare
    f millrace.quest_family;
    t timestamptz := millrace.now();
    the_day date;
    the_kind text;
begin
    select x.* into f
      from millrace.chat_thread h
      join millrace.quest_family x on x.family = h.family
      left join millrace.quest q on q.family = x.family and q.day = x.today
      left join millrace.quest_item i on i.id = q.item
     where h.id = the_thread and h.closed_at is null and exists (select from millrace.chat_member m where m.thread = h.id and m.person = me)
       and (x.next_rollover_at <= t or coalesce(i.kind, 'family_chat') = 'family_chat')
       and not exists (select from millrace.quest_completion c where c.family = x.family and c.day = x.today and c.person = me and c.undone_at is null and x.next_rollover_at > t);
    if f.family is null then
        return null;
    end if;
    if f.next_rollover_at <= t then
        the_day := (millrace.quest_clock(f, t)).today;
        select i.kind into the_kind
          from millrace.quest_rule r
          left join millrace.quest q on q.family = f.family and q.day = the_day
          join millrace.quest_item i on i.id = coalesce(q.item, millrace.quest_item_of(f.family, the_day, r.rotation));
        if the_kind <> 'family_chat' or exists (
            select from millrace.quest_completion c where c.family = f.family and c.day = the_day and c.person = me and c.undone_at is null) then
            return null;
        end if;
    end if;
    return millrace.quest_family_of(millrace.family_lock(f.family));
end $$;

-- The id, given or new. With an id that is known and the same content it answers as the first time, and nothing is sent; `at`: when it was
-- written, for what was written offline. One transaction stores the message, tells the others, and completes the quest.
create or replace function millrace.chat_send(
    thread uuid, text text default null, attachments jsonb default '[]', id uuid default null, at timestamptz default null, actor text default null,
    caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(chat_send.actor, caller => chat_send.caller);
    the_text text := millrace.chat_text(chat_send.text);
    files jsonb := millrace.chat_files(coalesce(chat_send.attachments, '[]'));
    the_id uuid := coalesce(chat_send.id, gen_random_uuid());
    the_digest bytea;
    f millrace.quest_family;
    h millrace.chat_thread;
    old bytea;
    t timestamptz;
    the_at timestamptz;
    told text;
begin
    if the_text is null and files = '[]' then
        perform millrace.refuse('the message has neither text nor attachments', 'text', 'Give one of them.');
    end if;
    the_digest := sha256(convert_to(jsonb_build_array(chat_send.thread, me, the_text, files)::text, 'UTF8'));
    f := millrace.chat_quest_family(chat_send.thread, me);
    h := millrace.chat_lock(chat_send.thread, me);
    t := millrace.now();
    the_at := millrace.happened(chat_send.at, t);
    if chat_send.id is not null then
        select m.digest into old from millrace.chat_message m where m.id = the_id;
        if found then
            perform millrace.chat_message_same(old, the_digest, the_id);
            return the_id;
        end if;
    end if;
    told := millrace.chat_count(me, millrace.caller_tenant(chat_send.caller));
    insert into millrace.chat_message (id, thread, n, seq, sender, text, digest, at, received_at)
    values (the_id, h.id, h.last_n + 1, nextval('millrace.chat_seq'), me, the_text, the_digest, coalesce(the_at, t), t)
        on conflict (id) do nothing;
    if not found then                                      -- at the same moment, in another thread
        perform millrace.chat_message_same((select m.digest from millrace.chat_message m where m.id = the_id), the_digest, the_id);
        raise exception using errcode = '40001', message = 'a message with this id was sent by a concurrent transaction';
    end if;
    if files <> '[]' then
        perform millrace.chat_attach(the_id, files, chat_send.caller);
    end if;
    update millrace.chat_thread x set last_n = x.last_n + 1, last_seq = currval('millrace.chat_seq'), last_at = t where x.id = h.id;
    update millrace.chat_member m set passed = m.passed + 1 where m.thread = h.id and m.person = me;
    told := millrace.chat_tell(h.id, h.last_n + 1, me, t);
    if f.family is not null then
        perform millrace.chat_quest(f, me, the_at, t);
    end if;
    told := millrace.chat_moderate(the_id, me, the_text, chat_send.caller);
    return the_id;
end $$;
select millrace.door_is('chat', 'chat_send', 'client, worker', 'actor thread', 'Sends a message. Returns its id.',
    who_may => array['write there: itself, teen, parent, back end, staff']);

create or replace function millrace.chat_message_same(old bytea, the_digest bytea, the_id uuid) returns void
language plpgsql volatile as $$
begin
    if old is distinct from the_digest then
        perform millrace.refuse(format('message %s was already sent with different content', the_id), 'id',
            'Repeating an id with the same content returns the first answer; use a new id for another message.', '23505', 'conflict');
    end if;
end $$;

-- One more today, for the person, and for the tenant where it has a quota. Assigned, not performed: Postgres prepares a `perform` again in every call.
create or replace function millrace.chat_count(me text, the_tenant text) returns void
language plpgsql volatile as $$
declare
    who bytea := millrace.keyed_hash('person', me);
    most int := millrace.chat_rule('day');
    fits boolean := millrace.day_take('chat', who, most);
begin
    if not fits then
        perform millrace.refuse_quota('this person has reached today''s limit of messages', 'actor', format('At most %s a day; the next day begins at midnight UTC.', most),
            most, most, (millrace.today_utc() + 1)::timestamp at time zone 'UTC');
    end if;
    if the_tenant <> '' and exists (select from millrace.quota q where q.tenant = the_tenant and q.name = 'messages') and not millrace.quota_use(the_tenant, 'messages', 1) then
        perform millrace.refuse_quota('the tenant has used up its messages for this period', 'tenant', 'See the view quotas for when the next one begins.',
            q.allowed, q.used, millrace.quota_reset(q.period, q.since)) from millrace.quota q where q.tenant = the_tenant and q.name = 'messages';
    end if;
end $$;

-- Keeps the files of a message. What came by a link is named by the link, which nobody can guess; a hash opens only what the caller may use.
create or replace function millrace.chat_attach(the_message uuid, files jsonb, caller name) returns void
language plpgsql volatile as $$
declare
    one record;
    the_blob bytea;
    the_size bigint;
begin
    for one in select e ->> 'storage_url' as url, lower(e ->> 'mime_type') as type, e ->> 'name' as name, n::int as n from jsonb_array_elements(files) with ordinality x(e, n) loop
        the_blob := case when one.url like 'upload:%' then millrace.upload_blob(substr(one.url, 8)::uuid) else decode(substr(one.url, 6), 'hex') end;
        select b.size into the_size from millrace.blob b
         where b.id = the_blob and (one.url like 'upload:%' or millrace.blob_may_use(the_blob, caller, millrace.is_staff(caller), millrace.caller_tenant(caller)))
           for key share;
        if not found then
            perform millrace.refuse('there is nothing under the storage_url of an attachment', 'attachments', 'First upload the file to the url that chat_upload returned; it is kept for two days.',
                'P0002', 'not_found');
        end if;
        insert into millrace.chat_attachment (message, n, blob, size, mime_type, name) values (the_message, one.n, the_blob, the_size, one.type, one.name);
        perform millrace.blob_keep(the_blob, 'chat:' || the_message || ':' || one.n);
        if one.url like 'upload:%' then
            perform millrace.blob_release(the_blob, one.url);
        end if;
    end loop;
end $$;

-- A notice for each of the others, by push, without a word of the message. While one of this thread waits it stands for later messages too;
-- those of several senders become one that names nobody. One look finds those who need anything: mostly that is nobody.
create or replace function millrace.chat_tell(the_thread uuid, the_n bigint, me text, t timestamptz) returns void
language plpgsql volatile as $$
declare
    m record;
begin
    for m in
        select x.person, x.notice, coalesce(n.status = 'pending', false) as waits
          from millrace.chat_member x left join millrace.notice n on n.id = x.notice
         where x.thread = the_thread and x.person <> me and (n.status is distinct from 'pending' or n.data ->> 'sender' <> me)
    loop
        if not m.waits then
            update millrace.chat_member x
               set notice = millrace.notice_send(m.person, 'chat.message',
                       jsonb_build_object('thread', the_thread, 'sender', me, 'by', millrace.display_name(me)), millrace.chat_channels(m.person),
                       'chat:' || the_thread || ':' || the_n, t + interval '3 seconds', t + interval '1 day')
             where x.thread = the_thread and x.person = m.person;
        else
            perform millrace.notice_reword(m.notice, '{}', array['sender', 'by']);
        end if;
    end loop;
end $$;

-- Push alone, unless the person has said how it wants to hear of messages.
create or replace function millrace.chat_channels(the_person text) returns text[]
language sql stable as $$
    select case when exists (select from millrace.notice_preference p where p.person = the_person and p.channels #> '{kinds,chat.message}' is not null) then null else array['push'] end
$$;

-- What was written on a day that is over completes nothing.
create or replace function millrace.chat_quest(f millrace.quest_family, me text, at timestamptz, t timestamptz) returns void
language plpgsql volatile as $$
declare
    the_day date;
begin
    begin
        the_day := millrace.quest_day(f, null, chat_quest.at, t);
    exception when object_not_in_prerequisite_state then
        return;
    end;
    perform millrace.quest_do_if(f, me, the_day, 'family_chat', least(coalesce(chat_quest.at, t), t), t);
end $$;

-- Called for each new message, in the transaction that stores it: has a language model judge it, as a job, if the rule `moderate` says so and the
-- family has AI switched on. The message does not wait for it, and is sent whether or not anything can be asked.
create or replace function millrace.chat_moderate(the_message uuid, me text, the_text text, caller name) returns void
language plpgsql volatile as $$
begin
    if millrace.chat_rule('moderate') = 1 and btrim(the_text) <> '' then
        perform millrace.ai_ask_for('chat', the_message, 'sentiment', jsonb_build_object('text', the_text), nullif(millrace.caller_tenant(caller), ''), me, false);
    end if;
end $$;

-- A tombstone: text and files go, the row stays. False: it was deleted before.
create or replace function millrace.chat_delete(id uuid, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(chat_delete.actor, caller => chat_delete.caller);
    the_thread uuid := (select m.thread from millrace.chat_message m where m.id = chat_delete.id and m.sender = me and (millrace.chat_seen(m.thread, me)).person is not null);
begin
    if the_thread is null then
        perform millrace.chat_no_message(chat_delete.id);
    end if;
    perform millrace.chat_lock(the_thread, me);
    return millrace.chat_tombstone(chat_delete.id);
end $$;
select millrace.door_is('chat', 'chat_delete', 'client, worker', 'actor message',
    'Deletes one of the person''s messages.', who_may => array['delete one of their messages: itself, back end, staff']);

-- For an operator, of any message.
create or replace function millrace.chat_remove(id uuid, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    h uuid;
begin
    select t.id into h from millrace.chat_message m join millrace.chat_thread t on t.id = m.thread where m.id = chat_remove.id for no key update of t;
    if h is null then
        perform millrace.chat_no_message(chat_remove.id);
    end if;
    if not millrace.chat_tombstone(chat_remove.id) then
        return false;
    end if;
    perform millrace.audited('chat.remove', chat_remove.id::text, jsonb_build_object('thread', h), caller => chat_remove.caller);
    return true;
end $$;
select millrace.door_is('chat', 'chat_remove', 'admin', 'staff', audited => true,
    who_may => array['delete any message, as an operator: staff']);

create or replace function millrace.chat_no_message(the_id uuid) returns void
language plpgsql as $$
begin
    perform millrace.refuse(format('there is no message %s', the_id), 'id', null, 'P0002', 'not_found');
end $$;

-- With the thread locked.
create or replace function millrace.chat_tombstone(the_id uuid) returns boolean
language plpgsql volatile as $$
declare
    m millrace.chat_message;
begin
    update millrace.chat_message x set text = null, deleted_at = millrace.now() where x.id = the_id and x.deleted_at is null returning * into m;
    if m.id is null then
        return false;
    end if;
    perform millrace.ai_erase_ref('chat', m.id);          -- what was asked about it has its text
    perform millrace.ai_erase_ref('threads', m.thread);
    perform millrace.blob_release(a.blob, 'chat:' || a.message || ':' || a.n) from millrace.chat_attachment a where a.message = m.id order by a.blob;
    delete from millrace.chat_attachment a where a.message = m.id;
    update millrace.chat_member x set passed = x.passed + 1
     where x.thread = m.thread and x.person is distinct from m.sender and x.since_n <= m.n and x.read_n < m.n;
    perform millrace.notices_stop(array(
        select x.notice from millrace.chat_member x join millrace.chat_thread t on t.id = x.thread
         where x.thread = m.thread and millrace.chat_unread_of(x, t.last_n) = 0 and x.notice is not null));
    return true;
end $$;

-- How many messages the member has not read, when the last one of the thread has this number.
create or replace function millrace.chat_unread_of(m millrace.chat_member, last_n bigint) returns int
language sql immutable parallel safe as $$
    select (last_n - greatest(m.read_n, m.since_n - 1) - m.passed)::int
$$;

-- What is not read yet, counted: what `chat_unread_of` must always be.
create or replace function millrace.chat_unread_counted(the_thread uuid, the_person text) returns bigint
language sql stable as $$
    select count(*) from millrace.chat_member m join millrace.chat_message x on x.thread = m.thread and x.n > m.read_n and x.n >= m.since_n
     where m.thread = the_thread and m.person = the_person and x.deleted_at is null and x.sender is distinct from m.person
$$;

-- Everything up to this message is read; the mark never goes back. Returns how many are still unread. Counts on the shorter side of the mark.
create or replace function millrace.chat_read(thread uuid, message uuid, actor text default null, caller millrace.caller_name default current_user) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(chat_read.actor, caller => chat_read.caller);
    m millrace.chat_member;
    upto bigint;
    newest bigint;
    left_unread int;
    -- A notice is called off only while no message can come. Threads are locked before their members.
    is_told boolean := exists (
        select from millrace.chat_member x join millrace.notice n on n.id = x.notice
         where x.thread = chat_read.thread and x.person = me and n.status = 'pending');
begin
    if is_told then
        perform from millrace.chat_thread t where t.id = chat_read.thread for no key update;
    end if;
    select x.* into m from millrace.chat_member x
     where x.thread = chat_read.thread and x.person = me and (millrace.chat_seen(x.thread, me)).person is not null for no key update;
    if m.person is null then
        perform millrace.chat_no_thread(chat_read.thread);
    end if;
    -- Behind the lock: the member's own messages and deletions wait, so that each of the counts below is of one moment.
    select x.n into upto from millrace.chat_message x where x.id = chat_read.message and x.thread = m.thread and x.n >= m.since_n;
    if upto is null then
        perform millrace.refuse(format('there is no message %s', chat_read.message), 'message', null, 'P0002', 'not_found');
    end if;
    select t.last_n into newest from millrace.chat_thread t where t.id = m.thread;
    if upto <= m.read_n then
        return millrace.chat_unread_of(m, newest);
    end if;
    if newest - upto <= upto - m.read_n then
        select t.last_n, (select count(*) from millrace.chat_message x
                           where x.thread = m.thread and x.n > upto and x.deleted_at is null and x.sender is distinct from me)
          into newest, left_unread from millrace.chat_thread t where t.id = m.thread;
    else
        select t.last_n, millrace.chat_unread_of(m, t.last_n)
                       - (select count(*) from millrace.chat_message x
                           where x.thread = m.thread and x.n > m.read_n and x.n >= m.since_n and x.n <= upto and x.deleted_at is null and x.sender is distinct from me)
          into newest, left_unread from millrace.chat_thread t where t.id = m.thread;
    end if;
    update millrace.chat_member x
       set read_n = upto, delivered_n = greatest(x.delivered_n, upto), passed = newest - upto - left_unread, read_at = millrace.now()
     where x.thread = m.thread and x.person = me;
    if is_told and left_unread = 0 then
        perform millrace.notices_stop(array[m.notice]);
    end if;
    return left_unread;
end $$;
select millrace.door_is('chat', 'chat_read', 'client, worker', 'actor thread',
    'Marks a thread as read up to a message. Returns how many are unread.');

create or replace function millrace.chat_attachments_of(the_message uuid) returns jsonb
language sql stable as $$
    select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('n', a.n, 'size', a.size, 'mime_type', a.mime_type, 'name', a.name)) order by a.n), '[]')
      from millrace.chat_attachment a where a.message = the_message
$$;

-- How far all others who were to get it have come with a message.
create or replace function millrace.chat_status_of(the_thread uuid, the_n bigint, the_sender text) returns text
language sql stable as $$
    select case when min(m.read_n) >= the_n then 'read' when min(m.delivered_n) >= the_n then 'delivered' else 'sent' end
      from millrace.chat_member m where m.thread = the_thread and m.person <> the_sender and m.since_n <= the_n
$$;

-- Newest first, after the n of the last row; or with `since` those after that n, oldest first. What was returned counts as delivered.
create or replace function millrace.chat_messages(
    thread uuid, after text default null, page int default 50, since bigint default null, actor text default null, caller millrace.caller_name default current_user
) returns table (id uuid, n bigint, sender text, name text, text text, attachments jsonb, at timestamptz, received_at timestamptz, deleted boolean, status text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(chat_messages.actor, caller => chat_messages.caller);
    m millrace.chat_member := millrace.chat_seen(chat_messages.thread, me);
    behind bigint := millrace.after_number(chat_messages.after);
    shown bigint[];
    delivered bigint;
    size bigint;
    taken bigint := 0;
begin
    perform millrace.valid_page(chat_messages.page);
    if m.person is null then
        perform millrace.chat_no_thread(chat_messages.thread);
    end if;
    if chat_messages.since is not null then
        shown := array(select x.n from millrace.chat_message x
                        where x.thread = m.thread and x.n > chat_messages.since and x.n >= m.since_n and (behind is null or x.n < behind) order by x.n limit chat_messages.page);
    else
        shown := array(select x.n from millrace.chat_message x
                        where x.thread = m.thread and x.n >= m.since_n and (behind is null or x.n < behind) order by x.n desc limit chat_messages.page);
    end if;
    for id, n, sender, name, text, attachments, at, received_at, deleted, status in
        select x.id, x.n, x.sender, millrace.display_name(x.sender), x.text, millrace.chat_attachments_of(x.id), x.at, x.received_at, x.deleted_at is not null,
               case when x.sender = me then millrace.chat_status_of(x.thread, x.n, me) end
          from unnest(shown) with ordinality s(n, o) join millrace.chat_message x on x.thread = m.thread and x.n = s.n order by s.o
    loop
        size := octet_length(row(id, n, sender, name, text, attachments, at, received_at, deleted, status)::text);
        exit when not millrace.page_takes('chat_messages', taken, size);
        taken := taken + size;
        delivered := greatest(delivered, n);
        return next;
    end loop;
    update millrace.chat_member x set delivered_n = delivered where x.thread = m.thread and x.person = me and x.delivered_n < delivered;
end $$;
select millrace.door_is('chat', 'chat_messages', 'client, worker', 'actor thread',
    'The messages of a thread. What was returned counts as delivered.',
    who_may => array['read the family''s thread: itself, teen, parent, back end, staff']);

-- Of one's own message: how far each of the others has come with it.
create or replace function millrace.chat_status(id uuid, actor text default null, caller millrace.caller_name default current_user)
returns table (person text, status text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(chat_status.actor, caller => chat_status.caller);
    x millrace.chat_message;
begin
    select m.* into x from millrace.chat_message m where m.id = chat_status.id and m.sender = me and (millrace.chat_seen(m.thread, me)).person is not null;
    if x.id is null then
        perform millrace.chat_no_message(chat_status.id);
    end if;
    return query
        select m.person, case when m.read_n >= x.n then 'read' when m.delivered_n >= x.n then 'delivered' else 'sent' end
          from millrace.chat_member m where m.thread = x.thread and m.person <> me and m.since_n <= x.n order by m.person;
end $$;
select millrace.door_is('chat', 'chat_status', 'client, worker', 'actor message',
    'Who has received and read one of the person''s messages.');

-- A link to a file of a message. The link is all that is needed, so it ends by itself, and with the message, and when the person that it was made for does
-- not see the message any more.
create or replace function millrace.chat_attachment_link(
    id uuid, n int default 1, valid interval default '1 hour', actor text default null, caller millrace.caller_name default current_user
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(chat_attachment_link.actor, caller => chat_attachment_link.caller);
    a millrace.chat_attachment;
begin
    if chat_attachment_link.valid is null or chat_attachment_link.valid not between interval '1 minute' and interval '1 day' then
        perform millrace.refuse('valid is out of range', 'valid', 'Give 1 minute to 1 day.');
    end if;
    select x.* into a from millrace.chat_attachment x join millrace.chat_message m on m.id = x.message
     where x.message = chat_attachment_link.id and x.n = chat_attachment_link.n and (millrace.chat_seen(m.thread, me)).since_n <= m.n;
    if a.message is null then
        perform millrace.refuse('there is no such attachment', 'id', null, 'P0002', 'not_found');
    end if;
    return millrace.blob_link(a.blob, case when a.mime_type in ('image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/heic', 'application/pdf') then a.mime_type else 'application/octet-stream' end,
        coalesce(a.name, 'attachment'), chat_attachment_link.valid, 'chat:' || a.message || ':' || a.n, substr(millrace.keyed_hash('person', me), 1, 16));
end $$;
select millrace.door_is('chat', 'chat_attachment_link', 'client, worker', 'actor message',
    'A link to a file of a message.');

-- Whether the person that a link was made for still sees the message that it is of. The link names it by a hash.
create or replace function millrace.chat_link_holds(the_owner text, reader bytea) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
    select exists (
        select from millrace.chat_message x
          join millrace.chat_thread t on t.id = x.thread and t.closed_at is null
          join millrace.chat_member m on m.thread = x.thread and m.since_n <= x.n
         where the_owner ~ '^chat:[0-9a-f-]{36}:[0-9]+$' and x.id = split_part(the_owner, ':', 2)::uuid
           and substr(millrace.keyed_hash('person', m.person), 1, 16) = reader)
$$;
select millrace.door_is('chat', 'chat_link_holds', 'worker, gateway', 'staff');

-- Words, "phrases", or, -without, in one's own threads. The newest first; matches stand between ⟦ and ⟧. `next` of the last row is the `after` of the next call.
create or replace function millrace.chat_search(
    query text, after text default null, page int default 50, actor text default null, caller millrace.caller_name default current_user
) returns table (id uuid, thread uuid, n bigint, sender text, name text, highlight text, at timestamptz, next text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(chat_search.actor, caller => chat_search.caller);
    behind bigint := millrace.after_number(chat_search.after);
    words tsquery;
    size bigint;
    taken bigint := 0;
begin
    perform millrace.valid_page(chat_search.page);
    if chat_search.query is null or length(chat_search.query) not between 1 and millrace.most('query') then
        perform millrace.refuse('the query is empty or too long', 'query', 'Give 1 to 1000 characters.');
    end if;
    words := websearch_to_tsquery('simple', chat_search.query);
    for id, thread, n, sender, name, highlight, at, next in
        select x.id, x.thread, x.n, x.sender, millrace.display_name(x.sender),
               ts_headline('simple', x.text, words, 'StartSel=⟦, StopSel=⟧, MaxFragments=2, MinWords=5, MaxWords=18, FragmentDelimiter=" … "'), x.at, x.seq::text
          from (select y.* from millrace.chat_member m
                  join millrace.chat_thread t on t.id = m.thread and t.closed_at is null
                  join millrace.chat_message y on y.thread = m.thread and y.n >= m.since_n
                 where m.person = me and y.search @@ words and y.deleted_at is null and (behind is null or y.seq < behind)
                 order by y.seq desc limit chat_search.page) x
         order by x.seq desc limit chat_search.page               -- with a limit no headline is made before it is wanted
    loop
        size := octet_length(row(id, thread, n, sender, name, highlight, at, next)::text);
        exit when not millrace.page_takes('chat_search', taken, size);
        taken := taken + size;
        return next;
    end loop;
end $$;
select millrace.door_is('chat', 'chat_search', 'client, worker', 'actor person',
    'Searches the messages of the person''s threads.');
