-- What a subscription is worth: its state by what the store said and by the clock, and the plan and the quotas of an account.

-- Whose plan and quotas a subscription sets: the tenant's, else the person's own. As the table's column computes it.
create or replace function millrace.subscription_account_of(the_tenant text, the_person text) returns text
language sql immutable parallel safe
return coalesce(the_tenant, millrace.personal_tenant(the_person));

create or replace function millrace.subscription_has_rights(state text) returns boolean
language sql immutable parallel safe as $$
    select state in ('trial', 'active', 'grace', 'cancelled')
$$;

-- The state at a time, and when it changes by itself.
create or replace function millrace.subscription_judge(s millrace.subscription, grace interval, t timestamptz, out state text, out next_at timestamptz)
language plpgsql immutable as $$
declare
    until timestamptz;
begin
    if s.status is null then                              -- the store has not spoken yet
        state := 'new';
    elsif s.revoked_at is not null or s.status = 'revoked' then
        state := 'revoked';
    elsif s.status in ('incomplete', 'paused') then
        state := s.status;
    elsif s.status = 'ended' then
        state := 'expired';
    elsif s.status = 'unpaid' then
        until := coalesce(s.grace_until, s.unpaid_since + grace);
        state := case when t < until then 'grace' else 'expired' end;
    elsif s.period_end is null or t < s.period_end then
        until := s.period_end;
        state := case when until is not null and not s.renews then 'cancelled' when s.status = 'trial' then 'trial' else 'active' end;
    else                                                  -- the store is late with its word, or it is over
        until := case when s.renews then coalesce(s.grace_until, s.period_end + grace) end;
        state := case when t < until then 'grace' else 'expired' end;
    end if;
    next_at := case when until > t then until end;
end $$;

-- The newest word about each transaction of a subscription, and when it was bought: as the store says, else when it was first spoken of.
create or replace function millrace.subscription_items(the_id uuid)
returns table (item text, facts jsonb, bought_at timestamptz, at timestamptz, rank int, id text)
language sql stable as $$
    select distinct on (e.item) e.item, e.facts, coalesce((e.facts ->> 'bought_at')::timestamptz, min(e.at) over (partition by e.item)), e.at, e.rank, e.id
      from millrace.subscription_event e where e.subscription = the_id and e.facts ? 'status'
     order by e.item, e.at desc, e.rank desc, e.id desc
$$;

-- Of all that a subscription consists of, what its plan is judged by: the plan of the highest rank. `names` has a list for each: what the store
-- calls it, the most exact first. null: it is no plan's product.
create or replace function millrace.subscription_best(the_store text, names jsonb) returns text
language sql stable as $$
    select m.product
      from jsonb_array_elements(names) with ordinality i(known_as, place)
     cross join lateral (select p.product, p.plan from jsonb_array_elements_text(i.known_as) with ordinality x(name, n)
                           join millrace.subscription_product p on p.store = the_store and p.product = x.name order by x.n limit 1) m
      join millrace.subscription_plan l on l.name = m.plan
     order by l.rank desc, l.name, i.place limit 1
$$;

-- When another transaction of it begins that is bought already, as a renewal is on the day before; null: there is none.
create or replace function millrace.subscription_turns_at(the_id uuid, t timestamptz) returns timestamptz
language sql stable as $$
    select min(x.bought_at) from millrace.subscription_items(the_id) x where x.facts ? 'bought_at' and x.bought_at > t
$$;

-- What all events of a subscription say together. Events are compared by the store's time, never by their arrival.
create or replace function millrace.subscription_fold(s millrace.subscription) returns millrace.subscription
language plpgsql stable as $$
declare
    newest record;
    last record;
    begun record;
    owner record;
begin
    select e.at, e.facts into newest from millrace.subscription_event e where e.subscription = s.id and e.facts ? 'status'
     order by e.at desc, e.rank desc, e.id desc limit 1;
    if not found then
        return s;
    end if;
    -- Each transaction takes the place of those before it, however long they would have lasted: an upgrade ends what was bought before, and
    -- its refund does not bring that back.
    select x.facts into last from millrace.subscription_items(s.id) x
     order by x.facts ? 'is_upgraded', x.bought_at desc, (x.facts ->> 'period_end')::timestamptz desc nulls first, x.at desc, x.rank desc, x.id desc limit 1;
    select x.facts into begun from millrace.subscription_items(s.id) x
     order by x.bought_at > millrace.now(), x.facts ? 'is_upgraded', x.bought_at desc, (x.facts ->> 'period_end')::timestamptz desc nulls first, x.at desc, x.rank desc,
              x.id desc limit 1;
    select e.facts into owner from millrace.subscription_event e
     where e.subscription = s.id and e.facts ?| array['person', 'tenant'] order by e.at desc, e.rank desc, e.id desc limit 1;
    s.told_at := (select max(e.at) from millrace.subscription_event e where e.subscription = s.id);
    s.status := newest.facts ->> 'status';
    if s.status in ('trial', 'active') and last.facts ->> 'status' in ('trial', 'active') then
        s.status := last.facts ->> 'status';               -- the newest word may be about an earlier one
    end if;
    s.renews := coalesce((newest.facts ->> 'renews')::boolean, true);
    s.grace_until := (newest.facts ->> 'grace_until')::timestamptz;
    s.product := coalesce(millrace.subscription_best(s.store, begun.facts -> 'names'), begun.facts ->> 'product');
    s.period_end := (last.facts ->> 'period_end')::timestamptz;
    s.revoked_at := (last.facts ->> 'revoked_at')::timestamptz;
    -- The first of the events that say so without another between.
    s.unpaid_since := case when s.status = 'unpaid' then (
        select min(e.at) from millrace.subscription_event e
         where e.subscription = s.id and e.facts ->> 'status' = 'unpaid'
           and not exists (select from millrace.subscription_event b
                            where b.subscription = s.id and b.facts ->> 'status' <> 'unpaid' and (b.at, b.rank, b.id) > (e.at, e.rank, e.id))) end;
    if not s.is_linked then
        s.person := owner.facts ->> 'person';
        s.tenant := owner.facts ->> 'tenant';
    end if;
    return s;
