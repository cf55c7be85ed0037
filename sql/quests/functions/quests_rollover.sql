-- One local midnight at a time: yesterday is closed and folded, today is opened, its reminders are set.

-- When a notice about a day is due; null when that falls out of the day.
create or replace function millrace.quest_due(kind text, day date, zone text, rules millrace.quest_rule, hour int default null) returns timestamptz
language sql stable parallel safe as $$
    select case when l.at < millrace.day_start(day + 1, zone) then l.at end
      from (select millrace.notice_loud(case kind
                when 'daily_reminder' then millrace.wall_start(day + make_time(coalesce(hour, (rules).reminder_hour), 0, 0), zone)
                when 'streak_at_risk' then millrace.wall_start(day + make_time(least(coalesce(hour, (rules).reminder_hour) + 1, 23), 0, 0), zone)
                else millrace.day_start(day, zone) end, zone, (rules).quiet_from, (rules).quiet_to) as at) l
$$;

create or replace function millrace.reminder_hour_of(the_person text) returns int
language sql stable as $$
    select p.reminder_hour from millrace.profile p where p.person = the_person
$$;

-- Today's reminders that are still to come, to the hour that holds now.
create or replace function millrace.reminder_move(the_person text, t timestamptz) returns void
language sql volatile as $$
    select millrace.notice_retime(n.id, n.due, n.ends)
      from (select o.id, f.next_rollover_at as ends, millrace.quest_due(o.kind, f.today, f.zone, r, millrace.reminder_hour_of(the_person)) as due
              from millrace.family_member m join millrace.quest_family f on f.family = m.family join millrace.notice o on o.person = m.person, millrace.quest_rule r
             where m.person = the_person and o.status = 'pending' and o.due_at > t and o.key in ('daily_reminder:' || f.today, 'streak_at_risk:' || f.today)) n
     where n.due > t
$$;

-- A reminder of the open day is not sent, and does not come again that day; notice_kind ends a kind for good. False: none waited any more.
create or replace function millrace.reminder_cancel(person text, kind text default 'daily_reminder', actor text default null, caller millrace.caller_name default current_user)
returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one text;
    stopped boolean := false;
begin
    perform millrace.acts_as_person(reminder_cancel.actor, reminder_cancel.person, caller => reminder_cancel.caller);
    if reminder_cancel.kind is null or reminder_cancel.kind not in ('daily_reminder', 'quest_available', 'quest_summary', 'streak_at_risk') then
        perform millrace.refuse(format('the kind %L is not a reminder', left(reminder_cancel.kind, 60)), 'kind',
            'Give daily_reminder, quest_available, quest_summary or streak_at_risk.');
    end if;
    for one in
        select n.key from millrace.notice n
         where n.person = reminder_cancel.person and n.kind = reminder_cancel.kind and n.key like reminder_cancel.kind || ':%' and n.status in ('pending', 'attempting') order by 1
    loop
        stopped := millrace.notice_cancel(reminder_cancel.person, one) or stopped;
    end loop;
    return stopped;
end $$;
select millrace.door_is('quests', 'reminder_cancel', 'client, worker', 'actor person', 'Cancels one of today''s reminders.',
    words => '{"kind": ["daily_reminder", "quest_available", "quest_summary", "streak_at_risk"]}',
    who_may => array['silence one of today''s reminders: itself, back end, staff']);

-- Takes these families over every midnight up to `t`, day by day, and answers how many there were. The caller's transaction holds them.
create or replace function millrace.quest_roll(families text[], t timestamptz) returns int
language plpgsql volatile set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off set jit = off as $$
declare
    batch text[];
    firsts date[];
    rules millrace.quest_rule;
    n int;
    days int := 0;
