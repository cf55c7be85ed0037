-- The doors of subscriptions: plans of admins, what back ends and persons may do, and what workers run.

-- Makes a plan, or replaces it; null leaves a value as it is. Accounts get its new quotas by a job.
create or replace function millrace.subscription_plan_set(
    name text, quotas jsonb default null, rank int default null, products text[] default null, period text default null, grace interval default null,
    notice interval default null, title text default null, is_default boolean default null, caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    one text;
    t timestamptz := millrace.now();
begin
    if subscription_plan_set.name is null or subscription_plan_set.name !~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$' then
        perform millrace.refuse('the plan''s name is malformed', 'name', 'A name has 1 to 128 letters, digits and _ . - and begins with a letter or digit.');
    end if;
    if jsonb_typeof(subscription_plan_set.quotas) <> 'object' then
        perform millrace.refuse('quotas is not an object', 'quotas', 'Give for example {"pages": 1000}.');
    end if;
    for one in select key from jsonb_each(coalesce(subscription_plan_set.quotas, '{}')) loop
        if one <> all (millrace.quota_names()) then
            perform millrace.refuse(format('the quota %L is unknown', left(one, 60)), 'quotas', format('Allowed: %s.', array_to_string(millrace.quota_names(), ', ')));
        end if;
        if coalesce(subscription_plan_set.quotas ->> one, '') !~ '^[0-9]{1,18}$' or jsonb_typeof(subscription_plan_set.quotas -> one) <> 'number' then
            perform millrace.refuse(format('the quota %s is not a whole number of 0 or more', one), 'quotas', 'Leave it out for no limit.');
        end if;
    end loop;
    if subscription_plan_set.rank not between -1000000 and 1000000 then
        perform millrace.refuse('the rank is out of range', 'rank', 'Give -1000000 to 1000000: of two plans the one with the higher rank applies.');
    end if;
    if coalesce(subscription_plan_set.period, 'month') not in ('day', 'week', 'month', 'year') then
        perform millrace.refuse(format('the period %L is unknown', left(subscription_plan_set.period, 60)), 'period', 'Give day, week, month or year.');
    end if;
    if subscription_plan_set.grace not between '0' and '90 days' then
        perform millrace.refuse('the grace is out of range', 'grace', 'Give 0 to 90 days.');
    end if;
    if subscription_plan_set.notice not between '0' and '90 days' then
        perform millrace.refuse('the notice is out of range', 'notice', 'Give 0 to 90 days.');
    end if;
    if length(subscription_plan_set.title) not between 1 and 100 or subscription_plan_set.title ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the title is empty, too long, or has control characters', 'title', 'Give 1 to 100 characters: people read it.');
    end if;
    if cardinality(subscription_plan_set.products) > 100 or exists (
        select from unnest(subscription_plan_set.products) x where (x ~ '^(stripe|apple):[!-~]{1,200}$') is not true) then
        perform millrace.refuse('a product is malformed', 'products', 'Give up to 100, such as stripe:price_123 or apple:com.example.pro.');
    end if;
    if subscription_plan_set.is_default then
        update millrace.subscription_plan p set is_default = false where p.is_default and p.name <> subscription_plan_set.name;
    end if;
    insert into millrace.subscription_plan as p (name, title, rank, quotas, period, grace, notice, is_default, changed_at)
    values (subscription_plan_set.name, subscription_plan_set.title, coalesce(subscription_plan_set.rank, 0), coalesce(subscription_plan_set.quotas, '{}'),
            coalesce(subscription_plan_set.period, 'month'), coalesce(subscription_plan_set.grace, '3 days'), coalesce(subscription_plan_set.notice, '3 days'),
            coalesce(subscription_plan_set.is_default, false), t)
        on conflict (name) do update
       set title = coalesce(subscription_plan_set.title, p.title), rank = coalesce(subscription_plan_set.rank, p.rank), quotas = coalesce(subscription_plan_set.quotas, p.quotas),
           period = coalesce(subscription_plan_set.period, p.period), grace = coalesce(subscription_plan_set.grace, p.grace),
           notice = coalesce(subscription_plan_set.notice, p.notice), is_default = coalesce(subscription_plan_set.is_default, p.is_default), changed_at = t;
    if subscription_plan_set.products is not null then
        delete from millrace.subscription_product m where m.plan = subscription_plan_set.name and m.store || ':' || m.product <> all (subscription_plan_set.products);
        insert into millrace.subscription_product as m (store, product, plan)
        select distinct split_part(x, ':', 1), substr(x, strpos(x, ':') + 1), subscription_plan_set.name from unnest(subscription_plan_set.products) x
            on conflict (store, product) do update set plan = excluded.plan;
    end if;
    perform millrace.subscription_spread();
    perform millrace.audited('subscription_plan.set', subscription_plan_set.name, jsonb_build_object('quotas', subscription_plan_set.quotas, 'rank', subscription_plan_set.rank,
        'products', to_jsonb(subscription_plan_set.products), 'default', subscription_plan_set.is_default), caller => subscription_plan_set.caller);
    return true;
end $$;
select millrace.door_is('subscriptions', 'subscription_plan_set', 'admin', 'staff', audited => true);

-- All subscriptions and accounts are looked at again, by a job.
create or replace function millrace.subscription_spread() returns void
language plpgsql volatile as $$
begin
    if exists (select from millrace.subscription) or exists (select from millrace.subscription_account) then
        perform millrace.enqueue_one('subscriptions.due', '{"all": true}', 'subscriptions', null, null, 'subscriptions', 'replace', null, null, null, null, null, null,
            caller => current_user);
    end if;
end $$;

-- False: there is no such plan. A plan that somebody has is not removed.
create or replace function millrace.subscription_plan_remove(name text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    if exists (select from millrace.subscription s where s.plan = subscription_plan_remove.name and millrace.subscription_has_rights(s.state)) then
        perform millrace.refuse('this plan still has subscriptions', 'name', 'Give their products to another plan first.', '55000', 'conflict');
    end if;
    delete from millrace.subscription_plan p where p.name = subscription_plan_remove.name;
    if not found then
        return false;
    end if;
    perform millrace.subscription_spread();
    perform millrace.audited('subscription_plan.remove', subscription_plan_remove.name, null, caller => subscription_plan_remove.caller);
    return true;
end $$;
select millrace.door_is('subscriptions', 'subscription_plan_remove', 'admin', 'staff', audited => true);

create or replace function millrace.subscription_plans()
returns table (name text, title text, rank int, quotas jsonb, period text, grace interval, notice interval, is_default boolean, products text[], subscriptions bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select p.name, p.title, p.rank, p.quotas, p.period, p.grace, p.notice, p.is_default,
           array(select m.store || ':' || m.product from millrace.subscription_product m where m.plan = p.name order by 1),
           (select count(*) from millrace.subscription s where s.plan = p.name and millrace.subscription_has_rights(s.state))
      from millrace.subscription_plan p order by p.rank desc, p.name
$$;
select millrace.door_is('subscriptions', 'subscription_plans', 'worker', 'staff');

-- Only a back end or staff: somebody signed in buys at a store.
create or replace function millrace.subscription_backend(caller name) returns void
language plpgsql stable as $$
begin
    perform millrace.must_be_backend('set or link subscriptions', caller => subscription_backend.caller);
end $$;

-- A subscription that no store knows: a gift, an invoice, a test. Said again with the same ref it changes. Returns its id.
create or replace function millrace.subscription_set(
    plan text, person text default null, tenant text default null, period_end timestamptz default null, renews boolean default true, status text default 'active',
    ref text default null, caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    the_ref text := coalesce(subscription_set.ref, subscription_set.tenant, millrace.personal_tenant(subscription_set.person));
    said text;
begin
    perform millrace.subscription_backend(subscription_set.caller);
    if subscription_set.person is null and subscription_set.tenant is null then
        perform millrace.refuse('neither a person nor a tenant is given', 'person', 'Say whose subscription it is.');
    end if;
    if subscription_set.person is not null then
        perform millrace.valid_name(subscription_set.person, 'person');
    end if;
    if subscription_set.tenant is not null then
        perform millrace.valid_name(subscription_set.tenant, 'tenant');
    end if;
    if not exists (select from millrace.subscription_plan p where p.name = subscription_set.plan) then
        perform millrace.refuse(format('there is no plan %L', left(subscription_set.plan, 60)), 'plan', 'An admin makes plans: millrace subscriptions plans set.', 'P0002', 'not_found');
    end if;
    if coalesce(subscription_set.status, '') not in ('active', 'trial', 'unpaid', 'ended', 'revoked') then
        perform millrace.refuse(format('the status %L is unknown', left(subscription_set.status, 60)), 'status', 'Give active, trial, unpaid, ended or revoked.');
    end if;
    if not isfinite(subscription_set.period_end) then
        perform millrace.refuse('period_end is infinite', 'period_end', 'Leave it out for one without an end.');
    end if;
    if subscription_set.ref is not null and length(subscription_set.ref) not between 1 and 128 then
        perform millrace.refuse('the ref is empty or too long', 'ref', 'Give 1 to 128 characters.');
    end if;
    if exists (select from millrace.subscription_erased x where x.ref = millrace.keyed_hash('subscription', 'manual:' || the_ref)) then
        delete from millrace.subscription_erased x where x.ref = millrace.keyed_hash('subscription', 'manual:' || the_ref);
    end if;
    said := millrace.subscription_hear('manual', the_ref, gen_random_uuid()::text, 'set', millrace.now(), 0, the_ref,
        jsonb_build_object('status', subscription_set.status, 'product', subscription_set.plan, 'renews', coalesce(subscription_set.renews, true),
            'period_end', subscription_set.period_end, 'person', subscription_set.person, 'tenant', subscription_set.tenant));
    perform millrace.audited('subscription.set', (select s.id::text from millrace.subscription s where s.store = 'manual' and s.ref = the_ref),
        jsonb_build_object('plan', subscription_set.plan, 'status', subscription_set.status, 'period_end', subscription_set.period_end), caller => subscription_set.caller);
    return (select s.id from millrace.subscription s where s.store = 'manual' and s.ref = the_ref);
end $$;
select millrace.door_is('subscriptions', 'subscription_set', 'client, worker', 'backend',
    'Gives an account a plan that no store knows of. For back ends.', audited => true,
    words => '{"status": ["active", "trial", "unpaid", "ended", "revoked"]}',
    who_may => array['give them a plan: back end, staff']);

-- Says whose a store's subscription is, before or after the store speaks of it. False: that was known.
create or replace function millrace.subscription_link(
    store text, ref text, person text default null, tenant text default null, caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    s millrace.subscription;
begin
    perform millrace.subscription_backend(subscription_link.caller);
    if coalesce(subscription_link.store, '') not in ('stripe', 'apple') then
        perform millrace.refuse(format('the store %L is unknown', left(subscription_link.store, 60)), 'store', 'Give stripe or apple.');
    end if;
    if subscription_link.ref is null or length(subscription_link.ref) not between 1 and 256 then
        perform millrace.refuse('the ref is missing or too long', 'ref', 'Give Stripe''s id of the subscription (sub_…), or Apple''s originalTransactionId.');
    end if;
    if subscription_link.person is null and subscription_link.tenant is null then
        perform millrace.refuse('neither a person nor a tenant is given', 'person', 'Say whose subscription it is.');
    end if;
    if subscription_link.person is not null then
        perform millrace.valid_name(subscription_link.person, 'person');
    end if;
    if subscription_link.tenant is not null then
        perform millrace.valid_name(subscription_link.tenant, 'tenant');
    end if;
    if exists (select from millrace.subscription_erased x where x.ref = millrace.keyed_hash('subscription', subscription_link.store || ':' || subscription_link.ref)) then
        perform millrace.refuse('the person of this subscription was erased', 'ref', 'End it at the store.', '55000', 'conflict');
    end if;
    insert into millrace.subscription (id, store, ref, state, created_at, changed_at)
    values (gen_random_uuid(), subscription_link.store, subscription_link.ref, 'new', millrace.now(), millrace.now()) on conflict (store, ref) do nothing;
    select * into strict s from millrace.subscription x where x.store = subscription_link.store and x.ref = subscription_link.ref for no key update;
    if s.is_linked and (s.person, s.tenant) is not distinct from (subscription_link.person, subscription_link.tenant) then
        return false;
    end if;
    perform millrace.subscription_settle(s.id, subscription_link.person, subscription_link.tenant);
    perform millrace.audited('subscription.link', s.id::text, jsonb_build_object('store', subscription_link.store), caller => subscription_link.caller);
    return true;
end $$;
select millrace.door_is('subscriptions', 'subscription_link', 'client, worker', 'backend',
    'Says who owns a store''s subscription. For back ends.', audited => true,
    words => '{"store": ["stripe", "apple"]}',
    who_may => array['say that a store''s subscription is theirs: back end, staff']);

-- A person's plan, subscriptions and quotas. Those of its tenant count, which without a tenant in the claims is the person.
create or replace function millrace.subscription_mine(actor text default null, caller millrace.caller_name default current_user) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.acting_person(subscription_mine.actor, caller => subscription_mine.caller);
    own text := coalesce(nullif(millrace.caller_tenant(subscription_mine.caller), ''), millrace.personal_tenant(me));
begin
    return jsonb_build_object(
        'account', own,
        'plan', (select x.plan from (select a.plan, 0 as n from millrace.subscription_account a where a.account = own
                                     union all select p.name, 1 from millrace.subscription_plan p where p.is_default) x order by x.n limit 1),
        'subscriptions', coalesce((select jsonb_agg(millrace.subscription_row(s) - array['ref', 'person', 'tenant', 'linked'] order by s.created_at, s.id)
                                     from (select * from millrace.subscription y where y.account = own or y.person = me order by y.changed_at desc limit 50) s), '[]'),
        'quotas', coalesce((select jsonb_agg(jsonb_build_object('name', q.name, 'limit', q."limit", 'used', q.used, 'reset_date', q.reset_date) order by q.name)
                              from millrace.quotas q where q.tenant = own), '[]'));
end $$;
select millrace.door_is('subscriptions', 'subscription_mine', 'client, worker', 'actor person',
    'The plan, subscriptions and quotas of the caller.',
    who_may => array['see their plan and quotas: itself, back end, staff']);

create or replace function millrace.subscription_row(s millrace.subscription) returns jsonb
language sql stable as $$
    select jsonb_build_object('id', s.id, 'store', s.store, 'ref', s.ref, 'person', s.person, 'tenant', s.tenant, 'linked', s.is_linked, 'plan', s.plan, 'product', s.product,
        'state', s.state, 'renews', s.renews, 'period_end', s.period_end, 'grace_until', s.grace_until, 'revoked_at', s.revoked_at, 'next_at', s.next_at,
        'told_at', s.told_at, 'created_at', s.created_at, 'changed_at', s.changed_at)
$$;

-- By id; each row as JSON.
create or replace function millrace.subscription_list(
    the_state text default null, the_plan text default null, the_account text default null, after uuid default null, page int default 50
) returns setof jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if subscription_list.page is null or subscription_list.page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 subscriptions', 'page');
    end if;
    return query
        select millrace.subscription_row(s) from millrace.subscription s
         where (the_state is null or s.state = the_state) and (the_plan is null or s.plan = the_plan)
           and (the_account is null or s.account = the_account or s.person = the_account) and (subscription_list.after is null or s.id > subscription_list.after)
         order by s.id limit subscription_list.page;
end $$;
select millrace.door_is('subscriptions', 'subscription_list', 'worker', 'staff');

-- With its events, the newest first.
create or replace function millrace.subscription_show(id uuid) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    s millrace.subscription;
begin
    select * into s from millrace.subscription x where x.id = subscription_show.id;
    if not found then
        perform millrace.refuse('there is no such subscription', 'id', 'See millrace subscriptions list.', 'P0002', 'not_found');
    end if;
    return millrace.subscription_row(s) || jsonb_build_object('events', coalesce((
        select jsonb_agg(jsonb_build_object('id', e.id, 'type', e.type, 'at', e.at, 'arrived_at', e.arrived_at, 'facts', e.facts - array['person', 'tenant']) order by e.at desc, e.rank desc, e.id desc)
          from (select * from millrace.subscription_event y where y.subscription = s.id order by y.at desc, y.rank desc, y.id desc limit 200) e), '[]'));
end $$;
select millrace.door_is('subscriptions', 'subscription_show', 'worker', 'staff');

-- What the job subscriptions.due does: looks at one subscription by the clock, or at all after a plan has changed, some in a call. Returns where to go
-- on; null: done.
create or replace function millrace.subscriptions_run(args jsonb) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    one record;
    last text;
    n int := 0;
begin
    if subscriptions_run.args ? 'subscription' then
        perform from millrace.subscription s where s.id = (subscriptions_run.args ->> 'subscription')::uuid for no key update;
        if found then
            perform millrace.subscription_settle((subscriptions_run.args ->> 'subscription')::uuid);
        end if;
        return null;
    end if;
    if not subscriptions_run.args ? 'accounts' then
        for one in select s.id from millrace.subscription s where s.id > coalesce((subscriptions_run.args ->> 'after')::uuid, '00000000-0000-0000-0000-000000000000')
                    order by s.id limit 100 loop
            perform from millrace.subscription s where s.id = one.id for no key update;
            if found then
                perform millrace.subscription_settle(one.id);
            end if;
            last := one.id;
            n := n + 1;
        end loop;
        return case when n = 100 then jsonb_build_object('all', true, 'after', last) else '{"all": true, "accounts": ""}' end;
    end if;
    for one in select a.account from millrace.subscription_account a where a.account > (subscriptions_run.args ->> 'accounts') order by a.account limit 100 loop
        perform millrace.subscription_apply(one.account);
        last := one.account;
        n := n + 1;
    end loop;
    return case when n = 100 then jsonb_build_object('all', true, 'accounts', last) end;
end $$;
select millrace.door_is('subscriptions', 'subscriptions_run', 'worker', 'staff');

-- For doctor and the console: what cannot do its work. stores: those that a plan names products of. told: those that have sent something in the last
-- 30 days. bare: plans without a quota, where a plan of the same or a higher rank has some, or none has any.
create or replace function millrace.subscription_state(out stores text[], out unowned int, out unplanned int, out late int, out late_s float8, out told text[],
    out bare text[], out refused jsonb)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
begin
    stores := array(select distinct m.store from millrace.subscription_product m order by 1);
    unowned := (select count(*) from (select from millrace.subscription s where s.account is null and millrace.subscription_has_rights(s.state) limit 10000) x);
    unplanned := (select count(*) from (select from millrace.subscription s where s.plan is null and millrace.subscription_has_rights(s.state) limit 10000) x);
    select count(*), coalesce(extract(epoch from t - min(x.next_at)), 0) into late, late_s
      from (select s.next_at from millrace.subscription s where s.next_at < t - interval '10 minutes' order by s.next_at limit 10000) x;
    told := array(select distinct x.store
                    from (select e.store from millrace.subscription_event e where e.arrived_at > t - interval '30 days' order by e.arrived_at desc limit 1000) x
                   where x.store <> 'manual' order by 1);
    bare := array(select p.name from millrace.subscription_plan p
                   where p.quotas = '{}' and (exists (select from millrace.subscription_plan x where x.quotas <> '{}' and x.rank >= p.rank)
                                              or not exists (select from millrace.subscription_plan x where x.quotas <> '{}'))
                   order by p.rank desc, p.name limit 10);
    refused := (select coalesce(jsonb_agg(jsonb_build_object('store', r.store, 'why', r.why, 'messages', r.messages, 'first_at', r.first_at, 'last_at', r.last_at,
                       'ago_s', extract(epoch from t - r.last_at))
                       order by r.last_at desc, r.store, r.why), '[]')
                  from millrace.subscription_refusal r where r.last_at > t - interval '7 days');
end $$;
select millrace.door_is('subscriptions', 'subscription_state', 'worker, viewer', 'staff');

-- Counts messages that were not taken. Workers call it at most twice a minute for each store and reason: anybody can send such messages.
create or replace function millrace.subscription_refused(store text, why text, messages bigint) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    insert into millrace.subscription_refusal as r (store, why, messages, first_at, last_at)
    values (subscription_refused.store, left(subscription_refused.why, 100), greatest(1, subscription_refused.messages), millrace.now(), millrace.now())
        on conflict (store, why) do update
       set messages = case when r.last_at < millrace.now() - interval '7 days' then 0 else r.messages end + excluded.messages,
           first_at = case when r.last_at < millrace.now() - interval '7 days' then excluded.first_at else r.first_at end, last_at = excluded.last_at
$$;
select millrace.door_is('subscriptions', 'subscription_refused', 'worker', 'staff');

-- Called by maintain. Old events go that no state depends on; what its job has missed is caught up with.
create or replace function millrace.subscriptions_expire(most int default 2000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    one uuid;
    gone bigint;
begin
    delete from millrace.subscription_event e
     where (e.store, e.id) in (select x.store, x.id from millrace.subscription_event x where x.arrived_at < millrace.now() - interval '400 days' order by x.arrived_at limit most)
       and exists (select from millrace.subscription_event y where y.subscription = e.subscription and y.item = e.item and (y.at, y.rank, y.id) > (e.at, e.rank, e.id))
       and exists (select from millrace.subscription_event y where y.subscription = e.subscription and y.at > e.at + interval '100 days');
    get diagnostics gone = row_count;
    delete from millrace.subscription_refusal r where r.last_at < millrace.now() - interval '30 days';
    for one in select s.id from millrace.subscription s where s.next_at < millrace.now() - interval '10 minutes' order by s.next_at limit 100 for no key update skip locked loop
        perform millrace.subscription_settle(one);
    end loop;
    return gone;
end $$;

-- Joins in person_erase. The stores' later words about its subscriptions are not listened to. One that a tenant pays for stays the tenant's.
create or replace function millrace.subscriptions_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    gone bigint;
    n bigint;
begin
    perform from millrace.subscription s where s.account = millrace.personal_tenant(subscriptions_erase_person.person) or s.person = subscriptions_erase_person.person order by s.id for update;
    insert into millrace.subscription_erased (ref, at)
    select millrace.keyed_hash('subscription', s.store || ':' || s.ref), millrace.now()
      from millrace.subscription s where s.account = millrace.personal_tenant(subscriptions_erase_person.person) on conflict do nothing;
    perform millrace.events_drop('com.classnotes.subscription.changed',
        array(select s.id::text from millrace.subscription s where s.account = millrace.personal_tenant(subscriptions_erase_person.person)));
    delete from millrace.subscription s where s.account = millrace.personal_tenant(subscriptions_erase_person.person);
    get diagnostics gone = row_count;
    update millrace.subscription_event e set facts = e.facts - 'person'
      from millrace.subscription s where s.id = e.subscription and s.person = subscriptions_erase_person.person;
    update millrace.subscription s set person = null, notice_key = null where s.person = subscriptions_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.subscription_account a where a.account = millrace.personal_tenant(subscriptions_erase_person.person);
    return gone + millrace.quotas_drop(millrace.personal_tenant(subscriptions_erase_person.person));
end $$;

-- What collectors of metrics read of this room: see measure_rooms.
create or replace function millrace.subscription_measures(t timestamptz) returns table (name text, labels text[], value float8)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    -- Of a large table any 10,000 subscriptions are counted.
    return query
    select v.name, v.labels, v.n::float8
      from (select count(*) filter (where s.account is null and millrace.subscription_has_rights(s.state)) as unowned,
                   count(*) filter (where s.plan is null and millrace.subscription_has_rights(s.state)) as unplanned, array_agg(s.state) as states
              from (select x.state, x.account, x.plan from millrace.subscription x limit 10000) s) c
     cross join lateral (
            select 'subscriptions', array[w.state], (select count(*) from unnest(c.states) u(state) where u.state = w.state)
              from unnest(array['new', 'trial', 'active', 'grace', 'cancelled', 'expired', 'revoked', 'incomplete', 'paused']) w(state)
            union all values ('subscriptions_without', array['owner'], c.unowned), ('subscriptions_without', array['plan'], c.unplanned)) v(name, labels, n);
    return query
    select 'subscriptions_late_seconds', null::text[],
           coalesce((select greatest(0, extract(epoch from t - s.next_at)) from millrace.subscription s where s.next_at <= t order by s.next_at limit 1), 0)::float8;
end $$;

-- What status says of this room: see room_states.
create or replace function millrace.subscription_status_part() returns jsonb
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select to_jsonb(s) from millrace.subscription_state() s
$$;

-- Jobs of this room name their row by this argument, and keep it when a person is erased: see jobs_erase_person.
create or replace function millrace.subscription_keeps() returns setof text
language sql immutable parallel safe as 'select ''subscription''';

-- What this room keeps of a person: see person_export.
create or replace function millrace.subscriptions_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'plan', '', to_jsonb(a) from millrace.subscription_account a where a.account = millrace.personal_tenant(subscriptions_export_person.person)
    union all
    select 'event', e.store || ':' || e.id, to_jsonb(e) - 'rank' from millrace.subscription_event e join millrace.subscription s on s.id = e.subscription
     where s.person = subscriptions_export_person.person or s.account = millrace.personal_tenant(subscriptions_export_person.person)
    union all
    select 'subscription', s.id::text, to_jsonb(s) - array['notice_key', 'rank'] from millrace.subscription s where s.person = subscriptions_export_person.person or s.account = millrace.personal_tenant(subscriptions_export_person.person)
$$;

-- The kinds of this room's jobs, which name its rows.
create or replace function millrace.subscription_kinds() returns setof text
language sql immutable parallel safe as 'select ''subscriptions.%''';
