-- The feed: what concerns a person, in the order in which the transactions came to be seen. Rooms tell it by feed_say,
-- most of them in triggers: gateway/feed_rows.sql, feed_family.sql and feed_chat.sql.

create or replace function millrace.feed_topics() returns text[]
language sql immutable parallel safe as $$
    select array['documents', 'check-ins', 'alarms', 'quests', 'moods', 'notices', 'mail', 'chat', 'lessons', 'subscriptions', 'ai', 'media', 'people']
$$;

-- As in `event_wake`: a notification is sent only while a reader sleeps, which then holds (1297239642, 0) alone.
create or replace function millrace.feed_wake() returns void
language plpgsql as $$
declare
    told text;                                            -- assigned, not performed: Postgres prepares a `perform` again in every call
begin
    if not pg_try_advisory_xact_lock_shared(1297239642, 0) and pg_notification_queue_usage() < 0.5 then
        told := pg_notify('millrace_feed', '')::text;
    end if;
end $$;

-- One change, for feed_say. Postgres puts the row in its place, so this costs nothing.
create or replace function millrace.feed_change(
    at timestamptz, topic text, ref text, change text, data jsonb, person text default null, tenant text default null, lesson text default null, family text default null,
    about text default null, actor text default null, due_at timestamptz default null, thread uuid default null, n bigint default null
) returns millrace.feed_change
language sql immutable parallel safe as $$
    select row(at, topic, ref, change, data, person, tenant, lesson, family, about, actor, due_at, thread, n)::millrace.feed_change
$$;

-- All that rooms write here: changes of one statement together, by one insert. On the way of every check-in and message.
create or replace function millrace.feed_say(changes millrace.feed_change[]) returns void
language plpgsql volatile as $$
begin
    insert into millrace.feed (at, topic, person, tenant, lesson, ref, change, data, family, about, actor, due_at, thread, n)
    select c.at, c.topic, c.person, c.tenant, c.lesson, c.ref, c.change, c.data, c.family, c.about, c.actor, c.due_at, c.thread, c.n from unnest(changes) c;
    if found and not pg_try_advisory_xact_lock_shared(1297239642, 0) then
        perform millrace.feed_wake();
    end if;
end $$;

-- Takes back what others are to read later of a person.
drop function if exists millrace.feed_take_back(text, text);
create or replace function millrace.feed_take_back(the_topic text, the_ref text, the_person text) returns void
language plpgsql volatile set enable_seqscan = off set jit = off as $$
begin
    -- Without `seq is null`, which a row with a time has: no index by that time may be taken, for it has the rows of all.
    delete from millrace.feed f where f.about = the_person and f.due_at is not null and f.topic = the_topic and f.ref = the_ref;
end $$;

-- Tells the gateways that changes are taken back, which they hold for a minute for clients that come back.
create or replace function millrace.feed_taken() returns void
language sql volatile as $$
    select pg_notify('millrace_feed_taken', '') where pg_notification_queue_usage() < 0.5
$$;

-- Takes away what others were told of a person. What they were told of a thing ends with a tombstone, so that their apps forget it too;
-- what nobody could read yet just goes.
create or replace function millrace.feed_forget(the_person text, the_family text) returns bigint
language plpgsql volatile set enable_seqscan = off set jit = off as $$
declare
    gone bigint;
    t timestamptz := millrace.now();
begin
    perform millrace.feed_taken();
    with gone as (
        delete from millrace.feed f
         where f.about = the_person and (the_family is null or (f.family = the_family and f.topic = 'moods'))
        returning f.person, f.topic, f.ref, f.change, f.family, f.due_at
    ), tombs as (
        insert into millrace.feed (at, topic, person, ref, change, data)
        select distinct t, g.topic, g.person, g.ref, 'deleted', '{}'::jsonb
          from gone g where g.due_at is null and (g.topic in ('alarms', 'moods') or g.change in ('hobby_shared', 'card_added'))
    )
    select count(*) into gone from gone;
    return gone;
end $$;

-- Takes away a person's own rows, all or those of a family. What has no number yet is found by the person, too: `due_at` is left out, because the
-- indexes that have it are of everybody's rows.
create or replace function millrace.feed_drop(the_person text, the_family text) returns bigint
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    gone bigint;
    n bigint;
begin
    perform millrace.feed_taken();
    delete from millrace.feed f where f.seq is not null and f.person = the_person and (the_family is null or f.family = the_family);
    get diagnostics gone = row_count;
    delete from millrace.feed f where f.seq is null and f.person = the_person and (the_family is null or f.family = the_family);
    get diagnostics n = row_count;
    return gone + n;
end $$;

