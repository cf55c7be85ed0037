-- Events: published in the caller's transaction, read in the order in which their transactions came to be seen.

-- The id, given or new. With an id that is known and the same content it answers as the first time, and nothing is published.
create or replace function millrace.event_publish(
    type text, source text, data jsonb, subject text default null, tenant text default null, id uuid default null, caller millrace.caller_name default current_user
) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_id uuid := coalesce(event_publish.id, gen_random_uuid());
    the_tenant text := event_publish.tenant;
    old millrace.event;
begin
    if event_publish.type is null or event_publish.type !~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$' then
        perform millrace.refuse(format('the event type %L is malformed', left(event_publish.type, 60)), 'type',
            'A type has 1 to 128 letters, digits and _ . : / - and begins with a letter or digit, as in com.example.order.paid.');
    end if;
    -- A URI reference (RFC 3986), checked by its characters only; the reader decides about its meaning.
    if event_publish.source is null or length(event_publish.source) > millrace.most('source')
        or event_publish.source !~ E'^([A-Za-z0-9._~:/?#\\[\\]@!$&''()*+,;=-]|%[0-9A-Fa-f]{2})+$' then
        perform millrace.refuse(format('the source %L is not a URI reference', left(event_publish.source, 60)), 'source',
            'Give 1 to 512 characters such as /shop/orders or https://example.com/shop; spaces and the like as %20.');
    end if;
    if length(event_publish.subject) not between 1 and millrace.most('event_subject') or event_publish.subject ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the subject is empty, too long, or has control characters', 'subject', 'Give 1 to 1024 characters, or null.');
    end if;
    if millrace.is_no_tenant(the_tenant) or the_tenant ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the tenant is empty, too long, or has control characters', 'tenant', 'Give 1 to 128 characters, or null.');
    end if;
    if event_publish.data is null then
        perform millrace.refuse('data is null', 'data', 'Give a JSON value; the JSON null is one.');
    end if;
    if octet_length(event_publish.data::text) > millrace.most('event_data') then
        perform millrace.refuse(format('data takes %s bytes, more than the %s allowed', octet_length(event_publish.data::text), millrace.most('event_data')), 'data',
            'Store large data elsewhere and publish a reference.', '53400', 'too_large');
    end if;
    if not millrace.is_staff(event_publish.caller) then
        the_tenant := millrace.check_publisher(event_publish.type, the_tenant, caller => event_publish.caller);
    end if;

    insert into millrace.event (id, type, source, subject, tenant, at, owner, data, trace)
    values (the_id, event_publish.type, event_publish.source, event_publish.subject, the_tenant, millrace.now(), event_publish.caller, event_publish.data,
        millrace.trace_now())
        on conflict do nothing;
    if found then
        insert into millrace.event_fresh (id) values (the_id);
        perform millrace.event_wake();
        return the_id;
    end if;
    select * into old from millrace.event e where e.id = the_id;
    if not found then                                     -- committed since our snapshot, at a stricter level
        raise exception using errcode = '40001', message = 'an event with this id was published by a concurrent transaction';
    end if;
    perform millrace.event_conflict(case
        -- About another role's event only one thing is said: that the id is taken.
        when not millrace.is_staff(event_publish.caller) and old.owner is distinct from event_publish.caller then 'id'
        when old.type <> event_publish.type then 'type'
        when old.source <> event_publish.source then 'source'
        when old.subject is distinct from event_publish.subject then 'subject'
        when old.tenant is distinct from the_tenant then 'tenant'
        when old.data <> event_publish.data then 'data'
    end, the_id);
    return the_id;
end $$;
select millrace.door_is('events', 'event_publish', 'client, worker', 'granted type', 'Publishes an event.');

-- For Millrace's own events, which need no right to publish. the_trace: the place in a trace that it belongs to; null: that of the transaction.
create or replace function millrace.event_say(the_type text, the_source text, the_subject text, the_tenant text, the_data jsonb, the_trace jsonb default null) returns uuid
language plpgsql volatile as $$
declare
    the_id uuid := gen_random_uuid();
