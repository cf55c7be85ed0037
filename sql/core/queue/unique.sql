-- Unique keys. One row of unique_lock is one key, and a transaction that changes it holds its lock. Callers lock the key first and the
-- holder's place in line second. A transaction that ends a job already has the job's place, so it never waits for a key (unique_ended).
--
-- Each time a key changes hands its row moves to the next round, and a key whose holder has ended stays a minute longer, for the next
-- holder. So the versions that an old snapshot keeps of a key lie at lower rounds, and a search from the highest round walks over none of
-- them. A key must have one row, whatever its round and whatever a caller's snapshot shows. The table unique_key ensures that: it has one
-- row for each known key, which is inserted and deleted with the key and never updated.

-- whose: a client's own scope, so that nobody else's key can block it; null for staff.
create or replace function millrace.unique_hash(the_key text, the_kind text, the_queue text, the_tenant text, the_scope text, whose text)
returns bytea
language plpgsql immutable as $$
begin
    if length(the_key) not between 1 and millrace.most('unique_key') then
        perform millrace.refuse(format('unique_key must have 1 to %s characters', millrace.most('unique_key')), 'unique_key');
    end if;
    return substr(sha256(convert_to(concat_ws(chr(31), 'of ' || whose, coalesce(the_scope, 'kind'),
        case coalesce(the_scope, 'kind') when 'kind' then the_kind when 'queue' then the_queue when 'tenant' then coalesce(the_tenant, '') else '' end,
        the_key), 'UTF8')), 1, 16);
end $$;

-- A client's key. A key that was taken before clients had scopes of their own, or before a person's tenant had a form of its own, stays its
-- holder's until it ends.
create or replace function millrace.unique_hash_own(
    the_key text, the_kind text, the_queue text, the_tenant text, the_scope text, whose text, caller name
) returns bytea
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    before bytea := millrace.unique_hash(the_key, the_kind, the_queue, the_tenant, the_scope, null);
    id text := millrace.tenant_digested(the_tenant);
    held bytea;
begin
    if whose is null then
        return before;
    end if;
    held := (
        select u.hash from unnest(array[before, case when id <> the_tenant then
                   millrace.unique_hash(the_key, the_kind, the_queue, id, the_scope, concat_ws(chr(31), unique_hash_own.caller, id)) end]) h
          join millrace.unique_lock u on u.hash = h
          join millrace.job j on j.id = u.job
         where not u.ended and j.owner = unique_hash_own.caller and j.tenant is not distinct from the_tenant limit 1);
    return coalesce(held, millrace.unique_hash(the_key, the_kind, the_queue, the_tenant, the_scope, whose));
end $$;

-- The job that holds the key now: the given one, or the one that came first. Waits for an open transaction that is taking the key.
create or replace function millrace.unique_take(the_hash bytea, the_job bigint) returns bigint
language plpgsql set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    held record;
begin
    loop
        with new as (
            insert into millrace.unique_key (hash) values (the_hash) on conflict (hash) do nothing returning hash
        )
        insert into millrace.unique_lock (hash, job) select n.hash, the_job from new n;
        if found then
            return the_job;
        end if;
        select u.round, u.job, u.ended, u.until, exists (select from millrace.unique_ended e where e.hash = the_hash) as is_noted into held
          from millrace.unique_lock u where u.hash = the_hash order by u.round desc limit 1;
        if not found then
            continue;                                     -- gone between the two statements: try again
        end if;
        if held.ended and (held.until <= millrace.now() or held.job = the_job) then
            update millrace.unique_lock u set job = the_job, round = u.round + 1, ended = false, until = null
             where u.hash = the_hash and u.round = held.round and u.ended and u.job = held.job and u.until = held.until;
            if found then
                return the_job;
            end if;
            continue;                                     -- somebody else was first
        end if;
        if held.is_noted then
            perform millrace.unique_settle(the_hash);
            continue;
        end if;
        return held.job;
    end loop;
end $$;

