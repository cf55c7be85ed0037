-- Flows: jobs that wait for others, jobs that a run makes for after itself, and what becomes of all of them together.

-- Looked at from the end, for edges are dropped from the front.
create or replace function millrace.flows_in_use() returns boolean
language plpgsql stable as $$ begin return exists (select from (select from millrace.edge e order by e.pred desc, e.succ desc limit 1) x); end $$;

-- Notes the ends that other jobs wait for, and the unfinished runs that had made jobs. Returns true when there were any: the caller that
-- ended them then calls flows_advance, after the commit.
create or replace function millrace.flows_note(ids bigint[], outcomes smallint[], the_session bigint, numbers bigint[]) returns boolean
language plpgsql volatile as $$
declare
    -- With an older snapshot a caller's own transaction does not see who waits by now.
    sees_all boolean := current_setting('transaction_isolation') = 'read committed';
begin
    if sees_all and not millrace.flows_in_use() then
        return false;
    end if;
    insert into millrace.ending (pred, outcome, session, number)
    select f.id, f.outcome, the_session, f.number
      from unnest(ids, outcomes, numbers) f(id, outcome, number)
     where not sees_all or exists (select from millrace.edge e
                    where e.pred = f.id and coalesce(e.outcome, 0) = 0
                      and (f.outcome <= 3 or (e.session = the_session and e.number = f.number)));
    return found;
end $$;

-- Notes ends that no worker's flush makes. They are noted whether a job is seen that waits for them or not: see flows_check. Nobody is told
-- of one that nobody waits for; it is looked at within a second.
create or replace function millrace.ends_note(ids bigint[], outcome int) returns void
language plpgsql volatile set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
    insert into millrace.ending (pred, outcome) select i, ends_note.outcome from unnest(ids) i;
    if millrace.flows_in_use() and exists (
        select from unnest(ids) i(id) cross join lateral (select from millrace.edge e where e.pred = i.id and coalesce(e.outcome, 0) = 0 limit 1) e)
    then
        perform pg_notify('millrace', 'flows');
    end if;
end $$;

-- Tells back ends that listen, of those of these ended jobs that ask for it with options.tell_end. Who misses a notification sees the end with
-- wait_for.
create or replace function millrace.ends_tell(ids bigint[]) returns void
language plpgsql volatile as $$
begin
    perform pg_notify('millrace_ends', i.id::text)
       from unnest(ids) i(id) cross join lateral (select j.options from millrace.job j where j.id = i.id offset 0) j
      where j.options @> '{"tell_end": true}';
end $$;

-- Reads options.after, fence and before of a new job, and draws its edges. True when it has to wait.
create or replace function millrace.flow_join(the_job bigint, the_options jsonb, the_due timestamptz, caller name) returns boolean
language plpgsql volatile set enable_seqscan = off as $$
declare
    given jsonb := the_options -> 'after';
    preds bigint[] := '{}';
    run record;
    follower bigint;
