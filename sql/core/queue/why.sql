-- Why a job does not run, as {"reason": a word, "sentence": for people, "hint": what to do or null, "command": one to run or null, "chain": from what
-- is seen to what is to be done, …}. Everything is read up to a bound, however many jobs there are. the_staff: the caller may know of other callers'
-- work; nobody else is told of it.

create or replace function millrace.why_put(
    reason text, sentence text, hint text default null, more jsonb default '{}', command text default null, chain text[] default null
) returns jsonb
language sql immutable as $$
    select jsonb_build_object('reason', reason, 'sentence', sentence, 'hint', hint, 'command', command, 'chain', to_jsonb(coalesce(chain, array[sentence]))) || more
$$;

create or replace function millrace.why_span(seconds float8) returns text
language sql immutable as $$
    select case when seconds < 1 then 'less than a second' when seconds < 120 then format('%s s', round(seconds)::bigint)
                when seconds < 7200 then format('%s min', round(seconds / 60)::bigint) when seconds < 172800 then format('%s h', round(seconds / 3600)::bigint)
                else format('%s days', round(seconds / 86400)::bigint) end
$$;

create or replace function millrace.why_time(t timestamptz) returns text
language sql stable as $$ select to_char(t at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC' $$;

-- A word of a command as a shell reads it.
create or replace function millrace.why_word(word text) returns text
language sql immutable as $$
    select case when word ~ '^[A-Za-z0-9_./:@%+,=][A-Za-z0-9_./:@%+,=-]*$' then word else chr(39) || replace(word, chr(39), chr(39) || chr(92) || chr(39) || chr(39)) || chr(39) end
$$;

create or replace function millrace.why_count(n bigint, noun text, cap bigint default 10000) returns text
language sql immutable as $$
    select case when n >= cap then format('%s %ss or more', cap, noun) when n = 1 then format('1 %s', noun) else format('%s %ss', n, noun) end
$$;

-- A worker whose last beat is older is silent, as `status` has it: four beats are missing.
create or replace function millrace.why_silence() returns interval
language sql immutable as $$ select interval '8 s' $$;

-- A worker that would take it, and could not start because its program and the schema do not fit; null: there is none.
create or replace function millrace.why_refused(the_queue text, the_kind text, the_staff boolean) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    r millrace.refused_worker;
    schema record;
    who text;
begin
    select x.* into r from millrace.refused_worker x
     where x.at > t - interval '10 min' and the_kind = any (x.kinds) and (x.queues is null or the_queue = any (x.queues)) order by x.at desc limit 1;
    if not found then
        return null;
    end if;
    select s.version, s.oldest_worker into schema from millrace.schema_state() s;
    who := case when the_staff then format('worker %s on %s (version %s)', r.name, r.host, r.version) else 'the worker that takes it' end;
    if r.schema < schema.oldest_worker then
        return millrace.why_put('worker_too_old',
            format('%s is too old to start: it speaks schema %s, and the database serves %s and later', who, r.schema, schema.oldest_worker),
            'start a newer version of that worker', jsonb_build_object('schema', r.schema, 'oldest', schema.oldest_worker), 'millrace version',
            array['no running worker takes it', format('%s tried to start %s ago and was refused', who, millrace.why_span(extract(epoch from t - r.at)::float8)),
                format('its program speaks schema %s, and the database serves %s and later', r.schema, schema.oldest_worker)]);
    elsif r.schema > schema.version then
        return millrace.why_put('schema_too_old', format('%s cannot start: it needs schema %s, and the database has %s', who, r.schema, schema.version),
            'millrace migrate', jsonb_build_object('schema', r.schema, 'found', schema.version), 'millrace migrate',
            array['no running worker takes it', format('%s tried to start %s ago and was refused', who, millrace.why_span(extract(epoch from t - r.at)::float8)),
                format('its program needs schema %s, and the database has %s', r.schema, schema.version)]);
    end if;
    return null;
end $$;

-- No worker is running: which was the last, and how it is started again.
create or replace function millrace.why_absent(the_staff boolean) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    p millrace.process;
begin
    if the_staff then
        select x.* into p from millrace.process x order by coalesce(x.ended_at, x.started_at) desc limit 1;
    end if;
    return millrace.why_put('no_worker', 'no worker is running',
        case when p.name is null then 'start a worker: the service, your program, or millrace worker'
             else format('start it again on %s, or another worker elsewhere', p.host) end,
        case when p.name is null then '{}' else jsonb_build_object('last_worker', p.name, 'host', p.host) end, 'systemctl start millrace',
        array['no worker is running'] || case when p.name is not null then array[format('the last was %s on %s%s', p.name, p.host,
            case when p.ended_at is not null then format(', which ended %s ago', millrace.why_span(greatest(0, extract(epoch from t - p.ended_at))::float8)) else '' end)] end);
end $$;

-- What is said of a job that does not run, with the workers that ended while it ran before everything else: it may have ended them.
create or replace function millrace.why_crashed(the_job bigint, crashes int, said jsonb) returns jsonb
language plpgsql immutable as $$
declare
    what text := case when crashes = 1 then 'a worker ended while it held this job' else format('%s workers ended while they held this job', crashes) end;
    -- Nothing that an operator has done holds it back.
    is_free boolean := said ->> 'reason' in ('no_worker', 'kind_unserved', 'queue_unserved', 'worker_frozen', 'workers_stop', 'suspect', 'in_line', 'next', 'due');
begin
    if coalesce(crashes, 0) < 1 or said is null then
        return said;
    end if;
    said := said || jsonb_build_object('crashes', crashes, 'sentence', format('%s; %s', what, said ->> 'sentence'), 'chain', to_jsonb(what) || (said -> 'chain'));
    if is_free then
        said := said || jsonb_build_object('reason', case said ->> 'reason' when 'suspect' then 'suspect' else 'ended_workers' end,
            'hint', format('see its crashes and correct its handler, or take it out: millrace jobs cancel %s', the_job),
            'command', format('millrace jobs show %s', the_job));
    end if;
    return said;
end $$;

-- What keeps workers from taking jobs of a whole queue or kind; null when they do take them.
create or replace function millrace.why_nobody(the_queue int, the_kind int, the_staff boolean default false) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    q record;
    kind_name text := (select k.name from millrace.kind k where k.id = the_kind);
    base int := millrace.kind_base(the_kind);
    w record;
    who text;
begin
    select m.name, m.paused_at into q from millrace.queue l join millrace.queue m on m.id = coalesce(l.main, l.id) where l.id = the_queue;
    if q.paused_at is not null then
        return millrace.why_put('queue_paused', format('its queue %s has been paused since %s', q.name, millrace.why_time(q.paused_at)),
            format('millrace queues resume %s', q.name), jsonb_build_object('queue', q.name, 'since', q.paused_at), format('millrace queues resume %s', q.name));
    end if;
    select count(*) as living, count(*) filter (where s.knows) as knowing, count(*) filter (where s.takes) as n,
           not coalesce(bool_or(s.able), false) and millrace.why_build(the_kind, count(*) filter (where s.knows)) is not null as mute,
           count(*) filter (where s.takes and not s.silent and s.state = 'working') as working, count(*) filter (where s.takes and s.silent) as silent,
           count(*) filter (where s.takes and not s.silent and s.state = 'draining') as draining,
           count(*) filter (where s.takes and not s.silent and s.state = 'cut off') as cut_off,
           min(s.name || ' on ' || s.host) filter (where s.takes) as one, max(s.at) filter (where s.takes) as last
      into w
      from (select x.name, x.host, b.at, b.state, base = any (x.kinds) as knows, b.at < t - millrace.why_silence() as silent,
                   millrace.kind_is_taken(the_kind, x.kinds, x.pin) and (x.queues is null or q.name = any (x.queues)) as takes,
                   millrace.kind_is_taken(the_kind, x.kinds, x.pin) as able
              from millrace.session x join millrace.beat b on b.session = x.id) s;
    if w.working > 0 then
        return null;
    end if;
    if w.n = 0 then
        return coalesce(millrace.why_refused(q.name, kind_name, the_staff),
            case when w.living = 0 then millrace.why_absent(the_staff)
                when w.mute then millrace.why_build(the_kind, w.knowing)
                when w.knowing = 0 then millrace.why_put('kind_unserved', format('no running worker knows the kind %s', kind_name),
                    'start a worker that handles it', jsonb_build_object('kind', kind_name), 'millrace workers list')
                else millrace.why_put('queue_unserved', format('no running worker that knows the kind %s takes from the queue %s', kind_name, q.name),
                    'start a worker for this queue', jsonb_build_object('kind', kind_name, 'queue', q.name), 'millrace workers list') end);
    end if;
    who := case when w.n > 1 then format('all %s workers that take it', w.n)
                when the_staff then format('the only worker that takes it, %s,', w.one) else 'the only worker that takes it' end;
    if w.draining = w.n then
        return millrace.why_put('worker_draining', format('%s %s', who, case when w.n = 1 then 'drains: it finishes what it has and takes nothing more'
                else 'drain: they finish what they have and take nothing more' end),
            'start another worker, or wait until that one is started again', jsonb_build_object('workers', w.n), 'millrace workers list');
    elsif w.cut_off = w.n then
        return millrace.why_put('worker_cut_off', format('%s %s cut off from the database: connections from it do not get through', who, case w.n when 1 then 'is' else 'are' end),
            'look at the network between that machine and the database, and at its log', jsonb_build_object('workers', w.n), 'millrace workers list');
    elsif w.silent = w.n then
        return millrace.why_put('worker_frozen', format('%s %s been silent for %s: frozen, dead, or without a network', who, case w.n when 1 then 'has' else 'have' end,
                millrace.why_span(extract(epoch from t - w.last)::float8)),
            'look at that machine, and start a worker on another', jsonb_build_object('workers', w.n), 'millrace workers list');
    end if;
    return millrace.why_put('workers_stop', format('all %s workers that take it drain, are silent, or are cut off from the database', w.n),
        'start a worker', jsonb_build_object('workers', w.n), 'millrace workers list');
end $$;

-- Those of a lease's jobs that have not ended. With its leaf of history known, no other is looked at.
create or replace function millrace.why_unended(the_session bigint, the_number bigint, claimed_at timestamptz, ids bigint[]) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
begin
    return array(
        select i from unnest(ids) i
         where not exists (select from millrace.history h where h.class = (the_number & 3)::smallint and h.started = claimed_at
                              and h.id = i and h.session = the_session and h.number = the_number));
end $$;

-- Jobs that hold a place at a gate; among the first 500 leases.
create or replace function millrace.why_holders(the_gate bigint, most int default 5) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    one record;
    holders bigint[] := '{}';
    looked int := 0;
begin
    for one in
        select l.session, l.number, l.at, g.jobs
          from (select x.session, x.number, x.at, x.n, x.ids, x.slot_all, x.slot_jobs, x.slot_gates from millrace.lease x order by x.session, x.number limit 500) l
         cross join lateral (
            select case when the_gate = any (l.slot_all) then l.ids[greatest(1, l.n - 19):l.n]
                        else array(select u.job from unnest(coalesce(l.slot_jobs, l.ids), l.slot_gates) u(job, gate) where u.gate = the_gate limit 20) end as jobs) g
         where g.jobs <> '{}'
    loop
        holders := holders || millrace.why_unended(one.session, one.number, one.at, one.jobs);
        looked := looked + cardinality(one.jobs);
        exit when cardinality(holders) >= most or looked >= 400;
    end loop;
    return holders[1:most];
end $$;

-- What a limit holds back at its gate; null when there is room.
create or replace function millrace.why_limit(
    the_scope text, the_name text, the_gate bigint, the_cap int, the_spacing float8, the_burst int, the_staff boolean default false
) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    what text := case the_scope when 'key' then 'its limit key' else format('its %s', the_scope) end;
    more jsonb := jsonb_build_object(the_scope, the_name);
    hint text := case the_scope when 'queue' then format('millrace queues limit %s', the_name) when 'tenant' then format('millrace queues limit --tenant %s', millrace.why_word(the_name))
                 else 'millrace queues limit' end;
    room record;
    wait float8;
    holders bigint[];
begin
    if the_cap = 0 then
        return millrace.why_put(the_scope || '_limit', format('%s %s may run nothing: its limit is 0', what, the_name), hint, more || '{"limit": 0}', hint);
    end if;
    select * into room from millrace.gate_room(array[the_gate], array[the_cap], array[null::float8], array[null::int], t);
    if the_cap is not null and room.room <= 0 then
        holders := case when the_staff then millrace.why_holders(the_gate) end;
        return millrace.why_put(the_scope || '_limit', format('%s %s is full: %s of %s run', what, the_name, the_cap, the_cap), hint,
            more || jsonb_build_object('limit', the_cap) || case when holders <> '{}' then jsonb_build_object('holders', holders) else '{}' end, hint,
            array[format('%s %s is full: %s of %s run', what, the_name, the_cap, the_cap)]
                || case when holders <> '{}' then array[format('it is held by %s %s', case cardinality(holders) when 1 then 'job' else 'jobs' end, array_to_string(holders, ', '))] end);
    end if;
    if the_spacing is not null then
        select * into room from millrace.gate_room(array[the_gate], array[null::int], array[the_spacing], array[the_burst], t);
        if room.room <= 0 then
            wait := greatest(0, extract(epoch from room.used_until - t)::float8 - (the_burst - 1) * the_spacing);
            return millrace.why_put(the_scope || '_rate', format('the rate of %s %s is used up for %s', what, the_name, millrace.why_span(wait)), hint,
                more || jsonb_build_object('seconds', wait), hint);
        end if;
    end if;
    return null;
end $$;

-- The gates that a job of this line comes to, the queue's first.
create or replace function millrace.why_limits(the_line int, the_key text, the_key_scope text, the_staff boolean default false) returns jsonb
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
        said := millrace.why_limit(rule.scope, rule.name, millrace.gate_of(rule.scope, rule.name), rule.concurrency, rule.spacing, rule.burst, the_staff);
        if said is not null then
            return said;
        end if;
    end loop;
    if the_key is not null then
        for rule in select * from millrace.key_rule(the_key) loop
            return millrace.why_limit('key', the_key, millrace.key_gate(the_key, the_key_scope), rule.concurrency, rule.spacing, rule.burst, the_staff);
        end loop;
    end if;
    return null;
end $$;

-- What the workers that take a queue's jobs of a kind hold now, by kind and, of this queue, by tenant: a sample of up to 400 jobs.
create or replace function millrace.why_held(the_queue text, the_kind int) returns table (kind text, tenant text, is_here boolean, n bigint)
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
    set plan_cache_mode = force_generic_plan as $$
declare
    one record;
    held bigint[] := '{}';
    looked int := 0;
begin
    -- A worker ends its jobs about in the order in which it claimed them: those at the end still run or wait there.
    for one in
        select l.session, l.number, l.at, l.ids
          from millrace.session s
         cross join lateral (select x.session, x.number, x.at, x.ids[greatest(1, x.n - 24):x.n] as ids from millrace.lease x where x.session = s.id order by x.number desc limit 8) l
         where millrace.kind_is_taken(the_kind, s.kinds, s.pin) and (s.queues is null or the_queue = any (s.queues)) limit 100
    loop
        held := held || millrace.why_unended(one.session, one.number, one.at, one.ids);
        looked := looked + cardinality(one.ids);
        exit when looked >= 400;
    end loop;
    return query
    select k.name, j.tenant, q.name = the_queue, count(*)
      from unnest(held) h(id)
     cross join lateral (select x.kind, x.tenant, x.queue from millrace.job x where x.id = h.id) j
      join millrace.kind k on k.id = j.kind join millrace.queue q on q.id = j.queue
     group by 1, 2, 3;
end $$;

-- The oldest transaction that keeps old row versions from being cleaned up, if it is older than a minute.
create or replace function millrace.why_pinned(t timestamptz, the_staff boolean) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    pin record;
    who text;
begin
    select a.pid, a.application_name, a.usename, extract(epoch from t - a.xact_start)::float8 as age into pin
      from pg_stat_activity a
     where a.backend_xmin is not null and a.pid <> pg_backend_pid() and a.datname = current_database() and a.backend_type <> 'autovacuum worker'
       and a.xact_start < t - interval '1 min'
     order by a.xact_start limit 1;
    if not found then
        return null;
    end if;
    who := case when the_staff then format(' (pid %s, %s of %s)', pin.pid, coalesce(nullif(pin.application_name, ''), 'a program'), pin.usename) else '' end;
    return millrace.why_put('snapshot_pinned',
        format('a transaction%s has been open for %s and keeps old row versions, over which claims must walk', who, millrace.why_span(pin.age)),
        case when the_staff then format('end it if it should not be there: select pg_terminate_backend(%s)', pin.pid) end,
        jsonb_build_object('seconds', pin.age) || case when the_staff then jsonb_build_object('pid', pin.pid) else '{}' end,
        case when the_staff then format('psql "$DATABASE_URL" -c "select pid, application_name, state, query from pg_stat_activity where pid = %s"', pin.pid) end,
        array['workers have free slots, and no job of this queue has ended in the last 15 s',
            format('a transaction%s has been open for %s: nothing that was deleted since can be cleaned up', who, millrace.why_span(pin.age)),
            'claims walk over all of it before they find a job']);
end $$;

-- In line, and nothing in the way but those before it, and what the workers are busy with. Counted up to 10,000.
create or replace function millrace.why_line(the_queue int, the_kind int, the_lane int, the_seq bigint, the_staff boolean default false, since timestamptz default null) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    t timestamptz := millrace.now();
    line record;
    before bigint;
    load record;
    whole bigint;
    others bigint;
    kinds text;
    tenants text;
    largest text;
    crowd text;
    said jsonb;
    more jsonb;
    words text;
begin
    select l.name, l.tenant, l.main into line from millrace.queue l where l.id = the_queue;
    select count(*) into before from (
        select from millrace.ready r where r.queue = the_queue and (r.lane, r.seq) < (the_lane, the_seq) limit 10000) c;
    select count(*) as workers, sum(s.slots) as slots, sum(b.running) as running, sum(b.stuck) as stuck, bool_and(b.running >= s.slots) as full into load
      from millrace.session s join millrace.beat b on b.session = s.id
     where b.state = 'working' and b.at >= t - millrace.why_silence() and millrace.kind_is_taken(the_kind, s.kinds, s.pin) and (s.queues is null or line.name = any (s.queues));
    words := format('%s%s before it in line', before, case when before >= 10000 then ' jobs or more stand' when before = 1 then ' job stands' else ' jobs stand' end);
    if load.full then
        more := jsonb_build_object('running', load.running, 'slots', load.slots, 'before', before);
        crowd := format('%s: %s of %s slots are taken', case load.workers when 1 then 'the worker that takes it is full' else 'all workers that take it are full' end,
            load.running, load.slots);
        if load.stuck > 0 and load.stuck >= load.running then
            return millrace.why_put('worker_stuck', crowd || ', all of them by handlers that ignore their cancellation', 'restart that worker; its log names the jobs',
                more || jsonb_build_object('stuck', load.stuck), 'millrace workers list');
        end if;
        if the_staff then
            with held as materialized (
                select h.kind, h.tenant, h.n, h.is_here and h.tenant is not null and h.tenant is distinct from line.tenant as is_other from millrace.why_held(line.name, the_kind) h
            ), crowds as (
                select h.tenant, sum(h.n) as n from held h where h.is_other group by h.tenant order by 2 desc, 1 limit 5
            )
            select sum(h.n), sum(h.n) filter (where h.is_other),
                   (select string_agg(format('%s %s', x.n, x.kind), ', ' order by x.n desc, x.kind)
                      from (select y.kind, sum(y.n) as n from held y group by y.kind order by 2 desc, 1 limit 5) x),
                   (select string_agg(format('%s %s', x.tenant, x.n), ', ' order by x.n desc, x.tenant) from crowds x),
                   (select x.tenant from crowds x order by x.n desc, x.tenant limit 1)
              into whole, others, kinds, tenants, largest from held h;
            if others * 2 > whole then
                return millrace.why_put('tenant_share', format('%s, most of them by other tenants: %s', crowd, tenants),
                    'limit that tenant with --concurrency, or give this one more --weight', more || jsonb_build_object('tenant', line.tenant, 'held_by', tenants),
                    format('millrace queues limit --tenant %s', millrace.why_word(largest)),
                    array[crowd, format('tenants share the slots in turns, and other tenants hold them now: %s', tenants)]);
            end if;
        end if;
        return millrace.why_put('workers_full', crowd || case when kinds is not null then format(' (%s)', kinds) else '' end || case when before > 0 then format('; %s', words) else '' end,
            'add workers or slots, or wait', more || case when kinds is not null then jsonb_build_object('held_by', kinds) else '{}' end, 'millrace workers list',
            array[crowd] || case when kinds is not null then array[format('they hold %s', kinds)] end || case when before > 0 then array[words] end);
    end if;
    if the_lane & 3 in (2, 3) then
        return millrace.why_put('suspect', case the_lane & 3 when 3 then 'it was present at three or more worker crashes, so it runs alone: a worker takes it once it runs no other suspect'
                else 'it was present at two worker crashes: a worker takes few such suspects at once' end,
            'see its crashes, and correct its handler: after two crashes while it ran alone it is quarantined', jsonb_build_object('before', before));
    end if;
    -- Claims do not walk far where jobs end all the time.
    if since < t - interval '10 s' and not exists (
        select from (select y.queue, y.succeeded, y.failed, y.cancelled, y.snoozed from millrace.tally y where y.at > t - interval '15 s' order by y.at desc limit 5000) y
          join millrace.queue q on q.id = y.queue where q.name = line.name and y.succeeded + y.failed + y.cancelled + y.snoozed > 0) then
        said := millrace.why_pinned(t, the_staff);
        -- Where jobs of this queue run, the worker may have as many slots for this queue as are taken.
        if said is not null and not exists (select from millrace.why_held(line.name, the_kind) h where h.is_here) then
            return said || jsonb_build_object('before', before);
        end if;
    end if;
    if before > 0 then
        return millrace.why_put('in_line', words, null, jsonb_build_object('before', before));
    end if;
    return millrace.why_put('next', 'it is next in line');
end $$;

-- What a job without a place in line waits for: the holder of its key, or other jobs of its flow. A signal that a step waits for would be a third.
create or replace function millrace.why_blocked(the_job bigint) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    holder bigint;
    open bigint[];
    bad bigint;
    n int;
    undone millrace.undo;
    waits jsonb := millrace.wait_of(the_job);
begin
    select u.job into holder from millrace.unique_lock u where u.next = the_job;
    if found then
        return millrace.why_put('key_held', format('job %s holds its unique key and has not ended', holder), null, jsonb_build_object('jobs', array[holder]),
            format('millrace why %s', holder));
    end if;
    perform from millrace.blocked b where b.job = the_job;
    if not found then
        return null;
    end if;
    open := array(select e.pred from millrace.edge e where e.succ = the_job and e.outcome is null order by e.succ, e.pred limit 10000);
    n := cardinality(open);
    select u.* into undone from millrace.undo u where u.undo_job = the_job;
    if undone.job = any (open) then
        return millrace.why_put('waits_for', format('it undoes step %L of job %s when that has ended without success', undone.step, undone.job),
            null, jsonb_build_object('jobs', array[undone.job], 'count', 1), format('millrace why %s', undone.job));
    elsif n > 0 then
        return millrace.why_put('waits_for', case when waits is null then 'it waits' else format('its step %L waits', waits ->> 'step') end || case when n = 1 then format(' for job %s to end', open[1])
            else format(' for %s jobs to end: %s%s', n, array_to_string(open[1:5], ', '), case when n > 5 then ', …' else '' end) end,
            null, jsonb_build_object('jobs', open[1:100], 'count', n), format('millrace why %s', open[1]));
    end if;
    select e.pred into bad from millrace.edge e where e.succ = the_job and e.outcome in (2, 3) order by e.pred limit 1;
    if bad is not null then
        return millrace.why_put('waits_for_retry', format('job %s did not succeed, and this one waits until that is retried', bad),
            format('millrace jobs retry %s', bad), jsonb_build_object('jobs', array[bad]), format('millrace jobs retry %s', bad));
    end if;
    return millrace.why_put('waits_for', 'what it waited for has ended; it is about to be put in line', null, '{"jobs": [], "count": 0}');
end $$;
