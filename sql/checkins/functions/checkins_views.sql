-- The views of check-ins, their feed, and how a person is erased from them.

create or replace function millrace.watch_contacts(the_person text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select coalesce(jsonb_agg(jsonb_build_object('contact', c.contact, 'name', c.name, 'label', c.label, 'shares', c.shares, 'step', c.step, 'wait_seconds', extract(epoch from c.wait), 'channels', (
        select jsonb_agg(jsonb_build_object('channel', d.channel, 'address', d.address, 'consent',
                    case when d.declined_at is not null then 'declined' when d.verified_at is not null then 'given' when d.asked_at is not null then 'asked'
                         when d.held_until is not null then 'held' else 'none' end, 'held_until', d.held_until)
                    order by d.channel)
          from millrace.watch_address d where d.person = c.person and d.contact = c.contact)) order by c.step, c.contact), '[]')
      from millrace.watch_contact c where c.person = the_person
$$;
select millrace.door_is('checkins', 'watch_contacts', 'worker, operator', 'staff');

create or replace view millrace.check_ins as
select w.person, w.last_checked_in, w.every as check_in_interval, w.expires_at as check_in_expiration, w.state, w.warned_at,
       w.grace, w.warnings, w.zone, case w.state when 'paused' then w.wake_at end as paused_until, w.failures, w.problem
  from millrace.watch w;
select millrace.view_is('checkins', 'check_ins', 'worker, viewer');

create or replace view millrace.alarms as
select a.id, a.person, a.state, a.step, a.expired_at, a.late_by, coalesce(a.first_accepted_at, (
           select min(n.accepted_at) from millrace.alarm_event e join millrace.notice n on n.id = e.notice
            where e.alarm = a.id and n.status = 'accepted')) as first_accepted_at,
       a.acknowledged_by, a.resolved_at, a.cause, a.cause = 'drill' as test, a.resolution, a.reason,
       -- What the person wrote is for staff. A viewer reads this view with its own rights.
       case when has_function_privilege('millrace.right_staff()', 'execute') then a.note end as note, a.round, a.raised_at, a.acknowledged_at,
       a.next_at, a.failures, a.problem
  from millrace.alarm a;
select millrace.view_is('checkins', 'alarms', 'worker, viewer');

create or replace view millrace.alarm_history as
select e.alarm, e.at, e.what, e.contact, e.notice, e.by, e.step, e.round, e.channel, n.status as notice_status, n.accepted_at, e.id
  from millrace.alarm_event e left join millrace.notice n on n.id = e.notice;
select millrace.view_is('checkins', 'alarm_history', 'worker, viewer');

-- As with events: readers number what was committed, one reader at a time. Plain check-ins are not changes; `check_ins` lists them.
create or replace function millrace.checkin_changes(since bigint default 0, page int default 50)
returns table (seq bigint, at timestamptz, id uuid, change text, data jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('a page has 1 to 500 changes', 'page');
    end if;
    if exists (select from millrace.checkin_change c where c.seq is null) and millrace.turn_try('check-in changes') then
        update millrace.checkin_change c set seq = n.seq
          from (select o.place, nextval('millrace.checkin_change_seq') as seq
                  from (select x.place from millrace.checkin_change x where x.seq is null order by x.place limit 10000) o) n
         where c.place = n.place;
    end if;
    return query
        select c.seq, c.at, c.alarm, c.change, jsonb_build_object('person', c.person) || c.data
          from millrace.checkin_change c where c.seq > coalesce(since, 0) order by c.seq limit page;
end $$;
select millrace.door_is('checkins', 'checkin_changes', 'worker', 'staff');

-- For status and doctor. At most ten thousand overdue ones are counted.
create or replace function millrace.check_in_state(
    out watches bigint, out overdue bigint, out oldest float8, out beat float8, out open bigint, out unreachable bigint, out broken bigint
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    t timestamptz := millrace.now();
begin
    select greatest(c.reltuples, 0)::bigint into watches from pg_class c where c.oid = 'millrace.watch'::regclass;
    if watches = 0 then
        watches := (select count(*) from (select from millrace.watch w where w.wake_at is not null order by w.wake_at limit 10000) x);
    end if;
    select count(*), coalesce(extract(epoch from t - min(x.due)), 0) into overdue, oldest
      from (select * from (select w.expires_at as due from millrace.watch w where w.wake_at <= t order by w.wake_at limit 10000) d where d.due <= t
            union all (select a.next_at from millrace.alarm a where a.next_at <= t order by a.next_at limit 10000)) x;
    beat := extract(epoch from t - (select max(m.beat_at) from millrace.watchman m));
    open := (select count(*) from (select from millrace.alarm a where a.next_at is not null order by a.next_at limit 10000) x);
    unreachable := (select count(*) from (select from millrace.alarm a where a.state = 'unreachable' limit 10000) x);
    broken := (select count(*) from (select w.problem from millrace.watch w where w.wake_at is not null order by w.wake_at limit 10000) x where x.problem is not null)
            + (select count(*) from (select a.problem from millrace.alarm a where a.next_at is not null order by a.next_at limit 10000) x where x.problem is not null);
end $$;
select millrace.door_is('checkins', 'check_in_state', 'worker, viewer', 'staff');

-- The feed keeps a fortnight; alarms and their histories stay until their person is erased.
create or replace function millrace.checkins_expire(most int default 20000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    gone bigint;
begin
    delete from millrace.watchman m where m.beat_at < millrace.now() - interval '1 day';
    delete from millrace.checkin_change c
     where c.ctid = any (array(select x.ctid from millrace.checkin_change x where x.at < millrace.now() - interval '14 days' order by x.at limit most));
    get diagnostics gone = row_count;
    return gone;
end $$;

-- What status says of this room: see room_states.
create or replace function millrace.checkin_status_part() returns jsonb
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select to_jsonb(s) from millrace.check_in_state() s
$$;
