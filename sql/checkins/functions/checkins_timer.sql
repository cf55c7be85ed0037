-- The timer. Each caller takes rows that are due and that no other caller has locked. A row that fails is set aside with its reason and
-- tried again soon. The clock is read after the row is locked.

create or replace function millrace.watch_expire(w millrace.watch, t timestamptz) returns void
language plpgsql volatile as $$
declare
    a millrace.alarm;
begin
    a := millrace.alarm_open(w.person, 'expired', w.expires_at, null, null, t);
    if a.state = 'open' then
        a := millrace.alarm_advance(a, t);
    end if;
    update millrace.watch x set state = 'expired', wake_at = null, failures = 0, problem = null where x.person = w.person;
end $$;

-- A person sets its own interval and telephone number. Above a hundred warnings a day they are sent by push only, so that nobody can make a
-- stranger's number ring without end.
create or replace function millrace.watch_warn(w millrace.watch, before interval, t timestamptz) returns void
language plpgsql volatile as $$
declare
    the_notice uuid;
begin
    the_notice := millrace.notice_put(w.person, 'alarm.warning', null, null,
        millrace.warning_words(w) || jsonb_build_object('person', w.person, 'stage', 'warning', 'expires_at', w.expires_at),
        'warning:' || extract(epoch from w.expires_at) || ':' || extract(epoch from before), t, w.expires_at, true);
    if not millrace.day_take('warning', millrace.keyed_hash('person', w.person), millrace.counted('warnings')) then
        perform millrace.notice_by(the_notice, '{push}');
    end if;
    update millrace.watch x
       set state = 'warned', warned_at = t, wake_at = millrace.watch_next(x.expires_at, x.warnings, x.every, t), failures = 0, problem = null
     where x.person = w.person;
end $$;

-- Does what is due for one watch, whose lock is held. 1: expired, 2: warned, 0: moved.
create or replace function millrace.watch_look(w millrace.watch, t timestamptz) returns int
language plpgsql volatile as $$
declare
    before interval;
begin
    if w.expires_at <= t then
        perform millrace.watch_expire(w, t);
        return 1;
    end if;
    before := millrace.watch_warns(w.expires_at, w.warnings, w.every, w.warned_at, t);
    if before is not null then
        perform millrace.watch_warn(w, before, t);
        return 2;
    end if;
    update millrace.watch x
       set state = case x.state when 'paused' then 'armed' else x.state end, wake_at = millrace.watch_next(x.expires_at, x.warnings, x.every, t),
           failures = 0, problem = null
     where x.person = w.person;
    return 0;
end $$;

create or replace function millrace.watch_batch(people text[], t timestamptz, out expired int, out warned int) returns record
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    w millrace.watch;
    what int;
begin
    expired := 0;
    warned := 0;
    for w in select * from millrace.watch x where x.person = any (people) order by x.expires_at loop
        what := millrace.watch_look(w, t);
        expired := expired + (what = 1)::int;
        warned := warned + (what = 2)::int;
    end loop;
end $$;

create or replace function millrace.alarm_batch(alarms uuid[], t timestamptz) returns int
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    a millrace.alarm;
    n int := 0;
begin
    for a in select * from millrace.alarm x where x.id = any (alarms) order by x.next_at loop
        perform millrace.alarm_advance(a, t);
        n := n + 1;
    end loop;
    return n;
end $$;

-- If nothing reaches a contact, the next step of the round starts at once.
create or replace function millrace.alarm_nudged(most int, t timestamptz) returns int
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    one record;
    e millrace.alarm_event;
    a millrace.alarm;
    n int := 0;
begin
    for one in
        with gone as (
            delete from millrace.alarm_nudge g
             where g.place = any (array(select x.place from millrace.alarm_nudge x order by x.place limit most for update skip locked))
            returning g.place, g.alarm, g.notice
        )
        select * from gone order by alarm, place
    loop
        select * into a from millrace.alarm x where x.id = one.alarm for no key update;
        select * into e from millrace.alarm_event x where x.alarm = one.alarm and x.notice = one.notice;
        continue when a.id is null or e.id is null;
        insert into millrace.alarm_event (alarm, at, what, contact, notice, step, round, channel)
        values (a.id, t, 'not_reached', e.contact, e.notice, e.step, e.round, e.channel);
        if a.state = 'open' and e.what = 'told' and e.step = a.step and e.round = a.round and not exists (
            select from millrace.alarm_event x join millrace.notice m on m.id = x.notice
             where x.alarm = a.id and x.what = 'told' and x.contact = e.contact and x.step = a.step and x.round = a.round
               and m.status not in ('failed', 'expired', 'suppressed')) then
            perform millrace.alarm_advance(a, t, within => true);
            n := n + 1;
        end if;
    end loop;
    return n;
