-- Why a queue does not move: what its oldest job waits for, in the shape of millrace.why. Looks at the first jobs of up to 500 of its lines, for up to
-- 20 ms, and at a bounded number of jobs elsewhere.
create or replace function millrace.why_oldest(lines int[], out job bigint, out since timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    t timestamptz := millrace.now();
    began timestamptz := clock_timestamp();
    line int;
    at_lane int;
    head record;
    its_time timestamptz;
begin
    foreach line in array lines loop
        at_lane := -1;
        loop
            select r.lane, r.job into head from millrace.ready r where r.queue = line and r.lane > at_lane order by r.queue, r.lane, r.seq limit 1;
            exit when not found;
            at_lane := head.lane;
            select greatest(j.enqueued_at, coalesce(j.run_at, j.enqueued_at)) into its_time from millrace.job j where j.id = head.job;
            if since is null or its_time < since then
                job := head.job;
                since := its_time;
            end if;
        end loop;
        exit when clock_timestamp() > began + interval '20 ms';
    end loop;
    select p.job, greatest(j.enqueued_at, coalesce(j.run_at, j.enqueued_at)) as since into head
      from (select x.job from (select y.job, y.queue from millrace.parked y order by y.gate, y.lane, y.job limit 5000) x where x.queue = any (lines) order by x.job limit 1) p
     cross join lateral (select k.enqueued_at, k.run_at from millrace.job k where k.id = p.job) j;
    if found and (since is null or head.since < since) then
        job := head.job;
        since := head.since;
    end if;
    if job is not null then
        return;
    end if;
    -- Nothing is in line. What is scheduled, what runs on a worker that does not answer, and what waits for other jobs.
    select d.job, d.due into job, since
      from (select x.job, x.due, x.queue from millrace.timer x order by x.due, x.job limit 5000) d where d.queue = any (lines) order by d.due, d.job limit 1;
    if job is null then
        select d.job, d.due into job, since
          from unnest(lines[1:100]) l(id) cross join lateral (
                select x.job, x.due from millrace.timer x where x.attempt > 0 and x.queue = l.id order by x.queue, x.kind limit 100) d
         order by d.due limit 1;
    end if;
    if job is not null and since <= t then
        return;
    end if;
    select u.id, u.at into head
      from (select i as id, l.at
              from (select b.session from millrace.beat b where b.at < t - millrace.why_silence() or b.state = 'cut off' or (b.stuck > 0 and b.stuck >= b.running) limit 50) b
             cross join lateral (select x.number, x.at, x.ids from millrace.lease x where x.session = b.session order by x.number limit 20) l
             cross join lateral unnest(l.ids) i limit 1000) u
     cross join lateral (select j.queue from millrace.job j where j.id = u.id) j
     where j.queue = any (lines) order by u.at, u.id limit 1;
    if found then
        job := head.id;
        since := head.at;
        return;
    end if;
    if job is null then
        select b.job, j.enqueued_at into job, since
          from ((select x.job from millrace.blocked x order by x.job limit 2000)
                union all (select u.next from millrace.unique_lock u where u.next is not null order by u.next limit 2000)) b
         cross join lateral (select k.queue, k.enqueued_at from millrace.job k where k.id = b.job) j
         where j.queue = any (lines) order by b.job limit 1;
    end if;
end $$;

create or replace function millrace.why_jobs(the_main int, the_name text) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    t timestamptz := millrace.now();
    -- The queue's own line first.
    lines int[] := array(select q.id from millrace.queue q where q.id = the_main union all (select q.id from millrace.queue q where q.main = the_main limit 499));
    waiting bigint;
    one record;
    said jsonb;
    seen text;
    paused timestamptz := (select q.paused_at from millrace.queue q where q.id = the_main);
begin
    waiting := (select count(*) from (select from unnest(lines) l(id) cross join lateral (select from millrace.ready r where r.queue = l.id limit 10000) r limit 10000) c);
    select * into one from millrace.why_oldest(lines);
    if one.job is not null then
        said := millrace.why_of(one.job, true, 0);
    end if;
    if said is null and paused is null then
        return null;
    end if;
    seen := case when waiting > 0 then format('%s in the queue %s', millrace.why_count(waiting, 'job'), the_name)
            || case when waiting = 1 then ' is ready' else ' are ready' end
            || case when one.since < t then format(', the oldest for %s', millrace.why_span(extract(epoch from t - one.since)::float8)) else '' end
        else format('nothing in the queue %s is ready', the_name) end;
    if paused is not null then
        said := millrace.why_put('queue_paused', format('the queue %s has been paused since %s', the_name, millrace.why_time(paused)), format('millrace queues resume %s', the_name),
            jsonb_build_object('since', paused), format('millrace queues resume %s', the_name));
        said := said || jsonb_build_object('chain', said -> 'chain' || to_jsonb(format('to do: millrace queues resume %s', the_name)));
    else
        said := said || jsonb_build_object('sentence', format('job %s: %s', one.job, said ->> 'sentence'));
    end if;
    return said || jsonb_build_object('queue', the_name, 'waiting', waiting, 'oldest_job', one.job,
        'oldest_seconds', case when one.since < t then extract(epoch from t - one.since)::float8 end, 'chain', to_jsonb(seen) || (said -> 'chain'));
end $$;

-- A queue, else a room whose work is no jobs, else a schedule; null: there is none of that name.
create or replace function millrace.why_queue(name text) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    the_main int := (select q.id from millrace.queue q where q.name = why_queue.name and q.main is null);
    said jsonb;
    is_room boolean;
begin
    if the_main is not null then
        said := millrace.why_jobs(the_main, why_queue.name);
        if said is not null then
            return said;
        end if;
    end if;
    said := millrace.hooks_ask('why_queue', jsonb_build_object('queue', why_queue.name));
    is_room := said is not null;
    if said <> '{}' then
        return said || jsonb_build_object('queue', why_queue.name, 'chain', said -> 'chain'
            || to_jsonb('to do: ' || coalesce(said ->> 'hint', said ->> 'command', 'just wait')));
    end if;
    said := coalesce(case when the_main is not null then millrace.why_feeding(why_queue.name) end, millrace.why_schedule(why_queue.name));
    if said is not null then
        return said || jsonb_build_object('queue', why_queue.name, 'chain', to_jsonb(case when the_main is not null then format('nothing waits in the queue %s', why_queue.name)
                else format('the schedule %s', why_queue.name) end) || (said -> 'chain') || to_jsonb('to do: ' || coalesce(said ->> 'hint', said ->> 'command', 'just wait')));
    end if;
    if the_main is null and not is_room or why_queue.name is null then
        return null;
    end if;
    return millrace.why_put('empty', format('nothing waits in %s', why_queue.name), null, jsonb_build_object('queue', why_queue.name), null,
        array[format('nothing waits in %s', why_queue.name), 'to do: nothing']);
end $$;
select millrace.door_is('operating', 'why_queue', 'worker, viewer', 'staff');
