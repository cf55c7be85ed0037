-- What stores say, in our words. A worker has checked who signed it; here it is read, kept once, and told on.

-- new: it was not known, and counts. known: it came before. ignored: it is about no subscription. erased: its person is erased.
create or replace function millrace.subscription_hear(
    the_store text, the_ref text, the_event text, the_type text, the_time timestamptz, the_rank int, the_item text, the_facts jsonb
) returns text
language plpgsql volatile as $$
declare
    the_id uuid;
begin
    if length(the_ref) not between 1 and 256 or length(the_event) not between 1 and 256 or length(the_item) not between 1 and 256 or length(the_type) > 128
        or the_ref is null or the_event is null or the_item is null or the_time is null or not isfinite(the_time) then
        perform millrace.refuse('the event lacks its id, its time or its subscription', 'event', 'A store''s event has them.');
    end if;
    if exists (select from millrace.subscription_erased x where x.ref = millrace.keyed_hash('subscription', the_store || ':' || the_ref)) then
        return 'erased';
    end if;
    insert into millrace.subscription (id, store, ref, state, created_at, changed_at)
    values (gen_random_uuid(), the_store, the_ref, 'new', millrace.now(), millrace.now()) on conflict (store, ref) do nothing;
    select s.id into strict the_id from millrace.subscription s where s.store = the_store and s.ref = the_ref for no key update;
    insert into millrace.subscription_event (store, id, subscription, type, at, rank, item, facts, arrived_at)
    values (the_store, the_event, the_id, the_type, the_time, the_rank, the_item, jsonb_strip_nulls(the_facts), millrace.now()) on conflict (store, id) do nothing;
    if not found then
        return 'known';
    end if;
    perform millrace.subscription_settle(the_id);
    return 'new';
end $$;

-- A name that can be a person's or a tenant's, else null: what a store passes on may be anything.
create or replace function millrace.subscription_name(value text) returns text
language sql immutable as $$
    select case when length(value) between 1 and 128 and value !~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then value end
$$;

