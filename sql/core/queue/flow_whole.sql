-- Operations on a flow as a whole, and its view.

-- Every job that hangs together with this one, itself included, by number. At most `most`.
create or replace function millrace.flow_ids(id bigint, most int default 1000000, caller millrace.caller_name default current_user) returns setof bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
    perform millrace.must_see(flow_ids.id, caller => flow_ids.caller);
    return query
    with recursive kin(job) as (
        select flow_ids.id
        union
        select n.job from kin k cross join lateral (
            select e.succ as job from millrace.edge e where e.pred = k.job
            union all
            select e.pred from millrace.edge e where e.succ = k.job) n
    )
    select k.job from kin k order by k.job limit most;
end $$;
select millrace.door_is('queue', 'flow_ids', 'worker, operator', 'staff');

-- Cancels all jobs of a flow that have not ended, the last ones first, so that nothing starts meanwhile. What the cancelled ones have done is
-- undone: the undos are of the flow too, and are left alone. Returns how many.
create or replace function millrace.flow_cancel(id bigint, caller millrace.caller_name default current_user) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one bigint;
    head record;
    cancelled int := 0;
begin
    for one in select f from millrace.flow_ids(flow_cancel.id, caller => flow_cancel.caller) f order by f desc loop
        select j.owner, j.tenant into head from millrace.job j where j.id = one;
        continue when not found or not millrace.may_see(head.owner, head.tenant, caller => flow_cancel.caller)
            or exists (select from millrace.undo u where u.undo_job = one);
        cancelled := cancelled + millrace.cancel_now(one)::int;
    end loop;
    if cancelled > 0 then
        perform millrace.audited('flow.cancel', flow_cancel.id::text, jsonb_build_object('jobs', cancelled), caller => flow_cancel.caller);
    end if;
    return cancelled;
end $$;
select millrace.door_is('queue', 'flow_cancel', 'client, worker, operator', 'tenant job',
    'Cancels the jobs of a flow.', audited => true);

-- Runs all dead and cancelled jobs of a flow again: those that can run start at once, the others wait for them as before.
create or replace function millrace.flow_retry(id bigint, caller millrace.caller_name default current_user) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    one bigint;
    head record;
    retried int := 0;
begin
    for one in select f from millrace.flow_ids(flow_retry.id, caller => flow_retry.caller) f order by f loop
        select j.* into head from millrace.job j where j.id = one;
        continue when not found or not millrace.may_see(head.owner, head.tenant, caller => flow_retry.caller);
        retried := retried + millrace.redrive(one, with_flow => true)::int;
    end loop;
    if retried > 0 then
        perform millrace.audited('flow.retry', flow_retry.id::text, jsonb_build_object('jobs', retried), caller => flow_retry.caller);
    end if;
    return retried;
end $$;
select millrace.door_is('queue', 'flow_retry', 'worker, operator', 'staff', audited => true);

