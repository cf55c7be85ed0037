-- The newest jobs in line below `top` that have not moved, of all queues: as many rows are read as are wanted, and a few of each lane. A lane
-- is read on only while it may still have one of the newest.
create or replace function millrace.ready_newest(top bigint, page int) returns setof bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    queues int[];
    lanes int[];
    ats bigint[];
    opens boolean[];
    ids bigint[] := '{}';
    last bigint;
    most int;
    more boolean;
    one record;
begin
    select array_agg(h.queue), array_agg(h.lane), array_agg(ready_newest.top), array_agg(true) into queues, lanes, ats, opens from millrace.heads() h;
    most := greatest(2, page / greatest(1, cardinality(queues)));
    loop
        more := false;
        for one in
            select l.i::int as i, f.n, f.lowest, f.jobs
              from unnest(queues, lanes, ats, opens) with ordinality l(queue, lane, at, is_open, i)
             cross join lateral (
                select count(*) as n, min(x.job) as lowest, array_agg(x.job) as jobs from (
                    select r.job from millrace.ready r where r.queue = l.queue and r.lane = l.lane and r.seq < l.at and r.seq = r.job
                     order by r.seq desc limit most) x) f
             where l.is_open and (last is null or l.at > last)
        loop
            more := true;
            ids := ids || one.jobs;
            opens[one.i] := one.n = most;
            ats[one.i] := one.lowest;
        end loop;
        exit when not more;
        ids := array(select i from unnest(ids) i order by i desc limit page);
        last := ids[page];
        most := most * 2;
    end loop;
    return query select unnest(ids);
end $$;

-- Pages of jobs by state, and bulk operations. Each state is read along an index of its own table, newest first: the view ordered by id
-- would sort everything.
create or replace function millrace.job_ids(
    the_state text, the_queue text default null, the_kind text default null, the_tag text default null,
    after bigint default null, page int default 500
) returns setof bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    queue_ids int[] := case when the_queue is not null then millrace.queue_ids(the_queue) end;
    kind_ids int[] := case when the_kind is not null then millrace.kind_ids(the_kind) end;
    top bigint := coalesce(after, 9223372036854775807);
