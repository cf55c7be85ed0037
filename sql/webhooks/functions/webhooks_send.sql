-- Deliveries: made from the feed, claimed, and recorded; for workers.

-- Turns events into deliveries, in the order of the feed and each once: one worker at a time, and the place in the feed is moved in the
-- same transaction. How many events it has passed; as many as asked for: there may be more.
create or replace function millrace.webhook_fan_out(most int default 500) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    fed bigint;
    last_seq bigint;
    passed int;
begin
    if not exists (select from millrace.webhook w where w.state <> 'disabled') then
        return 0;
    end if;
    select f.seq into fed from millrace.webhook_feed f for update skip locked;
    if not found then
        return 0;
    end if;
    perform millrace.events_number();
    -- No present target wants events before its own start.
    fed := greatest(fed, (select min(w.since) from millrace.webhook w where w.state <> 'disabled'));
    select max(x.seq), count(*)::int into last_seq, passed
      from (select e.seq from millrace.event e where e.seq > fed order by e.seq limit most) x;
    if passed > 0 then
        insert into millrace.webhook_delivery (webhook, event, seq, state, due_at)
        select w.id, e.id, e.seq, 'pending', millrace.now()
          from millrace.event e
          join millrace.webhook w on w.state <> 'disabled' and e.seq > w.since and millrace.webhook_wants(w, e.type, e.tenant)
         where e.seq > fed and e.seq <= last_seq
            on conflict do nothing;
    end if;
    update millrace.webhook_feed f set seq = coalesce(last_seq, fed) where f.seq < coalesce(last_seq, fed);
    return passed;
end $$;
select millrace.door_is('webhooks', 'webhook_fan_out', 'worker', 'staff');

-- A rate of n a minute as a bucket: webhook_burst requests at once, and one more after each webhook_pause; never more than n in a minute.
create or replace function millrace.webhook_burst(rate int) returns int
language sql immutable parallel safe as $$ select greatest(1, rate / 60) $$;

create or replace function millrace.webhook_pause(rate int) returns interval
language sql immutable parallel safe as $$ select make_interval(secs => 60.0 / (rate - millrace.webhook_burst(rate) + 1)) $$;

-- When the next request may go.
create or replace function millrace.webhook_free_at(w millrace.webhook) returns timestamptz
language sql immutable as $$
    select greatest(w.blocked_until, case when w.rate is not null
        then w.rate_at - millrace.webhook_pause(w.rate) * (millrace.webhook_burst(w.rate) - 1) end)
$$;

