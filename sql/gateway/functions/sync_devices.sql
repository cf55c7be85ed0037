-- Tokens of devices, for the offline intake alone: a phone that wakes up without a fresh web token can still hand in what it kept.

create or replace function millrace.sync_token_hash(token text) returns bytea
language sql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
    select sha256(convert_to('sync device ' || token, 'UTF8'))
$$;

-- A new token, shown this once; only its hash is kept. The device's last token is no good any more.
create or replace function millrace.sync_device_add(device text, name text default null, caller millrace.caller_name default current_user) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.sync_person(sync_device_add.caller);
    claims jsonb := millrace.claims(sync_device_add.caller);
    t timestamptz := millrace.now();
    token text := rtrim(translate(encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64'), '+/', '-_'), '=');
    n int;
begin
    perform millrace.sync_device_named(sync_device_add.device);
    if claims ? 'device' then
        perform millrace.refuse('a device token cannot add devices', 'device', 'Use the token of a signed-in person.', '42501', 'permission');
    end if;
    if length(btrim(sync_device_add.name)) not between 1 and millrace.most('display_name') or sync_device_add.name ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the name is blank, too long, or has control characters', 'name', 'Give 1 to 100 characters, for instance the model, or null.');
    end if;
    perform millrace.sync_turn(me);
    delete from millrace.sync_device d where d.person = me and (d.expires_at < t or d.device = sync_device_add.device);
    select count(*) into n from millrace.sync_device d where d.person = me;
    if n >= millrace.counted('offline_devices') then
        perform millrace.refuse_quota('this person already has 20 devices with a token', 'device', 'Remove one with sync_device_remove.', millrace.counted('offline_devices'), n,
            (select min(d.expires_at) from millrace.sync_device d where d.person = me));
    end if;
    insert into millrace.sync_device (person, device, name, token, claims, made_at, expires_at)
    values (me, sync_device_add.device, btrim(sync_device_add.name), millrace.sync_token_hash(token),
            jsonb_strip_nulls(jsonb_build_object('sub', me, 'tenant', claims -> 'tenant', 'role', claims -> 'role', 'device', sync_device_add.device)), t, t + interval '90 days');
    return token;
end $$;
select millrace.door_is('gateway', 'sync_device_add', 'client', 'actor claims',
    'Creates a token for a device, valid for the offline intake only.');

-- False: there was none.
create or replace function millrace.sync_device_remove(device text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.sync_person(sync_device_remove.caller);
begin
    if coalesce(millrace.claims(sync_device_remove.caller) ->> 'device', sync_device_remove.device) is distinct from sync_device_remove.device then
        perform millrace.refuse('a device token can only remove its own device', 'device', 'Use the token of a signed-in person.', '42501', 'permission');
    end if;
    delete from millrace.sync_device d where d.person = me and d.device = sync_device_remove.device;
    return found;
end $$;
select millrace.door_is('gateway', 'sync_device_remove', 'client', 'actor claims', 'Ends the token of a device.',
    who_may => array['remove the token of one of their devices: itself']);

create or replace function millrace.sync_devices(caller millrace.caller_name default current_user)
returns table (device text, name text, made_at timestamptz, used_at timestamptz, expires_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.sync_person(sync_devices.caller);
begin
    return query select d.device, d.name, d.made_at, d.used_at, d.expires_at from millrace.sync_device d
      where d.person = me and d.expires_at >= millrace.now() order by d.made_at, d.device;
end $$;
select millrace.door_is('gateway', 'sync_devices', 'client', 'actor claims',
    'The person''s devices that have a token.');

-- For gateways: the claims that go with a device token, with `exp` as a web token has it; null: it is not known, or its time is over. Use
-- extends it; that is written once an hour at most.
create or replace function millrace.sync_device_claims(token text) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    d millrace.sync_device;
begin
    if token is null or length(token) <> 43 then
        return null;
    end if;
    select * into d from millrace.sync_device x where x.token = millrace.sync_token_hash(sync_device_claims.token) and x.expires_at >= t;
    if not found then
        return null;
    end if;
    if d.used_at is null or d.used_at < t - interval '1 hour' then
        d.expires_at := t + interval '90 days';
        update millrace.sync_device x set used_at = t, expires_at = d.expires_at where x.token = d.token;
    end if;
    return d.claims || jsonb_build_object('exp', floor(extract(epoch from d.expires_at)));
end $$;
select millrace.door_is('gateway', 'sync_device_claims', 'gateway', 'staff');
