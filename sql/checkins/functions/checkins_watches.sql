-- What a person does: arming, checking in, pausing. The database's time after the row is locked counts: a check-in that gets the lock
-- before the expiry is in time, however late it commits; after the expiry it ends the alarm, raised or not.

create or replace function millrace.watch_of(the_person text) returns millrace.watch
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    w millrace.watch;
begin
    select * into w from millrace.watch x where x.person = the_person for no key update;
    if not found then
        perform millrace.refuse('this person has no watch', 'person', 'check_in_arm makes one.', 'P0002', 'not_found');
    end if;
    return w;
end $$;

-- A watch that does not run, because nobody can be told yet: it keeps the interval, and when the person last checked in. The timer does not know it.
create or replace function millrace.watch_unarmed(the_person text, the_every interval, checked_in timestamptz, t timestamptz) returns millrace.watch
language plpgsql volatile as $$
declare
    w millrace.watch;
begin
    insert into millrace.watch as x (person, every, grace, warnings, zone, state, last_checked_in, expires_at, created_at)
    values (the_person, coalesce(the_every, '1 hour'), '5 min', '{10 min}', coalesce(millrace.zone_of(the_person), 'UTC'), 'disarmed',
            checked_in, checked_in + coalesce(the_every, '1 hour'), t)
        on conflict (person) do update
       set every = coalesce(the_every, x.every), last_checked_in = coalesce(checked_in, x.last_checked_in),
           expires_at = coalesce(checked_in + coalesce(the_every, x.every), x.expires_at)
     where x.state = 'disarmed'
    returning * into w;
    return w;                                              -- null: it was armed meanwhile
end $$;

-- The new expiry. A person may check in before anybody has agreed to be told: then the answer says when the next check-in would be due, the watch stays
-- disarmed, and nothing happens at that time. Where somebody could be told, a watch that does not run refuses: nobody is to believe to be watched.
-- `at` is when an offline device took it: used if it lies between the last check-in and two minutes from now and is not
-- older than a day, by the clock that counts; otherwise the check-in counts as of now, and says so in the feed. Never later than now: a clock
-- that is ahead does not lengthen anything.
create or replace function millrace.check_in(person text, at timestamptz default null, actor text default null, place jsonb default null, caller millrace.caller_name default current_user) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    w millrace.watch;
    t timestamptz;
    said timestamptz := millrace.by_our_clock(check_in.at);
    e timestamptz;
    a millrace.alarm;
begin
    perform millrace.acts_as_person(check_in.actor, check_in.person, caller => check_in.caller);
    select * into w from millrace.watch x where x.person = check_in.person for no key update;
    if not found or w.state = 'disarmed' then
        if cardinality(millrace.watch_steps(check_in.person)) = 0 then
            t := millrace.now();
            perform millrace.place_keep(check_in.person, millrace.place_usable(check_in.place, t), t);
            e := case when said between greatest(w.last_checked_in, t - interval '24 hours') and t then said else t end;
            w := millrace.watch_unarmed(check_in.person, null, e, t);
            if w.person is not null then
                return w.expires_at;
            end if;                                        -- armed meanwhile
            return millrace.check_in(check_in.person, check_in.at, check_in.actor, null, caller => check_in.caller);
        end if;
        perform millrace.refuse(case when w.person is not null then 'the watch is disarmed' else 'this person has no watch' end, 'person',
            'Nobody would notice a missing check-in: arm it with check_in_arm.', case when w.person is not null then '55000' else 'P0002' end,
            case when w.person is not null then 'wrong_state' else 'not_found' end);
    end if;
    t := millrace.now();                                   -- behind the lock: this decides
    if check_in.place is not null then
        perform millrace.place_keep(w.person, millrace.place_usable(check_in.place, t), t);
    end if;
    e := least(said, t);
    if said is not null and not coalesce(
        said >= coalesce(w.last_checked_in, '-infinity') and said <= t + interval '2 minutes' and said >= t - interval '24 hours', false) then
        e := t;
        perform millrace.checkin_changed(w.person, null, 'at_not_used', jsonb_build_object('at', check_in.at));
    end if;
    if w.state = 'paused' and w.expires_at > t then
        update millrace.watch x set last_checked_in = e, expires_at = greatest(x.expires_at, e + x.every) where x.person = w.person;
        return greatest(w.expires_at, e + w.every);
    end if;
    if w.state in ('armed', 'warned') and w.expires_at > t then
        w.expires_at := greatest(w.expires_at, e + w.every);
        update millrace.watch x
           set last_checked_in = e, expires_at = w.expires_at, state = 'armed', warned_at = null,
               wake_at = least(x.wake_at, millrace.watch_wake(w.expires_at, x.warnings, x.every, t))
         where x.person = w.person;
        return w.expires_at;
    end if;

    -- Too late by the clock that counts.
    if w.state <> 'expired' then
        a := millrace.alarm_open(w.person, 'expired', w.expires_at, null, null, t);
    else
        select * into a from millrace.alarm x where x.person = w.person and x.state <> 'resolved' and x.cause = 'expired' for no key update;
    end if;
    w.expires_at := e + w.every;
    if w.expires_at > t then
        update millrace.watch x
           set last_checked_in = e, expires_at = w.expires_at, state = 'armed', warned_at = null,
               wake_at = millrace.watch_wake(w.expires_at, x.warnings, x.every, t), failures = 0, problem = null
         where x.person = w.person;
    else
        update millrace.watch x set last_checked_in = e, expires_at = w.expires_at, state = 'expired', wake_at = null where x.person = w.person;
    end if;
    if a.cause = 'expired' then                            -- who asked for help says by check_in_respond that it is not needed any more
        perform millrace.alarm_end(a, 'late_check_in', null, w.person, t);
    end if;
    return w.expires_at;
