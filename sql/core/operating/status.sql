-- The parts of `status`. Each is a statement of its own with its own deadline, so that one slow answer does not hide the others.

-- Ended runs of the last `span`, from the tallies that workers send with their beats: a lower bound. A killed worker loses what it has
-- ended since its last beat, up to two seconds. A tally written with each end would cost a lone job's end one more row. History has every
-- run.
create or replace function millrace.rates(span interval default '5 min')
returns table (queue text, kind text, succeeded bigint, failed bigint, dead bigint, cancelled bigint, snoozed bigint, ms bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    select q.name, k.name, sum(y.succeeded), sum(y.failed), sum(y.dead), sum(y.cancelled), sum(y.snoozed), sum(y.ms)::bigint
      from millrace.tally y
      join millrace.queue q on q.id = y.queue
      join millrace.kind k on k.id = y.kind
     where y.at > millrace.now() - span
     group by q.name, k.name order by q.name, k.name
$$;
select millrace.door_is('operating', 'rates', 'worker, viewer', 'staff');

-- Kinds of waiting jobs that no running worker knows. Nothing is read when every kind is known; else the first `span` rows of the table,
-- which has no index by kind. A kind behind that many other rows is reported once those are gone.
create or replace function millrace.orphans(span int default 2000000)
returns table (kind text, waiting bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    unknown int[] := array(
        select k.id from millrace.kind k
          left join millrace.kind b on b.name = k.name and b.line = millrace.line_base(k.line)
         where not exists (select from millrace.session s where b.id = any (s.kinds)));
begin
    if unknown = '{}' then
        return;
    end if;
    return query
    select k.name, count(*)
      from (select r.kind from millrace.ready r limit span) o
      join millrace.kind k on k.id = o.kind
     where o.kind = any (unknown)
     group by k.name order by 2 desc, 1;
end $$;
select millrace.door_is('operating', 'orphans', 'worker, viewer', 'staff');

-- The transactions that keep old row versions alive longest, and whose they are. One that waits between two statements has no snapshot; it keeps
-- them by its number, if it has written anything.
create or replace function millrace.pins()
returns table (pid int, application text, usename text, state text, age_s float8)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    select a.pid, a.application_name, a.usename::text, a.state, extract(epoch from clock_timestamp() - a.xact_start)::float8
      from pg_stat_activity a
     where coalesce(a.backend_xmin, a.backend_xid) is not null and a.pid <> pg_backend_pid() and a.xact_start is not null and a.datname = current_database()
     order by greatest(age(a.backend_xmin), age(a.backend_xid)) desc limit 3
$$;
select millrace.door_is('operating', 'pins', 'admin, viewer', 'staff');

create or replace function millrace.sizes()
returns table (name text, bytes bigint, dead bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    select c.relname::text, pg_total_relation_size(c.oid), coalesce(s.n_dead_tup, 0)
      from pg_class c left join pg_stat_all_tables s on s.relid = c.oid
     where c.relnamespace = 'millrace'::regnamespace and c.relkind = 'r'
     order by 2 desc
$$;
select millrace.door_is('operating', 'sizes', 'admin, viewer', 'staff');

create or replace function millrace.dead_count(span interval default '1 day', cap int default 10000) returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    select count(*) from (select from millrace.history h where h.outcome = 3 and h.started > millrace.now() - span - interval '7 days'
                             and h.finished > millrace.now() - span limit cap) d
$$;
select millrace.door_is('operating', 'dead_count', 'admin, viewer', 'staff');

-- How far ahead the partitions exist, and whether rows had to go into a default partition.
create or replace function millrace.partitions(out history_days int, out job_ids bigint, out strays bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    select min(last.day) - (millrace.now() at time zone 'UTC')::date into history_days from (
        select p.name, max(to_date((regexp_match(c.relname, E'_(\\d{8})$'))[1], 'YYYYMMDD')) as day
          from (values ('history_short'), ('history_standard')) p(name)
          left join pg_class c on c.relnamespace = 'millrace'::regnamespace and c.relname ~ ('^' || p.name || E'_\\d{8}$')
         group by p.name) last;
    select coalesce(max((regexp_match(c.relname, E'^job_(\\d+)$'))[1]::bigint), 0) + 16777216 - (select last_value from millrace.seq)
      into job_ids
      from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relname ~ E'^job_\\d+$';
    -- Jobs that outlive their range are moved to its default on purpose; history has no reason to be in one.
    select count(*) into strays from (
        select from millrace.history_short_default union all select from millrace.history_standard_default
        union all select from millrace.history_long_default limit 10000) s;
end $$;
select millrace.door_is('operating', 'partitions', 'admin, viewer', 'staff');

-- The present work of a queue; no row when there is no such queue. Capped like depths, but for one queue and including what is due.
create or replace function millrace.queue_load(the_queue text, cap int default 10000)
returns table (ready bigint, due bigint, running bigint)
language sql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
    select (select count(*) from (select from millrace.ready r where r.queue = any (q.ids) limit cap) c)
             + (select count(*) from (select from millrace.parked p where p.queue = any (q.ids) limit cap) c),
           (select count(*) from (select from millrace.timer d where d.due <= millrace.now() and d.queue = any (q.ids) limit cap) c),
           (select count(*) from millrace.lease l cross join lateral unnest(l.ids) u(id)
              join millrace.job j on j.id = u.id and j.id between l.lo and l.hi
             where j.queue = any (q.ids)
               and not exists (select from millrace.history h where h.class = (l.number & 3)::smallint and h.started = l.at
                                  and h.id = u.id and h.session = l.session and h.number = l.number))
      from (select millrace.queue_ids(the_queue) as ids) q where q.ids <> '{}'
$$;
select millrace.door_is('operating', 'queue_load', 'admin, viewer', 'staff');

-- How much work a drain of these kinds still has: jobs that are ready, held, or due by now, and what jobs that wait have yet to be told.
create or replace function millrace.outstanding(the_kinds text[] default null) returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
    with known as materialized (select k.id from millrace.kind k where the_kinds is null or k.name = any (the_kinds))
    select (select count(*) from (select from millrace.ready r where r.kind in (select id from known) limit 1000) r)
         + (select count(*) from (select from millrace.parked p where p.kind in (select id from known) limit 1000) p)
         + (select count(*) from (select from millrace.timer t where t.due <= millrace.now() and t.kind in (select id from known) limit 1000) d)
         + (select coalesce(sum(l.n), 0) from millrace.lease l)
         + exists (select from millrace.signal s where s.state = 0)::int + exists (select from millrace.wait w where w.look_at is not null)::int
         + exists (select from millrace.ending)::int + exists (select from millrace.blocked b where b.fresh)::int
$$;
select millrace.door_is('operating', 'outstanding', 'worker, viewer', 'staff');

-- Jobs that wait for the holder of their unique key, or for other jobs of their flow.
create or replace function millrace.blocked_count(cap int default 10000) returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
    select least((select count(*) from (select from millrace.unique_lock u where u.next is not null limit cap) b)
               + (select count(*) from (select from millrace.blocked limit cap) b), cap::bigint)
$$;
select millrace.door_is('operating', 'blocked_count', 'worker, viewer', 'staff');

-- What each room says of itself, for status and doctor. One that fails is named among the troubles of hooks.
create or replace function millrace.room_states() returns table (room text, state jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    one record;
begin
    for one in select * from millrace.hooks_of('state') loop
        begin
            room := one.name;
            execute format('select %s()', one.call) into state;
            if one.fails then
                perform millrace.hook_went('state', one.function);
            end if;
            return next;
        exception when others then
            perform millrace.hook_went('state', one.function, sqlstate, sqlerrm);
        end;
    end loop;
end $$;
select millrace.door_is('operating', 'room_states', 'worker, viewer', 'staff');

-- These queues with their depths; null: all. All counts together read about 10,000 rows, however many jobs and queues there are. A queue that has
-- more is estimated from what analyze last found; null where that is not known.
create or replace function millrace.queue_depths(mains int[])
returns table (queue text, paused_at timestamptz, retention text, ready bigint, scheduled bigint, running bigint, oldest_ready_at timestamptz,
    created_at timestamptz, cap int, estimated bigint)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    the_cap int := greatest(10, 6000 / greatest(1, coalesce(cardinality(mains), (select count(*) from millrace.queue q where q.main is null))))::int;
    -- As the planner has it: as many rows a page as analyze last found, and the pages that there are now.
    rows_ready float8 := (select case when c.reltuples > 0 and c.relpages > 0 then c.reltuples / c.relpages * (pg_relation_size(c.oid) / current_setting('block_size')::int) end
                            from pg_class c where c.oid = 'millrace.ready'::regclass);
    common int[];
    shares float4[];
begin
    select s.most_common_vals::text::int[], s.most_common_freqs into common, shares
      from pg_stats s where s.schemaname = 'millrace' and s.tablename = 'ready' and s.attname = 'queue';
    return query
    with shared as materialized (
        select m.name, round(sum(rows_ready * f.share))::bigint as n
          from unnest(common, shares) f(line, share) join millrace.queue q on q.id = f.line join millrace.queue m on m.id = coalesce(q.main, q.id)
         group by m.name
    )
    select d.queue, d.paused_at, d.retention, d.ready, d.scheduled, d.running, d.oldest_ready_at, d.created_at, the_cap,
           case when d.ready >= the_cap and s.n > 0 then greatest(s.n, d.ready) end
      from millrace.depths_of(mains, the_cap) d left join shared s on s.name = d.queue;
end $$;

create or replace function millrace.queue_overview()
returns table (queue text, paused_at timestamptz, retention text, ready bigint, scheduled bigint, running bigint, oldest_ready_at timestamptz,
    created_at timestamptz, cap int, estimated bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select * from millrace.queue_depths(null)
$$;
select millrace.door_is('operating', 'queue_overview', 'admin, viewer', 'staff');

-- A page of them in the order of their names, behind the name `after`; the_search: with this in the name; names: these alone.
create or replace function millrace.queue_page(the_search text default null, after text default null, page int default 50, names text[] default null)
returns table (queue text, paused_at timestamptz, retention text, ready bigint, scheduled bigint, running bigint, oldest_ready_at timestamptz,
    created_at timestamptz, cap int, estimated bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    return query
    select d.* from millrace.queue_depths(array(
        select q.id from millrace.queue q
         where q.main is null and (the_search is null or position(lower(the_search) in lower(q.name)) > 0)
           and (after is null or q.name > after) and (names is null or q.name = any (names))
         order by q.name limit page)) d order by d.queue;
end $$;
select millrace.door_is('operating', 'queue_page', 'admin, viewer', 'staff');

-- The queues in one look, for the overview: how many there are, and the `most` that have most to do. Up to 200 are counted. Of more the latest
-- sample says what all have together, and which have most; `at` is its time. Null where no sample of the last minute says it.
create or replace function millrace.queues_now(most int default 20) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    many bigint := (select count(*) from millrace.queue q where q.main is null);
    paused bigint := (select count(*) from millrace.queue q where q.main is null and q.paused_at is not null);
    at timestamptz;
    keys int[];
    numbers bigint[];                                      -- a variable: of a column each look at one would unpack all
    width int := length(millrace.sample_fold_of(1));
    whole jsonb := '{}';
    wanted int[];
begin
    if most is null or most not between 1 and 200 then
        perform millrace.refuse('most must be 1 to 200', 'most');
    end if;
    if many <= 200 then
        return jsonb_build_object('queues', many, 'paused', paused, 'at', null, 'rows', (
            select coalesce(jsonb_agg(to_jsonb(d) order by d.ready + d.running desc, d.queue), '[]') from millrace.queue_depths(null) d));
    end if;
    select f.at, f.keys, f.vals || '{}'::bigint[] into at, keys, numbers
      from millrace.sample_fresh f where f.what = 1 and f.at > millrace.now() - interval '1 minute' order by f.at desc limit 1;
    if at is not null then
        with said as materialized (
            select k.name, numbers[(u.place - 1) * width + 2] as ready, numbers[(u.place - 1) * width + 4] as scheduled,
                   numbers[(u.place - 1) * width + 5] as running, numbers[(u.place - 1) * width + 7] as oldest
              from unnest(keys) with ordinality u(key, place) join millrace.sample_key k on k.id = u.key
        )
        select coalesce((select jsonb_build_object('at', at, 'ready', s.ready, 'scheduled', s.scheduled, 'running', s.running, 'oldest_s', s.oldest / 10.0)
                           from said s where s.name = ''), '{}'),
               array(select q.id from said s join millrace.queue q on q.name = s.name and q.main is null
                      where s.name <> '' order by s.ready + s.running desc, s.name limit most)
          into whole, wanted;
    else
        wanted := array(select q.id from millrace.queue q where q.main is null order by q.paused_at, q.name limit most);
    end if;
    return jsonb_build_object('queues', many, 'paused', paused, 'at', null) || whole || jsonb_build_object('rows', (
        select coalesce(jsonb_agg(to_jsonb(d) order by d.ready + d.running desc, d.queue), '[]') from millrace.queue_depths(wanted) d));
end $$;
select millrace.door_is('operating', 'queues_now', 'admin, viewer', 'staff');