-- Takes away what a person was told of a thread, found by the person.
create or replace function millrace.feed_chat_forget(the_person text, the_thread uuid) returns void
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
    perform millrace.feed_taken();
    delete from millrace.feed f
     where f.seq is not null and f.person = the_person and f.topic = 'chat' and (f.ref = the_thread::text or f.data ->> 'thread' = the_thread::text);
    delete from millrace.feed f
     where f.seq is null and f.person = the_person and f.topic = 'chat' and (f.ref = the_thread::text or f.data ->> 'thread' = the_thread::text);
end $$;

-- Takes away what all members were told of a thread.
create or replace function millrace.feed_chat_end(the_thread uuid) returns void
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
    delete from millrace.feed f where f.seq is not null and f.thread = the_thread;
    delete from millrace.feed f where f.seq is null and f.thread = the_thread;
end $$;

-- As far as the last numbering saw: all transactions below `upto`, but for those that were `open`; and what was due at that time.
create or replace function millrace.feed_counted(out upto xid8, out open xid8[], out due timestamptz)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
    select f.counted_to, f.counted_open, f.counted_at into upto, open, due from millrace.feed f where f.counted_to is not null order by f.seq desc limit 1;
    -- Nothing was numbered yet; or this is a copy of another server's database, which has counted further.
    if upto is null or upto > pg_snapshot_xmax(pg_current_snapshot()) then
        upto := '0';
        open := '{}';
        due := '-infinity';
    end if;
end $$;

-- The places of what has no number yet; if there are more than `most`, of more than that, and not of all: what the numbering before could not see, found by the
-- transactions that wrote it, and what has become due since then. What is numbered is not walked over, even while an old transaction keeps its
-- dead rows: so the cost is that of the new rows.
create or replace function millrace.feed_fresh(most int, t timestamptz) returns setof bigint
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    c record := millrace.feed_counted();
begin
    return query
        (select x.place from millrace.feed x where x.seq is null and x.xid >= c.upto and (x.due_at is null or x.due_at <= t) order by x.xid limit most + 1)
        union
        (select f.place from unnest(c.open) o(xid)
          cross join lateral (select x.place from millrace.feed x where x.seq is null and x.xid = o.xid and (x.due_at is null or x.due_at <= t) offset 0) f
          where o.xid < c.upto)
        union
        (select x.place from millrace.feed x where x.seq is null and x.due_at is not null and x.due_at > c.due and x.due_at <= t order by x.due_at limit most + 1);
end $$;

-- As with events: readers number what was committed, one reader at a time, so nothing ever appears at or below a number that was read. An
-- open transaction of a writer delays nobody, so a row that one holds is passed over. A row that was to be read later counts from when it is due.
-- A numbering that left something out does not count as one.
create or replace function millrace.feed_number(most int default 10000) returns bigint
language plpgsql volatile set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    seen pg_snapshot;
    t timestamptz := millrace.now();
    places bigint[];
    held bigint[];
    base bigint;
    is_whole boolean := true;
begin
    if not exists (select from millrace.feed_fresh(0, t)) or not millrace.turn_try('feed') then
        return 0;
    end if;
    seen := pg_current_snapshot();                         -- what the next statements see besides is looked at once more
    places := array(select f from millrace.feed_fresh(most, t) f);
    if cardinality(places) > most then
        is_whole := false;
        places := array(select x.place from millrace.feed x where x.seq is null and x.due_at is null order by x.place limit most);
    end if;
    held := array(select x.place from millrace.feed x where x.place = any (places) and x.seq is null order by x.place for no key update skip locked);
    if cardinality(held) = 0 then
        return 0;
    end if;
    is_whole := is_whole and cardinality(held) = cardinality(places);
    base := (select max(nextval('millrace.feed_seq')) - count(*) from unnest(held));
    -- No join, so that no plan can walk over the rows once for each row.
    update millrace.feed f
       set seq = base + width_bucket(f.place, held), at = coalesce(f.due_at, f.at), due_at = null
     where f.place = any (held);
    if is_whole then                                       -- the own transaction may still write more
        update millrace.feed f
           set counted_to = pg_snapshot_xmax(seen), counted_open = array(select pg_snapshot_xip(seen)) || pg_current_xact_id(), counted_at = t
         where f.seq = base + cardinality(held);
    end if;
    return cardinality(held);
end $$;

-- A thread's changes are one row for all of its members. Each hears of the messages that it may see; of its own marks it has rows of its own.
create or replace function millrace.feed_thread_tells(f millrace.feed, the_person text, since_n bigint) returns boolean
language sql immutable parallel safe as $$
    select f.n >= since_n and (f.change in ('message', 'deleted') or f.about is distinct from the_person)
$$;

