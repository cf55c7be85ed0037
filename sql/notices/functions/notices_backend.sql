-- What a back end does with the notices that it has sent: see notice_send. It names them by its own keys.

-- What became of one: its state, and that of each sending. No row: there is none with this key, or it is older than a month.
create or replace function millrace.notice_sent(person text, key text, caller millrace.caller_name default current_user)
returns table (id uuid, kind text, status text, due_at timestamptz, accepted_at timestamptz, error text, sendings jsonb)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.must_be_backend('read notices by the app''s keys', caller => notice_sent.caller);
    return query
        select n.id, n.kind, n.status, n.due_at, n.accepted_at, n.error,
               coalesce((select jsonb_agg(jsonb_build_object('channel', c.channel, 'status', c.status, 'accepted_at', c.accepted_at, 'error', c.error) order by c.channel, c.id)
                           from millrace.notice c where c.parent = n.id), '[]')
          from millrace.notice n where n.person = notice_sent.person and n.key = 'app:' || notice_sent.key;
end $$;
select millrace.door_is('notices', 'notice_sent', 'client, worker', 'backend', 'What became of a notice that the app sent. For back ends.', for_apps => false,
    who_may => array['read a notice that the app sent them: back end, staff']);

-- True when it was still waiting, or one of its sendings was.
create or replace function millrace.notice_take_back(person text, key text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.must_be_backend('take back notices by the app''s keys', caller => notice_take_back.caller);
    return millrace.notice_cancel(notice_take_back.person, 'app:' || notice_take_back.key);
end $$;
select millrace.door_is('notices', 'notice_take_back', 'client, worker', 'backend', 'Takes back a notice that the app sent, while it waits. For back ends.', for_apps => false,
    who_may => array['take back a notice that the app sent them: back end, staff']);
