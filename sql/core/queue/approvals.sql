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
    perform millrace.approval_noted('approval.ask', the_id, jsonb_build_object('job', the_job, 'step', the_step) || millrace.approval_plan(the_id, options, t), the_owner, null);
    return the_id;
end $$;

-- Questions to people, and what they answer, are always in the audit: a worker asks, and a link's answer comes through a worker.
create or replace function millrace.approval_noted(action text, the_approval uuid, detail jsonb, the_who text, the_person text) returns void
language sql volatile as $$
    insert into millrace.audit (at, who, login, said_by, action, object, detail)
    values (millrace.now(), the_who, session_user, coalesce(millrace.approval_name(the_person), millrace.said_by()), action, the_approval::text, nullif(jsonb_strip_nulls(detail), '{}'))
$$;

-- A staff member, an operator or the tenant's own back end answers; by: who it was, as the job and the audit will say; else who the program says,
-- else the role. False: it was answered already, the same way; another answer is refused.
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
            perform millrace.refuse(format('the approval was already answered with %s', case when a.approved then 'yes' else 'no' end), 'approved', null, '55000', 'conflict');
        end if;
        return false;
    end if;
    if a.due <= millrace.now() then
        perform millrace.refuse('the time for an answer is over', 'id', 'The job has gone on without one.', '55000', 'conflict');
    end if;
    update millrace.approval x
       set answered_at = millrace.now(), approved = approval_answer.approved, answered_by = coalesce(approval_answer.by, millrace.said_by(), approval_answer.caller),
           comment = approval_answer.comment, next_at = null
     where x.id = a.id returning x.* into a;
    insert into millrace.signal (name, key, id, payload, to_all, owner, anywhere, at, expires_at)
    values ('millrace.approval', a.id::text, a.id::text,
            jsonb_strip_nulls(jsonb_build_object('approved', a.approved, 'by', a.answered_by, 'comment', a.comment, 'at', a.answered_at)),
            false, approval_answer.caller, true, a.answered_at, a.answered_at + interval '366 days');
    perform pg_notify('millrace', 'signals');
    if millrace.is_audited(approval_answer.caller) then
        perform millrace.audited('approval.answer', a.id::text, jsonb_build_object('job', a.job, 'approved', a.approved, 'by', coalesce(millrace.approval_name(approval_answer.by), a.answered_by)), caller => approval_answer.caller);
    else
        perform millrace.approval_noted('approval.answer', a.id, jsonb_build_object('job', a.job, 'approved', a.approved, 'by', coalesce(millrace.approval_name(approval_answer.by), a.answered_by)), approval_answer.caller, approval_answer.by);
    end if;
    return true;
end $$;
select millrace.door_is('queue', 'approval_answer', 'worker, operator', 'staff', audited => true);

-- open; answered; late: the time for an answer is over; over: the job has ended.
create or replace function millrace.approval_state(a millrace.approval) returns text
language sql stable as $$
    select case when a.answered_at is not null then 'answered' when a.due <= millrace.now() then 'late'
                when not exists (select from millrace.job j where j.id = a.job)
                     or exists (select from millrace.history h where h.id = a.job and h.outcome in (1, 2, 3)) then 'over'
                else 'open' end
$$;

-- Whether its job waits for the answer now: it may run again for a moment, or have come to another wait.
create or replace function millrace.approval_waits(a millrace.approval) returns boolean
language sql stable as $$
    select a.answered_at is null and coalesce(a.due > millrace.now(), true) and coalesce(millrace.wait_of(a.job) ->> 'approval' = a.id::text, false)
$$;

-- Open ones oldest first, or all, newest first; with who was asked, and when the next are told.
create or replace function millrace.approval_list(only_open boolean default true, page int default 100, caller millrace.caller_name default current_user)
returns table (id uuid, job bigint, kind text, step text, request jsonb, tenant text, asked_at timestamptz, due timestamptz, answered_at timestamptz, approved boolean, answered_by text,
    comment text, people jsonb, reminded int, remind_at timestamptz, escalate_at timestamptz, escalated_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    if approval_list.page is null or approval_list.page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    return query
    select a.id, a.job, k.name, a.step, a.request, a.tenant, a.asked_at, a.due, a.answered_at, a.approved, a.answered_by, a.comment,
           millrace.approval_people(a.id), a.reminded, case when a.next_at is not null then a.remind_at end, case when a.next_at is not null then a.escalate_at end, a.escalated_at
      from millrace.approval a
      left join millrace.job j on j.id = a.job
      left join millrace.kind k on k.id = j.kind
     where (not approval_list.only_open or millrace.approval_waits(a))
       and (millrace.is_operator(approval_list.caller) or millrace.may_see(a.owner, a.tenant, approval_list.caller))
     order by case when approval_list.only_open then a.asked_at end, a.asked_at desc, a.id limit approval_list.page;
end $$;
select millrace.door_is('queue', 'approval_list', 'worker, operator', 'staff');
