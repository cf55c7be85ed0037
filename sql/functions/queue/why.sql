-- Why a job does not run, as {"reason": a word, "sentence": for people, "hint": what to do or null, …}.

create or replace function millrace.why_put(reason text, sentence text, hint text default null, more jsonb default '{}') returns jsonb
language sql immutable as $$
    select jsonb_build_object('reason', reason, 'sentence', sentence, 'hint', hint) || more
$$;

create or replace function millrace.why_span(seconds float8) returns text
language sql immutable as $$
    select case when seconds < 1 then 'less than a second' when seconds < 120 then format('%s s', round(seconds)::bigint)
                when seconds < 7200 then format('%s min', round(seconds / 60)::bigint) when seconds < 172800 then format('%s h', round(seconds / 3600)::bigint)
                else format('%s days', round(seconds / 86400)::bigint) end
$$;

create or replace function millrace.why_time(t timestamptz) returns text
language sql stable as $$ select to_char(t at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC' $$;

-- What keeps workers from taking jobs of a whole queue or kind; null when they do take them.
create or replace function millrace.why_nobody(the_queue int, the_kind int) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    q record;
    kind_name text := (select k.name from millrace.kind k where k.id = the_kind);
    n int;
begin
    select m.name, m.paused_at into q from millrace.queue l join millrace.queue m on m.id = coalesce(l.main, l.id) where l.id = the_queue;
    if q.paused_at is not null then
        return millrace.why_put('queue_paused', format('its queue %s is paused since %s', q.name, millrace.why_time(q.paused_at)),
            format('millrace queues resume %s', q.name), jsonb_build_object('queue', q.name, 'since', q.paused_at));
    end if;
    if not exists (select from millrace.session s) then
        return millrace.why_put('no_worker', 'no worker lives', 'start a worker');
    end if;
    if not exists (select from millrace.session s where the_kind = any (s.kinds)) then
        return millrace.why_put('kind_unserved', format('no living worker knows the kind %s', kind_name),
            'start a worker that handles it', jsonb_build_object('kind', kind_name));
    end if;
    if not exists (select from millrace.session s where the_kind = any (s.kinds) and (s.queues is null or q.name = any (s.queues))) then
        return millrace.why_put('queue_unserved', format('no living worker that knows the kind %s takes from the queue %s', kind_name, q.name),
            'start a worker for this queue', jsonb_build_object('kind', kind_name, 'queue', q.name));
    end if;
    if not exists (select from millrace.session s join millrace.beat b on b.session = s.id
                    where the_kind = any (s.kinds) and (s.queues is null or q.name = any (s.queues)) and b.state = 'working') then
        select count(*) into n from millrace.session s where the_kind = any (s.kinds) and (s.queues is null or q.name = any (s.queues));
        return millrace.why_put('workers_stop', case n when 1 then 'the only worker that takes it drains or is cut off'
            else format('all %s workers that take it drain or are cut off', n) end, null, jsonb_build_object('workers', n));
    end if;
    return null;
end $$;

-- What a limit holds back at its gate; null when there is room.
create or replace function millrace.why_limit(the_scope text, the_name text, the_gate bigint, the_cap int, the_spacing float8, the_burst int) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    what text := case the_scope when 'key' then 'its limit key' else format('its %s', the_scope) end;
    more jsonb := jsonb_build_object(the_scope, the_name);
    hint text := case the_scope when 'queue' then format('millrace queues limit %s', the_name) when 'tenant' then format('millrace queues limit --tenant %s', the_name)
                 else 'millrace queues limit' end;
    room record;
    wait float8;
begin
    if the_cap = 0 then
        return millrace.why_put(the_scope || '_limit', format('%s %s may run nothing: its limit is 0', what, the_name), hint, more || '{"limit": 0}');
    end if;
    select * into room from millrace.gate_room(array[the_gate], array[the_cap], array[null::float8], array[null::int], t);
    if the_cap is not null and room.room <= 0 then
        return millrace.why_put(the_scope || '_limit', format('%s %s is full: %s of %s run', what, the_name, the_cap, the_cap), hint,
            more || jsonb_build_object('limit', the_cap));
    end if;
    if the_spacing is not null then
        select * into room from millrace.gate_room(array[the_gate], array[null::int], array[the_spacing], array[the_burst], t);
        if room.room <= 0 then
            wait := greatest(0, extract(epoch from room.used_until - t)::float8 - (the_burst - 1) * the_spacing);
            return millrace.why_put(the_scope || '_rate', format('the rate of %s %s is used up for %s', what, the_name, millrace.why_span(wait)), hint,
                more || jsonb_build_object('seconds', wait));
        end if;
    end if;
    return null;
end $$;

-- The gates that a job of this line comes to, the queue's first.
create or replace function millrace.why_limits(the_line int, the_key text, the_key_scope text) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    line record;
    rule record;
    said jsonb;
begin
    select q.name, q.tenant into line from millrace.queue q where q.id = the_line;
    for rule in
        select r.scope, r.name, r.concurrency, r.per / r.rate as spacing, r.burst from millrace.limit_rule r
         where (r.scope = 'queue' and r.name = line.name) or (r.scope = 'tenant' and r.name = line.tenant) order by r.scope
    loop
        said := millrace.why_limit(rule.scope, rule.name, millrace.gate_of(rule.scope, rule.name), rule.concurrency, rule.spacing, rule.burst);
        if said is not null then
            return said;
        end if;
    end loop;
    if the_key is not null then
        for rule in select * from millrace.key_rule(the_key) loop
            return millrace.why_limit('key', the_key, millrace.key_gate(the_key, the_key_scope), rule.concurrency, rule.spacing, rule.burst);
        end loop;
    end if;
    return null;
end $$;

-- In line, and nothing in the way but those before it. Counted up to 10,000.
create or replace function millrace.why_line(the_queue int, the_kind int, the_lane int, the_seq bigint) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    q text := (select l.name from millrace.queue l where l.id = the_queue);
    before bigint;
    load record;
begin
    select count(*) into before from (
        select from millrace.ready r where r.queue = the_queue and (r.lane, r.seq) < (the_lane, the_seq) limit 10000) c;
    select count(*) as workers, sum(s.slots) as slots, sum(b.running) as running, bool_and(b.running >= s.slots) as full into load
      from millrace.session s join millrace.beat b on b.session = s.id
     where b.state = 'working' and the_kind = any (s.kinds) and (s.queues is null or q = any (s.queues));
    if before > 0 then
        return millrace.why_put('in_line', format('%s%s before it in line%s', before, case when before >= 10000 then ' jobs or more stand' when before = 1 then ' job stands' else ' jobs stand' end,
            case when load.full then format(', and %s', case load.workers when 1 then 'the worker is full' else 'all workers are full' end) else '' end),
            null, jsonb_build_object('before', before));
    end if;
    if load.full then
        return millrace.why_put('workers_full', format('%s: %s of %s slots are taken', case load.workers when 1 then 'the worker that takes it is full' else 'all workers that take it are full' end,
            load.running, load.slots), null, jsonb_build_object('running', load.running, 'slots', load.slots));
    end if;
    return millrace.why_put('next', 'it is next in line');
end $$;

-- What a job without a place in line waits for: the holder of its key, or other jobs of its flow.
create or replace function millrace.why_blocked(the_job bigint) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    holder bigint;
    open bigint[];
    bad bigint;
    n bigint;
begin
    select u.job into holder from millrace.unique_lock u where u.next = the_job;
    if found then
        return millrace.why_put('key_held', format('job %s holds its unique key and has not ended', holder), null, jsonb_build_object('jobs', array[holder]));
    end if;
    perform from millrace.blocked b where b.job = the_job;
    if not found then
        return null;
    end if;
    open := array(select e.pred from millrace.edge e where e.succ = the_job and e.outcome is null order by e.succ, e.pred limit 10000);
    n := cardinality(open);
    if n > 0 then
        return millrace.why_put('waits_for', case when n = 1 then format('it waits for job %s to end', open[1])
            else format('it waits for %s jobs to end: %s%s', n, array_to_string(open[1:5], ', '), case when n > 5 then ', …' else '' end) end,
            null, jsonb_build_object('jobs', open[1:100], 'count', n));
    end if;
    select e.pred into bad from millrace.edge e where e.succ = the_job and e.outcome in (2, 3) order by e.pred limit 1;
    if bad is not null then
        return millrace.why_put('waits_for_retry', format('job %s did not succeed, and this one waits until that is retried', bad),
            format('millrace jobs retry %s', bad), jsonb_build_object('jobs', array[bad]));
    end if;
    return millrace.why_put('waits_for', 'what it waited for has ended; it is about to be put in line', null, '{"jobs": [], "count": 0}');
end $$;

-- null when the job runs, has ended, or is none that the caller may see.
create or replace function millrace.why(id bigint, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    head record;
    place record;
    said jsonb;
    t timestamptz := millrace.now();
begin
    select j.owner, j.tenant, j.queue, j.kind, j.lane, j.limit_key, j.limit_scope into head from millrace.job j where j.id = why.id;
    if not found or not millrace.may_see(head.owner, head.tenant, caller => why.caller) then
        return null;
    end if;
    for tries in 1 .. 3 loop                              -- it may move between two looks
        select r.queue, r.kind, r.lane, r.seq into place from millrace.ready r where r.queue = head.queue and r.lane = head.lane and r.seq = why.id;
        if not found then
            select r.queue, r.kind, r.lane, r.seq into place from millrace.ready r where r.job = why.id and r.seq <> r.job;
        end if;
        if found then
            return coalesce(millrace.why_nobody(place.queue, place.kind), millrace.why_limits(place.queue, head.limit_key, head.limit_scope),
                millrace.why_line(place.queue, place.kind, place.lane, place.seq));
        end if;
        select p.queue, p.kind into place from millrace.parked p where p.job = why.id;
        if found then
            return coalesce(millrace.why_nobody(place.queue, place.kind), millrace.why_limits(place.queue, head.limit_key, head.limit_scope),
                millrace.why_put('key_opens', format('its limit key %s has room again; it is about to be put back in line', head.limit_key), null,
                    jsonb_build_object('key', head.limit_key)));
        end if;
        select d.queue, d.kind, d.due, d.attempt into place from millrace.timer d where d.job = why.id;
        if found then
            if place.due > t then
                return case when place.attempt > 0 then
                    millrace.why_put('retry', format('attempt %s is due in %s, at %s', place.attempt + 1, millrace.why_span(extract(epoch from place.due - t)), millrace.why_time(place.due)),
                        format('millrace jobs retry %s', why.id), jsonb_build_object('due', place.due, 'attempt', place.attempt + 1))
                    else millrace.why_put('time', format('its time has not come: it is due in %s, at %s', millrace.why_span(extract(epoch from place.due - t)), millrace.why_time(place.due)),
                        null, jsonb_build_object('due', place.due)) end;
            end if;
            return coalesce(millrace.why_nobody(place.queue, place.kind), millrace.why_put('due', 'its time has come; a worker is about to put it in line',
                null, jsonb_build_object('due', place.due)));
        end if;
        said := millrace.why_blocked(why.id);
        if said is not null then
            return said;
        end if;
        if exists (select from millrace.job_running(why.id)) then
            return null;
        end if;
    end loop;
    return null;
end $$;