-- After a restore of the database to an earlier moment: the numbers go on far above all that was given out before, and every position from before
-- is answered with `reset`. Returns the new position.
create or replace function millrace.feed_restored(caller millrace.caller_name default current_user) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    start bigint;
begin
    perform millrace.feed_number();
    start := (select s.last_value from millrace.feed_seq s) + 1000000000;
    perform setval('millrace.feed_seq', start);
    update millrace.feed_mark set gone = start;
    perform millrace.feed_taken();
    perform millrace.audited('feed.restored', null, jsonb_build_object('position', start), caller => feed_restored.caller);
    return start;
end $$;
select millrace.door_is('feed', 'feed_restored', 'admin', 'staff', audited => true);

-- How the jobs stand that somebody follows, for one query of a process. Jobs that are not there any more have no row.
create or replace function millrace.jobs_followed(ids bigint[])
returns table (id bigint, owner text, tenant text, state text, attempt int, progress jsonb, message text, updated timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
    one bigint;
begin
    if jobs_followed.ids is null or cardinality(jobs_followed.ids) > 1000 then
        perform millrace.refuse('ids is null or has more than 1000', 'ids', 'Ask for fewer at once.');
    end if;
    for one in select distinct i from unnest(jobs_followed.ids) i where i is not null order by i loop
        return query
            select v.id, j.owner::text, j.tenant, v.state, v.attempt, v.progress, coalesce(v.progress ->> 'note', v.progress ->> 'stage'),
                   greatest(v.enqueued_at, v.started_at, v.finished_at, (v.progress ->> 'at')::timestamptz)
              from millrace.job(one) v join millrace.job j on j.id = v.id;
    end loop;
end $$;
select millrace.door_is('feed', 'jobs_followed', 'gateway', 'staff');

-- A plain check-in is worth little when a later row of the person's watch has its new state: it is kept for a day. Most of a feed is of these.
create or replace function millrace.feed_thin(most int default 50000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    past timestamptz := millrace.now() - interval '1 day';
    first bigint := (select m.thinned from millrace.feed_mark m);
    last bigint;
    gone bigint;
begin
    if not exists (select from (select x.at from millrace.feed x where x.seq > first order by x.seq limit 1000) f where f.at < past) then
        return 0;
    end if;
    last := (select max(x.seq) from (select y.seq, y.at from millrace.feed y where y.seq > first order by y.seq limit most) x where x.at < past);
    delete from millrace.feed f
     where f.seq > first and f.seq <= last and f.topic = 'check-ins' and f.change = 'checked_in'
       and exists (select from millrace.feed y where y.person = f.person and y.seq > f.seq and y.topic = 'check-ins' and y.data ? 'state');
    get diagnostics gone = row_count;
    update millrace.feed_mark set thinned = last;
    return gone;
end $$;

-- Kept for 14 days, as events are, read or not. The numbers that went are remembered.
create or replace function millrace.feed_expire(most int default 50000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    past timestamptz := millrace.now() - interval '14 days';
    last bigint;
    gone bigint;
    n bigint;
begin
    -- Where nobody reads, nobody numbers.
    if exists (select from millrace.feed_fresh(0, millrace.now()) p join millrace.feed x on x.place = p where x.at < millrace.now() - interval '10 minutes') then
        perform millrace.feed_number(4 * most);
    end if;
    gone := millrace.feed_thin(most);
    if exists (select from (select x.at from millrace.feed x where x.seq is not null order by x.seq limit 1000) f where f.at < past) then
        with old as (
            delete from millrace.feed f
             where f.ctid = any (array(select x.ctid from (select y.ctid, y.at from millrace.feed y where y.seq is not null order by y.seq limit most) x where x.at < past))
            returning f.seq
        )
        select count(*), max(o.seq) into n, last from old o;
        gone := gone + n;
    end if;
    update millrace.feed_mark m set gone = last where last > m.gone;
    return gone;
end $$;

-- Joins in person_erase, behind all rooms, whose triggers have told of the end: nothing stays of the person, and nothing names it.
create or replace function millrace.feed_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    gone bigint := millrace.feed_forget(feed_erase_person.person, null);
    n bigint;
begin
    gone := gone + millrace.feed_drop(feed_erase_person.person, null);
    update millrace.feed f set actor = null, data = f.data - array['contact', 'acknowledged_by', 'seen_by', 'invited_by'] where f.actor = feed_erase_person.person;
    get diagnostics n = row_count;
    return gone + n;
end $$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.feed_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'change', lpad(f.place::text, 20, '0'), jsonb_build_object('at', f.at, 'topic', f.topic, 'ref', f.ref, 'change', f.change, 'data', f.data)
      from millrace.feed f where f.person = feed_export_person.person and f.seq is not null
$$;
