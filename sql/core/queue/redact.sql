-- Arguments without their secrets, for people who may look at jobs and not at everything in them. A rule is a path such as card.number or
-- people.*.email and matches at any depth (so *. at its beginning says nothing); * is any one name, and positions in arrays may be left out. Rules come from the kind (from
-- programs and from operators) and from one list for the whole database. In doubt a value is hidden.

create or replace function millrace.redactions_usual() returns text[]
language sql immutable parallel safe as $$
    select array['password', 'passwd', 'passphrase', 'pwd', 'secret', 'token', 'authorization', 'api_key', 'apikey', 'access_key', 'private_key',
        'credential', 'cookie', 'card', 'card_number', 'cvv', 'cvc', 'iban', 'ssn', 'pin', 'otp']
$$;

-- The list of the whole database. A single name also matches at the end of a longer one (accessToken, card_number2, tokens).
create or replace function millrace.redactions() returns setof text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select unnest(coalesce((select array(select jsonb_array_elements_text(s.value::jsonb)) from millrace.setting s where s.name = 'redactions'),
        millrace.redactions_usual()))
$$;
select millrace.door_is('queue', 'redactions', 'admin, viewer', 'staff');

-- null: the usual list again.
create or replace function millrace.redactions_set(names text[]) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    old text[] := array(select millrace.redactions());
begin
    perform millrace.check_paths(names, 'names', true);
    if exists (select from unnest(names) n where n !~ '^[[:alnum:]_.* -]+$') then     -- they become part of an expression
        perform millrace.refuse('a name may contain only letters, digits and _ - . *', 'names');
    end if;
    if names is null then
        delete from millrace.setting s where s.name = 'redactions';
    else
        insert into millrace.setting (name, value) values ('redactions', to_jsonb(names)::text)
            on conflict (name) do update set value = excluded.value;
    end if;
    return old is distinct from array(select millrace.redactions());
end $$;
select millrace.door_is('queue', 'redactions_set', 'admin', 'staff');

-- An operator's rules for a kind, besides those that programs declare. null: none, and what programs declared is forgotten until they
-- start again.
create or replace function millrace.kind_redactions_set(the_kind text, paths text[]) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    kind_id int;
    old record;
begin
    perform millrace.check_paths(paths, 'paths', true);
    kind_id := millrace.kind_id(the_kind);
    select k.redactions_set as own, k.redactions_declared as declared into old from millrace.kind k where k.id = kind_id for update;
    update millrace.kind k
       set redactions_set = nullif(paths, '{}'), redactions_declared = case when paths is not null then k.redactions_declared end
     where k.id = kind_id;
    return old.own is distinct from nullif(paths, '{}') or (paths is null and old.declared is not null);
end $$;
select millrace.door_is('queue', 'kind_redactions_set', 'admin', 'staff');

-- Names are compared in one spelling: accessToken, access-token and ACCESS_TOKEN are access_token.
create or replace function millrace.redact_word(name text) returns text
language sql immutable parallel safe as $$
    select btrim(lower(translate(regexp_replace(regexp_replace(name, '([a-z0-9])([A-Z])', E'\\1_\\2', 'g'), '([A-Z])([A-Z][a-z])', E'\\1_\\2', 'g'), '-. ', '___')), '_')
$$;

-- The single names of the list as one expression. A name of five letters and more also matches where no word begins (accesstoken).
create or replace function millrace.redact_pattern(names text[]) returns text
language sql immutable parallel safe as $$
    select string_agg(case when length(w.word) >= 5 then '' else '(?:^|_)' end || w.word, '|' order by w.word)
      from (select distinct millrace.redact_word(n) as word from unnest(names) n where n not like '%.%' and n <> '*') w where w.word <> ''
$$;

-- The rules of a kind: the words of all paths, one path after the other; which words end a path; where paths begin; and the expression
-- for names of the list.
create or replace function millrace.redact_rules(the_kind text, out words text[], out ends boolean[], out starts int[], out pattern text)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    names text[] := array(select millrace.redactions());
    path text;
    steps text[];
begin
    words := '{}'; ends := '{}'; starts := '{}';
    for path in
        select n from unnest(names) n where n like '%.%' or n = '*'
        union select unnest(coalesce(k.redactions_declared, '{}') || coalesce(k.redactions_set, '{}')) from millrace.kind k where k.name = the_kind and k.line = ''
    loop
        steps := string_to_array(regexp_replace(path, '^([*][.])+', ''), '.');    -- at any depth it is anyway
        starts := starts || (cardinality(words) + 1);
        for n in 1 .. cardinality(steps) loop
            words := words || case steps[n] when '*' then '*' else millrace.redact_word(steps[n]) end;
            ends := ends || (n = cardinality(steps));
        end loop;
    end loop;
    pattern := '(?:' || millrace.redact_pattern(names) || ')s?_?[0-9]*$';
end $$;

