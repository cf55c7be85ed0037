-- Jobs that have ended, newest first below `top`, by what their runs say: of `most` of them those that fit. An ended run has its job's queue and kind, so
-- that jobs which do not fit are not looked for. Errors and times are compared of dead jobs only: their last run is the one that stands here.
-- looked: how many were looked at; last: the lowest of them.
create or replace function millrace.ended_ids(
    state text, lines int[], kinds int[], the_error text, since timestamptz, until timestamptz, top bigint, most int, out ids bigint[], out looked int, out last bigint
)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    fits text := concat_ws(' and ', 'true', case when lines is not null then 'n.queue = any ($1)' end, case when kinds is not null then 'n.kind = any ($2)' end,
        case when state = 'dead' and the_error is not null then 'position(lower($3) in lower(n.error)) > 0' end,
        case when state = 'dead' and since is not null then 'n.finished >= $4' end, case when state = 'dead' and until is not null then 'n.finished < $5' end);
begin
    execute format('
        select coalesce(array_agg(n.id order by n.id desc) filter (where %s), ''{}''), count(*), min(n.id)
          from (select h.id, h.queue, h.kind, h.error, h.finished from millrace.history h where h.outcome = %s and h.id < $6 order by h.id desc limit $7) n',
        -- The outcome as a constant: the index of the few names it.
        fits, case state when 'succeeded' then '1' when 'cancelled' then '2 and h.outcome <> 1' else '3 and h.outcome <> 1' end)
       into ids, looked, last using lines, kinds, the_error, since, until, top, most;
end $$;

