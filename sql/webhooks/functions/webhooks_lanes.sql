-- Events and deliveries that wait: see room_lanes.
create or replace function millrace.webhook_lanes(cap int)
returns table (room text, lane text, waiting bigint, later bigint, running bigint, oldest_s float8, ended bigint, failed bigint, workers int)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
    t timestamptz := millrace.now();
begin
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
end $$;

create or replace function millrace.why_webhooks() returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    t timestamptz := millrace.now();
    w record;
    words text;
    said jsonb;
begin
    select x.id, x.blocked_until, x.state, d.due_at, d.attempts, d.error, d.token into w
      from (select y.* from millrace.webhook y where y.state <> 'disabled' order by y.id limit 500) x
     cross join lateral (select e.due_at, e.attempts, e.error, e.token from millrace.webhook_delivery e where e.webhook = x.id and e.state = 'pending'
                          order by e.due_at, e.seq limit 1) d
     order by d.due_at limit 1;
    if found then
        words := format('an event waits for the webhook %s', w.id);
        said := coalesce(millrace.why_unserved('webhooks', words, '--webhooks'), millrace.why_provider('webhook:' || w.id, true));
        if said is null and greatest(w.due_at, w.blocked_until) > t and w.token is null then
            said := millrace.why_put('retry', format('%s: it is called again in %s%s', words, millrace.why_span(extract(epoch from greatest(w.due_at, w.blocked_until) - t)::float8),
                coalesce(': ' || w.error, '')), null, jsonb_build_object('due', greatest(w.due_at, w.blocked_until)), format('millrace webhooks test %s', w.id));
        end if;
        said := coalesce(said, millrace.why_put('next', words || ' and a worker is about to call it', null, '{}', format('millrace webhooks deliveries --to %s', w.id)));
        return said || jsonb_build_object('webhook', w.id, 'chain', to_jsonb(words) || (said -> 'chain'));
    end if;
    select x.id, x.reason into w from (select y.* from millrace.webhook y where y.state = 'disabled' order by y.id limit 500) x order by x.id limit 1;
    return case when found then millrace.why_put('webhook_off', format('the webhook %s is switched off: %s', w.id, w.reason), 'fix its receiver, then switch it on',
        jsonb_build_object('webhook', w.id), format('millrace webhooks enable %s', w.id)) end;
end $$;

create or replace function millrace.webhook_why_queue(about jsonb) returns jsonb
language sql volatile as $$
    select case when about ->> 'queue' = 'webhooks' then coalesce(millrace.why_webhooks(), '{}') end
$$;

-- Whether something waits here, and who serves it: see rooms.
create or replace function millrace.webhook_served()
returns table (room text, waiting bigint, oldest_s float8, servers int, unsure int, how text[], used boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    silent int := (select count(*) from millrace.session s where s.rooms is null);
begin
    used := true;
    room := 'webhooks';
    if exists (select from millrace.webhook w where w.state = 'active') then
        select w.waiting, w.late_s into waiting, oldest_s from millrace.webhook_state() w where w.late_s is not null;
        -- Events that no reader has numbered yet wait as well.
        waiting := coalesce(waiting, 0)
            + (select count(*) from (select from millrace.event_fresh limit 10000) f)
            + (select count(*) from (select from millrace.event e where e.seq > (select f.seq from millrace.webhook_feed f) limit 10000) f);
        if waiting > 0 then
            servers := (select count(*) from millrace.session s where s.rooms ? 'webhooks'); unsure := silent; how := '{}';
            return next;
        end if;
    end if;
end $$;

-- What collectors of metrics read of this room: see measure_rooms.
create or replace function millrace.webhook_measures(t timestamptz) returns table (name text, labels text[], value float8)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    return query
    select 'room_workers', array['webhooks'], (select count(*) from millrace.session s where s.rooms ? 'webhooks')::float8;
    return query
    select 'webhooks', array[s.state], (select count(*) from (select from millrace.webhook w where w.state = s.state limit 10000) x)::float8
      from unnest(array['active', 'pending', 'disabled']) s(state);
    return query
    select 'webhooks_late_seconds', null::text[], greatest(0, coalesce(w.late_s, 0)) from millrace.webhook_state() w;
end $$;
