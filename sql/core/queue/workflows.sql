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
    'The caller''s job of a kind with this unique key.');

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
    'Tells one job of the caller''s, and no other.');