-- The holders among these have ended. A waiting successor takes the key and its place in line. Else the key stays held for
-- options.unique_for. Else it is free, and its row stays for the next holder (with for_good the row is deleted).
create or replace function millrace.unique_end(ids bigint[], for_good boolean default false) returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off as $$
declare
    t timestamptz := millrace.now();
    spans float8[];
    taken bigint[];
    freed tid[];
    passed tid[];
    successors bigint[];
    dues timestamptz[];
    queues int[];
    lanes int[];
begin
    -- Look-ups, not joins: on a table without statistics a join walks over every key there is.
    select array_agg(h.job), array_agg(h.ctid) filter (where h.next is null), array_agg(h.span) filter (where h.next is null),
           array_agg(h.ctid) filter (where h.next is not null),
           array_agg(h.next) filter (where h.next is not null), array_agg(h.due) filter (where h.next is not null)
      into taken, freed, spans, passed, successors, dues
      from (select u.ctid, u.job, u.next, u.due, coalesce((j.options ->> 'unique_for')::float8, 0) as span
              from millrace.job j
             cross join lateral (
                select u.ctid, u.job, u.next, u.due, u.ended from millrace.unique_lock u
                 where u.hash = j.unique_hash order by u.round desc limit 1
                   for update skip locked) u
             where j.id = any (ids) and u.job = j.id and not u.ended) h;
    if for_good then
        perform millrace.unique_forget(freed);
    elsif freed is not null then
        update millrace.unique_lock u
           set ended = true, until = t + make_interval(secs => spans[array_position(freed, u.ctid)])
         where u.ctid = any (freed);
    end if;
    if coalesce(cardinality(taken), 0) < cardinality(ids) then
        insert into millrace.unique_ended (hash, job)
        select u.hash, u.job
          from millrace.job j
         cross join lateral (
            select u.hash, u.job, u.ended from millrace.unique_lock u where u.hash = j.unique_hash order by u.round desc limit 1) u
         where j.id = any (ids) and j.id <> all (coalesce(taken, '{}')) and u.job = j.id and not u.ended
            on conflict do nothing;
    end if;

    if passed is not null then
        update millrace.unique_lock u set job = u.next, round = u.round + 1, next = null, due = null, until = null where u.ctid = any (passed);
        perform pg_current_xact_id();                     -- before numbers are drawn: see horizon()
        with released as materialized (
            select j.id, j.queue, j.kind, j.lane, s.due from unnest(successors, dues) s(id, due) join millrace.job j on j.id = s.id
        ), later as (
            insert into millrace.timer (due, job, queue, kind, lane)
            select r.due, r.id, r.queue, r.kind, r.lane from released r where r.due > t
        ), now_ready as (
            insert into millrace.ready (seq, job, queue, kind, lane)
            select nextval('millrace.seq'), r.id, r.queue, r.kind, r.lane from released r where coalesce(r.due <= t, true)
        )
        select array_agg(distinct r.queue), array_agg(distinct r.lane) into queues, lanes
          from released r where coalesce(r.due <= t + interval '2 s', true);
        perform millrace.wake(q, l) from unnest(queues) q cross join unnest(lanes) l;
    end if;
end $$;

-- Completes the end of a holder that could not get the key's row. Waits for the transaction that has the row. Only the owner of the row
-- touches the notes; a caller that waited for a row that was then deleted has nothing, and looks again.
create or replace function millrace.unique_settle(the_hash bytea) returns void
language plpgsql set enable_seqscan = off as $$
declare
    ids bigint[];
begin
    perform from millrace.unique_lock u where u.hash = the_hash order by u.round desc limit 1 for update;
    if not found then
        return;
    end if;
    with noted as (
        delete from millrace.unique_ended e where e.hash = the_hash returning e.job
    )
    select array_agg(n.job) into ids from noted n;
    if ids is not null then
        perform millrace.unique_end(ids);
    end if;
end $$;

-- The same for every key whose row is free by now. Returns how many.
create or replace function millrace.unique_sweep() returns int
language plpgsql set enable_seqscan = off as $$
declare
    one record;
    swept int := 0;
