-- What an operation reaches: its filter, checked by name, and the pages of jobs that it names.

create or replace function millrace.operation_actions() returns text[]
language sql immutable parallel safe as $$ select array['cancel', 'retry', 'retry_fresh', 'delete', 'reschedule', 'priority'] $$;

-- The states in which an action finds jobs, in the order in which jobs move, so that one that moves meanwhile is met again. The first list
-- is what it means without a state, the second what else may be named.
create or replace function millrace.operation_states(the_action text, out usual text[], out others text[])
language plpgsql immutable as $$
begin
    case the_action
    when 'cancel' then usual := '{blocked,scheduled,ready,running}'; others := '{retrying}';
    when 'delete' then usual := '{dead,cancelled,succeeded}'; others := '{blocked,scheduled,retrying,ready}';
    when 'retry', 'retry_fresh' then usual := '{dead}'; others := '{cancelled,scheduled,retrying}';
    when 'reschedule', 'priority' then usual := '{blocked,scheduled,ready}'; others := '{retrying}';
    else
        perform millrace.refuse(format('the action %L is unknown', left(the_action, 60)), 'action',
            format('Give one of %s.', array_to_string(millrace.operation_actions(), ', ')));
    end case;
end $$;

-- Refuses what makes no sense, and returns the states to look through. `ids` stands for the jobs that are named one by one.
create or replace function millrace.operation_check(the_action text, filter jsonb, args jsonb) returns text[]
language plpgsql stable as $$
declare
    known text[] := array['state', 'queue', 'kind', 'tag', 'tenant', 'unique', 'limit_key', 'error', 'since', 'until', 'group', 'field', 'value', 'ids'];
    states record := millrace.operation_states(the_action);
    one record;
    at timestamptz;
