-- What the queue knows of a person who is erased.

-- Joins in person_erase, behind the rooms, which have called off what they wanted done. Jobs of the person's own tenant lose its name, and those that have
-- ended all that they carried. One that still waits is the app's work, and goes on. Reads all jobs, if there are such at all.
create or replace function millrace.jobs_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    lines int[] := array(select q.id from millrace.queue q where q.tenant = millrace.personal_tenant(jobs_erase_person.person));
    nobody text := 'erased:' || gen_random_uuid();
    keeps text[];
    ids bigint[];
begin
    if lines = '{}' then
        return 0;
    end if;
    ids := array(select j.id from millrace.job j where j.queue = any (lines));
    ids := array(select i from unnest(ids) i where (select v.state from millrace.job(i) v) in ('succeeded', 'cancelled', 'dead'));
    keeps := array(select h.said from millrace.hooks_list('keeps', true) h);
    update millrace.job j set tenant = nobody, args = case when j.args ?| keeps then j.args else '{}' end, metadata = null, tags = null
     where j.id = any (ids);
    update millrace.history h set error = 'erased' where h.id = any (ids) and h.error is not null;
    delete from millrace.log_line l where l.job = any (ids);
    -- What is still to be undone is replayed from them: see step_undone.
    delete from millrace.step s where s.job = any (ids) and not exists (select from millrace.undo u where u.job = s.job);
    delete from millrace.result r where r.job = any (ids);
    delete from millrace.output o where o.job = any (ids);
    delete from millrace.published p where p.job = any (ids);
    delete from millrace.job_field x where x.job = any (ids);
    update millrace.progress p set stage = null, note = null where p.job = any (ids) and (p.stage is not null or p.note is not null);
    -- A line without jobs that wait is nobody's.
    update millrace.queue q set tenant = nobody where q.id = any (lines) and not exists (select from millrace.job j where j.queue = q.id and j.tenant = millrace.personal_tenant(jobs_erase_person.person));
    return cardinality(ids);
end $$;

-- Nothing stays of what these jobs said. kept: the arguments that some of them have from now on, by their ids; the others keep theirs.
create or replace function millrace.jobs_forget(jobs bigint[], kept jsonb) returns void
language plpgsql volatile as $$
begin
    update millrace.job j set args = coalesce(kept -> j.id::text, j.args), metadata = null, tags = null
     where j.id = any (jobs) and (kept ? j.id::text or j.metadata is not null or j.tags is not null);
    update millrace.history h set error = 'erased' where h.id = any (jobs) and h.error is not null;
    delete from millrace.log_line l where l.job = any (jobs);
    delete from millrace.step s where s.job = any (jobs);
    delete from millrace.result r where r.job = any (jobs);
    delete from millrace.output o where o.job = any (jobs);
    delete from millrace.published p where p.job = any (jobs);
    delete from millrace.job_field x where x.job = any (jobs);
    update millrace.progress p set stage = null, note = null where p.job = any (jobs) and (p.stage is not null or p.note is not null);
end $$;

-- What the queue keeps of a person: jobs of its own tenant, and questions that it is asked. See person_export.
create or replace function millrace.jobs_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'job', lpad(j.id::text, 20, '0'), jsonb_build_object('id', j.id, 'kind', k.name, 'enqueued_at', j.enqueued_at, 'args', j.args, 'metadata', j.metadata, 'tags', j.tags)
      from millrace.queue q join millrace.job j on j.queue = q.id and j.tenant = q.tenant join millrace.kind k on k.id = j.kind
     where q.tenant = millrace.personal_tenant(jobs_export_person.person)
    union all
    select 'approval', p.ref::text, to_jsonb(p) - 'notice' from millrace.approval_person p where p.person = jobs_export_person.person
$$;