end $$;
select millrace.door_is('checkins', 'check_in', 'client, worker', 'actor person',
    'Says that the person is well. Returns until when that holds.',
    who_may => array['check in: itself, back end, staff']);

-- Arming is a check-in as well. The interval, the warnings and the zone are those given now.
create or replace function millrace.check_in_arm(
    person text, every interval default '1 hour', grace interval default '5 min', warnings interval[] default '{10 min}', zone text default 'UTC',
    actor text default null, caller millrace.caller_name default current_user
) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    w millrace.watch;
    t timestamptz;
    one interval;
begin
    perform millrace.acts_as_person(check_in_arm.actor, check_in_arm.person, caller => check_in_arm.caller);
    perform millrace.watch_span(check_in_arm.every, 'every', 1, 86400 * 31);
    perform millrace.watch_span(check_in_arm.grace, 'grace', 0, 86400);
    if check_in_arm.warnings is null or cardinality(check_in_arm.warnings) > millrace.most('warnings') then
        perform millrace.refuse('warnings is null or has more than five', 'warnings', 'Give {} for none.');
    end if;
    foreach one in array check_in_arm.warnings loop
        perform millrace.watch_span(one, 'warnings', 1, 86400 * 31);
    end loop;
    perform millrace.valid_zone(check_in_arm.zone);
    if cardinality(millrace.watch_steps(check_in_arm.person)) = 0 then
        perform millrace.refuse('no contact of this person has a verified address', 'person',
            'Name one with check_in_contact; it counts once the contact has agreed through that address.', '55000', 'wrong_state');
    end if;
    select * into w from millrace.watch x where x.person = check_in_arm.person for no key update;
    t := millrace.now();
    if w.state = 'expired' or (w.state <> 'disarmed' and w.expires_at <= t) then
        perform millrace.check_in(check_in_arm.person, actor => check_in_arm.person, caller => check_in_arm.caller);   -- an alarm is not armed away: it ends as late
    end if;
    insert into millrace.watch as x (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
    values (check_in_arm.person, check_in_arm.every, check_in_arm.grace, check_in_arm.warnings, check_in_arm.zone, 'armed', t, t + check_in_arm.every,
            millrace.watch_next(t + check_in_arm.every, check_in_arm.warnings, check_in_arm.every, t), t)
        on conflict (person) do update
           set every = excluded.every, grace = excluded.grace, warnings = excluded.warnings, zone = excluded.zone, state = 'armed',
               last_checked_in = excluded.last_checked_in, expires_at = excluded.expires_at, warned_at = null, wake_at = excluded.wake_at,
               failures = 0, problem = null;
    perform millrace.checkin_changed(check_in_arm.person, null, 'armed', jsonb_build_object('every', check_in_arm.every));
    return t + check_in_arm.every;
end $$;
select millrace.door_is('checkins', 'check_in_arm', 'client, worker', 'actor person',
    'Arms the person''s watch: a missing check-in will raise an alarm.',
    who_may => array['arm their watch: itself, back end, staff']);

-- An open alarm stays open: a person in danger may be forced to disarm.
create or replace function millrace.check_in_disarm(person text, reason text default null, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    w millrace.watch;
    t timestamptz;
begin
    perform millrace.acts_as_person(check_in_disarm.actor, check_in_disarm.person, caller => check_in_disarm.caller);
    w := millrace.watch_of(check_in_disarm.person);
    t := millrace.now();
    if w.state = 'disarmed' then
        return false;
    end if;
    if w.state <> 'expired' and w.expires_at <= t then
        perform millrace.watch_expire(w, t);
    end if;
    update millrace.watch x set state = 'disarmed', expires_at = null, warned_at = null, wake_at = null, failures = 0, problem = null where x.person = w.person;
    perform millrace.checkin_changed(w.person, null, 'disarmed', jsonb_build_object('reason', left(check_in_disarm.reason, 500)));
    return true;
end $$;
select millrace.door_is('checkins', 'check_in_disarm', 'client, worker', 'actor person',
    'Disarms the person''s watch. Open alarms stay open.',
    who_may => array['disarm their watch: itself, back end, staff']);

-- The new expiry; null when the watch does not run.
create or replace function millrace.check_in_set_interval(person text, every interval, actor text default null, caller millrace.caller_name default current_user) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    w millrace.watch;
    t timestamptz;
begin
    perform millrace.acts_as_person(check_in_set_interval.actor, check_in_set_interval.person, caller => check_in_set_interval.caller);
    perform millrace.watch_span(check_in_set_interval.every, 'every', 1, 86400 * 31);
    select * into w from millrace.watch x where x.person = check_in_set_interval.person for no key update;
    t := millrace.now();
    if not found then                                      -- chosen before anybody has agreed; arming takes what is given then
        w := millrace.watch_unarmed(check_in_set_interval.person, check_in_set_interval.every, null, t);
        if w.person is not null then
            perform millrace.checkin_changed(w.person, null, 'interval', jsonb_build_object('every', check_in_set_interval.every));
            return null;
        end if;
        w := millrace.watch_of(check_in_set_interval.person);
    end if;
    perform millrace.checkin_changed(w.person, null, 'interval', jsonb_build_object('every', check_in_set_interval.every));
    if w.state in ('expired', 'disarmed') or w.expires_at <= t then
        update millrace.watch x set every = check_in_set_interval.every where x.person = w.person;   -- what has passed has passed
        return case when w.state not in ('expired', 'disarmed') then w.expires_at end;
    end if;
    w.expires_at := case w.state when 'paused' then w.wake_at + check_in_set_interval.every
                    else greatest(w.last_checked_in + check_in_set_interval.every, t + w.grace) end;
    update millrace.watch x
       set every = check_in_set_interval.every, expires_at = w.expires_at, state = case x.state when 'warned' then 'armed' else x.state end, warned_at = null,
           wake_at = case x.state when 'paused' then x.wake_at else millrace.watch_wake(w.expires_at, x.warnings, check_in_set_interval.every, t) end
     where x.person = w.person;
    return w.expires_at;
end $$;
select millrace.door_is('checkins', 'check_in_set_interval', 'client, worker', 'actor person',
    'Changes how often the person checks in.', who_may => array['change their interval: itself, back end, staff']);

-- Until then no check-in counts as missed; the interval starts when the pause ends.
create or replace function millrace.check_in_pause(person text, until timestamptz, actor text default null, caller millrace.caller_name default current_user) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    w millrace.watch;
    t timestamptz;
    the_end timestamptz := millrace.by_our_clock(check_in_pause.until);
begin
    perform millrace.acts_as_person(check_in_pause.actor, check_in_pause.person, caller => check_in_pause.caller);
    w := millrace.watch_of(check_in_pause.person);
    t := millrace.now();
    if the_end is null or the_end <= t or the_end > t + interval '366 days' then
        perform millrace.refuse('until lies in the past, or more than a year ahead', 'until', 'Give the time when the watch should resume; check_in_disarm ends it.');
    end if;
    if w.state in ('expired', 'disarmed') or w.expires_at <= t then
        perform millrace.refuse(case w.state when 'disarmed' then 'the watch is disarmed' else 'the watch has expired' end, 'person',
            case w.state when 'disarmed' then 'There is nothing to pause.' else 'Check in first.' end, '55000', 'wrong_state');
    end if;
    update millrace.watch x
       set state = 'paused', wake_at = the_end, expires_at = the_end + x.every, warned_at = null where x.person = w.person;
    perform millrace.checkin_changed(w.person, null, 'paused', jsonb_build_object('until', the_end));
    return the_end + w.every;
end $$;
select millrace.door_is('checkins', 'check_in_pause', 'client, worker', 'actor person',
    'Pauses the watch until a time.', who_may => array['pause their watch: itself, back end, staff']);

-- A person's own watch, contacts and open alarms, as JSON. Contacts and alarms are shown without a watch, too: the contacts' agreement
-- decides whether it can be armed, and a call for help needs no watch. Each alarm says who is told of it.
create or replace function millrace.check_in_show(person text, actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    alarms jsonb;
begin
    perform millrace.acts_as_person(check_in_show.actor, check_in_show.person, caller => check_in_show.caller);
    select coalesce(jsonb_agg(to_jsonb(x) || millrace.alarm_reach(x.id) order by x.raised_at desc), '[]') into alarms
      from millrace.alarms x where x.person = check_in_show.person and x.state <> 'resolved';
    return (select coalesce(to_jsonb(v), jsonb_build_object('person', p.person, 'state', null))
                || jsonb_build_object('contacts', millrace.watch_contacts(p.person), 'alarms', alarms)
              from (select check_in_show.person) p left join millrace.check_ins v on v.person = p.person
             where v.person is not null or alarms <> '[]' or exists (select from millrace.watch_contact c where c.person = p.person));
end $$;
select millrace.door_is('checkins', 'check_in_show', 'client, worker', 'actor person',
    'The person''s watch, contacts and open alarms.',
    who_may => array['see their watch, contacts and alarms: itself, back end, staff']);
