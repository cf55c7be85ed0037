-- What a worker does for media. Every call locks the row before the lease.

-- The row, locked, if this run may still do something for it; else null.
create or replace function millrace.media_held(token text, the_id uuid) returns millrace.media
language plpgsql volatile as $$
declare
    m millrace.media;
    run record;
begin
    select * into m from millrace.media x where x.id = the_id and x.status = 'waiting' for no key update;
    if not found then
        return null;
    end if;
    select * into run from millrace.live_run(token);
    if m.job is distinct from run.job then
        return null;
    end if;
    return m;
end $$;

-- One row when there is something to do.
create or replace function millrace.media_take(token text, the_id uuid) returns table (what text, blob bytea, wish jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    m millrace.media := millrace.media_held(media_take.token, media_take.the_id);
begin
    if m.id is not null then
        return query select m.what, m.blob, m.wish;
    end if;
end $$;
select millrace.door_is('media', 'media_take', 'worker', 'staff');

-- With the row locked.
create or replace function millrace.media_end(m millrace.media, the_status text, the_type text, the_reason text, the_sentence text) returns void
language plpgsql volatile as $$
begin
    if m.blob is not null then
        perform millrace.blob_release(m.blob, 'media:' || m.id);
    end if;
    perform millrace.media_pictures_gone(m);
    update millrace.media x
       set status = the_status, blob = null, wish = null, mime_type = the_type, reason = the_reason, sentence = left(the_sentence, 500), ended_at = millrace.now()
     where x.id = m.id;
    perform millrace.media_told(m, the_status, jsonb_strip_nulls(jsonb_build_object('reason', the_reason, 'files', nullif(millrace.media_files(m.id), '[]'))));
end $$;

-- Records the files that were made, and ends the run: made; over: there is nothing to do any more; quota: the tenant may not store as much, and
-- nothing is recorded. files: [{kind, blob, size, mime_type, width, height}].
create or replace function millrace.media_made(token text, the_id uuid, the_type text, files jsonb, spent int, result jsonb default '{}') returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    m millrace.media := millrace.media_held(media_made.token, media_made.the_id);
    one record;
begin
    if m.id is null then
        return 'over';
    end if;
    perform millrace.quota_use(m.tenant, 'cpu_seconds', spent / 1000.0, false);
    if not millrace.quota_use(m.tenant, 'bytes', (select sum((f ->> 'size')::bigint) from jsonb_array_elements(files) f)) then
        return 'quota';
    end if;
    for one in select f.kind, decode(f.blob, 'hex') as blob, f.size, f.mime_type, f.width, f.height
                 from jsonb_to_recordset(files) f(kind text, blob text, size bigint, mime_type text, width int, height int) order by f.blob
    loop
        perform millrace.blob_keep(one.blob, 'media:' || m.id || ':' || one.kind);
        perform millrace.blob_allow(one.blob, m.caller, m.tenant);
        insert into millrace.media_file (media, kind, blob, size, mime_type, width, height)
        values (m.id, one.kind, one.blob, one.size, one.mime_type, one.width, one.height);
    end loop;
    perform millrace.media_end(m, 'done', the_type, null, null);
    if not millrace.complete(media_made.token, media_made.result || jsonb_build_object('media', m.id, 'files', millrace.media_files(m.id))) then
        perform millrace.refuse('the lease is lost: the media are not recorded', 'token', 'Roll back and stop: another run has the job, or will have it.', '55000', 'lease_lost');
    end if;
    return 'made';
end $$;
select millrace.door_is('media', 'media_made', 'worker', 'staff');

-- Records why there are none. False: there is nothing to do any more.
create or replace function millrace.media_failed(token text, the_id uuid, the_type text, reason text, sentence text, spent int) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    m millrace.media := millrace.media_held(media_failed.token, media_failed.the_id);
begin
    if m.id is null then
        return false;
    end if;
    perform millrace.quota_use(m.tenant, 'cpu_seconds', spent / 1000.0, false);
    perform millrace.media_end(m, 'failed', the_type, media_failed.reason, media_failed.sentence);
    return true;
end $$;
select millrace.door_is('media', 'media_failed', 'worker', 'staff');

-- Ends media whose job was cancelled or given up by somebody else. Returns how many.
create or replace function millrace.media_check(most int default 100) returns int
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    m millrace.media;
    checked int := 0;
begin
    for m in select x.* from millrace.media x where x.status = 'waiting' and x.created_at < millrace.now() - interval '30 s'
              order by x.created_at limit most for no key update skip locked
    loop
        if exists (select from millrace.history h where h.id = m.job and h.outcome in (2, 3)) or not exists (select from millrace.job j where j.id = m.job) then
            perform millrace.media_end(m, 'failed', null, 'internal', 'its job was cancelled, or given up');
            checked := checked + 1;
        end if;
    end loop;
    return checked;
end $$;

-- What failed is kept for thirty days; what was made stays.
create or replace function millrace.media_expire(most int default 20000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    gone bigint;
begin
    delete from millrace.media m
     where m.ctid = any (array(select x.ctid from millrace.media x where x.status = 'failed' and x.ended_at < millrace.now() - interval '30 days' order by x.ended_at limit most));
    get diagnostics gone = row_count;
    return gone;
end $$;

create or replace function millrace.media_check_asked(about jsonb) returns bigint
language sql volatile as $$ select millrace.media_check((about ->> 'most')::int)::bigint $$;
