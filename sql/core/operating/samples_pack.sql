-- How samples are stored: ten seconds for a day, minutes and ten minutes for 14 days. A chunk of `sample_slots()` times is packed when it is
-- over: for each key one row with its columns one after the other, numbers as variable bytes and runs of zeros as their length. Coarser steps
-- are made from the next finer one by sums and maxima. Counts of ends stay exact; sums of which only means are shown keep nine bits, so each
-- packing may change them by a 500th. storage.md has the measured sizes.

-- Times of one packed row: half an hour of ten-second samples, 3 hours of minutes, 30 hours of ten minutes.
create or replace function millrace.sample_slots() returns int language sql immutable parallel safe return 180;

-- What is sampled. fold: a letter for each column, s for the sum over the samples, f for
-- a sum that is packed with nine bits, m for the greatest value.
--   1 queues      samples, ready, due, scheduled, running, paused, oldest age in tenths of a second. '' is all queues; only it has the number of samples
--   2 ends        succeeded, failed, dead, cancelled, snoozed, run ms, wait ms, runs whose wait nobody knows; by kind, version of the worker and
--                 queue; '' of all three is all
--   3 workers     samples, state, running, waiting, stuck, slots, workers; by session, '' is all
--   4 providers   samples, state, ok, failed, throttled, slow, unknown, median and 99 % in tenths of a millisecond; by provider and class
--   5 storage     samples, kilobytes, dead rows, age of the oldest transaction in s, age of the oldest snapshot in transactions, days of history ahead,
--                 thousands of job ids ahead, strays; by table, '' is all
--   6 times       runs by how long they took, see sample_times(); by kind and version, '' and '' is all. Minutes for a day, and ten minutes
--   7 builds      as 2, by kind and version in all queues together: with thousands of queues there are as many times as many of 2. '' and '' is all
create or replace function millrace.sample_rules() returns table (what smallint, fold text)
language sql immutable parallel safe as $$
    values (1::smallint, 'sfffssm'), (2::smallint, 'sssssffs'), (3::smallint, 'smsssss'), (4::smallint, 'smfffffsm'),
           (5::smallint, 'sffmmsfm'), (6::smallint, repeat('s', 46)), (7::smallint, 'sssssffs')
$$;

create or replace function millrace.sample_fold_of(the_what int) returns text
language sql immutable parallel safe as $$ select r.fold from millrace.sample_rules() r where r.what = the_what $$;

-- Runs by how long they took: the first bucket is under a millisecond, then two buckets for each doubling, from 1 ms to more than an hour and a half.
-- Workers send the first bucket's number and the counts from there on: '7:12,0,3'.
create or replace function millrace.sample_times(times text) returns table (bucket int, n bigint)
language sql immutable parallel safe as $$
    select split_part(times, ':', 1)::int + (c.place - 1)::int, c.n::bigint
      from unnest(string_to_array(split_part(times, ':', 2), ',')) with ordinality c(n, place)
     where times ~ '^[0-9]{1,2}:[0-9]{1,10}(,[0-9]{1,10})*$' and split_part(times, ':', 1)::int + c.place - 1 between 0 and 45
$$;

-- The time within which `share` of the runs ended, in seconds, from the buckets that are not empty: the middle of its bucket.
create or replace function millrace.sample_quantile(buckets int[], counts bigint[], share float8) returns float8
language sql immutable parallel safe as $$
    select case when b = 0 then 0.5 else power(2, (b - 0.5) / 2.0) end / 1000
      from (select c.b, sum(c.n) over (order by c.b) as seen, sum(c.n) over () as total from unnest(buckets, counts) c(b, n)) x
     where total > 0 and seen >= greatest(1, ceil(total * share))
     order by b limit 1
$$;

