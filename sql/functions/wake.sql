-- Waking without a flag that could be read too early. An enqueuer tries to share an advisory lock on its queue's bucket
-- until its commit; the doorman of a sleeping fleet waits for, then holds, that lock alone. A try that fails says that
-- somebody sleeps (or is about to): notify. A try that succeeds makes the doorman wait for this very commit, and look.
-- 1297239619 and 1297239620 are "MRlC" and one more: the lock K and the doorman's election D.
create or replace function millrace.wake(the_queue int, the_lane int) returns void
language plpgsql as $$
begin
    if not pg_try_advisory_xact_lock_shared(1297239619, the_queue & 63) then
        -- A full notification queue would make the caller's commit fail; the poll then has to do.
        if pg_notification_queue_usage() < 0.5 then
            perform pg_notify('millrace', the_queue || '.' || the_lane);
        end if;
    end if;
end $$;

-- The same for a job that is in its lane: who hears it need not look at the clock.
create or replace function millrace.wake_ready(the_queue int, the_lane int) returns void
language plpgsql as $$
begin
    if not pg_try_advisory_xact_lock_shared(1297239619, the_queue & 63) and pg_notification_queue_usage() < 0.5 then
        perform pg_notify('millrace', the_queue || '.' || the_lane || '.ready');
    end if;
end $$;
