-- The people who are asked: each has a link of their own, hears of the question and is reminded, and others are asked if nobody answers. What is
-- due is told in the transaction that moves the time on, by notices, which the notices' room sends.

-- What the options of a question say of people: {"notify": ["ada"], "remind_seconds": 86400, "escalate_seconds": 172800, "escalate_to": ["eve"]}.
-- Tells those who are asked at once. Returns what the audit says of it.
create or replace function millrace.approval_plan(the_id uuid, options jsonb, t timestamptz) returns jsonb
language plpgsql volatile as $$
declare
    a millrace.approval;
    asked text[] := millrace.approval_names(options, 'notify');
    others text[] := millrace.approval_names(options, 'escalate_to');
    every interval := millrace.approval_span(options, 'remind_seconds');
    after interval := millrace.approval_span(options, 'escalate_seconds');
begin
    if every is not null and asked = '{}' then
        perform millrace.refuse('nobody to remind is named', 'notify', 'Name the people who are asked.');
    end if;
    if (after is null) <> (others = '{}') then
        perform millrace.refuse('an escalation needs how long to wait, and whom to ask then', 'escalate_to', 'Give escalate_seconds and escalate_to.');
    end if;
    update millrace.approval x
       set remind = every, remind_at = t + every, escalate_at = t + after, escalate_to = nullif(others, '{}'),
           next_at = millrace.approval_next(t + every, t + after, x.due)
     where x.id = the_id returning x.* into a;
    if a.due <= t then
        return '{}';                                      -- nobody can answer any more
    end if;
    perform millrace.approval_tell(a, asked, 1, 'asked', t);
    return jsonb_strip_nulls(jsonb_build_object('people', millrace.approval_names_shown(asked), 'escalate_to', millrace.approval_names_shown(a.escalate_to)));
end $$;

create or replace function millrace.approval_names(options jsonb, field text) returns text[]
language plpgsql stable as $$
declare
    given jsonb := coalesce(nullif(options -> field, 'null'), '[]');
    name text;
begin
    if jsonb_typeof(given) <> 'array' or jsonb_array_length(given) > 20 or jsonb_path_exists(given, '$[*] ? (@.type() != "string")') then
        perform millrace.refuse(format('%s is not a list of at most 20 people', field), field, 'Give people''s ids, or addresses for mail.');
    end if;
    for name in select jsonb_array_elements_text(given) loop
        perform millrace.valid_name(name, field);
    end loop;
    return array(select distinct jsonb_array_elements_text(given) order by 1);
end $$;

create or replace function millrace.approval_span(options jsonb, field text) returns interval
language plpgsql immutable as $$
begin
    if coalesce(options -> field, 'null') = 'null' then
        return null;
    end if;
    if jsonb_typeof(options -> field) <> 'number' or (options ->> field)::numeric not between 60 and 31622400 then
        perform millrace.refuse(format('%s is out of range', field), field, 'Give a minute to 366 days.');
    end if;
    return make_interval(secs => (options ->> field)::float8);
end $$;

-- null: nobody is told any more.
create or replace function millrace.approval_next(remind_at timestamptz, escalate_at timestamptz, due timestamptz) returns timestamptz
language sql immutable as $$
    select case when coalesce(least(remind_at, escalate_at) < due, true) then least(remind_at, escalate_at) end
$$;

-- However long nobody answers.
create or replace function millrace.approval_reminders() returns int
language sql immutable as 'select 30';

-- Who was asked, in the order in which they were. notice: what became of the last that was sent to them.
create or replace function millrace.approval_people(the_approval uuid) returns jsonb
language sql stable as $$
    select coalesce(jsonb_agg(jsonb_build_object('person', p.person, 'how', (array['asked', 'escalated', 'link'])[p.how], 'at', p.at, 'notice', n.status)
               order by p.at, p.how, p.person), '[]')
      from millrace.approval_person p
     cross join lateral (select case when p.notice is not null then millrace.hooks_ask('notice', jsonb_build_object('notice', p.notice)) end as status) n
     where p.approval = the_approval
$$;

