-- The lane of a waiting job: what its crashes make of it.
create or replace function millrace.lane_of(the_lane int, the_crashes int, put_back boolean) returns int
language sql immutable parallel safe as $$
    select (the_lane & ~3) | case when the_crashes >= 3 then 3 when the_crashes = 2 then 2 when put_back then 0 else 1 end
$$;

-- The inside of enqueue, behind its door. plain_lane: the job's lane if it asks for nothing special, else null. Most jobs ask for nothing
-- special, and every statement and expression here costs each call, so jobs with a known route take a short way. It does for them what
-- enqueue_one does; everything that it cannot take, or that would be refused, goes to enqueue_one.
-- It runs with the owner's rights but on the caller's search_path, because a setting of its own would cost each call more than its checks.
-- So every function, type and operator is written with its schema, and a test sets a trap for each that is not.
create or replace function millrace.enqueue_as(
    kind text, args jsonb, queue text, priority int, run_at timestamptz, unique_key text, on_conflict text,
    limit_key text, tenant text, max_attempts int, tags text[], metadata jsonb, options jsonb, plain_lane int,
    caller millrace.caller_name
) returns bigint
language plpgsql volatile security definer as $$
declare
    the_kind int;
    the_line int;
    new_id bigint;
    nobody_sleeps boolean;
    told pg_catalog.text;
begin
    -- The transaction's id before the number is drawn: see enqueue_one. The lock, which lasts until the commit, before anything is
    -- written: see wake_saying.
    select r.kind, r.queue, case when pg_catalog.pg_current_xact_id() is not null then pg_catalog.nextval('millrace.seq') end,
           pg_catalog.pg_try_advisory_xact_lock_shared(1297239619, r.queue operator(pg_catalog.&) 63)
      into the_kind, the_line, new_id, nobody_sleeps
      from millrace.route r
     where r.kind_name operator(pg_catalog.=) enqueue_as.kind and r.queue_name operator(pg_catalog.=) coalesce(enqueue_as.queue, '')
       and plain_lane is not null and enqueue_as.caller operator(pg_catalog.=) current_user
       and coalesce(pg_catalog.length(pg_catalog.current_setting('millrace.traceparent', true)), 0) operator(pg_catalog.=) 0
       and not enqueue_as.args operator(pg_catalog.?) '$millrace' and millrace.true_bytes(enqueue_as.args) operator(pg_catalog.<=) millrace.most('args');
    if new_id is null then
        return millrace.enqueue_fully(kind, args, queue, priority, run_at, unique_key, on_conflict, limit_key, tenant, max_attempts,
            tags, metadata, options, plain_lane, enqueue_as.caller);
    end if;
    with written as (                                     -- one statement, because Postgres prepares each statement again in every call
        insert into millrace.job (id, kind, queue, lane, max_attempts, enqueued_at, args, owner)
        values (new_id, the_kind, the_line, plain_lane, enqueue_as.max_attempts, millrace.now(), enqueue_as.args, enqueue_as.caller)
    )
    insert into millrace.ready (seq, job, queue, kind, lane) values (new_id, new_id, the_line, the_kind, plain_lane);
    if not nobody_sleeps then                             -- as wake_saying has it, without a call
        told := case when pg_catalog.pg_notification_queue_usage() operator(pg_catalog.<) 0.5
                     then pg_catalog.pg_notify('millrace', the_line operator(pg_catalog.||) '.' operator(pg_catalog.||) plain_lane
                                                                    operator(pg_catalog.||) '.ready')::pg_catalog.text end;
    end if;
    return new_id;
end $$;
select millrace.door_is('queue', 'enqueue_as', 'client, worker', 'granted kind',
    'Adds a job; the form behind enqueue.', for_apps => false);

-- For enqueue_as: jobs that cannot take the short way. It notes the route, so that the next job of this kind can.
create or replace function millrace.enqueue_fully(
    kind text, args jsonb, queue text, priority int, run_at timestamptz, unique_key text, on_conflict text,
    limit_key text, tenant text, max_attempts int, tags text[], metadata jsonb, options jsonb, plain_lane int, caller name
) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    new_id bigint := (millrace.enqueue_one(kind, args, queue, priority, run_at, unique_key, on_conflict, limit_key, tenant, max_attempts,
        tags, metadata, options, caller => enqueue_fully.caller)).id;
begin
    if plain_lane is not null and queue is not null and not args ? '$millrace' and enqueue_fully.caller = current_user
       and not (select k.searchable from millrace.kind k where k.name = enqueue_fully.kind and k.line = '') then
        perform millrace.route_keep(kind, queue);
    end if;
    return new_id;
