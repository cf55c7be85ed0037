-- Samples of the fleet, every ten seconds: the first caller takes it. Everything is read up to a bound, however many jobs there are: a
-- statement reads at most 20,000 rows, and all of them 200,000 ready ones.

-- The keys of names, made where they are new. At most 20,000 of each sort: what comes after has none.
create or replace function millrace.sample_keys(the_what int, names text[], details text[] default null, queues text[] default null)
returns table (place bigint, key int)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
begin
    insert into millrace.sample_key (what, name, detail, queue, seen_at)
    select distinct the_what, w.name, coalesce(w.detail, ''), coalesce(w.queue, ''), t from unnest(names, details, queues) w(name, detail, queue)
     where not exists (select from millrace.sample_key k
                        where k.what = the_what and k.name = w.name and k.detail = coalesce(w.detail, '') and k.queue = coalesce(w.queue, ''))
       and (select count(*) from millrace.sample_key k where k.what = the_what) < 20000
        on conflict do nothing;
    update millrace.sample_key k set seen_at = t from unnest(names, details, queues) w(name, detail, queue)
     where k.what = the_what and k.name = w.name and k.detail = coalesce(w.detail, '') and k.queue = coalesce(w.queue, '')
       and k.seen_at < t - interval '1 day';
    return query select w.place, k.id from unnest(names, details, queues) with ordinality w(name, detail, queue, place)
        join millrace.sample_key k on k.what = the_what and k.name = w.name and k.detail = coalesce(w.detail, '') and k.queue = coalesce(w.queue, '');
end $$;

-- The places of jobs, by queue. Counts stop at 10,000 for each queue, and at less where more than 20 queues hold jobs; beyond, the number is
-- estimated from 150 random pages. At most 20,000 lanes and 10,000 running jobs are looked at; the rest counts as these do.
create or replace function millrace.sample_places(t timestamptz)
returns table (queue int, ready bigint, due bigint, scheduled bigint, running bigint, oldest timestamptz)
language plpgsql volatile
set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    heads jsonb;
    most bigint;
    counts jsonb;
    deep int[];
    share float8;
    later jsonb;
