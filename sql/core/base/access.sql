-- Who calls, and what the caller may do. A door's last parameter is `caller millrace.caller_name default current_user`. No client can pass
-- another role's name in it, and the door passes it on to what it calls. A role's rights follow from grants: on the doors, and on the three
-- functions below. The session's user decides one thing only: whether the claims of this session count (claims_count).

-- The six rights: staff acts on every job and for everybody (workers, operators, the owner of the schema); an admin may also name files;
-- a back end speaks for any person; a viewer sees every job, through doors that redact; an operator is a
-- person who acts, and whose actions are written into the audit. A login with the right to carry claims has checked who a person is.
create or replace function millrace.right_staff() returns void language sql immutable return null::void;
select millrace.door_is('base', 'right_staff', 'worker, operator', 'staff');
create or replace function millrace.right_admin() returns void language sql immutable return null::void;
select millrace.door_is('base', 'right_admin', 'admin', 'staff');
create or replace function millrace.right_backend() returns void language sql immutable return null::void;
create or replace function millrace.right_view() returns void language sql immutable return null::void;
select millrace.door_is('base', 'right_view', 'admin, viewer', 'staff');
create or replace function millrace.right_operate() returns void language sql immutable return null::void;
select millrace.door_is('base', 'right_operate', 'admin, operator', 'staff');

-- The right to carry claims is not even the owner's own (see grants.sql), so the owner may not create the function again: Postgres would check that
-- it may execute it.
do $$
begin
    if to_regprocedure('millrace.right_claims()') is null then
        create function millrace.right_claims() returns void language sql immutable return null::void;
    else
        alter function millrace.right_claims() immutable;
    end if;
end $$;
select millrace.door_is('base', 'right_claims', 'gateway', 'staff');

create or replace function millrace.role_name(the_role text) returns text
language sql stable as $$
    select coalesce((select value from millrace.setting where name = 'role_' || the_role), 'millrace_' || the_role)
$$;

-- The owner's name is compared first, because the owner calls most often: from inside, and on most teams' connections.
create or replace function millrace.is_staff(caller name) returns boolean
language sql stable as $$
    select coalesce(caller = current_user or has_function_privilege(to_regrole(quote_ident(caller))::oid, 'millrace.right_staff()'::regprocedure, 'execute'), false)
$$;

create or replace function millrace.is_admin(caller name) returns boolean
language sql stable as $$
    select coalesce(caller = current_user or has_function_privilege(to_regrole(quote_ident(caller))::oid, 'millrace.right_admin()'::regprocedure, 'execute'), false)
$$;

create or replace function millrace.is_backend(caller name) returns boolean
language sql stable as $$
    select coalesce(has_function_privilege(to_regrole(quote_ident(caller))::oid, 'millrace.right_backend()'::regprocedure, 'execute'), false) or millrace.is_staff(caller)
$$;

