-- Limits: how many of a queue's, a key's or a tenant's jobs may run at once in the whole fleet, and how often they may start.
-- A gate is a rule as it applies to one queue, key or tenant. Claims decide about a gate one at a time, in a turn (see turns.sql) that
-- lasts until their commit; ends only add a row and wait for nobody.

create or replace function millrace.gate_of(scope text, name text) returns bigint
language sql immutable parallel safe as $$ select pg_catalog.hashtextextended(scope || ':' || name, 0) $$;

-- The gate of a job's key. A client's keys are its own: scope is its tenant and role, null for staff.
create or replace function millrace.key_gate(limit_key text, limit_scope text) returns bigint
language sql immutable parallel safe as $$
    select case when limit_scope is null then pg_catalog.hashtextextended('key:' || limit_key, 0)
                else pg_catalog.hashtextextended('key of ' || limit_scope || chr(31) || limit_key, 0) end
$$;

-- Looked at from the end, for parked jobs are taken from the front. Not in SQL, which would plan it in each enqueue with a limit key.
create or replace function millrace.gate_has_parked(the_gate bigint) returns boolean
language plpgsql stable set enable_seqscan = off as $$
begin
    return exists (select from (select from millrace.parked p where p.gate = the_gate order by p.lane desc, p.job desc limit 1) p);
end $$;