begin
    select jsonb_agg(jsonb_build_array(h.main, h.ids, h.oldest)) into heads
      from (select coalesce(q.main, q.id) as main, array_agg(distinct q.id) as ids, min(greatest(j.enqueued_at, coalesce(j.run_at, j.enqueued_at))) as oldest
              from millrace.heads(20000) f join millrace.queue q on q.id = f.queue join millrace.job j on j.id = f.job
             group by coalesce(q.main, q.id)) h;
    most := greatest(20, least(10000, 200000 / greatest(1, jsonb_array_length(heads))));
    select coalesce(jsonb_object_agg(c.main, c.n), '{}'), coalesce(array_agg(c.main) filter (where c.n >= most), '{}') into counts, deep
      from (select (h ->> 0)::int as main,
                   (select count(*) from (select from jsonb_array_elements_text(h -> 1) line
                       cross join lateral (select from millrace.ready r where r.queue = line::int limit most) l limit most) l) as n
              from jsonb_array_elements(heads) h offset 0) c;                 -- one count of each, for both
    if deep <> '{}' then
        share := least(100, 100 * 150.0 / greatest(1, pg_relation_size('millrace.ready') / 8192));
        select counts || coalesce(jsonb_object_agg(e.main, greatest((counts ->> e.main::text)::bigint, (e.n * 100 / share)::bigint)), '{}') into counts
          from (select coalesce(q.main, q.id) as main, count(*) as n
                  from millrace.ready r tablesample system (share) repeatable (7) join millrace.queue q on q.id = r.queue
                 group by coalesce(q.main, q.id)) e
         where e.main = any (deep);
    end if;

    if (select count(*) from (select from millrace.timer limit 10000) d) < 10000 then
        share := 100;
    else
        share := least(100, 100 * 150.0 / greatest(1, pg_relation_size('millrace.timer') / 8192));
    end if;
    select jsonb_object_agg(e.main, e.n) into later
      from (select coalesce(q.main, q.id) as main, (count(*) * 100 / share)::bigint as n
              from (select d.queue from millrace.timer d where share = 100 and d.due > t
                    union all
                    select d.queue from millrace.timer d tablesample system (share) repeatable (7) where share < 100 and d.due > t) d
              join millrace.queue q on q.id = d.queue group by coalesce(q.main, q.id)) e;

    return query
    with held as materialized (
        select l.*, sum(l.n) over (order by l.session, l.number) as upto, sum(l.n) over () as whole from millrace.lease l
    ), runs as (
        select coalesce(q.main, q.id) as main, ceil(count(*) * max(greatest(1, h.whole / 10000.0)))::bigint as n
          from held h cross join lateral unnest(h.ids) u(id)
         -- One by one: before the first analyze, Postgres 16 and 18 merged a join with the whole table.
         cross join lateral (select j.queue from millrace.job j where j.id = u.id and j.id between h.lo and h.hi offset 0) j
          join millrace.queue q on q.id = j.queue
         where h.upto - h.n < 10000
           and not exists (select from millrace.history x where x.class = (h.number & 3)::smallint and x.started = h.at
                              and x.id = u.id and x.session = h.session and x.number = h.number)
         group by coalesce(q.main, q.id)
    ), aside as (
        select coalesce(q.main, q.id) as main, count(*) as n from (select p.queue from millrace.parked p limit 10000) p
          join millrace.queue q on q.id = p.queue group by coalesce(q.main, q.id)
    ), due as (
        select coalesce(q.main, q.id) as main, count(*) as n
          from (select d.queue from millrace.timer d where d.due <= t order by d.due limit 10000) d
          join millrace.queue q on q.id = d.queue group by coalesce(q.main, q.id)
    ), said as (
        select c.key::int as main, c.value::bigint as ready, 0::bigint as due, 0::bigint as scheduled, 0::bigint as running, null::timestamptz as oldest
          from jsonb_each_text(counts) c
        union all select (h ->> 0)::int, 0, 0, 0, 0, (h ->> 2)::timestamptz from jsonb_array_elements(heads) h
        union all select a.main, a.n, 0, 0, 0, null from aside a
        union all select d.main, 0, d.n, 0, 0, null from due d
        union all select c.key::int, 0, 0, c.value::bigint, 0, null from jsonb_each_text(later) c
        union all select r.main, 0, 0, 0, r.n, null from runs r
    )
    select s.main, sum(s.ready)::bigint, sum(s.due)::bigint, sum(s.scheduled)::bigint, sum(s.running)::bigint, min(s.oldest) from said s group by s.main;
end $$;

-- One row of sample_fresh; nothing where there are no names. vals: the columns of the first name, of the second, and so on.
create or replace function millrace.sample_put(the_what int, slot timestamptz, vals bigint[], names text[], details text[] default null, queues text[] default null) returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    insert into millrace.sample_fresh (what, at, keys, vals)
    select the_what, slot, array_agg(k.key order by k.place),
           case when count(*) = cardinality(names) then vals else (
               select array_agg(v.v order by v.i) from unnest(vals) with ordinality v(v, i)
                where ((v.i - 1) / length(millrace.sample_fold_of(the_what))) + 1 = any (array_agg(k.place))) end
      from millrace.sample_keys(the_what, names, details, queues) k
    having count(*) > 0
        on conflict do nothing
$$;

-- What ended since the last sample: by kind, version of the worker and queue, and by how long it took.
create or replace function millrace.sample_ends(slot timestamptz, t timestamptz) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    since timestamptz := (select greatest(s.tally_at, t - interval '1 hour') from millrace.sample_state s);
    cut timestamptz := t - interval '2 seconds';          -- a beat that began earlier has committed by now
    surplus timestamptz;
    kinds text[];
    versions text[];
    vals bigint[];
    one record;