end $$;

-- Writes what a subscription is now, and all that follows from it: event, feed, quotas, the job for its next change, the notice. The caller has
-- locked its row, and may say whose it is.
create or replace function millrace.subscription_settle(the_id uuid, the_person text default null, the_tenant text default null) returns boolean
language plpgsql volatile as $$
declare
    t timestamptz := millrace.now();
    was millrace.subscription;
    s millrace.subscription;
    p millrace.subscription_plan;
    is_changed boolean;
begin
    select * into strict was from millrace.subscription x where x.id = the_id;
    s := millrace.subscription_fold(was);
    if coalesce(the_person, the_tenant) is not null then
        s.person := the_person;
        s.tenant := the_tenant;
        s.is_linked := true;
    end if;
    s.account := millrace.subscription_account_of(s.tenant, s.person);
    s.plan := coalesce((select m.plan from millrace.subscription_product m where m.store = s.store and m.product = s.product),
        (select x.name from millrace.subscription_plan x where s.store = 'manual' and x.name = s.product));
    select * into p from millrace.subscription_plan x where x.name = s.plan;
    select j.state, least(j.next_at, millrace.subscription_turns_at(s.id, t)) into s.state, s.next_at from millrace.subscription_judge(s, coalesce(p.grace, '3 days'), t) j;
    s.notice_key := millrace.subscription_tell(s, p, t);
    is_changed := (was.state, was.plan, was.renews, was.period_end, was.account, was.person) is distinct from (s.state, s.plan, s.renews, s.period_end, s.account, s.person);
    update millrace.subscription x
       set person = s.person, tenant = s.tenant, is_linked = s.is_linked, product = s.product, plan = s.plan, state = s.state, status = s.status, renews = s.renews,
           period_end = s.period_end, grace_until = s.grace_until, revoked_at = s.revoked_at, unpaid_since = s.unpaid_since, told_at = s.told_at,
           next_at = s.next_at, notice_key = s.notice_key, changed_at = case when is_changed then t else was.changed_at end
     where x.id = the_id;
    if s.next_at is distinct from was.next_at and s.next_at is not null then
        perform millrace.enqueue_one('subscriptions.due', jsonb_build_object('subscription', s.id), 'subscriptions', null, s.next_at,
            'subscription:' || s.id, 'replace', null, null, null, null, null, null, caller => current_user);
    end if;
    if not is_changed then
        return false;
    end if;
    if was.account is distinct from s.account and was.account is not null then
        perform millrace.subscription_apply(was.account);
    end if;
    if s.account is not null then
        perform millrace.subscription_apply(s.account);
    end if;
    if s.account is not null and s.state <> 'new' then
        perform millrace.event_say('com.classnotes.subscription.changed', '/millrace/subscriptions', s.id::text, s.account,
            jsonb_strip_nulls(jsonb_build_object('subscription', s.id, 'person', s.person, 'tenant', s.tenant, 'store', s.store, 'plan', s.plan, 'state', s.state,
                'renews', s.renews, 'period_end', s.period_end,
                'before', jsonb_build_object('plan', was.plan, 'state', nullif(was.state, 'new')))));
        perform millrace.subscription_feed(s);
    end if;
    return true;
end $$;

-- The one whose quota it is hears that most of it is used; where that is a person, by a notice too if it wants that.
create or replace function millrace.subscription_quota_warned(about jsonb) returns bigint
language plpgsql volatile as $$
declare
    the_tenant text := about ->> 'tenant';
    the_person text := case when the_tenant like 'person:%' then substr(the_tenant, 8) end;
    said jsonb := about - array['tenant', 'since'];
