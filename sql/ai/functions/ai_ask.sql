-- Who may ask, what leaves the house, and the question itself.

-- What a worker can ask, in the order in which it does. Told when a worker starts; an empty list: nothing any more.
create or replace function millrace.ai_providers_tell(providers jsonb) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if jsonb_typeof(ai_providers_tell.providers) is distinct from 'array' then
        perform millrace.refuse('providers is not a list', 'providers', 'Give [{"name", "wire", "model", "batches"}].');
    end if;
    delete from millrace.ai_provider p where p.name not in (select x ->> 'name' from jsonb_array_elements(ai_providers_tell.providers) x);
    insert into millrace.ai_provider as p (name, place, wire, model, has_batches, told_at)
    select x.value ->> 'name', x.n, x.value ->> 'wire', x.value ->> 'model', coalesce((x.value ->> 'batches')::boolean, false), millrace.now() from jsonb_array_elements(ai_providers_tell.providers) with ordinality x(value, n) order by 1
        on conflict (name) do update set place = excluded.place, wire = excluded.wire, model = excluded.model, has_batches = excluded.has_batches, told_at = excluded.told_at;
    -- What waits for batches that nobody has any more is asked now.
    perform millrace.ai_single(q.id) from millrace.ai_question q
     where q.status = 'waiting' and q.batch is null and q.batch_of is not null and q.batch_of not in (select p.name from millrace.ai_provider p where p.has_batches);
    return true;
end $$;
select millrace.door_is('ai', 'ai_providers_tell', 'worker', 'staff');

