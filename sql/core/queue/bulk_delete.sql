-- Whether all that an ended job's deletion concerns is the job: it has no unique key, undoes nothing, and nothing of it is to be undone.
create or replace function millrace.is_deleted_plainly(the_job bigint) returns boolean
language plpgsql stable as $$
begin
    return not exists (select from millrace.job j where j.id = the_job and j.unique_hash is not null)
       and not exists (select from millrace.undo u where u.job = the_job) and not exists (select from millrace.undo u where u.undo_job = the_job)
       and millrace.undo_ending(the_job) is null;
end $$;

-- Deletes the ended jobs among these, with one statement for each table: a single job_delete looks in every place and every leaf of
-- history, so thousands of them would take minutes. Ended jobs with a unique key or an undo, and jobs that have not ended, are left to
-- job_delete. Returns the deleted ids.
create or replace function millrace.jobs_delete_ended(ids bigint[]) returns bigint[]
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    ended bigint[];
begin
    -- The row locks settle a redrive at the same time: it finds no ended run, or this finds none.
    ended := array(
        select h.id from millrace.history h
         where h.id = any (jobs_delete_ended.ids) and h.outcome in (1, 2, 3)
           and millrace.is_deleted_plainly(h.id)
         order by h.id for update);
    if ended = '{}' then
        return ended;
    end if;
    delete from millrace.edge e where e.succ = any (ended);
    perform millrace.trace_forget(ended);
    perform millrace.history_forget(ended);
    return ended;
end $$;