begin
    insert into millrace.event (id, type, source, subject, tenant, at, owner, data, trace)
    values (the_id, the_type, the_source, the_subject, the_tenant, millrace.now(), 'millrace', the_data, coalesce(the_trace, millrace.trace_now()));
    insert into millrace.event_fresh (id) values (the_id);
    perform millrace.event_wake();
    return the_id;
end $$;

create or replace function millrace.event_conflict(field text, the_id uuid) returns void
language plpgsql as $$
begin
    if field is not null then
        perform millrace.refuse(format('event %s is already published, with another %s', the_id, field), field,
            'Repeating an id with the same content returns the first answer; use a new id for another event.', '23505', 'conflict');
    end if;
end $$;

-- Which types a client may publish, and its tenant; with claims its own tenant.
create or replace function millrace.check_publisher(the_type text, the_tenant text, caller name) returns text
language plpgsql stable as $$
begin
    if not exists (
        select from millrace.event_grant g
         where (g.role = check_publisher.caller
                or (to_regrole(quote_ident(g.role)) is not null and pg_has_role(check_publisher.caller, to_regrole(quote_ident(g.role)), 'usage')))
           and g.type in (the_type, '*')
    ) then
        perform millrace.refuse(format('role %I may not publish %s', coalesce(check_publisher.caller, ''), the_type), 'type',
            format('An admin allows it with: select millrace.grant_publish(%L, %L)', check_publisher.caller, the_type), '42501', 'permission');
    end if;
    return millrace.tenant_of(the_tenant, check_publisher.caller);
end $$;

create or replace function millrace.grant_publish(the_role text, the_type text, caller millrace.caller_name default current_user) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into millrace.event_grant (role, type) values (the_role, the_type) on conflict do nothing;
    if not found then
        return false;
    end if;
    perform millrace.audited('role.grant_publish', the_role, jsonb_build_object('type', the_type), caller => grant_publish.caller);
    return true;
end $$;
select millrace.door_is('events', 'grant_publish', 'admin', 'staff', audited => true);

create or replace function millrace.revoke_publish(the_role text, the_type text, caller millrace.caller_name default current_user) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.event_grant g where g.role = the_role and g.type = the_type;
    if not found then
        return false;
    end if;
    perform millrace.audited('role.revoke_publish', the_role, jsonb_build_object('type', the_type), caller => revoke_publish.caller);
    return true;
end $$;
select millrace.door_is('events', 'revoke_publish', 'admin', 'staff', audited => true);

-- As in `wake`: a notification serialises commits, so one is sent only while somebody sleeps. A session that waits for events holds the
-- lock (1297239619, 64) alone, which no queue's bucket uses; it takes the lock before its last look. Postgres sends one notification per
-- transaction.
create or replace function millrace.event_wake() returns void
language plpgsql as $$
begin
    if not pg_try_advisory_xact_lock_shared(1297239619, 64) and pg_notification_queue_usage() < 0.5 then
        perform pg_notify('millrace_events', '');
    end if;
end $$;

-- Numbers the events that were committed since the last call. One session at a time; a session that finds another one at work skips it. The
-- numbers are visible before the turn is free, so a reader that has seen a number has seen, or can see, all lower ones. An open transaction
-- of a publisher delays nobody; an open transaction of a reader hides new events from other readers, so a reader commits after each look.
create or replace function millrace.events_number(most int default 10000) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    numbered bigint;
begin
    if not exists (select from millrace.event_fresh) or not millrace.turn_try('events') then
        return 0;
    end if;
    with gone as (
        delete from millrace.event_fresh f
         where f.ctid = any (array(select x.ctid from millrace.event_fresh x order by x.place limit most))
        returning f.place, f.id
    ), numbers as (
        select o.id, nextval('millrace.event_seq') as seq from (select g.id from gone g order by g.place) o
    )
    update millrace.event e set seq = n.seq from numbers n where e.id = n.id;
    get diagnostics numbered = row_count;
    return numbered;
