-- People who are watched, and alarms that go on: see room_lanes.
create or replace function millrace.checkin_lanes(cap int)
returns table (room text, lane text, waiting bigint, later bigint, running bigint, oldest_s float8, ended bigint, failed bigint, workers int)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
    t timestamptz := millrace.now();
begin
    room := 'check-ins';
    workers := (select count(*) from millrace.session s where s.rooms ? 'check-ins');
    running := null; ended := null; failed := null;
    lane := 'watches';
    select least(count(*), cap), extract(epoch from t - min(d.wake_at)) into waiting, oldest_s
      from (select w.wake_at from millrace.watch w where w.wake_at <= t order by w.wake_at limit cap) d;
    later := (select count(*) from (select from millrace.watch w where w.wake_at > t order by w.wake_at limit cap) d);
    return next;
    lane := 'alarms';
    select least(count(*), cap), extract(epoch from t - min(d.next_at)) into waiting, oldest_s
      from (select a.next_at from millrace.alarm a where a.next_at <= t order by a.next_at limit cap) d;
    later := (select count(*) from (select from millrace.alarm a where a.next_at > t order by a.next_at limit cap) d);
    return next;
end $$;

create or replace function millrace.why_checkins() returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    t timestamptz := millrace.now();
    a record;
    reach jsonb;
    beat timestamptz := (select max(m.beat_at) from millrace.watchman m);
begin
    select x.id, x.person, x.raised_at, x.next_at into a from millrace.alarm x where x.state = 'unreachable' order by x.id limit 1;
    if not found then
        -- Nobody confirmed an address: the alarm will come to nothing, though its steps are not over.
        select x.id, x.person, x.raised_at, x.next_at into a
          from (select y.* from millrace.alarm y where y.next_at is not null order by y.next_at limit 50) x
         where (millrace.alarm_reach(x.id) ->> 'reaches_nobody')::boolean order by x.raised_at limit 1;
    end if;
    if found then
        reach := millrace.alarm_reach(a.id);
        return millrace.why_put('alarm_unreachable', format('alarm %s of %s reaches nobody: %s', a.id, a.person,
                case when (reach ->> 'reaches_nobody')::boolean then 'no contact has a confirmed address' else 'all contacts were told, and nobody answered' end),
            'tell somebody by telephone, and give that person a contact who can be reached', jsonb_build_object('alarm', a.id),
            format('millrace checkins contacts %s', millrace.why_word(a.person)),
            array[format('alarm %s has been open since %s', a.id, millrace.why_time(a.raised_at)), coalesce('its contacts: ' || (reach ->> 'sentence'), 'nobody can be told')]);
    end if;
    if exists (select from millrace.watch w where w.wake_at is not null) and coalesce(beat < t - interval '1 min', true) then
        return coalesce(millrace.why_unserved('check-ins', 'people are watched over', '--checkins'),
            millrace.why_put('worker_frozen', coalesce(format('no worker has looked at the check-ins since %s', millrace.why_time(beat)), 'no worker has ever looked at the check-ins'),
                'look at the workers that serve check-ins', '{}', 'millrace workers list'));
    end if;
    return null;
end $$;

create or replace function millrace.checkin_why_queue(about jsonb) returns jsonb
language sql volatile as $$
    select case when about ->> 'queue' in ('check-ins', 'checkins') then coalesce(millrace.why_checkins(), '{}') end
$$;

-- What collectors of metrics read of this room: see measure_rooms.
create or replace function millrace.checkin_measures(t timestamptz) returns table (name text, labels text[], value float8)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    return query
    select 'room_workers', array['check-ins'], (select count(*) from millrace.session s where s.rooms ? 'check-ins')::float8;
    return query
    select v.name, null::text[], v.n
      from millrace.check_in_state() c
     cross join lateral (values ('checkins_watches', c.watches::float8), ('checkins_overdue', c.overdue::float8), ('checkins_late_seconds', greatest(0, coalesce(c.oldest, 0))),
            ('checkins_beat_seconds', coalesce(greatest(0, c.beat), -1)), ('checkins_alarms_open', c.open::float8), ('checkins_alarms_unreachable', c.unreachable::float8),
            ('checkins_broken', c.broken::float8)) v(name, n);
end $$;
