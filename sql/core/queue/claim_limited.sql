-- A claim (see claim.sql) where limits have gates. It first locks the gates of queues and tenants, which say how much it may take at most.
-- Then a large claim tries to take everything at once, as a claim without limits does, and afterwards counts the taken jobs at the gates of
-- their keys. It does not try this while a job is parked, because then some key's gate is shut. Where the jobs did not fit, or it did not
-- try, it locks the jobs first, then the gates of their keys, and then decides. Each lock is followed by a statement of its own, which sees
-- what the last holder committed.
-- Where each job holds one slot, a brief answer has the gate as a plain number, not as an array of one. A job whose key's gate is shut is
-- parked with that key; a job that its queue's or tenant's gate refuses in the end goes back in line.
-- loose: the claim need not reach the disk before it is answered. The caller must not start any of the jobs before leases_confirm() has
-- found their leases: if a server crashed and lost the claim while the jobs ran, other workers could take their slots.
-- apart: the answer says only from where the jobs were taken: for each lease and each lane, in a row with a number and no arguments, the
-- ids followed by their places. leases_read() brings the contents, on another connection, while the next claim is under way.
-- carry: see claim().
create or replace function millrace.claim_limited(
    the_session bigint, the_number bigint, the_kinds int[],
    the_queues int[], the_lanes int[], floors bigint[], ceilings bigint[], limits int[], wanted int,
    short_queues int[], long_queues int[], brief boolean default false, patient boolean default false, loose boolean default false, apart boolean default false,
    turn int default 1, turn_wait int default 15, carry int default null
) returns table (
    seq bigint, id bigint, number bigint, kind int, queue int, lane int, attempt smallint, crashes smallint,
    enqueued_at timestamptz, args jsonb, max_attempts smallint, keyed boolean, expired boolean,
    options jsonb, metadata jsonb, tags text[], tenant text, claimed_at timestamptz, gates bigint[], gate bigint
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set enable_mergejoin = off
set enable_memoize = off
set plan_cache_mode = force_generic_plan as $$
declare
    t timestamptz := millrace.now();
    paused int[];
    -- one place for each gate: those of queues and tenants first, then those of keys (of each key one job)
    the_gates bigint[]; counting bigint[]; counts int[]; caps int[]; spacings float8[]; bursts int[]; rooms int[]; ends timestamptz[];
    key_gates bigint[]; key_counts int[]; key_caps int[]; key_spacings float8[]; key_bursts int[]; key_rooms int[]; key_ends timestamptz[];
    key_jobs bigint[];
    -- one place for each line of these queues
    line_ids int[]; line_queue_gates bigint[]; line_tenant_gates bigint[]; keyed_lines int[];
    most int[] := limits;
    held_back int[];
    -- the jobs to take, and how many of each line
    places tid[]; taken_queues int[]; taken_counts int[];
    uniform boolean;                                      -- do all jobs come to the same gates?
    roomy boolean := true;                                -- is there room for as many as are wanted?
    all_pass boolean := true;
    taken boolean := false;
    holds_all boolean;                                    -- does a job hold a slot of its queue or tenant?
    one_each boolean;                                     -- does each job hold one slot, its key's? Then the lease's ids need not be written twice
    crowded bigint[];
    usual_number bigint := case when brief then the_number + 1 end;
    zero smallint := case when brief then 0 end;
    untrue boolean := case when not brief then false end;
    setting text;
begin
    if loose then
        setting := set_config('synchronous_commit', 'off', true);
    end if;
    if patient then
        perform millrace.claim_turn(the_queues[turn], the_lanes[turn], turn_wait);
        t := millrace.now();
    end if;
    select array_agg(q.id), array_agg(rq.gate), array_agg(rt.gate), array_agg(q.id) filter (where q.keyed), count(distinct (rq.gate, rt.gate)) = 1,
           coalesce(array_agg(q.id) filter (where m.paused_at is not null), '{}')
      into line_ids, line_queue_gates, line_tenant_gates, keyed_lines, uniform, paused
      from millrace.queue q
      join millrace.queue m on m.id = coalesce(q.main, q.id)
      left join lateral (select millrace.gate_of('queue', q.name) as gate from millrace.limit_rule r
                          where r.scope = 'queue' and r.name = q.name) rq on true
      left join lateral (select millrace.gate_of('tenant', q.tenant) as gate from millrace.limit_rule r
                          where r.scope = 'tenant' and r.name = q.tenant and (r.concurrency is not null or r.rate is not null)) rt on true
     where q.id = any (the_queues);
    if array_remove(line_queue_gates || line_tenant_gates, null) <> '{}' then
        select array_agg(r.gate), array_agg(r.concurrency), array_agg(r.spacing), array_agg(r.burst)
          into the_gates, caps, spacings, bursts
          from (select millrace.gate_of(r.scope, r.name) as gate, r.concurrency, r.per / r.rate as spacing, r.burst
                  from millrace.limit_rule r where r.scope in ('queue', 'tenant')) r
         where r.gate = any (line_queue_gates || line_tenant_gates);
    end if;
    if the_gates is not null then
        perform millrace.gates_lock('gate', the_gates);
        select array_agg(g.room order by g.place), array_agg(g.used_until order by g.place), array_agg(g.gate) filter (where g.entries > 64),
               bool_and(g.room >= wanted)
          into rooms, ends, crowded, roomy
          from millrace.gate_room(the_gates, caps, spacings, bursts, t) g;
        if not roomy then
            select array_agg(least(u.most, u.room) order by u.place), array_agg(distinct u.queue) filter (where u.room < u.most)
              into most, held_back
              from (select p.queue, p.most, p.place, least(
                           coalesce(rooms[array_position(the_gates, line_queue_gates[array_position(line_ids, p.queue)])], 2147483647),
                           coalesce(rooms[array_position(the_gates, line_tenant_gates[array_position(line_ids, p.queue)])], 2147483647)) as room
                      from unnest(the_queues, limits) with ordinality p(queue, most, place)) u;
        end if;
    end if;

    -- Not for small claims: they are many, and would wait for each other. Looked at from the end, for parked jobs are taken from the front.
    if uniform and roomy and (keyed_lines is null or brief and wanted >= 500 and not exists (
        select from (select from millrace.parked p order by p.gate desc, p.lane desc, p.job desc limit 1) p)) then
        if keyed_lines is not null then
            perform millrace.gates_lock_all('key gate');
        end if;
        t := millrace.now();
        counting := array(select g.gate from unnest(the_gates, caps) g(gate, cap) where g.cap is not null);
        return query
        with moment as materialized (
            select millrace.now() as t
        ), gone as materialized (
            delete from millrace.ready r
             where r.ctid = any (array(
                select f.ctid
                  from unnest(the_queues, the_lanes, floors, ceilings, limits) p(queue, lane, floor, ceiling, most)
                 cross join lateral (
                    select c.ctid from millrace.ready c
                     where c.queue = p.queue and c.lane = p.lane and c.seq > p.floor and c.seq <= p.ceiling
                       and c.kind = any (the_kinds)
                     order by c.seq
                     limit p.most
                       for update skip locked) f
                 where p.queue <> all (paused)
                 limit wanted))
            returning r.seq, r.job, r.queue, r.kind, r.lane, r.attempt, r.crashes,
                the_number + case when r.queue = any (short_queues) then 0 when r.queue = any (long_queues) then 2 else 1 end
                    + case when r.lane & 3 = 3 then 4 else 0 end as number,
                case when r.queue = any (keyed_lines) then
                    coalesce(r.gate, (select millrace.key_gate(j.limit_key, j.limit_scope) from millrace.job j where j.id = r.job)) end as key_gate
        ), by_gate as materialized (
            select k.gate, k.n, r.concurrency as cap, r.spacing, g.room, g.used_until, g.entries
              from (select g.key_gate as gate, min(g.job) as job, count(*)::int as n from gone g where keyed_lines is not null and g.key_gate is not null group by g.key_gate) k
             cross join lateral (select j.limit_key from millrace.job j where j.id = k.job offset 0) j
              left join lateral millrace.key_rule(j.limit_key) r on true
             cross join lateral millrace.gate_room(array[k.gate], array[r.concurrency], array[r.spacing], array[r.burst], t) g
        ), fit as materialized (
            select coalesce(bool_and(k.n <= k.room), true) as all_pass, bool_and(k.cap is not null) as all_hold,
                   array_agg(k.gate) filter (where k.cap is not null) as holding, array_agg(k.gate) filter (where k.entries > 64) as crowded
              from by_gate k
        ), span as materialized (                             -- empty when they did not fit
            select min(g.job) as lo, max(g.job) as hi from gone g where (select f.all_pass from fit f)
        ), put_back as (
            insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes, gate)
            select g.seq, g.job, g.queue, g.kind, g.lane, g.attempt, g.crashes, g.key_gate from gone g where not (select f.all_pass from fit f)
        ), counted as (
            insert into millrace.slot (gate, n, used_until)
            select r.gate, case when r.cap is null then 0 else r.n end,
                   case when r.spacing is not null then greatest((select m.t from moment m), r.used_until) + make_interval(secs => r.n * r.spacing) end
              from (select g.gate, (select count(*)::int from gone) as n, g.cap, g.spacing, g.used_until
                      from unnest(the_gates, caps, spacings, ends) g(gate, cap, spacing, used_until)
                     where exists (select from gone)
                    union all
                    select k.gate, k.n, k.cap, k.spacing, k.used_until from by_gate k where k.cap is not null or k.spacing is not null) r
             where (select f.all_pass from fit f)
        ), leased as (
            insert into millrace.lease (session, number, at, n, lo, hi, ids, attempts, crashes, slot_all, slot_gates)
            select the_session, g.number, (select m.t from moment m), count(*), min(g.job), max(g.job), array_agg(g.job),
                   case when max(g.attempt) > 0 then array_agg(g.attempt) end,
                   case when max(g.crashes) > 0 then array_agg(g.crashes) end, nullif(counting, '{}'),
                   -- aggregates with a condition cost a job as much as the others together
                   case when (select f.holding is null from fit f) then null when (select f.all_hold from fit f) then array_agg(g.key_gate)
                        else (select array_agg(case when h.key_gate = any (f.holding) then h.key_gate end) from gone h cross join fit f where h.number = g.number) end
              from gone g
             group by g.number
            having (select f.all_pass from fit f)
        ), usual as materialized (
            select g.kind, g.queue, g.lane, (select millrace.gates_fold(f.crowded)::text from fit f where f.crowded is not null) as folded
              from gone g where (select f.all_pass from fit f) limit 1
        )
        select null::bigint, null::bigint, null::bigint, u.kind, u.queue, u.lane, null::smallint, null::smallint, null::timestamptz, null::jsonb,
               null::smallint, null::boolean, null::boolean, null::jsonb, null::jsonb, null::text[], null::text, (select m.t from moment m), null::bigint[], null::bigint
          from usual u where brief
        union all
        select case when brief then nullif(g.seq, g.job) else g.seq end, g.job, nullif(g.number, usual_number),
               nullif(g.kind, (select u.kind from usual u where brief)), nullif(g.queue, (select u.queue from usual u where brief)),
               nullif(g.lane, (select u.lane from usual u where brief)), nullif(g.attempt, zero), nullif(g.crashes, zero),
               j.enqueued_at, case when j.whole then j.args end, j.max_attempts, case when j.unique_hash is not null or j.options ? 'tell_end' then true else untrue end,
               case when not j.whole then untrue when (j.options ->> 'expires_at')::timestamptz <= (select m.t from moment m) then case when millrace.job_has_begun(j.id) then untrue else true end else untrue end,
               case when j.whole then j.options end, case when j.whole then j.metadata end, case when j.whole then j.tags end, j.tenant, (select m.t from moment m where not brief), null::bigint[],
               case when (select f.all_hold from fit f) then g.key_gate when g.key_gate = any ((select f.holding from fit f)::bigint[]) then g.key_gate end
          from gone g
          cross join lateral (                             -- see claim()
              select i.*, millrace.is_carried(carry, i.args, i.options, i.metadata, i.tags) as whole from millrace.job i
               where i.id = g.job and i.id between (select s.lo from span s) and (select s.hi from span s) offset 0) j
         where not apart
        union all
        select null, null, g.number, null, g.queue, g.lane, null, null, null, null, null, null, null, null, null, null, null, null,
               array_agg(g.job) || array_agg(g.seq), null
          from gone g
         where apart and (select f.all_pass from fit f)
         group by g.number, g.queue, g.lane;
        taken := found;
        if taken and counting <> '{}' then
            return query
            select null::bigint, null::bigint, null::bigint, null::int, null::int, null::int, null::smallint, null::smallint, null::timestamptz, null::jsonb,
                   null::smallint, null::boolean, null::boolean, null::jsonb, null::jsonb, null::text[], null::text, null::timestamptz, counting, null::bigint;
        end if;
    end if;

    if not taken and (keyed_lines is not null or not roomy or not uniform) then
        -- The jobs are locked first and counted by gate. For a job that came back in line without its gate, the key is looked up.
        with held as materialized (
            select f.ctid as place, f.queue, f.job,
                   case when f.queue = any (keyed_lines) then
                       coalesce(f.gate, (select millrace.key_gate(j.limit_key, j.limit_scope) from millrace.job j where j.id = f.job)) end as gate
              from unnest(the_queues, the_lanes, floors, ceilings, most) p(queue, lane, floor, ceiling, most)
             cross join lateral (
                select c.ctid, c.queue, c.job, c.gate from millrace.ready c
                 where c.queue = p.queue and c.lane = p.lane and c.seq > p.floor and c.seq <= p.ceiling
                   and c.kind = any (the_kinds)
                 order by c.seq
                 limit p.most
                   for update skip locked) f
             where p.queue <> all (paused) and p.most > 0
             limit wanted
        ), by_queue as (
            select array_agg(q.queue) as queues, array_agg(q.n) as counts
              from (select h.queue, count(*)::int as n from held h where the_gates is not null group by h.queue) q
        ), by_gate as (
            select array_agg(k.gate) as gates, array_agg(k.job) as jobs, array_agg(k.n) as counts
              from (select h.gate, min(h.job) as job, count(*)::int as n from held h where h.gate is not null group by h.gate) k
        )
        select coalesce((select array_agg(h.place) from held h), '{}'), q.queues, q.counts, k.gates, k.jobs, k.counts
          into places, taken_queues, taken_counts, key_gates, key_jobs, key_counts
          from by_queue q, by_gate k;
        if key_gates is not null then
            select array_agg(k.gate), array_agg(k.n), array_agg(r.concurrency), array_agg(r.spacing), array_agg(r.burst)
              into key_gates, key_counts, key_caps, key_spacings, key_bursts
              from unnest(key_gates, key_jobs, key_counts) k(gate, id, n)
             cross join lateral (select j.limit_key from millrace.job j where j.id = k.id offset 0) j
             cross join lateral millrace.key_rule(j.limit_key) r;
        end if;
        if key_gates is not null then
            perform millrace.gates_lock('key gate', key_gates);
            select array_agg(g.room order by g.place), array_agg(g.used_until order by g.place),
                   crowded || array_agg(g.gate) filter (where g.entries > 64), bool_and(key_counts[g.place] <= g.room)
              into key_rooms, key_ends, crowded, all_pass
              from millrace.gate_room(key_gates, key_caps, key_spacings, key_bursts, t) g;
        end if;
        if the_gates is not null then
            select array_agg(coalesce(o.n, 0) order by g.place), all_pass and bool_and(coalesce(o.n, 0) <= rooms[g.place])
              into counts, all_pass
              from unnest(the_gates) with ordinality g(gate, place)
              left join (
                select u.gate, sum(c.n)::int as n
                  from (select q.n, array_position(line_ids, q.queue) as line from unnest(taken_queues, taken_counts) q(queue, n)) c
                 cross join lateral (values (line_queue_gates[c.line]), (line_tenant_gates[c.line])) u(gate)
                 group by u.gate) o on o.gate = g.gate;
        end if;
    end if;

    t := millrace.now();                                  -- after the statement that locked the jobs, see claim()
    if all_pass and places <> '{}' then
        -- All pass, as they mostly do. From here on only gates that count are of interest.
        insert into millrace.slot (gate, n, used_until)
        select g.gate, case when g.cap is null then 0 else g.n end,
               case when g.spacing is not null then greatest(t, g.used_until) + make_interval(secs => g.n * g.spacing) end
          from unnest(the_gates || key_gates, counts || key_counts, caps || key_caps, spacings || key_spacings, ends || key_ends)
               g(gate, n, cap, spacing, used_until) where g.n > 0;
        select coalesce(array_agg(k.gate), '{}'), coalesce(sum(k.n), 0) = cardinality(places) into key_gates, one_each
          from unnest(key_gates, key_counts, key_caps) k(gate, n, cap) where k.cap is not null;
        holds_all := false;
        if the_gates is not null then
            counting := array(select g.gate from unnest(the_gates, caps) g(gate, cap) where g.cap is not null);
            holds_all := counting <> '{}';
            one_each := one_each and not holds_all;
            select array_agg(case when l.queue_gate = any (counting) then l.queue_gate end order by l.place),
                   array_agg(case when l.tenant_gate = any (counting) then l.tenant_gate end order by l.place)
              into line_queue_gates, line_tenant_gates
              from unnest(line_queue_gates, line_tenant_gates) with ordinality l(queue_gate, tenant_gate, place);
        end if;
        return query
        with gone as materialized (
            delete from millrace.ready r where r.ctid = any (places)
            returning r.seq, r.job, r.queue, r.kind, r.lane, r.attempt, r.crashes,
                the_number + case when r.queue = any (short_queues) then 0 when r.queue = any (long_queues) then 2 else 1 end
                    + case when r.lane & 3 = 3 then 4 else 0 end as number,
                case when r.queue = any (keyed_lines) then
                    coalesce(r.gate, (select millrace.key_gate(j.limit_key, j.limit_scope) from millrace.job j where j.id = r.job)) end as key_gate,
                -- looking up an array's places costs a job more than anything else here
                case when holds_all then line_queue_gates[array_position(line_ids, r.queue)] end as queue_gate,
                case when holds_all then line_tenant_gates[array_position(line_ids, r.queue)] end as tenant_gate
        ), holds as (
            select g.number, g.job, g.key_gate as gate from gone g where g.key_gate = any (key_gates)
            union all
            select g.number, g.job, g.queue_gate from gone g where g.queue_gate is not null
            union all
            select g.number, g.job, g.tenant_gate from gone g where g.tenant_gate is not null
        ), leased as (
            insert into millrace.lease (session, number, at, n, lo, hi, ids, attempts, crashes, slot_jobs, slot_gates)
            select the_session, g.number, t, count(*), min(g.job), max(g.job), array_agg(g.job),
                   case when max(g.attempt) > 0 then array_agg(g.attempt) end,
                   case when max(g.crashes) > 0 then array_agg(g.crashes) end,
                   -- aggregates with a condition cost a job as much as the others together, so most claims do without
                   case when not one_each then (select array_agg(h.job) from holds h where h.number = g.number) end,
                   case when one_each then array_agg(g.key_gate) else (select array_agg(h.gate) from holds h where h.number = g.number) end
              from gone g
             group by g.number
        ), span as materialized (
            select min(g.job) as lo, max(g.job) as hi from gone g
        ), usual as materialized (
            select g.kind, g.queue, g.lane from gone g limit 1
        )
        select null::bigint, null::bigint, null::bigint, u.kind, u.queue, u.lane, null::smallint, null::smallint, null::timestamptz, null::jsonb,
               null::smallint, null::boolean, null::boolean, null::jsonb, null::jsonb, null::text[], null::text, t, null::bigint[], null::bigint
          from usual u where brief
        union all
        select case when brief then nullif(g.seq, g.job) else g.seq end, g.job, nullif(g.number, usual_number),
               nullif(g.kind, (select u.kind from usual u where brief)), nullif(g.queue, (select u.queue from usual u where brief)),
               nullif(g.lane, (select u.lane from usual u where brief)), nullif(g.attempt, zero), nullif(g.crashes, zero),
               j.enqueued_at, case when j.whole then j.args end, j.max_attempts, case when j.unique_hash is not null or j.options ? 'tell_end' then true else untrue end,
               case when not j.whole then untrue when (j.options ->> 'expires_at')::timestamptz <= t then case when millrace.job_has_begun(j.id) then untrue else true end else untrue end,
               case when j.whole then j.options end, case when j.whole then j.metadata end, case when j.whole then j.tags end, j.tenant, case when not brief then t end,
               case when brief and one_each then null when one_each then array[g.key_gate]
                   else nullif(array_remove(array[case when g.key_gate = any (key_gates) then g.key_gate end, g.queue_gate, g.tenant_gate], null), '{}') end, case when brief and one_each then g.key_gate end
          from gone g
          cross join lateral (                             -- see claim()
              select i.*, millrace.is_carried(carry, i.args, i.options, i.metadata, i.tags) as whole from millrace.job i
               where i.id = g.job and i.id between (select s.lo from span s) and (select s.hi from span s) offset 0) j
         where not apart
        union all
        select null, null, g.number, null, g.queue, g.lane, null, null, null, null, null, null, null, null, null, null, null, null,
               array_agg(g.job) || array_agg(g.seq), null
          from gone g where apart group by g.number, g.queue, g.lane;
    elsif places <> '{}' then
        perform pg_current_xact_id();                 -- before numbers are drawn: see horizon()
        -- Arrays and places in them instead of joins, which without statistics would go through every pair.
        return query
        with gone as materialized (
            delete from millrace.ready r where r.ctid = any (places) returning r.*
        ), seen as materialized (
            select x.seq, x.job, x.queue, x.kind, x.lane, x.attempt, x.crashes, x.gate, array_position(key_gates, x.gate) as key_place,
                   array_position(the_gates, line_queue_gates[array_position(line_ids, x.queue)]) as queue_place,
                   array_position(the_gates, line_tenant_gates[array_position(line_ids, x.queue)]) as tenant_place
              from (select g.seq, g.job, g.queue, g.kind, g.lane, g.attempt, g.crashes,
                           case when g.queue = any (keyed_lines) then
                               coalesce(g.gate, (select millrace.key_gate(j.limit_key, j.limit_scope) from millrace.job j where j.id = g.job)) end as gate
                      from gone g) x
        ), keyed as materialized (
            select t1.*, t1.key_place is null or row_number() over (partition by t1.key_place order by t1.lane >> 2, t1.lane & 3, t1.seq) <= key_rooms[t1.key_place] as passes_key from seen t1
        ), judged as materialized (
            select k.*,
                   k.passes_key
                   and (k.queue_place is null or row_number() over (partition by k.queue_place, k.passes_key order by k.lane >> 2, k.lane & 3, k.seq) <= rooms[k.queue_place])
                   and (k.tenant_place is null or row_number() over (partition by k.tenant_place, k.passes_key order by k.lane >> 2, k.lane & 3, k.seq) <= rooms[k.tenant_place]) as passes,
                   the_number + case when k.queue = any (short_queues) then 0 when k.queue = any (long_queues) then 2 else 1 end
                       + case when k.lane & 3 = 3 then 4 else 0 end as number,
                   nullif(array_remove(array[
                       case when key_caps[k.key_place] is not null then k.gate end,
                       case when caps[k.queue_place] is not null then the_gates[k.queue_place] end,
                       case when caps[k.tenant_place] is not null then the_gates[k.tenant_place] end], null), '{}') as slots
              from keyed k
        ), passed as materialized (
            select * from judged j where j.passes
        ), counted as (
            insert into millrace.slot (gate, n, used_until)
            select key_gates[c.place], case when key_caps[c.place] is null then 0 else c.n end,
                   case when key_spacings[c.place] is not null then greatest(t, key_ends[c.place]) + make_interval(secs => c.n * key_spacings[c.place]) end
              from (select p.key_place as place, count(*) as n from passed p where p.key_place is not null group by p.key_place) c
            union all
            select the_gates[c.place], case when caps[c.place] is null then 0 else c.n end,
                   case when spacings[c.place] is not null then greatest(t, ends[c.place]) + make_interval(secs => c.n * spacings[c.place]) end
              from (select u.place, count(*) as n from passed p cross join lateral unnest(array[p.queue_place, p.tenant_place]) u(place)
                     where the_gates is not null and u.place is not null group by u.place) c
        ), leased as (
            insert into millrace.lease (session, number, at, n, lo, hi, ids, attempts, crashes, slot_jobs, slot_gates)
            select the_session, p.number, t, count(*), min(p.job), max(p.job), array_agg(p.job),
                   case when max(p.attempt) > 0 then array_agg(p.attempt) end,
                   case when max(p.crashes) > 0 then array_agg(p.crashes) end,
                   (select array_agg(s.job) from passed s cross join lateral unnest(s.slots) g where s.number = p.number),
                   (select array_agg(g) from passed s cross join lateral unnest(s.slots) g where s.number = p.number)
              from passed p group by p.number
        ), left_aside as (
            insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes)
            select j.gate, j.lane & ~3 | greatest(j.lane & 3, 1), j.job, j.queue, j.kind, j.attempt, j.crashes
              from judged j where not j.passes_key
        ), sent_back as (
            insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes, gate)
            select nextval('millrace.seq'), j.job, j.queue, j.kind, millrace.lane_of(j.lane, j.crashes, true), j.attempt, j.crashes, j.gate
              from judged j where j.passes_key and not j.passes
        ), span as materialized (
            select min(p.job) as lo, max(p.job) as hi from passed p
        ), usual as materialized (
            select p.kind, p.queue, p.lane from passed p limit 1
        )
        select null::bigint, null::bigint, null::bigint, u.kind, u.queue, u.lane, null::smallint, null::smallint, null::timestamptz, null::jsonb,
               null::smallint, null::boolean, null::boolean, null::jsonb, null::jsonb, null::text[], null::text, t, null::bigint[], null::bigint
          from usual u where brief
        union all
        select case when brief then nullif(g.seq, g.job) else g.seq end, g.job, nullif(g.number, usual_number),
               nullif(g.kind, (select u.kind from usual u where brief)), nullif(g.queue, (select u.queue from usual u where brief)),
               nullif(g.lane, (select u.lane from usual u where brief)), nullif(g.attempt, zero), nullif(g.crashes, zero),
               j.enqueued_at, case when j.whole then j.args end, j.max_attempts, case when j.unique_hash is not null or j.options ? 'tell_end' then true else untrue end,
               case when not j.whole then untrue when (j.options ->> 'expires_at')::timestamptz <= t then case when millrace.job_has_begun(j.id) then untrue else true end else untrue end,
               case when j.whole then j.options end, case when j.whole then j.metadata end, case when j.whole then j.tags end, j.tenant, case when not brief then t end,
               g.slots, null::bigint
          from passed g
          cross join lateral (                             -- see claim()
              select i.*, millrace.is_carried(carry, i.args, i.options, i.metadata, i.tags) as whole from millrace.job i
               where i.id = g.job and i.id between (select s.lo from span s) and (select s.hi from span s) offset 0) j
         where not apart
        union all
        select null, null, g.number, null, g.queue, g.lane, null, null, null, null, null, null, null, null, null, null, null, null,
               array_agg(g.job) || array_agg(g.seq), null
          from passed g where apart group by g.number, g.queue, g.lane
        union all
        select j.seq, j.job, null, j.kind, j.queue, j.lane, null, null, null, null, null, null, null, null, null, null, null, null,
               case when not j.passes_key then array[j.gate] end, null
          from judged j where not j.passes;
    end if;
    if crowded is not null then
        perform millrace.gates_fold(crowded);
    end if;
    if held_back is not null then
        return query
        select null::bigint, null::bigint, null::bigint, null::int, h.queue, null::int, null::smallint, null::smallint, null::timestamptz, null::jsonb,
               null::smallint, null::boolean, null::boolean, null::jsonb, null::jsonb, null::text[], null::text, null::timestamptz, null::bigint[], null::bigint
          from unnest(held_back) h(queue);
    end if;
end $$;
select millrace.door_is('queue', 'claim_limited', 'worker', 'staff');
