-- What a rehearsal of another build reads: jobs with what is on record, for workers and admins.

-- A page of the jobs that are under way, above `after`, in order of their numbers: they wait in the middle of their work, run, or have run before.
create or replace function millrace.rehearse_ids(after bigint default 0, page int default 2000) returns table (id bigint, kind text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
#variable_conflict use_variable
declare
    the_after bigint := coalesce(rehearse_ids.after, 0);
begin
    if page is null or page not between 1 and 5000 then
        perform millrace.refuse('page must be 1 to 5000', 'page');
    end if;
    return query
    select x.job, k.name
      from (select y.job from (
                (select w.job from millrace.wait w where w.job > the_after order by w.job limit page)
                union
                (select d.job from millrace.timer d
                  where d.job > the_after and (d.attempt > 0 or exists (select from millrace.step s where s.job = d.job)) order by d.job limit page)
                union
                (select r.job from millrace.ready r where r.job > the_after and r.seq <> r.job order by r.job limit page)
                union
                (select u.u from millrace.lease l cross join lateral unnest(l.ids) u(u) where l.hi > the_after and u.u > the_after order by u.u limit page)) y
             order by y.job limit page) x
      join millrace.job j on j.id = x.job
      join millrace.kind k on k.id = j.kind
     order by x.job;
end $$;
select millrace.door_is('queue', 'rehearse_ids', 'worker', 'staff');

-- Up to `most` of each: the newest jobs of a kind that have succeeded, that are dead, and that have not begun.
create or replace function millrace.rehearse_sample(the_kind text, most int default 100) returns setof bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if most is null or most not between 0 and 500 then
        perform millrace.refuse('most must be 0 to 500', 'most');
    end if;
    if most = 0 then
        return;
    end if;
    return query
    select distinct x.id from (values ('succeeded'), ('dead'), ('ready'), ('scheduled')) s(state)
     cross join lateral millrace.job_ids(s.state, null, rehearse_sample.the_kind, page => most) x(id);
end $$;
select millrace.door_is('queue', 'rehearse_sample', 'worker', 'staff');

-- The jobs that a run made and waited for, in their order; null: they are not all kept any more, or are large.
create or replace function millrace.rehearse_children(ids bigint[]) returns jsonb
language sql volatile set enable_seqscan = off as $$
    select case when count(*) = cardinality(ids) and sum(pg_column_size(j.args)) < 262144
                then jsonb_agg(jsonb_build_object('kind', k.name, 'args', j.args::text) order by i.place) end
      from unnest(ids) with ordinality i(id, place)
     cross join lateral (select x.kind, x.args from millrace.job x where x.id = i.id offset 0) j
      join millrace.kind k on k.id = j.kind
$$;

-- Jobs with all that is on record of them, in the order of the ids, until `most` bytes are read: at least one, unless none of them is there. place: of
-- its id among the ids.
create or replace function millrace.rehearse_read(ids bigint[], most int default 4194304)
returns table (place int, id bigint, kind text, queue text, attempt int, crashes int, enqueued_at timestamptz, tenant text, tags text[], metadata jsonb, args jsonb,
    outcome int, awaits jsonb, steps jsonb, earlier jsonb)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_variable
declare
    head record;
    w millrace.wait;
    size bigint := 0;
    has_edges boolean := millrace.flows_in_use();
begin
    if cardinality(ids) > 5000 then
        perform millrace.refuse('ids must be at most 5000', 'ids');
    end if;
    for n in 1 .. cardinality(ids) loop
        select j.id, k.name as kind, q.name as queue, j.enqueued_at, j.tenant, j.tags, j.metadata, j.args, j.options into head
          from millrace.job j join millrace.kind k on k.id = j.kind join millrace.queue q on q.id = j.queue where j.id = ids[n];
        continue when not found or head.options ? 'undo';
        place := n;
        id := head.id; kind := head.kind; queue := head.queue; enqueued_at := head.enqueued_at; tenant := head.tenant;
        tags := coalesce(head.tags, '{}'); metadata := head.metadata; args := head.args;
        attempt := null; crashes := null; outcome := null; awaits := null; earlier := null;
        select x.* into w from millrace.wait x where x.job = id;
        if found and (exists (select from millrace.timer d where d.job = id and d.due = w.place) or w.what = 3 and exists (select from millrace.blocked b where b.job = id)) then
            attempt := w.attempt; crashes := w.crashes;
            awaits := millrace.wait_asked(w) || jsonb_build_object('step', w.step, 'children', case when w.what = 3 then millrace.rehearse_children(w.jobs) end);
        else
            select d.attempt, d.crashes into attempt, crashes from millrace.timer d where d.job = id;
            if not found then
                select r.attempt, r.crashes into attempt, crashes from millrace.ready r where r.job = id and r.seq <> r.job;
            end if;
            if not found then
                select h.outcome, h.attempt - 1, h.crashes into outcome, attempt, crashes from millrace.history h where h.id = id and h.outcome in (1, 2, 3) limit 1;
            end if;
        end if;
        select coalesce(jsonb_agg(jsonb_build_object('name', s.name, 'value', s.value::text, 'asked', s.asked,
                   'children', case when s.asked ->> 'what' = 'jobs' then
                       millrace.rehearse_children(array(select (c ->> 'id')::bigint from jsonb_array_elements(s.value -> 'jobs') c)) end)
                   order by s.place nulls first, s.at, s.name), '[]')
          into steps from millrace.step s where s.job = id;
        if has_edges then
            select jsonb_agg(jsonb_build_object('id', e.pred, 'succeeded', e.outcome = 1, 'result', r.value::text) order by e.pred) into earlier
              from (select x.pred, x.outcome from millrace.edge x where x.succ = id and x.outcome is not null order by x.pred limit 1000) e
              left join lateral (select y.value from millrace.result y where y.job = e.pred offset 0) r on true;
        end if;
        size := size + pg_column_size(args) + octet_length(steps::text) + coalesce(octet_length(earlier::text), 0);
        return next;
        exit when size > most;
    end loop;
end $$;
select millrace.door_is('queue', 'rehearse_read', 'worker', 'staff');
