-- The names that a command can mean: it checks them before it acts, and suggests one for a mistyped one.
create or replace function millrace.names_known(what text) returns setof text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    case what
    when 'queue' then
        return query select q.name from millrace.queue q where q.main is null order by q.name limit 10000;
    when 'kind' then
        return query select k.name from millrace.kind k where k.line = '' order by k.name limit 10000;
    when 'provider' then
        return query
        select c.provider from millrace.provider_circuit c union select s.provider from millrace.provider_seen s order by 1 limit 10000;
    when 'flag' then
        return query select f.name from millrace.flag f order by f.name limit 10000;
    when 'schedule' then
        return query select s.name from millrace.schedule s order by s.name limit 10000;
    else
        perform millrace.refuse(format('%L is not a kind of name', left(what, 60)), 'what', 'Give queue, kind, provider, flag or schedule.');
    end case;
end $$;
select millrace.door_is('queue', 'names_known', 'admin, viewer', 'staff');

-- Waits until every transaction that has looked up a queue has committed, and returns how far the numbers had come. A transaction that
-- looks the queue up later draws a larger number, because enqueuing reads the queue before it draws. Nobody waits for longer than a second.
create or replace function millrace.queues_settled() returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set lock_timeout = '1s' as $$
declare
    drawn bigint;
begin
    begin
        lock table millrace.route, millrace.queue in access exclusive mode;
        select case when s.is_called then s.last_value else 0 end into drawn from millrace.seq s;
        raise exception using errcode = 'MR001';          -- gives the locks back
    exception when sqlstate 'MR001' then
        return drawn;
    end;
end $$;

-- Why a queue cannot be removed, or null. Where there is no index by queue, only jobs above `after` are looked at.
create or replace function millrace.queue_holds(the_queue text, lines int[], after bigint) returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    name text;
begin
    if exists (select from millrace.ready r where r.queue = any (lines)) or exists (select from millrace.parked p where p.queue = any (lines))
       or exists (select from millrace.timer d where d.queue = any (lines)) or exists (select from millrace.job j where j.id > after and j.queue = any (lines)) then
        return 'it has jobs';
    end if;
    if after = 0 and exists (select from millrace.history h where h.queue = any (lines)) then
        return 'it has ended jobs whose record is kept';
    end if;
    select s.name into name from millrace.schedule s where s.queue = the_queue order by s.name limit 1;
    if found then
        return format('the schedule %s enqueues into it', name);
    end if;
    select k.name into name from millrace.kind k where k.queue = any (lines) and k.line = '' order by k.name limit 1;
    if found then
        return format('jobs of kind %s go there', name);
    end if;
    select s.name into name from millrace.session s where the_queue = any (s.queues) order by s.name limit 1;
    if found then
        return format('the worker %s serves it by name', name);
    end if;
    return null;
end $$;

-- Removes an unused queue: one made by a typing mistake, or an old one. Its limit and its retention setting are removed with it.
create or replace function millrace.queue_remove(queue text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set lock_timeout = '1s' as $$
declare
    lines int[] := millrace.queue_ids(queue_remove.queue);
    after bigint := 0;
    why text;
begin
    if lines = '{}' then
        perform millrace.refuse(format('there is no queue %L', left(queue_remove.queue, 60)), 'queue', null, 'P0002', 'not_found');
    end if;
    if queue_remove.queue = 'default' then
        perform millrace.refuse('the queue default cannot be removed', 'queue', 'Jobs whose caller names no queue go there.', '55000', 'conflict');
    end if;
    begin
        for look in 1 .. 2 loop
            if look = 1 then
                after := millrace.queues_settled();
                why := millrace.queue_holds(queue_remove.queue, lines, 0);    -- all there is, which may take a while, and holds up nobody
            else
                lock table millrace.route, millrace.queue in access exclusive mode;
                lines := millrace.queue_ids(queue_remove.queue);
                why := millrace.queue_holds(queue_remove.queue, lines, after);     -- what came meanwhile
            end if;
            if why is not null then
                perform millrace.refuse(format('the queue %s cannot be removed: %s', left(queue_remove.queue, 128), why), 'queue',
                    'Only an empty queue can be removed: no jobs, no record of ended ones, no schedule, no kind and no worker of its own.', '55000', 'conflict');
            end if;
        end loop;
    exception when lock_not_available then
        perform millrace.refuse(format('the queue %s cannot be removed now: a transaction that enqueues is still open', left(queue_remove.queue, 128)), 'queue',
            'Try again.', '55000', 'conflict');
    end;
    delete from millrace.limit_rule r where r.scope = 'queue' and r.name = queue_remove.queue;
    delete from millrace.queue q where q.id = any (lines) and q.main is not null;
    delete from millrace.queue q where q.id = any (lines);
    perform pg_notify('millrace', 'limits');              -- rare: tell everybody
    perform millrace.audited('queue.remove', queue_remove.queue, null, caller => queue_remove.caller);
    return true;
end $$;
select millrace.door_is('queue', 'queue_remove', 'admin', 'staff', audited => true);
