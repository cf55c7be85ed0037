-- Blobs: the functions of the Blobs room, and those of rooms that keep blobs.

create or replace function millrace.blob(the_id bytea)
returns table (id bytea, size bigint, stored_at timestamptz, refs bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select b.id, b.size, b.stored_at, (select count(*) from millrace.blob_reference r where r.blob = b.id)
      from millrace.blob b where b.id = the_id
$$;
select millrace.door_is('blobs', 'blob', 'worker, operator, gateway', 'staff');

create or replace function millrace.blob_list(after bytea default null, page int default 50)
returns table (id bytea, size bigint, stored_at timestamptz, refs bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select b.id, b.size, b.stored_at, (select count(*) from millrace.blob_reference r where r.blob = b.id)
      from millrace.blob b where after is null or b.id > after order by b.id limit least(page, 500)
$$;
select millrace.door_is('blobs', 'blob_list', 'worker', 'staff');

-- Its content lies elsewhere, and will be in its place in a moment. Waits for a sweep that deletes it.
create or replace function millrace.blob_touch(the_id bytea, the_size bigint) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    insert into millrace.blob as b (id, size, stored_at, touched_at) values (the_id, the_size, millrace.now(), millrace.now())
        on conflict (id) do update set touched_at = greatest(b.touched_at, excluded.touched_at)
$$;
select millrace.door_is('blobs', 'blob_touch', 'worker, gateway', 'staff');

create or replace function millrace.blob_upload() returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    insert into millrace.blob_upload (id, at) values (nextval('millrace.blob_upload_seq'), millrace.now()) returning id
$$;
select millrace.door_is('blobs', 'blob_upload', 'worker, gateway', 'staff');

-- Locks the put, so that a sweep does not take it for a broken-off one.
create or replace function millrace.blob_stage(the_upload bigint, the_n int, the_bytes bytea) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform from millrace.blob_upload u where u.id = the_upload for key share;
    if not found then
        perform millrace.refuse('this upload was given up: it took longer than the sweep allows', 'upload', 'Upload it again.', '55000', 'conflict');
    end if;
    -- A put of many pieces is alive for as long as they come.
    update millrace.blob_upload u set at = millrace.now() where u.id = the_upload and u.at < millrace.now() - interval '10 minutes';
    insert into millrace.blob_piece (upload, n, bytes) values (the_upload, the_n, the_bytes);
end $$;
select millrace.door_is('blobs', 'blob_stage', 'worker, gateway', 'staff');

-- The staged pieces become the blob, or go if it is there already.
create or replace function millrace.blob_store(the_upload bigint, the_id bytea, the_size bigint) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    stored bigint;
begin
    delete from millrace.blob_upload u where u.id = the_upload;
    if not found then
        perform millrace.refuse('this upload was given up: it took longer than the sweep allows', 'upload', 'Upload it again.', '55000', 'conflict');
    end if;
    insert into millrace.blob as b (id, size, upload, stored_at, touched_at) values (the_id, the_size, the_upload, millrace.now(), millrace.now())
        on conflict (id) do update set touched_at = greatest(b.touched_at, excluded.touched_at), upload = coalesce(b.upload, excluded.upload)
        returning upload into stored;
    if stored <> the_upload then
        delete from millrace.blob_piece p where p.upload = the_upload;
    end if;
    return stored = the_upload;
end $$;
select millrace.door_is('blobs', 'blob_store', 'worker, gateway', 'staff');

-- All of it at once, where it is no more than a piece.
create or replace function millrace.blob_put(the_id bytea, the_bytes bytea) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    own bigint := millrace.blob_upload();
begin
    if octet_length(the_bytes) > 0 then
        perform millrace.blob_stage(own, 0, the_bytes);
    end if;
    return millrace.blob_store(own, the_id, octet_length(the_bytes));
end $$;
select millrace.door_is('blobs', 'blob_put', 'worker, gateway', 'staff');

create or replace function millrace.blob_drop(the_upload bigint) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.blob_upload u where u.id = the_upload;
    if found then
        delete from millrace.blob_piece p where p.upload = the_upload;
    end if;
end $$;
select millrace.door_is('blobs', 'blob_drop', 'worker, gateway', 'staff');

-- Its size; null when its content is not here. Noted as read, once an hour at most.
create or replace function millrace.blob_open(the_id bytea) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    update millrace.blob b set touched_at = millrace.now() where b.id = the_id and b.touched_at < millrace.now() - interval '1 hour';
    return (select b.size from millrace.blob b where b.id = the_id and b.upload is not null);
end $$;
select millrace.door_is('blobs', 'blob_open', 'worker, operator, gateway', 'staff');

create or replace function millrace.blob_piece(the_id bytea, the_n int) returns bytea
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
begin
    return (select p.bytes from millrace.blob b join millrace.blob_piece p on p.upload = b.upload where b.id = the_id and p.n = the_n);
end $$;
select millrace.door_is('blobs', 'blob_piece', 'worker, operator, gateway', 'staff');

-- In the transaction that writes down why. The reference locks the blob: a sweep waits for it, or it for the sweep.
create or replace function millrace.blob_keep(the_id bytea, the_owner text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if the_owner is null or length(the_owner) not between 1 and 256 then
        perform millrace.refuse('an owner has 1 to 256 characters', 'owner');
    end if;
    perform from millrace.blob b where b.id = the_id for key share;
    if not found then
        perform millrace.refuse(format('there is no blob %s', encode(the_id, 'hex')), 'blob', 'Put its content first.', 'P0002', 'not_found');
    end if;
    insert into millrace.blob_reference (blob, owner, at) values (the_id, the_owner, millrace.now()) on conflict do nothing;
    return found;
end $$;
select millrace.door_is('blobs', 'blob_keep', 'worker, gateway', 'staff');

-- The grace period starts again, so a reader that has the blob open can finish.
create or replace function millrace.blob_release(the_id bytea, the_owner text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.blob_reference r where r.blob = the_id and r.owner = the_owner;
    if not found then
        return false;
    end if;
    update millrace.blob b set touched_at = millrace.now() where b.id = the_id;
    return true;
end $$;
select millrace.door_is('blobs', 'blob_release', 'worker, gateway', 'staff');

create or replace function millrace.blobs_forsaken(grace interval, after bytea default null, page int default 500)
returns table (id bytea, size bigint, stored_at timestamptz, refs bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select b.id, b.size, b.stored_at, 0::bigint
      from millrace.blob b
     where (after is null or b.id > after) and b.touched_at <= millrace.now() - grace
       and not exists (select from millrace.blob_reference r where r.blob = b.id)
     order by b.id limit least(page, 500)
$$;
select millrace.door_is('blobs', 'blobs_forsaken', 'worker', 'staff');

-- Deletes the blob if it may still be deleted: it takes the lock first, and then checks again whether anything refers to the blob.
create or replace function millrace.blob_forget(the_id bytea, grace interval) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_upload bigint;
begin
    select b.upload into the_upload from millrace.blob b where b.id = the_id and b.touched_at <= millrace.now() - grace for update;
    if not found or exists (select from millrace.blob_reference r where r.blob = the_id) then
        return false;
    end if;
    delete from millrace.blob b where b.id = the_id;
    delete from millrace.blob_piece p where p.upload = the_upload;
    return true;
end $$;
select millrace.door_is('blobs', 'blob_forget', 'worker', 'staff');

-- Puts that were broken off: of theirs nothing has come for an hour. Nobody can refer to them, so they need no longer grace.
create or replace function millrace.blob_uploads_expire(grace interval) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    gone bigint[];
begin
    with old as (
        delete from millrace.blob_upload u
         where u.id = any (array(select x.id from millrace.blob_upload x where x.at <= millrace.now() - least(grace, interval '1 hour') order by x.id limit 1000 for update skip locked))
        returning u.id
    )
    select coalesce(array_agg(o.id), '{}') into gone from old o;
    delete from millrace.blob_piece p where p.upload = any (gone);
    return cardinality(gone);
end $$;
select millrace.door_is('blobs', 'blob_uploads_expire', 'worker', 'staff');

-- Whether a grant to this role and tenant applies to the caller. As elsewhere, claims keep a caller within its tenant, and a caller without
-- claims has what its role has.
create or replace function millrace.blob_grant_is_for(the_owner text, the_tenant text, me text, my_tenant text) returns boolean
language sql immutable parallel safe as $$
    select coalesce(case when the_owner is null then the_tenant = my_tenant
                         else the_owner = me and (my_tenant is null or my_tenant = the_tenant) end, false)
$$;

-- May the caller name this blob? Staff may name any. For a blob that is not there the answer is no, as for another's.
create or replace function millrace.blob_may_use(the_blob bytea, me text, me_is_staff boolean, my_tenant text) returns boolean
language sql stable as $$
    select me_is_staff
        or exists (select from millrace.blob_grant g where g.blob = the_blob and millrace.blob_grant_is_for(g.owner, g.tenant, me, my_tenant))
$$;

-- From now on callers with this role may name the blob. With a tenant, only callers within it may; without a role, any caller within the
-- tenant. Used by rooms that receive content, and by staff. False when it was allowed already.
create or replace function millrace.blob_allow(the_blob bytea, the_role text, the_tenant text default null) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if the_role is null and the_tenant is null then
        perform millrace.refuse('neither a role nor a tenant is given for the blob', 'role', 'Give a role, a tenant, or both.');
    end if;
    if length(the_role) not between 1 and 63 or millrace.is_no_tenant(the_tenant) then
        perform millrace.refuse('the role or the tenant is empty or too long', 'role', 'A role has 1 to 63 characters, a tenant 1 to 128.');
    end if;
    perform from millrace.blob b where b.id = the_blob for key share;
    if not found then
        perform millrace.refuse(format('there is no blob %s', encode(the_blob, 'hex')), 'blob', 'Put its content first.', 'P0002', 'not_found');
    end if;
    insert into millrace.blob_grant (blob, owner, tenant, at) values (the_blob, the_role, the_tenant, millrace.now()) on conflict do nothing;
    return found;
end $$;
select millrace.door_is('blobs', 'blob_allow', 'worker, gateway', 'staff');
