-- Failures grouped by cause: kind, class and gist of the error. Workers tell with each beat what has failed (see beat), rescue adds what
-- crashed, and a fold adds these notes up. So a look costs the same however many jobs are dead.

-- What groups were called before failure_gist: # for numbers, UUIDs and eight or more hexadecimal digits. Those of that time keep their names
-- until they expire, and their jobs are found by it.
create or replace function millrace.failure_gist_before(error text) returns text
language sql immutable parallel safe as $$
    select left(regexp_replace(regexp_replace(regexp_replace(regexp_replace(left(split_part(error, E'\n', 1), 1000), '^attempt [0-9]+ of [0-9]+: ', ''),
        '[^[:space:]<>"''(),;:@]+@[^[:space:]<>"''(),;:@]+', '<address>', 'g'),
        E'\\m([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?=[a-f]*[0-9])[0-9a-f]{8,})\\M', '#', 'gi'),
        '[0-9]+', '#', 'g'), 120)
$$;

-- Its class: a word of ErrorClass if the error begins with one, else what the engine says, else error.
create or replace function millrace.failure_class(error text) returns text
language sql immutable parallel safe as $$
    select case
        when error is null then 'other'
        when error ~ '^worker .* while the job ran or waited there' then 'crash'
        when error ~ '^quarantined: ' then 'quarantine'
        when error ~ '^(attempt [0-9]+ of [0-9]+: )?timed out: ' then 'timeout'
        when error ~ '^(attempt [0-9]+ of [0-9]+: )?the arguments do not fit ' then 'arguments'
        when error ~ '^(attempt [0-9]+ of [0-9]+: )?(MILLRACE_ENCRYPTION_KEY |the arguments (are (not )?encrypted|do not open|of [^ ]+ are to be encrypted|say that they are))' then 'key'
        else coalesce((regexp_match(error,
            '^(?:attempt [0-9]+ of [0-9]+: )?(transient|timeout|unavailable|throttled|quota|authentication|permission|not_found|conflict|invalid|too_large|unsupported|unknown|cancelled|internal)(?: [(]|: )'))[1],
            'error') end
$$;

-- Whether an error belongs to this group; what has no group of its own belongs to that of the other errors.
create or replace function millrace.failure_is_of(the_group millrace.failure_group, the_kind int, error text) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if error is null or the_kind <> the_group.kind then
        return false;
    end if;
    if the_group.class <> 'other' then
        -- What stands before the first thing that was folded is the error's own beginning: most others are told apart by it.
        if the_group.class not in ('crash', 'quarantine')
           and not starts_with(regexp_replace(left(error, 200), '^attempt [0-9]+ of [0-9]+: ', ''), substring(the_group.gist from '^[^#<"''`]*')) then
            return false;
        end if;
        -- Not more expressions at once than Postgres keeps prepared.
        if millrace.failure_gist(error) <> the_group.gist and millrace.failure_gist_before(error) <> the_group.gist then
            return false;
        end if;
        return millrace.failure_class(error) = the_group.class;
    end if;
    return not exists (select from millrace.failure_group g
        where g.kind = the_kind and g.class = millrace.failure_class(error)
          and g.gist in (millrace.failure_gist(error), millrace.failure_gist_before(error)));
end $$;