-- Finds jobs by everything that people may remember of them. Most conditions have no index, so a call looks at `most` jobs at most, newest
-- first, and says where to continue: many short calls instead of one that takes minutes. `retrying` is a scheduled job whose last run
-- failed, `waiting` one that waits in the middle of its work. the_group: the job's last error is in this group of failures. the_field, the_value: found by the index of the kind's field, in place of the
-- state's.
create or replace function millrace.jobs_find(
    the_state text, the_queue text default null, the_kind text default null, the_tag text default null, the_tenant text default null,
    the_unique text default null, the_limit_key text default null, the_error text default null, since timestamptz default null,
    until timestamptz default null, after bigint default null, page int default 500, most int default 20000,
    the_group bigint default null, the_field text default null, the_value text default null,
    out ids bigint[], out looked int, out next bigint
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_variable
declare
    -- By queue where the state's table has an index for it.
    narrow text := case when the_state = 'ready' then the_queue end;
    lines int[] := case when the_queue is not null then millrace.queue_ids(the_queue) end;
    kind_ids int[] := case when the_kind is not null then millrace.kind_ids(the_kind) end;
    state text := case when the_state = 'retrying' then 'scheduled' else the_state end;
    needs_run boolean := the_state = 'retrying' or the_error is not null or the_group is not null or since is not null or until is not null;
    -- Without a condition, what is looked at is what is shown.
    size int := case when coalesce(the_queue, the_kind, the_tag, the_tenant, the_unique, the_limit_key, the_error, the_field, the_group::text, since::text, until::text) is null
                       and the_state <> 'retrying' then page else 500 end;
    -- What has ended is looked through by its runs where they say something of the conditions.
    by_run boolean := the_state in ('succeeded', 'cancelled', 'dead') and the_field is null
        and (coalesce(the_queue, the_kind, the_group::text) is not null or the_state = 'dead' and coalesce(the_error, since::text, until::text) is not null);
    batch bigint[];
    hits bigint[];
    failure millrace.failure_group;
    further bigint;
    seen int;
begin
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    if most is null or most not between 1 and 100000 then
        perform millrace.refuse('most must be 1 to 100000', 'most');
    end if;
    ids := '{}';
    looked := 0;
    next := after;
    if the_group is not null then
        perform millrace.failures_fold();
        select g.* into failure from millrace.failure_group g where g.id = the_group;
        next := least(coalesce(next, 9223372036854775807), failure.hi + 1);
    end if;
    if lines = '{}' or kind_ids = '{}' or (the_group is not null and failure.id is null) then
        next := null;
        return;
    end if;
    if the_field is not null and the_kind is null then
        perform millrace.refuse('a field is given without a kind', 'kind', 'Fields belong to a kind: name the kind, too.');
    end if;
    loop
        if by_run then
            size := least(size, greatest(500, most - looked));
            select e.ids, e.looked, case when e.looked = size then e.last end into batch, seen, further
              from millrace.ended_ids(state, lines, case when the_group is null then kind_ids when kind_ids is null or failure.kind = any (kind_ids) then array[failure.kind] else '{}' end,
                       the_error, since, until, coalesce(next, 9223372036854775807), size) e;
            size := size * 4;                             -- where few fit, in few statements
        elsif the_field is null then
            batch := array(select i from millrace.job_ids(state, narrow, null, null, next, size) i order by i desc);
        else
            select f.ids, f.next into batch, further from millrace.jobs_by_field(the_kind, the_field, the_value, next, 500) f;
        end if;
        hits := array(
            select b.id from unnest(batch) b(id)
              left join millrace.job j on j.id = b.id
              left join lateral (
                select h.queue, h.kind, h.outcome, h.finished, h.error from millrace.history h
                 -- Of jobs that do not fit anyway their runs are not looked for. A dead job may be gone, and its run be all that is kept.
                 where (needs_run or the_state = 'dead' and j.id is null)
                   and (j.id is null or (lines is null or j.queue = any (lines)) and (kind_ids is null or j.kind = any (kind_ids))
                        and (the_tag is null or the_tag = any (j.tags)) and (the_tenant is null or j.tenant = the_tenant)
                        and (the_unique is null or j.unique_key = the_unique) and (the_limit_key is null or j.limit_key = the_limit_key)
                        and (the_group is null or j.kind = failure.kind))
                   and h.id = b.id and (h.error is not null or h.outcome = 3) order by h.finished desc limit 1) h on true
             where (lines is null or coalesce(j.queue, h.queue) = any (lines)) and (kind_ids is null or coalesce(j.kind, h.kind) = any (kind_ids))
               and (the_tag is null or the_tag = any (j.tags)) and (the_tenant is null or j.tenant = the_tenant)
               and (the_unique is null or j.unique_key = the_unique) and (the_limit_key is null or j.limit_key = the_limit_key)
               and (the_group is null or millrace.failure_is_of(failure, coalesce(j.kind, h.kind), h.error))
               and (the_field is null or case when the_state = 'waiting' then millrace.wait_of(b.id) is not null
                        else exists (select from millrace.job(b.id) v where v.state = state) end)
               and (the_error is null or position(lower(the_error) in lower(h.error)) > 0)
               and (since is null or h.finished >= since) and (until is null or h.finished < until)
               and (the_state <> 'retrying' or exists (
                    select from millrace.timer d where d.job = b.id and (d.attempt > 0 or d.crashes > 0) and h.outcome in (4, 7)))
             order by b.id desc limit page - cardinality(ids));
        ids := ids || hits;
        looked := looked + coalesce(seen, cardinality(batch));
        if cardinality(ids) >= page then
            next := ids[page];
            return;
        end if;
        next := case when by_run or the_field is not null then further else batch[size] end;
        if next is null or next <= failure.lo then
            next := null;                                 -- that was all
            return;
        end if;
        exit when looked >= most;
    end loop;
end $$;
select millrace.door_is('queue', 'jobs_find', 'admin, viewer', 'staff');

-- The last errors of these jobs, similar errors together. An error is its first line, with # for every number, because the same trouble
-- rarely has the same numbers. example: one of the jobs. dropped: jobs whose arguments are no longer kept, which cannot run again.
create or replace function millrace.job_errors(ids bigint[])
returns table (kind text, error text, jobs bigint, dropped bigint, first_at timestamptz, last_at timestamptz, example bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    if job_errors.ids is null or cardinality(job_errors.ids) > 500 then
        perform millrace.refuse('ids must be at most 500', 'ids');
    end if;
    return query
    select k.name, s.error, count(*), count(*) filter (where s.dropped), min(s.finished), max(s.finished), max(s.id)
      from (select b.id, h.kind, h.finished, not exists (select from millrace.job j where j.id = b.id) as dropped,
                   millrace.error_gist(h.error) as error
              from unnest(job_errors.ids) b(id)
             cross join lateral (
                select h.kind, h.finished, h.error from millrace.history h
                 where h.id = b.id and h.error is not null order by h.finished desc limit 1) h) s
      join millrace.kind k on k.id = s.kind
     group by k.name, s.error order by 3 desc, 1, 2;
end $$;
select millrace.door_is('queue', 'job_errors', 'admin, viewer', 'staff');
