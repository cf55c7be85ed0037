-- The results of sendings, their figures, and the provider tokens that workers share.

-- How long to wait before the next try. An alarm never waits for longer than a minute.
create or replace function millrace.notice_pause(is_alarm boolean, attempts int, asked float8) returns interval
language sql volatile as $$
    select make_interval(secs => case when is_alarm
        then greatest(least(60, 2 ^ least(attempts - 1, 10)) * (0.8 + 0.4 * random()), least(coalesce(asked, 0), 60))
        else greatest(least(3600, 5 * 2 ^ least(attempts - 1, 10)) * (0.8 + 0.4 * random()), least(coalesce(asked, 0), 3600)) end)
$$;

-- accepted counts even when it comes late, or from a worker whose lease is over; gone: the device is gone; refused: a retry does not help;
-- throttled, failed: nothing was sent; unknown: it may have been sent; not_called: the provider is not called now, so there was no try, and the
-- next comes after the pause that the worker was told. Alarms are tried as long as they are useful, a day by default; other notices eight
-- times, but by SMS or voice never again when the first may have arrived.
create or replace function millrace.notice_record(the_holder bigint, results jsonb) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    x record;
    one millrace.notice;
    t timestamptz := millrace.now();
    recorded int := 0;
begin
    for x in select * from jsonb_to_recordset(results)
        r(id uuid, attempt int, provider text, outcome text, class text, code text, error text, reply text, wait float8, ms int, gone_at float8) order by r.id
    loop
        select * into one from millrace.notice n where n.id = x.id for update;
        continue when not found;
        if x.outcome = 'not_called' then
            update millrace.notice n
               set status = 'pending', holder = null, attempts = n.attempts - 1, provider = x.provider, error = left(x.error, 500), error_class = x.class,
                   wait_until = t + make_interval(secs => least(greatest(coalesce(x.wait, 1), 0.1), 60))
             where n.id = x.id and n.status = 'attempting' and n.holder = the_holder;
            recorded := recorded + 1;
            continue;
        end if;
        insert into millrace.notice_attempt (notice, n, provider, outcome, error, code, at, ms)
        values (x.id, x.attempt, x.provider, x.outcome, left(x.error, 500), left(x.code, 100), t, x.ms);
        recorded := recorded + 1;
        if x.outcome = 'accepted' then
            update millrace.notice n
               set status = 'accepted', accepted_at = coalesce(n.accepted_at, t), provider = x.provider, reply = left(x.reply, 200), holder = null, wait_until = null,
                   error = null, error_class = null
             where n.id = x.id and n.status <> 'accepted';
            if one.parent is not null then
                perform millrace.notice_fold(one.parent);
            end if;
            continue;
        end if;
        -- A device that was seen since the provider lost sight of it has the same token again.
        if x.outcome = 'gone' then
            delete from millrace.device d where d.token = one.address and (x.gone_at is null or d.seen_at < to_timestamp(x.gone_at));
        end if;
        continue when one.status <> 'attempting' or one.holder is distinct from the_holder;
        update millrace.notice n set provider = x.provider where n.id = x.id;
        if x.outcome in ('gone', 'refused') then
            perform millrace.notice_settle(one, 'failed', x.class, left(x.error, 500));
        elsif x.outcome = 'unknown' and not one.alarm and one.channel in ('sms', 'voice') then
            perform millrace.notice_settle(one, 'failed', 'unknown', left('it may have arrived, and is not sent again: ' || x.error, 500));
        elsif one.attempts >= 8 and not one.alarm or one.expires_at <= t or one.expires_at is null and one.due_at < t - interval '1 day' then
            perform millrace.notice_settle(one, case when one.expires_at <= t then 'expired' else 'failed' end, x.class, left(x.error, 500));
        else
            update millrace.notice n
               set status = 'pending', holder = null, wait_until = t + millrace.notice_pause(n.alarm, n.attempts, x.wait), error = left(x.error, 500), error_class = x.class,
                   duplicates = n.duplicates + (x.outcome = 'unknown')::int
             where n.id = x.id;
        end if;
    end loop;
    return recorded;
end $$;
select millrace.door_is('notices', 'notice_record', 'worker', 'staff');

-- The mail service took it and could not deliver it, so nobody was told.
create or replace function millrace.notice_mail_ended() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.notice;
begin
    select * into one from millrace.notice n where n.mail = new.id for update;
    if found then
        update millrace.notice n set status = case when new.status = 'parked' then n.status else 'failed' end, error_class = coalesce(new.error_class, new.status),
               error = left('the mail was handed over and is ' || new.status || coalesce(': ' || new.error, ''), 500)
         where n.id = one.id;
        if one.parent is not null then
            perform millrace.notice_fold(one.parent);
        end if;
    end if;
    return null;
end $$;

do $$
begin
    if not exists (select from pg_trigger g where g.tgrelid = 'millrace.mail'::regclass and g.tgname = 'a_notice_follows_its_mail') then
        create trigger a_notice_follows_its_mail after update of status on millrace.mail for each row
            when (new.status <> old.status and new.status in ('failed', 'suppressed', 'bounced', 'complained', 'expired', 'cancelled', 'parked'))
            execute function millrace.notice_mail_ended();
    end if;
end $$;