end $$;

-- In SQL and without settings, so that the planner inlines its one expression: parameters that are left out, or are the same in each call,
-- are then judged once, when the caller's statement is planned, and not in each call. Its meaning is fixed when it is created, whatever the
-- caller's search_path. It uses the arguments only once, because they may be costly to compute.
create or replace function millrace.enqueue(
    kind text, args jsonb default '{}', queue text default null, priority int default null,
    run_at timestamptz default null, unique_key text default null, on_conflict text default 'skip',
    limit_key text default null, tenant text default null, max_attempts int default null,
    tags text[] default '{}', metadata jsonb default '{}', options jsonb default '{}'
) returns bigint
language sql volatile
return millrace.enqueue_as(kind, args, queue, priority, run_at, unique_key, on_conflict, limit_key, tenant, max_attempts,
    nullif(tags, '{}'), nullif(metadata, '{}'), nullif(options, '{}'),
    case when coalesce(queue, '-') <> '' and run_at is null and unique_key is null and limit_key is null and tenant is null
              and on_conflict in ('skip', 'replace', 'error') and coalesce(priority, 4) between 0 and 9 and coalesce(max_attempts, 1) between 1 and 1000
              and coalesce(tags = '{}', true) and coalesce(metadata = '{}', true) and coalesce(options = '{}', true)
         then coalesce(priority, 4) * 4 + 1 end, current_user);
select millrace.door_is('queue', 'enqueue', 'client, worker', 'granted kind', 'Adds a job.',
    words => '{"on_conflict": ["skip", "replace", "error"]}');

-- One job: checks it, writes it, gives it its place, and notifies. created is false when a unique key's holder is returned.
create or replace function millrace.enqueue_one(
    the_kind text, the_args jsonb, the_queue text, the_priority int, the_run_at timestamptz,
    the_key text, the_conflict text, the_limit_key text, the_tenant text, the_max_attempts int,
    the_tags text[], the_metadata jsonb, the_options jsonb,
    out id bigint, out created boolean, caller name
)
language plpgsql volatile as $$
declare
    kind_id int;
    queue_id int;
    queue_name text;
    the_lane int := least(greatest(coalesce(the_priority, 4), 0), 9) * 4 + 1;
    own_tenant text;
    own_scope text;                                       -- null for staff
    t timestamptz := millrace.now();
    the_hash bytea;
    holder bigint;
    replaced record;
    fate text := 'unknown';                               -- see unique_replace
    is_searchable boolean := false;
    split int;                                            -- see kind_drawn
    follows boolean := false;
    tries int := 0;
    told text;                                            -- see wake_saying