create or replace function millrace.subscription_seconds(value jsonb, per numeric default 1) returns timestamptz
language sql immutable as $$
    select case when jsonb_typeof(value) = 'number' and (value #>> '{}')::numeric / per between 0 and 253402300799 then to_timestamp(((value #>> '{}')::numeric / per)::float8) end
$$;

-- An event of Stripe. The events customer.subscription.* carry the whole subscription; the others say nothing that these do not.
-- The keys millrace_person and millrace_tenant of its metadata say whose it is. Within a second, what comes later in a subscription's life counts.
create or replace function millrace.subscription_stripe(event jsonb) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    o jsonb := event #> '{data,object}';
    ends timestamptz;
    items jsonb := case jsonb_typeof(o #> '{items,data}') when 'array' then o #> '{items,data}' else '[]' end;
    the_type text := event ->> 'type';
    word text := o ->> 'status';
    names jsonb;
begin
    if jsonb_typeof(event) <> 'object' or the_type is null then
        perform millrace.refuse('this is not an event of Stripe', 'event');
    end if;
    if the_type not like 'customer.subscription.%' or o ->> 'object' is distinct from 'subscription' then
        return 'ignored';
    end if;
    -- What each of its items is called: by its price, the price's key for look-ups, or its product.
    select coalesce(jsonb_agg(jsonb_build_array(p.price ->> 'id', p.price ->> 'lookup_key', p.price ->> 'product') order by p.n), '[]') into names
      from (select coalesce(i.item -> 'price', i.item -> 'plan', o -> 'plan') as price, i.n
              from jsonb_array_elements(case when items = '[]' then '[{}]' else items end) with ordinality i(item, n)) p;
    -- Since the API of 2025-03-31 the period is the item's.
    ends := coalesce(millrace.subscription_seconds(o -> 'current_period_end'),
        (select max(millrace.subscription_seconds(i -> 'current_period_end')) from jsonb_array_elements(items) i));
    return millrace.subscription_hear('stripe', o ->> 'id', event ->> 'id', the_type, millrace.subscription_seconds(event -> 'created'),
        case when the_type = 'customer.subscription.created' then 0 when the_type = 'customer.subscription.deleted' then 200 else 100 end
            + case word when 'incomplete' then 0 when 'trialing' then 1 when 'past_due' then 2 when 'active' then 3 when 'paused' then 4 when 'unpaid' then 5 else 6 end,
        o ->> 'id',
        jsonb_build_object(
            'status', case word when 'trialing' then 'trial' when 'active' then 'active' when 'past_due' then 'unpaid' when 'incomplete' then 'incomplete'
                                when 'paused' then 'paused' else 'ended' end,
            'product', names #>> '{0,0}',
            'names', names,
            'period_end', coalesce(least(millrace.subscription_seconds(o -> 'cancel_at'), ends), millrace.subscription_seconds(o -> 'ended_at')),
            'renews', not (coalesce(o -> 'cancel_at_period_end' = 'true', false) or coalesce(millrace.subscription_seconds(o -> 'cancel_at') <= ends, false)
                or word in ('canceled', 'incomplete_expired')),
            'person', millrace.subscription_name(o #>> '{metadata,millrace_person}'),
            'tenant', millrace.subscription_name(o #>> '{metadata,millrace_tenant}')));
end $$;
select millrace.door_is('subscriptions', 'subscription_stripe', 'worker', 'staff');

-- A notification of Apple (App Store Server Notifications V2), with `transaction` and `renewal` decoded in its data. Apple's token of the account says
-- whose it is, where persons are UUIDs.
create or replace function millrace.subscription_apple(event jsonb) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    d jsonb := event -> 'data';
    x jsonb := event #> '{data,transaction}';
    r jsonb := event #> '{data,renewal}';
    the_type text := concat_ws('.', event ->> 'notificationType', nullif(event ->> 'subtype', ''));
    ref text := coalesce(x ->> 'originalTransactionId', r ->> 'originalTransactionId');
    ends timestamptz := millrace.subscription_seconds(x -> 'expiresDate', 1000);
    word text;
begin
    if jsonb_typeof(event) <> 'object' or event ->> 'notificationType' is null then
        perform millrace.refuse('this is not a notification of Apple', 'event');
    end if;
    -- A purchase that is not a subscription has no expiry.
    if ref is null or x ->> 'transactionId' is null or ends is null then
        return 'ignored';
    end if;
    word := case d ->> 'status' when '1' then 'active' when '2' then 'ended' when '3' then 'ended' when '4' then 'unpaid' when '5' then 'revoked'
                 else case when event ->> 'notificationType' in ('EXPIRED', 'GRACE_PERIOD_EXPIRED') then 'ended' else 'active' end end;
    return millrace.subscription_hear('apple', ref, event ->> 'notificationUUID', the_type, millrace.subscription_seconds(event -> 'signedDate', 1000),
        case event ->> 'notificationType' when 'SUBSCRIBED' then 0 when 'EXPIRED' then 5 when 'GRACE_PERIOD_EXPIRED' then 5 when 'REFUND' then 6 when 'REVOKE' then 6 else 3 end,
        x ->> 'transactionId',
        jsonb_build_object(
            -- A revoked transaction is judged by itself: another may be in force.
            'status', case when word = 'revoked' then 'active' when word = 'active' and x ->> 'offerDiscountType' = 'FREE_TRIAL' then 'trial' else word end,
            'product', x ->> 'productId',
            'bought_at', millrace.subscription_seconds(x -> 'purchaseDate', 1000),
            'period_end', ends,
            'renews', case when r ? 'autoRenewStatus' then r ->> 'autoRenewStatus' = '1' end,
            'grace_until', millrace.subscription_seconds(r -> 'gracePeriodExpiresDate', 1000),
            'revoked_at', millrace.subscription_seconds(x -> 'revocationDate', 1000),
            'is_upgraded', case when x -> 'isUpgraded' = 'true' then true end,
            'person', millrace.subscription_name(x ->> 'appAccountToken')));
end $$;
select millrace.door_is('subscriptions', 'subscription_apple', 'worker', 'staff');
