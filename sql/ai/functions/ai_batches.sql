-- Questions that may wait: a job of the kind ai.batch gathers them, another sends the batch and reads its results. Each question keeps its own job, which is
-- due a day later. What a batch does not answer brings that job forward, so it is asked the single way; an answer brings it forward to end.
-- Quotas are taken in the order of their accounts, so that two batches do not wait for each other.

-- The provider for whose batches a question waits; null: it has none, and the question is asked like any other.
create or replace function millrace.ai_batch_provider(the_model text) returns text
language sql stable as $$
    select p.name from millrace.ai_provider p
     where p.has_batches and p.name = coalesce((select n.name from millrace.ai_provider n where starts_with(the_model, n.name || ':') limit 1),
        (select f.name from millrace.ai_provider f order by f.place limit 1))
$$;

-- The run of a job that we have made, with a live lease. Others who may enqueue this kind have no business with a batch.
create or replace function millrace.ai_own_run(token text) returns void
language plpgsql volatile as $$
declare
    run record;
begin
    select * into run from millrace.live_run(token);
    if not millrace.job_serves(run.job, null, null, null) then
        perform millrace.refuse('this job may not work on batches', 'token', 'Millrace enqueues these jobs itself.', '42501', 'permission');
    end if;
end $$;

-- One job gathers what is asked within five minutes. What is committed later is taken by the next, or by its own job.
create or replace function millrace.ai_batch_gather(the_provider text) returns void
language plpgsql volatile as $$
declare
    turn bigint := ceil(extract(epoch from millrace.now()) / 300);
begin
    perform millrace.enqueue_one('ai.batch', jsonb_build_object('provider', the_provider), 'ai', 6, to_timestamp(turn * 300 + 5), the_provider || ':' || turn, 'skip', null, null,
        null, '{}', '{}', '{}', caller => current_user);
end $$;

-- The question's own job runs now.
create or replace function millrace.ai_single(the_id uuid) returns void
language plpgsql volatile as $$
declare
    the_job bigint;
begin
    update millrace.ai_question q set batch_of = null, batch = null where q.id = the_id returning q.job into the_job;
    perform millrace.reschedule_now(the_job, millrace.now());
end $$;

