-- What waits to be told: see room_lanes.
create or replace function millrace.notice_lanes(cap int)
returns table (room text, lane text, waiting bigint, later bigint, running bigint, oldest_s float8, ended bigint, failed bigint, workers int)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
    t timestamptz := millrace.now();
    is_alarm boolean;
begin
    room := 'notices';
    workers := (select count(*) from millrace.session s where s.rooms ? 'notices');
    foreach is_alarm in array array[true, false] loop
        lane := case when is_alarm then 'alarms' else 'others' end;
        -- Two indexes hold them: those of which nobody knows yet how they are told, and sendings. One that a worker left is due again.
        select least(count(*), cap), extract(epoch from t - min(d.due_at)) into waiting, oldest_s
          from ((select n.due_at from millrace.notice n where n.alarm = is_alarm and n.status = 'pending' and n.address is null
                    and coalesce(n.wait_until, n.due_at) <= t order by n.alarm, coalesce(n.wait_until, n.due_at) limit cap)
                union all
                (select n.due_at from millrace.notice n where n.alarm = is_alarm and n.status in ('pending', 'attempting') and n.address is not null
                    and coalesce(n.wait_until, n.due_at) <= t order by n.alarm, coalesce(n.wait_until, n.due_at) limit cap)) d;
        select least(count(*) filter (where d.status = 'pending'), cap), count(*) filter (where d.status = 'attempting') into later, running
          from ((select n.status from millrace.notice n where n.alarm = is_alarm and n.status = 'pending' and n.address is null
                    and coalesce(n.wait_until, n.due_at) > t order by n.alarm, coalesce(n.wait_until, n.due_at) limit cap)
                union all
                (select n.status from millrace.notice n where n.alarm = is_alarm and n.status in ('pending', 'attempting') and n.address is not null
                    and coalesce(n.wait_until, n.due_at) > t order by n.alarm, coalesce(n.wait_until, n.due_at) limit cap)) d;
        -- A notice that became several sendings is counted by these.
        select count(*), count(*) filter (where d.status <> 'accepted') into ended, failed
          from (select n.status, n.alarm, n.address, n.error_class from millrace.notice n
                 where n.status not in ('pending', 'attempting') and n.due_at > t - interval '1 hour' and n.due_at <= t
                 order by n.due_at desc limit 10000) d
         where d.alarm = is_alarm and d.status in ('accepted', 'failed', 'expired') and (d.address is not null or d.error_class is not null);
        return next;
    end loop;
end $$;

create or replace function millrace.why_notices() returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    t timestamptz := millrace.now();
    is_alarm boolean;
    one record;
    words text;
    said jsonb;
begin
    foreach is_alarm in array array[true, false] loop
        select x.* into one
          from ((select n.id, n.due_at, n.wait_until, n.status, n.provider, n.error from millrace.notice n where n.alarm = is_alarm and n.status = 'pending' and n.address is null
                  order by n.alarm, coalesce(n.wait_until, n.due_at) limit 1)
                union all
                (select n.id, n.due_at, n.wait_until, n.status, n.provider, n.error from millrace.notice n where n.alarm = is_alarm and n.status in ('pending', 'attempting')
                    and n.address is not null order by n.alarm, coalesce(n.wait_until, n.due_at) limit 1)) x
         where x.due_at <= t order by x.due_at limit 1;
        continue when not found;
        words := format('%s %s has been due since %s', case when is_alarm then 'alarm' else 'notice' end, one.id, millrace.why_time(one.due_at));
        said := coalesce(millrace.why_unserved('notices', words, '--notices'), case when one.provider is not null then millrace.why_provider(one.provider, true) end);
        if said is null and one.wait_until > t and one.status = 'pending' then
            said := millrace.why_put('retry', format('%s is tried again in %s%s', words, millrace.why_span(extract(epoch from one.wait_until - t)::float8),
                    coalesce(': ' || one.error, '')), null, jsonb_build_object('due', one.wait_until), format('millrace notices show %s', one.id));
        end if;
        said := coalesce(said, millrace.why_put('next', format('%s and a worker is about to take it', words), null, '{}', format('millrace notices show %s', one.id)));
        return said || jsonb_build_object('notice', one.id, 'chain', to_jsonb(words) || (said -> 'chain'));
    end loop;
    return null;
end $$;

create or replace function millrace.notice_why_queue(about jsonb) returns jsonb
language sql volatile as $$
    select case when about ->> 'queue' = 'notices' then coalesce(millrace.why_notices(), '{}') end
$$;

-- Whether something waits here, and who serves it: see rooms.
create or replace function millrace.notice_served()
returns table (room text, waiting bigint, oldest_s float8, servers int, unsure int, how text[], used boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    silent int := (select count(*) from millrace.session s where s.rooms is null);
begin
    used := true;
    room := 'notices';
    select n.alarms + n.plain, greatest(n.alarm_age, n.plain_age) into waiting, oldest_s from millrace.notice_state() n;
    if waiting > 0 then
        servers := (select count(*) from millrace.session s where s.rooms ? 'notices'); unsure := silent; how := '{}';
        return next;
    end if;
end $$;

-- What collectors of metrics read of this room: see measure_rooms.
create or replace function millrace.notice_measures(t timestamptz) returns table (name text, labels text[], value float8)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    return query
    select 'room_workers', array['notices'], (select count(*) from millrace.session s where s.rooms ? 'notices')::float8;
end $$;