begin
    if the_priority is not null and (the_priority < 0 or the_priority > 9) then
        perform millrace.refuse(format('priority %s is out of range', the_priority), 'priority', 'Give 0 (first) to 9 (last); 4 is the default.');
    end if;
    if the_max_attempts is not null and (the_max_attempts < 1 or the_max_attempts > 1000) then
        perform millrace.refuse(format('max_attempts %s is out of range', the_max_attempts), 'max_attempts', 'Give 1 to 1000.');
    end if;
    if the_args is null then
        perform millrace.refuse('args is null', 'args', 'Give a JSON value, {} for none.');
    end if;
    if the_args ? '$millrace' then
        perform millrace.check_sealed(the_args);
    end if;
    if millrace.true_bytes(the_args) > millrace.most('args') then
        perform millrace.refuse(format('args take %s bytes, more than the %s allowed', millrace.true_bytes(the_args), millrace.most('args')), 'args',
            'Store large data elsewhere and pass a reference.', '53400', 'too_large');
    end if;
    if millrace.true_bytes(the_metadata) > millrace.most('metadata') then
        perform millrace.refuse(format('metadata takes more than %s bytes', millrace.most('metadata')), 'metadata', 'Keep metadata small.', '53400', 'too_large');
    end if;
    if millrace.true_bytes(the_options) > millrace.most('options') then
        perform millrace.refuse(format('options take more than %s bytes', millrace.most('options')), 'options', 'They say how a job runs; data goes into args.',
            '53400', 'too_large');
    end if;
    if the_options is not null and the_options <> '{}' then
        perform millrace.check_options(the_options);
        if the_conflict = 'replace' and the_options ?| array['after', 'fence', 'before'] then
            perform millrace.refuse('on_conflict replace cannot be combined with options.after, before or fence', 'on_conflict',
                'What a job waits for cannot be replaced: cancel the holder, or give skip or error.');
        end if;
        if the_key is null and the_options ? 'unique_for' then
            perform millrace.refuse('options.unique_for is given without a unique_key', 'options.unique_for', 'It says how long the key stays held.');
        end if;
        if the_options ? 'expires_at' then                -- as a point in time, whatever the caller's time zone
            the_options := the_options || jsonb_build_object('expires_at',
                to_char((the_options ->> 'expires_at')::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'));
        end if;
    end if;
    if the_metadata is not null and jsonb_typeof(the_metadata) <> 'object' then
        perform millrace.refuse('metadata is not a JSON object', 'metadata', 'Give an object such as {"trace": "…"}.');
    end if;
    if current_setting('millrace.traceparent', true) <> '' then
        the_metadata := millrace.trace_carried(the_metadata);
    end if;
    if cardinality(the_tags) > millrace.most('tags') then
        perform millrace.refuse(format('%s tags are more than the %s allowed', cardinality(the_tags), millrace.most('tags')), 'tags', 'Data goes into args.');
    end if;
    if the_tags is not null and exists (select from unnest(the_tags) e where length(e) > millrace.most('tag')) then
        perform millrace.refuse(format('a tag has more than %s characters', millrace.most('tag')), 'tags', 'Data goes into args.', '53400', 'too_large');
    end if;
    if length(the_limit_key) not between 1 and millrace.most('limit_key') then
        perform millrace.refuse(format('limit_key must have 1 to %s characters', millrace.most('limit_key')), 'limit_key');
    end if;
    if millrace.is_no_tenant(the_tenant) then
        perform millrace.refuse(format('tenant must have 1 to %s characters', millrace.most('name')), 'tenant');
    end if;
    if the_conflict is null or the_conflict not in ('skip', 'replace', 'error') then
        perform millrace.refuse(format('on_conflict %L is unknown', left(the_conflict, 60)), 'on_conflict', 'Give skip, replace or error.');
    end if;
    if the_run_at in ('infinity', '-infinity') then
        perform millrace.refuse('run_at is infinite', 'run_at', 'Give a point in time.');
    end if;

    select k.id, coalesce(the_queue, d.name, 'default'), q.id, k.searchable, k.split into kind_id, queue_name, queue_id, is_searchable, split
      from millrace.kind k
      left join millrace.queue d on d.id = k.queue
      left join millrace.queue q on q.name = coalesce(the_queue, d.name, 'default') and coalesce(q.tenant, '') = coalesce(the_tenant, '')
                                and q.keyed = (the_limit_key is not null)
     where k.name = the_kind and k.line = '';
    if not found then
        kind_id := millrace.kind_id(the_kind);
        queue_name := coalesce(the_queue, 'default');
        is_searchable := false;
    end if;

    if split is not null or the_options ? 'version' then
        kind_id := millrace.kind_drawn(kind_id, the_options ->> 'version');
    end if;

    if enqueue_one.caller is distinct from current_user and not millrace.is_staff(enqueue_one.caller) then
        perform millrace.check_client(the_kind, queue_name, enqueue_one.caller);
        own_tenant := millrace.tenant_of(the_tenant, enqueue_one.caller);
        if own_tenant is distinct from the_tenant then
            the_tenant := own_tenant;
            queue_id := null;                             -- of that tenant's line
        end if;
        own_scope := concat_ws(chr(31), enqueue_one.caller, the_tenant);
    end if;

    if queue_id is null then
        queue_id := millrace.queue_line(queue_name, the_tenant, the_limit_key is not null);
    end if;

    -- The transaction id first: a worker's floor relies on a transaction younger than its sample drawing only larger numbers.
    id := case when pg_current_xact_id() is not null then nextval('millrace.seq') end;
    created := true;

    if the_key is not null then
        the_hash := millrace.unique_hash_own(the_key, the_kind, queue_name, the_tenant, the_options ->> 'unique_scope', own_scope, enqueue_one.caller);
        loop
            if the_conflict = 'replace' then
                replaced := millrace.unique_replace(the_hash, id, kind_id, queue_id, the_lane, the_run_at, the_args,
                    the_limit_key, the_max_attempts, the_tags, the_metadata, the_options, the_tenant, own_scope, caller => enqueue_one.caller);
                fate := replaced.fate;
                if fate = 'replaced' then
                    id := replaced.id;
                    created := false;
                    if is_searchable then
                        delete from millrace.job_field x where x.job = id;
                        perform millrace.fields_put(id, kind_id, the_args);
                    end if;
                    return;
                end if;
                follows := fate = 'follows';
                the_run_at := greatest(the_run_at, replaced.not_before);
                exit when follows or fate = 'taken';
            end if;
            if fate = 'unknown' then
                holder := millrace.unique_take(the_hash, id);
                exit when holder = id;
                if the_conflict = 'error' then
                    perform millrace.refuse(format('the unique key %L is held by job %s', left(the_key, 60), holder), 'unique_key',
                        'Wait for that job, or enqueue with on_conflict => ''skip''.', '23505', 'conflict');
                elsif the_conflict = 'skip' then
                    id := holder;
                    created := false;
                    return;
                end if;
            end if;
            tries := tries + 1;
            if tries > 100 then
                perform millrace.refuse(format('the job that holds the unique key %L keeps changing', left(the_key, 60)), 'unique_key', 'Try again.', '40001', 'conflict');
            end if;
        end loop;
    end if;
    insert into millrace.job (id, kind, queue, lane, max_attempts, enqueued_at, run_at, args, unique_hash, unique_key,
        limit_key, limit_scope, tenant, owner, tags, metadata, options)
    values (id, kind_id, queue_id, the_lane, the_max_attempts, t, the_run_at, the_args, the_hash, the_key,
        the_limit_key, case when the_limit_key is not null then own_scope end, the_tenant, enqueue_one.caller, nullif(the_tags, '{}'), nullif(the_metadata, '{}'), nullif(the_options, '{}'));
    if is_searchable then
        perform millrace.fields_put(id, kind_id, the_args);
    end if;

    if follows then
        return;                                           -- the end of the holder gives it its place
    end if;
    if the_options ?| array['after', 'fence', 'before'] then
        if millrace.flow_join(id, the_options, the_run_at, caller => enqueue_one.caller) then
            return;                                       -- the end of the last job that it waits for gives it its place
        end if;
    end if;
    if the_run_at > t then
        insert into millrace.timer (due, job, queue, kind, lane) values (the_run_at, id, queue_id, kind_id, the_lane);
        if the_run_at <= t + interval '2 s' and (the_options is null or the_options -> 'wake' is distinct from 'false') then
            told := millrace.wake_saying(queue_id, the_lane, '')::text;
        end if;
        return;                                           -- otherwise nobody need wake: every worker looks at the clock once a second
    elsif the_limit_key is not null and millrace.gate_has_parked(millrace.key_gate(the_limit_key, own_scope)) then
        insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes)
        values (millrace.key_gate(the_limit_key, own_scope), the_lane, id, queue_id, kind_id, 0, 0);
        return;                                           -- behind the others, and in nobody's way
    else
        insert into millrace.ready (seq, job, queue, kind, lane, gate)
        values (id, id, queue_id, kind_id, the_lane, millrace.key_gate(the_limit_key, own_scope));
    end if;
    if the_options is null or the_options -> 'wake' is distinct from 'false' then
        told := millrace.wake_saying(queue_id, the_lane, '.ready')::text;
    end if;
end $$;

create or replace function millrace.check_options(the_options jsonb) returns void
language plpgsql stable as $$
declare
    name text;
    value jsonb;
begin
    if jsonb_typeof(the_options) <> 'object' then
        perform millrace.refuse('options is not a JSON object', 'options', 'Give an object such as {"timeout": 30}.');
    end if;
    for name, value in select * from jsonb_each(the_options) loop
        case
            when name = 'timeout' then
                if jsonb_typeof(value) <> 'number' or value::numeric not between 0.001 and 604800 then
                    perform millrace.refuse('options.timeout is not a number of seconds', 'options.timeout', 'Give 0.001 to 604800.');
                end if;
            when name = 'expires_at' then
                begin
                    perform (value #>> '{}')::timestamptz;
                exception when others then
                    perform millrace.refuse('options.expires_at is not a timestamp', 'options.expires_at',
                        'Give for example "2030-01-31T12:00:00Z".');
                end;
            when name = 'unique_scope' then
                if coalesce(value #>> '{}', '') not in ('kind', 'queue', 'tenant', 'all') then
                    perform millrace.refuse('options.unique_scope is unknown', 'options.unique_scope', 'Give kind, queue, tenant or all.');
                end if;
            when name = 'backoff' then
                if jsonb_typeof(value) <> 'object' then
                    perform millrace.refuse('options.backoff is not an object', 'options.backoff', 'Give {"base": seconds, "cap": seconds}.');
                end if;
                -- An expression, not a query over its fields: Postgres would prepare the query again in every call.
                if value - array['base', 'cap'] <> '{}'
                    or (case when value ? 'base' then jsonb_typeof(value -> 'base') <> 'number' or (value ->> 'base')::numeric not between 0.001 and 604800 end)
                    or (case when value ? 'cap' then jsonb_typeof(value -> 'cap') <> 'number' or (value ->> 'cap')::numeric not between 0.001 and 604800 end)
                then
                    perform millrace.refuse('options.backoff may hold only base and cap, in seconds', 'options.backoff',
                        'Give {"base": seconds, "cap": seconds}, each 0.001 to 604800.');
                end if;
            when name in ('wake', 'tell_end') then
                if jsonb_typeof(value) <> 'boolean' then
                    perform millrace.refuse(format('options.%s is not a boolean', name), 'options.' || name);
                end if;
            when name = 'unique_for' then
                if jsonb_typeof(value) <> 'number' or value::numeric not between 1 and 31536000 then
                    perform millrace.refuse('options.unique_for is not a number of seconds', 'options.unique_for', 'Give 1 to 31536000, a year.');
                end if;
            when name = 'version' then
                if jsonb_typeof(value) <> 'number' or value::numeric not between 1 and 1000000 or value::numeric <> trunc(value::numeric) then
                    perform millrace.refuse('options.version is not a version of arguments', 'options.version', 'Give 1 to 1000000.');
                end if;
            when name in ('after', 'fence', 'before') then
                perform millrace.flow_check(name, value);
            else
                perform millrace.refuse(format('options.%s is unknown', left(name, 60)), 'options',
                    'Allowed: timeout, expires_at, unique_scope, unique_for, backoff, version, after, before, fence, tell_end and wake.');
        end case;
    end loop;
end $$;

-- Many at once, answered in order. An error names the job by its place, counted from 1, and nothing is written.
create or replace function millrace.enqueue_many(jobs jsonb, caller millrace.caller_name default current_user) returns table (id bigint, created boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    written record := millrace.enqueue_numbered(jobs, null, 'job', caller => enqueue_many.caller);
begin
    for n in 1 .. cardinality(written.news) loop
        id := written.ids[n];
        created := written.news[n];
        return next;
    end loop;
end $$;
select millrace.door_is('queue', 'enqueue_many', 'client, worker', 'granted kind', 'Adds many jobs.');

-- Plans are kept for all that is called here: of a partitioned table the planner likes to make another for each job, which costs more than it runs.
-- numbers: what to call each job in an error, when not its place. Those that need no more than to be written are written together; the others, and
-- all of them if anything is wrong with those, go one after the other. ids: of the jobs, in their order; news: whether each is new.
create or replace function millrace.enqueue_numbered(jobs jsonb, numbers bigint[], noun text, out ids bigint[], out news boolean[], caller millrace.caller_name default current_user)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
declare
    together boolean := millrace.is_staff(enqueue_numbered.caller);
    one jsonb;
    n bigint;
    one_result record;
    sentence text; explained text; advice text; code text;
begin
    if jobs is null or jsonb_typeof(jobs) <> 'array' then
        perform millrace.refuse('jobs is not a JSON array', 'jobs', 'Give [{"kind": "…", "args": {…}}, …].');
    end if;
    if jsonb_array_length(jobs) > millrace.most('jobs') or millrace.true_bytes(jobs) > millrace.most('jobs_bytes') then
        perform millrace.refuse(format('jobs has more than %s entries or %s bytes', millrace.most('jobs'), millrace.most('jobs_bytes')), 'jobs',
            'Use several calls.', '53400', 'too_large');
    end if;
    news := array_fill(true, array[jsonb_array_length(jobs)]);
    loop
        begin
            ids := case when together then millrace.enqueue_together(jobs, caller => enqueue_numbered.caller) end;
            exit when cardinality(ids) = cardinality(news) and array_position(ids, null) is null;
            -- Every caller takes unique keys in the same order, or two callers could wait for each other. The order is that of the locks:
            -- key, scope, and the name within that scope. The last part orders jobs without a key.
            for one, n in
                select j.value, j.ordinality
                  from jsonb_array_elements(jobs) with ordinality j
                  left join millrace.kind k on k.name = j.value ->> 'kind' and k.line = ''
                  left join millrace.queue q on q.id = k.queue
                 cross join lateral (
                    select coalesce(j.value #>> '{options,unique_scope}', 'kind') as scope, coalesce(j.value ->> 'queue', q.name, 'default') as queue) s
                 where ids[j.ordinality] is null
                 order by j.value ->> 'unique_key' collate "C" nulls first, s.scope collate "C",
                          case s.scope when 'kind' then j.value ->> 'kind' when 'queue' then s.queue when 'tenant' then j.value ->> 'tenant' end collate "C",
                          j.value ->> 'kind' collate "C", s.queue collate "C", j.ordinality
            loop
                one_result := millrace.enqueue_object(one, caller => enqueue_numbered.caller);
                ids[n] := one_result.id;
                news[n] := one_result.created;
            end loop;
            exit;
        exception when others then
            if n is not null then
                get stacked diagnostics sentence = message_text, explained = pg_exception_detail, advice = pg_exception_hint,
                    code = returned_sqlstate;
                -- The error for a value of a wrong type is Postgres's own, and does not name the field's kind.
                raise exception using message = format('%s %s: %s', noun, coalesce(numbers[n], n), sentence),
                    detail = case when code like '22%' and explained not like '{%' then '{"error": "invalid", "field": "jobs"}' else explained end, hint = advice, errcode = code;
            elsif not together then
                raise;
            end if;
            together := false;                            -- one after the other it will show which of them it is
        end;
    end loop;
end $$;
select millrace.door_is('queue', 'enqueue_numbered', 'client, worker', 'granted kind',
    'Adds many jobs, and says which are new.');

-- Writes those of the jobs that hold no unique key, wait for no other job and have no end, of kinds and lines that are known: what enqueue_one
-- does for each, in one statement for all, in their order. Answers with their ids, null for every other. For trusted callers.
create or replace function millrace.enqueue_together(jobs jsonb, caller name) returns bigint[]
language plpgsql volatile as $$
declare
    t timestamptz := case when pg_current_xact_id() is not null then millrace.now() end;   -- its id before numbers are drawn: see enqueue_one
    ids bigint[];
    woken record;
    told text;
    trace jsonb := case when current_setting('millrace.traceparent', true) <> '' then millrace.trace_now() end;
begin
    with given as materialized (
        select j.ordinality as place, j.value as one, j.value -> 'args' as args, j.value ->> 'limit_key' as limit_key, j.value ->> 'tenant' as tenant,
               coalesce((j.value ->> 'priority')::int, 4) as priority, (j.value ->> 'run_at')::timestamptz as run_at,
               (j.value ->> 'max_attempts')::int as max_attempts, j.value -> 'options' as options, j.value -> 'metadata' as metadata
          from jsonb_array_elements(jobs) with ordinality j
         where jsonb_typeof(j.value) = 'object' and j.value ->> 'unique_key' is null
           and j.value - array['kind', 'args', 'queue', 'priority', 'run_at', 'unique_key', 'on_conflict', 'limit_key', 'tenant', 'max_attempts',
                               'tags', 'metadata', 'options'] = '{}'
    ), known as materialized (
        select g.place, g.one, coalesce(g.args, '{}') as args, g.limit_key, g.tenant, g.run_at, g.max_attempts, g.options, g.metadata,
               k.id as kind, k.searchable, q.id as queue, g.priority * 4 + 1 as lane, millrace.key_gate(g.limit_key, null) as gate,
               coalesce(g.run_at > t, false) as is_later
          from given g
          join millrace.kind k on k.name = g.one ->> 'kind' and k.line = '' and k.split is null
          left join millrace.queue d on d.id = k.queue
          join millrace.queue q on q.name = coalesce(g.one ->> 'queue', d.name, 'default') and coalesce(q.tenant, '') = coalesce(g.tenant, '')
                               and q.keyed = (g.limit_key is not null)
         where g.priority between 0 and 9 and coalesce(g.max_attempts, 1) between 1 and 1000
           and coalesce(g.run_at not in ('infinity', '-infinity'), true)
           and (g.args is null or not g.args ? '$millrace' and pg_column_size(g.args) <= millrace.most('args'))
           and coalesce(length(g.limit_key), 1) between 1 and millrace.most('limit_key') and not coalesce(millrace.is_no_tenant(g.tenant), false)
           and (g.metadata is null or jsonb_typeof(g.metadata) = 'object' and pg_column_size(g.metadata) <= millrace.most('metadata'))
           and (g.options is null or g.options = '{}' or pg_column_size(g.options) <= millrace.most('options') and not g.options ?| array['after', 'fence', 'before', 'expires_at', 'unique_for', 'unique_scope', 'wake', 'version']
                                     and millrace.check_options(g.options) is not null)
           and (not g.one ? 'tags' or case when jsonb_typeof(g.one -> 'tags') = 'array' then jsonb_array_length(g.one -> 'tags') <= millrace.most('tags')
                                          and not exists (select from jsonb_array_elements_text(g.one -> 'tags') e where length(e) > millrace.most('tag')) end)
           and coalesce(g.one ->> 'on_conflict', 'skip') in ('skip', 'replace', 'error')
    ), new as materialized (
        select nextval('millrace.seq') as id, k.*,
               not k.is_later and k.gate is not null and millrace.gate_has_parked(k.gate) as is_aside
          from (select * from known order by place) k
    ), written as (
        insert into millrace.job (id, kind, queue, lane, max_attempts, enqueued_at, run_at, args, limit_key, tenant, owner, tags, metadata, options)
        select n.id, n.kind, n.queue, n.lane, n.max_attempts, t, n.run_at, n.args, n.limit_key, n.tenant, enqueue_together.caller,
               case when n.one ? 'tags' then nullif(array(select jsonb_array_elements_text(n.one -> 'tags')), '{}') end,
               nullif(case when trace is null or n.metadata ? 'traceparent' then n.metadata else trace || coalesce(n.metadata, '{}') end, '{}'), nullif(n.options, '{}')
          from new n
    ), now_ready as (
        insert into millrace.ready (seq, job, queue, kind, lane, gate)
        select n.id, n.id, n.queue, n.kind, n.lane, n.gate from new n where not n.is_later and not n.is_aside
    ), left_aside as (
        insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes)
        select n.gate, n.lane, n.id, n.queue, n.kind, 0, 0 from new n where n.is_aside
    ), for_later as (
        insert into millrace.timer (due, job, queue, kind, lane)
        select n.run_at, n.id, n.queue, n.kind, n.lane from new n where n.is_later
    )
    select array_agg(n.id order by n.place) as ids, array_agg(n.place order by n.place) as places,
           array_agg(distinct array[n.queue, n.lane, n.is_later::int]) filter (where not n.is_aside and coalesce(n.run_at, t) <= t + interval '2 s') as lanes,
           array_agg(n.id) filter (where n.searchable) as searchable
      into woken from new n;
    if woken.searchable is not null then
        perform millrace.fields_put_many(woken.searchable);
    end if;
    ids := array_fill(null::bigint, array[jsonb_array_length(jobs)]);
    for n in 1 .. coalesce(cardinality(woken.places), 0) loop
        ids[woken.places[n]] := woken.ids[n];
    end loop;
    for n in 1 .. coalesce(array_length(woken.lanes, 1), 0) loop
        told := millrace.wake_saying(woken.lanes[n][1], woken.lanes[n][2], case woken.lanes[n][3] when 0 then '.ready' else '' end)::text;
    end loop;
    return ids;
end $$;

-- Enqueues what COPY has put into the caller's own temporary table millrace_batch (line bigint, job jsonb). It runs as the caller, because
-- the table is the caller's, and so is the risk of what its name refers to.
create or replace function millrace.enqueue_copied(chunk int default 2000) returns bigint
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp as $$
declare
    jobs jsonb;
    lines bigint[];
    total bigint := 0;
    done bigint := 0;
begin
    if to_regclass('pg_temp.millrace_batch') is null then
        raise exception using errcode = '55000', message = 'there is no table millrace_batch',
            hint = 'Create it in this session, as temporary table millrace_batch (line bigint, job jsonb), and COPY the jobs into it.',
            detail = '{"error": "wrong_state", "field": "millrace_batch"}';
    end if;
    loop
        select jsonb_agg(b.job order by b.line), array_agg(b.line order by b.line) into jobs, lines
          from (select line, job from pg_temp.millrace_batch where line > done order by line limit chunk) b;
        exit when jobs is null;
        perform millrace.enqueue_numbered(jobs, lines, 'line');
        total := total + cardinality(lines);
        done := lines[cardinality(lines)];
    end loop;
    return total;
end $$;
select millrace.door_is('queue', 'enqueue_copied', 'client, worker', 'granted',
    'Adds the jobs that were copied into the table of this transaction.');

create or replace function millrace.enqueue_object(one jsonb, out id bigint, out created boolean, caller name)
language plpgsql volatile as $$
declare
    unknown text;
    made record;
begin
    if jsonb_typeof(one) <> 'object' then
        perform millrace.refuse('it is not a JSON object', 'jobs', 'Give {"kind": "…", "args": {…}}.');
    end if;
    if not one ? 'kind' then
        perform millrace.refuse('it has no kind', 'kind', 'Give {"kind": "…", "args": {…}}.');
    end if;
    if one - array['kind', 'args', 'queue', 'priority', 'run_at', 'unique_key', 'on_conflict', 'limit_key', 'tenant', 'max_attempts', 'tags',
                   'metadata', 'options'] <> '{}' then
        select name into unknown from jsonb_object_keys(one) name
         where name not in ('kind', 'args', 'queue', 'priority', 'run_at', 'unique_key', 'on_conflict', 'limit_key', 'tenant',
                            'max_attempts', 'tags', 'metadata', 'options') limit 1;
        perform millrace.refuse(format('the field %L is unknown', left(unknown, 60)), unknown, 'The fields are those of millrace.enqueue.');
    end if;
    made := millrace.enqueue_one(
        one ->> 'kind', coalesce(one -> 'args', '{}'), one ->> 'queue', (one ->> 'priority')::int, (one ->> 'run_at')::timestamptz,
        one ->> 'unique_key', coalesce(one ->> 'on_conflict', 'skip'), one ->> 'limit_key', one ->> 'tenant',
        (one ->> 'max_attempts')::int,
        case when one ? 'tags' then array(select jsonb_array_elements_text(one -> 'tags')) end,
        one -> 'metadata', one -> 'options', caller => enqueue_object.caller);
    id := made.id;
    created := made.created;
end $$;

-- The fast path for many jobs of one kind: one statement for all, no unique keys.
create or replace function millrace.enqueue_bulk(
    the_kind text, the_args text[], the_queue text default null, the_priority int default null,
    the_run_at timestamptz default null, the_tenant text default null, the_max_attempts int default null, the_limit_key text default null,
    the_version int default null, caller millrace.caller_name default current_user
) returns table (first bigint, last bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    kind_id int;
    queue_id int;
    queue_name text;
    t timestamptz := millrace.now();
    later boolean := coalesce(the_run_at > t, false);
    aside boolean;
    head record;
    to_index bigint[];
begin
    if cardinality(the_args) = 0 then
        return;
    end if;
    -- The first goes the long way and is checked like any other; the rest share all of it but their arguments.
    select e.id into first from millrace.enqueue_one(the_kind, the_args[1]::jsonb, the_queue, the_priority, the_run_at,
        null, 'skip', the_limit_key, the_tenant, the_max_attempts, null, null,
        case when the_version is not null then jsonb_build_object('version', the_version) end, caller => enqueue_bulk.caller) e;
    last := first;
    select j.*, millrace.key_gate(j.limit_key, j.limit_scope) as gate, k.searchable, k.split
      into strict head from millrace.job j join millrace.kind k on k.id = millrace.kind_plain(j.kind) where j.id = first;
    aside := not later and head.gate is not null and millrace.gate_has_parked(head.gate);
    if exists (select from unnest(the_args) a where octet_length(a) > millrace.most('args')) then
        perform millrace.refuse(format('args of a job take more than the %s bytes allowed', millrace.most('args')), 'args',
            'Store large data elsewhere and pass a reference.', '53400', 'too_large');
    end if;
    perform millrace.check_sealed(a::jsonb) from unnest(the_args[2:]) a where a like '%$millrace%';
    with new as materialized (
        select nextval('millrace.seq') as id, a::jsonb as args, case when head.split is null then head.kind else millrace.kind_drawn(head.kind) end as kind from unnest(the_args[2:]) a
    ), written as (
        insert into millrace.job (id, kind, queue, lane, max_attempts, enqueued_at, run_at, args, limit_key, limit_scope, tenant, owner, metadata, options)
        select n.id, n.kind, head.queue, head.lane, head.max_attempts, t, the_run_at, n.args, head.limit_key, head.limit_scope, head.tenant, enqueue_bulk.caller,
               head.metadata, head.options from new n
    ), now_ready as (
        insert into millrace.ready (seq, job, queue, kind, lane, gate)
        select n.id, n.id, head.queue, n.kind, head.lane, head.gate from new n where not later and not aside
    ), left_aside as (
        insert into millrace.parked (gate, lane, job, queue, kind, attempt, crashes)
        select head.gate, head.lane, n.id, head.queue, n.kind, 0, 0 from new n where aside
    ), for_later as (
        insert into millrace.timer (due, job, queue, kind, lane)
        select the_run_at, n.id, head.queue, n.kind, head.lane from new n where later
    )
    select coalesce(max(n.id), last), case when head.searchable then array_agg(n.id) end into last, to_index from new n;
    if to_index is not null then
        perform millrace.fields_put_many(to_index);
    end if;
    return next;
end $$;
select millrace.door_is('queue', 'enqueue_bulk', 'worker', 'staff');
