-- Dead letters: which they are, and why they died. Redriven by millrace.retry, deleted by millrace.job_delete, a page at a time by
-- millrace.jobs_do.

-- Read in place of its call, so that a limit above it stops the reading. the_error: a text that the last error contains, in any case.
-- The outcome as a constant: the index of the few names it.
create or replace function millrace.dead_runs(
    the_queue text, the_kind text, the_tag text, the_error text, since timestamptz, until timestamptz, after bigint
) returns setof millrace.history
language sql stable as $$
    select h.* from millrace.history h
     where h.outcome = 3 and h.outcome <> 1 and h.id < coalesce(after, 9223372036854775807)
       and (the_queue is null or h.queue = any ((select millrace.queue_ids(the_queue))::int[]))
       and (the_kind is null or h.kind = any ((select millrace.kind_ids(the_kind))::int[]))
       and (since is null or h.finished >= since) and (until is null or h.finished < until)
       and (the_error is null or position(lower(the_error) in lower(h.error)) > 0)
       and (the_tag is null or exists (select from millrace.job j where j.id = h.id and the_tag = any (j.tags)))
$$;

-- A page of them, newest first, below the id `after`.
create or replace function millrace.dead_ids(
    the_queue text default null, the_kind text default null, the_tag text default null, the_error text default null,
    since timestamptz default null, until timestamptz default null, after bigint default null, page int default 500
) returns setof bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    return query
    select h.id from millrace.dead_runs(the_queue, the_kind, the_tag, the_error, since, until, after) h
     order by h.id desc limit page;
end $$;
select millrace.door_is('queue', 'dead_ids', 'admin, operator', 'staff');

-- How many jobs died of which error, the most frequent first; looks at `cap` jobs at most, null looks at all. An error is its first line,
-- with # for every number, because the same trouble rarely has the same numbers. dropped: jobs whose arguments are no longer kept, which
-- cannot run again.
create or replace function millrace.dead_summary(
    the_queue text default null, the_kind text default null, the_tag text default null, the_error text default null,
    since timestamptz default null, until timestamptz default null, cap int default null
) returns table (kind text, error text, jobs bigint, dropped bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
begin
    return query
    select k.name, s.error, count(*), count(*) filter (where s.dropped)
      from (select h.kind, not exists (select from millrace.job j where j.id = h.id) as dropped,
                   millrace.error_gist(h.error) as error
              from millrace.dead_runs(the_queue, the_kind, the_tag, the_error, since, until, null) h
             limit cap) s
      join millrace.kind k on k.id = s.kind
     group by k.name, s.error order by 3 desc, 1, 2;
end $$;
select millrace.door_is('queue', 'dead_summary', 'admin, operator', 'staff');