-- The flow around a job as a tree: each job below the one it waits for that came last. At most `most` below any one.
create or replace function millrace.flow_tree(id bigint, most int default 20, caller millrace.caller_name default current_user)
returns table (depth int, job bigint, kind text, state text, below bigint, hidden bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    root bigint := flow_tree.id;
    up bigint;
    stack bigint[];
    depths int[];
    seen bigint[] := '{}';
    kids bigint[];
    head record;
    found_jobs bigint[] := '{}';
    found_depths int[] := '{}';
    found_below bigint[] := '{}';
    found_hidden bigint[] := '{}';
begin
    perform millrace.must_see(flow_tree.id, caller => flow_tree.caller);
    for step in 1 .. 1000 loop                            -- to the first of all
        select min(e.pred) into up from millrace.edge e where e.succ = root;
        exit when up is null;
        root := up;
    end loop;
    stack := array[root];
    depths := array[0];
    while cardinality(stack) > 0 and cardinality(seen) < 2000 loop
        job := stack[cardinality(stack)];
        depth := depths[cardinality(depths)];
        stack := stack[1:cardinality(stack) - 1];
        depths := depths[1:cardinality(depths) - 1];
        continue when job = any (seen);
        seen := seen || job;
        select j.owner, j.tenant into head from millrace.job j where j.id = flow_tree.job;
        continue when not found or not millrace.may_see(head.owner, head.tenant, caller => flow_tree.caller);
        select count(*) into below from millrace.edge e where e.pred = flow_tree.job;
        -- A job is shown below the last job that it waits for; otherwise the run that made it and the jobs that it joins would show it
        -- twice.
        select array_agg(c.succ) into kids from (
            select e.succ from millrace.edge e
             where e.pred = flow_tree.job
               and not exists (select from millrace.edge o where o.succ = e.succ and o.pred > e.pred)
             order by e.succ limit most) c;
        hidden := greatest(0, (select count(*) from (select from millrace.edge e
                                 where e.pred = flow_tree.job
                                   and not exists (select from millrace.edge o where o.succ = e.succ and o.pred > e.pred) limit 100000) c)
                              - coalesce(cardinality(kids), 0));
        found_jobs := found_jobs || job;
        found_depths := found_depths || depth;
        found_below := found_below || below;
        found_hidden := found_hidden || hidden;
        if kids is not null then
            stack := stack || array(select k from unnest(kids) with ordinality u(k, n) order by n desc);
            depths := depths || array_fill(depth + 1, array[cardinality(kids)]);
        end if;
    end loop;
    -- Their states at once: one look for each costs more than all the rest.
    return query
    select f.depth, f.job, s.kind, s.state, f.below, f.hidden
      from unnest(found_depths, found_jobs, found_below, found_hidden) with ordinality f(depth, job, below, hidden, place)
      left join millrace.job_states(found_jobs) s on s.job = f.job
     order by f.place;
end $$;
select millrace.door_is('queue', 'flow_tree', 'client, worker, viewer', 'tenant job', 'The jobs of a flow.');

-- The flow around a job as a graph, for drawing: its jobs with kind and state, by number, and pairs of a job and one that waits for it; `made`: the second was made by a run of
-- the first. A flow of more than `most` jobs, or of more than four times as many pairs, is not whole, and has none of them.
create or replace function millrace.flow_graph(id bigint, most int default 80, out jobs jsonb, out edges jsonb, out is_whole boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    seen bigint[] := array[flow_graph.id];
    wave bigint[] := seen;
begin
    if most is null or most not between 1 and 200 then
        perform millrace.refuse('most must be 1 to 200', 'most');
    end if;
    while wave <> '{}' and cardinality(seen) <= most loop
        wave := array(
            select distinct n.job from unnest(wave) w(job) cross join lateral (
                (select e.succ as job from millrace.edge e where e.pred = w.job order by e.succ limit most + 1)
                union all
                (select e.pred from millrace.edge e where e.succ = w.job order by e.pred limit most + 1)) n
             where n.job <> all (seen) order by n.job limit most + 1);
        seen := seen || wave;
    end loop;
    is_whole := cardinality(seen) <= most;
    if is_whole then
        select coalesce(jsonb_agg(jsonb_build_array(x.pred, x.succ, x.made) order by x.pred, x.succ), '[]') into edges from (
            select e.pred, e.succ, e.number is not null as made
              from unnest(seen) s(job) join millrace.edge e on e.pred = s.job limit most * 4 + 1) x;
        is_whole := jsonb_array_length(edges) <= most * 4;
    end if;
    if not is_whole then
        edges := null;
        return;
    end if;
    select jsonb_agg(jsonb_build_object('job', s.job, 'kind', j.kind, 'state', j.state) order by s.job) into jobs
      from unnest(seen) s(job) left join millrace.job_states(seen) j on j.job = s.job;
end $$;
select millrace.door_is('queue', 'flow_graph', 'admin, viewer', 'staff');

-- The results of the jobs that a job waited for, by number, a page at a time.
create or replace function millrace.results_before(id bigint, after bigint default 0, page int default 500, caller millrace.caller_name default current_user)
returns table (job bigint, outcome text, result jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
begin
    perform millrace.must_see(results_before.id, caller => results_before.caller);
    if page is null or page not between 1 and 5000 then
        perform millrace.refuse('page must be 1 to 5000', 'page');
    end if;
    return query
    select e.pred, (array['succeeded', 'cancelled', 'dead'])[e.outcome], r.value
      from (select e.pred, e.outcome from millrace.edge e
             where e.succ = results_before.id and e.pred > coalesce(results_before.after, 0) and e.outcome is not null
             order by e.pred limit page) e
      left join lateral (select r.value from millrace.result r where r.job = e.pred offset 0) r on true
     order by e.pred;
end $$;
select millrace.door_is('queue', 'results_before', 'worker', 'staff');
