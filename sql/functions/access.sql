-- Who is calling, as seen from a security definer function.

create or replace function millrace.caller() returns text
language sql stable as $$
    select case current_setting('role') when 'none' then session_user::text else current_setting('role') end
$$;

create or replace function millrace.role_name(the_role text) returns text
language sql stable as $$
    select coalesce((select value from millrace.setting where name = 'role_' || the_role), 'millrace_' || the_role)
$$;

-- The owner of the schema and members of the admin or worker role may act on every job.
create or replace function millrace.caller_is_trusted() returns boolean
language plpgsql stable as $$
declare
    me text := millrace.caller();
    staff text;
begin
    if me = current_user or pg_has_role(me, current_user, 'member') then
        return true;
    end if;
    foreach staff in array array[millrace.role_name('admin'), millrace.role_name('worker')] loop
        if to_regrole(quote_ident(staff)) is not null and pg_has_role(me, staff, 'member') then
            return true;
        end if;
    end loop;
    return false;
end $$;

-- With Supabase's claims the caller stays within its tenant: the claim `tenant`, else its own `sub`; with neither it is nobody,
-- and sees nothing (the empty tenant, which no job has).
create or replace function millrace.caller_tenant() returns text
language plpgsql stable as $$
declare
    claims text := nullif(current_setting('request.jwt.claims', true), '');
begin
    if claims is null then
        return null;
    end if;
    return coalesce(nullif(claims::jsonb ->> 'tenant', ''), claims::jsonb ->> 'sub', '');
end $$;

create or replace function millrace.may_see(the_owner text, the_tenant text) returns boolean
language sql stable as $$
    select millrace.caller_is_trusted()
        or (the_owner = millrace.caller() and (millrace.caller_tenant() is null or millrace.caller_tenant() = the_tenant))
$$;

create or replace function millrace.check_client(the_kind text, the_queue text) returns void
language plpgsql stable as $$
declare
    me text := millrace.caller();
begin
    if not exists (
        select from millrace.client_grant g
         where (g.role = me or (to_regrole(quote_ident(g.role)) is not null and pg_has_role(me, g.role, 'member')))
           and g.kind in (the_kind, '*')
           and g.queue in (the_queue, '*')
    ) then
        perform millrace.refuse(format('role %I may not enqueue %s into %s', me, the_kind, the_queue), 'kind',
            format('An admin allows it with: select millrace.grant_enqueue(%L, %L, %L)', me, the_kind, the_queue),
            '42501', 'permission');
    end if;
end $$;

create or replace function millrace.grant_enqueue(the_role text, the_kind text default '*', the_queue text default '*')
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into millrace.client_grant (role, kind, queue) values (the_role, the_kind, the_queue) on conflict do nothing;
    return found;
end $$;

create or replace function millrace.revoke_enqueue(the_role text, the_kind text default '*', the_queue text default '*')
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.client_grant g where g.role = the_role and g.kind = the_kind and g.queue = the_queue;
    return found;
end $$;