-- How far alarms, and all other notices, are behind; and how many alarms of the last hour reached nobody.
create or replace function millrace.notice_state(out alarms bigint, out alarm_age float8, out plain bigint, out plain_age float8, out lost bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
    t timestamptz := millrace.now();
begin
    select count(*), coalesce(extract(epoch from t - min(n.due_at)), 0) into alarms, alarm_age
      from (select y.due_at from millrace.notice y where y.alarm and y.status in ('pending', 'attempting') and y.address is not null and y.due_at <= t
            union all
            select y.due_at from millrace.notice y where y.alarm and y.status = 'pending' and y.address is null and y.due_at <= t) n;
    select count(*), coalesce(extract(epoch from t - min(n.due_at)), 0) into plain, plain_age
      from (select * from (select y.due_at from millrace.notice y where not y.alarm and y.status in ('pending', 'attempting') and y.address is not null
                              and coalesce(y.wait_until, y.due_at) <= t order by y.alarm, coalesce(y.wait_until, y.due_at) limit 10000) a
            union all
            select * from (select y.due_at from millrace.notice y where not y.alarm and y.status = 'pending' and y.address is null
                              and coalesce(y.wait_until, y.due_at) <= t order by y.alarm, coalesce(y.wait_until, y.due_at) limit 10000) b) n;
    select count(*) into lost from millrace.notice y where y.alarm and y.status = 'failed' and y.parent is null and y.due_at > t - interval '1 hour';
end $$;
select millrace.door_is('notices', 'notice_state', 'worker, viewer', 'staff');

-- Kept for a month after they were due; a key may be used again then.
create or replace function millrace.notices_expire() returns int
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    n int;
begin
    delete from millrace.notice y where y.id = any (array(
        select o.id from millrace.notice o where o.status not in ('pending', 'attempting') and o.due_at < millrace.now() - interval '30 days' order by o.due_at limit 10000));
    get diagnostics n = row_count;
    return n;
end $$;

create or replace view millrace.notices as
select n.id, n.person, n.kind, n.key, n.channel, n.provider, n.status, n.attempts, n.duplicates, n.alarm, n.due_at, n.accepted_at, n.error,
       n.expires_at, n.created_at, n.channels, n.parent, n.data
  from millrace.notice n;
select millrace.view_is('notices', 'notices', 'worker, operator');

create or replace function millrace.notice_list(the_person text default null, the_status text default null, only_alarms boolean default false, after text default null, page int default 50)
returns table (id uuid, person text, kind text, key text, channel text, provider text, status text, attempts int, duplicates int, alarm boolean, due_at timestamptz,
    accepted_at timestamptz, error text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    last timestamptz;
    last_id uuid;
begin
    perform millrace.valid_page(notice_list.page);
    if notice_list.after is not null then
        select n.due_at, n.id into last, last_id from millrace.notice n where n.id::text = notice_list.after;
        if not found then
            perform millrace.refuse('there is no such notice', 'after', null, 'P0002', 'not_found');
        end if;
    end if;
    return query
    select n.id, n.person, n.kind, n.key, n.channel, n.provider, n.status, n.attempts, n.duplicates, n.alarm, n.due_at, n.accepted_at, n.error
      from millrace.notice n
     where (the_person is null or n.person = the_person) and (the_status is null or n.status = the_status) and (not only_alarms or n.alarm)
       and (last is null or (n.due_at, n.id) < (last, last_id))
     order by n.due_at desc, n.id desc limit notice_list.page;
end $$;
select millrace.door_is('notices', 'notice_list', 'worker, viewer', 'staff');

-- One notice with its sendings and their tries. No address: that stands with the person.
create or replace function millrace.notice_story(the_id uuid) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select to_jsonb(v) || jsonb_build_object(
        'attempts_made', coalesce((select jsonb_agg(jsonb_build_object('n', a.n, 'provider', a.provider, 'outcome', a.outcome, 'error', a.error, 'code', a.code, 'at', a.at, 'ms', a.ms) order by a.at, a.n)
                                     from millrace.notice_attempt a where a.notice = the_id), '[]'),
        'sendings', coalesce((select jsonb_agg(jsonb_build_object('id', c.id, 'channel', c.channel, 'provider', c.provider, 'status', c.status, 'attempts', c.attempts,
                                     'duplicates', c.duplicates, 'accepted_at', c.accepted_at, 'error', c.error) order by c.channel, c.id)
                                from millrace.notice c where c.parent = the_id), '[]'))
      from millrace.notices v where v.id = the_id
$$;
select millrace.door_is('notices', 'notice_story', 'worker, operator', 'staff');

-- The present token, and whether the caller should make the next one: the first caller after the token is `fresh` seconds old, for ten
-- seconds.
create or replace function millrace.provider_token_take(the_name text, the_holder bigint, fresh float8) returns table (sealed jsonb, age float8, is_mine boolean, at float8)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
begin
    insert into millrace.provider_token (name) values (the_name) on conflict do nothing;
    update millrace.provider_token p set holder = the_holder, held_until = t + interval '10 seconds'
     where p.name = the_name and (p.made_at is null or p.made_at < t - make_interval(secs => fresh)) and (p.held_until is null or p.held_until < t);
    is_mine := found;
    select p.sealed, extract(epoch from t - p.made_at)::float8 into sealed, age from millrace.provider_token p where p.name = the_name;
    at := extract(epoch from t);
    return next;
end $$;
select millrace.door_is('notices', 'provider_token_take', 'worker', 'staff');

-- False: another worker was faster.
create or replace function millrace.provider_token_put(the_name text, the_holder bigint, the_token jsonb, made float8) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    update millrace.provider_token p set sealed = the_token, made_at = to_timestamp(made), holder = null, held_until = null
     where p.name = the_name and p.holder = the_holder;
    return found;
end $$;
select millrace.door_is('notices', 'provider_token_put', 'worker', 'staff');

-- What status says of this room: see room_states.
create or replace function millrace.notice_status_part() returns jsonb
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select to_jsonb(s) from millrace.notice_state() s
$$;
