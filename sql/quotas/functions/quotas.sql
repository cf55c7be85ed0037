-- Quotas: how much a tenant may use in a period. Periods begin at midnight in UTC.

create or replace function millrace.quota_since(period text) returns timestamptz
language plpgsql stable as $$
begin
    return date_trunc(period, millrace.now() at time zone 'UTC') at time zone 'UTC';
end $$;

-- Adds to the used amount. False: that would exceed the quota, and nothing is added. An event is published once per period at 80 %, at 100
-- %, and at the first attempt to exceed it.
create or replace function millrace.quota_use(the_tenant text, the_name text, amount numeric, refuses boolean default true) returns boolean
language plpgsql volatile as $$
declare
    q millrace.quota;
    total numeric;
    share int;
    fits boolean;
begin
    if the_tenant is null then
        return true;
    end if;
    select * into q from millrace.quota x where x.tenant = the_tenant and x.name = the_name for no key update;
    if not found then
        insert into millrace.quota (tenant, name, period, since, used, warned)
        values (the_tenant, the_name, 'month', millrace.quota_since('month'), 0, 0) on conflict do nothing;
        select * into strict q from millrace.quota x where x.tenant = the_tenant and x.name = the_name for no key update;
    end if;
    if q.since < millrace.quota_since(q.period) then
        q.since := millrace.quota_since(q.period);
        q.used := 0;
        q.warned := 0;
    end if;
    total := q.used + amount;
    fits := q.allowed is null or total <= q.allowed or not refuses;
    share := case when q.allowed is null then 0 when total >= q.allowed then 100 when total * 5 >= q.allowed * 4 then 80 else 0 end;
    update millrace.quota x
       set since = q.since, used = case when fits then total else q.used end, warned = greatest(q.warned, share)
     where x.tenant = the_tenant and x.name = the_name;
    if share > q.warned then
        perform millrace.event_say('com.classnotes.quota.warning', '/millrace/quotas', the_name, the_tenant,
            jsonb_build_object('tenant', the_tenant, 'name', the_name, 'limit', q.allowed, 'used', ceil(case when fits then total else q.used end),
                'reset_date', millrace.quota_reset(q.period, q.since)));
        perform millrace.hooks_must('quota_warned', jsonb_build_object('tenant', the_tenant, 'name', the_name, 'share', share, 'since', q.since, 'limit', q.allowed,
            'used', ceil(case when fits then total else q.used end), 'reset_date', millrace.quota_reset(q.period, q.since)));
    end if;
    return fits;
end $$;

create or replace function millrace.quota_reset(period text, since timestamptz) returns timestamptz
language sql stable as $$
    select ((since at time zone 'UTC') + ('1 ' || period)::interval) at time zone 'UTC'
$$;

-- The amount left; null: no bound.
create or replace function millrace.quota_left(the_tenant text, the_name text) returns numeric
language plpgsql stable as $$
begin
    return (select case when q.allowed is not null then greatest(0, q.allowed - case when q.since < millrace.quota_since(q.period) then 0 else q.used end) end
      from millrace.quota q where q.tenant = the_tenant and q.name = the_name);
end $$;

create or replace function millrace.quota_names() returns text[]
language sql immutable parallel safe as $$
    select array['documents', 'pages', 'bytes', 'cpu_seconds', 'messages', 'lessons', 'ai_tokens']
$$;

-- allowed null: no bound any more but that of the tenant's plan. What has been used so far counts.
create or replace function millrace.quota_set(tenant text, name text, allowed bigint, period text default 'month', caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if quota_set.tenant is null or millrace.is_no_tenant(quota_set.tenant) or quota_set.tenant ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the tenant is missing, too long, or has control characters', 'tenant', 'Give 1 to 128 characters.');
    end if;
    if coalesce(quota_set.name, '') <> all (millrace.quota_names()) and coalesce(quota_set.name, '') !~ '^ai_tokens:[a-z][a-z0-9_]{0,59}$' then
        perform millrace.refuse(format('the quota %L is unknown', left(quota_set.name, 60)), 'name',
            format('Give one of %s, or ai_tokens:<purpose>.', array_to_string(millrace.quota_names(), ', ')));
    end if;
    if quota_set.allowed < 0 then
        perform millrace.refuse('a quota must be 0 or more', 'allowed', 'Give a number, or null for no limit.');
    end if;
    if coalesce(quota_set.period, '') not in ('day', 'week', 'month', 'year') then
        perform millrace.refuse(format('the period %L is unknown', left(quota_set.period, 60)), 'period', 'Give day, week, month or year.');
    end if;
    insert into millrace.quota as q (tenant, name, allowed, period, since, used, warned, by_hand)
    values (quota_set.tenant, quota_set.name, quota_set.allowed, quota_set.period, millrace.quota_since(quota_set.period), 0, 0, quota_set.allowed is not null)
        on conflict on constraint quota_pkey do update
       set allowed = excluded.allowed, warned = 0, period = excluded.period, by_hand = excluded.by_hand,
           since = case when q.period = excluded.period then q.since else excluded.since end;
    perform millrace.hooks_must('quota_said', jsonb_build_object('tenant', quota_set.tenant, 'allowed', quota_set.allowed));
    perform millrace.audited('quota.set', quota_set.tenant, jsonb_build_object('name', quota_set.name, 'allowed', quota_set.allowed, 'period', quota_set.period), caller => quota_set.caller);
    return true;
end $$;
select millrace.door_is('quotas', 'quota_set', 'admin', 'staff', audited => true);

-- Clients that read this view may call neither function above, so it repeats their arithmetic.
create or replace view millrace.quotas as
select q.tenant, q.name, q.allowed as "limit", case when q.since < p.since then 0 else ceil(q.used)::bigint end as used,
       ((p.since at time zone 'UTC') + ('1 ' || q.period)::interval) at time zone 'UTC' as reset_date
  from millrace.quota q cross join lateral (select date_trunc(q.period, millrace.now() at time zone 'UTC') at time zone 'UTC' as since) p;
select millrace.view_is('quotas', 'quotas', 'worker, viewer');

-- Sets the quotas of an account where no admin has; who has used most of a new one is told at once.
create or replace function millrace.quota_of_plan(the_tenant text, quotas jsonb, the_period text) returns void
language plpgsql volatile as $$
declare
    one text;
begin
    foreach one in array millrace.quota_names() loop
        insert into millrace.quota as q (tenant, name, allowed, period, since, used, warned)
        select the_tenant, one, (quotas ->> one)::bigint, the_period, millrace.quota_since(the_period), 0, 0
         where quotas ->> one is not null or exists (select from millrace.quota x where x.tenant = the_tenant and x.name = one)
            on conflict on constraint quota_pkey do update
           set allowed = excluded.allowed, period = excluded.period, warned = 0,
               since = case when q.period = excluded.period then q.since else excluded.since end
         where not q.by_hand and (q.allowed, q.period) is distinct from (excluded.allowed, excluded.period);
        if found then
            perform millrace.quota_use(the_tenant, one, 0, false);
        end if;
    end loop;
end $$;

-- How many quotas a tenant had that is no more.
create or replace function millrace.quotas_drop(the_tenant text) returns bigint
language plpgsql volatile as $$
declare
    gone bigint;
begin
    delete from millrace.quota q where q.tenant = the_tenant;
    get diagnostics gone = row_count;
    return gone;
end $$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.quotas_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'quota_use', q.name, to_jsonb(q) - 'warned' from millrace.quota q where q.tenant = millrace.personal_tenant(quotas_export_person.person)
$$;