-- The next questions that wait for a batch, after the one in `after`. What needs no call goes to its own job, which ends it.
create or replace function millrace.ai_batch_next(token text, provider text, after bigint, most int)
returns table (seq bigint, question uuid, purpose text, version int, instructions text, prompt text, variables jsonb, schema jsonb, model text, limits jsonb, input jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    q millrace.ai_question;
    p record;
begin
    perform millrace.ai_own_run(ai_batch_next.token);
    for q in select x.* from millrace.ai_question x where x.status = 'waiting' and x.batch_of = ai_batch_next.provider and x.batch is null and x.seq > ai_batch_next.after
             order by x.seq limit ai_batch_next.most
    loop
        select x.* into p from millrace.ai_purpose(q.purpose, q.version) x;
        seq := q.seq; question := q.id; purpose := q.purpose; version := q.version; instructions := p.instructions; prompt := p.prompt; variables := p.variables; schema := p.schema;
        model := coalesce(q.model, p.model); limits := p.limits; input := q.input;
        if p.version is null or not millrace.ai_is_on(q.tenant, q.family) or exists (select from millrace.ai_question x where x.key = q.key and x.status = 'answered') then
            perform millrace.ai_single(q.id);
            schema := null;                                -- there is nothing to ask
        end if;
        return next;
    end loop;
end $$;
select millrace.door_is('ai', 'ai_batch_next', 'worker', 'staff');

-- Puts one question into a batch, and reserves its tokens as ai_call_open does. False: it stays out.
create or replace function millrace.ai_batch_join(the_batch uuid, the_provider text, the_question uuid, the_model text, most int) returns boolean
language plpgsql volatile as $$
declare
    q millrace.ai_question;
begin
    select * into q from millrace.ai_question x where x.id = the_question and x.status = 'waiting' and x.batch_of = the_provider and x.batch is null for no key update;
    -- An identical question is in a batch: this one waits for its answer.
    if not found or exists (select from millrace.ai_question x where x.key = q.key and x.status = 'waiting' and x.batch is not null) then
        return false;
    end if;
    -- One that is being asked, or was answered meanwhile: its own job takes that answer.
    if exists (select from millrace.ai_question x where x.key = q.key and x.status = 'asking') or exists (select from millrace.ai_question x where x.key = q.key and x.status = 'answered') then
        perform millrace.ai_single(q.id);
        return false;
    end if;
    if coalesce(millrace.ai_left(q) < most, false) or not millrace.ai_use(q, most) then
        -- What a batch has reserved may come back, and then the next one takes this.
        if not millrace.ai_may_come_back(q, most, true) then
            perform millrace.ai_single(q.id);
        end if;
        return false;
    end if;
    insert into millrace.ai_call (id, question, n, account, counts_for, purpose, provider, model, reserved, outcome, at, batch)
    values (gen_random_uuid(), q.id, q.calls + 1, q.account, case when q.person_most is not null then millrace.keyed_hash('person', q.actor) end, q.purpose, the_provider, left(the_model, 200), most, 'running', millrace.now(), the_batch);
    update millrace.ai_question x set calls = x.calls + 1, batch = the_batch where x.id = q.id;
    return true;
end $$;

-- Opens a batch of these questions, [{"question", "model", "bytes", "max_tokens"}], or {"question", "single": true} for the single way, and the job that sends it. Returns how many are in it.
create or replace function millrace.ai_batch_open(token text, provider text, calls jsonb) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_batch uuid := gen_random_uuid();
    one jsonb;
    taken int := 0;
begin
    perform millrace.ai_own_run(ai_batch_open.token);
    perform millrace.ai_people_lock(array_agg(q.purpose), array_agg(millrace.keyed_hash('person', q.actor)), array_agg(millrace.today_utc()))
       from jsonb_array_elements(ai_batch_open.calls) x join millrace.ai_question q on q.id = (x ->> 'question')::uuid where q.person_most is not null having count(*) > 0;
    for one in select x from jsonb_array_elements(ai_batch_open.calls) x join millrace.ai_question q on q.id = (x ->> 'question')::uuid
             order by q.account, q.seq loop
        if one -> 'single' = 'true' then
            perform millrace.ai_single((one ->> 'question')::uuid);
        elsif millrace.ai_batch_join(the_batch, ai_batch_open.provider, (one ->> 'question')::uuid, one ->> 'model', (one ->> 'bytes')::int + 64 + (one ->> 'max_tokens')::int) then
            taken := taken + 1;
        end if;
    end loop;
    if taken > 0 then
        insert into millrace.ai_batch (id, provider, status, questions, opened_at) values (the_batch, ai_batch_open.provider, 'open', taken, millrace.now());
        perform millrace.enqueue_one('ai.batch', jsonb_build_object('batch', the_batch), 'ai', 5, null, null, 'skip', null, null, null, '{}', '{}', '{}', caller => current_user);
    end if;
    return taken;
end $$;
select millrace.door_is('ai', 'ai_batch_open', 'worker', 'staff');

-- A batch, for the run that sends it or looks for its end; what: send, look, done. `is_again`: an earlier run began to send it, and nobody knows what became of that.
create or replace function millrace.ai_batch_take(token text, batch uuid, out what text, out provider text, out remote text, out is_again boolean, out age float8)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    b millrace.ai_batch;
begin
    perform millrace.ai_own_run(ai_batch_take.token);
    select * into b from millrace.ai_batch x where x.id = ai_batch_take.batch;
    what := case coalesce(b.status, 'ended') when 'open' then 'send' when 'sent' then 'look' else 'done' end;
    provider := b.provider; remote := b.remote; is_again := b.sending_at is not null;
    age := coalesce(extract(epoch from millrace.now() - coalesce(b.sent_at, b.opened_at)), 0);
end $$;
select millrace.door_is('ai', 'ai_batch_take', 'worker', 'staff');

-- The calls of a batch whose questions are still there, for the request.
create or replace function millrace.ai_batch_calls(token text, batch uuid)
returns table (call uuid, called text, question uuid, purpose text, version int, instructions text, prompt text, variables jsonb, schema jsonb, limits jsonb, input jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.ai_own_run(ai_batch_calls.token);
    return query
        select c.id, c.model, q.id, q.purpose, q.version, p.instructions, p.prompt, p.variables, p.schema, p.limits, q.input
          from millrace.ai_call c join millrace.ai_question q on q.id = c.question cross join lateral millrace.ai_purpose(q.purpose, q.version) p
         where c.batch = ai_batch_calls.batch and c.outcome = 'running' and q.batch = c.batch order by q.seq;
end $$;
select millrace.door_is('ai', 'ai_batch_calls', 'worker', 'staff');

-- Before the request leaves; false in `is_sending` when it is known that it was not taken.
create or replace function millrace.ai_batch_sending(token text, batch uuid, is_sending boolean) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.ai_own_run(ai_batch_sending.token);
    update millrace.ai_batch b set sending_at = case when ai_batch_sending.is_sending then millrace.now() end where b.id = ai_batch_sending.batch and b.status = 'open';
    if not found then
        return false;
    end if;
    if not ai_batch_sending.is_sending then
        perform millrace.ai_leftovers_hurry(ai_batch_sending.batch);
    end if;
    return true;
end $$;
select millrace.door_is('ai', 'ai_batch_sending', 'worker', 'staff');

-- After its answer.
create or replace function millrace.ai_batch_sent(token text, batch uuid, remote text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.ai_own_run(ai_batch_sent.token);
    update millrace.ai_batch b set remote = left(ai_batch_sent.remote, 200), status = 'sent', sent_at = millrace.now() where b.id = ai_batch_sent.batch and b.status = 'open';
    return found;
end $$;
select millrace.door_is('ai', 'ai_batch_sent', 'worker', 'staff');

-- One result: settles its call, and answers the question if the answer fits. Whatever does not fit goes the single way. True: answered.
create or replace function millrace.ai_batch_result(the_batch uuid, r jsonb) returns boolean
language plpgsql volatile as $$
declare
    c millrace.ai_call;
    q millrace.ai_question;
    problem text := r ->> 'error';
begin
    -- Erased meanwhile, or of another batch: there is nothing to answer.
    select * into c from millrace.ai_call x where x.id = (r ->> 'call')::uuid and x.batch = the_batch;
    if not found or not millrace.ai_call_close(c.id, r ->> 'outcome', millrace.ai_figure((r ->> 'tokens_in')::numeric, 0), millrace.ai_figure((r ->> 'tokens_out')::numeric, 0), r ->> 'class',
            r ->> 'error') then
        return false;
    end if;
    select * into q from millrace.ai_question x where x.id = c.question and x.status = 'waiting' and x.batch = the_batch;
    if not found then
        return false;
    end if;
    if r ? 'answer' and problem is null then
        problem := millrace.ai_problem(p.schema, r ->> 'answer') from millrace.ai_purpose(q.purpose, q.version) p;
        if problem is not null then
            update millrace.ai_call x set outcome = 'unfit', error_class = 'invalid', error = left(problem, 500) where x.id = c.id;
        elsif millrace.ai_is_on(q.tenant, q.family) then
            q := millrace.ai_answer_with(q.id, (r ->> 'answer')::jsonb, c.provider, c.model);
            problem := null;
        end if;
    end if;
    perform millrace.ai_single(q.id);
    return q.status = 'answered';
end $$;

-- Results of a batch, [{"call", "outcome", "answer", "tokens_in", "tokens_out", "class", "error"}]; one that came before changes nothing.
create or replace function millrace.ai_batch_results(token text, batch uuid, results jsonb) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    came int;
begin
    perform millrace.ai_own_run(ai_batch_results.token);
    perform millrace.ai_people_lock(array_agg(c.purpose), array_agg(c.counts_for), array_agg((c.at at time zone 'UTC')::date))
       from jsonb_array_elements(ai_batch_results.results) x join millrace.ai_call c on c.id = (x ->> 'call')::uuid where c.counts_for is not null having count(*) > 0;
    select count(*) filter (where millrace.ai_batch_result(ai_batch_results.batch, r)) into came
      from (select x as r from jsonb_array_elements(ai_batch_results.results) x join millrace.ai_call c on c.id = (x ->> 'call')::uuid order by c.account, c.id) o;
    update millrace.ai_batch b set answered = b.answered + came where b.id = ai_batch_results.batch;
    return came;
end $$;
select millrace.door_is('ai', 'ai_batch_results', 'worker', 'staff');

-- Ends a batch; status ended, lost (nobody knows whether it was taken) or failed (it was not). What has no result goes the single way: for all that is
-- known it cost what was reserved, but where the provider took nothing.
create or replace function millrace.ai_batch_end(token text, batch uuid, status text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    c millrace.ai_call;
    b millrace.ai_batch;
begin
    perform millrace.ai_own_run(ai_batch_end.token);
    -- A run that recorded all results may have deleted them at the provider, and the next one finds none.
    update millrace.ai_batch x
       set status = case when ai_batch_end.status = 'lost' and not exists (select from millrace.ai_call y where y.batch = x.id and y.outcome = 'running') then 'ended' else ai_batch_end.status end,
           ended_at = millrace.now()
     where x.id = ai_batch_end.batch and x.ended_at is null returning x.* into b;
    if not found then
        return;
    end if;
    if b.remote is not null then
        perform millrace.ai_leftover_put(b.provider, 'batch', b.remote, b.id, millrace.now());
    end if;
    perform millrace.ai_leftovers_hurry(b.id);
    perform millrace.ai_people_lock(array_agg(x.purpose), array_agg(x.counts_for), array_agg((x.at at time zone 'UTC')::date))
       from millrace.ai_call x where x.batch = b.id and x.outcome = 'running' and x.counts_for is not null having count(*) > 0;
    for c in select x.* from millrace.ai_call x where x.batch = b.id and x.outcome = 'running' order by x.account, x.id loop
        perform millrace.ai_call_close(c.id, case b.status when 'failed' then 'failed' else 'unknown' end, case when b.status = 'failed' then 0 end, case when b.status = 'failed' then 0 end,
            'unknown', 'the batch has no result for it');
        perform millrace.ai_single(q.id) from millrace.ai_question q where q.id = c.question and q.batch = b.id;
    end loop;
    perform millrace.ai_batch_gather(w.batch_of) from (select distinct q.batch_of from millrace.ai_question q where q.status = 'waiting' and q.batch_of is not null and q.batch is null) w;
end $$;
select millrace.door_is('ai', 'ai_batch_end', 'worker', 'staff');