-- What to send now, at most `most` requests: handshakes (no event), and deliveries, which the token holds for `hold` seconds. Requests are
-- counted against the target's rate here, under its lock, so the whole fleet keeps to the rate. In batch mode the events claimed together
-- are one request.
-- busy: targets that already have enough requests from this worker.
create or replace function millrace.webhook_claim(
    the_token bigint, most int, per_target int, per_batch int, busy text[], hold float8, the_origin text
)
returns table (webhook uuid, url text, mode text, handshake boolean, tries int, secrets text[], event uuid, document jsonb, attempts int, alone boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    w millrace.webhook;
    places int;
    picked uuid[];
    signing text[];
    left_over int := most;
begin
    for w in
        select x.* from millrace.webhook x
         where x.state <> 'disabled' and x.id <> all (busy::uuid[]) and millrace.webhook_free_at(x) <= t
           and (x.state = 'pending' or exists (select from millrace.webhook_delivery d where d.webhook = x.id and d.state = 'pending' and d.due_at <= t))
         order by random() for no key update of x skip locked
    loop
        exit when left_over <= 0;
        select coalesce(array_agg(s.secret::text order by s.n desc), '{}') into signing
          from millrace.webhook_secret s where s.webhook = w.id and (s.until is null or s.until > t);
        -- A worker without a configured origin relies on the consent that other workers have got.
        if w.handshake and (w.state = 'pending' or (the_origin is not null and w.origin is distinct from the_origin)) then
            update millrace.webhook x set blocked_until = t + make_interval(secs => hold) where x.id = w.id;
            return query select w.id, w.url, w.mode, true, w.tries, signing, null::uuid, null::jsonb, 0, false;
            left_over := left_over - 1;
            continue;
        end if;
        places := case w.mode when 'batch' then per_batch else least(left_over, per_target) end;
        if w.rate is not null and w.mode <> 'batch' then
            places := least(places, floor(millrace.webhook_burst(w.rate) - extract(epoch from greatest(w.rate_at - t, interval '0')) / extract(epoch from millrace.webhook_pause(w.rate)))::int);
        end if;
        continue when places < 1;
        picked := array(
            select d.event from millrace.webhook_delivery d
             where d.webhook = w.id and d.state = 'pending' and d.due_at <= t
             order by d.due_at, d.seq limit places for update skip locked);
        if w.mode = 'batch' and cardinality(picked) > 1 then
            -- One that spoils its company goes alone; the others as long as they are no more than 256 KiB.
            picked := array(
                select q.event from (
                    select d.event, d.alone, p.n, sum(coalesce(octet_length(e.data::text), 0) + 1024) over (order by p.n) as bytes, first_value(d.alone) over (order by p.n) as is_lonely
                      from unnest(picked) with ordinality p(event, n)
                      join millrace.webhook_delivery d on d.webhook = w.id and d.event = p.event
                      left join millrace.event e on e.id = p.event) q
                 where q.n = 1 or (not q.is_lonely and not q.alone and q.bytes <= 262144) order by q.n);
        end if;
        continue when picked = '{}';
        update millrace.webhook_delivery d set state = 'failed', error = 'the event is no longer kept', done_at = t, token = null
         where d.webhook = w.id and d.event = any (picked) and not exists (select from millrace.event e where e.id = d.event);
        update millrace.webhook_delivery d set token = the_token, due_at = t + make_interval(secs => hold), first_at = coalesce(d.first_at, t)
         where d.webhook = w.id and d.event = any (picked) and d.done_at is null;  -- not by its state: that would be another index, of all that wait
        if w.rate is not null then
            update millrace.webhook x
               set rate_at = greatest(t, x.rate_at) + millrace.webhook_pause(x.rate) * case when x.mode = 'batch' then 1 else cardinality(picked) end
             where x.id = w.id;
        end if;
        return query
            select w.id, w.url, w.mode, false, w.tries, signing, d.event, millrace.event_document(e), d.attempts, d.alone
              from unnest(picked) with ordinality p(event, n)
              join millrace.webhook_delivery d on d.webhook = w.id and d.event = p.event and d.token = the_token
              join millrace.event e on e.id = p.event
             order by p.n;
        left_over := left_over - case w.mode when 'batch' then 1 else cardinality(picked) end;
    end loop;
end $$;
select millrace.door_is('webhooks', 'webhook_claim', 'worker', 'staff');

-- In how many seconds there is something to do; null: nothing waits. 0 and below: now.
create or replace function millrace.webhook_wait(out targets int, out seconds float8)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
    select count(*)::int, extract(epoch from min(case when w.state = 'pending' then millrace.webhook_free_at(w) when d.due_at is not null then greatest(d.due_at, millrace.webhook_free_at(w)) end) - millrace.now())::float8
      from millrace.webhook w
      left join lateral (select x.due_at from millrace.webhook_delivery x where x.webhook = w.id and x.state = 'pending' order by x.due_at limit 1) d on true
     where w.state <> 'disabled'
$$;
select millrace.door_is('webhooks', 'webhook_wait', 'worker', 'staff');

-- The outcome of a request with these events. delivered; retry (each after its wait, null: that was the last); refused: never again; gone:
-- no more events; throttled and later: all wait this long, and it counts as no attempt; alone: a batch was refused; passed: this worker's
-- settings forbid the target, and another worker may be allowed, so it counts as no attempt until none was allowed for an hour. Returns the
-- reason if the target was switched off by it.
create or replace function millrace.webhook_record(
    the_token bigint, the_webhook uuid, the_events uuid[], outcome text, waits float8[], the_code int, the_error text, hold float8
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    t timestamptz := millrace.now();
    w millrace.webhook;
    began timestamptz;
    why text;
begin
    select x.* into w from millrace.webhook x where x.id = the_webhook for no key update;
    if not found then
        return null;                                      -- removed meanwhile
    end if;
    if outcome = 'passed' then
        update millrace.webhook x set passed_since = coalesce(x.passed_since, t) where x.id = w.id returning x.passed_since into w.passed_since;
        if w.passed_since <= t - interval '1 hour' then
            outcome := 'retry';
        end if;
    elsif w.passed_since is not null and outcome <> 'later' then
        update millrace.webhook x set passed_since = null where x.id = w.id;
    end if;
    case outcome
    when 'passed' then
        update millrace.webhook_delivery d
           set due_at = t, error = left(the_error, 500), token = null
         where d.webhook = w.id and d.event = any (the_events) and d.token = the_token;
    when 'delivered' then
        -- Also when its time was over and another worker has it by now: it has arrived.
        update millrace.webhook_delivery d
           set state = 'delivered', attempts = d.attempts + 1, code = the_code, error = null, done_at = t, token = null
         where d.webhook = w.id and d.event = any (the_events) and d.done_at is null;
        update millrace.webhook x set failing_since = null, succeeded_at = t where x.id = w.id;
    when 'retry' then
        update millrace.webhook_delivery d
           set state = case when u.wait is null then 'failed' else 'pending' end, done_at = case when u.wait is null then t end,
               due_at = t + make_interval(secs => coalesce(u.wait, 0)), attempts = d.attempts + 1, code = the_code, error = left(the_error, 500), token = null
          from unnest(the_events, waits) u(event, wait)
         where d.webhook = w.id and d.event = u.event and d.token = the_token;
        update millrace.webhook x set failing_since = coalesce(x.failing_since, t) where x.id = w.id returning x.failing_since into w.failing_since;
        select min(d.first_at) into began from millrace.webhook_delivery d
         where d.webhook = w.id and d.event = any (the_events) and d.state = 'failed' and d.done_at = t;
        -- Nothing has arrived since this delivery was first tried. The first failure is recorded a moment after that try.
        if w.failing_since < began + interval '5 minutes' then
            why := format('nothing has arrived there since %s: %s', to_char(w.failing_since at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'), the_error);
        end if;
    when 'refused', 'gone' then
        update millrace.webhook_delivery d
           set state = 'failed', done_at = t, attempts = d.attempts + 1, code = the_code, error = left(the_error, 500), token = null
         where d.webhook = w.id and d.event = any (the_events) and d.token = the_token;
        why := case outcome when 'gone' then the_error end;
    when 'throttled', 'later' then
        update millrace.webhook_delivery d
           set due_at = t + make_interval(secs => hold), code = coalesce(the_code, d.code), error = left(the_error, 500), token = null
         where d.webhook = w.id and d.event = any (the_events) and d.token = the_token;
        update millrace.webhook x set blocked_until = greatest(x.blocked_until, t + make_interval(secs => hold)) where x.id = w.id;
    when 'alone' then
        update millrace.webhook_delivery d
           set alone = true, due_at = t, attempts = d.attempts + 1, code = the_code, error = left(the_error, 500), token = null
         where d.webhook = w.id and d.event = any (the_events) and d.token = the_token;
    end case;
    if why is not null and w.state <> 'disabled' then
        perform millrace.webhook_disable(w.id, why);
        return why;
    end if;
    return null;
end $$;
select millrace.door_is('webhooks', 'webhook_record', 'worker', 'staff');

-- The outcome of a handshake: allowed, refused, retry after this long (null: no more), later (it was not asked, and is no try), or passed (see
-- above; after an hour, refused).
create or replace function millrace.webhook_consent(the_webhook uuid, outcome text, the_origin text, the_rate int, why text, hold float8) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    passed timestamptz;
begin
    if outcome = 'passed' then
        update millrace.webhook w set passed_since = coalesce(w.passed_since, t), reason = left(why, 500), blocked_until = t
         where w.id = the_webhook and w.state <> 'disabled' returning w.passed_since into passed;
        if passed is null or passed > t - interval '1 hour' then
            return null;
        end if;
        perform millrace.webhook_disable(the_webhook, why);
        return why;
    end if;
    if outcome = 'later' then
        update millrace.webhook w set reason = left(why, 500), blocked_until = t + make_interval(secs => hold)
         where w.id = the_webhook and w.state <> 'disabled';
        return null;
    end if;
    update millrace.webhook w set passed_since = null where w.id = the_webhook and w.passed_since is not null;
    if outcome = 'allowed' then
        update millrace.webhook w
           set state = 'active', origin = the_origin, rate = the_rate, reason = null, tries = 0, blocked_until = t
         where w.id = the_webhook and w.state <> 'disabled';
        return null;
    end if;
    if outcome = 'retry' and hold is not null then
        update millrace.webhook w set tries = w.tries + 1, reason = left(why, 500), blocked_until = t + make_interval(secs => hold)
         where w.id = the_webhook and w.state <> 'disabled';
        return null;
    end if;
    perform millrace.webhook_disable(the_webhook, why);
    return why;
end $$;
select millrace.door_is('webhooks', 'webhook_consent', 'worker', 'staff');

-- A target's address and secrets, for a test by hand.
create or replace function millrace.webhook_target(the_webhook uuid) returns table (url text, mode text, handshake boolean, state text, secrets text[])
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select w.url, w.mode, w.handshake, w.state,
           (select coalesce(array_agg(s.secret::text order by s.n desc), '{}') from millrace.webhook_secret s where s.webhook = w.id and (s.until is null or s.until > millrace.now()))
      from millrace.webhook w where w.id = the_webhook
$$;
select millrace.door_is('webhooks', 'webhook_target', 'worker', 'staff');

-- Deliveries go with their events, 14 days after these; secrets with the end of their overlap.
create or replace function millrace.webhook_tidy(most int default 50000) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    delete from millrace.webhook_delivery d
     where d.ctid = any (array(
        select x.ctid from millrace.webhook_delivery x
         where x.seq < coalesce((select min(e.seq) from millrace.event e where e.seq is not null), (select s.last_value from millrace.event_seq s)) order by x.seq limit most));
    delete from millrace.webhook_secret s where s.until <= millrace.now();
end $$;

-- Joins in person_erase, before the events themselves go. They are counted, and their deliveries are not.
create or replace function millrace.deliveries_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.webhook_delivery d where d.event = any (array(select millrace.events_about(deliveries_erase_person.person)));
    return 0;
end $$;