-- Adds the notes up. A kind has 200 groups at most, one of them for all others. One session at a time does it; in a transaction that may
-- not write or sees an old state it is left to the next. Returns how many notes there were.
create or replace function millrace.failures_fold(most int default 5000) returns int
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    n int;
begin
    if current_setting('transaction_read_only') = 'on' or current_setting('transaction_isolation') <> 'read committed'
       or not exists (select from millrace.failure_note) or not millrace.turn_try('failures') then
        return 0;
    end if;
    with taken as (
        delete from millrace.failure_note f where f.n = any (array(select x.n from millrace.failure_note x order by x.n limit most)) returning f.*
    ), said as materialized (
        select t.kind, coalesce(q.main, t.queue) as queue, millrace.failure_class(t.error) as class, millrace.failure_gist(t.error) as gist,
               t.first_at, t.at, p.version, t.failed, t.dead, t.jobs, t.lo, t.hi
          from taken t left join millrace.queue q on q.id = t.queue left join millrace.process p on p.session = t.session
    ), fresh as (
        select s.kind, s.class, s.gist, row_number() over (partition by s.kind order by sum(s.failed) desc, s.class, s.gist) as place
          from said s
         where s.class <> 'other' and not exists (select from millrace.failure_group g where g.kind = s.kind and g.class = s.class and g.gist = s.gist)
         group by s.kind, s.class, s.gist
    ), crowded as (
        select f.kind, f.class, f.gist from fresh f
         where f.place + (select count(*) from millrace.failure_group g where g.kind = f.kind and g.class <> 'other') >= millrace.counted('failures')
    ), placed as materialized (
        select s.kind, s.queue, case when c.kind is null then s.class else 'other' end as class,
               case when c.kind is null then s.gist else millrace.failure_gist(null) end as gist,
               s.first_at, s.at, s.version, s.failed, s.dead, s.jobs, s.lo, s.hi
          from said s left join crowded c on c.kind = s.kind and c.class = s.class and c.gist = s.gist
    ), latest as (
        select l.kind, l.class, l.gist, (array_agg(l.job order by l.at desc, l.job desc))[1:20] as jobs
          from (select p.kind, p.class, p.gist, j.job, max(p.at) as at
                  from placed p cross join lateral unnest(p.jobs) j(job) group by p.kind, p.class, p.gist, j.job) l
         group by l.kind, l.class, l.gist
    ), summed as (
        select p.kind, p.class, p.gist, min(p.first_at) as first_at, max(p.at) as last_at,
               (array_agg(p.version order by p.first_at, p.version) filter (where p.version is not null))[1] as first_version,
               (array_agg(p.version order by p.at desc, p.version desc) filter (where p.version is not null))[1] as last_version,
               sum(p.failed) as failed, sum(p.dead) as dead, min(p.lo) as lo, max(p.hi) as hi
          from placed p group by p.kind, p.class, p.gist
    ), grouped as (
        insert into millrace.failure_group as g (kind, class, gist, first_at, last_at, first_version, last_version, failed, dead, examples, lo, hi)
        select s.kind, s.class, s.gist, s.first_at, s.last_at, s.first_version, s.last_version, s.failed, s.dead, coalesce(l.jobs, '{}'), s.lo, s.hi
          from summed s left join latest l using (kind, class, gist)
            on conflict (kind, class, gist) do update
           set first_version = case when excluded.first_at < g.first_at then coalesce(excluded.first_version, g.first_version)
                                    else coalesce(g.first_version, excluded.first_version) end,
               last_version = case when excluded.last_at >= g.last_at then coalesce(excluded.last_version, g.last_version)
                                   else coalesce(g.last_version, excluded.last_version) end,
               examples = (select array(
                    select x.job from (
                        select e.job, e.place from unnest(case when excluded.last_at >= g.last_at then excluded.examples || g.examples
                                                               else g.examples || excluded.examples end) with ordinality e(job, place)) x
                     group by x.job order by min(x.place) limit 20)),
               first_at = least(g.first_at, excluded.first_at), last_at = greatest(g.last_at, excluded.last_at),
               failed = g.failed + excluded.failed, dead = g.dead + excluded.dead, lo = least(g.lo, excluded.lo), hi = greatest(g.hi, excluded.hi)
        returning g.id, g.kind, g.class, g.gist
    ), by_queue as (
        insert into millrace.failure_place as f (failure, queue, first_at, last_at, failed, dead)
        select g.id, p.queue, min(p.first_at), max(p.at), sum(p.failed), sum(p.dead)
          from placed p join grouped g using (kind, class, gist) group by g.id, p.queue
            on conflict (failure, queue) do update
           set first_at = least(f.first_at, excluded.first_at), last_at = greatest(f.last_at, excluded.last_at),
               failed = f.failed + excluded.failed, dead = f.dead + excluded.dead
    )
    select count(*) into n from taken;
    return n;
