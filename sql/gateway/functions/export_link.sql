-- A link by which its bearer reads everything stored about a person, as person_export answers it, with links to its files. For the person itself, or a back
-- end. A worker opens it: Sources/Kits/BlobKit/BlobRoutes+Export.swift. Anyone who holds it can use it, so it is short-lived.
create or replace function millrace.person_export_link(
    person text, valid interval default '1 hour', actor text default null, caller millrace.caller_name default current_user
) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.actor_of(person_export_link.actor, caller => person_export_link.caller);
    the_key bytea := (select decode(s.value, 'hex') from millrace.setting s where s.name = 'link_key');
    base text := (select s.value from millrace.setting s where s.name = 'link_url');
    token text;
begin
    perform millrace.valid_name(person_export_link.person, 'person');
    if me <> person_export_link.person then
        perform millrace.refuse('only that person may do this', 'actor', 'Act as the person.', '42501', 'permission');
    end if;
    if valid is null or valid not between interval '1 minute' and interval '1 day' then
        perform millrace.refuse('valid is out of range', 'valid', 'Give 1 minute to 1 day.');
    end if;
    if the_key is null or base is null then
        perform millrace.refuse('links are not set up', 'url', 'Run a worker with MILLRACE_PUBLIC_URL and MILLRACE_SECRET.', '55000', 'unsupported');
    end if;
    token := concat_ws('.', 'x', encode(convert_to(person_export_link.person, 'UTF8'), 'hex'), extract(epoch from date_trunc('second', millrace.now() + valid))::bigint);
    perform millrace.audited('person.export_link', person_export_link.person, null, caller => person_export_link.caller);
    return base || '/v1/exports/' || token || '.' || encode(millrace.hmac_sha256(the_key, convert_to('millrace link 1:' || token, 'UTF8')), 'hex');
end $$;
select millrace.door_is('gateway', 'person_export_link', 'client, worker', 'actor person', 'A signed link to everything stored about a person.', audited => true,
    who_may => array['get a link to everything stored about them: itself, back end, staff']);
