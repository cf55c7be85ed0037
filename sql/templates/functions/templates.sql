-- Mail templates. What the database can check it checks. Whether a template can be compiled only the compiler knows, which is in the
-- workers and the command line: no version is live before one of them has said so by template_checked.

-- Version 0 of these is in the program.
create or replace function millrace.template_built_in() returns table (name text, locale text)
language sql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
    select n, l
      from unnest(array['account_notification', 'account_verification', 'email_change', 'invite', 'magic_link', 'password_reset', 'reauthentication', 'welcome']) n
     cross join unnest(array['ar', 'de', 'en']) l
$$;
select millrace.door_is('templates', 'template_built_in', 'worker, viewer', 'staff');

create or replace function millrace.template_check_variables(variables jsonb) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v record;
    example text := 'Such as {"user_name": {"type": "text", "required": true, "max": 200}}; the types are text, url, number, html and list.';
begin
    if variables is null or jsonb_typeof(variables) <> 'object' then
        perform millrace.refuse('variables is not an object', 'variables', example);
    end if;
    if length(variables::text) > 65536 then
        perform millrace.refuse('variables has more than 65536 characters', 'variables', example, '53400', 'too_large');
    end if;
    for v in select * from jsonb_each(variables) loop
        if v.key !~ '^[A-Za-z_][A-Za-z0-9_]{0,63}$' then
            perform millrace.refuse(format('the variable''s name %L is malformed', left(v.key, 60)), 'variables',
                'A name has 1 to 64 letters, digits and _, and begins with a letter or _.');
        end if;
        if jsonb_typeof(v.value) <> 'object' then
            perform millrace.refuse(format('the variable %s is not described by an object', v.key), 'variables', example);
        end if;
        if exists (select from jsonb_object_keys(v.value) k where k not in ('type', 'required', 'max', 'of')) then
            perform millrace.refuse(format('the variable %s has an unknown field; known are type, required, max and of', v.key), 'variables', example);
        end if;
        if v.value ? 'type' and v.value -> 'type' not in ('"text"', '"url"', '"number"', '"html"', '"list"') then
            perform millrace.refuse(format('the variable %s has an unknown type', v.key), 'variables', example);
        end if;
        if coalesce(v.value ->> 'type' = 'list', false) <> (v.value ? 'of') or v.value -> 'of' = '{}' or jsonb_path_exists(v.value, '$.of.*.of') then
            perform millrace.refuse(format('the variable %s is a list without fields, a list in a list, or has fields and is not a list', v.key), 'variables',
                'Such as {"rows": {"type": "list", "of": {"item": {}, "price": {"type": "number"}}}}.');
        end if;
        if v.value ? 'of' then
            perform millrace.template_check_variables(v.value -> 'of');
        end if;
        if v.value ? 'required' and jsonb_typeof(v.value -> 'required') <> 'boolean' then
            perform millrace.refuse(format('required of the variable %s is neither true nor false', v.key), 'variables', example);
        end if;
        if v.value ? 'max' and coalesce(jsonb_typeof(v.value -> 'max') <> 'number' or v.value ->> 'max' !~ '^[0-9]{1,7}$'
                or (v.value ->> 'max')::int not between 1 and 1000000, true) then
            perform millrace.refuse(format('max of the variable %s is not a whole number from 1 to 1000000', v.key), 'variables', example);
        end if;
    end loop;
end $$;