end $$;

create or replace function millrace.event_document(e millrace.event) returns jsonb
language sql stable as $$
    select jsonb_strip_nulls(jsonb_build_object('specversion', '1.0', 'id', e.id, 'type', e.type, 'source', e.source, 'subject', e.subject,
               'time', to_char(e.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'tenant', e.tenant))
           || coalesce(e.trace, '{}') || jsonb_build_object('datacontenttype', 'application/json', 'data', e.data)
$$;

-- The feed: the events after `since`, in the JSON format of CloudEvents 1.0; the tenant is an extension. A reader keeps the last seq that
-- it has processed; nothing ever appears at or below it.
create or replace function millrace.events_changes(since bigint default 0, page int default 50)
returns table (seq bigint, at timestamptz, id uuid, change text, data jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
begin
    if page is null or page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 events', 'page');
    end if;
    perform millrace.events_number();
    return query
        select e.seq, e.at, e.id, 'published'::text, millrace.event_document(e)
          from millrace.event e where e.seq > coalesce(since, 0) order by e.seq limit page;
end $$;
select millrace.door_is('events', 'events_changes', 'worker', 'staff');

create or replace view millrace.events as
select e.id, e.seq, '1.0'::text as specversion, e.type, e.source, e.subject, e.at as time, 'application/json'::text as datacontenttype, e.tenant,
       e.owner, e.data
  from millrace.event e;
select millrace.view_is('events', 'events', 'worker, operator');

-- The newest first, after `after`.
create or replace function millrace.event_list(type text default null, tenant text default null, after uuid default null, page int default 50)
returns setof millrace.events
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    last_at timestamptz;
begin
    if page is null or page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 events', 'page');
    end if;
    if event_list.after is not null then
        select e.at into last_at from millrace.event e where e.id = event_list.after;
        if not found then
            perform millrace.refuse(format('there is no event %s', event_list.after), 'after', null, 'P0002', 'not_found');
        end if;
    end if;
    return query
        select v.* from millrace.events v
         where (event_list.type is null or v.type = event_list.type)
           and (event_list.tenant is null or v.tenant = event_list.tenant)
           and (event_list.after is null or (v.time, v.id) < (last_at, event_list.after))
         order by v.time desc, v.id desc limit page;
end $$;
select millrace.door_is('events', 'event_list', 'worker', 'staff');

create or replace function millrace.event(id uuid) returns setof millrace.events
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select v.* from millrace.events v where v.id = event.id
$$;
select millrace.door_is('events', 'event', 'worker', 'staff');

-- Events are kept for 14 days, read or not, so a reader has 14 days.
create or replace function millrace.events_expire(most int default 50000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    gone bigint;
begin
    perform millrace.events_number();
    delete from millrace.event e
     where e.seq is not null and e.ctid = any (array(
        select x.ctid from millrace.event x where x.at < millrace.now() - interval '14 days' order by x.at limit most));
    get diagnostics gone = row_count;
    return gone;
end $$;

-- Erases events about a person.
create or replace function millrace.events_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    ids uuid[] := array(select millrace.events_about(events_erase_person.person));
begin
    delete from millrace.event_fresh f where f.id = any (ids);
    delete from millrace.event e where e.id = any (ids);
    return cardinality(ids);
end $$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.events_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'event', e.id::text, to_jsonb(e) - array['seq', 'owner'] from millrace.event e where e.id in (select millrace.events_about(events_export_person.person))
$$;

create or replace function millrace.events_about(person text) returns setof uuid
language sql stable as $$
    select e.id from millrace.event e
     where e.tenant = millrace.personal_tenant(events_about.person) or events_about.person in (e.subject, e.data ->> 'person', e.data ->> 'person_id', e.data ->> 'user_id')
$$;

create or replace function millrace.events_drop(the_type text, subjects text[]) returns void
language sql volatile as $$
    delete from millrace.event e where e.subject = any (subjects) and e.type = the_type
$$;