-- Lets a role speak for any person: an application's server. Without it, no claims means no person.
create or replace function millrace.grant_backend(the_role text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not millrace.right_set('right_backend', the_role, true) then
        return false;
    end if;
    perform millrace.audited('role.grant_backend', the_role, null, caller => grant_backend.caller);
    return true;
end $$;
select millrace.door_is('base', 'grant_backend', 'admin', 'staff', audited => true);

create or replace function millrace.revoke_backend(the_role text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not millrace.right_set('right_backend', the_role, false) then
        return false;
    end if;
    perform millrace.audited('role.revoke_backend', the_role, null, caller => revoke_backend.caller);
    return true;
end $$;
select millrace.door_is('base', 'revoke_backend', 'admin', 'staff', audited => true);

-- Grants or revokes one of the rights above. False: it was so already.
create or replace function millrace.right_set(the_right text, the_role text, granted boolean) returns boolean
language plpgsql volatile as $$
declare
    role oid := to_regrole(quote_ident(the_role));
    has boolean;
begin
    if role is null then
        perform millrace.refuse(format('there is no role %L', left(the_role, 63)), 'role', 'Create it first.', 'P0002', 'not_found');
    end if;
    has := exists (select from pg_proc p cross join lateral aclexplode(p.proacl) a
                    where p.oid = format('millrace.%I()', the_right)::regprocedure and a.grantee = role);
    if has = granted then
        return false;
    end if;
    if granted then
        execute format('grant execute on function millrace.%I() to %I', the_right, the_role);
    else
        execute format('revoke execute on function millrace.%I() from %I', the_right, the_role);
    end if;
    return true;
end $$;

-- Whether a login is trusted to check who a person is: a gateway's, or PostgREST's. It has the right by name or through a role such as
-- millrace_gateway; the owner has none by itself (see grants.sql). That a superuser may do everything does not count, unless it is named: its
-- sessions also run what others wrote, for instance the index expressions of a table that it vacuums.
create or replace function millrace.is_trusted(the_login name) returns boolean
language plpgsql stable as $$
begin
    if not coalesce(has_function_privilege(to_regrole(quote_ident(the_login))::oid, 'millrace.right_claims()'::regprocedure, 'execute'), false) then
        return false;
    end if;
    return not (select r.rolsuper from pg_roles r where r.rolname = the_login)
        or exists (select from pg_proc p cross join lateral aclexplode(p.proacl) a
                    where p.oid = 'millrace.right_claims()'::regprocedure and a.grantee = to_regrole(quote_ident(the_login))::oid);
end $$;

-- Whether the claims of this session say who the person is. They do for a back end, which may name any person anyway. Otherwise the login of the
-- session must be trusted, and the role must be one that nobody logs in as: a login could set any claims, in its own name and in that of every
-- role that it may take on.
create or replace function millrace.claims_count(caller name) returns boolean
language plpgsql stable as $$
begin
    if coalesce((select r.rolcanlogin from pg_roles r where r.rolname = caller), true) then
        return millrace.is_backend(caller);
    end if;
    return millrace.is_trusted(session_user) or millrace.is_backend(caller);
end $$;

-- Whether a trusted login takes this role on, to carry the claims of people: then rows of this role are people's.
create or replace function millrace.is_carrier(the_role name) returns boolean
language plpgsql stable as $$
begin
    if coalesce((select r.rolcanlogin from pg_roles r where r.rolname = the_role), true) then
        return false;                                     -- most callers; the rest looks at every login
    end if;
    return exists (
        select from pg_roles l
         where l.rolcanlogin and not l.rolsuper and pg_has_role(l.oid, to_regrole(quote_ident(the_role))::oid, 'member') and millrace.is_trusted(l.rolname));
end $$;

-- Says once that a login checks who a person is, before it takes on a role for that person and sets request.jwt.claims.
create or replace function millrace.trust_claims(the_login text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not coalesce((select r.rolcanlogin from pg_roles r where r.rolname = the_login), true) then
        perform millrace.refuse(format('%I is a group, and each of its members would be trusted', the_login), 'the_login',
            'Name the login of the gateway, such as PostgREST''s authenticator.');
    end if;
    if not millrace.right_set('right_claims', the_login, true) then
        return false;
    end if;
    perform millrace.audited('role.trust_claims', the_login, null, caller => trust_claims.caller);
    return true;
end $$;
select millrace.door_is('base', 'trust_claims', 'admin', 'staff', audited => true);

create or replace function millrace.distrust_claims(the_login text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if not millrace.right_set('right_claims', the_login, false) then
        return false;
    end if;
    perform millrace.audited('role.distrust_claims', the_login, null, caller => distrust_claims.caller);
    return true;
end $$;
select millrace.door_is('base', 'distrust_claims', 'admin', 'staff', audited => true);

-- What a session says of itself: the claims of the signed-in person, as a gateway such as PostgREST sets them for a transaction; null when there
-- are none. Older gateways set each claim in a setting of its own. Only claims() knows whether they count.
create or replace function millrace.claims_given() returns jsonb
language plpgsql stable as $$
declare
    given text := nullif(current_setting('request.jwt.claims', true), '');
    sub text;
    tenant text;
    role text;
begin
    if given is null then
        sub := nullif(current_setting('request.jwt.claim.sub', true), '');
        tenant := nullif(current_setting('request.jwt.claim.tenant', true), '');
        role := nullif(current_setting('request.jwt.claim.role', true), '');
        if sub is null and tenant is null and role is null then
            return null;
        end if;
        return jsonb_strip_nulls(jsonb_build_object('sub', sub, 'tenant', tenant, 'role', role));
    end if;
    if octet_length(given) > 65536 then
        perform millrace.refuse('request.jwt.claims takes more than 65536 bytes', 'request.jwt.claims', null, '53400', 'too_large');
    end if;
    begin
        if jsonb_typeof(given::jsonb) = 'object' then
            return given::jsonb;
        end if;
    exception when invalid_text_representation or untranslatable_character then
        null;
    end;
    perform millrace.refuse('request.jwt.claims is not a JSON object', 'request.jwt.claims', 'The gateway sets it to the token''s claims, or to nothing.');
end $$;

-- Whether claims are those of a server's own token, such as Supabase's service key: they name a role that grant_backend has named, and nobody. They
-- give no right: the session is in that role by itself, and the caller is a back end by its grant. Inside a function with security definer the caller is
-- that function's owner. An empty sub or tenant is no missing one.
create or replace function millrace.are_of_backend(claims jsonb, caller name) returns boolean
language plpgsql stable as $$
begin
    return not claims ?| array['sub', 'tenant'] and jsonb_typeof(claims -> 'role') is not distinct from 'string'
       and claims ->> 'role' = coalesce(nullif(current_setting('role'), 'none'), session_user) and millrace.is_backend(caller)
       and exists (select from pg_proc p cross join lateral aclexplode(p.proacl) a
                    where p.oid = 'millrace.right_backend()'::regprocedure and a.grantee = to_regrole(quote_ident(claims ->> 'role'))::oid);
end $$;

-- The claims of this call; null also where they are a back end's own (are_of_backend). A role that logs in may set claims that do not count: they
-- keep it within the tenant that they name, and make it no person (see subject). Claims that do not count in a role which people share would show it their rows, so they are refused.
create or replace function millrace.claims(caller name) returns jsonb
language plpgsql stable as $$
declare
    claims jsonb := millrace.claims_given();
    sub text := claims ->> 'sub';
begin
    if claims is null then
        return null;
    end if;
    if not millrace.claims_count(caller) and not coalesce((select r.rolcanlogin from pg_roles r where r.rolname = caller), true) then
        perform millrace.refuse(format('login %I sets claims for role %I, but nobody has confirmed that it checks them', session_user, coalesce(caller, '')), 'actor',
            format('If it is a gateway''s login, an admin confirms that once with: select millrace.trust_claims(%L)', session_user), '42501', 'permission');
    end if;
    if sub is null and millrace.are_of_backend(claims, claims.caller) then
        return null;
    end if;
    if length(sub) > 128 or sub ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' or sub ~ '^[[:space:]]+$' then
        perform millrace.refuse('the sub of the claims is blank, too long, or has control characters', 'actor', 'A person''s id has 1 to 128 characters.', '42501', 'permission');
    end if;
    if millrace.is_personal(claims ->> 'tenant') then
        perform millrace.refuse('the tenant in the claims has a name that is reserved for people and families', 'tenant', 'A tenant''s name does not begin with person: or family:.', '42501', 'permission');
    end if;
    return claims;
end $$;

-- The tenant that a person without a tenant is: no tenant may have such a name, nor one like a family's account.
create or replace function millrace.personal_tenant(person text) returns text
language sql immutable parallel safe
return 'person:' || person;

create or replace function millrace.is_personal(the_tenant text) returns boolean
language sql immutable parallel safe
return coalesce(the_tenant ~ '^(person|family|erased):', false);

-- A name that is too short or too long for a tenant; what goes before a person's or a family's name does not count.
create or replace function millrace.is_no_tenant(given text) returns boolean
language sql immutable parallel safe
return length(given) not between 1 and millrace.most('name') + case when millrace.is_personal(given) then 7 else 0 end;

-- As a tenant stands in the digest of what was handed in: a person's own as it stood before it had a form of its own, so that what is handed in
-- again is still the same.
create or replace function millrace.tenant_digested(the_tenant text) returns text
language sql immutable parallel safe
return coalesce(pg_catalog.substring(the_tenant, '^person:(.*)$'), the_tenant);

-- A caller with claims stays within its tenant: the claim `tenant`, else the person's own. With neither it has the empty tenant, which no job
-- has, so it sees nothing. So has a call without claims in a role that carries those of people. null: a caller without claims.
create or replace function millrace.caller_tenant(caller name) returns text
language plpgsql stable as $$
declare
    claims jsonb := millrace.claims(caller);
begin
    if claims is null then
        return case when millrace.is_carrier(caller) and not millrace.is_backend(caller) then '' end;
    end if;
    return coalesce(nullif(claims ->> 'tenant', ''), millrace.personal_tenant(nullif(claims ->> 'sub', '')), '');
end $$;

-- The tenant that a caller's call is of: staff says it; with claims it is theirs, and no other may be named.
create or replace function millrace.tenant_of(the_tenant text, caller name) returns text
language plpgsql stable as $$
declare
    own text;
begin
    if millrace.is_staff(caller) then
        return the_tenant;
    end if;
    own := millrace.caller_tenant(caller);
    if coalesce(the_tenant, own) <> own then
        perform millrace.refuse('the tenant is not the caller''s', 'tenant', 'Leave it out: it is taken from the claims.', '42501', 'permission');
    end if;
    if own is null and millrace.is_personal(the_tenant) and not millrace.is_backend(caller) then
        perform millrace.refuse('only a back end may name a person''s tenant', 'tenant', 'Call with the person''s claims, and leave it out.', '42501', 'permission');
    end if;
    return case when own is null then the_tenant else nullif(own, '') end;
end $$;

-- Returns true or false, never null, because callers negate it with `not`.
create or replace function millrace.may_see(the_owner text, the_tenant text, caller name) returns boolean
language sql stable as $$
    select millrace.is_staff(caller)
        or (coalesce(the_owner = caller, false) and millrace.is_within(the_tenant, millrace.caller_tenant(caller)))
        or coalesce(has_function_privilege(to_regrole(quote_ident(caller))::oid, 'millrace.right_view()'::regprocedure, 'execute'), false)
$$;

-- Whether a row's tenant is the caller's, which null does not restrict.
create or replace function millrace.is_within(the_tenant text, own text) returns boolean
language sql immutable parallel safe as $$
    select own is null or coalesce(own = the_tenant, false)
$$;

create or replace function millrace.is_operator(caller name) returns boolean
language sql stable as $$
    select coalesce(has_function_privilege(to_regrole(quote_ident(caller))::oid, 'millrace.right_operate()'::regprocedure, 'execute'), false) or millrace.is_admin(caller)
$$;

-- The person that a back end has said for its session or its transaction, with set local millrace.person. Like claims it counts only where the
-- session's login is a back end or trusted: any login can set it, and then call a function that runs with the rights of its owner.
create or replace function millrace.person_said() returns text
language plpgsql stable as $$
declare
    said text := nullif(current_setting('millrace.person', true), '');
begin
    if said is null or not (millrace.is_backend(session_user) or millrace.is_trusted(session_user)) then
        return null;
    end if;
    if length(said) > 128 or said ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' or said ~ '^[[:space:]]+$' then
        perform millrace.refuse('millrace.person is blank, too long, or has control characters', 'actor', 'A person''s id has 1 to 128 characters.');
    end if;
    return said;
end $$;

-- The person that the claims name, or that a back end without claims has said with millrace.person; null: a back end that may name any person.
create or replace function millrace.subject(caller name) returns text
language plpgsql stable as $$
declare
    claims jsonb := millrace.claims(caller);
    sub text := claims ->> 'sub';
begin
    if claims is null then
        if not millrace.is_backend(caller) then
            perform millrace.refuse(format('role %I has no person to act for: there are no claims, and it is not a back end', coalesce(caller, '')), 'actor',
                format('Call through a gateway that sets request.jwt.claims; or an admin allows it with: select millrace.grant_backend(%L)', coalesce(caller, '')),
                '42501', 'permission');
        end if;
        return millrace.person_said();
    end if;
    if not millrace.claims_count(caller) then
        perform millrace.refuse(format('role %I can log in, so the claims it sets prove nothing', coalesce(caller, '')), 'actor',
            format('Call as a role that only a gateway can take on (nologin); or an admin allows it with: select millrace.grant_backend(%L)', coalesce(caller, '')),
            '42501', 'permission');
    end if;
    if coalesce(sub, '') = '' then
        perform millrace.refuse('the claims name no person', 'actor', 'Sign in: request.jwt.claims needs a sub.', '42501', 'permission');
    end if;
    return sub;
end $$;

-- For what an app's own server says, and nobody for itself.
create or replace function millrace.must_be_backend(what text, caller name) returns void
language plpgsql stable as $$
begin
    if millrace.claims(must_be_backend.caller) is not null or not millrace.is_backend(must_be_backend.caller) then
        perform millrace.refuse(format('only a back end may %s', what), 'actor', 'Call it from the app''s server, without a person''s claims.', '42501', 'permission');
    end if;
end $$;

create or replace function millrace.check_client(the_kind text, the_queue text, caller name) returns void
language plpgsql stable as $$
begin
    if not exists (
        select from millrace.client_grant g
         where (g.role = caller or (to_regrole(quote_ident(g.role)) is not null and pg_has_role(caller, to_regrole(quote_ident(g.role)), 'usage')))
           and g.kind in (the_kind, '*')
           and g.queue in (the_queue, '*')
    ) then
        perform millrace.refuse(format('role %I may not enqueue %s into %s', coalesce(caller, ''), left(the_kind, 128), left(the_queue, 128)), 'kind',
            format('An admin allows it with: select millrace.grant_enqueue(%L, %L, %L)', coalesce(caller, ''), left(the_kind, 128), left(the_queue, 128)),
            '42501', 'permission');
    end if;
end $$;

create or replace function millrace.grant_enqueue(the_role text, the_kind text default '*', the_queue text default '*', caller millrace.caller_name default current_user)
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into millrace.client_grant (role, kind, queue) values (the_role, the_kind, the_queue) on conflict do nothing;
    if not found then
        return false;
    end if;
    perform millrace.audited('role.grant_enqueue', the_role, jsonb_build_object('kind', the_kind, 'queue', the_queue), caller => grant_enqueue.caller);
    return true;
end $$;
select millrace.door_is('base', 'grant_enqueue', 'admin', 'staff', audited => true);

create or replace function millrace.revoke_enqueue(the_role text, the_kind text default '*', the_queue text default '*', caller millrace.caller_name default current_user)
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from millrace.client_grant g where g.role = the_role and g.kind = the_kind and g.queue = the_queue;
    if not found then
        return false;
    end if;
    perform millrace.audited('role.revoke_enqueue', the_role, jsonb_build_object('kind', the_kind, 'queue', the_queue), caller => revoke_enqueue.caller);
    return true;
end $$;
select millrace.door_is('base', 'revoke_enqueue', 'admin', 'staff', audited => true);
