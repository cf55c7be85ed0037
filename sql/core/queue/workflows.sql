-- What a caller needs who has started one job and talks to it: find it again by its key, and tell it something.

-- The job that holds a unique key of a kind, or held it when it ended, as long as the key stays held; null: none that the caller may see.
create or replace function millrace.job_of_key(kind text, unique_key text, tenant text default null, caller millrace.caller_name default current_user) returns bigint
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off as $$
declare
    the_tenant text := job_of_key.tenant;
    own_scope text;                                       -- null for staff, as in enqueue_one
    the_hash bytea;
begin
    if not millrace.is_staff(job_of_key.caller) then
        the_tenant := millrace.tenant_of(the_tenant, job_of_key.caller);
        own_scope := concat_ws(chr(31), job_of_key.caller, the_tenant);
    end if;
    the_hash := millrace.unique_hash_own(job_of_key.unique_key, job_of_key.kind, null, the_tenant, null, own_scope, job_of_key.caller);
    return (
        select j.id
          from (select u.job, u.ended, u.until from millrace.unique_lock u where u.hash = the_hash order by u.round desc limit 1) h
          join millrace.job j on j.id = h.job
         where (not h.ended or h.until > millrace.now()) and millrace.may_see(j.owner, j.tenant, caller => job_of_key.caller));
end $$;
select millrace.door_is('queue', 'job_of_key', 'client, worker, operator', 'open',
    'The caller''s job with this kind and unique key.');

-- A signal to one job, which no other can take. It waits for it under the same name, with the key millrace.job.<its number>.
create or replace function millrace.signal_job(
    job bigint, name text, payload jsonb default 'null', id text default null, caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
begin
    perform millrace.must_see(signal_job.job, caller => signal_job.caller);
    if exists (select from millrace.history h where h.id = signal_job.job and h.outcome in (1, 2, 3)) then
        perform millrace.refuse(format('job %s has ended: it takes no signal', signal_job.job), 'job', null, '55000', 'conflict');
    end if;
    return millrace.signal(signal_job.name, 'millrace.job.' || signal_job.job, signal_job.payload,
        signal_job.job || ' ' || signal_job.id, caller => signal_job.caller);
end $$;
select millrace.door_is('queue', 'signal_job', 'client, worker, operator', 'tenant job',
    'Sends a signal to exactly one of the caller''s jobs.');

-- Gives one waiting job the signal that it waits for, at once, in place of who should have sent it. Others that wait for the same name and key go on
-- waiting. step: where the caller saw it wait.
create or replace function millrace.signal_waiting(
    job bigint, name text, payload jsonb default 'null', step text default null, caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    w millrace.wait;
    given constant jsonb := coalesce(signal_waiting.payload, 'null');
    goes_on boolean;
begin
    perform millrace.must_see(signal_waiting.job, caller => signal_waiting.caller);
    if octet_length(given::text) > millrace.most('signal') then
        perform millrace.refuse(format('the payload takes more than the %s bytes allowed', millrace.most('signal')), 'payload',
            'Store large data elsewhere and send a reference.', '53400', 'too_large');
    end if;
    select x.* into w from millrace.wait x where x.job = signal_waiting.job and x.what = 2;
    if not found then
        perform millrace.refuse(format('job %s is not waiting for a signal', signal_waiting.job), 'job', 'Its page shows what it is doing.', '55000', 'conflict');
    elsif w.name is distinct from signal_waiting.name or w.step <> coalesce(signal_waiting.step, w.step) then
        perform millrace.refuse(format('job %s waits at step %L for the signal %L, and for no other', signal_waiting.job, left(w.step, 60), w.name), 'name',
            'It may have gone on in the meantime: look at its page again.', '55000', 'conflict');
    end if;
    -- The turn first and then the wait, as they are taken where signals are told.
    perform millrace.turns_wait('signal', array[millrace.signal_bucket(w.name, w.key)]);
    -- Nobody waits here for an open transaction that has the job: it would hold the turn.
    select x.* into w from millrace.wait x where x.job = signal_waiting.job and x.step = w.step and x.name = w.name and x.key = w.key for update skip locked;
    goes_on := case when found then millrace.wait_over(w, jsonb_build_object('value', given))
                    when not exists (select from millrace.wait x where x.job = signal_waiting.job and x.what = 2) then false end;
    if goes_on is not true then
        perform millrace.refuse(case when goes_on is null then format('somebody else is acting on job %s right now', signal_waiting.job)
                                     else format('job %s is no longer where it was waiting', signal_waiting.job) end,
            'job', 'Look at its page again.', '55000', 'conflict');
    end if;
    perform millrace.audited('job.signal', signal_waiting.job::text, jsonb_build_object('name', signal_waiting.name, 'step', w.step, 'bytes', octet_length(given::text)),
        caller => signal_waiting.caller);
    return true;
end $$;
select millrace.door_is('queue', 'signal_waiting', 'admin, operator', 'staff', audited => true);
