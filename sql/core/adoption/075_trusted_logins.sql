-- Claims count only in the sessions of trusted logins, and a person's own tenant is `person:` and its id, which no tenant can have.

-- Who is trusted follows from who carries claims today: the logins that are gateways, and those that have no rights but through a role that they
-- take on, as PostgREST's authenticator. Nobody else's claims count from now on.
create or replace function millrace.right_claims() returns void language sql immutable return null::void;
revoke execute on function millrace.right_claims() from public, current_user;

do $$
declare
    said text[] := '{}';                                  -- what migrate prints: a sentence for each right that changes
    one record;
    gateway oid := to_regrole(quote_ident(coalesce((select value from millrace.setting where name = 'role_gateway'), 'millrace_gateway')));
    door oid := (select p.oid from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.proname = 'check_in' order by p.oid limit 1);
    has_doors oid[];
begin
    if door is null then
        return;                                           -- a new schema: nobody was granted anything
    end if;
    -- Roles that nobody logs in as, with the rights of clients.
    has_doors := array(select r.oid from pg_roles r
                        where not r.rolcanlogin and r.oid <> coalesce(gateway, 0)
                          and has_function_privilege(r.oid, door, 'execute')
                          and not has_function_privilege(r.oid, 'millrace.right_staff()', 'execute'));
    for one in
        select l.rolname from pg_roles l
         where l.rolcanlogin and not l.rolsuper and not l.rolinherit and exists (select from unnest(has_doors) c where pg_has_role(l.oid, c, 'member'))
         order by l.rolname
    loop
        execute format('grant execute on function millrace.right_claims() to %I', one.rolname);
        said := said || (format('The claims that %I sets go on to count: it has no rights of its own and takes on roles of clients, as gateways do. If it is none, run: select millrace.distrust_claims(%L)',
            one.rolname, one.rolname));
    end loop;
    for one in
        select l.rolname, l.oid = gateway or pg_has_role(l.oid, gateway, 'usage') as serves from pg_roles l
         where l.rolcanlogin and not l.rolsuper and l.rolinherit and l.rolname <> current_user
           and exists (select from unnest(has_doors) c where pg_has_role(l.oid, c, 'member'))
         order by l.rolname
    loop
        said := said || (case when one.serves
            then format('The claims that %I sets go on to count: it is a gateway.', one.rolname)
            else format('The claims that %I sets no longer count: it may take on a role that carries the claims of people, and nothing says that it checks them. If it does, run: select millrace.trust_claims(%L)', one.rolname, one.rolname) end);
    end loop;
    if (exists (select from millrace.gateway) or exists (select from millrace.gateway_answer) or exists (select from millrace.sync_person))
       and not exists (select from pg_roles l where l.rolcanlogin and not l.rolsuper and pg_has_role(l.oid, gateway, 'usage')) then
        execute format('grant execute on function millrace.right_claims() to %I', current_user);
        said := said || (format('The claims that %I sets go on to count: there are gateways, and no other login is one. Give them a login of their own in the role millrace_gateway, and then run: select millrace.distrust_claims(%L)',
            current_user, current_user));
    end if;
    perform set_config('millrace.migration_said', array_to_string(said, E'\n'), true);
end $$;

-- A person's tenant was its id, so a person and a tenant of one name saw each other's rows. A name is a person's if a person has it and nothing says
-- that it is a tenant too. Where only jobs have it, it is a person's if all of them are of roles that nobody logs in as.
do $$
declare
    said text[] := string_to_array(nullif(current_setting('millrace.migration_said', true), ''), E'\n');
    named text[];
    people text[];
    of_people text[];
    families text[];