begin
    surplus := (select y.at from millrace.tally y where y.at > since and y.at <= cut order by y.at offset 20000 limit 1);
    if surplus - interval '1 microsecond' > since then    -- more beats than are read at once: the rest comes with the next sample
        cut := surplus - interval '1 microsecond';
    end if;
    update millrace.sample_state s set tally_at = greatest(s.tally_at, cut);

    for one in
        with ended as materialized (
            select k.name as kind, coalesce(left(p.version, 128), '') as version, q.name as queue, sum(y.succeeded) as a, sum(y.failed) as b, sum(y.dead) as c,
                   sum(y.cancelled) as d, sum(y.snoozed) as e, sum(y.ms) as f, coalesce(sum(y.wait_ms), 0) as g,
                   greatest(0, sum(y.succeeded + y.failed + y.cancelled + y.snoozed - coalesce(y.waits, 0))) as h
              from millrace.tally y join millrace.kind k on k.id = y.kind join millrace.queue q on q.id = y.queue
              left join millrace.process p on p.session = y.session
             where y.at > since and y.at <= cut group by 1, 2, 3
        ), said as materialized (
            select 2 as what, x.* from ended x
            union all
            select 7, x.kind, x.version, '', sum(a), sum(b), sum(c), sum(d), sum(e), sum(f), sum(g), sum(h) from ended x group by x.kind, x.version
            union all
            select w.what, '', '', '', sum(a), sum(b), sum(c), sum(d), sum(e), sum(f), sum(g), sum(h)
              from ended x cross join (values (2), (7)) w(what) group by w.what
        ), listed as (
            select s.what, array_agg(s.kind order by s.kind, s.version, s.queue) as kinds, array_agg(s.version order by s.kind, s.version, s.queue) as versions,
                   array_agg(s.queue order by s.kind, s.version, s.queue) as queues from said s group by s.what
        ), counted as (
            select o.what, array_agg(c.v::bigint order by o.kind, o.version, o.queue, c.c) as vals from said o
             cross join lateral (values (1, o.a), (2, o.b), (3, o.c), (4, o.d), (5, o.e), (6, o.f), (7, o.g), (8, o.h)) c(c, v) group by o.what
        )
        select l.*, c.vals from listed l join counted c on c.what = l.what order by l.what
    loop
        perform millrace.sample_put(one.what, slot, one.vals, one.kinds, one.versions, one.queues);
    end loop;

    with took as materialized (
        select k.name as kind, coalesce(left(p.version, 128), '') as version, b.bucket, sum(b.n) as n
          from millrace.tally y cross join lateral millrace.sample_times(y.times) b
          join millrace.kind k on k.id = y.kind left join millrace.process p on p.session = y.session
         where y.at > since and y.at <= cut and y.times is not null group by 1, 2, 3
    ), said as (
        select * from took union all select '', '', t.bucket, sum(t.n) from took t group by t.bucket
    ), things as (
        select distinct s.kind, s.version from said s
    )
    select array_agg(g.kind order by g.kind, g.version), array_agg(g.version order by g.kind, g.version),
           (select array_agg(coalesce(s.n, 0)::bigint order by o.kind, o.version, b)
              from things o cross join generate_series(0, 45) b left join said s on s.kind = o.kind and s.version = o.version and s.bucket = b)
      into kinds, versions, vals from things g;
    perform millrace.sample_put(6, slot, vals, kinds, versions);
end $$;

-- Storage, and whether this is still the same server: once a minute.
create or replace function millrace.sample_storage(slot timestamptz) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    names text[];
    vals bigint[];
    last record;
    started timestamptz := date_trunc('milliseconds', pg_postmaster_start_time());
    line int;