begin
    select array_agg(x.family), array_agg(x.today) into batch, firsts
      from (select f.family, f.today from millrace.quest_family f
             where f.family = any (families) and f.next_rollover_at <= t order by f.family) x;
    if batch is null then
        return 0;
    end if;
    select * into strict rules from millrace.quest_rule;
    loop
        update millrace.quest q set state = 'missed'
          from millrace.quest_family f
         where f.family = any (batch) and f.next_rollover_at <= t and q.family = f.family and q.day = f.today and q.state = 'open';
        with due as materialized (
            select f.family, f.zone, f.today + 1 as day, f.next_rollover_at as opened, array[f.streak, f.best, f.freezes] as streak, f.today
              from millrace.quest_family f where f.family = any (batch) and f.next_rollover_at <= t
        ), ends as materialized (
            select z.zone, z.day, millrace.day_start(z.day + 1, z.zone) as at from (select distinct d.zone, d.day from due d) z
        ), step as materialized (
            -- A day that ends when it begins was not lived: the calendar left it out, or a move went past it.
            select d.family, d.day, d.opened, greatest(e.at, d.opened) as ends_at, millrace.streak_step(d.streak, coalesce(q.state, 'missed')) as s
              from due d join ends e on e.zone = d.zone and e.day = d.day
              left join millrace.quest q on q.family = d.family and q.day = d.today
        ), opening as (
            insert into millrace.quest (family, day, item, state)
            select s.family, s.day, millrace.quest_item_of(s.family, s.day, rules.rotation), case when s.ends_at = s.opened then 'not_lived' else 'open' end
              from step s
                on conflict (family, day) do nothing
        )
        update millrace.quest_family f
           set today = s.day, opened_at = s.opened, next_rollover_at = s.ends_at, due_at = s.ends_at,
               streak = s.s[1], best = s.s[2], freezes = s.s[3], failures = 0, problem = null
          from step s where f.family = s.family;
        get diagnostics n = row_count;
        exit when n = 0;
        days := days + n;
    end loop;
    perform millrace.quest_remind(batch, firsts, rules, t);
    return days;
end $$;

-- Days that passed while no worker looked get one summary; reminders are only for the open day.
create or replace function millrace.quest_remind(batch text[], firsts date[], rules millrace.quest_rule, t timestamptz) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off set jit = off as $$
begin
    perform millrace.notices_put(array(
        with rolled as materialized (
            select f.family, f.zone, f.today, f.opened_at, f.next_rollover_at, f.streak, q.state = 'done' as is_done, b.first,
                   case when f.today - b.first > 1 then 'quest_summary' else 'quest_available' end as news
              from unnest(batch, firsts) b(family, first)
              join millrace.quest_family f on f.family = b.family
              join millrace.quest q on q.family = f.family and q.day = f.today
        ), told as materialized (
            select r.*, m.person, coalesce(p.reminder_hour, rules.reminder_hour) as hour
              from rolled r join millrace.family_member m on m.family = r.family left join millrace.profile p on p.person = m.person
        ), clocks as materialized (
            select z.zone, z.today, z.hour, millrace.notice_loud(greatest(millrace.day_start(z.today, z.zone), t), z.zone, rules.quiet_from, rules.quiet_to) as news,
                   millrace.quest_due('daily_reminder', z.today, z.zone, rules, z.hour) as reminder,
                   millrace.quest_due('streak_at_risk', z.today, z.zone, rules, z.hour) as risk
              from (select distinct r.zone, r.today, r.hour from told r) z
        )
        select row(r.person, k.kind, k.kind || ':' || r.today, k.data, k.due, r.next_rollover_at)::millrace.notice_to_send
          from told r
          join clocks c on c.zone = r.zone and c.today = r.today and c.hour = r.hour
         cross join lateral (
            select r.news, c.news,
                   case when r.news = 'quest_summary' then jsonb_build_object('text', 'New quest available!', 'from', r.first, 'days', r.today - r.first)
                        else jsonb_build_object('text', 'New quest available!', 'day', r.today) end
             where not r.is_done
            union all
            select 'daily_reminder', c.reminder, jsonb_build_object('text', 'Don''t forget to log your mood', 'day', r.today)
             where not exists (select from millrace.mood o where o.person = r.person and o.at >= r.opened_at and o.day = r.today and o.deleted_at is null)
            union all
            select 'streak_at_risk', c.risk, jsonb_build_object('text', 'Your streak is at risk', 'streak', r.streak, 'day', r.today)
             where r.streak >= 3 and not r.is_done
         ) k(kind, due, data)
         where k.due < r.next_rollover_at and (k.due >= t - interval '1 hour')));
end $$;