begin
    if jsonb_typeof(filter) is distinct from 'object' or filter = '{}' then
        perform millrace.refuse('the filter is empty', 'filter', format('Give an object with at least one of %s.', array_to_string(known, ', ')));
    end if;
    for one in select f.key, f.value from jsonb_each(filter) f loop
        if one.key <> all (known) then
            perform millrace.refuse(format('the filter has an unknown name: %s', left(one.key, 60)), 'filter', format('Allowed: %s.', array_to_string(known, ', ')));
        end if;
        if one.key = 'ids' then
            if jsonb_typeof(one.value) <> 'array' or jsonb_array_length(one.value) not between 1 and millrace.most('page')
               or exists (select from jsonb_array_elements(one.value) i
                           where jsonb_typeof(i) <> 'number' or (i #>> '{}')::numeric % 1 <> 0 or (i #>> '{}')::numeric not between 1 and 9223372036854775806) then
                perform millrace.refuse('filter.ids names no jobs', 'filter.ids', 'Give the numbers of 1 to 500 jobs.');
            elsif filter - 'ids' <> '{}' then
                perform millrace.refuse('filter.ids cannot be combined with other filters', 'filter.ids', 'Give the jobs'' numbers, or what they have in common.');
            end if;
            continue;
        end if;
        if jsonb_typeof(one.value) <> 'string' or length(one.value #>> '{}') not between 1 and
            (case one.key when 'error' then millrace.most('query') when 'value' then 200 when 'tag' then millrace.most('tag') when 'unique' then millrace.most('unique_key')
                          when 'limit_key' then millrace.most('limit_key') else millrace.most('name') end) then
            perform millrace.refuse(format('filter.%s is not text, or is too long', one.key), 'filter.' || one.key);
        end if;
        if one.key = 'group' and one.value #>> '{}' !~ E'^[0-9]{1,18}$' then
            perform millrace.refuse('filter.group is not a group of failures', 'filter.group', 'Give its number, as text; millrace failures list shows them.');
        end if;
        if one.key in ('since', 'until') then
            begin
                at := (one.value #>> '{}')::timestamptz;
            exception when invalid_datetime_format or datetime_field_overflow then
                perform millrace.refuse(format('filter.%s is not a point in time', one.key), 'filter.' || one.key, 'Write it as 2026-12-01T08:00:00Z.');
            end;
        end if;
    end loop;
    if filter ->> 'state' <> all (states.usual || states.others) then
        perform millrace.refuse(format('%s finds no jobs in the state %L', replace(the_action, '_', ' '), left(filter ->> 'state', 60)), 'filter.state',
            format('Give one of %s.', array_to_string(states.usual || states.others, ', ')));
    end if;
    perform millrace.operation_args_check(the_action, args);
    return case when filter ? 'ids' then array['ids'] when filter ? 'state' then array[filter ->> 'state'] else states.usual end;
end $$;

create or replace function millrace.operation_args_check(the_action text, args jsonb) returns void
language plpgsql stable as $$
declare
    name text := case the_action when 'reschedule' then 'run_at' when 'priority' then 'priority' end;
    at timestamptz;
begin
    if jsonb_typeof(args) is distinct from 'object' or exists (select from jsonb_object_keys(args) k where k is distinct from name) then
        perform millrace.refuse(format('args of %s are not valid', the_action), 'args',
            case when name is null then 'It takes none.' else format('Give an object with %s.', name) end);
    end if;
    if name = 'priority' then
        if jsonb_typeof(args -> 'priority') is distinct from 'number' then
            perform millrace.refuse('args.priority must be 0 to 9', 'args.priority');
        end if;
        perform millrace.check_priority((args ->> 'priority')::numeric);
    elsif name = 'run_at' then
        begin
            at := case when jsonb_typeof(args -> 'run_at') = 'string' then (args ->> 'run_at')::timestamptz end;
        exception when invalid_datetime_format or datetime_field_overflow then
            at := null;
        end;
        if at is null or at in ('infinity', '-infinity') then
            perform millrace.refuse('args.run_at is not a point in time', 'args.run_at', 'Write it as 2026-12-01T08:00:00Z.');
        end if;
    end if;
end $$;

-- The next jobs that a filter names in a state, newest first, below the number `after`; the one place that hands a filter to jobs_find. It
-- looks at `most` jobs, and says where to continue: null, that was all.
create or replace function millrace.operation_page(
    filter jsonb, the_state text, after bigint, page int, most int, out ids bigint[], out looked int, out next bigint
)
language plpgsql volatile as $$
begin
    if the_state = 'ids' then
        ids := array(select distinct i::bigint from jsonb_array_elements_text(filter -> 'ids') i where i::bigint < after order by 1 desc limit page);
        looked := cardinality(ids);
        next := case when looked = page then ids[page] end;
        return;
    end if;
    select f.ids, f.looked, f.next into ids, looked, next
      from millrace.jobs_find(the_state, filter ->> 'queue', filter ->> 'kind', filter ->> 'tag', filter ->> 'tenant', filter ->> 'unique',
               filter ->> 'limit_key', filter ->> 'error', (filter ->> 'since')::timestamptz, (filter ->> 'until')::timestamptz,
               after => operation_page.after, page => operation_page.page, most => operation_page.most,
               the_group => (filter ->> 'group')::bigint, the_field => filter ->> 'field', the_value => filter ->> 'value') f;
end $$;

-- Where the jobs of a state stand, as rows of id, queue, kind, error and time of the end; $1: the lines of a queue, or null.
create or replace function millrace.operation_source(the_state text, by_queue boolean) returns text
language sql immutable as $$
    select case the_state
    when 'ready' then format('select r.job as id, r.queue, r.kind, null::text as error, null::timestamptz as at from millrace.ready r %1$s
        union all select p.job, p.queue, p.kind, null, null from millrace.parked p %2$s',
        case when by_queue then 'where r.queue = any ($1)' end, case when by_queue then 'where p.queue = any ($1)' end)
    when 'scheduled' then 'select t.job as id, t.queue, t.kind, null::text as error, null::timestamptz as at from millrace.timer t'
    when 'retrying' then 'select t.job as id, t.queue, t.kind, null::text as error, null::timestamptz as at from millrace.timer t where t.attempt > 0'
    when 'blocked' then 'select j.id, j.queue, j.kind, null::text as error, null::timestamptz as at from (
        select u.next as job from millrace.unique_lock u where u.next is not null union all select b.job from millrace.blocked b) w join millrace.job j on j.id = w.job'
    when 'running' then 'select j.id, j.queue, j.kind, null::text as error, null::timestamptz as at
        from millrace.lease l cross join lateral unnest(l.ids) u(id) join millrace.job j on j.id = u.id and j.id between l.lo and l.hi
       where not exists (select from millrace.history h where h.class = (l.number & 3)::smallint and h.started = l.at and h.id = u.id and h.session = l.session and h.number = l.number)'
    when 'succeeded' then 'select h.id, h.queue, h.kind, h.error, h.finished as at from millrace.history h where h.outcome = 1 order by h.id desc'
    when 'cancelled' then 'select h.id, h.queue, h.kind, h.error, h.finished as at from millrace.history h where h.outcome = 2 and h.outcome <> 1 order by h.id desc'
    when 'dead' then 'select h.id, h.queue, h.kind, h.error, h.finished as at from millrace.history h where h.outcome = 3 and h.outcome <> 1 order by h.id desc'
    end
$$;

-- The jobs that a filter names in a state, counted by one look at `most` of them: `whole` says that these were all. first: up to 50 of them.
-- What needs the errors of jobs that have not ended, or the index of a field, is found by operation_page, which looks at 500 at most.
create or replace function millrace.operation_reach(
    filter jsonb, the_state text, most int, out jobs bigint, out looked int, out whole boolean, out first bigint[]
)
language plpgsql volatile as $$
declare
    lines int[] := case when filter ? 'queue' then millrace.queue_ids(filter ->> 'queue') end;
    kinds int[] := case when filter ? 'kind' then millrace.kind_ids(filter ->> 'kind') end;
    of_job boolean := filter ?| array['tag', 'tenant', 'unique', 'limit_key'];
    failure millrace.failure_group;
    source text := millrace.operation_source(the_state, lines is not null);
    fits text := 'true';
    page record;
    size int;
    can_note boolean;
    noted bigint;
begin
    if source is null or filter ? 'field' or the_state <> 'dead' and filter ?| array['error', 'since', 'until', 'group'] then
        select p.* into page from millrace.operation_page(filter, the_state, 9223372036854775807, 500, 500) p;
        jobs := cardinality(page.ids); looked := page.looked; whole := page.next is null or the_state = 'ids'; first := page.ids[1:50];
        return;
    end if;
    jobs := 0; looked := 0; whole := true; first := '{}';
    if filter ? 'group' then
        perform millrace.failures_fold();
        select g.* into failure from millrace.failure_group g where g.id = (filter ->> 'group')::bigint;
        kinds := case when kinds is null or failure.kind = any (kinds) then array[failure.kind] else '{}' end;
        if failure.id is null then
            return;
        end if;
    end if;
    if lines = '{}' or kinds = '{}' then
        return;
    end if;
    -- A look at a job is dearer than one at its place, and so is reading what a run said.
    if of_job then
        most := least(most, 4000);
        fits := fits || case when filter ? 'tag' then ' and $3 = any (j.tags)' else '' end || case when filter ? 'tenant' then ' and j.tenant = $4' else '' end
            || case when filter ? 'unique' then ' and j.unique_key = $5' else '' end || case when filter ? 'limit_key' then ' and j.limit_key = $6' else '' end;
    elsif filter ? 'error' then
        most := least(most, 5000);
    end if;
    fits := fits || case when lines is not null then ' and n.queue = any ($1)' else '' end || case when kinds is not null then ' and n.kind = any ($2)' else '' end
        || case when filter ? 'error' then ' and position(lower($7) in lower(n.error)) > 0' else '' end
        || case when filter ? 'since' then ' and n.at >= $8' else '' end || case when filter ? 'until' then ' and n.at < $9' else '' end;
    -- Where the counts of the groups may say it, a short look comes first: it has them all, or the newest to show.
    can_note := the_state = 'dead' and not of_job and not filter ?| array['error', 'since', 'until'];
    foreach size in array case when can_note then array[least(most, 2000), most] else array[most] end loop
        execute format('
            select count(*) as looked, count(*) filter (where n.fits) as jobs, (array_agg(n.id%2$s) filter (where n.fits))[1:%3$s] as first
              from (select n.id, %1$s as fits from (select * from (%4$s) s limit $10 + 1) n%5$s offset 0) n',
            -- What has ended comes in this order.
            fits, case when the_state not in ('succeeded', 'cancelled', 'dead') then ' order by n.id desc' end, case when failure.id is not null then 200 else 50 end, source,
            case when of_job then ' left join lateral (select x.tags, x.tenant, x.unique_key, x.limit_key from millrace.job x where x.id = n.id offset 0) j on true' end)
           into page
          using lines, kinds, filter ->> 'tag', filter ->> 'tenant', filter ->> 'unique', filter ->> 'limit_key', filter ->> 'error',
                (filter ->> 'since')::timestamptz, (filter ->> 'until')::timestamptz, size;
        looked := least(page.looked, size); whole := page.looked <= size; jobs := least(page.jobs, size); first := coalesce(page.first, '{}');
        exit when not can_note or whole and (failure.id is null or jobs <= cardinality(first));
        if size < most or whole then
            noted := millrace.operation_dead_noted(kinds, lines, failure.id, case when whole then jobs end);
            if noted is not null then
                whole := true; jobs := noted;
                if failure.id is not null or cardinality(first) = 0 then
                    first := millrace.operation_dead_examples(kinds, lines, failure.id);
                end if;
                return;
            end if;
        end if;
    end loop;
    if the_state = 'retrying' then
        -- Those whose runs have only crashed are in no index.
        whole := whole and not exists (select from (select t.crashes, t.attempt from millrace.timer t limit 20000) t where t.crashes > 0 and t.attempt = 0)
            and (select count(*) from (select from millrace.timer t limit 20001) t) <= 20000;
    end if;
    if failure.id is not null then
        select r.* into jobs, first from millrace.operation_reach_read(failure, first) r;
        whole := whole and page.jobs <= 200;
    end if;
end $$;

-- Which of these jobs are of a group, by their errors.
create or replace function millrace.operation_reach_read(failure millrace.failure_group, candidates bigint[], out jobs bigint, out first bigint[])
language sql volatile as $$
    select count(*), coalesce((array_agg(c.id order by c.id desc))[1:50], '{}')
      from unnest(candidates) c(id)
     cross join lateral (select h.error from millrace.history h where h.outcome = 3 and h.outcome <> 1 and h.id = c.id limit 1) h
     where millrace.failure_is_of(failure, failure.kind, h.error)
$$;

-- How many jobs of these kinds and lines, or of a group, have died, by the counts of the groups; null where these are not believed: they are as
-- long as all of them together are as many as there are dead jobs. Then nobody has retried one since, and no note was lost. known: how many are
-- dead of the kinds and lines, if that is known; else all are counted, up to 200,000.
drop function if exists millrace.operation_reach_noted(int[], int[], bigint, bigint);
create or replace function millrace.operation_dead_noted(kinds int[], lines int[], the_group bigint, known bigint) returns bigint
language plpgsql volatile as $$
declare
    places int[] := array(select distinct coalesce(q.main, q.id) from millrace.queue q where q.id = any (lines));
    noted bigint;
    jobs bigint;
begin
    select sum(n.dead) filter (where known is null or kinds is null or n.kind = any (kinds)),
           coalesce(sum(n.dead) filter (where (kinds is null or n.kind = any (kinds)) and (the_group is null or n.id = the_group)), 0)
      into noted, jobs
      from (select g.id, g.kind, case when lines is null then g.dead
                   else (select sum(p.dead) from millrace.failure_place p where p.failure = g.id and p.queue = any (places)) end as dead
              from millrace.failure_group g offset 0) n;
    if known is not null then
        return case when noted = known then jobs end;
    end if;
    noted := (select sum(g.dead) from millrace.failure_group g);
    return case when noted <= 200000 and noted = (select count(*) from (select from millrace.history h where h.outcome = 3 and h.outcome <> 1 limit noted + 1) h) then jobs end;
end $$;

-- Some of them, by the examples of the groups: the newest 50 that are still dead.
create or replace function millrace.operation_dead_examples(kinds int[], lines int[], the_group bigint) returns bigint[]
language sql volatile as $$
    select array(
        select e.job from (
            select e.job from millrace.failure_group g cross join lateral unnest(g.examples) e(job)
             where (kinds is null or g.kind = any (kinds)) and (the_group is null or g.id = the_group) order by e.job desc limit 1000) e
         where exists (select from millrace.history h where h.outcome = 3 and h.outcome <> 1 and h.id = e.job and (lines is null or h.queue = any (lines)))
           and (lines is null or exists (select from millrace.job j where j.id = e.job and j.queue = any (lines) offset 0))
         order by e.job desc limit 50)
$$;

-- How many jobs an action would reach: exactly, or at least, by a look at 20,000 at most, however many there are.
create or replace function millrace.operation_count(filter jsonb, places text[], out jobs bigint, out is_exact boolean, out looked int, out first bigint[], out states text[])
language plpgsql volatile as $$
declare
    place text;
    found record;
begin
    jobs := 0; is_exact := true; looked := 0; first := '{}'; states := '{}';
    foreach place in array places loop
        select r.* into found from millrace.operation_reach(filter, place, 20000 / cardinality(places)) r;
        found.first := found.first[1:greatest(50 - cardinality(first), 0)];
        first := first || found.first;
        states := states || array_fill(place, array[cardinality(found.first)]);
        jobs := jobs + found.jobs;
        looked := looked + found.looked;
        is_exact := is_exact and found.whole;
    end loop;
end $$;

-- Some jobs in these states, as a preview shows them. `ids`: wherever they are.
create or replace function millrace.operation_sample(ids bigint[], states text[]) returns jsonb
language plpgsql volatile as $$
begin
    if states[1] = 'ids' then
        return (select coalesce(jsonb_agg(jsonb_build_object('id', j.id, 'kind', j.kind, 'queue', j.queue, 'state', j.state, 'priority', j.priority, 'run_at', j.run_at,
                           'error', left(j.errors -> -1 ->> 'error', 200)) order by f.place), '[]')
                  from unnest(ids) with ordinality f(id, place) cross join lateral millrace.job(f.id) j);
    end if;
    return (
        select coalesce(jsonb_agg(jsonb_build_object('id', f.id, 'kind', k.name, 'queue', q.name, 'state', case f.state when 'retrying' then 'scheduled' else f.state end,
                   'priority', j.lane >> 2, 'run_at', coalesce((select t.due from millrace.timer t where t.job = f.id), j.run_at, j.enqueued_at),
                   'error', left(h.error, 200)) order by f.place), '[]')
          from unnest(ids, states) with ordinality f(id, state, place)
          left join millrace.job j on j.id = f.id
          left join lateral (
            select h.kind, h.queue, h.error from millrace.history h
             where h.id = f.id and (h.error is not null or h.outcome in (1, 2, 3)) order by h.error is not null desc, h.finished desc limit 1) h on true
          join millrace.kind k on k.id = coalesce(j.kind, h.kind)
          join millrace.queue q on q.id = coalesce(j.queue, h.queue));
end $$;

-- Says what an action would reach, with some of the jobs, and changes nothing. is_exact: exactly this number, else at least this number.
create or replace function millrace.operation_preview(
    action text, filter jsonb, args jsonb default '{}', samples int default 10, caller millrace.caller_name default current_user
) returns table (jobs bigint, is_exact boolean, looked int, sample jsonb)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    places text[] := millrace.operation_check(operation_preview.action, operation_preview.filter, operation_preview.args);
    counted record;
begin
    if samples is null or samples not between 0 and 50 then
        perform millrace.refuse('samples must be 0 to 50', 'samples');
    end if;
    select c.* into counted from millrace.operation_count(operation_preview.filter, places) c;
    jobs := counted.jobs; is_exact := counted.is_exact; looked := counted.looked;
    sample := millrace.operation_sample(counted.first[1:samples], counted.states[1:samples]);
    return next;
end $$;
select millrace.door_is('operating', 'operation_preview', 'admin, viewer', 'staff');
