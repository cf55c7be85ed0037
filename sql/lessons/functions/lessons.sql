-- Lessons and their documents. Locks go from the lesson to its documents, and from a document to the lesson's progress.

-- As with documents: a person acts on its own lessons; one without an owner, or of the tenant that the claims name, may be used by every caller that may see it.
create or replace function millrace.lesson_sees(l millrace.lesson, me text, caller name) returns boolean
language sql stable as $$
    select millrace.may_see(l.caller, l.tenant, caller => lesson_sees.caller)
       and (me is null or l.owner is null or l.owner = me or coalesce(nullif(millrace.claims(lesson_sees.caller) ->> 'tenant', '') = l.tenant, false))
$$;

-- The lesson that a document with this lesson_id, tenant and owner belongs to.
create or replace function millrace.lesson_of(the_id text, the_tenant text, the_owner text) returns millrace.lesson
language sql stable as $$
    select l from millrace.lesson l
     where l.id = the_id and coalesce(l.tenant, '') = coalesce(the_tenant, '')
       and (case when l.tenant is null then coalesce(l.owner, '') else '' end) = case when the_tenant is null then coalesce(the_owner, '') else '' end
$$;

create or replace function millrace.lesson_has(l millrace.lesson, d millrace.document) returns boolean
language sql immutable
return d.lesson_id = l.id and d.tenant is not distinct from l.tenant and (l.tenant is not null or d.owner is not distinct from l.owner);

create or replace function millrace.lesson_name(given text, field text) returns void
language plpgsql immutable as $$
begin
    if given is null or length(given) not between 1 and millrace.most('name') or given ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse(format('%s is missing, too long, or has control characters', field), field, 'Give 1 to 128 characters.');
    end if;
end $$;

-- For people by the feed, for others by the outbox, in one transaction with what it tells of.
create or replace function millrace.lesson_changed(l millrace.lesson, the_change text, more jsonb default '{}') returns void
language plpgsql volatile as $$
begin
    if l.owner is not null or l.tenant is not null then
        perform millrace.feed_say(array[millrace.feed_change(at => millrace.now(), topic => 'lessons', person => l.owner, tenant => l.tenant, lesson => l.id, ref => l.id,
            change => the_change, data => case when the_change in ('created', 'updated') then jsonb_strip_nulls(jsonb_build_object('title', l.title)) else '{}' end || more)]);
    end if;
    perform millrace.event_say('com.classnotes.lesson.' || case the_change when 'processing_complete' then 'processed' else the_change end,
        '/millrace/lessons', l.id, l.tenant, jsonb_build_object('lesson_id', l.id) || more);
end $$;

