-- What waits in the lanes of notices, webhooks and check-ins, which are no queues: `status` shows them beside the queues. Each number stops at
-- `cap`, or counts all where that is null; an hour's endings stop at 10,000. later: not due yet, or tried again after a pause. running: handed to
-- a worker; null where the work is one transaction, which nobody else sees. ended, failed: of what was due in the last hour; null where nobody
-- counts. workers: how many living ones serve the room.
create or replace function millrace.room_lanes(cap int default 10000)
returns table (room text, lane text, waiting bigint, later bigint, running bigint, oldest_s float8, ended bigint, failed bigint, workers int)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off as $$
declare
    one record;
begin
    for one in select * from millrace.hooks_of('lanes') loop
        begin
            return query execute format('select * from %s($1)', one.call) using cap;
            if one.fails then
                perform millrace.hook_went('lanes', one.function);
            end if;
        exception when others then
            perform millrace.hook_went('lanes', one.function, sqlstate, sqlerrm);
        end;
    end loop;
end $$;
select millrace.door_is('operating', 'room_lanes', 'worker, viewer', 'staff');
