-- Notices that a person sets for itself, by push to its own devices: for instance a reminder that an app sets on a phone. Their kinds and
-- keys are separate from those of rooms and of the app's server, so nobody can cancel the server's reminders, or send imitations of them.

-- The key's notice is this one from now on: one that waits is changed, and after one that was cancelled or sent there is a new one.
create or replace function millrace.own_notice_schedule(
    person text, kind text, key text, at timestamptz, data jsonb default '{}', channels text[] default null, actor text default null,
    caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    the_due timestamptz := millrace.by_our_clock(own_notice_schedule.at);
    the_kind text := 'own.' || own_notice_schedule.kind;
    the_channels text[] := coalesce(own_notice_schedule.channels, array['push']);
    old millrace.notice;
begin
    perform millrace.acts_as_person(own_notice_schedule.actor, own_notice_schedule.person, caller => own_notice_schedule.caller);
    if own_notice_schedule.key is null or length(own_notice_schedule.key) not between 1 and millrace.most('own_notice_key') then
        perform millrace.refuse('the key is missing, empty or too long', 'key', 'Give 1 to 200 characters: the key is for moving and cancelling it.');
    end if;
    if own_notice_schedule.kind is null or own_notice_schedule.kind !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' then
        perform millrace.refuse('the kind is malformed', 'kind', 'A kind has 1 to 64 letters, digits and _ . - and begins with a letter or digit.');
    end if;
    if the_due is null or the_due < t - interval '1 minute' or the_due > t + interval '400 days' then
        perform millrace.refuse('at is missing, past, or more than 400 days away', 'at', 'Give when it is due.');
    end if;
    if own_notice_schedule.data is null or octet_length(own_notice_schedule.data::text) > millrace.most('own_notice_data') then
        perform millrace.refuse('data is missing or takes more than the 4096 bytes allowed', 'data', 'Give a title and a body.', '53400', 'too_large');
    end if;
    if own_notice_schedule.channels is not null and own_notice_schedule.channels <> array['push'] then
        perform millrace.refuse('channels may hold only push', 'channels', 'Leave it out: these go to the person''s own devices.');
    end if;
    select * into old from millrace.notice n where n.person = own_notice_schedule.person and n.key = 'own:' || own_notice_schedule.key for no key update;
    if old.status = 'pending' then
        update millrace.notice n set kind = the_kind, data = own_notice_schedule.data, channels = the_channels, due_at = the_due, expires_at = the_due + interval '1 day'
         where n.id = old.id and (n.kind, n.data, n.channels, n.due_at) is distinct from (the_kind, own_notice_schedule.data, the_channels, the_due);
        perform millrace.notice_wake(false, the_due);
        return old.id;
    elsif old.status <> 'cancelled' and (old.kind, old.data) = (the_kind, own_notice_schedule.data) and abs(extract(epoch from old.due_at - the_due)) <= 120 then
        return old.id;                                    -- said again, perhaps because the answer was lost
    end if;
    if (select count(*) from (select from millrace.notice n where n.person = own_notice_schedule.person and n.status = 'pending' and n.kind like 'own.%' limit millrace.counted('own_notices_waiting')) x) >= millrace.counted('own_notices_waiting') then
        perform millrace.refuse_quota('100 notices are already waiting for this person', 'key', 'Cancel one first.', millrace.counted('own_notices_waiting'), millrace.counted('own_notices_waiting'),
            (select min(n.due_at) from millrace.notice n where n.person = own_notice_schedule.person and n.status = 'pending' and n.kind like 'own.%'));
    end if;
    perform millrace.day_must_take('own_notice', millrace.keyed_hash('person', own_notice_schedule.person), millrace.counted('own_notices'), 'the limit of 50 new notices a day is reached', 'key');
    update millrace.notice n set key = null where n.id = old.id;
    return millrace.notice_send(own_notice_schedule.person, the_kind, own_notice_schedule.data, the_channels, 'own:' || own_notice_schedule.key,
        the_due, the_due + interval '1 day');
end $$;
select millrace.door_is('notices', 'own_notice_schedule', 'client, worker', 'actor person',
    'Sets the person a notice for later.', words => '{"channels": ["push"]}',
    who_may => array['set themselves a notice: itself, back end, staff']);

create or replace function millrace.own_notice_move(person text, key text, at timestamptz, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_due timestamptz := millrace.by_our_clock(own_notice_move.at);
begin
    perform millrace.acts_as_person(own_notice_move.actor, own_notice_move.person, caller => own_notice_move.caller);
    if the_due is null or the_due < millrace.now() - interval '1 minute' or the_due > millrace.now() + interval '400 days' then
        perform millrace.refuse('at is missing, past, or more than 400 days away', 'at', 'Give when it is due.');
    end if;
    update millrace.notice n set expires_at = the_due + interval '1 day'
     where n.person = own_notice_move.person and n.key = 'own:' || own_notice_move.key and n.status = 'pending';
    return found and millrace.notice_move(own_notice_move.person, 'own:' || own_notice_move.key, the_due);
end $$;
select millrace.door_is('notices', 'own_notice_move', 'client, worker', 'actor person',
    'Moves a notice that the person set itself.', who_may => array['move one of those: itself, back end, staff']);

create or replace function millrace.own_notice_cancel(person text, key text, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.acts_as_person(own_notice_cancel.actor, own_notice_cancel.person, caller => own_notice_cancel.caller);
    return millrace.notice_cancel(own_notice_cancel.person, 'own:' || own_notice_cancel.key);
end $$;
select millrace.door_is('notices', 'own_notice_cancel', 'client, worker', 'actor person',
    'Cancels a notice that the person set itself.', who_may => array['cancel one of those: itself, back end, staff']);