end $$;

-- Notes the failures from before the groups were, newest first, `most` runs a statement and for as long as `budget` allows; folds; and
-- deletes groups that were last seen 30 days ago. Called by maintain.
create or replace function millrace.failures_keep(budget interval default '1 s', most int default 5000) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    until timestamptz := clock_timestamp() + budget;
    one record;
    low bigint;
    n int;
begin
    loop
        n := millrace.failures_fold(most);
        exit when clock_timestamp() >= until;
        continue when n >= most;
        select * into one from millrace.failure_past p order by p.outcome limit 1;
        exit when not found;
        select min(h.id) into low from (
            select x.id from millrace.history x
             where x.outcome = one.outcome and x.outcome <> 1 and x.id < one.below order by x.id desc limit most) h;
        if low is null then
            delete from millrace.failure_past p where p.outcome = one.outcome;
            continue;
        end if;
        insert into millrace.failure_note (first_at, at, session, queue, kind, error, failed, dead, jobs, lo, hi)
        select min(h.finished), max(h.finished), h.session, h.queue, h.kind, min(h.error), count(*), count(*) filter (where h.outcome = 3),
               (array_agg(h.id order by h.finished desc))[1:20], min(h.id), max(h.id)
          from millrace.history h
         where h.outcome = one.outcome and h.outcome <> 1 and h.id >= low and h.id < one.below and h.finished < one.until
         group by h.session, h.queue, h.kind, millrace.failure_class(h.error), millrace.failure_gist(h.error);
        update millrace.failure_past p set below = low where p.outcome = one.outcome;
    end loop;
    delete from millrace.failure_group g where g.id = any (array(
        select x.id from millrace.failure_group x where x.last_at < millrace.now() - interval '30 days' order by x.last_at limit 1000));
end $$;

