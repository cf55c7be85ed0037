-- What a worker does with a question: takes it, pays for each call before it is made, and records the answer or why there is none.

-- Takes tokens for a call: of the person's day and of the two counters of the account, or of none. The person's row is always locked first.
create or replace function millrace.ai_use(q millrace.ai_question, amount int) returns boolean
language plpgsql volatile as $$
begin
    if q.person_most is not null and not millrace.day_use('ai:' || q.purpose, millrace.keyed_hash('person', q.actor), amount, q.person_most) then
        return false;
    end if;
    if q.account is null then
        return true;
    end if;
    if millrace.quota_use(q.account, 'ai_tokens', amount) then
        if millrace.quota_use(q.account, 'ai_tokens:' || q.purpose, amount) then
            return true;
        end if;
        perform millrace.quota_use(q.account, 'ai_tokens', -amount, false);
    end if;
    if q.person_most is not null then
        perform millrace.ai_day_give_back(q.purpose, millrace.keyed_hash('person', q.actor), millrace.today_utc(), amount);
    end if;
    return false;
end $$;

create or replace function millrace.ai_day_give_back(the_purpose text, the_person bytea, the_day date, amount int) returns void
language sql volatile as $$
    select millrace.day_give_back_of('ai:' || the_purpose, the_person, the_day, amount)
$$;

-- Before a statement that uses or settles for several people: their rows in one order, so that two such do not wait for each other.
create or replace function millrace.ai_people_lock(purposes text[], people bytea[], days date[]) returns void
language sql volatile as $$
    select millrace.days_lock(array(select 'ai:' || x from unnest(purposes) x), people, days)
$$;

-- Gives back what a call did not use, to each counter only if its period still is the one in which it was reserved.
create or replace function millrace.ai_settle(c millrace.ai_call, spent int) returns void
language plpgsql volatile as $$
declare
    counter text;
    since timestamptz;
begin
    if c.counts_for is not null then
        perform millrace.ai_day_give_back(c.purpose, c.counts_for, (c.at at time zone 'UTC')::date, c.reserved - spent);
    end if;
    if c.account is null then
        return;
    end if;
    foreach counter in array array['ai_tokens', 'ai_tokens:' || c.purpose] loop
        select greatest(q.since, millrace.quota_since(q.period)) into since from millrace.quota q where q.tenant = c.account and q.name = counter;
        perform millrace.quota_use(c.account, counter, spent - case when c.at >= since then c.reserved else 0 end, false);
    end loop;
end $$;

-- What a provider says that it has counted; null: it has said nothing that can be true. A figure below none would give back tokens that were used, and
-- an answer costs some.
create or replace function millrace.ai_figure(said numeric, fewest int) returns int
language sql immutable parallel safe as $$
    select case when said between fewest and 10000000 and said = trunc(said) then said::int end
$$;

-- Ends a question that was not answered. With its row locked.
create or replace function millrace.ai_end(the_id uuid, the_status text, the_reason text, the_sentence text) returns void
language plpgsql volatile as $$
declare
    q millrace.ai_question;
begin
    update millrace.ai_question x set status = the_status, reason = the_reason, sentence = left(the_sentence, 500), ended_at = millrace.now()
     where x.id = the_id returning x.* into q;
    perform millrace.ai_put_to_use(q);
end $$;

-- Answers a question: why it waited before is not said any more. With its row locked.
create or replace function millrace.ai_answer_with(the_id uuid, the_answer jsonb, the_provider text, the_model text, the_source uuid default null) returns millrace.ai_question
language plpgsql volatile as $$
declare
    q millrace.ai_question;
begin
    update millrace.ai_question x
       set status = 'answered', answer = the_answer, provider = the_provider, answered_by = left(the_model, 200), source = the_source, reason = null, sentence = null,
           ended_at = millrace.now()
     where x.id = the_id returning x.* into q;
    perform millrace.ai_put_to_use(q);
    return q;
end $$;