-- A name as the audit and the console have it: they show no addresses.
create or replace function millrace.approval_name(name text) returns text
language sql immutable as $$ select case when name like '%@%' then millrace.audit_address(name) else name end $$;

create or replace function millrace.approval_names_shown(names text[]) returns jsonb
language sql immutable as $$ select jsonb_agg(millrace.approval_name(n)) from unnest(names) n $$;

-- Whom there is nobody to tell, because no room of notices is installed, still has a link.
create or replace function millrace.approval_tell(a millrace.approval, people text[], the_how int, stage text, t timestamptz) returns void
language plpgsql volatile as $$
declare
    who record;
    told jsonb := jsonb_build_object('stage', split_part(stage, ':', 1), 'approval', a.id, 'step', a.step, 'tenant', a.tenant,
        'asks', (select k.name from millrace.job j join millrace.kind k on k.id = j.kind where j.id = a.job));
begin
    insert into millrace.approval_person (ref, approval, job, person, how, at)
    select gen_random_uuid(), a.id, a.job, p, the_how, t from unnest(people) p
        on conflict on constraint a_person_is_asked_once do nothing;
    for who in select p.ref, p.person from millrace.approval_person p where p.approval = a.id and p.person = any (people) order by p.person loop
        perform millrace.hooks_must('approval_tell', jsonb_build_object('ref', who.ref, 'person', who.person, 'told', told, 'due', a.due, 'at', t,
            'key', format('approval:%s:%s', a.id, stage)));
    end loop;
end $$;

-- Notes which notice tells a person of a question.
create or replace function millrace.approval_told(the_ref uuid, the_notice uuid) returns void
language sql volatile as $$
    update millrace.approval_person p set notice = the_notice where p.ref = the_ref
$$;

-- Reminds those who were asked, and asks others, where that is due. Workers call it every few seconds; a row that another has is left to it.
-- Returns how many questions it looked at.
create or replace function millrace.approvals_remind(most int default 100, caller millrace.caller_name default current_user) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    t timestamptz := millrace.now();
    a millrace.approval;
    looked int := 0;
begin
    for a in
        select x.* from millrace.approval x where x.next_at <= t order by x.next_at limit approvals_remind.most for update skip locked
    loop
        looked := looked + 1;
        if millrace.approval_state(a) <> 'open' then
            a.next_at := null;
        elsif not millrace.approval_waits(a) then
            a.next_at := t + interval '1 minute';         -- it runs again, and will wait again
        else
            if a.remind_at <= t then
                a.reminded := a.reminded + 1;
                -- Those who missed several hear once.
                a.remind_at := case when a.reminded < millrace.approval_reminders() then t + a.remind end;
                perform millrace.approval_tell(a, array(select p.person from millrace.approval_person p where p.approval = a.id and p.how < 3), 1, 'reminder:' || a.reminded, t);
                perform millrace.approval_noted('approval.remind', a.id, jsonb_build_object('job', a.job, 'reminder', a.reminded), approvals_remind.caller, null);
            end if;
            if a.escalate_at <= t then
                a.escalated_at := t;
                a.escalate_at := null;
                perform millrace.approval_tell(a, a.escalate_to, 2, 'escalated', t);
                perform millrace.approval_noted('approval.escalate', a.id, jsonb_build_object('job', a.job, 'people', millrace.approval_names_shown(a.escalate_to)), approvals_remind.caller, null);
            end if;
            a.next_at := millrace.approval_next(a.remind_at, a.escalate_at, a.due);
        end if;
        update millrace.approval x
           set next_at = a.next_at, reminded = a.reminded, remind_at = a.remind_at, escalate_at = a.escalate_at, escalated_at = a.escalated_at
         where x.id = a.id;
    end loop;
    return looked;
end $$;
select millrace.door_is('queue', 'approvals_remind', 'worker', 'staff');

-- Gives a person a link of their own to a question; returns what stands in it beside the question's id. The program signs it.
create or replace function millrace.approval_link(id uuid, person text, caller millrace.caller_name default current_user) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    a millrace.approval;
    the_ref uuid;