-- What fails, a page at a time. since: last seen since then. the_queue: counts and times are those of the queue. sort: last, first, failed or
-- dead, the largest first. after: the id of the last group of the page before. rest: this is the group of errors that have none of their own.
create or replace function millrace.failure_groups(
    since timestamptz default null, the_kind text default null, the_queue text default null, after bigint default null, page int default 50,
    sort text default 'last'
) returns table (id bigint, kind text, class text, gist text, first_at timestamptz, last_at timestamptz, first_version text, last_version text,
    failed bigint, dead bigint, queues text[], examples bigint[], rest boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    main int := (select q.id from millrace.queue q where q.name = the_queue and q.main is null);
begin
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    if sort is null or sort not in ('last', 'first', 'failed', 'dead') then
        perform millrace.refuse(format('groups cannot be sorted by %L', left(sort, 60)), 'sort', 'Give last, first, failed or dead.');
    end if;
    perform millrace.failures_fold();
    return query
    with all_groups as (
        select g.id, g.kind, g.class, g.gist, g.first_version, g.last_version, g.examples,
               coalesce(p.first_at, g.first_at) as first_at, coalesce(p.last_at, g.last_at) as last_at,
               coalesce(p.failed, g.failed) as failed, coalesce(p.dead, g.dead) as dead
          from millrace.failure_group g
          left join millrace.failure_place p on p.failure = g.id and p.queue = main
         where (the_queue is null or p.failure is not null)
    ), ranked as (
        select g.*, case sort when 'last' then extract(epoch from g.last_at) when 'first' then extract(epoch from g.first_at)
                              when 'failed' then g.failed else g.dead end::numeric as rank
          from all_groups g
    )
    select g.id, k.name, g.class, g.gist, g.first_at, g.last_at, g.first_version, g.last_version, g.failed, g.dead,
           array(select q.name from millrace.failure_place p join millrace.queue q on q.id = p.queue where p.failure = g.id order by p.failed desc, q.name limit 100),
           g.examples, g.class = 'other'
      from ranked g join millrace.kind k on k.id = g.kind
     where (since is null or g.last_at >= since) and (the_kind is null or k.name = the_kind)
       and (after is null or (g.rank, g.id) < (select x.rank, x.id from ranked x where x.id = after))
     order by g.rank desc, g.id desc limit page;
end $$;
select millrace.door_is('queue', 'failure_groups', 'admin, viewer', 'staff');

create or replace function millrace.failure_group(the_group bigint)
returns table (id bigint, kind text, class text, gist text, first_at timestamptz, last_at timestamptz, first_version text, last_version text,
    failed bigint, dead bigint, queues text[], examples bigint[], rest boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
begin
    perform millrace.failures_fold();
    return query
    select g.id, k.name, g.class, g.gist, g.first_at, g.last_at, g.first_version, g.last_version, g.failed, g.dead,
           array(select q.name from millrace.failure_place p join millrace.queue q on q.id = p.queue where p.failure = g.id order by p.failed desc, q.name limit 100),
           g.examples, g.class = 'other'
      from millrace.failure_group g join millrace.kind k on k.id = g.kind where g.id = the_group;
end $$;
select millrace.door_is('queue', 'failure_group', 'admin, viewer', 'staff');

-- The dead and retrying jobs of a group, newest first. It looks at `most` jobs at most and says where to go on, like jobs_find; a group
-- knows its smallest and largest job, so that only those between them are looked at.
create or replace function millrace.failure_group_jobs(
    id bigint, after bigint default null, page int default 500, most int default 20000,
    out ids bigint[], out states text[], out looked int, out next bigint
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_variable
declare
    it millrace.failure_group;
    seen record;
begin
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    if most is null or most not between 1 and 100000 then
        perform millrace.refuse('most must be 1 to 100000', 'most');
    end if;
    ids := '{}'; states := '{}'; looked := 0;
    perform millrace.failures_fold();
    select g.* into it from millrace.failure_group g where g.id = failure_group_jobs.id;
    if not found then
        return;
    end if;
    next := least(coalesce(after, 9223372036854775807), it.hi + 1);
    loop
        with near as materialized (
            (select h.id as job, true as is_dead, h.kind, h.error from millrace.history h
              where h.outcome = 3 and h.outcome <> 1 and h.id < next and h.id >= it.lo order by h.id desc limit 500)
            union all
            (select d.job, false, case when d.attempt > 0 or d.crashes > 0 then d.kind end, null from millrace.timer d
              where d.job < next and d.job >= it.lo order by d.job desc limit 500)
             order by job desc limit 500
        ), hits as (
            select n.job, n.is_dead from near n
             where n.kind = it.kind and millrace.failure_is_of(it, n.kind, case when n.is_dead then n.error else (
                select h.error from millrace.history h where h.id = n.job and h.outcome in (4, 7) order by h.finished desc limit 1) end)
             order by n.job desc limit page - cardinality(ids)
        )
        select (select count(*)::int from near) as n, (select min(n.job) from near n) as low,
               array(select h.job from hits h order by h.job desc) as jobs,
               array(select case when h.is_dead then 'dead' else 'retrying' end from hits h order by h.job desc) as states
          into seen;
        ids := ids || seen.jobs;
        states := states || seen.states;
        looked := looked + seen.n;
        if cardinality(ids) >= page then
            next := ids[page];
            return;
        end if;
        if seen.n < 500 then
            next := null;                                 -- that was all
            return;
        end if;
        next := seen.low;
        exit when looked >= most;
    end loop;
end $$;
select millrace.door_is('queue', 'failure_group_jobs', 'admin, viewer', 'staff');

-- An error without what differs from run to run: its first line, with # for every number.
create or replace function millrace.error_gist(error text) returns text
language sql immutable parallel safe as $$
    select left(regexp_replace(regexp_replace(split_part(error, E'\n', 1), E'^attempt \\d+ of \\d+: ', ''), E'\\d+', '#', 'g'), 120)
$$;