-- Changes the limit from now on, also for jobs that already wait. Running jobs are not counted again. null or {}: no limit.
create or replace function millrace.limit_set(scope text, name text, limits jsonb, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    field text;
    value jsonb;
    found_one boolean;
    known text[] := array['concurrency', 'rate', 'per', 'burst'];
begin
    if scope is null or scope not in ('queue', 'key', 'tenant') then
        perform millrace.refuse(format('the scope %L is unknown', left(scope, 60)), 'scope', 'Give queue, key or tenant.');
    end if;
    if name is null or length(name) not between 1 and 512 then
        perform millrace.refuse('name must have 1 to 512 characters', 'name', 'Name the queue, the key (or a prefix and *), or the tenant.');
    end if;
    if scope = 'queue' then
        perform millrace.queue_id(name);
    elsif scope = 'tenant' then
        known := known || 'weight'::text;
    end if;
    if limits is not null and jsonb_typeof(limits) <> 'object' then
        perform millrace.refuse('limits is not a JSON object', 'limits', 'Give an object such as {"concurrency": 3} or {"rate": 10, "per": 1, "burst": 20}.');
    end if;
    for field, value in select * from jsonb_each(coalesce(limits, '{}')) loop
        if field <> all (known) then
            perform millrace.refuse(format('limits.%s is unknown', left(field, 60)), 'limits.' || left(field, 60),
                format('Allowed for a %s: %s.', scope, array_to_string(known, ', ')));
        elsif jsonb_typeof(value) <> 'number' or value::numeric > 1000000000 or value::numeric < (case field when 'concurrency' then 0 else 0.001 end) then
            perform millrace.refuse(format('limits.%s is out of range', field), 'limits.' || field, 'Give a number above 0; concurrency may be 0, which stops everything.');
        elsif field in ('concurrency', 'rate', 'burst') and value::numeric % 1 <> 0 then
            perform millrace.refuse(format('limits.%s is not a whole number', field), 'limits.' || field, 'A rate below one a second is written with per, in seconds: {"rate": 1, "per": 60}.');
        end if;
    end loop;
    if not coalesce(limits ? 'rate', false) and (limits ? 'per' or limits ? 'burst') then
        perform millrace.refuse('limits has per or burst without a rate', 'limits.rate', 'Give {"rate": 10, "per": 1, "burst": 20}.');
    end if;

    if coalesce(limits, '{}') = '{}' then
        delete from millrace.limit_rule r where r.scope = limit_set.scope and r.name = limit_set.name;
    else
        insert into millrace.limit_rule as r (scope, name, concurrency, rate, per, burst, weight, changed_at)
        values (limit_set.scope, limit_set.name, (limits ->> 'concurrency')::int, (limits ->> 'rate')::int,
                case when limits ? 'rate' then coalesce((limits ->> 'per')::float8, 1) end,
                case when limits ? 'rate' then coalesce((limits ->> 'burst')::int, (limits ->> 'rate')::int) end,
                (limits ->> 'weight')::float8, millrace.now())
            on conflict on constraint limit_rule_pkey do update
           set concurrency = excluded.concurrency, rate = excluded.rate, per = excluded.per, burst = excluded.burst,
               weight = excluded.weight, changed_at = excluded.changed_at
         where (r.concurrency, r.rate, r.per, r.burst, r.weight) is distinct from
               (excluded.concurrency, excluded.rate, excluded.per, excluded.burst, excluded.weight);
    end if;
    found_one := found;
    if found_one then
        perform pg_notify('millrace', 'limits');          -- rare: tell everybody
        perform millrace.audited('limit.set', limit_set.scope || ':' || limit_set.name, jsonb_build_object('limits', coalesce(limits, '{}')), caller => limit_set.caller);
    end if;
    return found_one;
end $$;
select millrace.door_is('queue', 'limit_set', 'admin, operator', 'staff', audited => true);

-- The rule for a key: its own, else that of the longest prefix; no row when there is none. Written so that it is inlined.
create or replace function millrace.key_rule(the_key text) returns table (concurrency int, spacing float8, burst int)
language sql stable as $$
    select r.concurrency, r.per / r.rate, r.burst
      from millrace.limit_rule r
     where r.scope = 'key' and (r.name = the_key or (right(r.name, 1) = '*' and starts_with(the_key, left(r.name, -1))))
     order by r.name = the_key desc, length(r.name) desc limit 1
$$;

-- How many jobs may pass each gate now. spacings: seconds between two starts when the burst is used up; null where there is no rate. It is
-- inlined, too, so it sees what the calling statement sees; that must be a later statement than the one that took the lock. A bucket of
-- `burst` starts, refilled by one each `spacing`: in every span at most burst + span / spacing have started.
create or replace function millrace.gate_room(gates bigint[], caps int[], spacings float8[], bursts int[], t timestamptz)
returns table (place bigint, gate bigint, room int, used_until timestamptz, entries bigint)
language sql stable as $$
    select g.place, g.gate,
           greatest(0, least(
               coalesce(g.cap - s.held, 2147483647),
               coalesce(g.burst - ceil(greatest(0, extract(epoch from s.used_until - t)::float8) / g.spacing - 1e-6), 2147483647)))::int,
           s.used_until, s.entries
      from unnest(gates, caps, spacings, bursts) with ordinality g(gate, cap, spacing, burst, place)
     cross join lateral (
        select coalesce(max(b.seq), 0) as seq
          from (select b.seq from millrace.slot b where b.gate = g.gate and b.base order by b.seq desc limit 1) b) base
     cross join lateral (
        select coalesce(sum(s.n), 0) as held, max(s.used_until) as used_until, count(*) as entries
          from millrace.slot s where s.gate = g.gate and s.seq >= base.seq) s
$$;

-- A claim that comes to a gate while another decides there waits for the other's commit. The locks are on buckets, because a transaction
-- can hold only a limited number of locks; they are taken in order, or two claims could wait for each other.
create or replace function millrace.gates_lock(the_turn text, gates bigint[]) returns void
language plpgsql volatile as $$
begin
    perform millrace.turns_wait(the_turn, array(select distinct (g & 63)::int from unnest(gates) g));
end $$;

-- The same for a caller that does not know yet which gates it will need: it locks every bucket, in the same order.
create or replace function millrace.gates_lock_all(the_turn text) returns void
language plpgsql volatile as $$
begin
    perform from millrace.turn t where t.name = the_turn order by t.bucket for update;
end $$;

-- Folds all but the newest rows of these gates into a base, under their locks. What commits late, before a base, the sweep
-- finds; the newest rows are left out so that hardly any does.
create or replace function millrace.gates_fold(gates bigint[]) returns void
language plpgsql volatile as $$
begin
    with cut as materialized (
        select g.gate, base.seq as low, newest.seq as high
          from unnest(gates) g(gate)
         cross join lateral (
            select coalesce(max(b.seq), 0) as seq
              from (select b.seq from millrace.slot b where b.gate = g.gate and b.base order by b.seq desc limit 1) b) base
         cross join lateral (
            select s.seq from millrace.slot s where s.gate = g.gate and s.seq >= base.seq order by s.seq desc offset 12 limit 1) newest
    ), gone as (
        delete from millrace.slot s using cut c where s.gate = c.gate and s.seq between c.low and c.high
        returning s.gate, c.high, s.n, s.used_until
    )
    insert into millrace.slot (gate, seq, n, used_until, base)
    select g.gate, g.high, sum(g.n), max(g.used_until), true from gone g group by g.gate, g.high;
end $$;

-- Gives back slots, summed by gate.
create or replace function millrace.slots_free(gates bigint[], counts int[] default null) returns void
language sql volatile as $$
    insert into millrace.slot (gate, n) select g, -sum(coalesce(n, 1)) from unnest(gates, counts) u(g, n) group by g
$$;

-- Gives back what these jobs of a lease hold.
create or replace function millrace.lease_slots_free(slot_all bigint[], slot_jobs bigint[], slot_gates bigint[], ids bigint[]) returns void
language plpgsql volatile as $$
begin
    if ids is not null and slot_all is not null then
        perform millrace.slots_free(slot_all, array_fill(cardinality(ids), array[cardinality(slot_all)]));
    end if;
    if ids is not null and slot_gates is not null then
        perform millrace.slots_free(array_agg(s.gate)) from unnest(slot_jobs, slot_gates) s(job, gate)
          where s.job = any (ids) and s.gate is not null having count(*) > 0;
    end if;
end $$;

-- Puts parked jobs back in line where there is room again, and returns which lines may be claimed from and when the next rate gate opens.
-- It is called for certain keys after their slots were given back or their jobs parked, and once a second for all (null, in steps of a
-- thousand from `after`), which finds the jobs that missed a crossing commit. Two concurrent calls may let in more than there is room for:
-- the claim parks those again. A caller that was held back by the gates of queues and tenants asks about them too (outer_too); a caller
-- that gives a slot back does not, because that happens all the time.
create or replace function millrace.gates_open(
    the_gates bigint[] default null, after bigint default null, outer_too boolean default true,
    out moved int, out next_s float8, out queues int[], out lanes int[], out resume bigint
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    t timestamptz := millrace.now();
    at bigint := coalesce(after, -9223372036854775808);
    looked int := 0;
    one record;
    room record;
    rule record;
    let_in int;
    wait float8;
begin
    moved := 0; queues := '{}'; lanes := '{}';
    if the_gates is not null then                         -- of the many that are asked about, few hold jobs back, and mostly none at all
        perform from millrace.parked p order by p.gate desc, p.lane desc, p.job desc limit 1;
        if found then
            the_gates := array(
                select g.gate from unnest(the_gates) g(gate)
                 cross join lateral (select from millrace.parked p where p.gate = g.gate order by p.lane desc, p.job desc limit 1) p);
        else
            the_gates := '{}';
        end if;
        if the_gates = '{}' and not outer_too then
            return;
        end if;
    end if;
    perform pg_current_xact_id();                         -- before numbers are drawn: see horizon()
    loop
        if the_gates is null then
            select p.gate, p.job into one from millrace.parked p
             where p.gate >= at and (looked > 0 or p.gate > at or after is null) order by p.gate, p.lane, p.job limit 1;
        else
            exit when looked >= cardinality(the_gates);
            select p.gate, p.job into one from millrace.parked p where p.gate = the_gates[looked + 1] order by p.lane, p.job limit 1;
        end if;
        looked := looked + 1;
        if not found then
            exit when the_gates is null;
            continue;
        end if;
        if the_gates is null then
            if looked > 1000 then
                resume := one.gate - 1;
                exit;
            end if;
            exit when one.gate = 9223372036854775807;
            at := one.gate + 1;
        end if;
        select r.* into rule from millrace.job j cross join lateral millrace.key_rule(j.limit_key) r where j.id = one.job;
        if not found then
            let_in := 1000;                               -- there is no rule any more
        else
            select g.* into room from millrace.gate_room(array[one.gate], array[rule.concurrency], array[rule.spacing], array[rule.burst], t) g;
            let_in := least(room.room, 1000);
            if let_in = 0 and rule.spacing is not null then
                wait := extract(epoch from room.used_until - t)::float8 - (rule.burst - 1) * rule.spacing;
                next_s := least(next_s, greatest(wait, 0.001));
            end if;
        end if;
        continue when let_in <= 0;
        with gone as materialized (
            delete from millrace.parked p
             where p.ctid = any (array(
                select c.ctid from millrace.parked c where c.gate = one.gate order by c.lane, c.job limit let_in for update skip locked))
            returning p.*
        ), ordered as (
            select * from gone g order by g.lane, g.job
        ), placed as (
            insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes, gate)
            select nextval('millrace.seq'), o.job, o.queue, o.kind, millrace.lane_of(o.lane, o.crashes, true), o.attempt, o.crashes, o.gate from ordered o
        )
        select moved + count(*)::int, queues || coalesce(array_agg(g.queue), '{}'),
               lanes || coalesce(array_agg(millrace.lane_of(g.lane, g.crashes, true)), '{}')
          into moved, queues, lanes from gone g;
    end loop;

    -- Jobs that wait at a queue's or tenant's gate have not moved: the answer names their lines, or the time. Looked at from the end,
    -- because the
    -- front is where everything was consumed.
    for rule in
        select r.scope, r.name, millrace.gate_of(r.scope, r.name) as gate, r.concurrency, r.per / r.rate as spacing, r.burst
          from millrace.limit_rule r
         where r.scope in ('queue', 'tenant') and (r.rate is not null or r.concurrency is not null)
           and outer_too
         limit 1000
    loop
        for one in
            select f.queue, f.lane from millrace.queue q
             cross join lateral (select r.queue, r.lane from millrace.ready r where r.queue = q.id order by r.queue desc, r.lane desc, r.seq desc limit 1) f
             where case rule.scope when 'queue' then q.name = rule.name else q.tenant = rule.name end
        loop
            select g.* into room from millrace.gate_room(array[rule.gate], array[rule.concurrency], array[rule.spacing], array[rule.burst], t) g;
            if room.room > 0 then
                queues := queues || one.queue;
                lanes := lanes || one.lane;
            elsif rule.spacing is not null then
                wait := extract(epoch from room.used_until - t)::float8 - (rule.burst - 1) * rule.spacing;
                next_s := least(next_s, greatest(wait, 0.001));
            end if;
        end loop;
    end loop;

    select coalesce(array_agg(d.queue), '{}'), coalesce(array_agg(d.lane), '{}') into queues, lanes
      from (select distinct l.queue, l.lane from unnest(queues, lanes) l(queue, lane)) d;
    perform millrace.wake(l.queue, l.lane) from unnest(queues, lanes) l(queue, lane);
end $$;
select millrace.door_is('queue', 'gates_open', 'worker', 'staff');

-- Once a second, by one worker at a time, in steps from `after`: adds rows that were committed late, before a base, to the base, and
-- forgets gates where nothing is held now or was a second ago. Until then the base stays, because a count starts there; without a base it
-- would walk over everything ever written for the gate while a snapshot holds it. Rows are taken only under their gate's lock, because a
-- sum must go as a whole; a gate in use waits for the next sweep.
create or replace function millrace.slots_sweep(after bigint default null, most int default 1000, out swept int, out resume bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off as $$
declare
    t timestamptz := millrace.now();
    at bigint := coalesce(after, -9223372036854775808);
    one bigint;
    low bigint;
    total record;
    began timestamptz := clock_timestamp();
begin
    swept := 0;
    if not exists (select from millrace.slot) or not millrace.turn_try('slots sweep') then
        return;
    end if;
    for looked in 1 .. most loop
        select s.gate into one from millrace.slot s where s.gate >= at order by s.gate, s.seq limit 1;
        if not found then
            return;
        end if;
        select coalesce(max(b.seq), 0) into low from (
            select b.seq from millrace.slot b where b.gate = one and b.base order by b.seq desc limit 1) b;
        if (exists (select from millrace.slot s where s.gate = one and s.seq < low)
            or (select sum(s.n) = 0 and coalesce(max(s.used_until), '-infinity') <= t from millrace.slot s where s.gate = one))
           and millrace.turn_try('gate', (one & 63)::int) and millrace.turn_try('key gate', (one & 63)::int) then
            with gone as (
                delete from millrace.slot s where s.gate = one returning s.n, s.used_until
            )
            select sum(g.n) as n, max(g.used_until) as used_until, count(*) as entries into total from gone g;
            if total.n <> 0 or total.used_until > t or total.entries > 1 then
                insert into millrace.slot (gate, n, used_until, base) values (one, total.n, total.used_until, true);
            end if;
            swept := swept + 1;
        end if;
        if one = 9223372036854775807 then
            return;
        end if;
        at := one + 1;
        -- Claims wait for the gates that this call has locked. Under a snapshot each gate costs a walk over all that was folded.
        exit when clock_timestamp() > began + interval '20 ms';
    end loop;
    resume := at;
end $$;
select millrace.door_is('queue', 'slots_sweep', 'worker', 'staff');

-- Every gate with the slots that its rows count, and the slots that the leases hold. They agree at every moment; if they do not, slots_mend
-- corrects it.
create or replace function millrace.slots_audit() returns table (gate bigint, counted bigint, held bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$   -- a look-up in history for each job, and never all of it
    with counted as (
        select s.gate, sum(s.n)::bigint as n from millrace.slot s group by s.gate
    ), held as (
        select x.gate, count(*) as n
          from millrace.lease l
         cross join lateral (select s.job, s.gate from unnest(coalesce(l.slot_jobs, l.ids), l.slot_gates) s(job, gate) where s.gate is not null
                              union all
                             select i, g from unnest(l.ids) i cross join unnest(l.slot_all) g) x
         where not exists (
                select from millrace.history h
                 where h.class = (l.number & 3)::smallint and h.started = l.at and h.id = x.job and h.session = l.session and h.number = l.number)
         group by x.gate
    )
    select coalesce(c.gate, h.gate), coalesce(c.n, 0), coalesce(h.n, 0)
      from counted c full join held h on h.gate = c.gate
     where coalesce(c.n, 0) <> coalesce(h.n, 0) or coalesce(h.n, 0) > 0
$$;
select millrace.door_is('queue', 'slots_audit', 'admin', 'staff');

-- Once a minute, by one worker at a time: gives back slots that no lease holds, and counts slots that a lease holds uncounted. Neither
-- should ever happen, so each such slot shows a fault. One statement sees both sides at the same moment; commits meanwhile change both
-- alike.
create or replace function millrace.slots_mend() returns table (gate bigint, counted bigint, held bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not exists (select from millrace.slot) or not millrace.turn_try('slots sweep') then
        return;
    end if;
    return query
    with stray as materialized (
        select a.gate, a.counted, a.held from millrace.slots_audit() a where a.counted <> a.held
    ), mended as (
        insert into millrace.slot (gate, n) select s.gate, (s.held - s.counted)::int from stray s
    )
    select s.gate, s.counted, s.held from stray s;
end $$;
select millrace.door_is('queue', 'slots_mend', 'worker', 'staff');

-- The rules and what they hold back now. running is null for a rule for many keys; parked is null for a rule that is not for a key. Parked
-- jobs are counted by the rule for their key, up to 10,000 altogether, as parked_count counts them.
create or replace function millrace.limit_list()
returns table (scope text, name text, concurrency int, running bigint, parked bigint, rate int, per float8, burst int, weight float8, changed_at timestamptz)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    with keys as materialized (
        select j.limit_key, count(*) as n
          from (select p.job from millrace.parked p limit 10000) p join millrace.job j on j.id = p.job group by j.limit_key
    ), held as materialized (
        select r.name, sum(k.n)::bigint as n
          from keys k
         cross join lateral (
            select x.name from millrace.limit_rule x
             where x.scope = 'key' and (x.name = k.limit_key or (right(x.name, 1) = '*' and starts_with(k.limit_key, left(x.name, -1))))
             order by x.name = k.limit_key desc, length(x.name) desc limit 1) r
         group by r.name
    )
    select r.scope, r.name, r.concurrency,
           case when not (r.scope = 'key' and right(r.name, 1) = '*') then
               (select coalesce(sum(s.n), 0) from millrace.slot s where s.gate = millrace.gate_of(r.scope, r.name)) end,
           case when r.scope = 'key' then coalesce((select h.n from held h where h.name = r.name), 0) end,
           r.rate, r.per, r.burst, r.weight, r.changed_at
      from millrace.limit_rule r order by r.scope, r.name
$$;
select millrace.door_is('queue', 'limit_list', 'worker, viewer', 'staff');

create or replace function millrace.parked_count(cap int default 10000) returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    select count(*) from (select from millrace.parked limit cap) c
$$;
select millrace.door_is('queue', 'parked_count', 'worker, viewer', 'staff');
