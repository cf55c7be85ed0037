-- Refusals all look alike: a sentence, the field, and what to do.
create or replace function millrace.refuse(
    sentence text, field text default null, hint text default null, code text default '22023', class text default 'invalid'
) returns void
language plpgsql as $$
begin
    raise exception using
        message = sentence,
        errcode = code,
        hint = coalesce(hint, ''),
        detail = json_build_object('error', class, 'field', field)::text;
end $$;

-- Adds these to a setting that is an object.
create or replace function millrace.setting_add(the_name text, more jsonb) returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    insert into millrace.setting as s (name, value) values (the_name, more::text)
        on conflict on constraint setting_pkey do update set value = (s.value::jsonb || excluded.value::jsonb)::text
            where not s.value::jsonb @> excluded.value::jsonb
$$;

-- True for one caller in each span of time; the setting says when that was.
create or replace function millrace.setting_turn(the_name text, every interval) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
begin
    insert into millrace.setting as s (name, value) values (the_name, t::text)
        on conflict on constraint setting_pkey do update set value = excluded.value where s.value::timestamptz <= t - every;
    return found;
end $$;

-- False: it had this value already. null: it has none any more.
create or replace function millrace.setting_put(the_name text, the_value text) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    if the_value is null then
        delete from millrace.setting s where s.name = the_name;
    else
        insert into millrace.setting as s (name, value) values (the_name, the_value)
            on conflict on constraint setting_pkey do update set value = excluded.value where s.value <> excluded.value;
    end if;
    return found;
end $$;
