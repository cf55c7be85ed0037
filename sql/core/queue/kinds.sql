-- Queues and kinds by their names, each with its lines.

create or replace function millrace.queue_id(the_name text) returns int
language plpgsql as $$
declare
    the_id int;
begin
    select q.id into the_id from millrace.queue q where q.name = the_name and q.main is null;
    if found then
        return the_id;
    end if;
    if the_name is null or the_name !~ '^[A-Za-z0-9][A-Za-z0-9_./-]{0,127}$' then
        perform millrace.refuse(format('the queue name %L is malformed', left(the_name, 60)), 'queue',
            'A name has 1 to 128 letters, digits and _ . / - and begins with a letter or digit.');
    end if;
    insert into millrace.queue (name) values (the_name) on conflict do nothing returning id into the_id;
    if the_id is null then
        select q.id into strict the_id from millrace.queue q where q.name = the_name and q.main is null;
    end if;
    return the_id;
end $$;

-- The line of a queue in which a job waits: apart by tenant, and with a limit key.
create or replace function millrace.queue_line(the_name text, the_tenant text, is_keyed boolean) returns int
language plpgsql as $$
declare
    the_id int;
    the_main int;
begin
    if the_tenant is null and not is_keyed then
        return millrace.queue_id(the_name);
    end if;
    select q.id into the_id from millrace.queue q
     where q.name = the_name and coalesce(q.tenant, '') = coalesce(the_tenant, '') and q.keyed = is_keyed;
    if found then
        return the_id;
    end if;
    the_main := millrace.queue_id(the_name);
    insert into millrace.queue (name, main, tenant, keyed, retention)
    select the_name, q.id, the_tenant, is_keyed, q.retention from millrace.queue q where q.id = the_main
        on conflict do nothing returning id into the_id;
    if the_id is null then
        select q.id into strict the_id from millrace.queue q
         where q.name = the_name and coalesce(q.tenant, '') = coalesce(the_tenant, '') and q.keyed = is_keyed;
    else
        perform pg_notify('millrace', the_id::text);      -- once in its life: workers of certain queues guard only the lines they know
    end if;
    return the_id;
end $$;

-- All lines of a queue.
create or replace function millrace.queue_ids(the_name text) returns int[]
language sql stable set search_path = pg_catalog, pg_temp as $$
    select array(select q.id from millrace.queue q where q.name = the_name order by q.id)
$$;

create or replace function millrace.kind_id(the_name text) returns int
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    the_id int;
begin
    select k.id into the_id from millrace.kind k where k.name = the_name and k.line = '';
    if found then
        return the_id;
    end if;
    if the_name is null or the_name !~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$' then
        perform millrace.refuse(format('the kind %L is malformed', left(the_name, 60)), 'kind',
            'A kind has 1 to 128 letters, digits and _ . : / - and begins with a letter or digit.');
    end if;
    insert into millrace.kind (name) values (the_name) on conflict (name, line) do nothing returning id into the_id;
    if the_id is null then
        select k.id into strict the_id from millrace.kind k where k.name = the_name and k.line = '';
    end if;
    return the_id;
end $$;

-- A line of a kind: the same kind to everybody who looks, but its jobs are taken only by workers that have registered the line. Workers of earlier
-- versions know no lines, so they never take what they would not understand.
create or replace function millrace.kind_line(the_name text, the_line text) returns int
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    the_id int;
begin
    if the_line = '' then
        return millrace.kind_id(the_name);
    end if;
    select k.id into the_id from millrace.kind k where k.name = the_name and k.line = the_line;
    if not found then
        perform millrace.kind_id(the_name);
        insert into millrace.kind (name, line) values (the_name, the_line) on conflict (name, line) do nothing returning id into the_id;
        if the_id is null then
            select k.id into strict the_id from millrace.kind k where k.name = the_name and k.line = the_line;
        else
            perform pg_notify('millrace', 'versions');    -- workers look which of them take it
        end if;
    end if;
    return the_id;
end $$;

-- All lines of a kind.
create or replace function millrace.kind_ids(the_name text) returns int[]
language sql stable set search_path = pg_catalog, pg_temp as $$
    select array(select k.id from millrace.kind k where k.name = the_name order by k.id)
$$;

-- The kind without its line.
create or replace function millrace.kind_plain(the_kind int) returns int
language sql stable set search_path = pg_catalog, pg_temp as $$
    select p.id from millrace.kind k join millrace.kind p on p.name = k.name and p.line = '' where k.id = the_kind
$$;