begin
    for one in select e.hash from millrace.unique_ended e order by e.hash limit 1000 for update skip locked loop
        perform from millrace.unique_lock u where u.hash = one.hash order by u.round desc limit 1 for update skip locked;
        if found then
            perform millrace.unique_settle(one.hash);
            swept := swept + 1;
        end if;
    end loop;
    return swept;
end $$;

-- Deletes the keys whose rows are at these places, which the caller has locked.
create or replace function millrace.unique_forget(places tid[]) returns void
language plpgsql set enable_seqscan = off as $$
begin
    with gone as (
        delete from millrace.unique_lock u where u.ctid = any (places) returning u.hash
    )
    delete from millrace.unique_key k where k.hash = any (array(select g.hash from gone g));
end $$;

-- Releases keys whose time has passed, a minute later; a key that nobody wants again by then is deleted. floor: everything before it has
-- been looked through (null: nothing). Returns how many keys expired, and how far it has come.
create or replace function millrace.unique_expire(floor timestamptz default null, most int default 100000, out expired int, out upto timestamptz)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan as $$
declare
    goal timestamptz := millrace.now() - interval '1 minute';
    places tid[];
begin
    select count(*), max(c.until), array_agg(c.place) into expired, upto, places
      from (select c.ctid as place, c.until from millrace.unique_lock c
             where c.ended and c.until > coalesce(floor, '-infinity') and c.until <= goal
             order by c.until limit most for update skip locked) c;
    perform millrace.unique_forget(places);
    if expired < most then
        upto := goal;
    end if;
end $$;
select millrace.door_is('queue', 'unique_expire', 'worker', 'staff');

-- Whether a job stands between two runs of one piece of work: it waits there, or has waited, or has done what is to be undone if it fails.
-- Other work cannot take its place.
create or replace function millrace.job_is_midway(the_job bigint) returns boolean
language plpgsql stable set enable_seqscan = off as $$
begin
    return exists (select from millrace.wait w where w.job = the_job) or exists (select from millrace.undo u where u.job = the_job)
        or exists (select from millrace.step s where s.job = the_job and s.asked is not null);
end $$;

