-- Signals: what somebody tells jobs that wait for it. The sender only writes a row, in its own transaction, and waits for nobody. A worker
-- tells the waiting jobs after the commit. Who begins to wait looks for kept signals. Both hold the turn of the name and key while they look
-- and write, so a signal and a wait that cross cannot miss each other.

create or replace function millrace.signal_bucket(the_name text, the_key text) returns int
language sql immutable as $$ select hashtext(the_name || E'\n' || the_key) & 255 $$;

create or replace function millrace.signal_check(the_name text, the_key text) returns void
language plpgsql immutable as $$
begin
    if the_name is null or length(the_name) not between 1 and millrace.most('name') or the_name ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the name of a signal has 1 to 128 characters and no control characters', 'name');
    end if;
    if the_name like 'millrace.%' then
        perform millrace.refuse('signal names that begin with millrace. are reserved', 'name', 'Call it something else; approvals are answered with approval_answer.');
    end if;
    if the_key is null or length(the_key) > millrace.most('unique_key') or the_key ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the key of a signal has at most 512 characters and no control characters', 'key');
    end if;
end $$;

-- Tells one job that waits for this name and key, or all of them. If none waits yet, the signal is kept for who comes, for as long as `keep`.
-- With an id it is sent once: false says that it is known already.
create or replace function millrace.signal(
    name text, key text default '', payload jsonb default 'null', id text default null, to_all boolean default false, keep interval default '30 days',
    caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    staff boolean := millrace.is_staff(signal.caller);
    the_tenant text := case when not staff then millrace.caller_tenant(signal.caller) end;      -- empty, which no job has, for claims that name nobody
    given jsonb := coalesce(signal.payload, 'null');
    old record;
    kept int;
    mine bigint;
begin
    perform millrace.signal_check(signal.name, signal.key);
    if length(signal.id) not between 1 and millrace.most('unique_key') then
        perform millrace.refuse('the id of a signal has 1 to 512 characters', 'id');
    end if;
    if octet_length(given::text) > millrace.most('signal') then
        perform millrace.refuse(format('the payload takes more than the %s bytes allowed', millrace.most('signal')), 'payload',
            'Store large data elsewhere and send a reference.', '53400', 'too_large');
    end if;
    if signal.to_all is null or signal.keep is null or signal.keep not between interval '1 second' and interval '366 days' then
        perform millrace.refuse('a signal is kept for 1 second to 366 days', 'keep');
    end if;
    -- Of this sender's own, as they are told: what others keep under the same name and key stands in nobody's way.
    if the_tenant is null then
        kept := (select count(*) from (select from millrace.signal s
                                        where s.name = signal.name and s.key = signal.key and s.owner = signal.caller and s.tenant is null and s.state < 2
                                        limit millrace.counted('signals')) x);
    else
        kept := (select count(*) from (select from millrace.signal s
                                        where s.name = signal.name and s.key = signal.key and s.owner = signal.caller and s.tenant = the_tenant and s.state < 2
                                        limit millrace.counted('signals')) x);
    end if;
    if kept >= millrace.counted('signals') then
        perform millrace.refuse(format('this sender already has %s signals %L with the key %L that nobody has taken', kept, left(signal.name, 60), left(signal.key, 60)), 'key',
            'Let a job take them, or wait until they expire.', '53400', 'too_large');
    end if;
    insert into millrace.signal as s (name, key, id, payload, to_all, owner, tenant, anywhere, at, expires_at)
    values (signal.name, signal.key, signal.id, given, signal.to_all, signal.caller, the_tenant, staff, t, t + signal.keep)
        on conflict do nothing returning s.seq into mine;
    if mine is null then
        select s.key, s.payload, s.to_all into strict old from millrace.signal s
         where s.owner = signal.caller and s.tenant is not distinct from the_tenant and s.name = signal.name and s.id = signal.id;
        if (old.key, old.payload, old.to_all) is distinct from (signal.key, given, signal.to_all) then
            perform millrace.refuse(format('the id %L was given to another signal', left(signal.id, 60)), 'id', 'Give each signal its own id.', '23505', 'conflict');
        end if;
        return false;
    end if;
    -- While signals come every few milliseconds, workers look that often without being told. Each notification would make all commits wait.
    if not exists (select from (select s.at from millrace.signal s where s.seq < mine order by s.seq desc limit 1) x where x.at > t - interval '50 ms') then
        perform pg_notify('millrace', 'signals');
    end if;
    return true;
end $$;
select millrace.door_is('queue', 'signal', 'client, worker, operator', 'open',
    'Sends a signal to one of the caller''s jobs.');

-- Whether a signal may reach a job: as if its sender looked at the job.
create or replace function millrace.signal_reaches(s millrace.signal, the_job bigint) returns boolean
language sql stable as $$
    select s.anywhere or exists (
        select from millrace.job j where j.id = the_job and j.owner = s.owner and (s.tenant is null or j.tenant = s.tenant) offset 0)
$$;

-- What a wait asks for, as its step keeps it.
create or replace function millrace.wait_asked(w millrace.wait) returns jsonb
language sql immutable as $$
    select case w.what when 2 then jsonb_build_object('what', 'signal', 'name', w.name, 'key', w.key)
                       else jsonb_build_object('what', (array['time', 'signal', 'jobs', 'approval'])[w.what]) end
$$;

-- A job that waits goes on: its step has this value, and it is put in line. False: it is not where it waited, and will look itself. null: a
-- transaction that is still open has something to do with it, such as a cancel; nobody waits for that.
create or replace function millrace.wait_over(w millrace.wait, value jsonb) returns boolean
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    place record;
begin
    select d.* into place from millrace.timer d where d.job = w.job and d.due = w.place for update skip locked;
    if not found then
        return case when not exists (select from millrace.timer d where d.job = w.job and d.due = w.place) then false end;
    end if;
    delete from millrace.timer d where d.job = w.job and d.due = w.place;
    delete from millrace.wait x where x.job = w.job;
    insert into millrace.step (job, name, value, session, number, attempt, at, place, asked)
    select w.job, w.step, wait_over.value, 0, 0, w.attempt, millrace.now(), greatest(count(*), coalesce(max(s.place), 0)) + 1, millrace.wait_asked(w)
      from millrace.step s where s.job = w.job
        on conflict do nothing;
    perform pg_current_xact_id();                         -- before numbers are drawn: see horizon()
    insert into millrace.ready (seq, job, queue, kind, lane, attempt, crashes)
    values (nextval('millrace.seq'), w.job, place.queue, place.kind, millrace.lane_of(place.lane, w.crashes, true), w.attempt, w.crashes);
    perform millrace.wake(place.queue, millrace.lane_of(place.lane, w.crashes, true));
    return true;
end $$;

-- Tells the waiting jobs of signals that were committed, and of those that were kept while a job was out of its wait. Workers call it after a
-- notification and once a second. told: how many jobs go on; looked: how many signals there were; more: there were more signals than `most`.
-- What somebody's open transaction holds is passed over: a turn, or a job that would take the signal. It is looked at again in a second, after
-- the others: however much of it there is, nobody else waits for it.
create or replace function millrace.signals_tell(most int default 500, out told int, out looked int, out more boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan as $$
declare
    t timestamptz := millrace.now();
    fresh millrace.signal[];
    back millrace.wait[];
    mine int[];
    s millrace.signal;
    w millrace.wait;
    goes_on boolean;
    is_held boolean;
    some_are_held boolean;
    held bigint[] := '{}';
    held_jobs bigint[] := '{}';
begin
    told := 0;
    looked := 0;
    more := false;
    -- A look without a lock: most of the time there is nothing.
    if not exists (select from millrace.signal x where x.state = 0) and not exists (select from millrace.wait x where x.look_at is not null) then
        return;
    end if;
    fresh := array(select x from millrace.signal x
                    where x.state = 0 and coalesce(x.look_at, '-infinity') <= t order by coalesce(x.look_at, '-infinity'), x.seq limit most);
    back := array(select x from millrace.wait x where x.look_at <= t order by x.look_at limit most);
    if cardinality(fresh) + cardinality(back) = 0 then
        return;
    end if;
    -- The turns first and then the signals, as a wait takes them: the other way round the two could wait for each other. What others have the
    -- turn of is theirs to tell, or to take.
    mine := array(select x.bucket from millrace.turn x
                   where x.name = 'signal' and x.bucket = any (array(
                        select millrace.signal_bucket(f.name, f.key) from unnest(fresh) f union select millrace.signal_bucket(b.name, b.key) from unnest(back) b))
                   order by x.bucket for update skip locked);
    if cardinality(mine) = 0 then
        mine := millrace.signal_turn(case when cardinality(fresh) > 0 then millrace.signal_bucket(fresh[1].name, fresh[1].key)
                                          else millrace.signal_bucket(back[1].name, back[1].key) end);
    end if;
    some_are_held := exists (select from millrace.signal x where x.state = 0 and coalesce(x.look_at, '-infinity') > t);
    for s in select f.* from unnest(fresh) f order by f.seq loop
        -- An earlier one of the same name and key comes first.
        if not millrace.signal_bucket(s.name, s.key) = any (mine)
           or some_are_held and exists (select from millrace.signal x where x.name = s.name and x.key = s.key and x.state = 0 and x.seq < s.seq and x.look_at > t)
        then
            held := held || s.seq;
            continue;
        end if;
        -- Who had the turn before may have told or taken it.
        perform from millrace.signal x where x.seq = s.seq and x.state = 0 for update skip locked;
        continue when not found;
        is_held := false;
        for w in select x.* from millrace.wait x where x.name = s.name and x.key = s.key order by x.since, x.job loop
            continue when not millrace.signal_reaches(s, w.job) or exists (select from millrace.signal_taken y where y.signal = s.seq and y.job = w.job);
            goes_on := millrace.wait_over(w, jsonb_build_object('value', s.payload));
            is_held := is_held or goes_on is null;
            continue when goes_on is not true;
            told := told + 1;
            if not s.to_all then
                update millrace.signal x set state = 2, taken_by = w.job where x.seq = s.seq;
                s.state := 2;
                exit;
            end if;
            insert into millrace.signal_taken (signal, job) values (s.seq, w.job);
        end loop;
        if is_held and s.state <> 2 then
            held := held || s.seq;
        elsif s.state <> 2 then
            update millrace.signal x set state = 1 where x.seq = s.seq;
        end if;
    end loop;
    foreach w in array back loop
        goes_on := case when millrace.signal_bucket(w.name, w.key) = any (mine) then millrace.wait_look(w.job) end;
        told := told + coalesce(goes_on, false)::int;
        held_jobs := case when goes_on is null then held_jobs || w.job else held_jobs end;
    end loop;
    update millrace.signal x set look_at = t + interval '1 second'
     where x.seq = any (array(select h.seq from millrace.signal h where h.seq = any (held) and h.state = 0 for update skip locked));
    update millrace.wait x set look_at = t + interval '1 second'
     where x.job = any (array(select h.job from millrace.wait h where h.job = any (held_jobs) for update skip locked));
    looked := cardinality(fresh) - cardinality(held);
    more := looked + cardinality(back) - cardinality(held_jobs) > 0 and (cardinality(fresh) = most or cardinality(back) = most);
end $$;
select millrace.door_is('queue', 'signals_tell', 'worker', 'staff');

-- A turn that others may have for long; empty: they have it.
create or replace function millrace.signal_turn(bucket int) returns int[]
language plpgsql volatile set lock_timeout = '200ms' as $$
begin
    perform millrace.turns_wait('signal', array[bucket]);
    return array[bucket];
exception when lock_not_available then
    return '{}';
end $$;

-- Looks for what was kept for a job while it was out of its wait. True: it goes on; null: a transaction that is still open has something to
-- do with it. The caller has the turn of the name and key.
create or replace function millrace.wait_look(the_job bigint) returns boolean
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    w millrace.wait;
    given jsonb;
begin
    select x.* into w from millrace.wait x where x.job = the_job for update skip locked;
    if not found then
        return case when not exists (select from millrace.wait x where x.job = the_job) then false end;
    end if;
    perform from millrace.timer d where d.job = the_job and d.due = w.place for update skip locked;
    if not found and exists (select from millrace.timer d where d.job = the_job and d.due = w.place) then
        return null;
    elsif found then
        given := millrace.signal_take(the_job, w.name, w.key);
        if given is not null then
            return millrace.wait_over(w, given);
        end if;
    end if;
    update millrace.wait x set look_at = null where x.job = the_job;
    return false;
end $$;

-- The oldest kept signal that a job may take, taken; null: there is none. The caller has the turn of the name and key.
create or replace function millrace.signal_take(the_job bigint, the_name text, the_key text) returns jsonb
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    s millrace.signal;
    its_owner text;
    its_tenant text;
begin
    select j.owner, j.tenant into its_owner, its_tenant from millrace.job j where j.id = the_job;
    -- As signal_reaches has it, without a look at what reaches others only: that may be any number.
    for s in
        select x.* from (
            select a.* from millrace.signal a where a.name = the_name and a.key = the_key and a.state < 2 and a.anywhere
            union all
            select o.* from millrace.signal o
             where o.name = the_name and o.key = the_key and o.state < 2 and not o.anywhere and o.owner = its_owner and o.tenant is null
            union all
            select t.* from millrace.signal t
             where t.name = the_name and t.key = the_key and t.state < 2 and not t.anywhere and t.owner = its_owner and t.tenant = its_tenant) x
         where x.expires_at > millrace.now() order by x.seq
    loop
        if s.to_all then
            insert into millrace.signal_taken (signal, job) values (s.seq, the_job) on conflict do nothing;
            continue when not found;
        else
            update millrace.signal x set state = 2, taken_by = the_job where x.seq = s.seq;
        end if;
        return jsonb_build_object('value', s.payload);
    end loop;
    return null;
end $$;

-- Signals go when they have expired, taken or not. Returns how many.
create or replace function millrace.signals_expire(most int default 20000) returns bigint
language plpgsql volatile set enable_seqscan = off as $$
declare
    gone bigint[];
begin
    gone := array(select x.seq from millrace.signal x where x.expires_at < millrace.now() order by x.expires_at limit most for update skip locked);
    delete from millrace.signal x where x.seq = any (gone);
    delete from millrace.signal_taken y where y.signal = any (gone);
    return cardinality(gone);
end $$;