begin
    -- An admin named what has a quota, a limit, a default or a switch. A person who acts within a tenant of another name shows that it is one.
    named := array(
        select q.tenant from millrace.queue q where q.tenant is not null
        union select x.tenant from millrace.document x where x.tenant is not null
        union select x.tenant from millrace.mail x where x.tenant is not null
        union select x.tenant from millrace.event x where x.tenant is not null
        union select x.tenant from millrace.feed x where x.tenant is not null
        union select x.tenant from millrace.lesson x where x.tenant is not null
        union select x.tenant from millrace.media x where x.tenant is not null
        union select x.tenant from millrace.signal x where x.tenant is not null
        union select x.tenant from millrace.approval x where x.tenant is not null
        union select x.tenant from millrace.upload x where x.tenant is not null
        union select x.tenant from millrace.blob_grant x where x.tenant is not null
        union select x.tenant from millrace.ai_question x where x.tenant is not null
        union select x.tenant from millrace.quota x
        union select x.account from millrace.subscription_account x);
    if named = '{}' then
        return;
    end if;
    people := array(
        select n from unnest(named) n
         where exists (select from millrace.profile x where x.person = n) or exists (select from millrace.family_member x where x.person = n)
            or exists (select from millrace.watch x where x.person = n) or exists (select from millrace.device x where x.person = n)
            or exists (select from millrace.sync_person x where x.person = n) or exists (select from millrace.sync_device x where x.person = n)
            or exists (select from millrace.gateway_answer x where x.person = n) or exists (select from millrace.notice_preference x where x.person = n)
            or exists (select from millrace.chat_member x where x.person = n) or exists (select from millrace.document x where x.owner = n)
            or exists (select from millrace.lesson x where x.owner = n) or exists (select from millrace.media x where x.owner = n)
            or exists (select from millrace.ai_question x where x.actor = n) or exists (select from millrace.subscription x where x.person = n)
            or exists (select from millrace.mail x where x.sender = n and x.tenant = n));
    of_people := array(
        select n from unnest(named) n
         where not exists (select from millrace.document x where x.tenant = n and x.owner <> n)
           and not exists (select from millrace.lesson x where x.tenant = n and x.owner <> n)
           and not exists (select from millrace.media x where x.tenant = n and x.owner <> n)
           and not exists (select from millrace.ai_question x where x.tenant = n and x.actor <> n)
           and not exists (select from millrace.mail x where x.tenant = n and x.sender <> n)
           and not exists (select from millrace.feed x where x.tenant = n and x.person <> n)
           and not exists (select from millrace.subscription x where x.tenant = n)
           and not exists (select from millrace.sync_device x where x.claims ->> 'tenant' = n)
           and (n = any (people)
                or not exists (select from millrace.limit_rule x where x.scope = 'tenant' and x.name = n)
                   and not exists (select from millrace.quota x where x.tenant = n)
                   and not exists (select from millrace.document_default x where x.tenant = n)
                   and not exists (select from millrace.ai_switched x where x.scope = 'tenant' and x.name = n)
                   and not exists (select from millrace.webhook x where x.tenant = n)
                   and not exists (select from millrace.schedule x where x.tenant = n)
                   and exists (select from millrace.queue q where q.tenant = n)
                   and not exists (select from millrace.job j left join pg_roles r on r.rolname = j.owner
                                    where j.tenant = n and coalesce(r.rolcanlogin, true))));
    families := array(select distinct f.family from millrace.family f join millrace.quota q on q.tenant = f.family and q.name like 'ai\_tokens%'
                       where not f.family = any (of_people) and not exists (select from millrace.ai_question x where x.tenant = f.family));

    if of_people <> '{}' then
        update millrace.job x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.queue x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.limit_rule x set name = 'person:' || x.name where x.scope = 'tenant' and x.name = any (of_people);
        update millrace.schedule x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.event x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.webhook x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.mail x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.document x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.document_content x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.document_change x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.document_default x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.lesson x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.media x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.feed x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.signal x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.approval x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.upload x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.blob_grant x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.quota x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.ai_switched x set name = 'person:' || x.name where x.scope = 'tenant' and x.name = any (of_people);
        update millrace.ai_question x set tenant = 'person:' || x.tenant where x.tenant = any (of_people);
        update millrace.subscription_account x set account = 'person:' || x.account where x.account = any (of_people);
        said := said || (format('%s of people: the tenant of a person without a tenant is person:<id> from now on, and its rows were moved. A back end that named such a tenant by the id names it so.',
            case when cardinality(of_people) = 1 then '1 tenant was' else cardinality(of_people) || ' tenants were' end));
    end if;
    update millrace.quota x set tenant = 'family:' || x.tenant where x.tenant = any (families) and x.name like 'ai\_tokens%';
    if families <> '{}' then
        said := said || (format('The account of a family that asks models is family:<id> from now on; %s moved.',
            case when cardinality(families) = 1 then '1 quota was' else 'the quotas of ' || cardinality(families) || ' families were' end));
    end if;
    update millrace.ai_question q set account = case when q.family is not null and (q.tenant is null or q.tenant like 'person:%') then 'family:' || q.family else q.tenant end
     where q.account is not null and q.account is distinct from case when q.family is not null and (q.tenant is null or q.tenant like 'person:%') then 'family:' || q.family else q.tenant end;
    update millrace.ai_call c set account = q.account from millrace.ai_question q where q.id = c.question and c.account is distinct from q.account;
    perform set_config('millrace.migration_said', array_to_string(said, E'\n'), true);
end $$;

update millrace.subscription s set ref = 'person:' || s.ref where s.store = 'manual' and s.ref = s.person and s.tenant is null;
alter table millrace.subscription drop column account;
alter table millrace.subscription add column account text generated always as (coalesce(tenant, 'person:' || person)) stored;
create index subscription_of on millrace.subscription (account) where account is not null;
