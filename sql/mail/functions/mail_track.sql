-- A message after a provider took it: its events, suppressed addresses, and what operators do.

-- Translates the providers' names of events into ours.
create or replace function millrace.mail_type(type text) returns text
language sql immutable parallel safe as $$
    select case regexp_replace(type, E'^email\\.', '')
        when 'delivery_delayed' then 'delayed' when 'complained' then 'complained' when 'canceled' then 'cancelled' when 'accepted' then 'sent'
        else regexp_replace(type, E'^email\\.', '') end
$$;

-- An event of a provider. Told twice it counts once; told out of order it never takes a status back. False: it was known.
create or replace function millrace.mail_event(provider text, event text, type text, at timestamptz, recipient text, data jsonb default '{}') returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_type text := millrace.mail_type(mail_event.type);
    told_id text := coalesce(mail_event.data ->> 'email_id', mail_event.data ->> 'id');
    ours text := mail_event.data #>> '{tags,millrace_message}';
    the_message uuid;
    the_recipient text := mail_event.recipient;
    new_note bigint;
begin
    if mail_event.provider is null or mail_event.event is null or the_type is null or length(the_type) > 64 or length(mail_event.event) > 256 then
        perform millrace.refuse('provider, event or type is missing or too long', 'event');
    end if;
    if told_id is not null then
        select m.id into the_message from millrace.mail m where m.provider_message_id = told_id and m.service = mail_event.provider;
    end if;
    if the_message is null and ours ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
        select m.id into the_message from millrace.mail m where m.id = ours::uuid;
    end if;
    if the_recipient is null and jsonb_typeof(mail_event.data -> 'to') = 'array' and jsonb_array_length(mail_event.data -> 'to') = 1 then
        the_recipient := mail_event.data #>> '{to,0}';
    end if;
    insert into millrace.mail_note (message, at, type, recipient, data, provider, provider_event, provider_message_id, seen_at)
    values (the_message, coalesce(mail_event.at, millrace.now()), the_type, millrace.mail_bare(the_recipient),
        jsonb_strip_nulls(jsonb_build_object('bounce', mail_event.data -> 'bounce', 'failed', mail_event.data -> 'failed', 'suppressed', mail_event.data -> 'suppressed',
            'link', mail_event.data #> '{click,link}')), mail_event.provider, mail_event.event, told_id, millrace.now())
        on conflict on constraint mail_note_provider_provider_event_key do nothing returning id into new_note;
    if new_note is null then
        return false;
    end if;
    if the_message is not null then
        perform millrace.mail_apply(new_note);
    end if;
    return true;
end $$;
select millrace.door_is('mail', 'mail_event', 'worker', 'staff');

-- The effect of a note on its message and on the address.
create or replace function millrace.mail_apply(the_note bigint) returns void
language plpgsql volatile as $$
declare
    x millrace.mail_note;
    m millrace.mail;
    c millrace.mail_content;
    to_status text;
    the_address text;
begin
    select * into x from millrace.mail_note y where y.id = the_note;
    select * into m from millrace.mail y where y.id = x.message for update;
    select * into c from millrace.mail_content y where y.message = x.message;
    to_status := case x.type when 'sent' then 'accepted' when 'delivered' then 'delivered' when 'delayed' then 'delayed' when 'bounced' then 'bounced'
        when 'complained' then 'complained' when 'failed' then 'failed' when 'suppressed' then 'suppressed' when 'opened' then 'delivered' when 'clicked' then 'delivered' end;
    if x.provider_message_id is not null and m.provider_message_id is null then
        -- It settles the doubt: the request was taken.
        update millrace.mail y set provider_message_id = x.provider_message_id, service = x.provider, sent_at = coalesce(y.sent_at, x.at) where y.id = m.id;
    end if;
    if to_status is not null then
        perform millrace.mail_raise(m.id, to_status, x.type, case when x.type in ('bounced', 'failed', 'suppressed') then 'the provider says: ' || x.type end);
        if m.batch is not null then
            update millrace.mail y set batch = null where y.id = m.id;
            update millrace.mail_batch b set state = 'settled' where b.id = m.batch and b.state = 'open' 
               and not exists (select from millrace.mail y where y.id = any (b.messages) and y.batch = b.id);
        end if;
    end if;
    if not exists (select from millrace.mail y where y.id = m.id and y.status = to_status) then
        perform millrace.mail_changed(m.id, x.type);
    end if;
    the_address := coalesce(x.recipient, case when cardinality(c.addresses) = 1 then c.addresses[1] end);
    if the_address is not null and x.type = 'bounced' and coalesce(x.data #>> '{bounce,type}', 'Permanent') = 'Permanent' then
        perform millrace.mail_suppress_as(the_address, 'bounce', '*', x.provider);
    elsif the_address is not null and x.type = 'complained' then
        perform millrace.mail_suppress_as(the_address, 'complaint', p, x.provider) from unnest(array['marketing', 'transactional']) p;
    end if;
end $$;

create or replace function millrace.mail_suppress_as(the_address text, the_reason text, the_purpose text, the_author text) returns boolean
language plpgsql volatile as $$
begin
    insert into millrace.mail_suppression (hash, purpose, reason, address, by, at)
    values (millrace.mail_hash(the_address), the_purpose, the_reason, millrace.mail_bare(the_address), the_author, millrace.now()) on conflict do nothing;
    if found then
        perform millrace.mail_audited('suppress', null, jsonb_build_object('reason', the_reason, 'purpose', the_purpose, 'by', the_author), caller => current_user);
    end if;
    return found;
end $$;

create or replace function millrace.mail_check_purpose(purpose text) returns void
language plpgsql immutable as $$
begin
    if purpose is null or purpose not in ('*', 'transactional', 'security', 'alarm', 'marketing') then
        perform millrace.refuse(format('the purpose %L is unknown', left(purpose, 60)), 'purpose', 'Give transactional, security, alarm, marketing, or * for all.');
    end if;
end $$;

create or replace function millrace.mail_suppress(address text, reason text, purpose text default '*', caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.mail_check_mailbox(address, 'address');
    perform millrace.mail_check_purpose(purpose);
    if reason is null or length(reason) not between 1 and 200 or position('@' in reason) > 0 then
        perform millrace.refuse('the reason is empty, too long, or has an address in it', 'reason', 'The reason is kept longer than the address. Give for example: asked by letter.');
    end if;
    if not millrace.mail_suppress_as(address, reason, purpose, mail_suppress.caller) then
        return false;
    end if;
    perform millrace.audited('mail.suppress', millrace.audit_address(address), jsonb_build_object('purpose', purpose, 'reason', reason), caller => mail_suppress.caller);
    return true;
end $$;
select millrace.door_is('mail', 'mail_suppress', 'worker, operator', 'staff', audited => true);

create or replace function millrace.mail_unsuppress(address text, purpose text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.mail_check_mailbox(address, 'address');
    perform millrace.mail_check_purpose(purpose);
    delete from millrace.mail_suppression s where s.hash = millrace.mail_hash(mail_unsuppress.address) and s.purpose = mail_unsuppress.purpose;
    if not found then
        return false;
    end if;
    perform millrace.mail_audited('unsuppress', null, jsonb_build_object('purpose', purpose), caller => mail_unsuppress.caller);
    perform millrace.audited('mail.unsuppress', millrace.audit_address(address), jsonb_build_object('purpose', purpose), caller => mail_unsuppress.caller);
    return true;
end $$;
select millrace.door_is('mail', 'mail_unsuppress', 'admin', 'staff', audited => true);

create or replace function millrace.mail_suppressions(after text default null, page int default 50)
returns table (hash text, purpose text, reason text, address text, by text, at timestamptz)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select encode(s.hash, 'hex') || '/' || s.purpose, s.purpose, s.reason, s.address, s.by, s.at from millrace.mail_suppression s
     where after is null or encode(s.hash, 'hex') || '/' || s.purpose > after
     order by 1 limit least(page, 500)
$$;
select millrace.door_is('mail', 'mail_suppressions', 'admin', 'staff');

-- Unsubscribes by a signed link, which contains the hash and no address, so that it works long after the address is erased.
create or replace function millrace.mail_unsubscribe(the_hash bytea) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into millrace.mail_suppression (hash, purpose, reason, by, at) values (the_hash, 'marketing', 'unsubscribe', 'link', millrace.now()) on conflict do nothing;
    if found then
        perform millrace.mail_audited('suppress', null, '{"reason": "unsubscribe", "purpose": "marketing", "by": "link"}', caller => current_user);
    end if;
    return found;
end $$;
select millrace.door_is('mail', 'mail_unsubscribe', 'worker', 'staff');

-- Takes that back by the same link. What an operator decided, or a provider reported, stays. False: there is nothing to take back.
create or replace function millrace.mail_subscribe_again(the_hash bytea) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.mail_suppression s where s.hash = the_hash and s.purpose = 'marketing' and s.reason = 'unsubscribe' and s.by = 'link';
    if found then
        perform millrace.mail_audited('unsuppress', null, '{"purpose": "marketing", "by": "link"}', caller => current_user);
    end if;
    return found;
end $$;
select millrace.door_is('mail', 'mail_subscribe_again', 'worker', 'staff');

-- An operator's decision about a message whose result is unknown.
create or replace function millrace.mail_resolve(id uuid, verdict text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.mail := millrace.mail_must_see(mail_resolve.id, caller => mail_resolve.caller);
    new_job bigint;
begin
    if verdict is null or verdict not in ('accepted', 'refused', 'again') then
        perform millrace.refuse('the verdict is unknown', 'verdict', 'Give accepted, refused or again.');
    end if;
    if one.status <> 'parked' then
        perform millrace.refuse(format('message %s is %s', one.id, one.status), 'id', 'Only a parked message waits for a verdict.', '55000', 'conflict');
    end if;
    if verdict = 'again' then
        if not exists (select from millrace.mail_content c where c.message = one.id) then
            perform millrace.refuse(format('message %s was erased', one.id), 'id', null, '55000', 'conflict');
        end if;
        select e.id into new_job from millrace.enqueue_one(one.kind, jsonb_build_object('message', one.id), millrace.mail_queue(one.priority),
            case when one.purpose = 'alarm' and millrace.is_backend(one.owner) then 0 else millrace.mail_lane(one.priority) end, null, null, 'skip', null, one.tenant, null, '{}', '{}', '{}', caller => mail_resolve.caller) e;
        update millrace.mail m set status = 'queued', job = new_job, batch = null, changed_at = millrace.now() where m.id = one.id;
        perform millrace.mail_changed(one.id, 'again');
    else
        perform millrace.mail_raise(one.id, case verdict when 'accepted' then 'accepted' else 'failed' end, 'resolved', null);
    end if;
    perform millrace.mail_audited('resolve', one.id, jsonb_build_object('verdict', verdict), caller => mail_resolve.caller);
    perform millrace.audited('mail.resolve', one.id::text, jsonb_build_object('verdict', verdict), caller => mail_resolve.caller);
    return true;
end $$;
select millrace.door_is('mail', 'mail_resolve', 'admin, operator', 'staff', audited => true);

-- Messages that a provider took and that have been silent since. The caller asks the provider and passes the answer to mail_event.
create or replace function millrace.mail_silent(older float8, page int)
returns table (message uuid, service text, provider_message_id text, status text, batch bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
    select m.id, m.service, m.provider_message_id, m.status, m.batch from millrace.mail m
     where m.status in ('accepted', 'delayed') and m.changed_at < millrace.now() - make_interval(secs => older) and m.provider_message_id is not null
     order by m.changed_at limit least(page, 500)
$$;
select millrace.door_is('mail', 'mail_silent', 'worker', 'staff');

-- The provider was asked about these: they come again after the others.
create or replace function millrace.mail_asked(messages text[]) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    update millrace.mail m set changed_at = millrace.now() where m.id = any (messages::uuid[])
$$;
select millrace.door_is('mail', 'mail_asked', 'worker', 'staff');

-- Nothing stays of what these messages said, and to whom; what had not been sent is not sent. The caller has locked them.
create or replace function millrace.mail_forget(ids uuid[], jobs bigint[]) returns void
language plpgsql volatile as $$
declare
    one record;
begin
    perform millrace.mail_raise(m.id, 'cancelled', 'cancelled', 'it was erased') from millrace.mail m
     where m.id = any (ids) and m.batch is null and m.status in ('scheduled', 'queued', 'sending');
    perform millrace.cancel_now(m.job) from millrace.mail m where m.id = any (ids) and m.status = 'cancelled' and m.job is not null;
    perform millrace.cancel_now(j) from unnest(jobs) j where not exists (select from millrace.mail m where m.job = j);
    -- A job that was enqueued with the message itself keeps its id alone.
    perform millrace.jobs_forget(jobs, (select jsonb_object_agg(j.id, jsonb_build_object('message', (select m.id from millrace.mail m where m.job = j.id limit 1)))
                                          from millrace.job j where j.id = any (jobs) and not j.args ? 'message'));
    for one in select r.blob, r.owner from millrace.blob_reference r where r.owner = any (select 'mail:' || i from unnest(ids) i) loop
        perform millrace.blob_release(one.blob, one.owner);
    end loop;
    delete from millrace.mail_content c where c.message = any (ids);
    update millrace.mail m set error = null, domains = '{}', sender = null where m.id = any (ids);
    update millrace.mail_note x set recipient = null, data = '{}' where x.message = any (ids);
end $$;

-- Joins in person_erase: messages that the person was said to read. Others are found by an address: mail_erase.
create or replace function millrace.mails_erase_person(person text) returns bigint
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select millrace.mails_erase(array(select m.id from millrace.mail m where m.person = mails_erase_person.person))
$$;

create or replace function millrace.mails_erase(ids uuid[]) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    jobs bigint[];
begin
    perform from (select m.id from millrace.mail m where m.id = any (ids) order by m.id for update) locked;
    jobs := array(select m.job from millrace.mail m where m.id = any (ids) and m.job is not null);
    perform millrace.mail_forget(ids, jobs);
    update millrace.mail m set person = null where m.id = any (ids);
    perform millrace.mail_changed(i, 'erased') from unnest(ids) i;
    return cardinality(ids);
end $$;

-- A person is erased: contents and addresses everywhere. What stays says that something was sent, and not what or to whom; a suppressed
-- address stays suppressed by its hash.
create or replace function millrace.mail_erase(address text, caller millrace.caller_name default current_user) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    bare text := millrace.mail_bare(address);
    ids uuid[];
    jobs bigint[];
    notes int; others int; hashes int;
begin
    perform millrace.mail_check_mailbox(address, 'address');
    ids := array(select c.message from millrace.mail_content c where c.addresses @> array[bare] or millrace.mail_bare(c.reply_to) = bare
                   or lower(concat_ws(' ', c.subject, c.body_text, c.body_html, c.data::text, c.headers::text, c.tags::text)) like '%' || replace(replace(replace(bare, E'\\', E'\\\\'), '%', E'\\%'), '_', E'\\_') || '%'
                 union select x.message from millrace.mail_note x where x.recipient = bare and x.message is not null);
    perform from (select m.id from millrace.mail m where m.id = any (ids) order by m.id for update) locked;
    -- Jobs that were enqueued with the arguments themselves, taken yet or not.
    jobs := array(select m.job from millrace.mail m where m.id = any (ids) and m.job is not null
                  union select j.id from millrace.job j join millrace.kind k on k.id = j.kind
                   where k.name like 'mail.%' and not j.args ? 'message'
                     and lower(j.args::text) like '%' || replace(replace(replace(bare, E'\\', E'\\\\'), '%', E'\\%'), '_', E'\\_') || '%');
    perform millrace.mail_forget(ids, jobs);
    update millrace.mail m set sender = null where millrace.mail_bare(m.sender) = bare;
    update millrace.mail_note x set recipient = null, data = '{}' where x.message = any (ids) or x.recipient = bare;
    get diagnostics notes = row_count;
    update millrace.mail_suppression s set address = null where s.address = bare;
    get diagnostics hashes = row_count;
    perform millrace.hooks_must('erase_address', jsonb_build_object('address', address));
    perform millrace.mail_changed(i, 'erased') from unnest(ids) i;
    perform millrace.operations_forget(bare);
    perform millrace.mail_audited('erase', null, jsonb_build_object('messages', cardinality(ids), 'jobs', cardinality(jobs)), caller => mail_erase.caller);
    perform millrace.audited('mail.erase', null, jsonb_build_object('messages', cardinality(ids), 'jobs', cardinality(jobs)), caller => mail_erase.caller);
    return jsonb_build_object('messages', cardinality(ids), 'jobs', cardinality(jobs), 'events', notes, 'suppressions_hashed', hashes);
end $$;
select millrace.door_is('mail', 'mail_erase', 'admin', 'staff', audited => true);

create or replace view millrace.mail_messages as
select m.id, m.kind, m.status, m.service, m.template, m.version, m.locale, m.priority, m.purpose, m.tenant, m.attempts, m.provider_message_id, m.created_at,
       m.scheduled_at, m.sent_at, m.error, m.error_class, (select e.user_message from millrace.error_classes e where e.error_class = m.error_class) as user_message,
       (select e.authentication_error from millrace.error_classes e where e.error_class = m.error_class) as authentication_error,
       (select e.app_error from millrace.error_classes e where e.error_class = m.error_class) as app_error,
       case when m.error_class is not null then (select a.code from millrace.mail_attempt a where a.message = m.id order by a.n desc limit 1) end as code
  from millrace.mail m;
select millrace.view_is('mail', 'mail_messages', 'worker, viewer');

create or replace view millrace.mail_attempts as
select a.message, a.n, a.provider, a.outcome, a.error, a.code, a.batch, a.key, a.at, a.ms from millrace.mail_attempt a;
select millrace.view_is('mail', 'mail_attempts', 'worker, viewer');

create or replace view millrace.mail_events as
select x.message, x.at, x.type, x.recipient, x.data from millrace.mail_note x where x.message is not null;
select millrace.view_is('mail', 'mail_events', 'worker, operator');

-- Which role did what; it never contains an address.
create or replace view millrace.mail_audit_log as
select a.id, a.at, a.by, a.what, a.message, a.detail from millrace.mail_audit a;
select millrace.view_is('mail', 'mail_audit_log', 'admin');

create or replace view millrace.mail_analytics as
select t.type, t.service, t.template, t.success, t.at, t.error from millrace.mail_tale t;
select millrace.view_is('mail', 'mail_analytics', 'worker, viewer');

-- One message, for the caller that enqueued it, and for the person whom it is for.
create or replace function millrace.mail_message(id uuid, caller millrace.caller_name default current_user) returns setof millrace.mail_messages
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select v.* from millrace.mail_messages v join millrace.mail m on m.id = v.id where v.id = mail_message.id
       and (millrace.may_see(m.owner, m.tenant, caller => mail_message.caller)
            or millrace.claims_count(mail_message.caller) and m.person = millrace.claims(mail_message.caller) ->> 'sub')
$$;
select millrace.door_is('mail', 'mail_message', 'client, worker', 'tenant mail', 'One mail, and what became of it.');

-- The newest first, after `after`.
create or replace function millrace.mail_list(status text default null, since timestamptz default null, after uuid default null, page int default 50)
returns setof millrace.mail_messages
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    last_seq bigint;
begin
    if page is null or page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 messages', 'page');
    end if;
    if mail_list.after is not null then
        select m.seq into last_seq from millrace.mail m where m.id = mail_list.after;
        if not found then
            perform millrace.refuse(format('there is no message %s', mail_list.after), 'after', null, 'P0002', 'not_found');
        end if;
    end if;
    return query
        select v.* from millrace.mail m join millrace.mail_messages v on v.id = m.id
         where (mail_list.status is null or m.status = mail_list.status) and (since is null or m.created_at >= since) and (last_seq is null or m.seq < last_seq)
         order by m.seq desc limit page;
end $$;
select millrace.door_is('mail', 'mail_list', 'worker, viewer', 'staff');

-- The newest first, older than `after`.
create or replace function millrace.mail_audits(what text default null, by text default null, message uuid default null, since timestamptz default null,
    after bigint default null, page int default 50, caller millrace.caller_name default current_user) returns setof millrace.mail_audit_log
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if page is null or page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 entries', 'page');
    end if;
    return query
        select a.id, a.at, a.by, a.what, a.message, a.detail from millrace.mail_audit a
         where (mail_audits.what is null or a.what = mail_audits.what) and (mail_audits.by is null or a.by = mail_audits.by)
           and (mail_audits.message is null or a.message = mail_audits.message) and (mail_audits.since is null or a.at >= mail_audits.since)
           and (mail_audits.after is null or a.id < mail_audits.after)
         order by a.id desc limit mail_audits.page;
end $$;
select millrace.door_is('mail', 'mail_audits', 'admin', 'staff');

-- All that is known of a message, as `mail show` prints it; raw: with its content.
create or replace function millrace.mail_story(the_id uuid, raw boolean default false) returns jsonb
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select to_jsonb(v) - 'version' || jsonb_build_object('template_version', v.version, 'job', m.job, 'error_class', m.error_class,
        'attempts', (select coalesce(jsonb_agg(to_jsonb(a) - 'message' order by a.n), '[]') from millrace.mail_attempts a where a.message = v.id),
        'events', (select coalesce(jsonb_agg(jsonb_build_object('at', x.at, 'type', x.type, 'recipient', case when raw then x.recipient end, 'data', x.data) order by x.at), '[]')
                     from millrace.mail_events x where x.message = v.id))
        || case when raw then jsonb_build_object('content', (select to_jsonb(c) - 'message' - 'addresses' from millrace.mail_content c where c.message = v.id)) else '{}' end
      from millrace.mail_messages v join millrace.mail m on m.id = v.id where v.id = the_id
$$;
select millrace.door_is('mail', 'mail_story', 'worker, operator', 'staff');

-- As with events: readers number what was committed, one reader at a time.
create or replace function millrace.mail_changes(since bigint default 0, page int default 50)
returns table (seq bigint, at timestamptz, id uuid, change text, data jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    if page is null or page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 changes', 'page');
    end if;
    if exists (select from millrace.mail_change c where c.seq is null) and millrace.turn_try('mail changes') then
        update millrace.mail_change c set seq = n.seq
          from (select o.place, nextval('millrace.mail_change_seq') as seq
                  from (select x.place from millrace.mail_change x where x.seq is null order by x.place limit 10000) o) n
         where c.place = n.place;
    end if;
    return query select c.seq, c.at, c.message, c.change, c.data from millrace.mail_change c where c.seq > coalesce(since, 0) order by c.seq limit page;
end $$;
select millrace.door_is('mail', 'mail_changes', 'worker', 'staff');

-- The mail part of status.
create or replace function millrace.mail_state(out chosen text, out current text, out since timestamptz, out reason text, out parked bigint, out unknown bigint, out strays bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    select r.chosen, r.current, r.changed_at, r.reason into chosen, current, since, reason from millrace.mail_route r;
    parked := (select count(*) from (select from millrace.mail m where m.status = 'parked' limit 10000) x);
    unknown := (select count(*) from (select from millrace.mail m where m.status = 'unknown' limit 10000) x);
    strays := (select count(*) from (select from millrace.mail_note n where n.message is null limit 10000) x);
end $$;
select millrace.door_is('mail', 'mail_state', 'worker, viewer', 'staff');

-- What status says of this room: see room_states.
create or replace function millrace.mail_status_part() returns jsonb
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select to_jsonb(s) from millrace.mail_state() s
$$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.mails_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'mail', m.id::text, to_jsonb(m) - array['digest', 'job', 'owner', 'batch', 'seq'] || coalesce((select to_jsonb(c) - array['message', 'bcc', 'addresses', 'attachments', 'data', 'headers']
               || jsonb_build_object('files', (select coalesce(jsonb_agg(jsonb_build_object('kind', 'attachment', 'name', a ->> 'filename', 'blob', a ->> 'blob')), '[]')
                                                 from jsonb_array_elements(c.attachments) a where a ? 'blob'))
           from millrace.mail_content c where c.message = m.id), '{}')
      from millrace.mail m where m.person = mails_export_person.person
$$;
