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
        perform millrace.refuse('the filter names nothing', 'filter', format('Give an object with at least one of %s.', array_to_string(known, ', ')));
    end if;
    for one in select f.key, f.value from jsonb_each(filter) f loop
        if one.key <> all (known) then
            perform millrace.refuse(format('the filter has an unknown name: %s', left(one.key, 60)), 'filter', format('Known are %s.', array_to_string(known, ', ')));
        end if;
        if one.key = 'ids' then
            if jsonb_typeof(one.value) <> 'array' or jsonb_array_length(one.value) not between 1 and millrace.most('page')
               or exists (select from jsonb_array_elements(one.value) i
                           where jsonb_typeof(i) <> 'number' or (i #>> '{}')::numeric % 1 <> 0 or (i #>> '{}')::numeric not between 1 and 9223372036854775806) then
                perform millrace.refuse('filter.ids names no jobs', 'filter.ids', 'Give the numbers of 1 to 500 jobs.');
            elsif filter - 'ids' <> '{}' then
                perform millrace.refuse('filter.ids stands alone', 'filter.ids', 'Give the jobs'' numbers, or what they have in common.');
            end if;
            continue;
        end if;
        if jsonb_typeof(one.value) <> 'string' or length(one.value #>> '{}') not between 1 and
            (case one.key when 'error' then millrace.most('query') when 'value' then 200 when 'tag' then millrace.most('tag') when 'unique' then millrace.most('unique_key')
                          when 'limit_key' then millrace.most('limit_key') else millrace.most('name') end) then
            perform millrace.refuse(format('filter.%s is no text, or too long', one.key), 'filter.' || one.key);
        end if;
        if one.key = 'group' and one.value #>> '{}' !~ E'^[0-9]{1,18}$' then
            perform millrace.refuse('filter.group is no group of failures', 'filter.group', 'Give its number, as text; millrace failures list shows them.');
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
        perform millrace.refuse(format('args of %s are not as they should be', the_action), 'args',
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

-- About how many jobs are in a state, as the planner sees it: no table is read.
create or replace function millrace.operation_total(the_state text, the_queue text) returns bigint
language plpgsql volatile as $$
declare
    queries text[] := case the_state
        when 'ready' then array['millrace.ready r', 'millrace.parked r'] when 'blocked' then array['millrace.blocked r']
        when 'scheduled' then array['millrace.timer r'] when 'retrying' then array['millrace.timer r where r.attempt > 0']
        when 'succeeded' then array['millrace.history r where r.outcome = 1']
        when 'cancelled' then array['millrace.history r where r.outcome = 2 and r.outcome <> 1']
        when 'dead' then array['millrace.history r where r.outcome = 3 and r.outcome <> 1'] else '{}' end;
    query text;
    plan jsonb;
    total bigint := 0;
begin
    if the_state = 'running' then
        return (select coalesce(sum(l.n), 0) from (select l.n from millrace.lease l limit 10000) l);
    end if;
    foreach query in array queries loop
        if the_state = 'ready' and the_queue is not null then
            query := query || format(' where r.queue = any (%L)', millrace.queue_ids(the_queue));
        end if;
        execute 'explain (format json) select from ' || query into plan;
        total := total + (plan #>> '{0,Plan,Plan Rows}')::numeric::bigint;
    end loop;
    return total;
end $$;

-- How many jobs an action would reach: counted up to 10,000, and as long as that takes a look at no more than 20,000; else estimated from
-- the part that was looked at.
create or replace function millrace.operation_count(filter jsonb, places text[], out jobs bigint, out is_exact boolean, out looked int, out first bigint[])
language plpgsql volatile as $$
declare
    place text;
    n int := 0;
    found record;
    after bigint;
    share int;
    seen int;
    hits int;
begin
    jobs := 0; is_exact := true; looked := 0; first := '{}';
    foreach place in array places loop
        n := n + 1;
        after := 9223372036854775807;
        seen := 0; hits := 0;
        share := greatest((20000 - looked) / (cardinality(places) - n + 1), 500);
        loop
            select p.* into found from millrace.operation_page(filter, place, after, 500, 500) p;
            first := first || found.ids[1:greatest(50 - cardinality(first), 0)];
            hits := hits + cardinality(found.ids);
            seen := seen + found.looked;
            after := found.next;
            exit when after is null or seen >= share or hits >= 10000;
        end loop;
        looked := looked + seen;
        jobs := jobs + hits;
        if after is not null then
            is_exact := false;
            jobs := jobs + greatest(millrace.operation_total(place, filter ->> 'queue') - seen, 0) * hits / greatest(seen, 1);
        end if;
    end loop;
end $$;

-- Says what an action would reach, with some of the jobs, and changes nothing.
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
    sample := (
        select coalesce(jsonb_agg(jsonb_build_object('id', j.id, 'kind', j.kind, 'queue', j.queue, 'state', j.state, 'priority', j.priority, 'run_at', j.run_at,
                   'error', left(j.errors -> -1 ->> 'error', 200)) order by f.place), '[]')
          from unnest(counted.first[1:samples]) with ordinality f(id, place)
         cross join lateral millrace.job(f.id) j);
    return next;
end $$;
select millrace.door_is('operating', 'operation_preview', 'admin, viewer', 'staff');