begin
    with tables as materialized (
        select case when c.relname ~ '^job(_|$)' then 'job' when c.relname ~ '^history(_|$)' then 'history'
                    when c.relname in ('ready', 'timer', 'lease', 'beat', 'parked', 'slot', 'tally') then c.relname::text
                    when c.relname ~ '^sample_' then 'samples' else 'others' end as name,
               pg_total_relation_size(c.oid) / 1024 as kb, coalesce(s.n_dead_tup, 0) as dead
          from pg_class c left join pg_stat_all_tables s on s.relid = c.oid
         where c.relnamespace = 'millrace'::regnamespace and c.relkind = 'r'
    ), said as (
        select b.name, sum(b.kb)::bigint as kb, sum(b.dead)::bigint as dead, 0::bigint as pin, 0::bigint as xmin, 0::bigint as days, 0::bigint as ids, 0::bigint as strays
          from tables b group by b.name
        union all
        select '', (select sum(b.kb) from tables b)::bigint,
               (select sum(b.dead) from tables b where b.name in ('ready', 'timer', 'lease', 'beat', 'parked', 'slot'))::bigint,
               coalesce(ceil(max(extract(epoch from clock_timestamp() - a.xact_start))), 0)::bigint, coalesce(max(age(a.backend_xmin)), 0)::bigint,
               (select greatest(coalesce(p.history_days, 0), 0) from millrace.partitions() p), (select greatest(p.job_ids, 0) / 1000 from millrace.partitions() p),
               (select p.strays from millrace.partitions() p)
          from (select x.xact_start, x.backend_xmin from pg_stat_activity x
                 where x.backend_xmin is not null and x.pid <> pg_backend_pid() and x.xact_start is not null and x.datname = current_database()) a
    )
    select array_agg(s.name order by s.name),
           (select array_agg(c.v order by o.name, c.c) from said o
             cross join lateral (values (1, 1), (2, o.kb), (3, o.dead), (4, greatest(o.pin, 0)), (5, o.xmin), (6, o.days), (7, o.ids), (8, o.strays)) c(c, v))
      into names, vals from said s;
    perform millrace.sample_put(5, slot, vals, names);

    begin
        line := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int;
    exception when others then
        line := null;                                     -- a server that does not say
    end;
    select s.server_started, s.timeline into last from millrace.sample_state s;
    if last.server_started is not null and last.timeline <> line then
        perform millrace.fleet_note('server failed over', 'postgres', detail => format('timeline %s became %s', last.timeline, line));
    elsif last.server_started <> started then
        perform millrace.fleet_note('server restarted', 'postgres', detail => format('it runs since %s', to_char(started at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')));
    end if;
    update millrace.sample_state s set server_started = started, timeline = coalesce(line, s.timeline)
     where s.server_started is distinct from started or s.timeline is distinct from coalesce(line, s.timeline);
end $$;

-- Takes the sample of these ten seconds, unless somebody has or does it now, or the setting `samples` is off; and packs a part of the older ones.
-- next_s: when the next is due.
create or replace function millrace.sample_take(out taken boolean, out next_s float8)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    t timestamptz := millrace.now();
    slot timestamptz := date_bin('10 s', t, timestamptz '2000-01-01 00:00+00');
    names text[];
    details text[];
    vals bigint[];
begin
    taken := false;
    next_s := extract(epoch from slot + interval '10 s' - t);
    if exists (select from millrace.sample_fresh f where f.what = 1 and f.at >= slot)
       or exists (select from millrace.setting s where s.name = 'samples' and s.value = 'off') or not millrace.turn_try('samples') then
        return;
    end if;
    if exists (select from millrace.sample_fresh f where f.what = 1 and f.at >= slot) then
        return;
    end if;
    perform set_config('synchronous_commit', 'off', true);  -- a crash of the server may take the last sample
    insert into millrace.sample_done (what, step, upto)
    select r.what, s, date_bin(make_interval(secs => s * millrace.sample_slots()), slot, timestamptz '2000-01-01 00:00+00')
      from millrace.sample_rules() r cross join unnest(array[10, 60, 600]) s where r.what <> 6 or s > 10
        on conflict do nothing;

    perform millrace.sample_ends(slot, t);

    with places as materialized (
        select q.name, p.ready, p.due, p.scheduled, p.running, greatest(0, extract(epoch from t - p.oldest) * 10)::bigint as oldest, q.paused_at is not null as paused
          from millrace.sample_places(t) p join millrace.queue q on q.id = p.queue
        union all
        select q.name, 0, 0, 0, 0, 0, true from millrace.queue q where q.paused_at is not null and q.main is null
    ), all_things as materialized (
        select p.name, sum(p.ready) as ready, sum(p.due) as due, sum(p.scheduled) as scheduled, sum(p.running) as running, bool_or(p.paused)::int as paused,
               coalesce(max(p.oldest), 0) as oldest
          from places p group by p.name
    ), things as materialized (
        -- Each has its own row up to 2,000 that have most to do.
        select * from all_things a order by a.ready + a.running + a.due desc, a.scheduled desc, a.name limit 2000
    ), said as (
        select g.name, 0 as samples, g.ready, g.due, g.scheduled, g.running, g.paused, g.oldest from things g
        union all
        select '', 1, coalesce(sum(g.ready), 0), coalesce(sum(g.due), 0), coalesce(sum(g.scheduled), 0), coalesce(sum(g.running), 0), coalesce(sum(g.paused), 0),
               coalesce(max(g.oldest), 0) from all_things g
    )
    select array_agg(s.name order by s.name),
           (select array_agg(c.v::bigint order by o.name, c.c) from said o
             cross join lateral (values (1, o.samples), (2, o.ready), (3, o.due), (4, o.scheduled), (5, o.running), (6, o.paused), (7, o.oldest)) c(c, v))
      into names, vals from said s;
    perform millrace.sample_put(1, slot, vals, names);

    with workers as materialized (
        select s.id::text as name, array_position(array['working', 'draining', 'cut off'], b.state) as state, b.running, b.waiting, b.stuck, s.slots
          from millrace.session s join millrace.beat b on b.session = s.id order by s.id limit 500
    ), said as (
        select * from workers
        union all
        select '', 0, coalesce(sum(w.running), 0), coalesce(sum(w.waiting), 0), coalesce(sum(w.stuck), 0), coalesce(sum(w.slots), 0) from workers w
    )
    select array_agg(s.name order by s.name),
           (select array_agg(c.v::bigint order by o.name, c.c) from said o
             cross join lateral (values (1, 1), (2, o.state), (3, o.running), (4, o.waiting), (5, o.stuck), (6, o.slots),
                                        (7, case when o.name = '' then (select count(*) from workers) else 0 end)) c(c, v))
      into names, vals from said s;
    perform millrace.sample_put(3, slot, vals, names);

    with said as materialized (
        select p.provider, p.class, array_position(array['closed', 'observing', 'forced_closed', 'ramping', 'probing', 'open', 'forced_open'], p.state) as state,
               p.ok, p.failed, p.throttled, p.slow, p.unknown, coalesce(p.p50_ms * 10, 0)::bigint as p50, coalesce(p.p99_ms * 10, 0)::bigint as p99
          from millrace.providers p
         where p.state <> 'closed' or p.ok + p.failed + p.throttled + p.slow + p.unknown > 0
         order by p.provider, p.class limit 200
    )
    select array_agg(s.provider order by s.provider, s.class), array_agg(s.class order by s.provider, s.class),
           (select array_agg(c.v::bigint order by o.provider, o.class, c.c) from said o
             cross join lateral (values (1, 1), (2, o.state), (3, o.ok), (4, o.failed), (5, o.throttled), (6, o.slow), (7, o.unknown), (8, o.p50), (9, o.p99)) c(c, v))
      into names, details, vals from said s;
    perform millrace.sample_put(4, slot, vals, names, details);

    if not exists (select from millrace.sample_fresh f where f.what = 5 and f.at > slot - interval '1 minute') then
        perform millrace.sample_storage(slot);
    end if;
    perform millrace.sample_fold();
    taken := true;
end $$;
select millrace.door_is('operating', 'sample_take', 'worker, operator', 'staff');