begin
    perform millrace.feed_say(array[millrace.feed_change(at => millrace.now(), topic => 'subscriptions', person => the_person,
        tenant => case when the_person is null then the_tenant end, ref => about ->> 'name', change => 'quota_warning', data => said)]);
    perform millrace.notice_about(the_person, 'quota.warning', concat_ws(':', 'quota_warning', about ->> 'name', about ->> 'since', about ->> 'share'),
        said || jsonb_build_object('body', (about ->> 'name') || ': ' || (about ->> 'used') || ' / ' || (about ->> 'limit')),
        case when (about ->> 'share')::int < 100 then array['Most of your plan is used', 'Dein Tarif ist fast verbraucht', 'أوشكت خطتك على النفاد']
             else array['Your plan is used up', 'Dein Tarif ist verbraucht', 'نفدت خطتك'] end)
      where the_person is not null;
    return 1;
end $$;

create or replace function millrace.subscription_feed(s millrace.subscription) returns void
language plpgsql volatile as $$
begin
    perform millrace.notice_about(s.person, 'subscription.changed', concat_ws(':', 'subscription:changed', s.id, s.plan, s.state, extract(epoch from s.period_end)),
        jsonb_strip_nulls(jsonb_build_object('plan', s.plan, 'state', s.state, 'body', coalesce((select p.title from millrace.subscription_plan p where p.name = s.plan), s.plan))),
        array['Your subscription has changed', 'Dein Abo hat sich geändert', 'تغيّر اشتراكك'])
      where s.person is not null;
    perform millrace.feed_say(array[millrace.feed_change(at => millrace.now(), topic => 'subscriptions', person => s.person, tenant => s.tenant, ref => s.id::text,
        change => s.state, data => jsonb_strip_nulls(jsonb_build_object('plan', s.plan, 'state', s.state, 'store', s.store, 'renews', s.renews, 'period_end', s.period_end)))]);
end $$;

-- The notice before an end, before the first payment, or of a payment that fails. It is taken back when there is no such end any more. Returns the
-- key of the notice that is to be there.
create or replace function millrace.subscription_tell(s millrace.subscription, p millrace.subscription_plan, t timestamptz) returns text
language plpgsql volatile as $$
declare
    until timestamptz := case when s.state = 'grace' then s.next_at else s.period_end end;
    what text := case s.state when 'cancelled' then 'ending' when 'trial' then 'trial_ending' when 'grace' then 'unpaid' end;
    due timestamptz := case when s.state = 'grace' then t else greatest(t, until - coalesce(p.notice, '3 days')) end;
    the_key text;
begin
    if s.person is not null and what is not null and until > t then
        the_key := concat_ws(':', 'subscription', what, s.id, floor(extract(epoch from until)));
    end if;
    if s.notice_key is distinct from the_key and s.notice_key is not null then
        perform millrace.notice_cancel(n.person, n.key) from millrace.notice n where n.key = s.notice_key and n.person = s.person;
    end if;
    if the_key is null or s.notice_key = the_key then
        return the_key;
    end if;
    perform millrace.notice_send(s.person, 'subscription.' || what,
        jsonb_build_object('plan', coalesce(p.title, s.plan, s.product, ''), 'until', millrace.subscription_day(until, s.person)), null, the_key, due, until);
    perform millrace.notice_resume(s.person, the_key, due);
    return the_key;
end $$;

-- The day where the person is. The notice writes it in the language of the person.
create or replace function millrace.subscription_day(at timestamptz, the_person text) returns text
language sql stable as $$
    select to_char(subscription_day.at at time zone coalesce(millrace.zone_of(the_person), 'UTC'), 'YYYY-MM-DD')
$$;

-- Gives an account the best plan that it has a right to, and that plan's quotas. Quotas that an admin has set by hand stay.
create or replace function millrace.subscription_apply(the_account text) returns void
language plpgsql volatile as $$
declare
    the_plan text;
    p millrace.subscription_plan;
    was text;
begin
    insert into millrace.subscription_account (account, changed_at) values (the_account, millrace.now()) on conflict do nothing;
    select a.plan into strict was from millrace.subscription_account a where a.account = the_account for no key update;
    select x.* into p from millrace.subscription s join millrace.subscription_plan x on x.name = s.plan
     where s.account = the_account and millrace.subscription_has_rights(s.state) order by x.rank desc, x.name limit 1;
    if not found then
        select x.* into p from millrace.subscription_plan x where x.is_default;
    end if;
    the_plan := p.name;
    if the_plan is distinct from was then
        update millrace.subscription_account a set plan = the_plan, changed_at = millrace.now() where a.account = the_account;
    end if;
    perform millrace.quota_of_plan(the_account, coalesce(p.quotas, '{}'), coalesce(p.period, 'month'));
end $$;

-- Who has no bound by hand any more has that of its plan.
create or replace function millrace.subscription_quota_said(about jsonb) returns bigint
language plpgsql volatile as $$
begin
    if about ->> 'allowed' is null and exists (select from millrace.subscription_account a where a.account = about ->> 'tenant') then
        perform millrace.subscription_apply(about ->> 'tenant');
    end if;
    return null;
end $$;