end $$;

-- Whether there is any watch, now or later. It reads one entry in each of two indexes and writes nothing, because workers without the
-- setting call it all the time.
create or replace function millrace.watch_wanted() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
    select exists (select from millrace.watch x where x.wake_at is not null) or exists (select from millrace.alarm x where x.next_at is not null)
$$;
select millrace.door_is('checkins', 'watch_wanted', 'worker', 'staff');

-- One transaction's worth, and how long until there is more, in seconds of the database's clock.
create or replace function millrace.watch_step(the_name text, most int default 100)
returns table (taken int, expired int, warned int, escalated int, failed int, wait float8, oldest float8)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    t timestamptz;
    people text[];
    alarms uuid[];
    one text;
    two uuid;
    w millrace.watch;
    a millrace.alarm;
    n int;
    next_at timestamptz;
begin
    if most is null or most not between 1 and 1000 then
        perform millrace.refuse('a transaction takes 1 to 1000 watches', 'most');
    end if;
    expired := 0; warned := 0; escalated := 0; failed := 0;
    t := millrace.now();
    insert into millrace.watchman as m (name, beat_at) values (left(the_name, 128), t)
        on conflict (name) do update set beat_at = excluded.beat_at where m.beat_at < excluded.beat_at - interval '2 seconds' or m.beat_at > excluded.beat_at;

    people := array(select x.person from millrace.watch x where x.wake_at <= t order by x.wake_at limit most for no key update skip locked);
    taken := cardinality(people);
    t := millrace.now();                                   -- behind the locks: this decides
    if taken > 0 then
        begin
            select b.expired, b.warned into expired, warned from millrace.watch_batch(people, t) b;
        exception when others then
            if sqlstate like '40%' or sqlstate like '53%' or sqlstate like '57%' then
                raise;
            end if;
            expired := 0; warned := 0;
            foreach one in array people loop
                select * into w from millrace.watch x where x.person = one;
                begin
                    n := millrace.watch_look(w, t);
                    expired := expired + (n = 1)::int;
                    warned := warned + (n = 2)::int;
                exception when others then
                    if sqlstate like '40%' or sqlstate like '53%' or sqlstate like '57%' then
                        raise;
                    end if;
                    failed := failed + 1;
                    update millrace.watch x
                       set failures = x.failures + 1, problem = left(sqlerrm, 300), wake_at = t + least(interval '5 seconds' * power(2, least(x.failures, 4)), interval '1 minute')
                     where x.person = one;
                end;
            end loop;
        end;
    end if;

    if taken < most then
        begin
            escalated := millrace.alarm_nudged(most, t);
        exception when others then
            if sqlstate like '40%' or sqlstate like '53%' or sqlstate like '57%' then
                raise;
            end if;
            failed := failed + 1;                          -- the steps come in their time all the same
        end;
        alarms := array(select x.id from millrace.alarm x where x.next_at <= t order by x.next_at limit most - taken for no key update skip locked);
        taken := taken + cardinality(alarms);
        if cardinality(alarms) > 0 then
            begin
                escalated := escalated + millrace.alarm_batch(alarms, t);
            exception when others then
                if sqlstate like '40%' or sqlstate like '53%' or sqlstate like '57%' then
                    raise;
                end if;
                foreach two in array alarms loop
                    select * into a from millrace.alarm x where x.id = two;
                    begin
                        perform millrace.alarm_advance(a, t);
                        escalated := escalated + 1;
                    exception when others then
                        if sqlstate like '40%' or sqlstate like '53%' or sqlstate like '57%' then
                            raise;
                        end if;
                        failed := failed + 1;
                        update millrace.alarm x
                           set failures = x.failures + 1, problem = left(sqlerrm, 300), next_at = t + least(interval '5 seconds' * power(2, least(x.failures, 4)), interval '1 minute')
                         where x.id = two;
                    end;
                end loop;
            end;
        end if;
    end if;

    select least((select x.wake_at from millrace.watch x where x.wake_at is not null order by x.wake_at limit 1),
                 (select x.next_at from millrace.alarm x where x.next_at is not null order by x.next_at limit 1)) into next_at;
    t := millrace.now();
    wait := extract(epoch from next_at - t);
    oldest := greatest(-wait, 0);
    return next;
end $$;
select millrace.door_is('checkins', 'watch_step', 'worker', 'staff');