-- The question of a run, if there is still something to ask. what: go; done: the run has nothing to do; busy: an identical question is being asked,
-- and its answer will be this one's.
create or replace function millrace.ai_take(token text, question uuid, out what text, out purpose text, out version int, out instructions text, out prompt text, out variables jsonb,
    out schema jsonb, out model text, out limits jsonb, out input jsonb, out locale text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    run record;
    q millrace.ai_question;
    old record;
    p record;
begin
    select * into run from millrace.live_run(ai_take.token);
    select * into q from millrace.ai_question x where x.id = ai_take.question for no key update;
    if not found or q.status not in ('waiting', 'asking') or q.job <> run.job then
        what := 'done';
        return;
    end if;
    -- A run that was lost may have spent what its call reserved. Nobody told, so it counts.
    update millrace.ai_call c set outcome = 'unknown', error = 'the worker was lost during this call' where c.question = q.id and c.outcome = 'running';
    if not millrace.ai_is_on(q.tenant, q.family) then
        perform millrace.ai_end(q.id, 'cancelled', 'cancelled', 'AI was switched off');
        what := 'done';
        return;
    end if;
    -- First it becomes the one that is asked, then the store is looked at: an identical question may have been answered in between.
    begin
        update millrace.ai_question x set status = 'asking', batch_of = null, batch = null where x.id = q.id and x.status = 'waiting';
    exception when unique_violation then
        what := 'busy';
        return;
    end;
    select x.id, x.answer, x.provider, x.answered_by into old from millrace.ai_question x where x.key = q.key and x.status = 'answered' order by x.seq desc limit 1;
    if found then
        perform millrace.ai_answer_with(q.id, old.answer, old.provider, old.answered_by, old.id);
        what := 'done';
        return;
    end if;
    select x.* into p from millrace.ai_purpose(q.purpose, q.version) x;
    if p.version is null then
        perform millrace.ai_end(q.id, 'failed', 'not_found', 'the purpose no longer exists');
        what := 'done';
        return;
    end if;
    what := 'go'; purpose := q.purpose; version := p.version; instructions := p.instructions; prompt := p.prompt; variables := p.variables; schema := p.schema;
    model := coalesce(q.model, p.model); limits := p.limits; input := q.input; locale := q.locale;
end $$;
select millrace.door_is('ai', 'ai_take', 'worker', 'staff');

-- Whether too few tokens are left now, and calls that run may give some back: those of batches, or those that are made alone.
create or replace function millrace.ai_may_come_back(q millrace.ai_question, most int, of_batches boolean) returns boolean
language sql stable set enable_seqscan = off as $$
    select coalesce(millrace.ai_account_left(q) < most, false)
              and exists (select from millrace.ai_call c where c.account = q.account and c.outcome = 'running' and (c.batch is not null) = of_batches)
        or coalesce(millrace.ai_person_left(q) < most, false)
              and exists (select from millrace.ai_call c where c.counts_for = millrace.keyed_hash('person', q.actor) and c.purpose = q.purpose and c.outcome = 'running'
                             and (c.batch is not null) = of_batches)
$$;

-- Before a call: reserves as many tokens as it can cost. A text never has more tokens than bytes. null: the account has too few left; `waits`
-- when calls that run now may give some back. Those of a batch may last a day: nobody waits for them.
create or replace function millrace.ai_call_open(token text, question uuid, provider text, model text, bytes int, max_tokens int, out call uuid, out waits boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    q millrace.ai_question;
    most int := ai_call_open.bytes + 64 + ai_call_open.max_tokens;
begin
    perform millrace.live_run(ai_call_open.token);
    select * into q from millrace.ai_question x where x.id = ai_call_open.question and x.status = 'asking' for no key update;
    if not found then
        perform millrace.refuse('the question is no longer open', 'question', 'Stop: it was erased or has ended.', '55000', 'conflict');
    end if;
    -- Without a warning that the quota is used up: what calls that run now have reserved may come back.
    waits := millrace.ai_may_come_back(q, most, false);
    if waits then
        return;
    end if;
    if not millrace.ai_use(q, most) then
        waits := millrace.ai_may_come_back(q, most, false);
        return;
    end if;
    insert into millrace.ai_call (id, question, n, account, counts_for, purpose, provider, model, reserved, outcome, at)
    values (gen_random_uuid(), q.id, q.calls + 1, q.account, case when q.person_most is not null then millrace.keyed_hash('person', q.actor) end, q.purpose,
        ai_call_open.provider, left(ai_call_open.model, 200), most, 'running', millrace.now())
    returning id into call;
    update millrace.ai_question x set calls = x.calls + 1 where x.id = q.id;
end $$;
select millrace.door_is('ai', 'ai_call_open', 'worker', 'staff');

-- After a call: what it did cost takes the place of what was reserved. Without figures, or with figures that cannot be true, the reservation stays.
-- False: it is closed already, or was erased.
create or replace function millrace.ai_call_close(call uuid, outcome text, tokens_in int default null, tokens_out int default null, error_class text default null, error text default null, ms int default null)
returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    c millrace.ai_call;
    fewest int := case when ai_call_close.outcome in ('answered', 'unfit') then 1 else 0 end;
    were_in int := millrace.ai_figure(ai_call_close.tokens_in, fewest);
    were_out int := millrace.ai_figure(ai_call_close.tokens_out, fewest);
begin
    if were_in is null or were_out is null then
        were_in := null;
        were_out := null;
    end if;
    perform from millrace.ai_question q join millrace.ai_call x on x.question = q.id where x.id = ai_call_close.call for no key update of q;      -- first, as ai_call_open does
    select * into c from millrace.ai_call x where x.id = ai_call_close.call and (x.outcome = 'running' or x.outcome = 'unknown' and x.tokens_in is null) for no key update;
    if not found then
        return false;
    end if;
    update millrace.ai_call x
       set outcome = ai_call_close.outcome, tokens_in = were_in, tokens_out = were_out, error_class = ai_call_close.error_class,
           error = left(ai_call_close.error, 500), ms = ai_call_close.ms
     where x.id = c.id;
    if were_in is not null then
        perform millrace.ai_settle(c, were_in + were_out);
        update millrace.ai_question q set tokens_in = q.tokens_in + were_in, tokens_out = q.tokens_out + were_out where q.id = c.question;
    end if;
    return true;
end $$;
select millrace.door_is('ai', 'ai_call_close', 'worker', 'staff');

-- What is wrong with an answer; null: nothing. It is a text here, because what is no JSON is wrong too.
create or replace function millrace.ai_problem(schema jsonb, answer text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if octet_length(answer) > millrace.most('ai_answer') then
        return format('it has more than %s bytes', millrace.most('ai_answer'));
    end if;
    return millrace.ai_misfit(schema, answer::jsonb);
exception
    when invalid_text_representation or untranslatable_character or statement_too_complex or data_exception then
        return 'it is not JSON';
end $$;

-- Records an answer and ends the run. Returns what is wrong with it, and then records nothing.
create or replace function millrace.ai_answered(token text, question uuid, call uuid, answer text, provider text, model text) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    q millrace.ai_question;
    problem text;
begin
    select * into q from millrace.ai_question x where x.id = ai_answered.question and x.status = 'asking' for no key update;
    if not found then
        perform millrace.refuse('the question is no longer open', 'question', 'Stop: it was erased or has ended.', '55000', 'conflict');
    end if;
    problem := millrace.ai_problem(p.schema, ai_answered.answer) from millrace.ai_purpose(q.purpose, q.version) p;
    if problem is not null then
        update millrace.ai_call c set outcome = 'unfit', error_class = 'invalid', error = left(problem, 500) where c.id = ai_answered.call;
        return problem;
    end if;
    q := millrace.ai_answer_with(q.id, ai_answered.answer::jsonb, ai_answered.provider, ai_answered.model);
    if not millrace.complete(ai_answered.token, jsonb_build_object('question', q.id)) then
        perform millrace.refuse('the lease is lost: the answer is not recorded', 'token', 'Roll back and stop: another run has the job, or will have it.', '55000', 'lease_lost');
    end if;
    return null;
end $$;
select millrace.door_is('ai', 'ai_answered', 'worker', 'staff');

-- Records why there is no answer. status waiting: it will be tried again, and others may ask the same meanwhile.
create or replace function millrace.ai_failed(token text, question uuid, status text, reason text, sentence text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.live_run(ai_failed.token);
    perform from millrace.ai_question x where x.id = ai_failed.question and x.status = 'asking' for no key update;
    if not found then
        return false;
    end if;
    if ai_failed.status = 'waiting' then
        update millrace.ai_question x set status = 'waiting', reason = ai_failed.reason, sentence = left(ai_failed.sentence, 500) where x.id = ai_failed.question;
    else
        perform millrace.ai_end(ai_failed.question, ai_failed.status, ai_failed.reason, ai_failed.sentence);
    end if;
    return true;
end $$;
select millrace.door_is('ai', 'ai_failed', 'worker', 'staff');

-- Questions whose jobs were cancelled or given up by somebody else.
create or replace function millrace.ai_check(most int default 100) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    q millrace.ai_question;
    checked int := 0;
begin
    for q in select x.* from millrace.ai_question x where x.status in ('waiting', 'asking') and x.asked_at < millrace.now() - interval '30 s'
             order by x.asked_at limit most for no key update skip locked
    loop
        if exists (select from millrace.history h where h.id = q.job and h.outcome in (2, 3)) or not exists (select from millrace.job j where j.id = q.job) then
            update millrace.ai_call c set outcome = 'unknown' where c.question = q.id and c.outcome = 'running';
            perform millrace.ai_end(q.id, 'failed', 'internal', 'its job was cancelled, or given up');
            checked := checked + 1;
        end if;
    end loop;
    return checked;
end $$;
select millrace.door_is('ai', 'ai_check', 'worker', 'staff');