-- For the caller that has the right to it: a tenant's switch is a back end's, a family's is its parents' too. True when that changed something.
create or replace function millrace.ai_switch(scope text, name text, is_on boolean, actor text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.actor_of(ai_switch.actor, caller => ai_switch.caller);
    has_changed boolean;
begin
    if ai_switch.scope is null or ai_switch.scope not in ('tenant', 'family') then
        perform millrace.refuse(format('the scope %L is unknown', left(ai_switch.scope, 60)), 'scope', 'Give tenant or family.');
    end if;
    perform millrace.valid_name(ai_switch.name, 'name');
    if ai_switch.is_on is null then
        perform millrace.refuse('is_on is missing', 'is_on', 'Give true or false.');
    end if;
    -- With an actor it is that person who switches.
    if ai_switch.scope = 'tenant' and me is not null and (millrace.claims(ai_switch.caller) is not null or not millrace.is_backend(ai_switch.caller)) then
        perform millrace.refuse('only a back end may switch AI on or off for a tenant', 'scope', 'A parent can switch it for the family.', '42501', 'permission');
    end if;
    if ai_switch.scope = 'family' and me is not null and not millrace.family_has(ai_switch.name, me, true) then
        perform millrace.refuse('the actor is not a parent of this family', 'actor', 'Only a parent can switch it for the family.', '42501', 'permission');
    end if;
    if ai_switch.scope = 'family' and not exists (select from millrace.family f where f.family = ai_switch.name) then
        perform millrace.refuse(format('there is no family %L', left(ai_switch.name, 60)), 'name', null, 'P0002', 'not_found');
    end if;
    insert into millrace.ai_switched as s (scope, name, is_on, changed_at, changed_by)
    values (ai_switch.scope, ai_switch.name, ai_switch.is_on, millrace.now(), ai_switch.caller)
        on conflict (scope, name) do update set is_on = excluded.is_on, changed_at = excluded.changed_at, changed_by = excluded.changed_by where s.is_on <> excluded.is_on;
    has_changed := found;
    if has_changed then
        perform millrace.audited('ai.switch', ai_switch.name, jsonb_build_object('scope', ai_switch.scope, 'on', ai_switch.is_on), caller => ai_switch.caller);
    end if;
    return has_changed;
end $$;
select millrace.door_is('ai', 'ai_switch', 'client, worker', 'actor family', 'Switches AI on or off, for a family.',
    audited => true, words => '{"scope": ["tenant", "family"]}',
    who_may => array['switch AI on or off for their family: parent, back end, staff']);

create or replace function millrace.ai_switches() returns table (scope text, name text, is_on boolean, changed_at timestamptz, changed_by text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select s.scope, s.name, s.is_on, s.changed_at, s.changed_by from millrace.ai_switched s order by s.scope, s.name
$$;
select millrace.door_is('ai', 'ai_switches', 'worker, viewer', 'staff');

create or replace function millrace.ai_is_configured() returns boolean
language sql stable as $$
    select exists (select from millrace.ai_provider)
$$;

-- One of the two is on, and neither was switched off.
create or replace function millrace.ai_is_on(the_tenant text, the_family text) returns boolean
language sql stable as $$
    select coalesce(bool_and(s.is_on), false) from millrace.ai_switched s
     where (s.scope = 'tenant' and s.name = the_tenant) or (s.scope = 'family' and s.name = the_family)
$$;

create or replace function millrace.ai_family_of(the_person text) returns text
language sql stable as $$
    select m.family from millrace.family_member m where m.person = the_person and m.family is not null
$$;

create or replace function millrace.ai_must_be_on(the_tenant text, the_actor text) returns void
language plpgsql stable as $$
begin
    if not millrace.ai_is_configured() then
        perform millrace.refuse('no model can be asked: no worker has a provider configured', 'purpose', 'Set MILLRACE_AI_OPENAI_MODEL or MILLRACE_AI_ANTHROPIC_MODEL for the workers.', '55000', 'conflict');
    end if;
    if not millrace.ai_is_on(the_tenant, millrace.ai_family_of(the_actor)) then
        perform millrace.refuse('AI is not switched on for this tenant or family', 'tenant', 'A parent or a back end switches it on: millrace.ai_switch.', '55000', 'conflict');
    end if;
end $$;

-- What looks like an address, a number of a card, an account or a telephone, or a key is not sent. Marks of our own prompts cannot be written in data.
create or replace function millrace.ai_clean_text(value text) returns text
language sql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
    select regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(value,
        '[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}([.][A-Za-z0-9-]{1,63})+', '[email]', 'g'),
        '[[:<:]][a-z][a-z0-9+.-]{1,20}://[^[:space:]/@]+@', '[secret]@', 'g'),
        '[[:<:]](sk|pk|rk|ghp|gho|xox[abp]|AKIA|ASIA|eyJ)[A-Za-z0-9_-]{16,}([.][A-Za-z0-9_-]+)*', '[secret]', 'g'),
        '[[:<:]][A-Z]{2}[0-9]{2}( ?[A-Z0-9]{4}){3,7}( ?[A-Z0-9]{1,3})?[[:>:]]', '[account]', 'g'),
        '[[:<:]][0-9]([ -]?[0-9]){12,}[[:>:]]', '[number]', 'g'),
        '([+]|[[:<:]]00)[0-9]([ ()/-]{0,2}[0-9]){7,14}[[:>:]]', '[phone]', 'g'),
        '<(/?) *input', E'‹\\1input', 'gi')
$$;

