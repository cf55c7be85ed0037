-- Reading questions and answers, and forgetting them.

-- Whether the caller's claims reach a question: one that was asked for a tenant is that tenant's, and a person of several tenants sees each by itself.
create or replace function millrace.ai_is_of_tenant(the_tenant text, caller name) returns boolean
language sql stable as $$
    select the_tenant is null or millrace.is_within(the_tenant, millrace.caller_tenant(caller))
$$;

-- A question of the actor's, with its answer. The answer is what a model wrote: show it as text, never as markup, and do not carry out what it says.
create or replace function millrace.ai_answer(id uuid, actor text default null, caller millrace.caller_name default current_user)
returns table (question uuid, purpose text, status text, answer jsonb, reason text, sentence text, job bigint, from_store boolean, asked_at timestamptz, ended_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.actor_of(ai_answer.actor, caller => ai_answer.caller);
begin
    return query
        select q.id, q.purpose, q.status, q.answer, q.reason, q.sentence, q.job, q.source is not null, q.asked_at, q.ended_at
          from millrace.ai_question q
         where q.id = ai_answer.id
           and (millrace.is_staff(ai_answer.caller)
                or q.room is distinct from 'chat' and q.actor is not distinct from me and (me is not null or q.caller = ai_answer.caller) and millrace.ai_is_of_tenant(q.tenant, caller => ai_answer.caller));
    if not found then
        perform millrace.refuse('there is no such question', 'id', null, 'P0002', 'not_found');
    end if;
end $$;
select millrace.door_is('ai', 'ai_answer', 'client, worker', 'actor person', 'A question to a model, and its answer.',
    who_may => array['read an answer given to them: itself, back end, staff']);

-- The actor's own questions but those about its messages, the newest first, after the one in `after`.
create or replace function millrace.ai_own(after uuid default null, page int default 50, actor text default null, caller millrace.caller_name default current_user)
returns table (id uuid, purpose text, status text, answer jsonb, reason text, asked_at timestamptz, ended_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(ai_own.actor, caller => ai_own.caller);
    last bigint;
    size bigint;
    taken bigint := 0;
begin
    perform millrace.valid_page(ai_own.page);
    if ai_own.after is not null then
        select q.seq into last from millrace.ai_question q where q.id = ai_own.after and q.actor = me and millrace.ai_is_of_tenant(q.tenant, caller => ai_own.caller);
        if not found then
            perform millrace.refuse('there is no such question', 'after', null, 'P0002', 'not_found');
        end if;
    end if;
    for id, purpose, status, answer, reason, asked_at, ended_at in
        select q.id, q.purpose, q.status, q.answer, q.reason, q.asked_at, q.ended_at from millrace.ai_question q
         where q.actor = me and q.room is distinct from 'chat' and millrace.ai_is_of_tenant(q.tenant, caller => ai_own.caller) and (last is null or q.seq < last) order by q.seq desc limit ai_own.page
    loop
        size := octet_length(row(id, purpose, status, answer, reason, asked_at, ended_at)::text);
        exit when not millrace.page_takes('ai_own', taken, size);
        taken := taken + size;
        return next;
    end loop;
end $$;
select millrace.door_is('ai', 'ai_own', 'client, worker', 'actor person', 'The person''s own questions to models.',
    who_may => array['see what they have asked: itself, back end, staff']);

-- For operators: questions without what was asked and answered.
create or replace function millrace.ai_list(of_purpose text default null, of_status text default null, of_tenant text default null, after bigint default null, page int default 50)
returns table (seq bigint, id uuid, purpose text, version int, status text, tenant text, actor text, job bigint, provider text, model text, from_store boolean, calls int, tokens_in int, tokens_out int,
    reason text, sentence text, asked_at timestamptz, ended_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.valid_page(ai_list.page);
    return query
        select q.seq, q.id, q.purpose, q.version, q.status, q.tenant, q.actor, q.job, q.provider, q.answered_by, q.source is not null, q.calls, q.tokens_in, q.tokens_out, q.reason, q.sentence, q.asked_at, q.ended_at
          from millrace.ai_question q
         where (ai_list.of_purpose is null or q.purpose = ai_list.of_purpose) and (ai_list.of_status is null or q.status = ai_list.of_status)
           and (ai_list.of_tenant is null or q.tenant = ai_list.of_tenant) and (ai_list.after is null or q.seq < ai_list.after)
         order by q.seq desc limit ai_list.page;
end $$;
select millrace.door_is('ai', 'ai_list', 'worker, viewer', 'staff');

-- One question whole, with its calls; for admins.
create or replace function millrace.ai_shown(the_id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select jsonb_build_object('id', q.id, 'purpose', q.purpose, 'version', q.version, 'status', q.status, 'tenant', q.tenant, 'family', q.family, 'actor', q.actor, 'job', q.job,
        'locale', q.locale, 'input', q.input, 'answer', q.answer, 'reason', q.reason, 'sentence', q.sentence, 'provider', q.provider, 'model', q.answered_by, 'from_store', q.source is not null,
        'room', q.room, 'ref', q.ref, 'waits_for_batch_of', q.batch_of, 'batch', q.batch, 'tokens_in', q.tokens_in, 'tokens_out', q.tokens_out, 'asked_at', q.asked_at, 'ended_at', q.ended_at,
        'calls', coalesce((select jsonb_agg(jsonb_build_object('n', c.n, 'provider', c.provider, 'model', c.model, 'outcome', c.outcome, 'batch', c.batch, 'reserved', c.reserved, 'tokens_in', c.tokens_in,
            'tokens_out', c.tokens_out, 'error_class', c.error_class, 'error', c.error, 'at', c.at, 'ms', c.ms) order by c.n) from millrace.ai_call c where c.question = q.id), '[]'))
      from millrace.ai_question q where q.id = the_id
$$;
select millrace.door_is('ai', 'ai_shown', 'admin', 'staff');

-- For status and metrics: the providers that are configured, what is open, since when (but for what waits for a batch), of the last hour what ended and what it cost, and how
-- much could not be deleted at providers yet.
create or replace function millrace.ai_state(out providers text[], out switched bigint, out open bigint, out oldest timestamptz, out answered bigint, out from_store bigint, out refused bigint, out failed bigint,
    out tokens_in bigint, out tokens_out bigint, out undeleted bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    past timestamptz := millrace.now() - interval '1 hour';
begin
    providers := array(select p.name from millrace.ai_provider p order by p.place);
    switched := (select count(*) from millrace.ai_switched s where s.is_on);
    select count(*), min(x.asked_at) filter (where x.batch_of is null) into open, oldest from (select q.asked_at, q.batch_of from millrace.ai_question q where q.status in ('waiting', 'asking') order by q.asked_at limit 10000) x;
    select count(*) filter (where x.status = 'answered'), count(*) filter (where x.status = 'answered' and x.source is not null), count(*) filter (where x.status = 'refused'),
           count(*) filter (where x.status = 'failed'), coalesce(sum(x.tokens_in), 0), coalesce(sum(x.tokens_out), 0)
      into answered, from_store, refused, failed, tokens_in, tokens_out
      from (select q.status, q.source, q.tokens_in, q.tokens_out from millrace.ai_question q where q.ended_at >= past order by q.ended_at desc limit 10000) x;
    undeleted := (select count(*) from millrace.ai_leftover l where l.tries > 0);
end $$;
select millrace.door_is('ai', 'ai_state', 'worker, viewer', 'staff');

-- Deletes questions; those that are still open are not asked any more. Returns how many.
create or replace function millrace.ai_forget(ids uuid[]) returns bigint
language plpgsql volatile as $$
declare
    running bigint;
    gone bigint;
begin
    for running in select q.job from millrace.ai_question q where q.id = any (ids) and q.status in ('waiting', 'asking') and q.job is not null order by q.id for no key update loop
        perform millrace.cancel_now(running);
    end loop;
    delete from millrace.ai_question q where q.id = any (ids);
    get diagnostics gone = row_count;
    return gone;
end $$;

-- Joins in person_erase. What identical questions of others were answered stays theirs.
create or replace function millrace.ai_erase_person(person text) returns bigint
language plpgsql volatile as $$
begin
    return millrace.ai_forget(array(select q.id from millrace.ai_question q where q.actor = ai_erase_person.person));
end $$;

-- Of a document that is deleted.
create or replace function millrace.ai_erase_ref(the_room text, the_ref uuid) returns bigint
language plpgsql volatile as $$
begin
    return millrace.ai_forget(array(select q.id from millrace.ai_question q where q.room = the_room and q.ref = the_ref));
end $$;

create or replace function millrace.ai_keep_days() returns int
language sql stable as $$
    select coalesce((select s.value::int from millrace.setting s where s.name = 'ai_keep_days'), 30)
$$;

-- How long questions and answers are kept, and so may be answered from the store. As the workers' MILLRACE_AI_KEEP says.
create or replace function millrace.ai_keep(days int) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if ai_keep.days is null or ai_keep.days not between 1 and 3650 then
        perform millrace.refuse('days is out of range', 'days', 'Give 1 to 3650.');
    end if;
    return millrace.setting_put('ai_keep_days', ai_keep.days::text);
end $$;
select millrace.door_is('ai', 'ai_keep', 'worker', 'staff');

create or replace function millrace.ai_expire(most int default 20000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    gone bigint;
begin
    -- An analysis of a document stays with it.
    delete from millrace.ai_question q
     where q.ctid = any (array(select x.ctid from millrace.ai_question x where x.ended_at < millrace.now() - make_interval(days => millrace.ai_keep_days())
            and (x.room is distinct from 'documents' or x.status <> 'answered') order by x.ended_at limit most));
    get diagnostics gone = row_count;
    delete from millrace.ai_batch b where b.ended_at < millrace.now() - make_interval(days => millrace.ai_keep_days());
    perform millrace.ai_check();
    perform millrace.ai_leftovers_check();
    return gone;
end $$;

-- What status says of this room: see room_states.
create or replace function millrace.ai_status_part() returns jsonb
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select to_jsonb(s) from millrace.ai_state() s
$$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.ai_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'question', q.id::text, to_jsonb(q) - array['key', 'caller', 'job', 'seq', 'batch', 'batch_of'] from millrace.ai_question q where q.actor = ai_export_person.person
    union all
    select 'call', c.id::text, to_jsonb(c) - array['counts_for', 'batch', 'reserved'] from millrace.ai_call c join millrace.ai_question q on q.id = c.question
     where q.actor = ai_export_person.person
$$;
