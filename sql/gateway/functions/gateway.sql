-- The gateway's own: its doors as a list, how many calls each may make, answers that are told again, and which gateways are alive.

-- What apps may call: the allow-list of /v1/rpc. Doors that are for apps, as far as the role may execute them, with types from the catalogue and
-- without `caller`, which nobody gives.
create or replace function millrace.gateway_doors(the_role text)
returns table (name text, arguments jsonb, result jsonb, comment text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select p.proname::text,
           coalesce((select jsonb_agg(jsonb_strip_nulls(jsonb_build_object('name', a.name, 'type', format_type(a.type, null), 'required', a.n <= p.pronargs - p.pronargdefaults,
                        'default', case when a.n > p.pronargs - p.pronargdefaults then pg_get_function_arg_default(p.oid, a.n::int) end,
                        'words', d.words -> a.name)) order by a.n)
                       from (select x.name, x.type, row_number() over (order by x.n) as n
                               from unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[]), p.proargmodes) with ordinality x(name, type, mode, n)
                              where coalesce(x.mode, 'i') in ('i', 'b', 'v')) a where a.name <> 'caller'), '[]'),
           case when p.prorettype = 'void'::regtype then '{"kind": "void"}'
                when c.columns is not null then jsonb_build_object('kind', case when p.proretset then 'rows' else 'row' end, 'columns', c.columns)
                else jsonb_build_object('kind', case when p.proretset then 'rows' else 'scalar' end, 'type', format_type(p.prorettype, null)) end,
           d.sentence
      from millrace.door d
      join pg_proc p on p.proname = d.name and p.pronamespace = 'millrace'::regnamespace and p.prokind = 'f'
      left join lateral (
        select jsonb_agg(jsonb_strip_nulls(jsonb_build_object('name', x.name, 'type', format_type(x.type, null),
                   'words', d.answers -> x.name)) order by x.n) as columns
          from (select o.name, o.type, o.n from unnest(p.proargnames, p.proallargtypes, p.proargmodes) with ordinality o(name, type, mode, n)
                 where o.mode in ('o', 'b', 't') and (p.proretset or p.prorettype = 'record'::regtype)
                union all
                select a.attname::text, a.atttypid, a.attnum::bigint from pg_type t join pg_attribute a on a.attrelid = t.typrelid
                 where t.oid = p.prorettype and t.typtype = 'c' and a.attnum > 0 and not a.attisdropped) x) c on true
     where d.for_apps and not d.is_view and has_function_privilege(to_regrole(quote_ident(the_role))::oid, p.oid, 'execute')
     order by 1
$$;
select millrace.door_is('gateway', 'gateway_doors', 'gateway', 'staff');

-- Takes up to `wants` tokens from each bucket, which gains `rates` a second up to `bursts`. granted: how many were there; wait_s: how long until
-- there is one, if there were not enough. Over all processes never more than the burst and what has been gained since. Each key once.
create or replace function millrace.gateway_take(keys text[], rates float8[], bursts float8[], wants int[])
returns table (key text, granted int, wait_s float8)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s' as $$
#variable_conflict use_column
begin
    if keys is null or cardinality(keys) not between 1 and 500 or (cardinality(rates), cardinality(bursts), cardinality(wants)) is distinct from (cardinality(keys), cardinality(keys), cardinality(keys)) then
        perform millrace.refuse('keys, rates, bursts and wants are not four lists of the same length, 1 to 500', 'keys');
    end if;
    if exists (select from unnest(keys, rates, bursts, wants) a(key, rate, burst, want)
                where (length(a.key) between 1 and 300 and a.rate between 0.000001 and 1000000 and a.burst between 1 and 1000000 and a.want between 0 and 1000000) is not true)
        or cardinality(keys) <> (select count(distinct k) from unnest(keys) k) then
        perform millrace.refuse('a key, rate, burst or want is out of range, or a key is given twice', 'keys',
            'Give keys of 1 to 300 characters, rates from 0.000001 a second, bursts from 1, wants from 0.');
    end if;
    return query
    with taken as (
        insert into millrace.gateway_bucket as b (key, rate, burst, tokens, want, given, at, full_at)
        select a.key, a.rate, a.burst, a.burst - g.given, a.want, g.given, c.t, c.t + make_interval(secs => g.given / a.rate)
          from unnest(keys, rates, bursts, wants) a(key, rate, burst, want)
         cross join lateral (select least(a.want, floor(a.burst))::int as given) g
         cross join (select millrace.now() as t) c
         order by a.key
            on conflict (key) do update
           set (rate, burst, tokens, want, given, at, full_at) = (
                select excluded.rate, excluded.burst, v.there - g.given, excluded.want, g.given, greatest(b.at, excluded.at),
                       greatest(b.at, excluded.at) + make_interval(secs => least((excluded.burst - v.there + g.given) / excluded.rate, 1e9))
                  from (select least(excluded.burst, b.tokens + excluded.rate * greatest(0, extract(epoch from excluded.at - b.at)::float8)) as there) v
                 cross join lateral (select least(excluded.want, floor(v.there))::int as given) g)
        returning b.key, b.given, b.want, b.tokens, b.rate
    )
    select x.key, x.given, case when x.given >= x.want then 0 else greatest(0, (1 - x.tokens) / x.rate) end from taken x order by x.key;