begin
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    if queue_ids = '{}' or kind_ids = '{}' then
        return;
    end if;
    case the_state
    when 'ready' then
        if queue_ids is null and kind_ids is null and the_tag is null then
            return query
            select x.job from (
                select n as job from millrace.ready_newest(top, page) n
                union all (select r.job from millrace.ready r where r.seq <> r.job and r.job < top order by r.job desc limit page)
                union all (select p.job from millrace.parked p where p.job < top order by p.job desc limit page)) x
             order by x.job desc limit page;
            return;
        end if;
        return query
        select x.job from (
            -- Plain rows are in their lane under their own number;
            select f.job from millrace.queue q cross join generate_series(0, 39) lanes(lane) cross join lateral (
                select r.job from millrace.ready r
                 where r.queue = q.id and r.lane = lanes.lane and r.seq < top and r.seq = r.job
                   and (kind_ids is null or r.kind = any (kind_ids))
                   and (the_tag is null or exists (select from millrace.job j where j.id = r.job and the_tag = any (j.tags)))
                 order by r.seq desc limit page) f
             where queue_ids is null or q.id = any (queue_ids)
            union all (
            -- moved rows have an index of their own.
            select r.job from millrace.ready r
             where r.seq <> r.job and r.job < top
               and (queue_ids is null or r.queue = any (queue_ids)) and (kind_ids is null or r.kind = any (kind_ids))
               and (the_tag is null or exists (select from millrace.job j where j.id = r.job and the_tag = any (j.tags)))
             order by r.job desc limit page)
            union all (
            select p.job from millrace.parked p
             where p.job < top
               and (queue_ids is null or p.queue = any (queue_ids)) and (kind_ids is null or p.kind = any (kind_ids))
               and (the_tag is null or exists (select from millrace.job j where j.id = p.job and the_tag = any (j.tags)))
             order by p.job desc limit page)) x
         order by x.job desc limit page;
    when 'scheduled' then
        return query
        select d.job from millrace.timer d
         where d.job < top and (queue_ids is null or d.queue = any (queue_ids)) and (kind_ids is null or d.kind = any (kind_ids))
           and (the_tag is null or exists (select from millrace.job j where j.id = d.job and the_tag = any (j.tags)))
         order by d.job desc limit page;
    when 'waiting' then                                   -- not a state of its own: scheduled or blocked, in the middle of its work
        return query
        select w.job from millrace.wait w
          join millrace.job j on j.id = w.job
         where w.job < top and (queue_ids is null or j.queue = any (queue_ids)) and (kind_ids is null or j.kind = any (kind_ids))
           and (the_tag is null or the_tag = any (j.tags))
           and (exists (select from millrace.timer d where d.job = w.job and d.due = w.place)
                or w.what = 3 and exists (select from millrace.blocked b where b.job = w.job))
         order by w.job desc limit page;
    when 'running' then
        return query
        select u.id from millrace.lease l
         cross join lateral unnest(l.ids) u(id)
          join millrace.job j on j.id = u.id and j.id between l.lo and l.hi
         where u.id < top and (queue_ids is null or j.queue = any (queue_ids)) and (kind_ids is null or j.kind = any (kind_ids))
           and (the_tag is null or the_tag = any (j.tags))
           and not exists (select from millrace.history h
                            where h.class = (l.number & 3)::smallint and h.started = l.at and h.id = u.id
                              and h.session = l.session and h.number = l.number)
         order by u.id desc limit page;
    when 'succeeded' then
        return query
        select h.id from millrace.history h
         where h.outcome = 1 and h.id < top
           and (queue_ids is null or h.queue = any (queue_ids)) and (kind_ids is null or h.kind = any (kind_ids))
           and (the_tag is null or exists (select from millrace.job j where j.id = h.id and the_tag = any (j.tags)))
         order by h.id desc limit page;
    when 'cancelled' then                                 -- the outcome as a constant: the index of the few names it
        return query
        select h.id from millrace.history h
         where h.outcome = 2 and h.outcome <> 1 and h.id < top
           and (queue_ids is null or h.queue = any (queue_ids)) and (kind_ids is null or h.kind = any (kind_ids))
           and (the_tag is null or exists (select from millrace.job j where j.id = h.id and the_tag = any (j.tags)))
         order by h.id desc limit page;
    when 'dead' then
        return query
        select h.id from millrace.history h
         where h.outcome = 3 and h.outcome <> 1 and h.id < top
           and (queue_ids is null or h.queue = any (queue_ids)) and (kind_ids is null or h.kind = any (kind_ids))
           and (the_tag is null or exists (select from millrace.job j where j.id = h.id and the_tag = any (j.tags)))
         order by h.id desc limit page;
    when 'blocked' then
        return query
        select w.job from (
            (select u.next as job from millrace.unique_lock u where u.next is not null and u.next < top order by u.next desc)
            union all
            (select b.job from millrace.blocked b where b.job < top order by b.job desc)) w
          join millrace.job j on j.id = w.job
         where (queue_ids is null or j.queue = any (queue_ids)) and (kind_ids is null or j.kind = any (kind_ids))
           and (the_tag is null or the_tag = any (j.tags))
         order by w.job desc limit page;
    else
        perform millrace.refuse(format('the state %L is unknown', left(the_state, 60)), 'state',
            'Give ready, scheduled, blocked, running, succeeded, cancelled or dead.');
    end case;
end $$;
select millrace.door_is('queue', 'job_ids', 'admin, viewer', 'staff');

-- The same page with everything about each job. A job that moves meanwhile is missing.
create or replace function millrace.job_list(
    the_state text, the_queue text default null, the_kind text default null, the_tag text default null,
    after bigint default null, page int default 50
) returns setof millrace.jobs
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select j.* from millrace.job_ids(the_state, the_queue, the_kind, the_tag, after, page) i(id)
     cross join lateral millrace.job(i.id) j where j.state = the_state