-- A number in groups of seven bits, the highest first; every byte but the last has its eighth bit set. Up to 2^49.
create or replace function millrace.sample_varint(x bigint) returns bytea
language sql immutable parallel safe as $$
    select case
        when x < 128 then substring(int8send(x) from 8)
        when x < 16384 then substring(int8send((((x >> 7) | 128) << 8) | (x & 127)) from 7)
        when x < 2097152 then substring(int8send((((x >> 14) | 128) << 16) | ((((x >> 7) & 127) | 128) << 8) | (x & 127)) from 6)
        when x < 268435456 then substring(int8send((((x >> 21) | 128) << 24) | ((((x >> 14) & 127) | 128) << 16) | ((((x >> 7) & 127) | 128) << 8) | (x & 127)) from 5)
        else (select substring(int8send((((y >> 42) | 128) << 48) | ((((y >> 35) & 127) | 128) << 40) | ((((y >> 28) & 127) | 128) << 32)
                | ((((y >> 21) & 127) | 128) << 24) | ((((y >> 14) & 127) | 128) << 16) | ((((y >> 7) & 127) | 128) << 8) | (y & 127)) from 2)
                from (select least(x, 562949953421311) as y) z) end
$$;

-- A sum with nine bits: below 512 as it is, above as its exponent and nine bits, rounded. At most two bytes.
create or replace function millrace.sample_brief(x bigint) returns bigint
language sql immutable parallel safe as $$
    select case when x < 512 then x else e * 256 + ((x + (1::bigint << (e - 1))) >> e) end
      from (select greatest(1, floor(ln(greatest(x, 1)) / ln(2))::int - 8) as e) z
$$;

create or replace function millrace.sample_unbrief(code bigint) returns bigint
language sql immutable parallel safe as $$
    select case when code < 512 then code else (code - (code / 256 - 1) * 256) << (code / 256 - 1)::int end
$$;

-- The numbers of a packed row that are not zero, with their places from 0.
create or replace function millrace.sample_decode(body bytea) returns table (i int, v bigint)
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
    p int := 0;
    size int := length(body);
    b int;
    zeros boolean := false;
begin
    i := -1;
    v := 0;
    while p < size loop
        b := get_byte(body, p);
        p := p + 1;
        if b > 127 then
            v := (v | (b & 127)) << 7;
        else
            v := v | b;
            if zeros then                                 -- the length of a run of zeros
                i := i + v::int;
                zeros := false;
            elsif v = 0 then
                zeros := true;
            else
                i := i + 1;
                return next;
            end if;
            v := 0;
        end if;
    end loop;
end $$;

-- Packs the next chunk that is over, of at most `most` keys. True: it did something, and there may be more.
create or replace function millrace.sample_fold(most int default 10) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    t timestamptz := millrace.now();
    slots constant int := millrace.sample_slots();
    d record;
    span interval;
    finer int;
    rule text;
    batch int[];
    first timestamptz;
