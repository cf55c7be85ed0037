-- The fleet's verdict on its providers. Workers decide in memory; here they agree. Each change of state starts the next generation, and
-- reports that refer to an older generation are ignored.

create or replace function millrace.provider_turn(
    c millrace.provider_circuit, to_state text, why text, actor text, the_until timestamptz default null, the_streak int default null
) returns millrace.provider_circuit
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    turned millrace.provider_circuit;
begin
    update millrace.provider_circuit p
       set state = to_state, generation = p.generation + 1, reason = left(why, 500), until = the_until,
           forced_by = case when to_state in ('forced_open', 'forced_closed', 'observing') then actor end,
           streak = coalesce(the_streak, p.streak), ramp_from = case when to_state = 'ramping' then t end, probes_passed = 0, changed_at = t
     where p.provider = c.provider and p.class = c.class and p.generation = c.generation
    returning p.* into turned;
    if not found then
        return c;
    end if;
    delete from millrace.provider_lease l where l.provider = c.provider and l.class = c.class;
    insert into millrace.provider_event (at, provider, class, from_state, to_state, generation, by, reason)
    values (t, c.provider, c.class, c.state, to_state, turned.generation, actor, left(why, 500));
    perform pg_notify('millrace_providers', c.provider);
    return turned;
end $$;

