-- What a worker calls on a message's way: take, freeze, open a request, record the result.

create or replace function millrace.mail_changed(the_id uuid, the_change text) returns void
language plpgsql volatile as $$
begin
    insert into millrace.mail_change (at, message, change, data)
    select millrace.now(), m.id, the_change, jsonb_strip_nulls(jsonb_build_object('status', m.status, 'service', m.service, 'error', m.error_class))
      from millrace.mail m where m.id = the_id;
end $$;

create or replace function millrace.mail_audited(what text, the_message uuid, detail jsonb, caller name) returns void
language sql volatile as $$
    insert into millrace.mail_audit (at, by, what, message, detail) values (millrace.now(), mail_audited.caller, what, the_message, detail)
$$;

-- A status only ever rises: late or repeated news changes nothing.
create or replace function millrace.mail_raise(the_id uuid, the_status text, the_change text, the_error text) returns boolean
language plpgsql volatile as $$
begin
    update millrace.mail m set status = the_status, changed_at = millrace.now(), error = coalesce(the_error, m.error)
     where m.id = the_id and millrace.mail_rank(the_status) > millrace.mail_rank(m.status);
    if not found then
        return false;
    end if;
    perform millrace.mail_changed(the_id, the_change);
    return true;
end $$;

create or replace function millrace.mail_told(the_type text, the_service text, the_template text, was_well boolean, the_error text) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    insert into millrace.mail_tale (type, service, template, success, at, error) values (the_type, the_service, the_template, was_well, millrace.now(), the_error)
$$;
select millrace.door_is('mail', 'mail_told', 'worker', 'staff');

-- As in RFC 3986: characters that are not unreserved become %XX.
create or replace function millrace.mail_escaped(given text) returns text
language sql immutable parallel safe as $$
    select coalesce(string_agg(case when c ~ '^[A-Za-z0-9._~-]$' then c
               else (select string_agg('%' || upper(lpad(to_hex(get_byte(b, i)), 2, '0')), '' order by i) from generate_series(0, octet_length(b) - 1) i) end, '' order by n), '')
      from regexp_split_to_table(given, '') with ordinality x(c, n), lateral (select convert_to(c, 'UTF8') as b) y
$$;

-- A time in a message, as its language writes it: `18:00 on 31 January 2027 (UTC)`. English where it is none of ours.
create or replace function millrace.mail_said_at(t timestamptz, locale text) returns text
language sql stable as $$
    select to_char(u.t, 'HH24:MI') || millrace.in_language(u.language,
               to_char(u.t, '" on "FMDD FMMonth YYYY'),
               to_char(u.t, '" am "FMDD". "') || (array['Januar', 'Februar', 'März', 'April', 'Mai', 'Juni', 'Juli', 'August', 'September', 'Oktober', 'November', 'Dezember'])[date_part('month', u.t)::int]
                   || to_char(u.t, '" "YYYY'),
               to_char(u.t, '" يوم "FMDD" "') || (array['يناير', 'فبراير', 'مارس', 'أبريل', 'مايو', 'يونيو', 'يوليو', 'أغسطس', 'سبتمبر', 'أكتوبر', 'نوفمبر', 'ديسمبر'])[date_part('month', u.t)::int]
                   || to_char(u.t, '" "YYYY'))
           || ' (UTC)'
      from (select mail_said_at.t at time zone 'UTC' as t, millrace.words_language(mail_said_at.locale) as language) u
$$;

-- What to do for each of these jobs: render, send, batch (continue that request), wait (a number of seconds), done, discard.
create or replace function millrace.mail_take(jobs bigint[], kinds text[], args text[], app_name text, reset_url text, verify_url text)
returns table (n int, message uuid, verdict text, seconds float8, reason text, batch bigint, priority text, template text, data jsonb, locale text,
    subject text, body_text text, body_html text, unsubscribe bytea)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    parsed jsonb;
    one millrace.mail;
    c millrace.mail_content;
    t timestamptz;
