-- Notices to persons, and when they are due. A key is used once per person: however its notice ended, there is no second one.

-- As millrace.wake does for jobs: while a lane sleeps, the one listening worker holds 1297239640 alone, so an attempt to share it fails and
-- notifies. Notices that are due later are found by the clock.
create or replace function millrace.notice_wake(is_alarm boolean, due timestamptz) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    if due > millrace.now() + interval '2 seconds' then
        return;
    end if;
    if not pg_try_advisory_xact_lock_shared(1297239640, is_alarm::int) and pg_notification_queue_usage() < 0.5 then
        perform pg_notify('millrace_notices', case when is_alarm then 'alarm' else 'plain' end);
    end if;
end $$;

-- For workers and back ends. A back end's key is its own, like a person's of its own notices.
create or replace function millrace.notice_send(
    person text, kind text, data jsonb default '{}', channels text[] default null, key text default null, at timestamptz default null,
    expires_at timestamptz default null, alarm boolean default false, caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    the_id uuid := gen_random_uuid();
    the_key text := case when millrace.is_staff(notice_send.caller) then notice_send.key else 'app:' || notice_send.key end;
begin
    if not millrace.is_staff(notice_send.caller) then     -- our own functions send, also for somebody who is signed in
        perform millrace.must_be_backend('send a person notices', caller => notice_send.caller);
    end if;
    perform millrace.valid_name(notice_send.person, 'person');
    if notice_send.kind is null or notice_send.kind !~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$' then
        perform millrace.refuse(format('the kind %L is malformed', left(notice_send.kind, 60)), 'kind',
            'A kind has 1 to 128 letters, digits and _ . : / - and begins with a letter or digit.');
    end if;
    if length(notice_send.key) not between 1 and 256 then
        perform millrace.refuse('the key is empty or too long', 'key', 'Give 1 to 256 characters, or null.');
    end if;
    if notice_send.data is null or jsonb_typeof(notice_send.data) <> 'object' then
        perform millrace.refuse('data is not a JSON object', 'data', 'Give an object, {} for none.');
    end if;
    if octet_length(notice_send.data::text) > 65536 then
        perform millrace.refuse('data takes more than the 65536 bytes allowed', 'data', 'Pass a reference.', '53400', 'too_large');
    end if;
    if coalesce(notice_send.alarm, false) and not millrace.is_staff(notice_send.caller) then
        perform millrace.refuse('only a worker may send an alarm', 'alarm', 'Leave it out.', '42501', 'permission');
    end if;
    if notice_send.channels is not null and (cardinality(notice_send.channels) = 0 or not notice_send.channels <@ array['push', 'mail', 'sms', 'voice']) then
        perform millrace.refuse('channels may hold only push, mail, sms and voice', 'channels', 'Leave it out for what the person has chosen.');
    end if;
    if notice_send.expires_at <= coalesce(notice_send.at, t) then
        perform millrace.refuse('it expires before it is due', 'expires_at', 'Give a later time, or null.');
    end if;
    insert into millrace.notice as n (id, person, kind, key, data, channels, alarm, status, due_at, expires_at, created_at)
    values (the_id, notice_send.person, notice_send.kind, the_key, notice_send.data, notice_send.channels,
            coalesce(notice_send.alarm, false), 'pending', coalesce(notice_send.at, t), notice_send.expires_at, t)
        on conflict (person, key) do nothing;
    if not found then
        select n.id into the_id from millrace.notice n where n.person = notice_send.person and n.key = the_key;
        if the_id is null then                            -- committed since our snapshot, at a stricter level
            raise exception using errcode = '40001', message = 'a notice with this key was sent by a concurrent transaction';
        end if;
    else
        perform millrace.notice_wake(coalesce(notice_send.alarm, false), coalesce(notice_send.at, t));
    end if;
    return the_id;
end $$;
select millrace.door_is('notices', 'notice_send', 'client, worker', 'backend', 'Sends a person one of the app''s own notices. For back ends.', for_apps => false,
    who_may => array['send them a notice: back end, staff']);

-- One sending by one channel, for other rooms: with a given address, or null for the person's own. A key is used once per person, so if
-- there are several channels the key must contain the channel.
create or replace function millrace.notice_put(
    the_person text, the_kind text, the_channel text, the_address text, the_data jsonb, the_key text, the_due timestamptz, the_expiry timestamptz, is_alarm boolean
) returns uuid
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    the_id uuid := gen_random_uuid();
begin
    insert into millrace.notice as n (id, person, kind, key, data, channel, address, alarm, status, due_at, expires_at, created_at)
    values (the_id, the_person, the_kind, the_key, the_data, the_channel, the_address, is_alarm, 'pending', the_due, the_expiry, millrace.now())
        on conflict (person, key) do nothing;
    if not found then
        select n.id into the_id from millrace.notice n where n.person = the_person and n.key = the_key;
        if the_id is null then                            -- committed since our snapshot, at a stricter level
            raise exception using errcode = '40001', message = 'a notice with this key was sent by a concurrent transaction';
        end if;
    else
        perform millrace.notice_wake(is_alarm, the_due);
    end if;
    return the_id;
end $$;

-- True when it was still waiting, or one of its sendings was.
create or replace function millrace.notice_cancel(person text, key text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_id uuid;
begin
    update millrace.notice n set status = 'cancelled'
     where n.person = notice_cancel.person and n.key = notice_cancel.key and n.status = 'pending';
    if found then
        return true;
    end if;
    select n.id into the_id from millrace.notice n
     where n.person = notice_cancel.person and n.key = notice_cancel.key and n.status = 'attempting' and n.address is null;
    if the_id is null then
        return false;
    end if;
    update millrace.notice n set status = 'cancelled' where n.parent = the_id and n.status = 'pending';
    if not found then
        return false;
    end if;
    perform millrace.notice_fold(the_id);
    return true;
end $$;
select millrace.door_is('notices', 'notice_cancel', 'worker, operator', 'staff');

create or replace function millrace.notice_move(person text, key text, at timestamptz) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if notice_move.at is null or not isfinite(notice_move.at) then
        perform millrace.refuse('at is not a point in time', 'at', 'Give when the notice is due.');
    end if;
    update millrace.notice n set due_at = notice_move.at
     where n.person = notice_move.person and n.key = notice_move.key and n.status = 'pending'
       and (n.expires_at is null or n.expires_at > notice_move.at);
    if found then
        perform millrace.notice_wake(false, notice_move.at);
        return true;
    end if;
    return false;
end $$;
select millrace.door_is('notices', 'notice_move', 'worker', 'staff');

-- Plain notices of another room, all together. What has a key that its person has had is passed over. None is due at once, so nobody is woken.
create or replace function millrace.notices_put(notices millrace.notice_to_send[]) returns void
language plpgsql volatile as $$
begin
    insert into millrace.notice (id, person, kind, key, data, status, due_at, expires_at, created_at)
    select gen_random_uuid(), n.person, n.kind, n.key, n.data, 'pending', n.due_at, n.expires_at, millrace.now() from unnest(notices) n
        on conflict (person, key) do nothing;
end $$;

-- Sends what was taken back after all, at another time; false: it was not taken back.
create or replace function millrace.notice_resume(the_person text, the_key text, due timestamptz) returns boolean
language plpgsql volatile as $$
begin
    update millrace.notice n set status = 'pending', due_at = due where n.person = the_person and n.key = the_key and n.status = 'cancelled' and n.address is null;
    if not found then
        return false;
    end if;
    perform millrace.notice_wake(false, due);
    return true;
end $$;

-- One that waits is due, and expires, at other times.
create or replace function millrace.notice_retime(the_notice uuid, due timestamptz, expiry timestamptz) returns void
language plpgsql volatile as $$
begin
    update millrace.notice n set due_at = due, expires_at = expiry where n.id = the_notice and n.status = 'pending';
    if found then
        perform millrace.notice_wake(false, due);
    end if;
end $$;

-- Changes what one says that has not gone out.
create or replace function millrace.notice_reword(the_notice uuid, more jsonb, without text[] default '{}') returns void
language sql volatile as $$
    update millrace.notice n set data = (n.data - without) || more where n.id = the_notice and n.status in ('pending', 'attempting')
$$;

-- Nobody is notified between `from` and `until` on the clock: what falls in that time is due when it ends.
create or replace function millrace.notice_loud(at timestamptz, zone text, quiet_from time, quiet_to time) returns timestamptz
language sql stable parallel safe as $$
    select case
        when quiet_from = quiet_to then at
        when quiet_from < quiet_to and w.t::time >= quiet_from and w.t::time < quiet_to then millrace.wall_start(w.t::date + quiet_to, zone)
        when quiet_from > quiet_to and w.t::time >= quiet_from then millrace.wall_start(w.t::date + 1 + quiet_to, zone)
        when quiet_from > quiet_to and w.t::time < quiet_to then millrace.wall_start(w.t::date + quiet_to, zone)
        else at end
      from (select at at time zone zone as t) w
$$;

-- What waits of these is not sent.
create or replace function millrace.notices_stop(ids uuid[]) returns void
language sql volatile as $$
    update millrace.notice n set status = 'cancelled' where n.id = any (ids) and n.status = 'pending'
$$;

-- Nothing stays of these. Returns how many there were.
create or replace function millrace.notices_drop(ids uuid[]) returns bigint
language plpgsql volatile as $$
declare
    gone bigint;
begin
    delete from millrace.notice n where n.id = any (ids);
    get diagnostics gone = row_count;
    return gone;
end $$;

-- One that waits is sent by these channels alone.
create or replace function millrace.notice_by(the_notice uuid, the_channels text[]) returns void
language sql volatile as $$
    update millrace.notice n set channels = the_channels where n.id = the_notice and n.status = 'pending' and n.channel is null
$$;