begin
    for d in
        select f.* from millrace.sample_done f
         where f.upto + make_interval(secs => f.step * slots + 30) <= t
           -- A coarse step waits for the finer one.
           and (f.step = 10 or f.step = 60 and f.what = 6 or exists (select from millrace.sample_done n
                                       where n.what = f.what and n.step = case f.step when 60 then 10 else 60 end and n.upto >= f.upto + make_interval(secs => f.step * slots)))
         order by f.step, f.upto, f.what limit 1
    loop
        span := make_interval(secs => d.step * slots);
        finer := case d.step when 60 then case when d.what <> 6 then 10 end when 600 then 60 end;
        rule := millrace.sample_fold_of(d.what);
        if finer is null then
            first := (select f.at from millrace.sample_fresh f where f.what = d.what and f.at >= d.upto order by f.at limit 1);
            batch := array(select distinct k from millrace.sample_fresh f cross join lateral unnest(f.keys) k
                            where f.what = d.what and f.at >= d.upto and f.at < d.upto + span and k > d.key_done order by k limit most);
        else
            first := (select min(p.at) from millrace.sample_pack p where p.what = d.what and p.step = finer and p.at >= d.upto);
            batch := array(select distinct p.key from millrace.sample_pack p
                            where p.what = d.what and p.step = finer and p.at >= d.upto and p.at < d.upto + span and p.key > d.key_done order by p.key limit most);
        end if;
        if batch = '{}' and d.key_done = 0 then
            -- Nobody sampled then: go on where there is something.
            update millrace.sample_done f set upto = greatest(d.upto + span, least(
                date_bin(span, coalesce(first, t), timestamptz '2000-01-01 00:00+00'), date_bin(span, t, timestamptz '2000-01-01 00:00+00')))
             where f.what = d.what and f.step = d.step;
            return true;
        end if;

        insert into millrace.sample_pack (what, step, key, at, body)
        with numbers as materialized (
            select f.keys[((e.i - 1) / length(rule))::int + 1] as key, (e.i - 1) % length(rule) as c, e.v, date_part('epoch', f.at - d.upto)::int / d.step as slot
              from millrace.sample_fresh f cross join lateral unnest(f.vals) with ordinality e(v, i)
             where finer is null and f.what = d.what and f.at >= d.upto and f.at < d.upto + span and e.v > 0
               and f.keys && batch
            union all
            select p.key, e.i / slots, case when substr(rule, e.i / slots + 1, 1) = 'f' then millrace.sample_unbrief(e.v) else e.v end, (date_part('epoch', p.at - d.upto)::int + e.i % slots * finer) / d.step
              from millrace.sample_pack p cross join lateral millrace.sample_decode(p.body) e
             where finer is not null and p.what = d.what and p.step = finer and p.key = any (batch) and p.at >= d.upto and p.at < d.upto + span
        ), folded as (
            select n.key, n.c * slots + n.slot as i, case when substr(rule, n.c::int + 1, 1) = 'm' then max(n.v) else sum(n.v)::bigint end as v
              from numbers n where n.key = any (batch) group by n.key, n.c, n.slot
        ), gaps as (
            select f.key, f.i, case when substr(rule, (f.i / slots)::int + 1, 1) = 'f' then millrace.sample_brief(f.v) else f.v end as v, f.i - coalesce(lag(f.i) over (partition by f.key order by f.i), -1) - 1 as zeros from folded f
        )
        select d.what, d.step, g.key, d.upto,
               string_agg(case when g.zeros > 0 then decode('00', 'hex') || millrace.sample_varint(g.zeros) else '' end || millrace.sample_varint(g.v), '' order by g.i)
          from gaps g group by g.key
            on conflict do nothing;
        if cardinality(batch) = most then
            update millrace.sample_done f set key_done = batch[most] where f.what = d.what and f.step = d.step;
        else
            update millrace.sample_done f set key_done = 0, upto = d.upto + span where f.what = d.what and f.step = d.step;
            perform millrace.sample_trim(d.what, t);
        end if;
        return true;
    end loop;
    return false;
end $$;

-- Deletes what is kept no longer, and what was packed: when a chunk has ended, so a bounded number each time.
create or replace function millrace.sample_trim(the_what int, t timestamptz) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.sample_fresh f
     where f.what = the_what and f.at < (select d.upto from millrace.sample_done d where d.what = the_what and d.step = case the_what when 6 then 60 else 10 end);
    delete from millrace.sample_pack p
     where p.what = the_what and p.step = 10
       and p.at < least(t - interval '1 day 30 minutes', (select d.upto from millrace.sample_done d where d.what = the_what and d.step = 60));
    delete from millrace.sample_pack p where p.what = the_what and p.step = 60 and p.at < t - case the_what when 6 then interval '1 day 3 hours' else interval '14 days 3 hours' end
       and p.at < (select d.upto from millrace.sample_done d where d.what = the_what and d.step = 600);
    delete from millrace.sample_pack p where p.what = the_what and p.step = 600 and p.at < t - interval '15 days 6 hours';
    delete from millrace.sample_key k where k.what = the_what and k.seen_at < t - interval '16 days';
    delete from millrace.fleet_event e where the_what = 1 and e.at < t - interval '90 days';
end $$;
