-- Thousands of queues, and as many ended jobs as asked for, with strings that try to break out of a page. Run by deploy/bench/console with the
-- variables jobs and queues, on a database in which each room has something already.
set client_min_messages = warning;
set jit = off;

create function pg_temp.evil(n bigint) returns text language sql immutable as $$
    select (array[
        E'" onfocus=hacked=1 \'><script>hacked=1</script><img src=x onerror=hacked=1>', E'</textarea></script>\u202e\u2066 &amp;&#x27; {{name}} {{{name}}}',
        E'\'); drop table millrace.job; --', repeat(E'\u0301', 40) || ' ' || repeat('W', 200), E'javascript:hacked=1 \t\r\n <svg/onload=hacked=1>'])[1 + n % 5]
$$;

-- Queues and kinds. Their names may hold letters, digits and a few signs: long ones are the worst that there is.
insert into millrace.queue (name, created_at)
select 'queue-' || to_char(n, 'FM000000') || case when n % 50 = 0 then repeat('-long', 20) else '' end, now() from generate_series(1, :queues - (select count(*) from millrace.queue)) n;
select count(*) from (select millrace.register_kinds(array(select 'work.' || to_char(n, 'FM000') from generate_series(1, 200) n), array_fill(null::text, array[200]))) x;
create temp table kinds as select row_number() over (order by k.id) - 1 as n, k.id from millrace.kind k where k.name like 'work.%' and k.line = '';
create temp table queues as select row_number() over (order by q.id) - 1 as n, q.id from millrace.queue q where q.name like 'queue-%';
create index on kinds (n);
create index on queues (n);
analyze kinds;
analyze queues;
select count(*) as queue_count from queues \gset

-- Workers: forty of two builds.
select count(millrace.session_open(1000 + n, 'worker-' || n || pg_temp.evil(n), 'host-' || n, n, case when n <= 20 then '2.0.0' else '2.1.0' end || pg_temp.evil(n),
    null, array(select id from kinds), 20, false)) from generate_series(1, 40) n;

-- Jobs that have ended: one in twenty is dead, one in fifty was cancelled.
select setval('millrace.seq', greatest((select max(id) from millrace.job), (select last_value from millrace.seq)) / 8 * 8 + 8) as base \gset
create temp table ended as
select :base + i * 8 as id, k.id as kind, q.id as queue, now() - interval '1 day' * (1 - i::float8 / :jobs) * 0.9 as at,
       case when i % 20 = 0 then 3 when i % 50 = 1 then 2 else 1 end as outcome, 1001 + i % 40 as session, i as n
  from generate_series(1, :jobs::bigint) i join kinds k on k.n = i % 200 join queues q on q.n = i * 7 % :queue_count;
insert into millrace.job (id, kind, queue, lane, enqueued_at, args, tenant, owner, tags, metadata)
select e.id, e.kind, e.queue, 17, e.at - interval '2 s',
       jsonb_build_object('customer', 'c-' || e.n % 100000, 'password', 'hunter2', 'note', pg_temp.evil(e.n), 'items', jsonb_build_array(1, 2, jsonb_build_object('token', 'x'))),
       case when e.n % 3 = 0 then 'tenant-' || e.n % 500 || pg_temp.evil(e.n % 500) end, current_user,
       case when e.n % 4 = 0 then array['night', 'tag' || pg_temp.evil(e.n % 40)] end, case when e.n % 8 = 0 then jsonb_build_object('trace', pg_temp.evil(e.n)) end
  from ended e;
insert into millrace.history (id, session, number, started, finished, kind, queue, ms, class, outcome, attempt, crashes, error)
select e.id, e.session, e.n * 8, e.at, e.at + interval '1 s', e.kind, e.queue, (e.n * 37 % 5000)::int, 1, e.outcome, 1 + (e.n % 3)::int, 0,
       case e.outcome when 3 then 'the ' || (array['printer', 'bank', 'courier', 'map', 'scanner', 'provider', 'index', 'mirror'])[1 + e.n / 20 % 8]
                || ' refused ' || e.n || ': ' || pg_temp.evil(e.n / 20) when 2 then 'cancelled by ann' end
  from ended e;