create or replace function millrace.ai_clean(value jsonb) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    case jsonb_typeof(value)
    when 'string' then return to_jsonb(millrace.ai_clean_text(value #>> '{}'));
    when 'object' then return coalesce((select jsonb_object_agg(e.key, millrace.ai_clean(e.value)) from jsonb_each(value) e), '{}');
    when 'array' then return coalesce((select jsonb_agg(millrace.ai_clean(e.value) order by e.n) from jsonb_array_elements(value) with ordinality e(value, n)), '[]');
    else return value;
    end case;
end $$;

-- What is left of the account's quotas; null: no bound.
create or replace function millrace.ai_account_left(q millrace.ai_question) returns numeric
language sql stable as $$
    select least(millrace.quota_left(q.account, 'ai_tokens'), millrace.quota_left(q.account, 'ai_tokens:' || q.purpose))
$$;

-- What the person may still use of this purpose today; null: a back end asks, and no person is counted.
create or replace function millrace.ai_person_left(q millrace.ai_question) returns numeric
language sql stable as $$
    select case when q.person_most is not null then greatest(0, q.person_most - millrace.day_used('ai:' || q.purpose, millrace.keyed_hash('person', q.actor))) end
$$;

create or replace function millrace.ai_left(q millrace.ai_question) returns numeric
language sql stable as $$
    select least(millrace.ai_account_left(q), millrace.ai_person_left(q))
$$;

create or replace function millrace.ai_quota_refuse(q millrace.ai_question) returns void
language plpgsql stable as $$
begin
    if millrace.ai_person_left(q) <= 0 then
        perform millrace.refuse_quota('this person has used up today''s tokens for this purpose', 'actor', 'The next day begins at midnight UTC.', q.person_most,
            millrace.day_used('ai:' || q.purpose, millrace.keyed_hash('person', q.actor)), (millrace.today_utc() + 1)::timestamp at time zone 'UTC');
    end if;
    perform millrace.refuse_quota('the tokens of this period are used up', 'tenant', 'See the view quotas for when the next period begins.', x.allowed, ceil(x.used),
            millrace.quota_reset(x.period, x.since))
       from millrace.quota x where x.tenant = q.account and x.name in ('ai_tokens', 'ai_tokens:' || q.purpose) and x.allowed is not null
      order by millrace.quota_left(x.tenant, x.name) limit 1;
end $$;

-- What the options of a question are: {"locale", "model", "priority", "run_at", "room", "ref", "fresh", "may_wait"}.
create or replace function millrace.ai_options(given jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    strange text;
begin
    if jsonb_typeof(given) is distinct from 'object' then
        perform millrace.refuse('options is not a JSON object', 'options', 'Give for example {"locale": "de"}.');
    end if;
    select k into strange from jsonb_object_keys(given) k where k not in ('locale', 'model', 'priority', 'run_at', 'room', 'ref', 'fresh', 'may_wait') limit 1;
    if found then
        perform millrace.refuse(format('options.%s is unknown', left(strange, 60)), 'options', 'Allowed: locale, model, priority, run_at, room, ref, fresh and may_wait.');
    end if;
    if given ->> 'locale' !~ '^[A-Za-z0-9-]{1,35}$' then
        perform millrace.refuse('options.locale is malformed', 'options', 'Give for example pt-BR.');
    end if;
    if (given ? 'may_wait' and jsonb_typeof(given -> 'may_wait') <> 'boolean') or (given -> 'may_wait' = 'true' and given ? 'run_at') then
        perform millrace.refuse('options.may_wait must be true or false, and cannot be combined with run_at', 'options', 'A question that may wait is sent with the provider''s next batch.');
    end if;
    if given ->> 'model' !~ '^[!-~]{1,200}$' then
        perform millrace.refuse('options.model is malformed', 'options', 'Give the name of a model, or provider:model.');
    end if;
    if given ->> 'room' !~ '^[a-z][a-z-]{0,39}$' or (given ? 'ref' and given ->> 'ref' !~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$') or (given ? 'fresh' and jsonb_typeof(given -> 'fresh') <> 'boolean')
        or (given ? 'priority' and given ->> 'priority' !~ '^[0-9]$') then
        perform millrace.refuse('options.room, ref, priority or fresh is malformed', 'options', 'room is a name, ref a UUID, priority 0 to 9, fresh true or false.');
    end if;
end $$;

-- The kind of the jobs that ask for a purpose. Workers have a handler for each built-in purpose, and one for all purposes that an app has added: so they
-- need not know these by name. The job's tag names the purpose.
create or replace function millrace.ai_kind(the_purpose text) returns text
language sql immutable as $$
    select case when exists (select from millrace.ai_built_in() b where b.name = the_purpose) then 'ai.' || the_purpose else 'ai.ask' end
$$;

-- The input must have what the prompt requires, and nothing else.
create or replace function millrace.ai_input_check(variables jsonb, the_input jsonb) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    strange text;
begin
    if jsonb_typeof(the_input) is distinct from 'object' then
        perform millrace.refuse('input is not a JSON object', 'input', 'Give the variables of the prompt.');
    end if;
    if millrace.true_bytes(the_input) > millrace.most('ai_input') then
        perform millrace.refuse(format('input takes more than the %s bytes allowed', millrace.most('ai_input')), 'input', 'Give less text.', '53400', 'too_large');
    end if;
    select k into strange from jsonb_object_keys(the_input) k where not variables ? k order by k limit 1;
    if found then
        perform millrace.refuse(format('input.%s is unknown', left(strange, 60)), 'input', format('The prompt knows %s.', (select string_agg(k, ', ' order by k) from jsonb_object_keys(variables) k)));
    end if;
    select v.key into strange from jsonb_each(variables) v where v.value -> 'required' = 'true' and coalesce(btrim(the_input ->> v.key), '') = '' order by v.key limit 1;
    if found then
        perform millrace.refuse(format('input.%s is missing', strange), 'input', 'The prompt requires it.');
    end if;
    select e.key into strange from jsonb_each(the_input) e where jsonb_typeof(e.value) not in ('string', 'number', 'null')
        or length(e.value #>> '{}') > coalesce((variables -> e.key ->> 'max')::int, 1000000) order by e.key limit 1;
    if found then
        perform millrace.refuse(format('input.%s is neither text nor a number, or is longer than its variable allows', strange), 'input', 'Give a text within the bound of the variable.');
    end if;
end $$;

-- Asks, or answers from the store. For callers whose rights are checked. counts_person: the actor asks, or has caused the question, and uses tokens that
-- are its own of the day.
create or replace function millrace.ai_put(the_purpose text, the_input jsonb, the_tenant text, the_actor text, the_options jsonb, counts_person boolean, caller name) returns uuid
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    p record;
    the_id uuid := gen_random_uuid();
    family text := millrace.ai_family_of(the_actor);
    the_account text := case when millrace.is_personal(the_tenant) then coalesce(millrace.family_account(family), the_tenant) else coalesce(the_tenant, millrace.family_account(family)) end;
    the_locale text := coalesce(the_options ->> 'locale', millrace.locale_of(the_actor), 'en');
    said jsonb;
    the_key bytea;
    old millrace.ai_question;
    payer millrace.ai_question;                           -- as far as it says who pays
    t timestamptz := millrace.now();
    its_batches text;                                     -- of which provider it waits for
    kind constant text := 'ai.' || the_purpose;
    job_kind constant text := millrace.ai_kind(the_purpose);
begin
    select x.* into p from millrace.ai_purpose(the_purpose) x;
    if p.version is null then
        perform millrace.refuse(format('there is no purpose %L', left(the_purpose, 60)), 'purpose', 'millrace ai purposes lists them all; ai_purpose_put adds one.', 'P0002', 'not_found');
    end if;
    payer.purpose := the_purpose;
    payer.account := the_account;
    payer.actor := the_actor;
    payer.person_most := case when counts_person then coalesce((p.limits ->> 'client_tokens')::bigint, millrace.ai_client_tokens()) end;
    if payer.person_most = 0 then
        perform millrace.refuse(format('only back ends may ask for the purpose %L', left(the_purpose, 60)), 'purpose',
            'An admin can allow others with limits.client_tokens of ai_purpose_put.', '42501', 'permission');
    end if;
    perform millrace.ai_input_check(p.variables, the_input);
    perform millrace.ai_must_be_on(the_tenant, the_actor);
    said := millrace.ai_clean(millrace.redact(kind, jsonb_strip_nulls(the_input))) || jsonb_build_object('language', coalesce(the_input ->> 'language', the_locale));
    -- Nobody is given what was answered for another tenant, or another family where there is no tenant.
    the_key := sha256(convert_to(jsonb_build_array(the_purpose, p.version, said, coalesce('t:' || the_tenant, 'f:' || family, 'p:' || the_actor), the_options ->> 'model')::text, 'UTF8'));
    if coalesce((the_options ->> 'fresh')::boolean, false) is false then
        select q.* into old from millrace.ai_question q where q.key = the_key and q.status = 'answered' order by q.seq desc limit 1;
    else
        the_key := sha256(the_key || convert_to(the_id::text, 'UTF8'));
    end if;
    if old.id is null and millrace.ai_left(payer) <= 0 then
        perform millrace.ai_quota_refuse(payer);
    end if;
    if the_options -> 'may_wait' = 'true' and old.id is null then
        its_batches := millrace.ai_batch_provider(coalesce(the_options ->> 'model', p.model));
    end if;
    insert into millrace.ai_question (id, purpose, version, tenant, family, actor, caller, account, person_most, locale, input, key, model, batch_of, room, ref, status, answer, provider, answered_by, source, asked_at, ended_at)
    values (the_id, the_purpose, p.version, the_tenant, family, the_actor, ai_put.caller, the_account, payer.person_most, the_locale, said, the_key, the_options ->> 'model', its_batches, the_options ->> 'room',
        (the_options ->> 'ref')::uuid, case when old.id is null then 'waiting' else 'answered' end, old.answer, old.provider, old.answered_by, old.id, t, case when old.id is not null then t end);
    if old.id is not null then
        perform millrace.ai_put_to_use(q) from millrace.ai_question q where q.id = the_id;
        return the_id;
    end if;
    update millrace.ai_question q
       set job = (millrace.enqueue_one(job_kind, jsonb_build_object('question', the_id), 'ai', (the_options ->> 'priority')::int, case when its_batches is null then (the_options ->> 'run_at')::timestamptz else t + interval '1 day' end, null,
               'skip', null, the_tenant, null, case when job_kind = 'ai.ask' then array[kind] end, '{}', '{}', caller => current_user)).id
     where q.id = the_id;
    if its_batches is not null then
        perform millrace.ai_batch_gather(its_batches);
    end if;
    return the_id;
end $$;

-- Asks in the name of a person, or of a back end that names none.
create or replace function millrace.ai_ask_as(the_purpose text, the_input jsonb, tenant text, the_actor text, the_options jsonb, caller name) returns uuid
language plpgsql volatile as $$
declare
    the_tenant text := millrace.tenant_of(ai_ask_as.tenant, ai_ask_as.caller);
begin
    if millrace.is_no_tenant(the_tenant) or the_tenant ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the tenant is empty, too long, or has control characters', 'tenant', 'Give 1 to 128 characters, or null.');
    end if;
    return millrace.ai_put(the_purpose, the_input, the_tenant, the_actor, the_options, millrace.claims(ai_ask_as.caller) is not null or not millrace.is_backend(ai_ask_as.caller), ai_ask_as.caller);
end $$;

-- For rooms that have made sure that the person sees what is asked about: that is the ref, and with it the question goes (ai_erase_ref).
create or replace function millrace.ai_ask_about(the_room text, the_ref uuid, the_purpose text, the_input jsonb, tenant text, the_actor text, the_options jsonb, caller name) returns uuid
language plpgsql volatile as $$
begin
    perform millrace.ai_options(the_options);
    if the_options ?| array['room', 'ref'] then
        perform millrace.refuse('options.room and ref are set by the function itself', 'options', 'Leave them out.');
    end if;
    return millrace.ai_ask_as(the_purpose, the_input, ai_ask_about.tenant, the_actor, the_options || jsonb_build_object('room', the_room, 'ref', the_ref), ai_ask_about.caller);
end $$;

-- Asks a model for a purpose: in the caller's transaction, a row and a job. Returns the question's id; ai_answer reads it.
create or replace function millrace.ai_ask(
    purpose text, input jsonb, tenant text default null, actor text default null, options jsonb default '{}', caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.actor_of(ai_ask.actor, caller => ai_ask.caller);
begin
    perform millrace.ai_options(ai_ask.options);
    if ai_ask.options ?| array['room', 'ref'] and not millrace.is_backend(ai_ask.caller) then
        perform millrace.refuse('options.room and ref are for back ends', 'options', 'Leave them out.', '42501', 'permission');
    end if;
    return millrace.ai_ask_as(ai_ask.purpose, ai_ask.input, ai_ask.tenant, me, ai_ask.options, ai_ask.caller);
end $$;
select millrace.door_is('ai', 'ai_ask', 'client, worker', 'actor person',
    'Asks a model for a purpose. Returns the question''s id.',
    who_may => array['ask a model in their name: itself, back end, staff']);
