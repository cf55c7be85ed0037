-- What an app reads of the feed. Rows of a thread of chat are told together, so this stands above the chat.

-- A person's own changes after `since`, oldest first, with those of its threads, and those of its tenant that are nobody's. A reader keeps the last seq that it has
-- processed; nothing ever appears at or below it. With a `tenant` on a row, only a caller of that tenant sees it.
create or replace function millrace.feed_mine(
    since bigint default 0, topics text[] default null, page int default 100, actor text default null, caller millrace.caller_name default current_user
) returns table (seq bigint, at timestamptz, topic text, ref text, change text, data jsonb, lesson text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    me text := millrace.acting_person(feed_mine.actor, caller => feed_mine.caller);
    own text := millrace.caller_tenant(feed_mine.caller);
    behind bigint := coalesce(feed_mine.since, 0);
begin
    if feed_mine.page is null or feed_mine.page not between 1 and millrace.most('page') then
        perform millrace.refuse('a page has 1 to 500 changes', 'page');
    end if;
    if cardinality(feed_mine.topics) > cardinality(millrace.feed_topics()) or not feed_mine.topics <@ millrace.feed_topics() then
        perform millrace.refuse(coalesce(format('the topic %L is unknown', (select left(t, 60) from unnest(feed_mine.topics) t where t <> all (millrace.feed_topics()) limit 1)),
            'a topic is null or is named twice'), 'topics', format('Allowed: %s; leave it out for all.', array_to_string(millrace.feed_topics(), ', ')));
    end if;
    perform millrace.feed_number();
    return query
        select x.seq, x.at, x.topic, x.ref, x.change, x.data, x.lesson from (
            (select f.seq, f.at, f.topic, f.ref, f.change, f.data, f.lesson from millrace.feed f
              where f.person = me and f.seq > behind and (feed_mine.topics is null or f.topic = any (feed_mine.topics))
                and (own is null or f.tenant is null or f.tenant = own)
              order by f.seq limit feed_mine.page)
            union all
            (select f.seq, f.at, f.topic, f.ref, f.change, f.data, f.lesson
               from millrace.chat_member m
               join millrace.chat_thread h on h.id = m.thread and h.closed_at is null
              cross join lateral (select x.* from millrace.feed x where x.thread = m.thread and x.seq > behind and millrace.feed_thread_tells(x, me, m.since_n)
                                   order by x.seq limit feed_mine.page) f
              where m.person = me and (feed_mine.topics is null or 'chat' = any (feed_mine.topics))
              order by f.seq limit feed_mine.page)
            union all
            (select f.seq, f.at, f.topic, f.ref, f.change, f.data, f.lesson from millrace.feed f
              where f.person is null and f.tenant = own and f.seq > behind and (feed_mine.topics is null or f.topic = any (feed_mine.topics))
              order by f.seq limit feed_mine.page)
        ) x order by x.seq limit feed_mine.page;
end $$;
select millrace.door_is('gateway', 'feed_mine', 'client, worker', 'actor person',
    'What has changed for the person since a position.', words => jsonb_build_object('topics', millrace.feed_topics()),
    who_may => array['hear what changes for them: itself, back end, staff']);

-- The same for an app that comes back from being offline: all topics, and larger pages.
create or replace function millrace.sync_pull(since bigint default 0, page int default 500, actor text default null, caller millrace.caller_name default current_user)
returns table (seq bigint, at timestamptz, topic text, ref text, change text, data jsonb)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select f.seq, f.at, f.topic, f.ref, f.change, f.data from millrace.feed_mine(sync_pull.since, null, sync_pull.page, sync_pull.actor, caller => sync_pull.caller) f
$$;
select millrace.door_is('gateway', 'sync_pull', 'client, worker', 'actor person',
    'Everything that has changed for the person since a position.',
    who_may => array['catch up with that: itself, back end, staff']);

-- newest: the last number given out; who loads its state after this call, and then reads on from here, misses nothing. oldest: who has read
-- up to here or further has lost nothing to the expiry; who has not loads its state again.
create or replace function millrace.feed_position(actor text default null, caller millrace.caller_name default current_user) returns table (newest bigint, oldest bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.acting_person(feed_position.actor, caller => feed_position.caller);
    perform millrace.feed_number();
    return query select case when s.is_called then s.last_value else 0 end, m.gone from millrace.feed_seq s, millrace.feed_mark m;
end $$;
select millrace.door_is('gateway', 'feed_position', 'client, worker', 'actor person',
    'The newest and the oldest position of the feed.');

-- Everybody's changes, for the one cursor of a gateway's process, each once. A change is for the persons it names, within its tenant if it names one
-- too; without persons it is for all of the tenant.
create or replace function millrace.feed_next(since bigint, page int default 1000)
returns table (seq bigint, at timestamptz, topic text, persons text[], tenant text, lesson text, ref text, change text, data jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
    if feed_next.page is null or feed_next.page not between 1 and 10000 then
        perform millrace.refuse('a page has 1 to 10000 changes', 'page');
    end if;
    perform millrace.feed_number();
    return query
        select f.seq, f.at, f.topic,
               case when f.person is not null then array[f.person] when f.thread is not null then array(
                   select m.person from millrace.chat_member m join millrace.chat_thread h on h.id = m.thread and h.closed_at is null
                    where m.thread = f.thread and millrace.feed_thread_tells(f, m.person, m.since_n)) end,
               f.tenant, f.lesson, f.ref, f.change, f.data
          from millrace.feed f where f.seq > coalesce(feed_next.since, 0) order by f.seq limit feed_next.page;
end $$;
select millrace.door_is('gateway', 'feed_next', 'gateway', 'staff');

-- The same with a row for each person; `page` bounds the changes. For gateways built before feed_next. personal: a person's own tenant is given as it is;
-- gateways that were built before it had a form of its own know it by the person's id.
create or replace function millrace.feed_new(since bigint, page int default 1000, personal boolean default false)
returns table (seq bigint, at timestamptz, topic text, person text, tenant text, lesson text, ref text, change text, data jsonb)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
        select f.seq, f.at, f.topic, p.person, case when feed_new.personal then f.tenant else millrace.tenant_digested(f.tenant) end, f.lesson, f.ref, f.change, f.data
          from millrace.feed_next(feed_new.since, feed_new.page) f
         cross join lateral unnest(coalesce(nullif(f.persons, '{}'), array[null])) p(person) order by f.seq, p.person;
end $$;
select millrace.door_is('gateway', 'feed_new', 'gateway', 'staff');
