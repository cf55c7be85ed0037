-- People are told of questions by notices.

-- A notice of a question that nobody need answer any more is not sent.
create or replace function millrace.approval_notice_is_late(one millrace.notice) returns boolean
language sql stable as $$
    select one.kind like 'approval.%' and one.data ? 'stage' and not exists (
        select from millrace.approval a where a.id::text = one.data ->> 'approval' and millrace.approval_state(a) = 'open')
$$;

-- A person whom the notices' room knows is told as it wishes; any other name with an @ is an address for mail.
create or replace function millrace.notice_of_approval(about jsonb) returns bigint
language plpgsql volatile as $$
declare
    who text := about ->> 'person';
    due timestamptz := (about ->> 'due')::timestamptz;
    kind text := 'approval.' || (about #>> '{told,stage}');
    data jsonb := jsonb_strip_nulls((about -> 'told') || jsonb_build_object('ref', about -> 'ref',
        'due', millrace.time_in_zone(due, coalesce(millrace.zone_of(who), 'UTC'))));
    the_notice uuid;
begin
    if who like '%@%' and not exists (select from millrace.notice_preference n where n.person = who) and not exists (select from millrace.device d where d.person = who) then
        the_notice := millrace.notice_put(who, kind, 'mail', who, data, about ->> 'key', (about ->> 'at')::timestamptz, due, false);
    else
        the_notice := millrace.notice_send(who, kind, data, key => about ->> 'key', expires_at => due);
    end if;
    perform millrace.approval_told((about ->> 'ref')::uuid, the_notice);
    return 1;
end $$;

create or replace function millrace.notice_status_asked(about jsonb) returns jsonb
language sql stable as $$
    select to_jsonb(n.status) from millrace.notice n where n.id = (about ->> 'notice')::uuid
$$;
