-- What waits in the lanes of notices, webhooks and check-ins, which are no queues: `status` shows them beside the queues. Each number stops at
-- `cap`, or counts all where that is null; an hour's endings stop at 10,000. later: not due yet, or tried again after a pause. running: handed to
-- a worker; null where the work is one transaction, which nobody else sees. ended, failed: of what was due in the last hour; null where nobody
-- counts. workers: how many living ones serve the room.
create or replace function millrace.room_lanes(cap int default 10000)
returns table (room text, lane text, waiting bigint, later bigint, running bigint, oldest_s float8, ended bigint, failed bigint, workers int)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
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

    room := 'webhooks';
    workers := (select count(*) from millrace.session s where s.rooms ? 'webhooks');
    lane := 'events';
    running := null; later := 0; ended := null; failed := null; waiting := 0; oldest_s := null;
    if exists (select from millrace.webhook w where w.state <> 'disabled') then
        -- Those without a number yet, and those with one that were not turned into deliveries.
        select least(count(*), cap), extract(epoch from t - min(d.at)) into waiting, oldest_s
          from ((select e.at from millrace.event_fresh f join millrace.event e on e.id = f.id order by f.place limit cap)
                union all
                (select e.at from millrace.event e
                  where e.seq > greatest((select f.seq from millrace.webhook_feed f), (select min(w.since) from millrace.webhook w where w.state <> 'disabled'))
                  order by e.seq limit cap)) d;
    end if;
    return next;
    lane := 'deliveries';
    select least(count(*), cap), extract(epoch from t - min(d.due_at)) into waiting, oldest_s
      from (select x.due_at from millrace.webhook w
             cross join lateral (select d.due_at from millrace.webhook_delivery d where d.webhook = w.id and d.state = 'pending' and d.due_at <= t
                                  order by d.due_at, d.seq limit cap) x
             where w.state <> 'disabled' limit cap) d;
    select least(count(*) filter (where d.token is null), cap), count(*) filter (where d.token is not null) into later, running
      from (select x.token from millrace.webhook w
             cross join lateral (select d.token from millrace.webhook_delivery d where d.webhook = w.id and d.state = 'pending' and d.due_at > t
                                  order by d.due_at, d.seq limit cap) x
             where w.state <> 'disabled' limit cap) d;
    select count(*), count(*) filter (where d.state = 'failed') into ended, failed
      from (select d.state, d.done_at from millrace.webhook_delivery d order by d.seq desc limit 10000) d
     where d.done_at > t - interval '1 hour';
    return next;

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
