-- Whether a claim's answer may hold what a job brings: its arguments, options, metadata and tags. carry: the most bytes, null for any
-- number. Judged by the stored size, which costs a look at four headers; Postgres never compresses more than 255 bytes into one. It is one
-- expression, so the planner inlines it into the caller.
create or replace function millrace.is_carried(carry int, args jsonb, options jsonb, metadata jsonb, tags text[]) returns boolean
language sql stable as $$
    select carry is null or
        (pg_column_size(args)::bigint + coalesce(pg_column_size(options), 0) + coalesce(pg_column_size(metadata), 0) + coalesce(pg_column_size(tags), 0))
        * case when coalesce(pg_column_compression(args), pg_column_compression(options), pg_column_compression(metadata), pg_column_compression(tags)) is null
               then 1 else 255 end <= carry
$$;

-- Whether a job has begun its work: it has a step on record, waits, or a run of it has failed, was put off or ended in a wait. Such a job does
-- not expire. Asked of jobs whose time is over, and of no others.
create or replace function millrace.job_has_begun(the_job bigint) returns boolean
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
    return exists (select from millrace.step s where s.job = the_job) or exists (select from millrace.wait w where w.job = the_job)
        or exists (select from millrace.history h where h.id = the_job and h.outcome in (4, 5, 8));
end $$;

-- The contents that a claim did not carry: of these jobs, one after the other, until `most` bytes are reached; of the first job even if
-- they are larger. Measured as text, which goes over the wire: a number's text may take a thousand times its stored size. A row without
-- arguments is that of a job that is too large (more than `largest`; size says how large, as far as known), or, without a size, of a job
-- whose lease is lost.
create or replace function millrace.jobs_read(the_session bigint, numbers bigint[], ids bigint[], most bigint, largest bigint)
returns table (id bigint, args text, options text, metadata text, tags text[], expired boolean, size bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    claimed_at timestamptz;
    total bigint := 0;
begin
    for place in 1 .. cardinality(jobs_read.ids) loop
        id := jobs_read.ids[place]; args := null; options := null; metadata := null; tags := null; expired := null; size := null;
        select l.at, pg_column_size(j.args)::bigint + coalesce(pg_column_size(j.options), 0) + coalesce(pg_column_size(j.metadata), 0)
               + coalesce(pg_column_size(j.tags), 0)
          into claimed_at, size
          from millrace.lease l join millrace.job j on j.id = jobs_read.ids[place] where l.session = the_session and l.number = jobs_read.numbers[place];
        if size is null or size > largest then
            return next;
            continue;
        end if;
        exit when total > 0 and total + size > most;
        begin
            select j.args::text, j.options::text, j.metadata::text, j.tags, case when (j.options ->> 'expires_at')::timestamptz <= claimed_at then not millrace.job_has_begun(j.id) else false end
              into args, options, metadata, tags, expired
              from millrace.job j where j.id = jobs_read.ids[place];
            size := octet_length(args)::bigint + coalesce(octet_length(options), 0) + coalesce(octet_length(metadata), 0)
                + coalesce(pg_column_size(tags || '{}'::text[]), 0);
        exception when program_limit_exceeded or out_of_memory or internal_error then
            size := greatest(size, largest + 1);
        end;
        if size > largest then
            args := null; options := null; metadata := null; tags := null;
        end if;
        exit when args is not null and total > 0 and total + size > most;
        total := total + case when args is not null then size else 0 end;
        return next;
    end loop;
end $$;
select millrace.door_is('queue', 'jobs_read', 'worker', 'staff');