begin
    if jsonb_typeof(given) = 'object' then
        given := given -> 'jobs';
    end if;
    if given is not null then
        preds := array(select distinct p::bigint from jsonb_array_elements_text(given) p);
        perform millrace.must_see(p, caller => flow_join.caller) from unnest(preds) p;
        insert into millrace.edge (pred, succ) select p, the_job from unnest(preds) p;
    end if;
    if the_options ? 'fence' then
        select * into run from millrace.live_run(the_options ->> 'fence');
        insert into millrace.edge (pred, succ, session, number) values (run.job, the_job, run.session, run.number)
            on conflict (pred, succ) do update set session = excluded.session, number = excluded.number;
    end if;
    for follower in select b::bigint from jsonb_array_elements_text(the_options -> 'before') b loop
        perform millrace.must_see(follower, caller => flow_join.caller);
        perform from millrace.blocked b where b.job = follower for update;
        if not found then
            perform millrace.refuse(format('job %s is no longer blocked', follower), 'options.before',
                'First enqueue the blocked job with after or fence, then the jobs before it.', '55000', 'conflict');
        end if;
        if millrace.flow_waits(array[the_job], follower) then
            perform millrace.refuse(format('job %s would wait for itself: the new job comes before it, and after it', follower), 'options.before',
                'Leave it out of before, or out of what the new job comes after.');
        end if;
        insert into millrace.edge (pred, succ) values (the_job, follower) on conflict do nothing;
    end loop;
    if given is null and not the_options ? 'fence' then
        return false;
    end if;
    insert into millrace.blocked (job, due, starts, waits, fresh)
    values (the_job, the_due, millrace.flow_starts(the_options), coalesce(the_options #>> '{after,any_dead}' = 'wait', false), true);
    return true;
end $$;

-- Whether one of these jobs waits for that one, by others or by a unique key.
create or replace function millrace.flow_waits(ids bigint[], that bigint) returns boolean
language plpgsql stable set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
begin
    return exists (
        with recursive kin(job) as (
            select unnest(ids)
            union
            select n.job from kin k cross join lateral (
                select e.pred as job from millrace.edge e where e.succ = k.job and e.outcome is null
                union all
                select u.job from millrace.unique_lock u where u.next = k.job) n
        )
        select from kin k where k.job = that);
end $$;

create or replace function millrace.flow_starts(the_options jsonb) returns smallint
language sql immutable as $$
    select coalesce(array_position(array['succeeded', 'ended', 'dead'], case when jsonb_typeof(the_options -> 'after') = 'object' then the_options #>> '{after,when}' end), 1)::smallint
$$;

-- Refuses what makes no sense in options.after, fence and before.
create or replace function millrace.flow_check(name text, value jsonb) returns void
language plpgsql stable as $$
declare
    ids jsonb := value;
    field text := 'options.' || name;
begin
    if name = 'fence' then
        if jsonb_typeof(value) <> 'string' then
            perform millrace.refuse('options.fence is not a token', field, 'Give the run''s own token, as the handler was given it.');
        end if;
        perform millrace.read_token(value #>> '{}');
        return;
    end if;
    if name = 'after' and jsonb_typeof(value) = 'object' then
        if exists (select from jsonb_object_keys(value) k where k not in ('jobs', 'when', 'any_dead')) then
            perform millrace.refuse('options.after has an unknown field', field, 'Allowed: jobs, when and any_dead.');
        elsif coalesce(value ->> 'when', 'succeeded') not in ('succeeded', 'ended', 'dead') then
            perform millrace.refuse('options.after.when is unknown', field, 'Give succeeded, ended or dead.');
        elsif coalesce(value ->> 'any_dead', 'cancel') not in ('cancel', 'wait') then
            perform millrace.refuse('options.after.any_dead is unknown', field, 'Give cancel or wait.');
        end if;
        ids := value -> 'jobs';
    end if;
    if jsonb_typeof(ids) is distinct from 'array' or jsonb_array_length(ids) not between 1 and 1000
       or exists (select from jsonb_array_elements(ids) i where jsonb_typeof(i) <> 'number' or i::numeric % 1 <> 0 or i::numeric not between 1 and 9223372036854775807)
    then
        perform millrace.refuse(format('options.%s names no jobs', name), field, 'Give 1 to 1000 job ids. Further jobs can each name the blocked job in options.before.');
    end if;
end $$;

-- The run that a token names, while it is live; its lease is locked against a rescuer until the caller's commit.
create or replace function millrace.live_run(token text, out session bigint, out number bigint, out job bigint)
language plpgsql volatile set enable_seqscan = off as $$
declare
    began timestamptz;
begin
    select t.session, t.number, t.job into session, number, job from millrace.read_token(token) t;
    select l.at into began from millrace.lease l
     where l.session = live_run.session and l.number = live_run.number and live_run.job = any (l.ids) for key share;
    if not found or exists (
        select from millrace.history h
         where h.class = (live_run.number & 3)::smallint and h.started = began and h.id = live_run.job
           and h.session = live_run.session and h.number = live_run.number)
    then
        perform millrace.refuse('the lease is lost: nothing is enqueued on behalf of this run', 'options.fence',
            'Roll back and stop: another run has the job, or will have it.', '55000', 'lease_lost');
    end if;
end $$;

-- Whether a job may do the work of a row that its arguments name: it is the row's own job, staff has made it, or whose job it is owns the row too.
-- Who may enqueue a kind can write any id into the arguments.
create or replace function millrace.job_serves(the_job bigint, the_rows_job bigint, the_owner text, the_tenant text) returns boolean
language sql stable set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
    select coalesce(the_job = the_rows_job, false) or exists (
        select from millrace.job j
         where j.id = the_job and (millrace.is_staff(j.owner::name) or j.owner = the_owner and j.tenant is not distinct from the_tenant) offset 0)
$$;

-- Many jobs of one kind, which a run makes to follow it: they do not start before the run has succeeded, and they are forgotten if it does
-- not. `before` names a job, made by the same run, that waits for all of them.
create or replace function millrace.spawn(
    token text, kind text, args text[], queue text default null, priority int default null, run_at timestamptz default null, before bigint default null,
    version int default null
) returns table (first bigint, last bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    run record;
    head record;
    to_index bigint[];
    trace jsonb := coalesce(millrace.trace_now(),         -- the run's own place, or that of its job
        (select millrace.trace_of(j.metadata) from millrace.read_token(spawn.token) t cross join lateral (select * from millrace.job j where j.id = t.job offset 0) j));
    options jsonb := jsonb_strip_nulls(jsonb_build_object('fence', spawn.token, 'version', spawn.version, 'before', case when spawn.before is not null then jsonb_build_array(spawn.before) end));
begin
    if coalesce(cardinality(spawn.args), 0) = 0 then
        return;
    end if;
    -- The first goes the long way and is checked like any other; the rest share all of it but their arguments.
    select e.id into first from millrace.enqueue_one(spawn.kind, spawn.args[1]::jsonb, spawn.queue, spawn.priority, spawn.run_at,
        null, 'skip', null, null, null, null, trace, options, caller => current_user) e;
    last := first;
    select * into run from millrace.read_token(spawn.token);
    select j.*, k.searchable, k.split into strict head from millrace.job j join millrace.kind k on k.id = millrace.kind_plain(j.kind) where j.id = first;
    if exists (select from unnest(spawn.args) a where octet_length(a) > 1048576) then
        perform millrace.refuse('args of a job take more than the 1048576 bytes allowed', 'args',
            'Store large data elsewhere and pass a reference.', '53400', 'too_large');
    end if;
    with new as materialized (
        select nextval('millrace.seq') as id, a::jsonb as args, case when head.split is null then head.kind else millrace.kind_drawn(head.kind) end as kind from unnest(spawn.args[2:]) a
    ), written as (
        insert into millrace.job (id, kind, queue, lane, enqueued_at, run_at, args, owner, metadata, options)
        select n.id, n.kind, head.queue, head.lane, head.enqueued_at, head.run_at, n.args, head.owner, head.metadata, head.options from new n
    ), waiting as (
        insert into millrace.blocked (job, due, starts, waits, fresh) select n.id, spawn.run_at, 1, false, true from new n
    ), made as (
        insert into millrace.edge (pred, succ, session, number) select run.job, n.id, run.session, run.number from new n
    ), joined as (
        insert into millrace.edge (pred, succ) select n.id, spawn.before from new n where spawn.before is not null
    )
    select coalesce(max(n.id), last), case when head.searchable then array_agg(n.id) end into last, to_index from new n;
    if to_index is not null then
        perform millrace.fields_put_many(to_index);
    end if;
    return next;
end $$;
select millrace.door_is('queue', 'spawn', 'worker', 'staff');

-- Looks at these blocked jobs again: those that may start get their place, those that cannot any more are cancelled or wait on.
-- Each is locked before its edges are read, so that of two who end its last two jobs the second sees both ends.
create or replace function millrace.flow_settle(succs bigint[]) returns void
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    t timestamptz := millrace.now();
    locked bigint[];
    starting bigint[];
    stopped bigint[];
    reasons text[];
    unwanted bigint[];
    woken_queues int[];
    woken_lanes int[];
begin
    select array_agg(b.job) into locked
      from (select b.job from millrace.blocked b where b.job = any (succs) order by b.job for update) b;
    if locked is null then
        return;
    end if;
    select array_agg(s.job) filter (where s.verdict = 1), array_agg(s.job) filter (where s.verdict = 2), array_agg(s.reason) filter (where s.verdict = 2), array_agg(s.job) filter (where s.verdict = 3)
      into starting, stopped, reasons, unwanted
      from (
        select b.job,
               case b.starts
                   when 1 then case when bad.pred is not null then case when b.waits then 0 else 2 end when open then 0 else 1 end
                   when 2 then case when open then 0 else 1 end
                   when 4 then millrace.undo_verdict(b.job, open)
                   else case when bad.pred is not null then 1 when open then 0 else 2 end end as verdict,
               case when b.starts = 1 then format('job %s, which it waits for, %s', bad.pred, case bad.outcome when 2 then 'was cancelled' else 'is dead' end)
                   else 'every job whose failure it waits for has succeeded' end as reason
          from millrace.blocked b
         cross join lateral (select exists (select from (select from millrace.edge e where e.succ = b.job and e.outcome is null order by e.succ desc, e.pred desc limit 1) x) as open) o
          left join lateral (select e.pred, e.outcome from millrace.edge e where e.succ = b.job and e.outcome in (2, 3) limit 1) bad on b.starts not in (2, 4)
         where b.job = any (locked)) s;

    if starting is not null then
        perform pg_current_xact_id();                     -- before numbers are drawn: see horizon()
        with gone as materialized (
            delete from millrace.blocked b where b.job = any (starting) returning b.job, b.due
        ), going as materialized (
            -- A job that waits in the middle keeps its count of runs.
            select g.job, g.due, j.queue, j.kind, j.lane, j.limit_key, j.limit_scope, coalesce(w.attempt, 0::smallint) as attempt, coalesce(w.crashes, 0::smallint) as crashes
              from gone g cross join lateral (select * from millrace.job j where j.id = g.job offset 0) j
              left join lateral (select x.attempt, x.crashes from millrace.wait x where x.job = g.job and x.what = 3 offset 0) w on true
        ), later as (
            insert into millrace.timer (due, job, queue, kind, lane, attempt, crashes)
            select g.due, g.job, g.queue, g.kind, millrace.lane_of(g.lane, g.crashes, false), g.attempt, g.crashes from going g where g.due > t
        ), now_ready as (
            insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes, gate)
            select nextval('millrace.seq'), g.job, g.queue, g.kind, millrace.lane_of(g.lane, g.crashes, g.attempt + g.crashes > 0), g.attempt, g.crashes,
                   millrace.key_gate(g.limit_key, g.limit_scope)
              from going g where coalesce(g.due <= t, true)
        )
        select array_agg(distinct g.queue), array_agg(distinct g.lane) into woken_queues, woken_lanes from going g where coalesce(g.due <= t + interval '2 s', true);
        perform millrace.wake(q, l) from unnest(woken_queues) q cross join unnest(woken_lanes) l;
    end if;
    if stopped is not null then
        perform millrace.flow_stop(stopped, reasons);
    end if;
    if unwanted is not null then
        delete from millrace.undo u where u.undo_job = any (unwanted);
        perform millrace.flow_forget(unwanted);
    end if;
end $$;

-- Ends blocked jobs without a run.
create or replace function millrace.flow_stop(ids bigint[], reasons text[]) returns void
language plpgsql volatile set enable_seqscan = off as $$
begin
    delete from millrace.blocked b where b.job = any (ids);
    perform millrace.end_without_run(ids, reasons);
end $$;

-- Forgets jobs that a run made but that must not start: it is as if they had never been enqueued. Jobs that wait for them wait no longer.
-- They are blocked, except for cancelled ones; one that runs nevertheless, because an earlier version redrove it, is cancelled and ends
-- like any other.
create or replace function millrace.flow_forget(ids bigint[]) returns void
language plpgsql volatile set enable_seqscan = off as $$
declare
    followers bigint[];
    keyed bigint[];
    others bigint[];
    running bigint[] := array[]::bigint[];
    one bigint;
begin
    with gone as (
        delete from millrace.blocked b where b.job = any (ids) returning b.job
    )
    select array_agg(o.id) into others from (select unnest(ids) as id except select g.job from gone g) o;
    foreach one in array coalesce(others, '{}') loop
        perform from millrace.unique_lock u join millrace.job j on j.unique_hash = u.hash where j.id = one for update of u;
        if millrace.take_out(one) = 'running' then
            perform millrace.cancel_now(one);
            running := running || one;
        end if;
    end loop;
    if cardinality(running) > 0 then
        delete from millrace.edge e where e.succ = any (running) and e.number is not null;
        ids := array(select unnest(ids) except select unnest(running));
    end if;
    with gone as (
        delete from millrace.edge e where e.pred = any (ids) returning e.succ
    )
    select array_agg(distinct g.succ) into followers from gone g where g.succ <> all (ids);
    delete from millrace.edge e where e.succ = any (ids);
    delete from millrace.ending n where n.pred = any (ids);
    select array_agg(j.id) into keyed from unnest(ids) i(id) cross join lateral (select j.id, j.unique_hash from millrace.job j where j.id = i.id offset 0) j
     where j.unique_hash is not null;
    if keyed is not null then
        perform millrace.unique_end(keyed, for_good => true);
    end if;
    delete from millrace.job j where j.id = any (ids);
    if followers is not null then
        perform millrace.flow_settle(followers);
    end if;
end $$;

-- Edges are looked up by the job that is waited for with coalesce(outcome, 0) = 0. With `is null` the planner of a table without statistics
-- would take the index of open edges, which begins with the other end, and read all of it each time.

-- Moves on jobs that wait for ended ones, a bounded number at a time; `more` says to call again. Any worker does it, after an end that was
-- noted and once a second; notes that another session has locked are skipped.
create or replace function millrace.flows_advance(most int default 2000, out told int, out more boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off as $$
declare
    t timestamptz := millrace.now();
    seqs bigint[];
    one bigint;
    held int := 0;
    n int;
    gone int;
begin
    told := 0;
    more := false;
    if not exists (select from millrace.ending e where coalesce(e.look_at <= t, true)) then
        return;
    end if;
    -- One teller at a time: two that settle the same jobs by different ends would wait for each other in a circle.
    perform millrace.turns_wait('flows');
    seqs := array(select e.seq from millrace.ending e where e.look_at is null order by e.seq limit 1000 for update skip locked);
    if seqs <> '{}' then
        begin
            select x.told, x.gone into told, gone from millrace.flows_tell(seqs, most) x;
            more := gone = 1000 or told > 0 and (told >= most or gone < cardinality(seqs));
        exception when lock_not_available or deadlock_detected then
            -- Somebody's open transaction holds one of these jobs. The others need not wait for it: each by itself, and that one later.
            foreach one in array seqs loop
                n := millrace.flows_tell_one(one, most);
                told := told + coalesce(n, 0);
                held := held + (n is null)::int;
                exit when held = 5;                       -- others wait for this teller
            end loop;
            more := true;
        end;
    end if;
    held := 0;
    for one in select e.seq from millrace.ending e where e.look_at <= t order by e.look_at, e.seq limit 1000 for update skip locked loop
        n := millrace.flows_tell_one(one, most);
        told := told + coalesce(n, 0);
        more := more or coalesce(n > 0, false);           -- they may have followers of their own
        held := held + (n is null)::int;
        exit when held = 3;
    end loop;
end $$;
select millrace.door_is('queue', 'flows_advance', 'worker', 'staff');

-- Tells one end, or looks at it again in a second: null.
create or replace function millrace.flows_tell_one(the_seq bigint, most int) returns int
language plpgsql volatile as $$
begin
    return (select x.told from millrace.flows_tell(array[the_seq], most) x);
exception when lock_not_available or deadlock_detected then
    update millrace.ending e set look_at = millrace.now() + interval '1 second' where e.seq = the_seq;
    return null;
end $$;

-- Tells these ends, which the caller has locked. gone: how many need not be told any more. It waits for no open transaction.
create or replace function millrace.flows_tell(seqs bigint[], most int, out told int, out gone int)
language plpgsql volatile set lock_timeout = '100ms' set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    preds bigint[];
    outcomes smallint[];
    sessions bigint[];
    numbers bigint[];
    succs bigint[];
    held bigint[];
    n int;
begin
    told := 0;
    select array_agg(x.seq), array_agg(x.pred), array_agg(x.outcome), array_agg(x.session), array_agg(x.number)
      into seqs, preds, outcomes, sessions, numbers
      from (select e.* from millrace.ending e where e.seq = any (seqs) order by e.seq) x;
    if seqs is null then
        gone := 0;
        return;
    end if;
    -- Jobs that somebody's open transaction holds are told later, and the others of the same end now.
    succs := array(
        select distinct c.succ
          from unnest(preds, outcomes, sessions, numbers) x(pred, outcome, session, number)
         cross join lateral (
            select c.succ from millrace.edge c
             where c.pred = x.pred and coalesce(c.outcome, 0) = 0
               and (c.number is null or (x.outcome = 1 and c.session = x.session and c.number = x.number))
             limit most) c
         where x.outcome in (1, 2, 3) limit most);
    held := array(
        select b.job from millrace.blocked b where b.job = any (succs)
        except select unnest(array(select b.job from millrace.blocked b where b.job = any (succs) order by b.job for update skip locked)));
    for final in 1 .. 3 loop
        with told_now as (
            update millrace.edge e set outcome = final
             where e.ctid = any (array(
                select c.ctid
                  from unnest(preds, outcomes, sessions, numbers) x(pred, outcome, session, number)
                 cross join lateral (
                    select c.ctid from millrace.edge c
                     where c.pred = x.pred and coalesce(c.outcome, 0) = 0
                       and (c.number is null or (x.outcome = 1 and c.session = x.session and c.number = x.number))
                       and c.succ <> all (held)
                     limit most) c
                 where x.outcome = final limit greatest(most - told, 0)))
            returning e.succ
        )
        select count(*), array_agg(distinct w.succ) into n, succs from told_now w;
        told := told + n;
        if succs is not null then
            perform millrace.flow_settle(succs);
        end if;
    end loop;
    -- Jobs made by runs that did not succeed are forgotten: those of every run but the succeeded one, once the job has ended.
    select array_agg(distinct f.succ) into succs from (
        select c.succ
          from unnest(preds, outcomes, sessions, numbers) x(pred, outcome, session, number)
         cross join lateral (
            select c.succ from millrace.edge c
             where c.pred = x.pred and coalesce(c.outcome, 0) = 0 and c.number is not null
               and case x.outcome when 1 then (c.session, c.number) <> (x.session, x.number) when 2 then true when 3 then true
                       else (c.session, c.number) = (x.session, x.number) end
             limit most) c
         limit greatest(most - told, 0)) f;
    if succs is not null then
        told := told + cardinality(succs);
        perform millrace.flow_forget(succs);
    end if;
    -- Undos that were forgotten: those of earlier steps do not wait for them.
    if 9 = any (outcomes) then
        with gone as (
            delete from millrace.edge e
             where e.pred = any (array(select x.pred from unnest(preds, outcomes) x(pred, outcome) where x.outcome = 9)) and e.number is null returning e.succ
        )
        select array_agg(distinct g.succ) into succs from gone g;
        if succs is not null then
            perform millrace.flow_settle(succs);
        end if;
    end if;
    delete from millrace.ending e
     where e.seq = any (array(
        select x.seq from unnest(seqs, preds, outcomes, sessions, numbers) x(seq, pred, outcome, session, number)
         where not exists (
            select from millrace.edge c
             where c.pred = x.pred and coalesce(c.outcome, 0) = 0
               and (x.outcome in (1, 2, 3) or (c.session = x.session and c.number = x.number)))));
    get diagnostics gone = row_count;
    if held <> '{}' then
        update millrace.ending e set look_at = millrace.now() + interval '1 second'
         where e.seq = any (seqs) and exists (select from millrace.edge c where c.pred = e.pred and c.succ = any (held) and coalesce(c.outcome, 0) = 0);
    end if;
end $$;

-- Checks jobs that were enqueued at the same moment as the end of a job they wait for: that end may not have seen them. After one look that
-- is sure the two cannot miss each other any more. For let F wait for X, and let this look come after F's commit, as it must to see F:
--   The end is a worker's flush, a rescue or a hand-back. It locks X's lease before it looks for those who wait, and reads what is committed.
--       Where this look finds the lease locked, it is not sure and comes again. Where it locks the lease itself, or finds none, the end comes
--       after it and sees F; or it came before, and its record is here.
--   The end is any other: a cancellation, a deletion, complete() with an older snapshot. It leaves a note whether it sees F or not. Where it
--       is committed, its record is here. Where it is not, its note appears when it is; who takes that note looks for those who wait after
--       that, and sees F; and the note stays until somebody has looked.
-- No place of X needs to be locked, so an open transaction keeps nobody waiting, and a repeatable read, which sees no F, loses nobody.
create or replace function millrace.flows_check(most int default 500) returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off as $$
declare
    fresh bigint[];
    one bigint;
    held int := 0;
begin
    if not exists (select from millrace.blocked b where b.fresh) then
        return 0;
    end if;
    perform millrace.turns_wait('flows');                 -- see flows_advance
    fresh := array(select b.job from millrace.blocked b where b.fresh order by b.job limit most for update skip locked);
    begin
        perform millrace.flows_look(fresh);
    exception when lock_not_available or deadlock_detected then
        -- As in flows_advance; which of them is looked at first is left to chance, so that none is always behind those that are held.
        for one in select f from unnest(fresh) f order by random() loop
            begin
                perform millrace.flows_look(array[one]);
            exception when lock_not_available or deadlock_detected then
                held := held + 1;                         -- it is fresh as before
            end;
            exit when held = 5;
        end loop;
    end;
    return cardinality(fresh);
end $$;
select millrace.door_is('queue', 'flows_check', 'worker', 'staff');

-- Whether the next end of a job that these wait for cannot miss them: nobody ends a run of it at this moment. Its lease stays locked until the
-- caller's commit.
create or replace function millrace.flow_end_is_ahead(the_pred bigint) returns boolean
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    perform from millrace.lease l where l.lo <= the_pred and l.hi >= the_pred and the_pred = any (l.ids) for update skip locked;
    return found or not exists (select from millrace.lease l where l.lo <= the_pred and l.hi >= the_pred and the_pred = any (l.ids));
end $$;

-- The run that made a job may be over, before the job was there or while it was away: then what that end makes of it is done now.
create or replace function millrace.flow_note_again(the_pred bigint, the_session bigint, the_number bigint) returns void
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    insert into millrace.ending (pred, outcome, session, number)
    select h.id, h.outcome, h.session, h.number from millrace.history h
     where h.id = the_pred and (h.outcome in (1, 2, 3) or (h.session = the_session and h.number = the_number))
       and not exists (select from millrace.ending n where n.pred = the_pred)
     order by h.outcome in (1, 2, 3) desc limit 1;
    if not found and not exists (select from millrace.job j where j.id = the_pred) and not exists (select from millrace.ending n where n.pred = the_pred) then
        insert into millrace.ending (pred, outcome) values (the_pred, 2);
    end if;
end $$;

-- Looks at these fresh jobs, which the caller has locked. It waits for no open transaction.
create or replace function millrace.flows_look(fresh bigint[]) returns void
language plpgsql volatile set lock_timeout = '100ms' set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    made record;
    one bigint;
    pred record;
    ended smallint;
    sure boolean;
begin
    -- All that one run has made, and that wait for nothing else, are looked at together: there may be very many. They stay where they are.
    for made in
        select e.pred, e.session, e.number, array_agg(e.succ) as jobs from millrace.edge e
         where e.succ = any (fresh) and e.number is not null and e.outcome is null
           and not exists (select from millrace.edge o where o.succ = e.succ and o.outcome is null and o.pred <> e.pred)
         group by e.pred, e.session, e.number
    loop
        sure := millrace.flow_end_is_ahead(made.pred);
        perform millrace.flow_note_again(made.pred, made.session, made.number);
        if sure then
            update millrace.blocked b set fresh = false
             where b.job = any (array(
                select o.job from millrace.edge e join millrace.blocked o on o.job = e.succ
                 where e.pred = made.pred and e.session = made.session and e.number = made.number and e.outcome is null and o.fresh
                   and not exists (select from millrace.edge x where x.succ = e.succ and x.outcome is null and x.pred <> e.pred)
                 for update of o skip locked));
        end if;
        fresh := array(select f from unnest(fresh) f where f <> all (made.jobs));
    end loop;
    foreach one in array fresh loop
        sure := true;
        for pred in select e.pred, e.session, e.number from millrace.edge e where e.succ = one and e.outcome is null loop
            ended := null;
            if not millrace.flow_end_is_ahead(pred.pred) then
                sure := false;
                continue;
            end if;
            if pred.number is not null then
                perform millrace.flow_note_again(pred.pred, pred.session, pred.number);
                continue;
            end if;
            select h.outcome into ended from millrace.history h where h.id = pred.pred and h.outcome in (1, 2, 3) limit 1;
            if found then
                update millrace.edge e set outcome = ended where e.pred = pred.pred and e.succ = one and e.outcome is null;
            elsif not exists (select from millrace.job j where j.id = pred.pred)    -- where it was deleted, its end is noted
                and not exists (select from millrace.ending n where n.pred = pred.pred) then
                delete from millrace.edge e where e.pred = pred.pred and e.succ = one;
            end if;
        end loop;
        if sure then
            update millrace.blocked b set fresh = false where b.job = one;
        end if;
        perform millrace.flow_settle(array[one]);
    end loop;
end $$;

-- Deletes edges whose jobs are gone: a range of them at each call of maintenance. Returns how many. That a job waited for one that failed
-- stays known as long as the job itself: it may come back to its place, and must not start then.
create or replace function millrace.flows_expire(most int default 20000) returns int
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    low bigint;
    high bigint;
    n int;
    expired int;
begin
    select s.upto into low from millrace.edge_sweep s for update;
    select max(x.pred), count(*) into high, n from (select e.pred from millrace.edge e where e.pred > low order by e.pred limit most) x;
    delete from millrace.edge e
     where e.pred > low and e.pred <= high
       and (not exists (select from millrace.job j where j.id = e.succ)
            or e.outcome = 1 and not exists (select from millrace.job j where j.id = e.pred));
    get diagnostics expired = row_count;
    update millrace.edge_sweep s set upto = case when n < most then 0 else high end where s.upto <> case when n < most then 0 else high end;
    return expired;
end $$;
