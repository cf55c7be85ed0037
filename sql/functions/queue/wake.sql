-- Waking without a flag that could be read too early. An enqueuer tries to share an advisory lock on its queue's bucket
-- until its commit; the doorman of a sleeping fleet waits for, then holds, that lock alone. A try that fails says that
-- somebody sleeps (or is about to): notify. A try that succeeds makes the doorman wait for this very commit, and look.
-- 1297239619 and 1297239620 are "MRlC" and one more: the lock K and the doorman's election D.
-- What follows the line's and the lane's number says more: '.ready', that the job is in its lane, so that nobody need look at the clock.
create or replace function millrace.wake_saying(the_queue int, the_lane int, more text) returns void
language plpgsql as $$
declare
    told text;                                            -- assigned, not performed: a query for its own sake is set up anew each time
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
