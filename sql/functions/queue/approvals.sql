-- Approvals: a job asks a person and waits for the answer.

-- Asks, or finds what was asked. A question of a step is asked once.
create or replace function millrace.approval_ask(the_job bigint, the_step text, options jsonb, the_tenant text, the_owner text, t timestamptz) returns uuid
language plpgsql volatile as $$
declare
    the_id uuid;
begin
    select a.id into the_id from millrace.approval a where a.job = the_job and a.step = the_step;
    if found then
        return the_id;
    end if;
    if octet_length(coalesce(options -> 'request', 'null')::text) > millrace.most('signal') then
        perform millrace.refuse(format('the request takes more than the %s bytes allowed', millrace.most('signal')), 'request', null, '53400', 'too_large');
    end if;
    insert into millrace.approval (id, job, step, request, tenant, owner, asked_at, due)
    values (gen_random_uuid(), the_job, the_step, coalesce(options -> 'request', 'null'), the_tenant, the_owner, t, millrace.wait_time(coalesce(options, '{}'), t))
    returning approval.id into the_id;
    return the_id;
end $$;

-- A staff member, an operator or the tenant's own back end answers; by: who it was, as the audit will say. False: it was answered already, the
-- same way; another answer is refused.
create or replace function millrace.approval_answer(id uuid, approved boolean, by text default null, comment text default null, caller millrace.caller_name default current_user)
returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    a millrace.approval;
begin
    if approval_answer.approved is null then
        perform millrace.refuse('the answer is missing', 'approved', 'Give true or false.');
    end if;
    if length(approval_answer.by) > millrace.most('name') or approval_answer.by ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('by is too long, or has control characters', 'by', 'Give at most 128 characters.');
    end if;
    if length(approval_answer.comment) > millrace.most('note') then
        perform millrace.refuse(format('the comment is longer than %s characters', millrace.most('note')), 'comment');
    end if;
    select x.* into a from millrace.approval x
     where x.id = approval_answer.id and (millrace.is_operator(approval_answer.caller) or millrace.may_see(x.owner, x.tenant, approval_answer.caller)) for update;
    if not found then
        perform millrace.refuse(format('there is no approval %s', approval_answer.id), 'id', null, 'P0002', 'not_found');
    end if;
    if a.answered_at is not null then
        if a.approved <> approval_answer.approved then
            perform millrace.refuse(format('the approval was answered with %s already', case when a.approved then 'yes' else 'no' end), 'approved', null, '55000', 'conflict');
        end if;
        return false;
    end if;
    if a.due <= millrace.now() then
        perform millrace.refuse('the time for an answer is over', 'id', 'The job has gone on without one.', '55000', 'conflict');
    end if;
    update millrace.approval x
       set answered_at = millrace.now(), approved = approval_answer.approved, answered_by = coalesce(approval_answer.by, approval_answer.caller), comment = approval_answer.comment
     where x.id = a.id returning x.* into a;
    insert into millrace.signal (name, key, id, payload, to_all, owner, anywhere, at, expires_at)
    values ('millrace.approval', a.id::text, a.id::text,
            jsonb_strip_nulls(jsonb_build_object('approved', a.approved, 'by', a.answered_by, 'comment', a.comment, 'at', a.answered_at)),
            false, approval_answer.caller, true, a.answered_at, a.answered_at + interval '366 days');
    perform pg_notify('millrace', 'signals');
    perform millrace.audited('approval.answer', a.id::text, jsonb_build_object('job', a.job, 'approved', a.approved, 'by', a.answered_by), caller => approval_answer.caller);
    return true;
end $$;

-- Open ones oldest first, or all, newest first.
create or replace function millrace.approval_list(only_open boolean default true, page int default 100, caller millrace.caller_name default current_user)
returns table (id uuid, job bigint, kind text, step text, request jsonb, tenant text, asked_at timestamptz, due timestamptz, answered_at timestamptz, approved boolean, answered_by text, comment text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    if approval_list.page is null or approval_list.page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    return query
    select a.id, a.job, k.name, a.step, a.request, a.tenant, a.asked_at, a.due, a.answered_at, a.approved, a.answered_by, a.comment
      from millrace.approval a
      left join millrace.job j on j.id = a.job
      left join millrace.kind k on k.id = j.kind
     where (not approval_list.only_open or a.answered_at is null and coalesce(a.due > millrace.now(), true) and millrace.wait_of(a.job) ->> 'approval' = a.id::text)
       and (millrace.is_operator(approval_list.caller) or millrace.may_see(a.owner, a.tenant, approval_list.caller))
     order by case when approval_list.only_open then a.asked_at end, a.asked_at desc, a.id limit approval_list.page;
end $$;