$$;
select millrace.door_is('queue', 'job_list', 'admin, operator', 'staff');

-- Counts the jobs, looking at `cap` at most; null looks at all.
create or replace function millrace.job_count(
    the_state text, the_queue text default null, the_kind text default null, the_tag text default null, cap int default 10000
) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    last bigint;
    n int;
    total bigint := 0;
begin
    loop
        select count(*), min(i) into n, last from millrace.job_ids(the_state, the_queue, the_kind, the_tag, last, 500) i;
        total := total + n;
        exit when n < 500 or total >= cap;
    end loop;
    return least(total, cap);
end $$;
select millrace.door_is('queue', 'job_count', 'admin, viewer', 'staff');

-- The doors' insides for operators, who see every job; a call of many is one row of the audit.
create or replace function millrace.job_seen_cancel(the_job bigint, named boolean) returns boolean
language plpgsql volatile as $$
begin
    perform millrace.must_see(the_job, caller => current_user);
    perform millrace.undo_end_check(the_job, named);
    return millrace.cancel_now(the_job);
end $$;

create or replace function millrace.job_seen_retry(the_job bigint, fresh boolean) returns boolean
language plpgsql volatile as $$
begin
    perform millrace.retry_check(the_job, caller => current_user);
    return millrace.retry_now(the_job, fresh);
end $$;

create or replace function millrace.job_seen_delete(the_job bigint) returns boolean
language plpgsql volatile as $$
begin
    perform millrace.must_see(the_job, caller => current_user);
    return millrace.job_delete_now(the_job);
end $$;

-- One operation on many jobs, each separately: a refusal of one does not stop the others. outcome: done, nothing, or a refusal's SQLSTATE.
-- named: somebody has named these jobs one by one, and no filter has found them.
create or replace function millrace.jobs_do(the_deed text, ids bigint[], named boolean default false, caller millrace.caller_name default current_user)
returns table (id bigint, outcome text, reason text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    gone bigint[] := '{}';
    done bigint[] := '{}';
begin
    if the_deed is null or the_deed not in ('cancel', 'retry', 'retry_fresh', 'delete') then
        perform millrace.refuse(format('the action %L is unknown', left(the_deed, 60)), 'deed', 'Give cancel, retry, retry_fresh or delete.');
    end if;
    if the_deed = 'delete' then
        gone := millrace.jobs_delete_ended(ids);          -- most of them, and at once
    end if;
    foreach id in array ids loop
        begin
            reason := null;
            outcome := case when case when id = any (gone) then true else case the_deed when 'cancel' then millrace.job_seen_cancel(id, coalesce(named, false)) when 'retry' then millrace.job_seen_retry(id, false)
                when 'retry_fresh' then millrace.job_seen_retry(id, true)
                else millrace.job_seen_delete(id) end end then 'done' else 'nothing' end;
        exception when no_data_found or unique_violation or object_not_in_prerequisite_state then
            outcome := sqlstate;
            reason := sqlerrm;
        end;
        if outcome = 'done' then
            done := done || id;
        end if;
        return next;
    end loop;
    if done <> '{}' then
        perform millrace.audited('jobs.' || the_deed, null, jsonb_build_object('jobs', cardinality(done), 'ids', done[1:500]), caller => jobs_do.caller);
    end if;
end $$;
select millrace.door_is('queue', 'jobs_do', 'admin, operator', 'staff', audited => true);

-- Which of these kinds have jobs that wait, among the first 100,000 of each place: in line, for a time, for a limit.
create or replace function millrace.kinds_waiting(kinds text[]) returns table (kind text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select k.name from millrace.kind k
     where k.name = any (kinds) and k.line = ''
       and (exists (select from (select r.kind from millrace.ready r limit 100000) r where r.kind = k.id)
            or exists (select from (select t.kind from millrace.timer t limit 100000) t where t.kind = k.id)
            or exists (select from (select p.kind from millrace.parked p limit 100000) p where p.kind = k.id))
$$;
select millrace.door_is('queue', 'kinds_waiting', 'worker, viewer', 'staff');