select setval('millrace.seq', :base + (:jobs::bigint + 1) * 8);
insert into millrace.failure_note (first_at, at, session, queue, kind, error, failed, dead, jobs, lo, hi)
select min(e.at), max(e.at), 1001, e.queue, e.kind, min(h.error), count(*), count(*), (array_agg(e.id order by e.id desc))[1:20], min(e.id), max(e.id)
  from ended e join millrace.history h on h.id = e.id where e.outcome = 3 group by e.queue, e.kind, e.n / 20 % 8, e.n / 20 % 5;
do $$ begin while millrace.failures_fold() > 0 loop null; end loop; end $$;
insert into millrace.result (job, value) select e.id, jsonb_build_object('ok', true, 'note', pg_temp.evil(e.n), 'secret', 'x') from ended e where e.n % 10 = 1;

-- One job with many steps and lines, another with large arguments, and a flow.
insert into millrace.step (job, name, value, session, number, attempt, at)
select :base + 20 * 8, left('step ' || n || pg_temp.evil(n), 128), jsonb_build_object('note', pg_temp.evil(n)), 1001, 8, 1, now() - interval '1 hour' + n * interval '1 s' from generate_series(1, 300) n;
insert into millrace.log_line (job, n, at, level, session, number, attempt, line)
select :base + 20 * 8, n, now(), n % 4, 1001, 8, 1, 'line ' || n || pg_temp.evil(n) from generate_series(1, 5000) n;
update millrace.job set args = jsonb_build_object('rows', (select jsonb_agg(jsonb_build_object('id', i, 'password', 'hunter2', 'note', pg_temp.evil(i))) from generate_series(1, 4000) i))
 where id = :base + 40 * 8;
do $$
declare
    first bigint := millrace.enqueue('work.001', queue => 'default');
begin
    for n in 1 .. 100 loop
        perform millrace.enqueue('work.002', jsonb_build_object('n', n), queue => 'default', options => jsonb_build_object('after', array[first]));
    end loop;
end $$;

-- What waits: three jobs a queue, and some for later.
insert into millrace.job (id, kind, queue, lane, enqueued_at, args, owner)
select nextval('millrace.seq'), k.id, q.id, 17, now() - interval '1 minute', jsonb_build_object('note', pg_temp.evil(q.n)), current_user
  from queues q cross join generate_series(0, 2) g join kinds k on k.n = (q.n + g) % 200;
insert into millrace.ready (seq, job, queue, kind, lane) select j.id, j.id, j.queue, j.kind, j.lane from millrace.job j where j.id > :base + (:jobs::bigint + 1) * 8
   and j.enqueued_at < now() - interval '30 s';
select count(*) from (select millrace.enqueue('work.003', '{}', queue => 'default', run_at => now() + n * interval '1 minute') from generate_series(1, 2000) n) x;

-- Schedules, limits, bulk actions, the audit and events.
select count(millrace.schedule_set('schedule-' || n, 'every 15 minutes', 'work.004', jsonb_build_object('note', pg_temp.evil(n)))) from generate_series(1, 300) n;
select count(millrace.limit_set('tenant', 'tenant-' || n || pg_temp.evil(n), '{"rate": 5, "per": 60}')) from generate_series(1, 300) n;
insert into millrace.audit (at, who, said_by, action, object, detail)
select now() - n * interval '20 s', 'millrace', 'ann' || pg_temp.evil(n), (array['job.retry', 'queue.pause', 'job.cancel', 'schedule.set'])[1 + n % 4], 'object ' || n, jsonb_build_object('note', pg_temp.evil(n))
  from generate_series(1, 100000) n;
insert into millrace.fleet_event (at, event, subject, by, detail)
select now() - n * interval '10 minutes', (array['deploy', 'worker.started', 'worker.lost'])[1 + n % 3], 'worker-' || n || pg_temp.evil(n), 'ann', pg_temp.evil(n) from generate_series(1, 2000) n;

-- Samples of the last twenty minutes, then as they are packed.
insert into millrace.tally (at, session, queue, kind, succeeded, failed, dead, ms, wait_ms, waits, times)
select now() - interval '5 s', 1001 + q.n % 40, q.id, k.id, 4, 1, 1, 900, 90, 4, '14:1,2,1' from queues q join kinds k on k.n = q.n % 200;
select count(millrace.beat(1000 + n, 'working', 2, 0, 0)) from generate_series(1, 40) n;
delete from millrace.sample_fresh;
select millrace.sample_take();
insert into millrace.sample_fresh (what, at, keys, vals)
select f.what, f.at - n * interval '10 s', f.keys, f.vals from millrace.sample_fresh f cross join generate_series(1, 120) n on conflict do nothing;
