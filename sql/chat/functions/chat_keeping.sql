-- How chats end: erasure, retention; and what operators see.

-- Joins in person_erase. Messages of the person become tombstones that name nobody, so that others' threads keep their order; a thread with one contact goes.
create or replace function millrace.chat_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    gone bigint := 0;
    n bigint;
    h millrace.chat_thread;
    one uuid;
begin
    perform from millrace.family x where x.family in (
        select m.family from millrace.family_member m where m.person = chat_erase_person.person) order by x.family for no key update;
    for h in
        select t.* from millrace.chat_thread t
         where t.id in (select m.thread from millrace.chat_member m where m.person = chat_erase_person.person
                        union select m.thread from millrace.chat_message m where m.sender = chat_erase_person.person)
            or t.first_person = chat_erase_person.person or t.second_person = chat_erase_person.person or t.created_by = chat_erase_person.person
         order by t.id for no key update
    loop
        if h.family is null then
            gone := gone + h.last_n + 1;
            perform millrace.chat_thread_gone(h);
            update millrace.chat_thread t set first_person = 'erased:' || gen_random_uuid(), second_person = 'erased' where t.id = h.id;
            update millrace.chat_message m set text = null, sender = null, digest = '', deleted_at = coalesce(m.deleted_at, millrace.now()) where m.thread = h.id;
            continue;
        end if;
        for one in select m.id from millrace.chat_message m where m.thread = h.id and m.sender = chat_erase_person.person order by m.n loop
            perform millrace.chat_tombstone(one);
        end loop;
        update millrace.chat_message m set sender = null, digest = '' where m.thread = h.id and m.sender = chat_erase_person.person;
        get diagnostics n = row_count; gone := gone + n;
        gone := gone + millrace.chat_member_gone(h, chat_erase_person.person)::int;
        -- Nothing of what the person wrote stays, nor a hash of it.
        update millrace.chat_thread t set created_by = null, title = null, digest = '' where t.id = h.id and t.created_by = chat_erase_person.person;
    end loop;
    return gone + millrace.notices_drop(array(
        select x.id from millrace.notice x where x.kind = 'chat.message' and x.data ->> 'sender' = chat_erase_person.person));
end $$;

-- What is over: messages older than the rule says, threads that have been closed for 30 days, and the rest of long threads that nobody is in.
create or replace function millrace.chat_expire(most int default 5000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    gone bigint := 0;
    days int := millrace.chat_rule('keep_days');
    h millrace.chat_thread;
    old uuid[];
begin
    for h in select t.* from millrace.chat_thread t where t.closed_at < millrace.now() - interval '30 days' order by t.closed_at limit 20 for no key update skip locked loop
        perform millrace.chat_thread_gone(h);
        gone := gone + 1;
    end loop;
    if days = 0 then
        return gone;
    end if;
    for h in
        select t.* from millrace.chat_thread t
         where t.id in (select x.thread from (select m.thread, m.received_at from millrace.chat_message m order by m.seq limit most) x
                         where x.received_at < millrace.now() - make_interval(days => days))
         order by t.id for no key update skip locked
    loop
        old := array(select m.id from millrace.chat_message m where m.thread = h.id and m.received_at < millrace.now() - make_interval(days => days) order by m.n limit most);
        perform from millrace.chat_member m where m.thread = h.id order by m.person for no key update;
        gone := gone + millrace.chat_messages_gone(old);
        update millrace.chat_member m set passed = m.passed + millrace.chat_unread_of(m, h.last_n) - c.n
          from (select y.person, millrace.chat_unread_counted(y.thread, y.person) as n from millrace.chat_member y where y.thread = h.id) c
         where m.thread = h.id and m.person = c.person and millrace.chat_unread_of(m, h.last_n) <> c.n;
    end loop;
    return gone;
end $$;

-- For operators: threads without what is written in them, the newest first, after the `next` of the last row; with of_person those that it is in.
create or replace function millrace.chat_threads_shown(after text default null, page int default 50, of_person text default null)
returns table (id uuid, family text, members jsonb, messages bigint, last_at timestamptz, created_at timestamptz, closed_at timestamptz, next text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    behind bigint := millrace.after_number(chat_threads_shown.after);
begin
    perform millrace.valid_page(chat_threads_shown.page);
    return query
        select t.id, t.family,
               (select coalesce(jsonb_agg(jsonb_build_object('person', m.person, 'unread', millrace.chat_unread_of(m, t.last_n), 'read_n', m.read_n, 'delivered_n', m.delivered_n) order by m.person), '[]')
                  from millrace.chat_member m where m.thread = t.id),
               t.last_n, t.last_at, t.created_at, t.closed_at, t.last_seq::text
          from millrace.chat_thread t
         where (behind is null or t.last_seq < behind)
           and (of_person is null or t.id in (select m.thread from millrace.chat_member m where m.person = of_person))
         order by t.last_seq desc limit chat_threads_shown.page;
end $$;
select millrace.door_is('chat', 'chat_threads_shown', 'admin', 'staff');

-- What a model says of a message is for the back end, which decides what to do. Nobody's words are in it.
create or replace function millrace.chat_answered(q jsonb) returns bigint
language plpgsql volatile as $$
begin
    if q ->> 'room' = 'chat' and q ->> 'status' = 'answered' then
        perform millrace.event_say('com.peachy.message.judged', '/millrace/ai', q ->> 'ref', q ->> 'tenant', jsonb_build_object('message_id', (q ->> 'ref')::uuid,
            'sentiment', q #>> '{answer,sentiment}', 'concern', q #>> '{answer,concern}'));
    end if;
    return null;
end $$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.chat_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'member', m.thread::text, to_jsonb(m) - array['notice', 'passed'] || jsonb_build_object('title', t.title, 'begun_by_it', t.created_by = m.person)
      from millrace.chat_member m join millrace.chat_thread t on t.id = m.thread where m.person = chat_export_person.person
    union all
    select 'message', m.id::text, to_jsonb(m) - array['digest', 'search', 'seq'] || jsonb_build_object('files',
               coalesce((select jsonb_agg(jsonb_build_object('kind', 'attachment', 'name', a.name, 'blob', encode(a.blob, 'hex')) order by a.n)
                           from millrace.chat_attachment a where a.message = m.id and a.blob is not null), '[]'))
      from millrace.chat_message m where m.sender = chat_export_person.person and m.deleted_at is null
$$;
