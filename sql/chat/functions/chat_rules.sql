-- What the other functions of the chat use: who is in a thread, who may begin one, what may be written.

-- How many messages a person may send a day; after how many days messages are deleted, 0: never; moderate: whether a language model judges
-- each new message, 1 or 0.
create or replace function millrace.chat_rule(the_name text) returns int
language sql stable as $$
    select coalesce((select s.value::int from millrace.setting s where s.name = 'chat_' || the_name), case the_name when 'day' then millrace.counted('messages') else 0 end)
$$;

-- {"day": 5000, "keep_days": 0, "moderate": 0}; names that are left out stay as they are. False: it was so already.
create or replace function millrace.chat_rules_set(rules jsonb, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one record;
    changed boolean := false;
begin
    if rules is null or jsonb_typeof(rules) <> 'object' then
        perform millrace.refuse('rules is not a JSON object', 'rules', 'Give {"day": 5000, "keep_days": 0}.');
    end if;
    for one in select e.key, e.value from jsonb_each(rules) e order by 1 loop
        if one.key not in ('day', 'keep_days', 'moderate') then
            perform millrace.refuse(format('the rule %L is unknown', left(one.key, 60)), 'rules', 'Allowed: day, keep_days and moderate.');
        end if;
        if jsonb_typeof(one.value) <> 'number' or one.value #>> '{}' !~ '^[0-9]{1,6}$' then
            perform millrace.refuse(format('%s is not a whole number from 0 to 999999', one.key), 'rules', 'Give how many messages a day, or how many days.');
        end if;
        if millrace.chat_rule(one.key) <> (one.value #>> '{}')::int then
            changed := millrace.setting_put('chat_' || one.key, one.value #>> '{}') or changed;
        end if;
    end loop;
    if changed then
        perform millrace.audited('chat.rules', null, rules, caller => chat_rules_set.caller);
    end if;
    return changed;
end $$;
select millrace.door_is('chat', 'chat_rules_set', 'admin', 'staff', audited => true);

-- The thread and the member's row in it; null: for this person it is not there.
create or replace function millrace.chat_seen(the_thread uuid, me text) returns millrace.chat_member
language sql stable as $$
    select m from millrace.chat_member m join millrace.chat_thread t on t.id = m.thread
     where m.thread = the_thread and m.person = me and t.closed_at is null
$$;

create or replace function millrace.chat_no_thread(the_thread uuid) returns void
language plpgsql as $$
begin
    perform millrace.refuse(format('there is no thread %s', the_thread), 'thread', null, 'P0002', 'not_found');
end $$;

-- The thread, locked, so that its messages come one after the other. The locking statement checks the right, and it is checked again
-- behind the lock: it may have been withdrawn during the wait.
create or replace function millrace.chat_lock(the_thread uuid, me text) returns millrace.chat_thread
language plpgsql volatile as $$
declare
    h millrace.chat_thread;
begin
    select t.* into h from millrace.chat_thread t
     where t.id = the_thread and t.closed_at is null and exists (select from millrace.chat_member m where m.thread = t.id and m.person = me)
       for no key update;
    if h.id is null or not exists (select from millrace.chat_member m where m.thread = h.id and m.person = me) then
        perform millrace.chat_no_thread(the_thread);
    end if;
    return h;
end $$;

-- Whether one of the two is the other's contact, and has agreed to it with its own account.
create or replace function millrace.chat_are_contacts(one text, other text) returns boolean
language sql volatile as $$
    select millrace.contact_account(one, other) is not null or millrace.contact_account(other, one) is not null
$$;

-- A text that people read, without control characters except line ends and tabs.
create or replace function millrace.chat_text(given text) returns text
language plpgsql immutable as $$
begin
    if length(given) > millrace.most('message') then
        perform millrace.refuse(format('the text has more than %s characters', millrace.most('message')), 'text', 'Send it in several messages.', '53400', 'too_large');
    end if;
    if given ~ E'[\\u0001-\\u0008\\u000b-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the text has control characters', 'text', 'Only line feeds and tabs are allowed.');
    end if;
    return nullif(btrim(given, E' \t\n'), '');
end $$;

create or replace function millrace.chat_title(given text) returns text
language plpgsql immutable as $$
begin
    if length(given) > millrace.most('display_name') or given ~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]' then
        perform millrace.refuse('the title is too long, or has control characters', 'title', 'Give 1 to 100 characters, or null.');
    end if;
    return nullif(btrim(given), '');
end $$;

-- Attachments as they were given, checked for their form: [{"storage_url", "mime_type", "name"}].
create or replace function millrace.chat_files(given jsonb) returns jsonb
language plpgsql immutable as $$
declare
    one jsonb;
begin
    if jsonb_typeof(given) is distinct from 'array' or jsonb_array_length(given) > millrace.most('message_attachments') then
        perform millrace.refuse(format('attachments is not a list of at most %s', millrace.most('message_attachments')), 'attachments',
            'Give [{"storage_url": …, "mime_type": …, "name": …}], with what chat_upload returned.');
    end if;
    for one in select e from jsonb_array_elements(given) e loop
        if jsonb_typeof(one) <> 'object' or one - array['storage_url', 'mime_type', 'name'] <> '{}' then
            perform millrace.refuse('an attachment is not an object with storage_url, mime_type and name', 'attachments', 'Give storage_url and mime_type, and optionally name.');
        end if;
        if coalesce(one ->> 'storage_url', '') !~ '^(blob:[0-9a-f]{64}|upload:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$' then
            perform millrace.refuse('the storage_url of an attachment has an unknown form', 'attachments', 'Give what chat_upload returned, or blob:<sha256>.');
        end if;
        if coalesce(one ->> 'mime_type', '') !~ '^[A-Za-z0-9!#$&^_.+-]{1,80}/[A-Za-z0-9!#$&^_.+-]{1,80}$' then
            perform millrace.refuse('the mime_type of an attachment is missing or malformed', 'attachments', 'Give for example image/jpeg.');
        end if;
        if length(one ->> 'name') not between 1 and 200 or one ->> 'name' ~ E'[\\u0001-\\u001f\\u007f-\\u009f/\\\\]' then
            perform millrace.refuse('the name of an attachment is empty, too long, or has control characters or slashes', 'attachments', 'Give 1 to 200 characters, or leave it out.');
        end if;
    end loop;
    return given;
end $$;

-- Where to put a file, once, that a message will have. The url is valid for an hour, for exactly this size and type.
create or replace function millrace.chat_upload(
    mime_type text, size bigint, actor text default null, caller millrace.caller_name default current_user
) returns table (url text, storage_url text, expires_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.acting_person(chat_upload.actor, caller => chat_upload.caller);
begin
    perform millrace.day_must_take('chat_upload', millrace.keyed_hash('person', me), millrace.counted('files'), 'the limit of 500 files a day is reached', 'size');
    return query select l.url, l.storage_url, l.expires_at
        from millrace.upload_link(chat_upload.size, lower(chat_upload.mime_type), the_owner => chat_upload.caller,
            the_tenant => millrace.tenant_of(null, chat_upload.caller)) l;
end $$;
select millrace.door_is('chat', 'chat_upload', 'client, worker', 'actor person',
    'A signed link to upload a file of a message to.');