-- Takes what a worker has seen since the last call, and returns what it needs to know. settings: quorum, probes, window_s, open_s,
-- longest_s, ramp_s. A probe's lease is held by reporting it in `held`. One in `idle` waits for a caller that is late: it stays with its
-- worker until the callers of another ask for a place and there is none.
create or replace function millrace.provider_flush(the_member bigint, the_name text, entries jsonb, settings jsonb, since timestamptz)
returns table (
    provider text, class text, state text, generation bigint, reason text, until_s float8, ramp_s float8, leases bigint[],
    callers int, rank int, rate float8, blocked_s float8
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    window_length interval := make_interval(secs => (settings ->> 'window_s')::float8);
    max_probes int := (settings ->> 'probes')::int;
    e record;
    r record;
    c millrace.provider_circuit;
    heard boolean;
    voters int;
    calling int;
    passed int;
    failed_probe boolean;
    goes_on boolean;
begin
    for e in
        select x.*
          from jsonb_to_recordset(entries) as x (provider text, class text, generation bigint, ok int, failed int, throttled int, slow int,
               unknown int, latencies int[], asked int, vote text, why text, authoritative boolean, hold_s float8, wants boolean, recovered boolean,
               results jsonb, held bigint[], idle bigint[], rate float8, blocked_s float8, quota_used bigint, quota_limit bigint, quota_resets_s float8)
         order by x.provider, x.class
    loop
        insert into millrace.provider_seen as s (provider, class, member, name, generation, ok, failed, throttled, slow, unknown, latencies, vote,
            called_at, seen_at)
        values (e.provider, e.class, the_member, left(the_name, 128), e.generation, e.ok, e.failed, e.throttled, e.slow, e.unknown, e.latencies,
            left(e.vote, 500), case when e.asked > 0 then t end, t)
        on conflict (provider, class, member) do update
            set name = excluded.name, generation = excluded.generation, ok = excluded.ok, failed = excluded.failed, throttled = excluded.throttled,
                slow = excluded.slow, unknown = excluded.unknown, latencies = excluded.latencies, vote = excluded.vote,
                called_at = coalesce(excluded.called_at, s.called_at), seen_at = excluded.seen_at
        returning s.called_at is not null and s.xmax = 0 into heard;
        if heard then
            perform pg_notify('millrace_providers', e.provider);      -- one more among whom the pace is divided
        end if;

        if e.rate is not null or e.blocked_s is not null or e.quota_limit is not null then
            insert into millrace.provider_pace as p (provider, rate, blocked_until, quota_used, quota_limit, quota_resets_at, changed_at)
            values (e.provider, e.rate, t + make_interval(secs => e.blocked_s), e.quota_used, e.quota_limit, t + make_interval(secs => e.quota_resets_s), t)
            on conflict (provider) do update
                set rate = coalesce(excluded.rate, p.rate), blocked_until = greatest(excluded.blocked_until, p.blocked_until),
                    quota_used = coalesce(excluded.quota_used, p.quota_used), quota_limit = coalesce(excluded.quota_limit, p.quota_limit),
                    quota_resets_at = coalesce(excluded.quota_resets_at, p.quota_resets_at), changed_at = t
              where (coalesce(excluded.rate, p.rate), coalesce(excluded.quota_used, p.quota_used), coalesce(excluded.quota_limit, p.quota_limit))
                        is distinct from (p.rate, p.quota_used, p.quota_limit)
                 or excluded.blocked_until > coalesce(p.blocked_until, '-infinity') + interval '100 ms';
            if found then
                perform pg_notify('millrace_providers', e.provider);
            end if;
        end if;

        select p.* into c from millrace.provider_circuit p where p.provider = e.provider and p.class = e.class;
        if not found then
            -- A new class of calls starts with what was decided for all calls of its provider.
            insert into millrace.provider_circuit (provider, class, state, generation, reason, forced_by, until, changed_at)
            select e.provider, e.class, coalesce(w.state, 'closed'), 1, w.reason, w.forced_by, w.until, t
              from (select) one
              left join millrace.provider_circuit w on w.provider = e.provider and w.class = '*' and w.forced_by is not null and w.until > t
            on conflict do nothing;
            select p.* into strict c from millrace.provider_circuit p where p.provider = e.provider and p.class = e.class;
        end if;

        continue when not (e.held <> '{}' or e.vote is not null or e.wants or e.recovered or e.results <> '[]'
            or exists (select from millrace.provider_lease l where l.lease = any (e.idle) and l.until > t)
            or (c.state = 'ramping' and c.ramp_from + make_interval(secs => (settings ->> 'ramp_s')::float8) <= t)
            or (c.forced_by is not null and c.until <= t));

        select p.* into strict c from millrace.provider_circuit p where p.provider = e.provider and p.class = e.class for update;
        -- After that lock, like every statement that takes leases away.
        update millrace.provider_lease l set until = case when l.lease = any (e.held) then t + interval '5 s' else t end
         where l.lease = any (e.held || e.idle) and l.member = the_member;
        if c.forced_by is not null and c.until <= t then
            c := millrace.provider_turn(c, 'closed', 'the time for which it was forced is over', 'millrace', the_streak => 0);
        end if;
        if e.recovered and e.generation = c.generation and c.state in ('open', 'probing') then
            c := millrace.provider_turn(c, 'ramping', 'found healthy while the database was away', the_name);
        end if;

        failed_probe := false;
        goes_on := e.wants;
        for r in select x.* from jsonb_to_recordset(e.results) as x (lease bigint, passed boolean) loop
            delete from millrace.provider_lease l where l.lease = r.lease and l.member = the_member and l.generation = c.generation;
            if found and c.state = 'probing' then
                if r.passed then
                    update millrace.provider_circuit p set probes_passed = p.probes_passed + 1
                     where p.provider = c.provider and p.class = c.class returning p.probes_passed into passed;
                    c.probes_passed := passed;
                    goes_on := true;                      -- its worker makes the next one, too: it may be the only one that calls
                end if;
                failed_probe := failed_probe or r.passed is false;
            end if;
        end loop;
        if c.state = 'probing' and failed_probe then
            c := millrace.provider_turn(c, 'open', 'a probe failed: ' || coalesce(e.why, 'no reason given'), the_name,
                millrace.provider_until(settings, c.streak, e.hold_s), c.streak + 1);
        elsif c.state = 'probing' and c.probes_passed >= max_probes then
            c := millrace.provider_turn(c, 'ramping', format('%s probes succeeded', max_probes), the_name);
        end if;

        if e.vote is not null and e.generation = c.generation and c.state in ('closed', 'ramping') then
            if e.authoritative then
                c := millrace.provider_turn(c, 'open', e.vote, the_name, millrace.provider_until(settings, c.streak, e.hold_s), c.streak + 1);
            else
                select count(*) filter (where s.vote is not null and s.generation = c.generation), count(*) filter (where s.ok + s.failed + s.throttled > 0)
                  into voters, calling
                  from millrace.provider_seen s
                 where s.provider = c.provider and s.class = c.class and s.seen_at > t - window_length;
                if voters >= least((settings ->> 'quorum')::int, greatest(calling, 1)) then
                    c := millrace.provider_turn(c, 'open', format('%s, say %s of %s workers', e.vote, voters, greatest(calling, voters)), the_name,
                        millrace.provider_until(settings, c.streak, e.hold_s), c.streak + 1);
                end if;
            end if;
        end if;

        if c.state = 'ramping' and c.ramp_from + make_interval(secs => (settings ->> 'ramp_s')::float8) <= t then
            c := millrace.provider_turn(c, 'closed', 'all traffic is back', 'millrace', the_streak => 0);
        end if;
        if e.wants and c.state = 'open' and c.until <= t then
            c := millrace.provider_turn(c, 'probing', 'the time is over', the_name);
        end if;
        if goes_on and c.state = 'probing' then
            -- Of a time in which this worker had lost the database.
            delete from millrace.provider_lease l
             where l.provider = c.provider and l.class = c.class and l.member = the_member and l.until <= t and l.lease <> all (e.held || e.idle);
        end if;
        if goes_on and c.state = 'probing'
            and not exists (select from millrace.provider_lease l where l.provider = c.provider and l.class = c.class and l.member = the_member)
        then
            -- A worker that was lost does not renew its own, and an idle one is lent on.
            if (select count(*) from millrace.provider_lease l where l.provider = c.provider and l.class = c.class) + c.probes_passed >= max_probes then
                delete from millrace.provider_lease l
                 where l.lease = (select x.lease from millrace.provider_lease x
                                   where x.provider = c.provider and x.class = c.class and x.until <= t order by x.until, x.lease limit 1);
            end if;
            insert into millrace.provider_lease (provider, class, generation, member, until)
            select c.provider, c.class, c.generation, the_member, t + interval '5 s'
             where (select count(*) from millrace.provider_lease l where l.provider = c.provider and l.class = c.class) + c.probes_passed < max_probes;
        end if;
    end loop;

    return query
        select c.provider, c.class, c.state, c.generation, c.reason, extract(epoch from c.until - t)::float8,
               extract(epoch from t - c.ramp_from)::float8,
               array(select l.lease from millrace.provider_lease l
                      where l.provider = c.provider and l.class = c.class and l.member = the_member and l.generation = c.generation),
               w.callers, w.rank, p.rate, extract(epoch from p.blocked_until - t)::float8
          from millrace.provider_circuit c
          left join millrace.provider_pace p on p.provider = c.provider
          left join lateral (
                select count(distinct s.member)::int as callers, (count(distinct s.member) filter (where s.member < the_member))::int as rank
                  from millrace.provider_seen s
                 where s.provider = c.provider and s.called_at > t - interval '5 s') w on true
         where (c.provider, c.class) in (select x.provider, x.class from jsonb_to_recordset(entries) as x (provider text, class text))
            or (since is null and c.state <> 'closed')
            or c.changed_at >= since - interval '10 s';
end $$;
select millrace.door_is('providers', 'provider_flush', 'worker, gateway', 'staff');

create or replace function millrace.provider_until(settings jsonb, streak int, hold_s float8) returns timestamptz
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select millrace.now() + make_interval(secs => greatest(
        least((settings ->> 'open_s')::float8 * power(2, least(streak, 10)), greatest((settings ->> 'open_s')::float8, (settings ->> 'longest_s')::float8))
            * (0.8 + 0.4 * random()),
        least(coalesce(hold_s, 0), 86400)))
$$;

-- Deletes rows that are no longer used; any worker, once a minute.
create or replace function millrace.provider_tidy() returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
begin
    delete from millrace.provider_seen s where s.seen_at < t - interval '10 minutes';
    delete from millrace.provider_lease l where l.until < t - interval '1 hour';
    delete from millrace.provider_event v
     where ctid = any (array(select v.ctid from millrace.provider_event v where v.at < t - interval '90 days' order by v.id limit 1000));
    delete from millrace.provider_circuit c
     where c.state = 'closed' and c.changed_at < t - interval '30 days'
       and not exists (select from millrace.provider_seen s where s.provider = c.provider and s.class = c.class);
end $$;
select millrace.door_is('providers', 'provider_tidy', 'worker, gateway', 'staff');

create or replace function millrace.provider_force(
    provider text, state text, reason text, hold interval default '1 hour', class text default '*', caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    target text := case provider_force.state when 'open' then 'forced_open' when 'closed' then 'forced_closed' when 'observe' then 'observing' when 'auto' then 'closed' end;
    c millrace.provider_circuit;
    changed boolean := false;
begin
    if provider_force.provider is null or provider_force.provider !~ '^[a-z0-9][a-z0-9_.:-]{0,127}$' then
        perform millrace.refuse(format('the provider %L is malformed', left(provider_force.provider, 60)), 'provider',
            'A provider has 1 to 128 lower-case letters, digits and _ . : - and begins with a letter or digit.');
    end if;
    if provider_force.class is null or provider_force.class !~ E'^(\\*|[a-z0-9][a-z0-9_.:-]{0,63})$' then
        perform millrace.refuse(format('the class %L is malformed', left(provider_force.class, 60)), 'class', 'Give a class of calls, or * for all.');
    end if;
    if target is null then
        perform millrace.refuse(format('the state %L is unknown', left(provider_force.state, 60)), 'state', 'Give open, closed, observe or auto.');
    end if;
    if coalesce(btrim(provider_force.reason), '') = '' or length(provider_force.reason) > 500 then
        perform millrace.refuse('a reason is missing, or longer than 500 characters', 'reason', 'Say why, for the next operator who looks.');
    end if;
    if provider_force.hold is null or provider_force.hold < interval '1 second' or provider_force.hold > interval '366 days' then
        perform millrace.refuse('hold is out of range', 'hold', 'Give an interval from a second to a year.');
    end if;
    if target <> 'closed' then
        insert into millrace.provider_circuit (provider, class, state, generation, changed_at)
        values (provider_force.provider, provider_force.class, 'closed', 1, t) on conflict do nothing;
    end if;
    for c in
        select p.* from millrace.provider_circuit p
         where p.provider = provider_force.provider and (provider_force.class = '*' or p.class = provider_force.class)
         order by p.class for update
    loop
        continue when target = 'closed' and c.state = 'closed' and c.streak = 0;
        perform millrace.provider_turn(c, target, provider_force.reason, provider_force.caller,
            case when target <> 'closed' then t + provider_force.hold end, 0);
        changed := true;
    end loop;
    if changed then
        perform millrace.audited('provider.force', provider_force.provider, jsonb_build_object('state', provider_force.state, 'class', provider_force.class,
            'reason', provider_force.reason, 'hold', case when target <> 'closed' then provider_force.hold end), caller => provider_force.caller);
    end if;
    return changed;
end $$;
select millrace.door_is('providers', 'provider_force', 'admin, operator', 'staff', audited => true);

-- Four buckets an octave from a microsecond on, as workers count them; the middle of the bucket, in milliseconds.
create or replace function millrace.latency_quantile(counts int[], share float8) returns float8
language sql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
    select case when b < 4 then b / 1000.0 else (4 + b % 4 + 0.5) * power(2, b / 4 - 1) / 1000 end::float8
      from (select (n.bucket - 1)::int as b, sum(n.n) over (order by n.bucket) as seen, sum(n.n) over () as total
              from unnest(counts) with ordinality n(n, bucket)) x
     where total > 0 and seen >= greatest(1, ceil(total * share))
     order by b
     limit 1
$$;
select millrace.door_is('providers', 'latency_quantile', 'worker, viewer', 'staff');

create or replace view millrace.providers as
select c.provider, c.class, c.state, c.generation, c.reason, c.forced_by, c.until,
       case when c.state = 'ramping' then extract(epoch from millrace.now() - c.ramp_from)::float8 end as ramp,
       (select count(*)::int from millrace.provider_lease l where l.provider = c.provider and l.class = c.class and l.until > millrace.now()) as probes_out,
       coalesce(s.ok, 0)::int as ok, coalesce(s.failed, 0)::int as failed, coalesce(s.throttled, 0)::int as throttled, coalesce(s.slow, 0)::int as slow,
       coalesce(s.unknown, 0)::int as unknown, millrace.latency_quantile(s.latencies, 0.5) as p50_ms, millrace.latency_quantile(s.latencies, 0.99) as p99_ms,
       p.rate, p.quota_used, p.quota_limit, p.quota_resets_at, c.changed_at
  from millrace.provider_circuit c
  left join millrace.provider_pace p on p.provider = c.provider
  left join lateral (
        select sum(s.ok) as ok, sum(s.failed) as failed, sum(s.throttled) as throttled, sum(s.slow) as slow, sum(s.unknown) as unknown,
               array(select sum(n.n)::int from millrace.provider_seen o cross join unnest(o.latencies) with ordinality n(n, bucket)
                      where o.provider = c.provider and o.class = c.class and o.seen_at > millrace.now() - interval '30 s'
                      group by n.bucket order by n.bucket) as latencies
          from millrace.provider_seen s
         where s.provider = c.provider and s.class = c.class and s.seen_at > millrace.now() - interval '30 s') s on true;
select millrace.view_is('providers', 'providers', 'worker, viewer');

create or replace view millrace.provider_events as
select v.at, v.provider, v.class, v.from_state, v.to_state, v.generation, v.by, v.reason from millrace.provider_event v;
select millrace.view_is('providers', 'provider_events', 'worker, viewer');

-- Each worker's report about a provider.
create or replace function millrace.provider_workers(the_provider text)
returns table (worker text, class text, ok int, failed int, throttled int, slow int, unknown int, vote text, seen_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select s.name, s.class, s.ok, s.failed, s.throttled, s.slow, s.unknown, s.vote, s.seen_at
      from millrace.provider_seen s where s.provider = the_provider and s.seen_at > millrace.now() - interval '1 minute' order by s.class, s.name, s.member
$$;
select millrace.door_is('providers', 'provider_workers', 'worker, viewer', 'staff');

-- The classes of errors: how serious, whether to retry, the app's error, and the sentence for its user. The program has the same table.
create or replace view millrace.error_classes as
    select * from (values
        ('transient', 'warning', 'after', 'serverError', 'unavailable', 'Something went wrong for a moment. We are trying again.'),
        ('timeout', 'warning', 'same_key', 'networkTimeout', 'deadlineExceeded', 'This is taking longer than usual. We are trying again.'),
        ('unavailable', 'warning', 'elsewhere', 'networkConnectionFailed', 'unavailable', 'The service is not available right now. We will try another way, or again later.'),
        ('throttled', 'warning', 'after', 'rateLimitExceeded', 'resourceExhausted', 'There is a lot going on right now. This will be done shortly.'),
        ('quota', 'warning', 'elsewhere', 'rateLimitExceeded', 'resourceExhausted', 'The limit for this service is reached. We have been told.'),
        ('authentication', 'error', 'elsewhere', 'invalidCredentials', 'unauthenticated', 'We cannot use this service right now. We have been told.'),
        ('permission', 'error', 'never', 'passwordResetFailed', 'permissionDenied', 'This is not allowed.'),
        ('not_found', 'error', 'never', 'passwordResetFailed', 'notFound', 'This does not exist, or no longer exists.'),
        ('conflict', 'warning', 'never', 'passwordResetFailed', 'alreadyExists', 'This was already changed or done. Please check how it looks now.'),
        ('invalid', 'error', 'never', 'passwordResetFailed', 'invalidInput', 'Something in this request is not right. Please check it.'),
        ('too_large', 'error', 'never', 'passwordResetFailed', 'invalidInput', 'This is too large.'),
        ('unsupported', 'error', 'never', 'passwordResetFailed', 'invalidInput', 'This kind of thing is not supported.'),
        ('unknown', 'warning', 'same_key', 'serverError', 'unknown', 'We do not know yet whether this worked. We are finding out.'),
        ('cancelled', 'notice', 'never', 'passwordResetFailed', 'unknown', 'This was cancelled.'),
        ('internal', 'error', 'never', 'serverError', 'unknown', 'Something went wrong on our side. We have been told.')
    ) e(error_class, severity, retry, authentication_error, app_error, user_message);

create or replace function millrace.error_map()
returns table (error_class text, severity text, retry text, authentication_error text, app_error text, user_message text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select * from millrace.error_classes
$$;
select millrace.door_is('providers', 'error_map', 'client, worker, gateway', 'open',
    'The classes of errors, with what an app makes of each and what its user is told.', for_apps => false);

-- A provider that is no longer called.
create or replace function millrace.provider_forget(the_provider text) returns void
language sql volatile as $$
    delete from millrace.provider_circuit c where c.provider = the_provider;
    delete from millrace.provider_pace p where p.provider = the_provider;
$$;
