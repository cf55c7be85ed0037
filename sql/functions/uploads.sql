-- Links to put a blob and to get one, and the turns of the sweep. Links are signed with a key that workers derive from MILLRACE_SECRET.

-- By its definition (RFC 2104).
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

-- What links are made with, as a worker has it configured. The last one to say so counts.
create or replace function millrace.link_key_set(the_key bytea, the_url text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if the_key is null or octet_length(the_key) <> 32 or the_url is null or length(the_url) > 2048 then
        perform millrace.refuse('a key has 32 bytes, and an address is needed', 'key');
    end if;
    insert into millrace.setting (name, value) values ('link_key', encode(the_key, 'hex')), ('link_url', rtrim(the_url, '/'))
        on conflict (name) do update set value = excluded.value where setting.value <> excluded.value;
end $$;

-- A link to which whoever has it puts one blob, of exactly this size and type. For rooms that take uploads: `storage_url` names what came.
create or replace function millrace.upload_link(the_size bigint, the_type text, valid interval default '1 hour', out id uuid, out url text, out storage_url text, out expires_at timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    the_key bytea := (select decode(s.value, 'hex') from millrace.setting s where s.name = 'link_key');
    base text := (select s.value from millrace.setting s where s.name = 'link_url');
    token text;
begin
    if the_key is null or base is null then
        perform millrace.refuse('nobody has said how links are made', 'url', 'Run a worker with MILLRACE_PUBLIC_URL and MILLRACE_SECRET.', '55000', 'unsupported');
    end if;
    if the_size is null or the_size not between 1 and 5368709120 then
        perform millrace.refuse('the size is out of range', 'size', 'Give 1 to 5368709120 bytes.');
    end if;
    if the_type is null or length(the_type) > 127 or the_type !~ '^[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+$' then
        perform millrace.refuse('the type is no media type', 'mime_type', 'Give for example application/pdf, in lower case and without parameters.');
    end if;
    if valid is null or valid not between interval '1 minute' and interval '1 day' then
        perform millrace.refuse('a link is good for a minute to a day', 'valid');
    end if;
    id := gen_random_uuid();
    expires_at := date_trunc('second', millrace.now() + valid);
    token := concat_ws('.', 'u', replace(id::text, '-', ''), the_size, extract(epoch from expires_at)::bigint, encode(convert_to(the_type, 'UTF8'), 'hex'));
    token := token || '.' || encode(millrace.hmac_sha256(the_key, convert_to('millrace link 1:' || token, 'UTF8')), 'hex');
    url := base || '/v1/uploads/' || token;
    storage_url := 'upload:' || id;
end $$;

-- A link from which whoever has it reads this blob.
create or replace function millrace.blob_link(the_blob bytea, the_type text, the_name text default null, valid interval default '1 hour') returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    the_key bytea := (select decode(s.value, 'hex') from millrace.setting s where s.name = 'link_key');
    base text := (select s.value from millrace.setting s where s.name = 'link_url');
    token text;
begin
    if the_key is null or base is null then
        perform millrace.refuse('nobody has said how links are made', 'url', 'Run a worker with MILLRACE_PUBLIC_URL and MILLRACE_SECRET.', '55000', 'unsupported');
    end if;
    token := concat_ws('.', 'g', encode(the_blob, 'hex'), extract(epoch from date_trunc('second', millrace.now() + valid))::bigint,
        encode(convert_to(the_type, 'UTF8'), 'hex'), encode(convert_to(coalesce(the_name, ''), 'UTF8'), 'hex'));
    return base || '/v1/blobs/' || token || '.' || encode(millrace.hmac_sha256(the_key, convert_to('millrace link 1:' || token, 'UTF8')), 'hex');
end $$;

-- What came by a link is kept under the link's name until a room takes it over, for two days. A link is used once: false when the same
-- content has come again.
create or replace function millrace.upload_arrived(the_upload uuid, the_blob bytea) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    other bytea;
begin
    perform millrace.turns_wait('upload', array[hashtext(the_upload::text) & 63]);
    select r.blob into other from millrace.blob_reference r where r.owner = 'upload:' || the_upload;
    if found then
        if other <> the_blob then
            perform millrace.refuse('this link was used already', 'token', 'Ask for another.', '23505', 'conflict');
        end if;
        return false;
    end if;
    return millrace.blob_keep(the_blob, 'upload:' || the_upload);
end $$;

-- What came; null: nothing yet. A room that takes it over keeps it under a name of its own, and lets this one go:
-- select millrace.blob_release(blob, storage_url).
create or replace function millrace.upload_blob(the_upload uuid) returns bytea
language sql stable set search_path = pg_catalog, pg_temp as $$
    select r.blob from millrace.blob_reference r where r.owner = 'upload:' || the_upload
$$;

-- True for one worker in each span of time: that one sweeps. What came by links and nobody has taken over is let go.
create or replace function millrace.blob_sweep_turn(every interval default '1 hour') returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    one record;
begin
    insert into millrace.setting as s (name, value) values ('blobs_swept_at', t::text)
        on conflict (name) do update set value = excluded.value where s.value::timestamptz <= t - every;
    if not found then
        return false;
    end if;
    for one in select r.blob, r.owner from millrace.blob_reference r where r.owner like 'upload:%' and r.at <= t - interval '2 days' limit 10000 loop
        perform millrace.blob_release(one.blob, one.owner);
    end loop;
    return true;
end $$;