end $$;
select millrace.door_is('gateway', 'gateway_take', 'gateway', 'staff');

-- Before a call that has an Idempotency-Key, in its transaction. is_new: go on, and end with gateway_end. Otherwise this is the answer that
-- was given: to this person, in this tenant. A second one at the same time waits a moment until the first has committed, or takes its place if it
-- has not. It holds a connection meanwhile, so after three seconds it is refused with 55P03, and comes again.
create or replace function millrace.gateway_begin(key text, request bytea, caller millrace.caller_name default current_user)
returns table (is_new boolean, status int, answer jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set lock_timeout = '3s' as $$
#variable_conflict use_column
declare
    me text := millrace.sync_person(gateway_begin.caller);
    the_tenant text := coalesce(millrace.caller_tenant(gateway_begin.caller), '');
    t timestamptz := millrace.now();
    kept millrace.gateway_answer;
begin
    if gateway_begin.key is null or gateway_begin.key !~ '^[!-~]+$' or length(gateway_begin.key) > millrace.most('idempotency_key') then
        perform millrace.refuse('the Idempotency-Key is missing, too long, or not printable', 'Idempotency-Key', 'Give 1 to 128 printable ASCII characters without spaces, such as a UUID.');
    end if;
    if gateway_begin.request is null then
        perform millrace.refuse('the request is missing', 'request', 'Give what the call is, or its hash: the same key with another request is refused.');
    end if;
    -- Of before answers were a tenant's.
    select * into kept from millrace.gateway_answer a where a.person = me and a.tenant = '' and a.key = gateway_begin.key and a.at >= t - interval '1 day';
    if not found then
        insert into millrace.gateway_answer as a (person, tenant, key, request, at) values (me, the_tenant, gateway_begin.key, sha256(gateway_begin.request), t)
            on conflict (person, tenant, key) do update set request = excluded.request, status = null, answer = null, at = excluded.at where a.at < t - interval '1 day';
        if found then
            return query select true, null::int, null::jsonb;
            return;
        end if;
        select * into strict kept from millrace.gateway_answer a where a.person = me and a.tenant = the_tenant and a.key = gateway_begin.key;
    end if;
    if kept.request <> sha256(gateway_begin.request) then
        perform millrace.refuse('this Idempotency-Key was used for another request', 'Idempotency-Key', 'Give each request its own key.', '23505', 'conflict');
    end if;
    if kept.status is null then
        perform millrace.refuse('the call with this Idempotency-Key was carried out, and its answer was not kept', 'Idempotency-Key',
            'It is done: read the current state.', '23505', 'conflict');
    end if;
    return query select false, kept.status, kept.answer;
end $$;
select millrace.door_is('gateway', 'gateway_begin', 'client', 'actor claims', for_apps => false);

-- Keeps the answer for a day. False: it is larger than 1 MiB and was not kept, or the person was erased.
create or replace function millrace.gateway_end(key text, status int, answer jsonb, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.sync_person(gateway_end.caller);
begin
    if gateway_end.status is null or gateway_end.status not between 100 and 599 then
        perform millrace.refuse('the status is missing or out of range', 'status', 'Give the status of the answer, 100 to 599.');
    end if;
    if millrace.true_bytes(gateway_end.answer) > millrace.most('gateway_answer') then
        return false;
    end if;
    update millrace.gateway_answer a set status = gateway_end.status, answer = gateway_end.answer
     where a.person = me and a.tenant = coalesce(millrace.caller_tenant(gateway_end.caller), '') and a.key = gateway_end.key and a.status is null;
    return found;
end $$;
select millrace.door_is('gateway', 'gateway_end', 'client', 'actor claims', for_apps => false);

-- A gateway says that it lives, every five seconds.
create or replace function millrace.gateway_beat(name text, address text default null, streams int default 0, requests bigint default 0, version text default null) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    if gateway_beat.name is null or length(gateway_beat.name) not between 1 and 128 then
        perform millrace.refuse('the name is missing or too long', 'name', 'Give 1 to 128 characters: host and process.');
    end if;
    insert into millrace.gateway as g (name, address, version, streams, requests, started_at, beat_at)
    values (gateway_beat.name, left(gateway_beat.address, 300), left(gateway_beat.version, 60), coalesce(gateway_beat.streams, 0), coalesce(gateway_beat.requests, 0), millrace.now(), millrace.now())
        on conflict (name) do update set address = excluded.address, version = excluded.version, streams = excluded.streams, requests = excluded.requests, beat_at = excluded.beat_at;
end $$;
select millrace.door_is('gateway', 'gateway_beat', 'gateway', 'staff');

-- It ends in an orderly way.
create or replace function millrace.gateway_leave(name text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    delete from millrace.gateway g where g.name = gateway_leave.name;
    return found;
end $$;
select millrace.door_is('gateway', 'gateway_leave', 'gateway', 'staff');

create or replace function millrace.gateways_shown()
returns table (name text, address text, version text, streams int, requests bigint, started_at timestamptz, beat_at timestamptz, is_silent boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select g.name, g.address, g.version, g.streams, g.requests, g.started_at, g.beat_at, g.beat_at < millrace.now() - interval '15 seconds'
      from millrace.gateway g order by g.name
$$;
select millrace.door_is('gateway', 'gateways_shown', 'worker, viewer', 'staff');

-- Whose time is over. Called by maintain.
create or replace function millrace.gateway_expire(most int default 20000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
    t timestamptz := millrace.now();
    gone bigint := 0;
    n bigint;
begin
    delete from millrace.sync_done s
     where s.ctid = any (array(select x.ctid from millrace.sync_done x where x.at < t - interval '90 days' order by x.at limit most for update skip locked));
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.sync_newest s                     -- an operation that is older is refused because of its age
     where s.ctid = any (array(select x.ctid from millrace.sync_newest x where x.at < t - interval '91 days' order by x.at limit most for update skip locked));
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.sync_device d
     where d.ctid = any (array(select x.ctid from millrace.sync_device x where x.expires_at < t order by x.expires_at limit most for update skip locked));
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.sync_person p
     where p.ctid = any (array(select x.ctid from millrace.sync_person x where x.pushed_at < t - interval '91 days' order by x.pushed_at limit most for update skip locked));
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.gateway_answer a
     where a.ctid = any (array(select x.ctid from millrace.gateway_answer x where x.at < t - interval '1 day' order by x.at limit most for update skip locked));
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.gateway_bucket b                  -- full: as if it had never been
     where b.ctid = any (array(select x.ctid from millrace.gateway_bucket x where x.full_at < t limit most for update skip locked));
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.gateway g where g.beat_at < t - interval '1 day';
    get diagnostics n = row_count;
    return gone + n;
end $$;

create or replace function millrace.gateway_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    gone bigint := 0;
    n bigint;
begin
    delete from millrace.sync_done s where s.person = gateway_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.sync_newest s where s.person = gateway_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.sync_device d where d.person = gateway_erase_person.person;
    get diagnostics n = row_count; gone := gone + n;
    delete from millrace.sync_person p where p.person = gateway_erase_person.person;
    delete from millrace.gateway_answer a where a.person = gateway_erase_person.person;
    get diagnostics n = row_count;
    return gone + n;
end $$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.gateway_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'device', d.device::text, to_jsonb(d) - array['token', 'claims'] from millrace.sync_device d where d.person = gateway_export_person.person
    union all
    select 'answer', a.tenant || '/' || a.key, to_jsonb(a) - 'request' from millrace.gateway_answer a where a.person = gateway_export_person.person
    union all
    select 'operation', s.id::text, to_jsonb(s) - 'digest' from millrace.sync_done s where s.person = gateway_export_person.person
$$;