-- Gives the request to the job that holds the key. fate: 'replaced', the holder waited and has taken the new contents (id is its number, or
-- its successor's if it has one); 'follows', the holder runs, or is in the middle of its work, and the_job is now its successor; 'taken', nobody held the key and the_job
-- does now, but must not run before the hold of an ended holder is over; 'unknown', nobody has held it lately, so call unique_take;
-- 'again', the holder has moved on meanwhile.
create or replace function millrace.unique_replace(
    the_hash bytea, the_job bigint, the_kind int, the_queue int, the_lane int, the_run_at timestamptz, the_args jsonb,
    the_limit_key text, the_max_attempts int, the_tags text[], the_metadata jsonb, the_options jsonb,
    the_tenant text, the_limit_scope text,
    out fate text, out id bigint, out not_before timestamptz, caller name
)
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    t timestamptz := millrace.now();
    held record;
    head record;
    place record;
    waits boolean := false;
    told text;
begin
    fate := 'again';
    select u.round, u.job, u.next, u.ended, u.until, exists (select from millrace.unique_ended e where e.hash = the_hash) as is_noted,
           -- in the middle of its work: see job_is_midway
           exists (select from millrace.wait w where w.job = u.job) or exists (select from millrace.undo o where o.job = u.job)
           or exists (select from millrace.step s where s.job = u.job and s.asked is not null) as is_midway
      into held
      from millrace.unique_lock u where u.hash = the_hash order by u.round desc limit 1 for update;
    if not found then
        fate := 'unknown';
        return;
    end if;
    if held.is_noted then
        told := millrace.unique_settle(the_hash)::text;
        return;
    end if;
    if held.ended then
        update millrace.unique_lock u set job = the_job, round = u.round + 1, ended = false, until = case when u.until > t then u.until end
         where u.hash = the_hash and u.round = held.round;
        fate := 'taken';
        not_before := case when held.until > t then held.until end;
        return;
    end if;

    id := coalesce(held.next, held.job);
    if held.next is null and held.is_midway then          -- as if it ran
        update millrace.unique_lock u set next = the_job, due = the_run_at where u.hash = the_hash and u.round = held.round;
        id := null;
        fate := 'follows';
        return;
    end if;
    if held.next is null then
        place := millrace.take_waiting(held.job);         -- a refusal below puts it back
        if place.queue is null then
            perform from millrace.blocked b where b.job = held.job for update;
            waits := found;                               -- for other jobs; it goes on waiting for them
            if not waits then
                if exists (select from millrace.job_running(held.job)) then
                    update millrace.unique_lock u set next = the_job, due = the_run_at where u.hash = the_hash and u.round = held.round;
                    id := null;
                    fate := 'follows';
                end if;
                return;
            end if;
        end if;
    end if;
    if held.next is null then
        the_run_at := greatest(the_run_at, held.until);
    end if;
    update millrace.job j
       set kind = the_kind, queue = the_queue, lane = the_lane, run_at = coalesce(the_run_at, t), args = the_args, tenant = the_tenant,
           limit_key = the_limit_key, limit_scope = case when the_limit_key is not null then the_limit_scope end,
           max_attempts = the_max_attempts, tags = nullif(the_tags, '{}'), metadata = nullif(the_metadata, '{}'),
           options = nullif(coalesce(the_options, '{}') || coalesce(case when waits then (select jsonb_object_agg(o.key, o.value) from jsonb_each(j.options) o where o.key in ('after', 'fence')) end, '{}'), '{}')
     where j.id = unique_replace.id and millrace.kind_plain(j.kind) = millrace.kind_plain(the_kind) and millrace.may_see(j.owner, j.tenant, caller => unique_replace.caller);
    if not found then
        select j.kind, j.owner, j.tenant into strict head from millrace.job j where j.id = unique_replace.id;
        if not millrace.may_see(head.owner, head.tenant, caller => unique_replace.caller) then
            perform millrace.refuse(format('the unique key is held by job %s, which is somebody else''s', id), 'unique_key', null, '42501', 'permission');
        end if;
        perform millrace.refuse(format('the unique key is held by job %s, which is of another kind', id), 'unique_key',
            'Only a job of the same kind can be replaced; a key is by kind unless options.unique_scope says otherwise.', '23505', 'conflict');
    end if;
    fate := 'replaced';
    if waits then
        update millrace.blocked b set due = the_run_at where b.job = held.job;
        return;
    end if;
    if held.next is not null then
        update millrace.unique_lock u set due = the_run_at where u.hash = the_hash and u.round = held.round;
        return;
    end if;

    -- Its work is new: all attempts, no step done, and no cancel of the old work. Crashes that it caused still count.
    if exists (select from millrace.cancel c where c.job = held.job) or exists (select from millrace.step s where s.job = held.job)
        or exists (select from millrace.progress p where p.job = held.job) or exists (select from millrace.output o where o.job = held.job)
    then
        if millrace.job_is_midway(held.job) then          -- since a moment ago
            perform millrace.refuse(format('job %s, which holds the unique key, has just begun to wait', held.job), 'unique_key', 'Try again.', '40001', 'conflict');
        end if;
        delete from millrace.cancel c where c.job = held.job;
        perform millrace.steps_forget(held.job);
    end if;
    the_lane := millrace.lane_of(the_lane, place.crashes, false);
    if the_run_at > t then
        insert into millrace.timer (due, job, queue, kind, lane, crashes)
        values (the_run_at, held.job, the_queue, the_kind, the_lane, place.crashes);
        if the_run_at > t + interval '2 s' then
            return;
        end if;
    else
        insert into millrace.ready (seq, job, queue, kind, lane, crashes)
        values (nextval('millrace.seq'), held.job, the_queue, the_kind, the_lane, place.crashes);
    end if;
    if the_options is null or the_options -> 'wake' is distinct from 'false' then
        told := millrace.wake_saying(the_queue, the_lane, '')::text;
    end if;
end $$;
