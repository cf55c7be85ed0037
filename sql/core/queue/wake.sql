-- Waking without a flag that could be read too early. An enqueuer tries to share an advisory lock (K) on its queue's bucket until its
-- commit. While the workers sleep, one of them waits for that lock and then holds it alone. A failed try says that a worker sleeps, or is
-- about to: so notify. A successful try makes that worker wait for this very commit, and then look. 1297239619, the lock K, is "MRlC";
-- 1297239620, the lock D, elects the worker that waits for K. In the notification, '.ready' after the numbers of line and lane says that
-- the job is in its lane, so that nobody needs to look at the timers.
create or replace function millrace.wake_saying(the_queue int, the_lane int, more text) returns void
language plpgsql as $$
declare
    told text;                                            -- assigned, not performed: Postgres prepares a `perform` again in every call
begin
    if not pg_try_advisory_xact_lock_shared(1297239619, the_queue & 63) then
        -- A full notification queue would make the caller's commit fail; the poll then has to do.
        if pg_notification_queue_usage() < 0.5 then
            told := pg_notify('millrace', the_queue || '.' || the_lane || more)::text;
        end if;
    end if;
end $$;

create or replace function millrace.wake(the_queue int, the_lane int) returns void
language plpgsql as $$
begin
    perform millrace.wake_saying(the_queue, the_lane, '');
end $$;