-- Notes that plain jobs of a kind go to a queue which their callers name, for enqueue(). Nobody waits here: while another transaction notes the same,
-- and in one that could not see it, it is left to the next.
create or replace function millrace.route_keep(the_kind text, the_queue text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    if current_setting('transaction_isolation') = 'read committed'
       and millrace.turn_try('route', hashtext(the_kind || ' ' || the_queue) & 63) then
        insert into millrace.route (kind_name, queue_name, kind, queue)
        select k.name, q.name, k.id, q.id
          from millrace.kind k
          join millrace.queue q on q.name = the_queue and q.main is null
         where k.name = the_kind and k.line = '' and not k.searchable and k.split is null
           for key share of k skip locked                 -- see kind_fields_apply
            on conflict do nothing;
    end if;
end $$;

-- Registers a worker's kinds; jobs of a kind go to its queue when the caller names none. Kinds come before queues, and each are sorted by
-- name, in the same order as for callers, so that no two sessions wait for each other. the_fields, the_redactions: what each kind declares,
-- arrays of paths in the order of the names; null, as from workers of earlier versions: nothing is said.
create or replace function millrace.register_kinds(
    the_names text[], the_queues text[], the_fields jsonb default null, the_redactions jsonb default null
) returns int[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    ids int[];
    fallback int;
begin
    perform millrace.kind_id(g.name) from (select name from unnest(the_names) name order by name) g;
    perform millrace.queue_id(g.name)
       from (select distinct name from unnest(the_queues || 'default'::text) name where name is not null order by name) g;
    select array(select k.id from unnest(the_names) with ordinality g(name, n) join millrace.kind k on k.name = g.name and k.line = '' order by g.n) into ids;
    fallback := millrace.queue_id('default');
    -- A client that names no queue would be refused from now on, so who may enqueue a kind into what was its queue may do so into its new one.
    insert into millrace.client_grant (role, kind, queue)
    select c.role, c.kind, q.name
      from unnest(the_names, the_queues) g(name, queue)
      join millrace.kind k on k.name = g.name and k.line = ''
      join millrace.queue q on q.name = g.queue and q.main is null
      left join millrace.queue o on o.id = k.queue
      join millrace.client_grant c on c.kind = k.name and c.queue = coalesce(o.name, 'default')
     where c.queue <> q.name
     order by c.role, c.kind, q.name
        on conflict do nothing;
    update millrace.kind k set queue = q.id
      from unnest(the_names, the_queues) g(name, queue)
      join millrace.queue q on q.name = g.queue and q.main is null
     where k.name = g.name and k.line = '' and k.queue is distinct from q.id;
    perform millrace.kind_declare(g.name, the_fields -> (g.n - 1)::int, the_redactions -> (g.n - 1)::int)
       from (select x.name, x.n from unnest(the_names) with ordinality x(name, n) order by x.name) g
      where the_fields is not null or the_redactions is not null;
    -- Last, because a session that moves a kind to another queue waits for this lock, and then deletes what is noted here. This waits for
    -- no such session.
    insert into millrace.route (kind_name, queue_name, kind, queue)
    select k.name, '', k.id, coalesce(k.queue, fallback) from millrace.kind k where k.id = any (ids) and not k.searchable and k.split is null order by k.name for share skip locked
        on conflict do nothing;
    return ids;
end $$;
select millrace.door_is('queue', 'register_kinds', 'worker', 'staff');

-- Registers lines of a kind that a worker takes, besides the kind itself. In their order, for the same reason.
create or replace function millrace.register_lines(the_name text, the_lines text[]) returns int[]
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if cardinality(the_lines) > 200 then
        perform millrace.refuse(format('the kind %s has %s lines, more than the 200 allowed', left(the_name, 128), cardinality(the_lines)), 'lines',
            'Accept fewer versions of arguments.');
    end if;
    return array(select millrace.kind_line(the_name, l.line) from (select distinct x as line from unnest(the_lines) x order by 1) l);
end $$;
select millrace.door_is('queue', 'register_lines', 'worker', 'staff');

create or replace function millrace.register_queues(the_names text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.queue_id(name) from unnest(the_names) name order by name;
end $$;
select millrace.door_is('queue', 'register_queues', 'worker', 'staff');

-- Every line of every queue, with its queue's state and its tenant's weight.
create or replace function millrace.queue_list()
returns table (id int, name text, paused boolean, retention smallint, main int, weight float8, limited boolean)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select q.id, q.name, m.paused_at is not null, m.retention, m.id, r.weight,
           q.keyed or r.concurrency is not null or r.rate is not null
               or exists (select from millrace.limit_rule x where x.scope = 'queue' and x.name = q.name)
      from millrace.queue q
      join millrace.queue m on m.id = coalesce(q.main, q.id)
      left join millrace.limit_rule r on r.scope = 'tenant' and r.name = q.tenant
     order by q.id
$$;
select millrace.door_is('queue', 'queue_list', 'worker, viewer', 'staff');
