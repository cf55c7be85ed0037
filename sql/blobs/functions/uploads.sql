-- Links to put a blob and to get one, and the turns of the sweep. Links are signed with a key that workers derive from MILLRACE_SECRET.

-- As defined in RFC 2104.
create or replace function millrace.hmac_sha256(the_key bytea, the_text bytea) returns bytea
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    block bytea := case when octet_length(the_key) > 64 then sha256(the_key) else the_key end;
    inside bytea;
    outside bytea;
begin
    block := block || decode(repeat('00', 64 - octet_length(block)), 'hex');
    inside := block;
    outside := block;
    for n in 0 .. 63 loop
        inside := set_byte(inside, n, get_byte(block, n) # 54);
        outside := set_byte(outside, n, get_byte(block, n) # 92);
    end loop;
    return sha256(outside || sha256(inside || the_text));
end $$;

-- The key of links, and the largest document, as a worker has them configured; looks: it opens links that say what they are of. The last worker's
-- values count.
create or replace function millrace.link_key_set(the_key bytea, the_url text, the_largest bigint default null, looks boolean default false) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if the_key is null or octet_length(the_key) <> 32 or the_url is null or length(the_url) > 2048 then
        perform millrace.refuse('a key has 32 bytes, and an address is needed', 'key');
    end if;
    perform millrace.setting_put(s.name, s.value)
       from (values ('link_key', encode(the_key, 'hex')), ('link_url', rtrim(the_url, '/')), ('link_looks', looks::text)) s(name, value);
    if the_largest is not null then
        perform millrace.setting_put('document_bytes', the_largest::text);
    end if;
end $$;
select millrace.door_is('blobs', 'link_key_set', 'worker', 'staff');

-- A link by which its bearer puts one blob, of exactly this size and type. For rooms that take uploads: `storage_url` names the upload, and
-- the role and tenant that the link was made for may name the blob. No link takes more than the size of a document that the workers last
-- announced.
create or replace function millrace.upload_link(the_size bigint, the_type text, valid interval default '1 hour', the_owner text default null, the_tenant text default null, out id uuid, out url text, out storage_url text, out expires_at timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    the_key bytea := (select decode(s.value, 'hex') from millrace.setting s where s.name = 'link_key');
    base text := (select s.value from millrace.setting s where s.name = 'link_url');
    token text;
    largest bigint := least(5368709120, (select s.value::bigint from millrace.setting s where s.name = 'document_bytes'));
begin
    if the_key is null or base is null then
        perform millrace.refuse('links are not set up', 'url', 'Run a worker with MILLRACE_PUBLIC_URL and MILLRACE_SECRET.', '55000', 'unsupported');
    end if;
    if the_size is null or the_size < 1 then
        perform millrace.refuse('the size is out of range', 'size', format('Give 1 to %s bytes.', largest));
    end if;
    if the_size > largest then
        perform millrace.refuse(format('a link takes at most %s bytes, not %s', largest, the_size), 'size',
            'A document may not be larger: MILLRACE_DOCUMENT_BYTES of the workers.', '53400', 'too_large');
    end if;
    if the_type is null or length(the_type) > millrace.most('name') or the_type !~ '^[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+$' then
        perform millrace.refuse('the type is not a media type', 'mime_type', 'Give for example application/pdf, in lower case and without parameters.');
    end if;
    if valid is null or valid not between interval '1 minute' and interval '1 day' then
        perform millrace.refuse('a link is valid for a minute to a day', 'valid');
    end if;
    id := gen_random_uuid();
    expires_at := date_trunc('second', millrace.now() + valid);
    token := concat_ws('.', 'u', replace(id::text, '-', ''), the_size, extract(epoch from expires_at)::bigint, encode(convert_to(the_type, 'UTF8'), 'hex'));
    token := token || '.' || encode(millrace.hmac_sha256(the_key, convert_to('millrace link 1:' || token, 'UTF8')), 'hex');
    url := base || '/v1/uploads/' || token;
    storage_url := 'upload:' || id;
    insert into millrace.upload (id, owner, tenant, expires_at) values (upload_link.id, the_owner, the_tenant, upload_link.expires_at);
end $$;

-- A link by which its bearer reads this blob: for as long as it is valid, and as there is a reference by this owner. reader: a hash of the person that it
-- is made for, where a room asks for that. Without an owner only the time ends it.
create or replace function millrace.blob_link(the_blob bytea, the_type text, the_name text default null, valid interval default '1 hour',
    the_owner text default null, reader bytea default null) returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    the_key bytea := (select decode(s.value, 'hex') from millrace.setting s where s.name = 'link_key');
    base text := (select s.value from millrace.setting s where s.name = 'link_url');
    token text;
begin
    if the_key is null or base is null then
        perform millrace.refuse('links are not set up', 'url', 'Run a worker with MILLRACE_PUBLIC_URL and MILLRACE_SECRET.', '55000', 'unsupported');
    end if;
    token := concat_ws('.', 'g', encode(the_blob, 'hex'), extract(epoch from date_trunc('second', millrace.now() + valid))::bigint,
        encode(convert_to(the_type, 'UTF8'), 'hex'), encode(convert_to(coalesce(the_name, ''), 'UTF8'), 'hex'));
    -- A worker of an earlier version opens no such link.
    if the_owner is not null and (select s.value::boolean from millrace.setting s where s.name = 'link_looks') then
        token := concat_ws('.', token, encode(convert_to(the_owner, 'UTF8'), 'hex'), encode(coalesce(reader, ''), 'hex'));
    end if;
    return base || '/v1/blobs/' || token || '.' || encode(millrace.hmac_sha256(the_key, convert_to('millrace link 1:' || token, 'UTF8')), 'hex');
end $$;

-- Whether a link opens still: its owner holds the blob.
create or replace function millrace.blob_link_holds(the_blob bytea, the_owner text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select exists (select from millrace.blob_reference r where r.blob = the_blob and r.owner = the_owner)
$$;
select millrace.door_is('blobs', 'blob_link_holds', 'worker, gateway', 'staff');

-- Before a byte is stored: this put reserves the link until it ends, or until it has not renewed the reservation for five minutes. A used
-- link is refused here. A link of an earlier version has no row yet; its signature says everything.
create or replace function millrace.upload_reserve(the_upload uuid, the_expiry timestamptz) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    u millrace.upload := millrace.upload_locked(the_upload, the_expiry);
    hold uuid := gen_random_uuid();
begin
    if millrace.upload_is_used(u) then
        perform millrace.refuse('this link was used already', 'token', 'Ask for another.', '23505', 'conflict');
    end if;
    if u.held_until > millrace.now() then
        perform millrace.refuse('an upload through this link is under way', 'token', 'Wait until it has ended.', '55006', 'conflict');
    end if;
    update millrace.upload x set held = hold, held_until = millrace.now() + interval '5 minutes' where x.id = the_upload;
    return hold;
end $$;
select millrace.door_is('blobs', 'upload_reserve', 'worker, gateway', 'staff');

create or replace function millrace.upload_locked(the_upload uuid, the_expiry timestamptz) returns millrace.upload
language plpgsql volatile as $$
declare
    u millrace.upload;
begin
    insert into millrace.upload (id, expires_at) values (the_upload, the_expiry) on conflict do nothing;
    select * into strict u from millrace.upload x where x.id = the_upload for update;
    return u;
end $$;

-- A worker of an earlier version stores it without recording that here.
create or replace function millrace.upload_is_used(u millrace.upload) returns boolean
language sql stable as $$
    select u.used_at is not null or exists (select from millrace.blob_reference r where r.owner = 'upload:' || u.id)
$$;

-- Renews the reservation. False: another put has the link, or it was used.
create or replace function millrace.upload_renew(the_upload uuid, the_hold uuid) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    update millrace.upload u set held_until = millrace.now() + interval '5 minutes' where u.id = the_upload and u.held = the_hold;
    return found;
end $$;
select millrace.door_is('blobs', 'upload_renew', 'worker, gateway', 'staff');

-- Nothing came of it: the link is as it was.
create or replace function millrace.upload_release(the_upload uuid, the_hold uuid) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    update millrace.upload u set held = null, held_until = null where u.id = the_upload and u.held = the_hold
$$;
select millrace.door_is('blobs', 'upload_release', 'worker, gateway', 'staff');

-- An uploaded blob is kept under the link's name until a room takes it over, for two days. The role and tenant that the link was made for
-- may name it. Only the put that has reserved a link uses it, once. A worker of an earlier version reserves nothing: false when the same
-- content came again.
create or replace function millrace.upload_arrived(the_upload uuid, the_blob bytea, the_hold uuid default null) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    u millrace.upload := millrace.upload_locked(the_upload, millrace.now() + interval '1 day');
begin
    if millrace.upload_is_used(u) or u.held is distinct from coalesce(the_hold, u.held) then
        if the_hold is null and exists (select from millrace.blob_reference r where r.owner = 'upload:' || the_upload and r.blob = the_blob) then
            return false;
        end if;
        perform millrace.refuse('this link was used already', 'token', 'Ask for another.', '23505', 'conflict');
    end if;
    update millrace.upload x set used_at = millrace.now(), held = null, held_until = null where x.id = the_upload;
    if u.owner is not null or u.tenant is not null then
        perform millrace.blob_allow(the_blob, u.owner, u.tenant);
    end if;
    perform millrace.blob_release(p.blob, 'part:' || the_upload) from (select distinct x.blob from millrace.upload_part x where x.upload = the_upload) p;
    delete from millrace.upload_part x where x.upload = the_upload;
    return millrace.blob_keep(the_blob, 'upload:' || the_upload);
end $$;
select millrace.door_is('blobs', 'upload_arrived', 'worker, gateway', 'staff');

-- How many bytes have come in parts; null: the link was used, and all of them have.
create or replace function millrace.upload_came(the_upload uuid) returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select case when coalesce((select millrace.upload_is_used(u) from millrace.upload u where u.id = the_upload), false) then null
                else coalesce((select p.place + p.size from millrace.upload_part p where p.upload = the_upload order by p.n desc limit 1), 0) end
$$;
select millrace.door_is('blobs', 'upload_came', 'worker, gateway', 'staff');

-- Goes on with a put where it ended. It takes the reservation from a put that may still hold it: that of a client or a gateway which is gone would
-- keep the link for minutes, and what it adds later is refused. Null: another number of bytes has come.
create or replace function millrace.upload_resume(the_upload uuid, the_expiry timestamptz, the_place bigint) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    u millrace.upload := millrace.upload_locked(the_upload, the_expiry);
    hold uuid := gen_random_uuid();
begin
    if millrace.upload_is_used(u) then
        perform millrace.refuse('this link was used already', 'token', 'Ask for another.', '23505', 'conflict');
    end if;
    if millrace.upload_came(the_upload) is distinct from the_place then
        return null;
    end if;
    update millrace.upload x set held = hold, held_until = millrace.now() + interval '5 minutes' where x.id = the_upload;
    return hold;
end $$;
select millrace.door_is('blobs', 'upload_resume', 'worker, gateway', 'staff');

-- The next part. Its blob is kept until all have come, or for as long as an upload that nobody takes over.
create or replace function millrace.upload_part_add(the_upload uuid, the_hold uuid, the_place bigint, the_size bigint, the_blob bytea) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    last millrace.upload_part;
begin
    update millrace.upload u set held_until = millrace.now() + interval '5 minutes' where u.id = the_upload and u.held = the_hold;
    select * into last from millrace.upload_part p where p.upload = the_upload order by p.n desc limit 1;
    if not exists (select from millrace.upload u where u.id = the_upload and u.held = the_hold) or coalesce(last.place + last.size, 0) <> the_place then
        perform millrace.refuse('an upload through this link is under way', 'token', 'Wait until it has ended.', '55006', 'conflict');
    end if;
    if last.n >= 10000 then
        perform millrace.refuse('an upload comes in 10000 parts at most', 'token', 'Ask for another link, and send larger parts.', '54000', 'too_large');
    end if;
    insert into millrace.upload_part (upload, n, place, size, blob) values (the_upload, coalesce(last.n, 0) + 1, the_place, the_size, the_blob);
    perform millrace.blob_keep(the_blob, 'part:' || the_upload);
end $$;
select millrace.door_is('blobs', 'upload_part_add', 'worker, gateway', 'staff');

-- In their order.
create or replace function millrace.upload_parts(the_upload uuid) returns table (blob bytea, size bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select p.blob, p.size from millrace.upload_part p where p.upload = the_upload order by p.n
$$;
select millrace.door_is('blobs', 'upload_parts', 'worker, gateway', 'staff');

-- The uploaded blob; null: nothing yet. A room that takes it over keeps it under a name of its own, and releases this one:
-- select millrace.blob_release(blob, storage_url).
create or replace function millrace.upload_blob(the_upload uuid) returns bytea
language sql stable set search_path = pg_catalog, pg_temp as $$
    select r.blob from millrace.blob_reference r where r.owner = 'upload:' || the_upload
$$;

-- True for one worker in each span of time, which then sweeps. Uploads that no room has taken over are released, and parts of which not all have come.
create or replace function millrace.blob_sweep_turn(every interval default '1 hour') returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    one record;
begin
    if not millrace.setting_turn('blobs_swept_at', every) then
        return false;
    end if;
    for one in select r.blob, r.owner from millrace.blob_reference r where (r.owner like 'upload:%' or r.owner like 'part:%') and r.at <= t - interval '2 days' limit 10000 loop
        perform millrace.blob_release(one.blob, one.owner);
    end loop;
    delete from millrace.upload u where u.id = any (array(select x.id from millrace.upload x where x.expires_at <= t - interval '2 days' order by x.expires_at limit 10000));
    return true;
end $$;
select millrace.door_is('blobs', 'blob_sweep_turn', 'worker', 'staff');

-- Joins in person_erase, behind the documents. What a person's own tenant has is nobody's; it is not counted.
create or replace function millrace.blobs_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    nobody text := 'erased:' || gen_random_uuid();
begin
    update millrace.upload u set tenant = nobody where u.tenant = millrace.personal_tenant(blobs_erase_person.person);
    update millrace.blob_grant g set tenant = nobody where g.tenant = millrace.personal_tenant(blobs_erase_person.person);
    return 0;
end $$;
