-- How long ended jobs stay, by queue and by how they ended. A queue's class is that of its succeeded jobs and of the leaf in which its runs
-- are recorded; cancelled and dead jobs may have classes of their own. Jobs that stay longer than their leaf are moved before it is
-- dropped, because they are few; jobs that stay less long are deleted.

create or replace function millrace.retention_names() returns text[]
language sql immutable parallel safe as $$ select array['short', 'standard', 'long'] $$;

-- short: 1 day, standard: 14 days, long: a year. Without a state for all of them.
create or replace function millrace.retention_set(queue text, class text, state text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    n int := array_position(millrace.retention_names(), retention_set.class) - 1;
    old record;
    new record;
begin
    if n is null then
        perform millrace.refuse(format('the retention %L is unknown', left(retention_set.class, 60)), 'class', 'Give short, standard or long.');
    end if;
    if state not in ('succeeded', 'cancelled', 'dead') then
        perform millrace.refuse(format('%L is not an outcome of a job', left(state, 60)), 'state', 'Give succeeded, cancelled or dead; null is all.');
    end if;
    perform millrace.queue_id(retention_set.queue);
    select q.id, q.retention as succeeded, coalesce(q.retention_cancelled, q.retention) as cancelled, coalesce(q.retention_dead, q.retention) as dead
      into strict old from millrace.queue q where q.name = retention_set.queue and q.main is null for update;
    select case when coalesce(state, 'succeeded') = 'succeeded' then n else old.succeeded end as succeeded,
           case when coalesce(state, 'cancelled') = 'cancelled' then n else old.cancelled end as cancelled,
           case when coalesce(state, 'dead') = 'dead' then n else old.dead end as dead into new;
    update millrace.queue q set retention_cancelled = nullif(new.cancelled, new.succeeded), retention_dead = nullif(new.dead, new.succeeded)
     where q.id = old.id;
    update millrace.queue q set retention = new.succeeded where q.name = retention_set.queue;      -- its lines have a copy
    if (new.succeeded, new.cancelled, new.dead) is not distinct from (old.succeeded::int, old.cancelled::int, old.dead::int) then
        return false;
    end if;
    perform millrace.audited('queue.retention', retention_set.queue, jsonb_build_object('class', class, 'state', state), caller => retention_set.caller);
    return true;
end $$;
select millrace.door_is('operating', 'retention_set', 'admin', 'staff', audited => true);

create or replace function millrace.retentions() returns table (queue text, succeeded text, cancelled text, dead text)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select q.name, n[q.retention + 1], n[coalesce(q.retention_cancelled, q.retention) + 1], n[coalesce(q.retention_dead, q.retention) + 1]
      from millrace.queue q cross join millrace.retention_names() n where q.main is null
$$;
select millrace.door_is('operating', 'retentions', 'worker, viewer', 'staff');

-- The queues, with all their lines, whose jobs of one outcome stay in another class than this one: longer, or else shorter.
create or replace function millrace.staying(the_outcome int, the_class int, longer boolean) returns table (queue int, class int)
language sql stable as $$
    select q.id, s.class::int from millrace.queue q
      join millrace.queue m on m.id = coalesce(q.main, q.id)
     cross join lateral (select case the_outcome when 2 then m.retention_cancelled when 3 then m.retention_dead end as class) s
     where case when longer then s.class > the_class else s.class < the_class end
$$;

-- Moves records that must stay longer than this leaf, at most `most`, together with the errors of those jobs that stand beside it. Returns
-- how many ended jobs that were. Rows that an open transaction holds are skipped.
create or replace function millrace.history_keep(the_leaf text, the_class int, most int) returns int
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    -- All columns by name, so that a column that is added later is moved as well.
    names text := (select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_attribute a
                    where a.attrelid = 'millrace.history'::regclass and a.attnum > 0 and not a.attisdropped and a.attname <> 'class');
    outcome int;
    class int;
    queues int[];
    errors bigint[];
    first timestamptz;
    last timestamptz;
    n int;
    moved int := 0;
begin
    for outcome, class, queues in
        select o, s.class, array_agg(s.queue) from unnest(array[2, 3]) o cross join lateral millrace.staying(o, the_class, true) s
         group by o, s.class
    loop
        -- Errors are found by the ends of their jobs, which may be in another leaf of the class.
        execute format('select array(select h.id from millrace.%I h where h.outcome > 3 and h.id = any (array(
                select f.id from millrace.history f where f.class = $1 and f.outcome = $2 and f.outcome <> 1 and f.queue = any ($3))))', the_leaf)
           into errors using the_class::smallint, outcome, queues;
        execute format('select min(h.started), max(h.started) from millrace.%I h
                where (h.outcome = $1 and h.outcome <> 1 and h.queue = any ($2)) or (h.outcome > 3 and h.id = any ($3))', the_leaf)
           into first, last using outcome, queues, errors;
        continue when first is null;
        perform millrace.history_leaves(class, first, last);  -- older, perhaps, than any that was made ahead
        execute format('with gone as (
                delete from millrace.%1$I h where h.outcome > 3 and h.id = any ($1) returning h.*)
            insert into millrace.history (%2$s, class) select %2$s, $2 from gone', the_leaf, names)
          using errors, class::smallint;
        execute format('with gone as (
                delete from millrace.%1$I h where h.ctid = any (array(
                    select x.ctid from millrace.%1$I x where x.outcome = $1 and x.outcome <> 1 and x.queue = any ($2) limit $3 for update skip locked))
                returning h.*)
            insert into millrace.history (%2$s, class) select %2$s, $4 from gone', the_leaf, names)
          using outcome, queues, most - moved, class::smallint;
        get diagnostics n = row_count;
        moved := moved + n;
        exit when moved >= most;
    end loop;
    return moved;
end $$;

-- True while this leaf holds what stays longer.
create or replace function millrace.history_is_needed(the_leaf text, the_class int) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    needed boolean;
begin
    execute format('select exists (select from unnest(array[2, 3]) o cross join lateral millrace.staying(o, $1, true) s
            cross join lateral (select from millrace.%I h where h.outcome = o and h.outcome <> 1 and h.queue = s.queue limit 1) one)', the_leaf)
       into needed using the_class;
    return needed;
end $$;

-- The leaves of a class that these times need.
create or replace function millrace.history_leaves(the_class int, first timestamptz, last timestamptz) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    unit text := case the_class when 2 then 'month' else 'day' end;
    lower timestamp := date_trunc(unit, first at time zone 'UTC');
begin
    while lower <= last at time zone 'UTC' loop
        perform millrace.history_leaf(the_class, lower at time zone 'UTC', (lower + ('1 ' || unit)::interval) at time zone 'UTC');
        lower := lower + ('1 ' || unit)::interval;
    end loop;
end $$;

-- Deletes jobs whose retention is shorter than that of their leaf, with everything known of them; at most `most`.
create or replace function millrace.history_shorten(most int) returns int
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    one record;
    ids bigint[];
    deleted int := 0;
begin
    for one in
        select o as outcome, c as class, s.class as keep, array_agg(s.queue) as queues
          from unnest(array[2, 3]) o cross join generate_series(1, 2) c cross join lateral millrace.staying(o, c, false) s
         group by o, c, s.class
    loop
        ids := array(
            select h.id from millrace.history h
             where h.class = one.class::smallint and h.outcome = one.outcome and h.outcome <> 1 and h.queue = any (one.queues)
               and h.finished < millrace.now() - millrace.retention_span(one.keep)
               and h.started < millrace.now() - millrace.retention_span(one.keep)  -- the leaves that can hold them
             limit most - deleted for update skip locked);
        perform millrace.history_forget(ids);
        deleted := deleted + cardinality(ids);
        exit when deleted >= most;
    end loop;
    return deleted;
end $$;