create or replace function millrace.template_check_name(name text, locale text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if name is null or name !~ '^[a-z0-9][a-z0-9_.-]{0,127}$' then
        perform millrace.refuse(format('the template''s name %L is malformed', left(name, 60)), 'name',
            'A name has 1 to 128 lower-case letters, digits and _ . - and begins with a letter or digit.');
    end if;
    if locale is null or locale !~ '^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$' then
        perform millrace.refuse(format('the locale %L is malformed', left(locale, 60)), 'locale',
            'A language, optionally a script and a region: en, pt-BR, zh-Hant-TW.');
    end if;
end $$;

create or replace function millrace.template_publish(
    name text, subject text, html text, plain text, variables jsonb, locale text default 'en', note text default null, caller millrace.caller_name default current_user
) returns int
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    the_version int;
begin
    perform millrace.template_check_name(template_publish.name, template_publish.locale);
    if coalesce(btrim(template_publish.subject), '') = '' or template_publish.subject ~ E'[\\x01-\\x1f\\x7f]' or length(template_publish.subject) > 998 then
        perform millrace.refuse('the subject is empty, of several lines, or longer than 998 characters', 'subject', 'A subject is one line.');
    end if;
    if coalesce(btrim(template_publish.plain), '') = '' then
        perform millrace.refuse('there is no text part', 'plain', 'Give the same in plain text: some mail programs show nothing else.');
    end if;
    if template_publish.html is not null and btrim(template_publish.html) = '' then
        perform millrace.refuse('the HTML part is empty', 'html', 'Give null for a mail without HTML.');
    end if;
    if octet_length(template_publish.html) > 102 * 1024 then
        perform millrace.refuse(format('the HTML has %s bytes, more than %s', octet_length(template_publish.html), 102 * 1024), 'html',
            'Gmail cuts off what is longer. Take something out.', '53400', 'too_large');
    end if;
    if octet_length(template_publish.plain) > 102 * 1024 then
        perform millrace.refuse(format('the text has %s bytes, more than %s', octet_length(template_publish.plain), 102 * 1024), 'plain',
            'Take something out.', '53400', 'too_large');
    end if;
    if length(template_publish.note) > 500 then
        perform millrace.refuse('the note is longer than 500 characters', 'note', 'Give at most 500 characters.');
    end if;
    perform millrace.template_check_variables(template_publish.variables);

    perform millrace.turns_wait('template', array[hashtext(template_publish.name) & 63]);      -- versions count up one by one
    -- If it equals the live version, or the one that goes live once it is checked, it is not a new version.
    select t.version into the_version
      from millrace.template_version t
     where t.name = template_publish.name and t.locale = template_publish.locale
       and t.version = coalesce(
           (select w.version from millrace.template_version w where w.name = t.name and w.locale = t.locale and w.awaited),
           (select l.version from millrace.template_live l where l.name = t.name and l.locale = t.locale))
       and (t.subject, t.html, t.plain, t.variables) is not distinct from
           (template_publish.subject, template_publish.html, template_publish.plain, template_publish.variables);
    if found then
        return the_version;
    end if;
    select coalesce(max(t.version), 0) + 1 into the_version
      from millrace.template_version t where t.name = template_publish.name and t.locale = template_publish.locale;
    update millrace.template_version t set awaited = false
     where t.name = template_publish.name and t.locale = template_publish.locale and t.awaited;
    insert into millrace.template_version (name, locale, version, subject, html, plain, variables, note, published_by, published_at, awaited)
    values (template_publish.name, template_publish.locale, the_version, template_publish.subject, template_publish.html, template_publish.plain,
        template_publish.variables, template_publish.note, template_publish.caller, millrace.now(), true);
    insert into millrace.template_event (at, name, locale, version, change, by, note)
    values (millrace.now(), template_publish.name, template_publish.locale, the_version, 'published', template_publish.caller, template_publish.note);
    perform pg_notify('millrace_templates', template_publish.name);
    perform millrace.audited('template.publish', template_publish.name, jsonb_build_object('locale', template_publish.locale, 'version', the_version), caller => template_publish.caller);
    return the_version;
end $$;
select millrace.door_is('templates', 'template_publish', 'admin', 'staff', audited => true);

-- Makes a version live, without a word. True when another was.
create or replace function millrace.template_make_live(the_name text, the_locale text, the_version int) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    insert into millrace.template_live as l (name, locale, version) values (the_name, the_locale, the_version)
        on conflict (name, locale) do update set version = excluded.version where l.version <> excluded.version;
    return found;
end $$;

-- Version 0 is the one that is built in. One that was not checked yet is live as soon as it was.
create or replace function millrace.template_use(name text, version int, locale text default 'en', caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    changed boolean;
    one record;
begin
    perform millrace.template_check_name(template_use.name, template_use.locale);
    perform millrace.turns_wait('template', array[hashtext(template_use.name) & 63]);
    if template_use.version = 0
        and exists (select from millrace.template_built_in() b where b.name = template_use.name and b.locale = template_use.locale)
    then
        delete from millrace.template_live l where l.name = template_use.name and l.locale = template_use.locale;
        changed := found;
    else
        select t.checked_at, t.problem, t.awaited into one
          from millrace.template_version t
         where t.name = template_use.name and t.locale = template_use.locale and t.version = template_use.version;
        if not found then
            perform millrace.refuse(format('there is no version %s of the template %s in %s', template_use.version, template_use.name, template_use.locale),
                'version', 'The view millrace.templates lists all of them.', 'P0002', 'not_found');
        end if;
        if one.problem is not null then
            perform millrace.refuse(format('version %s of the template %s in %s was refused: %s', template_use.version, template_use.name,
                template_use.locale, one.problem), 'version', 'Correct it and publish it again.');
        end if;
        changed := case when one.checked_at is null then not one.awaited
            else millrace.template_make_live(template_use.name, template_use.locale, template_use.version) end;
    end if;
    update millrace.template_version t set awaited = false
     where t.name = template_use.name and t.locale = template_use.locale and t.awaited and t.version <> template_use.version;
    changed := changed or found;
    update millrace.template_version t set awaited = true
     where t.name = template_use.name and t.locale = template_use.locale and t.version = template_use.version and t.checked_at is null and not t.awaited;
    if changed then
        insert into millrace.template_event (at, name, locale, version, change, by)
        values (millrace.now(), template_use.name, template_use.locale, template_use.version, 'used', template_use.caller);
        perform pg_notify('millrace_templates', template_use.name);
        perform millrace.audited('template.use', template_use.name, jsonb_build_object('locale', template_use.locale, 'version', template_use.version), caller => template_use.caller);
    end if;
    return changed;
end $$;
select millrace.door_is('templates', 'template_use', 'admin', 'staff', audited => true);

-- The oldest versions that nobody has compiled yet, for a worker with the compiler.
create or replace function millrace.template_unchecked(most int default 20)
returns table (name text, locale text, version int, subject text, html text, plain text, variables jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select t.name, t.locale, t.version, t.subject, t.html, t.plain, t.variables
      from millrace.template_version t
     where t.checked_at is null
     order by t.published_at, t.name, t.locale, t.version
     limit least(greatest(most, 1), 100)
$$;
select millrace.door_is('templates', 'template_unchecked', 'worker', 'staff');

-- Records the compiler's result for a version: null, or a sentence that says what is wrong. The first result counts; false when there was
-- one.
create or replace function millrace.template_checked(name text, locale text, version int, problem text default null) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    was_awaited boolean;
begin
    perform millrace.turns_wait('template', array[hashtext(template_checked.name) & 63]);
    select t.awaited into was_awaited
      from millrace.template_version t
     where t.name = template_checked.name and t.locale = template_checked.locale and t.version = template_checked.version and t.checked_at is null
       for update;
    if not found then
        return false;
    end if;
    update millrace.template_version t
       set checked_at = millrace.now(), awaited = false,
           problem = left(coalesce(nullif(btrim(template_checked.problem), ''), case when template_checked.problem is not null then 'it was refused' end), 1000)
     where t.name = template_checked.name and t.locale = template_checked.locale and t.version = template_checked.version;
    if was_awaited and template_checked.problem is null then
        perform millrace.template_make_live(template_checked.name, template_checked.locale, template_checked.version);
    end if;
    perform pg_notify('millrace_templates', template_checked.name);
    return true;
end $$;
select millrace.door_is('templates', 'template_checked', 'worker', 'staff');

-- The live version in the first of the locales that has one; or a given version, live or not.
create or replace function millrace.template_source(the_name text, the_locales text[], the_version int default null)
returns table (locale text, version int, subject text, html text, plain text, variables jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select t.locale, t.version, t.subject, t.html, t.plain, t.variables
      from unnest(the_locales) with ordinality w (locale, n)
      join millrace.template_version t on t.name = the_name and t.locale = w.locale
     where t.version = coalesce(the_version, (select l.version from millrace.template_live l where l.name = t.name and l.locale = t.locale))
     order by w.n
     limit 1
$$;
select millrace.door_is('templates', 'template_source', 'worker, viewer', 'staff');

create or replace function millrace.template_history(the_name text)
returns table (at timestamptz, name text, locale text, version int, change text, by text, note text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select e.at, e.name, e.locale, e.version, e.change, e.by, e.note from millrace.template_event e where e.name = the_name order by e.id
$$;
select millrace.door_is('templates', 'template_history', 'admin, viewer', 'staff');

create or replace view millrace.templates as
select t.name, t.locale, t.version, l.version is not null as live,
       octet_length(t.subject) + coalesce(octet_length(t.html), 0) + octet_length(t.plain) as bytes,
       exists (select from millrace.template_built_in() b where b.name = t.name) as built_in, t.published_at, t.note, t.checked_at, t.problem
  from millrace.template_version t
  left join millrace.template_live l on l.name = t.name and l.locale = t.locale and l.version = t.version
union all
select b.name, b.locale, 0, not exists (select from millrace.template_live l where l.name = b.name and l.locale = b.locale), null, true, null, null, null, null
  from millrace.template_built_in() b;
select millrace.view_is('templates', 'templates', 'worker, viewer');

-- The variables that the built-in templates require.
create or replace function millrace.template_built_in_requires(the_template text) returns text[]
language sql immutable parallel safe as $$
    select case the_template
        when 'password_reset' then array['app_name', 'url']
        when 'account_verification' then array['app_name', 'url']
        when 'email_change' then array['app_name', 'email', 'url']
        when 'invite' then array['app_name', 'url']
        when 'magic_link' then array['app_name', 'url']
        when 'reauthentication' then array['app_name', 'code']
        when 'welcome' then array['app_name', 'user_name']
        when 'account_notification' then array['app_name', 'body', 'title'] end
$$;

-- What every version that may be used requires; a name that is no template is refused. Which version it will be is decided when it is rendered.
create or replace function millrace.template_requires(the_template text) returns text[]
language plpgsql stable set plan_cache_mode = force_generic_plan as $$
declare
    built_in text[] := millrace.template_built_in_requires(the_template);
    versions bigint;
begin
    select count(*) into versions from millrace.template_version t where t.name = the_template and t.problem is null
       and (t.awaited or exists (select from millrace.template_live l where l.name = t.name and l.locale = t.locale and l.version = t.version));
    if versions = 0 and built_in is null then
        perform millrace.refuse(format('there is no template %s', left(the_template, 128)), 'template',
            'millrace templates list and the view millrace.templates show them all; template_publish adds one.', 'P0002', 'not_found');
    end if;
    return array(
        select x.name
          from (select v.key as name
                  from millrace.template_version t cross join jsonb_each(t.variables) v
                 where t.name = the_template and t.problem is null and v.value -> 'required' = 'true'
                   and (t.awaited or exists (select from millrace.template_live l where l.name = t.name and l.locale = t.locale and l.version = t.version))
                union all
                select b from unnest(built_in) b) x
         group by x.name
        having count(*) = versions + (built_in is not null)::int
         order by x.name);
end $$;

do $$
begin
    perform millrace.turns_are('{"template": 64}');
end $$;