-- What of a value the rules speak of: the names as they are written there, how many members and elements it has, and whether anything lies deeper
-- than a walk goes. `names` is null where a rule begins with any name or with a position: then every member counts.
create or replace function millrace.redact_found(value jsonb, words text[], starts int[], pattern text, out names text[], out members bigint, out is_deep boolean)
language sql immutable parallel safe as $$
    select case when exists (select from unnest(starts) s where words[s] ~ '^([*]|[0-9]+)$') then null
                else coalesce(array_agg(k.key) filter (where k.word ~ pattern or k.word = any (words)), '{}') end,
           coalesce(sum(k.n), 0)::bigint, jsonb_path_exists(value, 'strict $.**{41}')
      from (select o.key, count(*) + coalesce(sum(x.elements) filter (where o.key is null), 0) as n, millrace.redact_word(o.key) as word
              from (select p.value, case jsonb_typeof(p.value) when 'array' then jsonb_array_length(p.value) else 0 end as elements
                      from jsonb_path_query(value, 'strict $.**{0 to 40} ? (@.type() == "object" || @.type() == "array")') p(value)) x
              left join lateral jsonb_object_keys(case jsonb_typeof(x.value) when 'object' then x.value else '{}' end) o(key) on true
             group by o.key) k
$$;

-- A value without what the rules cover. One in which no rule finds a name is not walked. One that has a name and more than 5,000 members is hidden
-- by whole members, and a hundred of those are looked into: nobody waits seconds for a page.
create or replace function millrace.redact_value(value jsonb, words text[], ends boolean[], starts int[], pattern text) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    there record;
begin
    if value is null or jsonb_typeof(value) not in ('object', 'array') then
        return value;
    end if;
    there := millrace.redact_found(value, words, starts, pattern);
    if there.names = '{}' and not there.is_deep then
        return value;
    end if;
    if there.members <= 5000 then
        return millrace.redact_walk(value, '{}', 0, words, ends, starts, pattern, there.names);
    end if;
    if jsonb_typeof(value) = 'array' then
        return '"[redacted]"';
    end if;
    return (
        with looked_at as materialized (
            select c.key, c.value from jsonb_each(value) c where jsonb_typeof(c.value) in ('object', 'array') order by pg_column_size(c.value), c.key limit 100
        ), clean as materialized (
            select l.key from looked_at l cross join lateral millrace.redact_found(l.value, words, starts, pattern) f where f.names = '{}' and not f.is_deep
        )
        select jsonb_object_agg(e.key, case
                   when there.names is null or e.key = any (there.names) then '"[redacted]"'
                   when jsonb_typeof(e.value) in ('object', 'array') and c.key is null then '"[redacted]"'
                   else e.value end)
          from jsonb_each(value) e
          left join clean c on c.key = e.key);
end $$;

-- at: the words that may come next, of paths that have begun. Deeper than 40 everything is hidden: each level takes stack. names: as redact_found
-- gives them; a member with another name, where no path has begun, is nothing that a rule covers.
create or replace function millrace.redact_walk(value jsonb, at int[], depth int, words text[], ends boolean[], starts int[], pattern text, names text[]) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    case jsonb_typeof(value)
    when 'object' then
        if depth > 40 then return '"[redacted]"'; end if;
        return coalesce((
            select jsonb_object_agg(e.key, case
                       when names is null or cardinality(at) > 0 or e.key = any (names)
                           then millrace.redact_member(e.value, e.key, false, at, depth, words, ends, starts, pattern, names)
                       when jsonb_typeof(e.value) in ('object', 'array')
                           then millrace.redact_walk(e.value, '{}', depth + 1, words, ends, starts, pattern, names)
                       else e.value end)
              from jsonb_each(value) e), '{}');
    when 'array' then
        if depth > 40 then return '"[redacted]"'; end if;
        return coalesce((
            select jsonb_agg(case
                       when names is null or cardinality(at) > 0
                           then millrace.redact_member(e.value, (e.place - 1)::text, true, at, depth, words, ends, starts, pattern, names)
                       when jsonb_typeof(e.value) in ('object', 'array')
                           then millrace.redact_walk(e.value, '{}', depth + 1, words, ends, starts, pattern, names)
                       else e.value end order by e.place)
              from jsonb_array_elements(value) with ordinality e(value, place)), '[]');
    else
        return value;
    end case;
end $$;

create or replace function millrace.redact_member(
    value jsonb, name text, is_place boolean, at int[], depth int, words text[], ends boolean[], starts int[], pattern text, names text[]
) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    word text := case when is_place then name else millrace.redact_word(name) end;
    later int[] := case when is_place then at else '{}' end;    -- a position may be left out of a path
    n int;
begin
    if not is_place and word ~ pattern then
        return '"[redacted]"';
    end if;
    foreach n in array at || starts loop
        if words[n] = '*' or words[n] = word then
            if ends[n] then
                return '"[redacted]"';
            end if;
            later := later || (n + 1);
        end if;
    end loop;
    if jsonb_typeof(value) not in ('object', 'array') then
        return value;
    end if;
    return millrace.redact_walk(value, later, depth + 1, words, ends, starts, pattern, names);
