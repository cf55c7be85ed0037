-- The audit of operators: one row for each action, written in the action's own transaction. Nobody changes a row, and nobody deletes one
-- before its time has passed: a trigger refuses it, also to the owner.

-- Whose actions are written down: operators' and admins', and not those of clients or of workers, which are many and have a record of their own.
-- What people are asked and answer is always written down: see approval_noted.
create or replace function millrace.is_audited(caller name) returns boolean
language sql stable as $$ select millrace.is_operator(caller) $$;

-- Notes an action: who did it, which login Postgres has verified for that, and who the program said it was. Several logins may act as one role, and any
-- of them can say any name; the login is only written down, and gives nobody a right. Doors call this last, when they have done something. detail holds no secrets, and of the arguments of jobs only what an edit changed, redacted.
create or replace function millrace.audited(action text, object text, detail jsonb, caller name) returns void
language plpgsql volatile as $$
begin
    if millrace.is_audited(audited.caller) then
        insert into millrace.audit (at, who, login, said_by, action, object, detail)
        values (millrace.now(), audited.caller, session_user, millrace.said_by(), audited.action, left(audited.object, 256), nullif(jsonb_strip_nulls(audited.detail), '{}'));
    end if;
end $$;

-- Who acts, as the calling program says: in the setting millrace.actor, or, as the command line does, in its application_name, which a pooler
-- passes on with the connection: `millrace ada@host`.
create or replace function millrace.said_by() returns text
language sql stable as $$
    select nullif(left(regexp_replace(coalesce(nullif(current_setting('millrace.actor', true), ''),
        substring(current_setting('application_name') from '^millrace (.+@.+)$')), E'[\\u0001-\\u001f\\u007f-\\u009f]', '', 'g'), 128), '')
$$;

-- An address in the audit: where it is, and not whose. The audit outlives the address.
create or replace function millrace.audit_address(address text) returns text
language sql immutable as $$
    select '*@' || substring(address from '@([^@>]*)>?$')
$$;

create or replace function millrace.audit_days() returns int
language sql stable as $$
    select coalesce((select s.value::int from millrace.setting s where s.name = 'audit_days'), 400)
$$;

create or replace function millrace.audit_guard() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if tg_op = 'DELETE' and old.at < pg_catalog.clock_timestamp() - make_interval(days => millrace.audit_days()) then
        return old;
    end if;
    perform millrace.refuse('the audit is never changed: rows are added, and deleted once their time has passed', 'audit',
        format('Rows are kept for %s days.', millrace.audit_days()), '55000', 'conflict');
    return null;
end $$;

do $$
begin
    if not exists (select from pg_trigger t where t.tgrelid = 'millrace.audit'::regclass and t.tgname = 'audit_is_append_only') then
        create trigger audit_is_append_only before update or delete on millrace.audit
            for each row execute function millrace.audit_guard();
        create trigger audit_is_not_truncated before truncate on millrace.audit
            for each statement execute function millrace.audit_guard();
    end if;
end $$;

-- Deletes what is older, a bounded number at each call of maintenance. Returns how many.
create or replace function millrace.audit_expire(most int default 20000) returns int
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    expired int;
begin
    delete from millrace.audit a
     where a.id = any (array(
        select x.id from millrace.audit x
         where x.at < least(millrace.now(), clock_timestamp()) - make_interval(days => millrace.audit_days()) order by x.at limit most));
    get diagnostics expired = row_count;
    return expired;
end $$;

-- How long rows of the audit stay. null only tells. Returns the days.
create or replace function millrace.audit_keep(days int default null, caller millrace.caller_name default current_user) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if days not between 30 and 36500 then
        perform millrace.refuse('days must be 30 to 36500', 'days');
    end if;
    if days is not null and days <> millrace.audit_days() then
        perform millrace.audited('audit.keep', null, jsonb_build_object('days', days, 'before', millrace.audit_days()), caller => audit_keep.caller);
        insert into millrace.setting (name, value) values ('audit_days', days::text)
            on conflict (name) do update set value = excluded.value;
    end if;
    return millrace.audit_days();
end $$;
select millrace.door_is('base', 'audit_keep', 'admin', 'staff', audited => true);

-- Rows of the audit, newest first, below the id `after`. the_who: the role, the login, or who it is as the program said. login: null before it was
-- written down.
create or replace function millrace.audit_list(
    since timestamptz default null, until timestamptz default null, the_action text default null, the_who text default null, the_object text default null,
    after bigint default null, page int default 100, caller millrace.caller_name default current_user
) returns table (id bigint, at timestamptz, who text, said_by text, action text, object text, detail jsonb, login text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
#variable_conflict use_column
declare
    -- A row's number and its time are drawn in one statement, so that a time gives a number, to a minute.
    low bigint := coalesce((select a.id from millrace.audit a where a.at < audit_list.since - interval '1 minute' order by a.at desc limit 1), 0);
    high bigint := least(audit_list.after,
        (select a.id from millrace.audit a where a.at > audit_list.until + interval '1 minute' order by a.at limit 1), 9223372036854775807);
begin
    if audit_list.page is null or audit_list.page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    return query
    select x.* from (
        (select a.* from millrace.audit a
          where the_who is null and the_action is null and a.id > low and a.id < high
            and (audit_list.since is null or a.at >= audit_list.since) and (audit_list.until is null or a.at < audit_list.until)
            and (the_object is null or a.object = the_object)
          order by a.id desc limit page)
        union all
        (select a.* from millrace.audit a
          where the_who is null and a.action = the_action and a.id > low and a.id < high
            and (audit_list.since is null or a.at >= audit_list.since) and (audit_list.until is null or a.at < audit_list.until)
            and (the_object is null or a.object = the_object)
          order by a.id desc limit page)
        union all
        (select a.* from millrace.audit a
          where a.who = the_who and a.id > low and a.id < high
            and (the_action is null or a.action = the_action)
            and (audit_list.since is null or a.at >= audit_list.since) and (audit_list.until is null or a.at < audit_list.until)
            and (the_object is null or a.object = the_object)
          order by a.id desc limit page)
        union all
        (select a.* from millrace.audit a
          where a.said_by = the_who and a.who <> the_who and a.id > low and a.id < high
            and (the_action is null or a.action = the_action)
            and (audit_list.since is null or a.at >= audit_list.since) and (audit_list.until is null or a.at < audit_list.until)
            and (the_object is null or a.object = the_object)
          order by a.id desc limit page)
        union all
        (select a.* from millrace.audit a
          where a.login = the_who and a.who <> the_who and a.said_by is distinct from the_who and a.id > low and a.id < high
            and (the_action is null or a.action = the_action)
            and (audit_list.since is null or a.at >= audit_list.since) and (audit_list.until is null or a.at < audit_list.until)
            and (the_object is null or a.object = the_object)
          order by a.id desc limit page)) x
     order by x.id desc limit page;
end $$;
select millrace.door_is('base', 'audit_list', 'admin, viewer', 'staff');
