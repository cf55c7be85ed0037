-- Targets of events, with their secrets; for operators.

create or replace function millrace.webhook_must(the_id uuid) returns millrace.webhook
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.webhook;
begin
    select * into one from millrace.webhook w where w.id = the_id for no key update;
    if not found then
        perform millrace.refuse(format('there is no webhook %s', coalesce(the_id::text, '(null)')), 'id', 'See millrace webhooks list.', 'P0002', 'not_found');
    end if;
    return one;
end $$;

-- Whether a target wants an event. The caller compares their places in the feed.
create or replace function millrace.webhook_wants(w millrace.webhook, the_type text, the_tenant text) returns boolean
language sql immutable as $$
    select (w.tenant is null or coalesce(w.tenant = the_tenant, false))
       and exists (select from unnest(w.types) t where t = the_type or (right(t, 1) = '*' and starts_with(the_type, left(t, -1))))
$$;

-- 244 bits from the server's own generator, as Standard Webhooks writes a secret.
create or replace function millrace.webhook_new_secret() returns text
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select 'whsec_' || encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64')
$$;

-- The secret is shown this once. `sealed` is one that the caller has made and encrypted: then the database never sees it.
create or replace function millrace.webhook_add(
    url text, types text[], mode text default 'binary', tenant text default null, handshake boolean default true, given uuid default null, sealed jsonb default null,
    caller millrace.caller_name default current_user
) returns table (id uuid, secret text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    the_id uuid := coalesce(webhook_add.given, gen_random_uuid());
    the_secret text := case when webhook_add.sealed is null then millrace.webhook_new_secret() end;
    one text;
begin
    if webhook_add.url is null or length(webhook_add.url) > 2048 or webhook_add.url !~ E'^https?://[^/?#@\\s]+([/?][^\\s#]*)?$'
        or webhook_add.url ~ E'[^\\u0021-\\u007e]' then
        perform millrace.refuse('the url is not an address for a webhook', 'url',
            'Give https://host/path, without a user, a password, a fragment or spaces; other characters percent-encoded.');
    end if;
    if coalesce(cardinality(webhook_add.types), 0) not between 1 and 50 then
        perform millrace.refuse('types has to name 1 to 50 types', 'types', 'Give for example {com.example.order.paid}, {com.example.*} or {*}.');
    end if;
    foreach one in array webhook_add.types loop
        if one is null or one !~ E'^([A-Za-z0-9][A-Za-z0-9_.:/-]{0,127})?\\*?$' or one = '' then
            perform millrace.refuse(format('the type %L is malformed', left(one, 60)), 'types', 'A type as events have it, optionally with a * at its end.');
        end if;
    end loop;
    if webhook_add.mode is null or webhook_add.mode not in ('binary', 'structured', 'batch') then
        perform millrace.refuse('the mode is unknown', 'mode', 'Give binary, structured, or batch for a target that takes lists.');
    end if;
    if millrace.is_no_tenant(webhook_add.tenant) or webhook_add.tenant ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the tenant is empty, too long, or has control characters', 'tenant', 'Give 1 to 128 characters, or null.');
    end if;
    if webhook_add.sealed is not null and not millrace.is_sealed(webhook_add.sealed) then
        perform millrace.refuse('sealed is not an encrypted secret', 'sealed', 'Leave it out: a secret will be generated.');
    end if;
    -- Events published before this webhook are not for it, even if they get their numbers later.
    perform millrace.events_number(1000000);
    insert into millrace.webhook (id, url, types, mode, tenant, handshake, state, since, rate_at, blocked_until, created_at)
    values (the_id, webhook_add.url, webhook_add.types, webhook_add.mode, webhook_add.tenant, coalesce(webhook_add.handshake, true),
            case when coalesce(webhook_add.handshake, true) then 'pending' else 'active' end,
            greatest((select max(e.seq) from millrace.event e), (select f.seq from millrace.webhook_feed f)), t, t, t)
        on conflict do nothing;
    if not found then
        perform millrace.refuse(format('there is already a webhook %s', the_id), 'given', 'Leave the id out.', '23505', 'conflict');
    end if;
    insert into millrace.webhook_secret (webhook, n, secret) values (the_id, 1, coalesce(webhook_add.sealed, to_jsonb(the_secret)));
    perform pg_notify('millrace_webhooks', '');
    perform millrace.audited('webhook.add', the_id::text, jsonb_build_object('url', regexp_replace(webhook_add.url, E'\\?.*$', '?…'), 'types', webhook_add.types,
        'tenant', webhook_add.tenant), caller => webhook_add.caller);
    return query select the_id, the_secret;
end $$;
select millrace.door_is('webhooks', 'webhook_add', 'admin', 'staff', audited => true);

-- A new secret. The older ones sign as well until the overlap is over.
create or replace function millrace.webhook_rotate(id uuid, overlap interval default '1 day', sealed jsonb default null, caller millrace.caller_name default current_user) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    one millrace.webhook := millrace.webhook_must(webhook_rotate.id);
    the_secret text := case when webhook_rotate.sealed is null then millrace.webhook_new_secret() end;
begin
    if webhook_rotate.overlap is null or webhook_rotate.overlap not between interval '0' and interval '30 days' then
        perform millrace.refuse('the overlap is out of range', 'overlap', 'Give an interval from 0 to 30 days.');
    end if;
    if webhook_rotate.sealed is not null and not millrace.is_sealed(webhook_rotate.sealed) then
        perform millrace.refuse('sealed is not an encrypted secret', 'sealed', 'Leave it out: a secret will be generated.');
    end if;
    delete from millrace.webhook_secret s where s.webhook = one.id and s.until <= t;
    if (select count(*) from millrace.webhook_secret s where s.webhook = one.id) >= millrace.counted('secrets') then
        perform millrace.refuse('five secrets are already in use', 'id', 'Wait until one of the overlaps is over.', '55000', 'conflict');
    end if;
    update millrace.webhook_secret s set until = least(s.until, t + webhook_rotate.overlap) where s.webhook = one.id;
    insert into millrace.webhook_secret (webhook, n, secret)
    select one.id, max(s.n) + 1, coalesce(webhook_rotate.sealed, to_jsonb(the_secret)) from millrace.webhook_secret s where s.webhook = one.id;
    delete from millrace.webhook_secret s where s.webhook = one.id and s.until <= t;
    perform millrace.audited('webhook.rotate', one.id::text, jsonb_build_object('overlap', webhook_rotate.overlap), caller => webhook_rotate.caller);
    return the_secret;
end $$;
select millrace.door_is('webhooks', 'webhook_rotate', 'admin', 'staff', audited => true);

-- With all that is known of it.
create or replace function millrace.webhook_remove(id uuid, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.webhook w where w.id = webhook_remove.id;
    if not found then
        return false;
    end if;
    perform millrace.provider_forget('webhook:' || webhook_remove.id);
    perform millrace.audited('webhook.remove', webhook_remove.id::text, null, caller => webhook_remove.caller);
    return true;
end $$;
select millrace.door_is('webhooks', 'webhook_remove', 'admin', 'staff', audited => true);

create or replace function millrace.webhook_disable(the_id uuid, why text) returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    update millrace.webhook w
       set state = 'disabled', passed_since = null, reason = left(why, 500), since = greatest(w.since, (select f.seq from millrace.webhook_feed f))
     where w.id = the_id and w.state <> 'disabled'
$$;

-- An enabled target continues where it was: deliveries that it had not taken are due, and kept events since then follow.
create or replace function millrace.webhook_enable(id uuid, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    fed bigint;
    one millrace.webhook;
begin
    select f.seq into fed from millrace.webhook_feed f for update;     -- nobody makes deliveries meanwhile
    one := millrace.webhook_must(webhook_enable.id);
    if one.state <> 'disabled' then
        return false;
    end if;
    update millrace.webhook w
       set state = case when w.handshake then 'pending' else 'active' end, reason = null, tries = 0, failing_since = null, blocked_until = t
     where w.id = one.id;
    update millrace.webhook_delivery d set due_at = t, attempts = 0, token = null, first_at = null where d.webhook = one.id and d.state = 'pending';
    insert into millrace.webhook_delivery (webhook, event, seq, state, due_at)
    select one.id, e.id, e.seq, 'pending', t from millrace.event e
     where e.seq > one.since and e.seq <= fed and millrace.webhook_wants(one, e.type, e.tenant)
        on conflict do nothing;
    perform pg_notify('millrace_webhooks', '');
    perform millrace.audited('webhook.enable', one.id::text, null, caller => webhook_enable.caller);
    return true;
end $$;
select millrace.door_is('webhooks', 'webhook_enable', 'admin, operator', 'staff', audited => true);

-- Sends an event again, or to those who were added since: to all that it is for, or to one of them. How many.
create or replace function millrace.webhook_redeliver(event uuid, webhook uuid default null, caller millrace.caller_name default current_user) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    e millrace.event;
    one millrace.webhook;
    n int;
begin
    perform millrace.events_number();
    select x.* into e from millrace.event x where x.id = webhook_redeliver.event;
    if not found then
        perform millrace.refuse(format('there is no event %s', coalesce(webhook_redeliver.event::text, '(null)')), 'event', 'Events are kept for 14 days.', 'P0002', 'not_found');
    end if;
    if webhook_redeliver.webhook is not null then
        one := millrace.webhook_must(webhook_redeliver.webhook);
        if one.state = 'disabled' then
            perform millrace.refuse(format('webhook %s is disabled', one.id), 'webhook', 'Enable it first: millrace webhooks enable.', '55000', 'conflict');
        end if;
    end if;
    insert into millrace.webhook_delivery as d (webhook, event, seq, state, due_at)
    select w.id, e.id, coalesce(e.seq, (select s.last_value from millrace.event_seq s)), 'pending', t from millrace.webhook w
     where w.state <> 'disabled' and (webhook_redeliver.webhook is null or w.id = webhook_redeliver.webhook) and millrace.webhook_wants(w, e.type, e.tenant)
        on conflict (webhook, event) do update
       set state = 'pending', due_at = t, token = null, attempts = 0, alone = false, first_at = null, done_at = null;
    get diagnostics n = row_count;
    perform pg_notify('millrace_webhooks', '');
    if n > 0 then
        perform millrace.audited('webhook.redeliver', webhook_redeliver.event::text, jsonb_build_object('webhook', webhook_redeliver.webhook, 'webhooks', n), caller => webhook_redeliver.caller);
    end if;
    return n;
end $$;
select millrace.door_is('webhooks', 'webhook_redeliver', 'admin, operator', 'staff', audited => true);

-- The query of an address may contain a secret, so it is not shown.
create or replace view millrace.webhooks as
select w.id, regexp_replace(w.url, E'\\?.*$', '?…') as url, w.types, w.mode, w.tenant, w.state, w.reason, w.handshake, w.rate,
       (select count(*)::int from millrace.webhook_secret s where s.webhook = w.id) as secrets,
       (select count(*)::int from (select from millrace.webhook_delivery d where d.webhook = w.id and d.state = 'pending' limit 10000) x) as waiting,
       w.failing_since, w.succeeded_at, greatest(w.blocked_until, w.created_at) as blocked_until, w.created_at
  from millrace.webhook w;
select millrace.view_is('webhooks', 'webhooks', 'worker, viewer');

create or replace view millrace.webhook_deliveries as
select d.webhook, d.event, d.seq, d.state, d.attempts, d.code, d.error, d.due_at, d.first_at, d.done_at from millrace.webhook_delivery d;
select millrace.view_is('webhooks', 'webhook_deliveries', 'worker, viewer');

-- The figures for `status`: due deliveries that no worker has claimed count as late.
create or replace function millrace.webhook_state(out targets int, out disabled int, out waiting bigint, out late_s float8, out unsealed int, out keys text[])
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
begin
    select count(*)::int, (count(*) filter (where w.state = 'disabled'))::int into targets, disabled from millrace.webhook w;
    waiting := (select count(*) from (select from millrace.webhook_delivery d join millrace.webhook w on w.id = d.webhook
                                       where d.state = 'pending' and w.state <> 'disabled' limit 10000) x);
    late_s := (select extract(epoch from t - min(greatest(d.due_at, w.blocked_until))) from millrace.webhook w
                 cross join lateral (select x.due_at from millrace.webhook_delivery x where x.webhook = w.id and x.state = 'pending' order by x.due_at limit 1) d
                where w.state <> 'disabled' and w.blocked_until <= t and d.due_at <= t);
    select (count(*) filter (where s.secret ->> '$millrace' is null))::int, coalesce(array_agg(distinct s.secret ->> 'key') filter (where s.secret ->> 'key' is not null), '{}')
      into unsealed, keys from millrace.webhook_secret s where s.until is null or s.until > t;
end $$;
select millrace.door_is('webhooks', 'webhook_state', 'worker, viewer', 'staff');

-- Those that a worker's first key has not encrypted.
create or replace function millrace.webhook_secrets(the_key text, page int default 100) returns table (webhook uuid, n int, secret jsonb)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select s.webhook, s.n, s.secret from millrace.webhook_secret s where s.secret ->> 'key' is distinct from the_key order by s.webhook, s.n limit least(page, 500)
$$;
select millrace.door_is('webhooks', 'webhook_secrets', 'worker', 'staff');

create or replace function millrace.webhook_seal(webhook uuid, n int, old jsonb, new jsonb) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not millrace.is_sealed(webhook_seal.new) then
        perform millrace.refuse('the new secret is not encrypted', 'new');
    end if;
    update millrace.webhook_secret s set secret = webhook_seal.new
     where s.webhook = webhook_seal.webhook and s.n = webhook_seal.n and s.secret = webhook_seal.old;
    return found;
end $$;
select millrace.door_is('webhooks', 'webhook_seal', 'worker', 'staff');

-- What status says of this room: see room_states.
create or replace function millrace.webhook_status_part() returns jsonb
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select to_jsonb(s) from millrace.webhook_state() s
$$;
