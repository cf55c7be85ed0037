-- The schemas of answers: a small part of JSON Schema, of which every word is checked. A schema with another word is refused, so that nobody relies
-- on a rule that is not kept.

create or replace function millrace.ai_schema_words() returns text[]
language sql immutable parallel safe as $$
    select array['type', 'description', 'properties', 'required', 'enum', 'items', 'minLength', 'maxLength', 'minItems', 'maxItems', 'minimum', 'maximum', 'additionalProperties']
$$;

-- What is wrong with a schema, and where; null: nothing.
create or replace function millrace.ai_schema_problem(schema jsonb, path text default '$', depth int default 1) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    one record;
    strange text;
    the_type text;
    found_problem text;
begin
    if depth > 8 then
        return format('%s: more than 8 levels', path);
    end if;
    if jsonb_typeof(schema) is distinct from 'object' then
        return format('%s: a schema is an object', path);
    end if;
    select k into strange from jsonb_object_keys(schema) k where k <> all (millrace.ai_schema_words()) order by k limit 1;
    if found then
        return format('%s: the word %L is not supported', path, left(strange, 60));
    end if;
    if schema ? 'description' and jsonb_typeof(schema -> 'description') <> 'string' then
        return format('%s: description is not text', path);
    end if;
    the_type := case when jsonb_typeof(schema -> 'type') = 'string' then schema ->> 'type' end;
    if the_type is null or the_type not in ('object', 'array', 'string', 'integer', 'number', 'boolean') then
        return format('%s: type is object, array, string, integer, number or boolean', path);
    end if;
    for one in select w.word, w.of from (values ('properties', 'object'), ('required', 'object'), ('additionalProperties', 'object'), ('items', 'array'), ('minItems', 'array'),
        ('maxItems', 'array'), ('minLength', 'string'), ('maxLength', 'string')) w(word, of)
    loop
        if schema ? one.word and one.of <> the_type then
            return format('%s: %s belongs to %s', path, one.word, one.of);
        end if;
        if one.word ~ '^(min|max)(Length|Items)$' and schema ? one.word and coalesce(jsonb_typeof(schema -> one.word) <> 'number' or schema ->> one.word !~ '^[0-9]{1,7}$', true) then
            return format('%s: %s is not a whole number from 0 to 9999999', path, one.word);
        end if;
    end loop;
    if schema ?| array['minimum', 'maximum'] and (the_type not in ('integer', 'number')
        or jsonb_typeof(coalesce(schema -> 'minimum', '0')) <> 'number' or jsonb_typeof(coalesce(schema -> 'maximum', '0')) <> 'number') then
        return format('%s: minimum and maximum are numbers, and belong to integer and number', path);
    end if;
    if schema ? 'enum' and (jsonb_typeof(schema -> 'enum') <> 'array' or jsonb_array_length(schema -> 'enum') not between 1 and 100
        or exists (select from jsonb_array_elements(schema -> 'enum') e where jsonb_typeof(e) not in ('string', 'number', 'boolean'))) then
        return format('%s: enum is a list of 1 to 100 texts, numbers, true or false', path);
    end if;
    if schema ? 'additionalProperties' and jsonb_typeof(schema -> 'additionalProperties') <> 'boolean' then
        return format('%s: additionalProperties is true or false', path);
    end if;
    if the_type = 'array' then
        return coalesce(case when not schema ? 'items' then format('%s: items is missing', path) end,
            millrace.ai_schema_problem(schema -> 'items', path || '[]', depth + 1));
    end if;
    if the_type = 'object' then
        if jsonb_typeof(schema -> 'properties') is distinct from 'object' then
            return format('%s: properties is missing', path);
        end if;
        if schema ? 'required' and (jsonb_typeof(schema -> 'required') <> 'array'
            or exists (select from jsonb_array_elements(schema -> 'required') e where jsonb_typeof(e) <> 'string' or not (schema -> 'properties') ? (e #>> '{}'))) then
            return format('%s: required is not a list of names of properties', path);
        end if;
        for one in select p.key, p.value from jsonb_each(schema -> 'properties') p order by p.key loop
            found_problem := millrace.ai_schema_problem(one.value, path || '.' || left(one.key, 60), depth + 1);
            if found_problem is not null then
                return found_problem;
            end if;
        end loop;
    end if;
    return null;
end $$;

-- Where a value does not fit its schema; null: it fits. The sentence names places and rules, and no contents: it goes into logs and to the model.
create or replace function millrace.ai_misfit(schema jsonb, value jsonb, path text default '$') returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    the_type text := schema ->> 'type';
    is_type text := jsonb_typeof(value);
    one record;
    n int;
    found_misfit text;
begin
    if is_type is distinct from (case the_type when 'integer' then 'number' else the_type end) or (the_type = 'integer' and value::numeric <> trunc(value::numeric)) then
        return format('%s is not of type %s', path, the_type);
    end if;
    if schema ? 'enum' and not exists (select from jsonb_array_elements(schema -> 'enum') e(one) where e.one = ai_misfit.value) then
        return format('%s is not one of the allowed values', path);
    end if;
    if the_type in ('integer', 'number') then
        if value::numeric < (schema ->> 'minimum')::numeric then
            return format('%s is less than %s', path, schema ->> 'minimum');
        end if;
        if value::numeric > (schema ->> 'maximum')::numeric then
            return format('%s is more than %s', path, schema ->> 'maximum');
        end if;
    elsif the_type = 'string' then
        n := length(value #>> '{}');
        if n < (schema ->> 'minLength')::int then
            return format('%s has fewer than %s characters', path, schema ->> 'minLength');
        end if;
        if n > (schema ->> 'maxLength')::int then
            return format('%s has more than %s characters', path, schema ->> 'maxLength');
        end if;
    elsif the_type = 'array' then
        n := jsonb_array_length(value);
        if n < (schema ->> 'minItems')::int then
            return format('%s has fewer than %s entries', path, schema ->> 'minItems');
        end if;
        if n > (schema ->> 'maxItems')::int then
            return format('%s has more than %s entries', path, schema ->> 'maxItems');
        end if;
        for one in select e.item, e.n - 1 as n from jsonb_array_elements(value) with ordinality e(item, n) loop
            found_misfit := millrace.ai_misfit(schema -> 'items', one.item, format('%s[%s]', path, one.n));
            if found_misfit is not null then
                return found_misfit;
            end if;
        end loop;
    elsif the_type = 'object' then
        select r.one #>> '{}' as name into one from jsonb_array_elements(schema -> 'required') r(one) where not ai_misfit.value ? (r.one #>> '{}') limit 1;
        if found then
            return format('%s.%s is missing', path, one.name);
        end if;
        if schema -> 'additionalProperties' = 'false' and exists (select from jsonb_object_keys(ai_misfit.value) k where not (schema -> 'properties') ? k) then
            return format('%s has a property that is not declared', path);
        end if;
        for one in select p.key, p.rule from jsonb_each(schema -> 'properties') p(key, rule) where ai_misfit.value ? p.key order by p.key loop
            found_misfit := millrace.ai_misfit(one.rule, value -> one.key, path || '.' || one.key);
            if found_misfit is not null then
                return found_misfit;
            end if;
        end loop;
    end if;
    return null;
end $$;