-- One transaction's worth. A family that cannot be rolled over midnight is left as it was, with the reason, and tried again later: a quarter
-- of an hour on, then twice as long each time, up to a day. The others go on.
create or replace function millrace.quest_rollover(most int default 500)
returns table (families int, days int, failed int, next_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off as $$
declare
    t timestamptz := millrace.now();
    batch text[];
    one text;
begin
    if most is null or most not between 1 and 500 then
        perform millrace.refuse('a transaction takes 1 to 500 families', 'most');
    end if;
    families := 0;
    days := 0;
    failed := 0;
    select array_agg(x.family) into batch
      from (select f.family from millrace.quest_family q join millrace.family f on f.family = q.family
             where q.due_at <= t order by q.due_at limit most for no key update of f skip locked) x;
    -- Behind the locks: without those that another has taken over its midnight since then.
    select array_agg(q.family) into batch from millrace.quest_family q where q.family = any (batch) and q.due_at <= t;
    if batch is not null then
        families := cardinality(batch);
        begin
            days := millrace.quest_roll(batch, t);
        exception when others then
            if sqlstate like '40%' or sqlstate like '53%' or sqlstate like '57%' then
                raise;
            end if;
            days := 0;
            foreach one in array batch loop
                begin
                    days := days + millrace.quest_roll(array[one], t);
                exception when others then
                    if sqlstate like '40%' or sqlstate like '53%' or sqlstate like '57%' then
                        raise;
                    end if;
                    failed := failed + 1;
                    update millrace.quest_family f
                       set failures = f.failures + 1, problem = left(sqlerrm, 300),
                           due_at = t + least(interval '15 minutes' * power(2, least(f.failures, 10)), interval '1 day')
                     where f.family = one;
                end;
            end loop;
        end;
    end if;
    select min(f.due_at) into next_at from millrace.quest_family f;
    return next;
end $$;
select millrace.door_is('quests', 'quest_rollover', 'worker', 'staff');

-- What a rollover would do now.
create or replace function millrace.quest_rollover_due(most int default 50)
returns table (family text, zone text, today date, becomes date, due_at timestamptz, problem text)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select f.family, f.zone, f.today, case when f.problem is null then millrace.day_at(x.t, f.zone) end, f.due_at, f.problem
      from (select millrace.now() as t) x, millrace.quest_family f
     where f.due_at <= x.t order by f.due_at, f.family limit most
$$;
select millrace.door_is('quests', 'quest_rollover_due', 'worker', 'staff');

-- For status and doctor.
create or replace function millrace.quest_state(out families bigint, out due bigint, out oldest timestamptz, out broken bigint, out at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    at := millrace.now();
    select greatest(c.reltuples, 0)::bigint into families from pg_class c where c.oid = 'millrace.quest_family'::regclass;
    select count(*), min(f.next_rollover_at) into due, oldest from millrace.quest_family f where f.due_at <= at and f.problem is null;
    select count(*) into broken from millrace.quest_family f where f.problem is not null;
end $$;
select millrace.door_is('quests', 'quest_state', 'worker, viewer', 'staff');

-- After an update of the time-zone database: computes moved ends of days again. Once a day for each zone in use.
create or replace function millrace.quest_zones_check(force boolean default false) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    c millrace.family_clock;
    n int;
    moved int := 0;
begin
    for c in
        select * from millrace.family_clock x where force or x.checked_at < t - interval '1 day' order by x.zone for update skip locked
    loop
        begin
            if force or millrace.zone_print(c.zone, c.from_day) <> c.print then
                perform from millrace.quest_family q join millrace.family f on f.family = q.family where q.zone = c.zone order by f.family for no key update of f;
                update millrace.quest_family q set next_rollover_at = w.ends, due_at = w.ends
                  from (select x.family, greatest(millrace.day_start(x.today + 1, c.zone), x.opened_at) as ends from millrace.quest_family x where x.zone = c.zone) w
                 where q.family = w.family and q.next_rollover_at <> w.ends and q.next_rollover_at > t;
                get diagnostics n = row_count;
                moved := moved + n;
            end if;
            perform millrace.zone_noted(c.zone, false);
        exception when invalid_parameter_value then
            perform millrace.zone_noted(c.zone, true);    -- its families say so themselves
        end;
    end loop;
    return moved;
end $$;
select millrace.door_is('quests', 'quest_zones_check', 'worker', 'staff');

-- What collectors of metrics read of this room: see measure_rooms.
create or replace function millrace.quest_measures(t timestamptz) returns table (name text, labels text[], value float8)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    return query
    select v.name, null::text[], v.n
      from (select count(*)::float8 as n, coalesce(extract(epoch from t - min(x.next_rollover_at)), 0)::float8 as lag
              from (select f.next_rollover_at from millrace.quest_family f where f.due_at <= t and f.problem is null order by f.due_at limit 10000) x) d
     cross join lateral (values ('families_due', d.n), ('families_lag_seconds', greatest(0, d.lag)),
            ('families_broken', (select count(*) from (select from millrace.quest_family f where f.problem is not null limit 10000) b)::float8),
            ('families', (select greatest(c.reltuples, 0) from pg_class c where c.oid = 'millrace.quest_family'::regclass)::float8)) v(name, n);
end $$;

-- What status says of this room: see room_states.
create or replace function millrace.quest_status_part() returns jsonb
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select to_jsonb(s) from millrace.quest_state() s
$$;