begin
    for i in 1 .. cardinality(jobs) loop
        n := i;
        message := null; seconds := null; reason := null; batch := null; priority := null; template := null; data := null; locale := null;
        subject := null; body_text := null; body_html := null; unsubscribe := null; c := null;
        begin
            parsed := args[i]::jsonb;
            if parsed ? 'message' then
                -- Anybody who may enqueue this kind can name any message.
                select m.id into message from millrace.mail m
                 where m.id = (parsed ->> 'message')::uuid and millrace.job_serves(jobs[i], m.job, m.owner, m.tenant);
            else
                message := coalesce((parsed ->> 'id')::uuid, (parsed #>> '{options,id}')::uuid, md5('millrace.mail:' || jobs[i])::uuid);
                if not exists (select from millrace.mail m where m.id = message and m.job = jobs[i]) then
                    -- With the rights of who enqueued the job, not the worker's.
                    message := millrace.mail_put(kinds[i], parsed, message, jobs[i], caller => coalesce((select j.owner from millrace.job j where j.id = jobs[i]), ''));
                    update millrace.mail m set tenant = j.tenant from millrace.job j where j.id = jobs[i] and m.id = message and j.tenant is not null;
                end if;
            end if;
        exception when data_exception or integrity_constraint_violation or insufficient_privilege or no_data_found or sqlstate '53400' then
            verdict := 'discard';
            reason := sqlerrm;
            return next;
            continue;
        end;
        select * into one from millrace.mail m where m.id = message for update;
        t := millrace.now();
        if not found then
            verdict := 'discard';
            reason := 'there is no such message';
        elsif one.batch is not null then
            verdict := 'batch';
            batch := one.batch;
            priority := one.priority;
        elsif one.status = 'failed' then
            verdict := 'discard';
            reason := coalesce(one.error, 'it failed');
        elsif millrace.mail_is_over(one.status, one.on_unknown) then
            verdict := 'done';
        elsif one.expires_at <= t then
            perform millrace.mail_raise(one.id, 'expired', 'expired', 'it was not sent in time');
            verdict := 'done';
        elsif one.scheduled_at > t then
            verdict := 'wait';
            seconds := extract(epoch from one.scheduled_at - t);
        else
            select * into c from millrace.mail_content x where x.message = one.id;
            if not found then
                verdict := 'done';                        -- erased
            else
                verdict := case when c.frozen_at is null then 'render' else 'send' end;
                priority := one.priority;
                if verdict = 'render' then
                    template := one.template; locale := one.locale; subject := c.subject; body_text := c.body_text; body_html := c.body_html;
                    data := jsonb_strip_nulls(jsonb_build_object('app_name', coalesce(app_name, millrace.mail_defaults() ->> 'app_name'), 'expires', millrace.mail_said_at(one.expires_at, one.locale),
                        'url', replace(case one.kind when 'mail.password_reset' then reset_url when 'mail.account_verification' then verify_url end,
                            '{token}', millrace.mail_escaped(c.data ->> 'token')))) || coalesce(c.data, '{}') - case when one.kind = 'mail.send' then '' else 'token' end;
                    unsubscribe := case one.purpose when 'marketing' then millrace.mail_hash(c.recipients[1]) end;
                end if;
            end if;
        end if;
        return next;
    end loop;
end $$;
select millrace.door_is('mail', 'mail_take', 'worker', 'staff');

-- From here on the message does not change. A second call changes nothing.
create or replace function millrace.mail_freeze(messages text[], subjects text[], texts text[], htmls text[], versions int[], locales text[], links text[],
    from_address text, from_name text) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
    with given as (
        select g.message::uuid, g.subject, g.body_text, g.body_html, nullif(g.version, 0) as version, g.locale, g.link
          from unnest(messages, subjects, texts, htmls, versions, locales, links) g(message, subject, body_text, body_html, version, locale, link)
    ), frozen as (
        update millrace.mail_content c set subject = g.subject, body_text = g.body_text, body_html = g.body_html, data = null, frozen_at = millrace.now(),
               from_address = mail_freeze.from_address, from_name = mail_freeze.from_name,
               headers = c.headers || case when g.link is null then '{}' else
                   jsonb_build_object('List-Unsubscribe', '<' || g.link || '>', 'List-Unsubscribe-Post', 'List-Unsubscribe=One-Click') end
          from given g where c.message = g.message and c.frozen_at is null
        returning c.message
    )
    update millrace.mail m set version = g.version, locale = coalesce(g.locale, m.locale)
      from given g where m.id = g.message and g.message in (select f.message from frozen f)
$$;
select millrace.door_is('mail', 'mail_freeze', 'worker', 'staff');

-- It cannot be sent at all: its template is missing, or refuses its data.
create or replace function millrace.mail_failed(the_message text, the_class text, the_error text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    update millrace.mail m set error_class = the_class where m.id = the_message::uuid;
    if millrace.mail_raise(the_message::uuid, 'failed', 'failed', left(the_error, 500)) then
        perform millrace.mail_told('emailFailed', m.service, m.template, false, the_class) from millrace.mail m where m.id = the_message::uuid;
    end if;
end $$;
select millrace.door_is('mail', 'mail_failed', 'worker', 'staff');

-- Checks a limit of `most` messages per span against a row's own past; null: it may go now, else the seconds until it may.
create or replace function millrace.mail_over(count bigint, most int, oldest timestamptz, span float8) returns float8
language sql volatile as $$
    select case when count >= most then greatest(0.1, extract(epoch from oldest - millrace.now()) + span) end
$$;

-- Whether a message that is in no request is sent no more. One in doubt is, where a duplicate does less harm than none.
create or replace function millrace.mail_is_over(the_status text, the_on_unknown text) returns boolean
language sql immutable parallel safe as $$
    select millrace.mail_rank(the_status) > millrace.mail_rank('sending') and (the_status <> 'unknown' or the_on_unknown <> 'again')
$$;

-- Opens requests, frozen before their first attempt: one for all these messages, or with `alone` one for each. This transaction, which
-- claims a message for a request, also checks whether the message may be sent at all: cancelled, expired, suppressed, too many from one
-- sender or to one domain.
create or replace function millrace.mail_batch_open(the_provider text, messages text[], alone boolean, the_holder bigint, hold float8,
    sender_most int, sender_span float8, domain_most int, domain_span float8)
returns table (message uuid, verdict text, seconds float8, batch bigint, key text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    ids uuid[] := messages::uuid[];
    one record;
    gone text[];
    admitted uuid[] := '{}';
    said text[] := '{}';
    waits float8[] := '{}';
    t timestamptz;
    domain text;
    is_alarm boolean;
    shares boolean;
begin
    perform from (select m.id from millrace.mail m where m.id = any (ids) order by m.id for update) locked;
    if sender_most > 0 then
        perform millrace.turns_wait('mail sender', array(
            select distinct hashtext(m.sender) & 1023 from millrace.mail m where m.id = any (ids) and m.sender is not null));
    end if;
    if domain_most > 0 then
        perform millrace.turns_wait('mail domain', array(
            select distinct hashtext(d) & 1023 from millrace.mail m, unnest(m.domains) d where m.id = any (ids)));
    end if;
    t := millrace.now();
    for one in
        select g.id, m.batch, m.status, m.on_unknown, m.expires_at, m.purpose, m.sender, m.owner, m.tenant, m.domains, c.message is null as is_erased, c.recipients, c.addresses
          from unnest(ids) with ordinality g(id, n)
          left join millrace.mail m on m.id = g.id
          left join millrace.mail_content c on c.message = g.id
         order by g.n
    loop
        seconds := null;
        if one.batch is not null then
            verdict := 'wait';
            seconds := 1;
        elsif one.is_erased or millrace.mail_is_over(one.status, one.on_unknown) then
            verdict := 'settled';
        elsif one.expires_at <= t then
            perform millrace.mail_raise(one.id, 'expired', 'expired', 'it was not sent in time');
            verdict := 'settled';
        else
            verdict := 'in';
            gone := array(select a from unnest(one.addresses) a
                           where exists (select from millrace.mail_suppression s where s.hash = millrace.mail_hash(a) and s.purpose in ('*', one.purpose)));
            if gone <> '{}' then
                insert into millrace.mail_note (message, at, type, recipient, data, seen_at)
                select one.id, t, 'suppressed', a, '{}', t from unnest(gone) a;
                if not exists (select from unnest(one.recipients) r where millrace.mail_bare(r) <> all (gone)) then
                    perform millrace.mail_raise(one.id, 'suppressed', 'suppressed', 'its recipient is suppressed');
                    verdict := 'settled';
                else
                    verdict := 'fewer';                   -- admitted, with others than were read before
                    update millrace.mail_content x
                       set recipients = array(select r from unnest(x.recipients) with ordinality y(r, n) where millrace.mail_bare(r) <> all (gone) order by n),
                           cc = array(select r from unnest(x.cc) with ordinality y(r, n) where millrace.mail_bare(r) <> all (gone) order by n),
                           bcc = array(select r from unnest(x.bcc) with ordinality y(r, n) where millrace.mail_bare(r) <> all (gone) order by n)
                     where x.message = one.id;
                end if;
            end if;
            -- A client can call any message an alarm.
            is_alarm := one.purpose = 'alarm' and millrace.is_backend(one.owner);
            if verdict in ('in', 'fewer') and sender_most > 0 and one.sender is not null and not is_alarm then
                select millrace.mail_over(count(*), sender_most, min(x.began_at), sender_span) into seconds
                  from (select m.began_at from millrace.mail m
                         where m.sender = one.sender and m.owner = one.owner and m.tenant is not distinct from one.tenant and m.began_at > t - make_interval(secs => sender_span)
                         order by m.began_at desc limit sender_most) x;
            end if;
            if verdict in ('in', 'fewer') and domain_most > 0 and seconds is null and not is_alarm then
                -- What goes to a domain is bounded for all, so that one tenant or client takes half at most.
                shares := domain_most > 1 and (one.tenant is not null or not millrace.is_backend(one.owner));
                foreach domain in array one.domains loop
                    select millrace.mail_over(count(*), domain_most, min(x.began_at), domain_span) into seconds
                      from (select m.began_at from millrace.mail m where m.domains @> array[domain] and m.began_at is not null
                               and m.began_at > t - make_interval(secs => domain_span)
                             order by m.began_at desc limit domain_most) x;
                    exit when seconds is not null;
                    if shares then
                        select millrace.mail_over(count(*), domain_most / 2, min(x.began_at), domain_span) into seconds
                          from (select m.began_at from millrace.mail m where m.domains @> array[domain] and m.began_at is not null
                                   and m.began_at > t - make_interval(secs => domain_span) and m.owner = one.owner and m.tenant is not distinct from one.tenant
                                 order by m.began_at desc limit domain_most / 2) x;
                        exit when seconds is not null;
                    end if;
                end loop;
            end if;
            if seconds is not null then
                verdict := 'wait';
            elsif verdict in ('in', 'fewer') then
                admitted := admitted || one.id::uuid;
                if sender_most > 0 or domain_most > 0 then    -- the next of these messages counts it
                    update millrace.mail m set began_at = t where m.id = one.id;
                end if;
            end if;
        end if;
        said := said || verdict;
        waits := waits || seconds;
    end loop;
    if admitted <> '{}' then
        with made as (
            insert into millrace.mail_batch as b (provider, key, messages, state, attempt, recorded, holder, held_until, first_at)
            select the_provider, gen_random_uuid()::text, case when alone then array[a.id] else admitted end, 'open', 1, 0, the_holder,
                   t + make_interval(secs => hold), t
              from unnest(case when alone then admitted else admitted[1:1] end) a(id)
            returning b.id, b.messages
        )
        update millrace.mail m
           set batch = x.id, began_at = t, status = case when millrace.mail_rank(m.status) < 3 then 'sending' else m.status end, changed_at = t
          from made x where m.id = any (x.messages);
    end if;
    return query select x.m, x.v, x.s, b.id, b.key
                   from unnest(ids, said, waits) with ordinality x(m, v, s, n)
                   left join millrace.mail m on m.id = x.m and x.v in ('in', 'fewer')
                   left join millrace.mail_batch b on b.id = m.batch
                  order by x.n;
end $$;
select millrace.door_is('mail', 'mail_batch_open', 'worker', 'staff');

-- A request continues unchanged: after a lost answer (the_attempt: of which attempt), or because its session is gone. verdict: go, wait,
-- settled.
create or replace function millrace.mail_batch_again(the_batch bigint, the_attempt int, the_holder bigint, hold float8)
returns table (verdict text, seconds float8, provider text, key text, messages uuid[], attempt int, age float8, on_unknown text, provider_message_id text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    b millrace.mail_batch;
    t timestamptz := millrace.now();
    ids uuid[];
begin
    -- Messages are locked before their request, as everywhere: a provider's events lock them in that order, too.
    perform from (select m.id from millrace.mail m
                   where m.id = any (array(select unnest(x.messages) from millrace.mail_batch x where x.id = the_batch)) order by m.id for update) locked;
    select * into b from millrace.mail_batch x where x.id = the_batch for update;
    if not found or b.state <> 'open' then
        verdict := 'settled';
        return next;
        return;
    end if;
    if the_attempt is not null and b.attempt <> the_attempt
        or the_attempt is null and b.held_until > t and b.holder <> the_holder and exists (select from millrace.session s where s.id = b.holder) then
        verdict := 'wait';
        seconds := least(5, greatest(0.2, extract(epoch from b.held_until - t)));
        return next;
        return;
    end if;
    if the_attempt is null and b.held_until > t and b.holder = the_holder and b.recorded < b.attempt then
        verdict := 'wait';                                -- another run of this very process is at it
        seconds := least(5, greatest(0.2, extract(epoch from b.held_until - t)));
        return next;
        return;
    end if;
    ids := array(select i from unnest(b.messages) with ordinality x(i, n) join millrace.mail m on m.id = x.i where m.batch = b.id order by n);
    if b.recorded < b.attempt then                        -- nobody has come back from it
        perform millrace.mail_batch_record(array[b.id], array[b.attempt], array['open'], array[-1], array_fill(1, array[cardinality(ids)]), ids::text[],
            array_fill('unknown'::text, array[cardinality(ids)]), array_fill('unknown'::text, array[cardinality(ids)]), array_fill(null::text, array[cardinality(ids)]),
            array_fill('the worker was lost before the answer came'::text, array[cardinality(ids)]), array_fill(null::text, array[cardinality(ids)]),
            array_fill('unknown'::text, array[cardinality(ids)]));
    end if;
    if not exists (select from millrace.mail m where m.id = any (ids) and (m.expires_at is null or m.expires_at > t)) then
        perform millrace.mail_raise(i, 'expired', 'expired', 'it was not known whether it was sent, and it has expired') from unnest(ids) i;
        update millrace.mail m set batch = null where m.id = any (ids);
        update millrace.mail_batch x set state = 'settled' where x.id = b.id;
        verdict := 'settled';
        return next;
        return;
    end if;
    update millrace.mail_batch x set attempt = x.attempt + 1, holder = the_holder, held_until = t + make_interval(secs => hold) where x.id = b.id;
    verdict := 'go';
    provider := b.provider; key := b.key; messages := b.messages; attempt := b.attempt + 1;
    age := extract(epoch from t - b.first_at);
    select case when bool_and(m.on_unknown = 'again') then 'again' else 'park' end, min(m.provider_message_id) into on_unknown, provider_message_id
      from millrace.mail m where m.id = any (ids);
    return next;
end $$;
select millrace.door_is('mail', 'mail_batch_again', 'worker', 'staff');

-- Records the results of attempts, one row for each message. place: the message's request among `batches`; took: milliseconds, -1 for
-- unknown.
-- statuses: what the message's status rises to, null to leave it. fates: what became of each whole request (open, settled, split or
-- parked); unless it is open its messages are free. An attempt's results are recorded even when another attempt has begun since; the
-- request then belongs to that one.
create or replace function millrace.mail_batch_record(batches bigint[], tries int[], fates text[], took int[], place int[], messages text[], outcomes text[],
    classes text[], codes text[], errors text[], provider_ids text[], statuses text[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
    set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
declare
    ids uuid[] := messages::uuid[];
    t timestamptz := millrace.now();
    one record;
begin
    perform from (select m.id from millrace.mail m where m.id = any (ids) order by m.id for update) locked;
    perform from (select x.id from millrace.mail_batch x where x.id = any (batches) order by x.id for update) locked;
    with given as materialized (
        select g.message::uuid as message, b.id as batch, b.provider, b.key, nullif(took[g.place], -1) as ms, g.outcome, g.class, g.code, g.error, g.provider_id, g.status,
               b.attempt = tries[g.place] and b.state = 'open' and (fates[g.place] <> 'open' or g.status in ('accepted', 'failed', 'parked')) as is_free
          from unnest(place, messages, outcomes, classes, codes, errors, provider_ids, statuses)
               g(place, message, outcome, class, code, error, provider_id, status)
          join millrace.mail_batch b on b.id = batches[g.place]
    ), told as (
        update millrace.mail m set attempts = m.attempts + 1, service = g.provider,
               provider_message_id = coalesce(g.provider_id, m.provider_message_id),
               sent_at = case when g.outcome = 'accepted' then coalesce(m.sent_at, t) else m.sent_at end,
               error = case when g.outcome = 'accepted' then null else left(coalesce(g.error, m.error), 500) end,
               error_class = case when g.outcome = 'accepted' then null else coalesce(g.class, m.error_class) end,
               changed_at = t,
               status = case when millrace.mail_rank(g.status) > millrace.mail_rank(m.status) then g.status else m.status end,
               batch = case when g.is_free and m.batch = g.batch then null else m.batch end
          from given g where m.id = g.message
        returning m.id, m.attempts, m.status, m.template, m.error_class, g.batch, g.provider, g.key, g.ms, g.outcome, g.class, g.code, g.status as told
    ), changes as (
        insert into millrace.mail_change (at, message, change, data)
        select t, x.id, x.told, jsonb_strip_nulls(jsonb_build_object('status', x.status, 'service', x.provider, 'error', x.error_class))
          from told x where x.told = x.status
    ), tales as (
        insert into millrace.mail_tale (type, service, template, success, at, error)
        select case x.told when 'accepted' then 'emailSent' else 'emailFailed' end, x.provider, x.template, x.told = 'accepted', t, x.error_class
          from told x where x.told in ('accepted', 'failed')
    )
    insert into millrace.mail_attempt (message, n, provider, outcome, error, code, batch, key, at, ms)
    select x.id, x.attempts, x.provider, x.outcome, case when x.outcome <> 'accepted' then x.class end, x.code, x.batch, x.key, t, x.ms from told x;
    update millrace.mail_batch x set recorded = g.attempt, state = g.fate, held_until = case when g.fate = 'open' then t else x.held_until end
      from unnest(batches, tries, fates) g(id, attempt, fate) where x.id = g.id and x.state = 'open' and x.attempt = g.attempt;
    -- The messages that got no status.
    update millrace.mail m set batch = null
      from millrace.mail_batch x where x.id = any (batches) and x.state <> 'open' and m.id = any (x.messages) and m.batch = x.id;
    -- Events that a provider sent before we knew its id.
    if array_remove(provider_ids, null) <> '{}' then
        for one in
            select x.id, g.message::uuid as message
              from unnest(place, messages, provider_ids) g(place, message, provider_id)
              join millrace.mail_batch b on b.id = batches[g.place]
              join millrace.mail_note x on x.provider_message_id = g.provider_id and x.message is null and x.provider = b.provider
             where g.provider_id is not null order by x.id
        loop
            update millrace.mail_note x set message = one.message where x.id = one.id;
            perform millrace.mail_apply(one.id);
        end loop;
    end if;
end $$;
select millrace.door_is('mail', 'mail_batch_record', 'worker', 'staff');

-- Frozen messages, with everything that a letter needs.
create or replace function millrace.mail_letters(messages text[])
returns table (message uuid, kind text, priority text, purpose text, on_unknown text, fallback boolean, receipt boolean, created_at timestamptz,
    recipients text[], cc text[], bcc text[], reply_to text, subject text, body_text text, body_html text, headers jsonb, attachments jsonb, tags jsonb,
    from_address text, from_name text, provider_message_id text, was_unknown boolean)
language sql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
    select m.id, m.kind, m.priority, m.purpose, m.on_unknown, m.fallback, m.receipt, m.created_at, c.recipients, c.cc, c.bcc, c.reply_to, c.subject,
           c.body_text, c.body_html, c.headers, c.attachments, c.tags, c.from_address, c.from_name, m.provider_message_id,
           m.attempts > 0 and exists (select from millrace.mail_attempt a where a.message = m.id and a.outcome = 'unknown')
      from unnest(messages) with ordinality g(message, n)
      join millrace.mail m on m.id = g.message::uuid
      join millrace.mail_content c on c.message = m.id
     order by g.n
$$;
select millrace.door_is('mail', 'mail_letters', 'worker', 'staff');

-- True for the one who noticed that mail goes another way now. Back only when the chosen service is called again by everybody.
create or replace function millrace.mail_route_by(the_chosen text, the_current text, the_reason text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    old millrace.mail_route;
begin
    select * into old from millrace.mail_route;
    if old.current = the_current and old.chosen = the_chosen then
        return false;
    end if;
    if the_current = the_chosen and old.current is not null
        and exists (select from millrace.provider_circuit c where c.provider = the_chosen and c.state not in ('closed', 'forced_closed', 'observing')) then
        return false;
    end if;
    insert into millrace.mail_route as r (chosen, current, reason, changed_at) values (the_chosen, the_current, the_reason, millrace.now())
        on conflict (one) do update set chosen = excluded.chosen, current = excluded.current, reason = excluded.reason, changed_at = excluded.changed_at
        where (r.chosen, r.current) is distinct from (excluded.chosen, excluded.current);
    if not found then
        return false;
    end if;
    if coalesce(old.current, the_chosen) = the_current then
        return false;                                     -- the first message ever, or another configuration
    end if;
    perform millrace.mail_told('serviceSwitched', the_current, null, true, the_reason);
    perform millrace.mail_audited('switch', null, jsonb_build_object('from', coalesce(old.current, the_chosen), 'to', the_current, 'reason', the_reason), caller => mail_route_by.caller);
    return true;
end $$;
select millrace.door_is('mail', 'mail_route_by', 'worker', 'staff');