end $$;

-- The arguments of a kind with "[redacted]" in place of what a rule covers. Encrypted ones stay as they are.
create or replace function millrace.redact(the_kind text, args jsonb) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    rules record := millrace.redact_rules(the_kind);
begin
    if millrace.is_sealed(args) then
        return args;
    end if;
    return millrace.redact_value(args, rules.words, rules.ends, rules.starts, rules.pattern);
end $$;
select millrace.door_is('queue', 'redact', 'admin, operator', 'staff');

-- The single names of the list as an expression for texts.
create or replace function millrace.redact_names() returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
    select string_agg(case when length(w.word) >= 5 then '' else E'(?:\\m|_)' end || replace(w.word, '_', '[_ -]?'), '|')
      from (select distinct millrace.redact_word(n) as word from millrace.redactions() n where n not like '%.%' and n <> '*') w where w.word <> ''
$$;

create or replace function millrace.redact_said(said text, names text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if said is null or said !~ '[=:]' then
        return said;
    end if;
    if names is not null then
        said := regexp_replace(said,
            '((?:' || names || E')s?[0-9]*["'']?\\s*[:=]\\s*)(?:"(?:[^"\\\\]|\\\\.)*"|''(?:[^''\\\\]|\\\\.)*''|(?:(?:bearer|basic|digest)\\s+)?[^\\s,;&"''})\\]]+)',
            E'\\1[redacted]', 'gi');
    end if;
    return regexp_replace(said, E'(://[^:/@\\s]*:)[^@/\\s]+@', E'\\1[redacted]@', 'g');
end $$;

-- A text without the values that stand behind names of the list (password=x, "token": "y", Authorization: Bearer z), and without the
-- passwords of URLs. Secrets without their name beside them cannot be known.
create or replace function millrace.redact_text(said text) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select millrace.redact_said(said, millrace.redact_names())
$$;
select millrace.door_is('queue', 'redact_text', 'admin, operator', 'staff');

create or replace function millrace.job_redacted(it millrace.jobs) returns millrace.jobs
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    rules record := millrace.redact_rules(it.kind);
    names text := millrace.redact_names();
begin
    if not millrace.is_sealed(it.args) then
        it.args := millrace.redact_value(it.args, rules.words, rules.ends, rules.starts, rules.pattern);
    end if;
    it.result := millrace.redact_value(it.result, rules.words, rules.ends, rules.starts, rules.pattern);
    it.metadata := millrace.redact_value(it.metadata, rules.words, rules.ends, rules.starts, rules.pattern);
    if it.errors <> '[]' then
        it.errors := (select jsonb_agg(e.value || jsonb_build_object('error', millrace.redact_said(e.value ->> 'error', names)) order by e.place)
                        from jsonb_array_elements(it.errors) with ordinality e(value, place));
    end if;
    if it.progress is not null then
        it.progress := it.progress || jsonb_build_object('stage', millrace.redact_said(it.progress ->> 'stage', names),
            'note', millrace.redact_said(it.progress ->> 'note', names));
    end if;
    return it;
end $$;

-- The row of millrace.job with its secrets hidden. It shows every job, not only those of the caller: the grant decides who may look.
create or replace function millrace.job_shown(id bigint) returns setof millrace.jobs
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    one millrace.jobs;
begin
    for one in select j.* from millrace.job(job_shown.id) j loop
        return next millrace.job_redacted(one);
    end loop;
end $$;
select millrace.door_is('queue', 'job_shown', 'admin, viewer', 'staff');

-- The lines of a job without their secrets, behind the number `after`; of these the newest `most`.
create or replace function millrace.logs_shown(id bigint, after bigint default 0, most int default null)
returns table (n bigint, at timestamptz, level text, attempt int, token text, line text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    names text := millrace.redact_names();
begin
    perform millrace.must_see(logs_shown.id, caller => current_user);
    return query
    select l.n, l.at, (array['debug', 'info', 'warning', 'error'])[l.level + 1], l.attempt::int, format('%s-%s-%s', to_hex(l.session), l.number, l.job),
           millrace.redact_said(l.line, names)
      from (select x.* from millrace.log_line x where x.job = logs_shown.id and x.n > coalesce(logs_shown.after, 0) order by x.n desc limit most) l
     order by l.n;
end $$;
select millrace.door_is('queue', 'logs_shown', 'admin, viewer', 'staff');

create or replace function millrace.steps_shown(id bigint)
returns table (name text, value jsonb, attempt int, at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    rules record := millrace.redact_rules((select k.name from millrace.job j join millrace.kind k on k.id = j.kind where j.id = steps_shown.id));
begin
    -- A value that a step of this name has is hidden like one of a field of this name.
    return query
    select s.name, millrace.redact_value(jsonb_build_object(s.name, s.value), rules.words, rules.ends, rules.starts, rules.pattern) -> s.name, s.attempt, s.at
      from millrace.steps(steps_shown.id) s;
end $$;
select millrace.door_is('queue', 'steps_shown', 'admin, viewer', 'staff');