-- created, updated or unchanged. null leaves a value as it is.
create or replace function millrace.lesson_put(
    id text, title text default null, data jsonb default null, tenant text default null, actor text default null, caller millrace.caller_name default current_user
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.document_actor(lesson_put.actor, caller => lesson_put.caller);
    the_tenant text := millrace.tenant_of(lesson_put.tenant, lesson_put.caller);
    t timestamptz := millrace.now();
    old millrace.lesson;
    l millrace.lesson;
begin
    perform millrace.lesson_name(lesson_put.id, 'id');
    if the_tenant is not null then
        perform millrace.lesson_name(the_tenant, 'tenant');
    end if;
    if length(lesson_put.title) > millrace.most('title') or lesson_put.title ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
        perform millrace.refuse('the title is too long, or has control characters', 'title', 'Give at most 500 characters.');
    end if;
    if jsonb_typeof(lesson_put.data) <> 'object' then
        perform millrace.refuse('data is not a JSON object', 'data', 'Give an object, or null to leave it as it is.');
    end if;
    if millrace.true_bytes(lesson_put.data) > millrace.most('lesson_data') then
        perform millrace.refuse(format('data takes more than the %s bytes allowed', millrace.most('lesson_data')), 'data', 'Register it as a document.', '53400', 'too_large');
    end if;
    insert into millrace.lesson (id, tenant, owner, caller, title, data, created_at, changed_at)
    values (lesson_put.id, the_tenant, me, lesson_put.caller, lesson_put.title, coalesce(lesson_put.data, '{}'), t, t)
        on conflict do nothing returning * into l;
    if l.place is not null then
        if not millrace.quota_use(the_tenant, 'lessons', 1) then
            perform millrace.refuse_quota('the tenant has used up its lessons for this period', 'tenant', 'See the view quotas for when the next one begins.',
                q.allowed, q.used, millrace.quota_reset(q.period, q.since)) from millrace.quota q where q.tenant = the_tenant and q.name = 'lessons';
        end if;
        insert into millrace.lesson_progress (lesson) values (l.place);
        perform millrace.lesson_changed(l, 'created');
        return 'created';
    end if;
    old := millrace.lesson_of(lesson_put.id, the_tenant, me);
    if old.place is null then                              -- committed or deleted since our snapshot
        raise exception using errcode = '40001', message = 'a lesson with this id was put or deleted by a concurrent transaction';
    end if;
    if not millrace.lesson_sees(old, me, lesson_put.caller) then
        perform millrace.refuse(format('lesson %L exists already', left(lesson_put.id, 60)), 'id', 'Give another lesson another id.', '23505', 'conflict');
    end if;
    update millrace.lesson x
       set title = coalesce(lesson_put.title, x.title), data = coalesce(lesson_put.data, x.data), changed_at = t
     where x.place = old.place and (x.title is distinct from coalesce(lesson_put.title, x.title) or x.data <> coalesce(lesson_put.data, x.data))
    returning * into l;
    if l.place is null then
        return 'unchanged';
    end if;
    perform millrace.lesson_changed(l, 'updated');
    return 'updated';
end $$;
select millrace.door_is('lessons', 'lesson_put', 'client, worker', 'actor person', 'Creates or changes a lesson.');

-- With the lesson locked: its documents go first, those under way are cancelled, and then the lesson itself. Nothing registers a document
-- for it in between. Documents that the caller may not see stay. How many documents went.
create or replace function millrace.lesson_gone(l millrace.lesson, me text, caller name) returns int
language plpgsql volatile as $$
declare
    d millrace.document;
    n int := 0;
    before int;
begin
    update millrace.lesson x set is_going = true where x.place = l.place;    -- the ends of its documents are not told as its own
    loop
        before := n;
        for d in
            select x.* from millrace.document x
             where x.lesson_id = l.id and x.status <> 'deleted' and millrace.lesson_has(l, x) and millrace.document_sees(x, me, caller => lesson_gone.caller)
             order by x.id for no key update
        loop
            if d.status <> 'deleted' then
                perform millrace.document_gone(d);
                n := n + 1;
            end if;
        end loop;
        exit when n = before;                              -- a scan under way may have made parts of itself while its row was waited for
    end loop;
    delete from millrace.lesson x where x.place = l.place;
    perform millrace.lesson_changed(l, 'deleted', jsonb_build_object('documents', n));
    return n;
end $$;

-- At most ten a call. deleted: false for one that is not there. Each goes with its documents or not at all.
create or replace function millrace.lesson_delete(ids text[], tenant text default null, actor text default null, caller millrace.caller_name default current_user)
returns table (id text, deleted boolean, documents int)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    me text := millrace.document_actor(lesson_delete.actor, caller => lesson_delete.caller);
    the_tenant text := millrace.tenant_of(lesson_delete.tenant, lesson_delete.caller);
    one text;
    l millrace.lesson;
begin
    if lesson_delete.ids is null or cardinality(lesson_delete.ids) = 0 then
        perform millrace.refuse('ids is missing or empty', 'ids', 'Name the lessons.');
    end if;
    if cardinality(lesson_delete.ids) > millrace.most('ids') then
        perform millrace.refuse('more than 10 lessons at once', 'ids', 'Delete at most ten at a time.', '53400', 'too_large');
    end if;
    for one in select distinct i from unnest(lesson_delete.ids) i order by i loop
        perform millrace.lesson_name(one, 'ids');
        -- Staff that names neither person nor tenant means the lesson of that name, if there is one only.
        select x.* into l from millrace.lesson x
         where x.id = one and (the_tenant is null or x.tenant = the_tenant) and millrace.lesson_sees(x, me, caller => lesson_delete.caller)
         order by x.place for update;
        lesson_delete.id := one;
        lesson_delete.deleted := l.place is not null;
        lesson_delete.documents := 0;
        if lesson_delete.deleted then
            if (select count(*) from millrace.lesson x where x.id = one and (the_tenant is null or x.tenant = the_tenant) and millrace.lesson_sees(x, me, caller => lesson_delete.caller)) > 1 then
                perform millrace.refuse(format('there are several lessons %L', left(one, 60)), 'ids', 'Give the tenant or the actor, too.', '55000', 'wrong_state');
            end if;
            lesson_delete.documents := millrace.lesson_gone(l, me, lesson_delete.caller);
        end if;
        return next;
    end loop;
end $$;
select millrace.door_is('lessons', 'lesson_delete', 'client, worker', 'tenant lesson',
    'Deletes lessons and their documents.');

create or replace view millrace.lessons as
select l.id, l.title, l.data, l.tenant, l.owner, n.documents, n.under_way, n.failed, l.created_at, l.changed_at, p.completed_at, l.place::text as next
  from millrace.lesson l
  join millrace.lesson_progress p on p.lesson = l.place
 cross join lateral (
    select count(*) as documents, count(*) filter (where d.status in ('uploading', 'processing')) as under_way, count(*) filter (where d.status = 'failed') as failed
      from millrace.document d where d.lesson_id = l.id and d.status <> 'deleted' and millrace.lesson_has(l, d)) n;

-- One lesson, if the caller may see it, and how its documents stand.
create or replace function millrace.lesson(id text, tenant text default null, actor text default null, caller millrace.caller_name default current_user)
returns setof millrace.lessons
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.document_actor(lesson.actor, caller => lesson.caller);
    the_tenant text := millrace.tenant_of(lesson.tenant, lesson.caller);
begin
    return query select v.* from millrace.lesson l join millrace.lessons v on v.id = l.id and v.next = l.place::text
      where l.id = lesson.id and (the_tenant is null or l.tenant = the_tenant) and millrace.lesson_sees(l, me, caller => lesson.caller) order by l.place limit 20;
end $$;
select millrace.door_is('lessons', 'lesson', 'client, worker', 'tenant lesson',
    'One lesson, and the state of its documents.');

-- The newest first, after the `next` of the last row.
create or replace function millrace.lesson_list(
    after text default null, page int default 50, tenant text default null, actor text default null, caller millrace.caller_name default current_user
) returns setof millrace.lessons
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.document_actor(lesson_list.actor, caller => lesson_list.caller);
    the_tenant text := millrace.tenant_of(lesson_list.tenant, lesson_list.caller);
    behind bigint := millrace.after_number(lesson_list.after);
    shown millrace.lessons;
    size bigint;
    taken bigint := 0;
begin
    perform millrace.valid_page(lesson_list.page);
    for shown in
        select v.* from (
            select l.place, l.id from millrace.lesson l
             where (behind is null or l.place < behind) and (the_tenant is null or l.tenant = the_tenant) and millrace.lesson_sees(l, me, caller => lesson_list.caller)
             order by l.place desc limit lesson_list.page) x
        join millrace.lessons v on v.id = x.id and v.next = x.place::text order by x.place desc
    loop
        size := octet_length(shown::text);
        exit when not millrace.page_takes('lesson_list', taken, size);
        taken := taken + size;
        return next shown;
    end loop;
end $$;
select millrace.door_is('lessons', 'lesson_list', 'client, worker', 'actor person', 'Lessons, newest first.');

-- A document is registered for a lesson before the lesson is deleted, or after: not in between. A part is made while the whole is locked, so
-- the deletion, which waits for the whole, finds it.
create or replace function millrace.lesson_gets_document() returns trigger
language plpgsql as $$
begin
    perform from millrace.lesson l
      where l.id = new.lesson_id and coalesce(l.tenant, '') = coalesce(new.tenant, '')
        and (case when l.tenant is null then coalesce(l.owner, '') else '' end) = case when new.tenant is null then coalesce(new.owner, '') else '' end
        for key share;
    return new;
end $$;

-- Of the documents under way the one that ends last tells so. Those that end at once come one after the other here, and the last sees the others' ends.
create or replace function millrace.lesson_document_ended() returns trigger
language plpgsql as $$
declare
    l millrace.lesson := millrace.lesson_of(new.lesson_id, new.tenant, new.owner);
    done int;
    failed int;
begin
    if l.place is null or l.is_going then
        return null;
    end if;
    perform from millrace.lesson_progress p where p.lesson = l.place for no key update;
    if not found or exists (select from millrace.document d where d.lesson_id = l.id and d.status in ('uploading', 'processing') and millrace.lesson_has(l, d)) then
        return null;
    end if;
    select count(*) filter (where d.status = 'completed'), count(*) filter (where d.status = 'failed') into done, failed
      from millrace.document d where d.lesson_id = l.id and millrace.lesson_has(l, d);
    update millrace.lesson_progress p set completed_at = millrace.now() where p.lesson = l.place;
    perform millrace.lesson_changed(l, 'processing_complete', jsonb_build_object('completed', done, 'failed', failed));
    return null;
end $$;

do $$
begin
    if exists (select from pg_trigger g where g.tgrelid = 'millrace.document'::regclass and g.tgname = 'a_lesson_hears_of_ends') then
        return;
    end if;
    create trigger a_lesson_gets_its_document before insert on millrace.document for each row
        when (new.lesson_id is not null and new.parent is null)
        execute function millrace.lesson_gets_document();
    create trigger a_lesson_hears_of_ends after update on millrace.document for each row
        when (new.lesson_id is not null and old.status in ('uploading', 'processing') and new.status not in ('uploading', 'processing'))
        execute function millrace.lesson_document_ended();
end $$;

-- Joins in person_erase. Documents of others in a lesson of the person stay theirs.
create or replace function millrace.lessons_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    l millrace.lesson;
    n bigint := 0;
begin
    for l in select x.* from millrace.lesson x where x.owner = lessons_erase_person.person order by x.place for update loop
        delete from millrace.lesson x where x.place = l.place;
        if l.tenant is not null then
            perform millrace.lesson_changed(l, 'deleted');
        end if;
        n := n + 1;
    end loop;
    return n;
end $$;

-- What this room keeps of a person: see person_export.
create or replace function millrace.lessons_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable as $$
    select 'lesson', l.id, to_jsonb(l) - array['place', 'caller', 'is_going'] from millrace.lesson l
     where l.owner = lessons_export_person.person or l.tenant = millrace.personal_tenant(lessons_export_person.person)
$$;