begin
    perform millrace.valid_name(approval_link.person, 'person');
    select x.* into a from millrace.approval x
     where x.id = approval_link.id and (millrace.is_operator(approval_link.caller) or millrace.may_see(x.owner, x.tenant, approval_link.caller)) for update;
    if not found then
        perform millrace.refuse(format('there is no approval %s', approval_link.id), 'id', null, 'P0002', 'not_found');
    end if;
    if millrace.approval_state(a) <> 'open' then
        perform millrace.refuse('the question is no longer open', 'id', 'See millrace approvals list --all.', '55000', 'conflict');
    end if;
    insert into millrace.approval_person (ref, approval, job, person, how, at)
    values (gen_random_uuid(), a.id, a.job, approval_link.person, 3, millrace.now())
        on conflict on constraint a_person_is_asked_once do nothing returning ref into the_ref;
    if the_ref is not null then
        perform millrace.audited('approval.link', a.id::text, jsonb_build_object('job', a.job, 'person', millrace.approval_name(approval_link.person)), caller => approval_link.caller);
        return the_ref;
    end if;
    return (select p.ref from millrace.approval_person p where p.approval = a.id and p.person = approval_link.person);
end $$;
select millrace.door_is('queue', 'approval_link', 'worker, operator', 'staff', audited => true);

-- What the page behind a link shows; null: this link belongs to nobody who was asked. Times are in the reader's zone; what the kind's rules hide is redacted.
create or replace function millrace.approval_page(the_approval uuid, the_ref uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select jsonb_strip_nulls(jsonb_build_object('person', p.person, 'name', coalesce(z.reader ->> 'name', p.person), 'language', z.reader ->> 'language',
               'kind', k.name, 'job', a.job, 'step', a.step, 'tenant', a.tenant, 'state', millrace.approval_state(a),
               'since', millrace.time_in_zone(a.asked_at, z.zone), 'until', millrace.time_in_zone(a.due, z.zone),
               'approved', a.approved, 'by', coalesce(millrace.hooks_ask('reader', jsonb_build_object('person', a.answered_by)) ->> 'name', a.answered_by), 'comment', a.comment, 'answered', millrace.time_in_zone(a.answered_at, z.zone)))
               || jsonb_build_object('request', millrace.redact(k.name, a.request))
      from millrace.approval_person p
      join millrace.approval a on a.id = p.approval
      left join millrace.job j on j.id = a.job
      left join millrace.kind k on k.id = j.kind
     cross join lateral (select r.reader, coalesce(r.reader ->> 'zone', 'UTC') as zone
                           from (select millrace.hooks_ask('reader', jsonb_build_object('person', p.person)) as reader) r) z
     where p.ref = the_ref and p.approval = the_approval
$$;
select millrace.door_is('queue', 'approval_page', 'worker', 'staff');

-- The answer of the person whom a link names.
create or replace function millrace.approval_answer_by_link(the_approval uuid, the_ref uuid, approved boolean, comment text default null, caller millrace.caller_name default current_user)
returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    who text;
    state text;
begin
    select p.person, millrace.approval_state(a) into who, state from millrace.approval_person p join millrace.approval a on a.id = p.approval
     where p.ref = approval_answer_by_link.the_ref and p.approval = approval_answer_by_link.the_approval;
    if not found then
        perform millrace.refuse('this link belongs to nobody who was asked', 'the_ref', null, 'P0002', 'not_found');
    end if;
    if state = 'over' then
        perform millrace.refuse('the job has ended', 'the_approval', null, '55000', 'conflict');
    end if;
    return millrace.approval_answer(approval_answer_by_link.the_approval, approval_answer_by_link.approved, who, approval_answer_by_link.comment, caller => approval_answer_by_link.caller);
end $$;
select millrace.door_is('queue', 'approval_answer_by_link', 'worker', 'staff');

-- The links of a person who is erased open nothing, and it is asked nothing more.
create or replace function millrace.approvals_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    gone bigint;
begin
    delete from millrace.approval_person p where p.person = approvals_erase_person.person;
    get diagnostics gone = row_count;
    update millrace.approval a set escalate_to = array_remove(a.escalate_to, approvals_erase_person.person)
     where a.next_at is not null and approvals_erase_person.person = any (a.escalate_to);
    return gone;
end $$;
