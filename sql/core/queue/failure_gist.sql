-- What a group of failures is called: the error without what differs from run to run, so that one cause is one group. Everything reads a line of
-- at most 1,000 characters, and each expression goes through it once. The workers' ErrorLikeness does the same before a beat.
--
--   #          a number, a UUID, ULID, nanoid, hash or other identifier; a prefix of words stays: cus_#, sk_live_#
--   <address>  a mail address       <url>   an address with a scheme      <path>  a file's or a request's path
--   <ip>       an address of IP, with its port        <time>  a date, a time or both          <span>  30s, 1m2.5s
--   '#'        a quoted value; what is quoted and names a thing, such as a column or a class, stays

-- The letters of a word by their sort: l small, u capital, d digit, - anything else. Words have runs of one sort, and drawn identifiers change often.
create or replace function millrace.gist_sorts(word text) returns text
language sql immutable parallel safe as $$
    select translate(word, 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-',
                           'lllllllllllllllllllllllllluuuuuuuuuuuuuuuuuuuuuuuuuudddddddddd--')
$$;

-- How often a word changes its sort, from a letter to a digit and back; cases: and from a small letter to a capital.
create or replace function millrace.gist_turns(sorts text, cases boolean) returns int
language sql immutable parallel safe as $$
    select (case when cases then 5 else 4 end) * length(sorts) - length(replace(sorts, 'ld', 'x')) - length(replace(sorts, 'ud', 'x'))
         - length(replace(sorts, 'du', 'x')) - length(replace(sorts, 'dl', 'x')) - case when cases then length(replace(sorts, 'lu', 'x')) else 0 end
$$;

-- Whether a word of letters and digits was drawn and not written. named: it stands behind a prefix, as in cus_Nf8r.
create or replace function millrace.gist_is_drawn(word text, named boolean) returns boolean
language plpgsql immutable parallel safe as $$
declare
    sorts text := millrace.gist_sorts(word);
    n int := length(word);
    turns int := millrace.gist_turns(sorts, true);
begin
    if n < 6 or lower(word) in ('utf8mb3', 'utf8mb4', 'x509v3') then
        return false;
    elsif position('d' in sorts) > 0 then
        return n >= 8 and word !~ '[^0-9a-fA-F]'
            or position('-' in sorts) = 0 and millrace.gist_turns(sorts, false) >= 3
            or n >= 8 and (turns >= 4 and turns * 4 >= n or named and turns >= 2);
    end if;
    return position('u' in sorts) > 0 and (n >= 10 and turns * 3 > n or n >= 22 and turns * 4 >= n or named and n >= 8 and turns >= 2);
end $$;

-- A word with its underscores and hyphens, without what was drawn.
create or replace function millrace.gist_word(word text) returns text
language plpgsql immutable parallel safe as $$
declare
    body text := regexp_replace(word, '^([a-z]+_)+', '');
    name text := left(word, length(word) - length(body));
begin
    if length(word) = 21 and word ~ '[0-9_-]' and word ~ '[a-z]' and word ~ '[A-Z]' and millrace.gist_turns(millrace.gist_sorts(word), true) >= 3 then
        return '#';                                       -- a nanoid, which has both signs within
    elsif name <> '' and millrace.gist_is_drawn(body, true) then
        return name || '#';
    elsif length(body) >= 16 and body ~ '[a-z]' and body ~ '[A-Z]' and body ~ '[0-9]' and millrace.gist_is_drawn(body, false) then
        return name || '#';
    elsif body !~ '[0-9]' and body !~ '[a-z][A-Z]' then
        return word;
    end if;
    return name || (
        select string_agg(case when millrace.gist_is_drawn(m[1], false) then '#' else m[1] end, '' order by place)
          from regexp_matches(body, '[A-Za-z0-9]+|[_-]+', 'g') with ordinality w(m, place));
end $$;

-- The line without what its places say by themselves: addresses, times, paths.
create or replace function millrace.gist_places(line text) returns text
language plpgsql immutable parallel safe as $$
begin
    if position('://' in line) > 0 then
        line := regexp_replace(line, E'[A-Za-z][A-Za-z0-9+.-]*://[^][:space:]<>"''`]*[^][:space:]<>"''`.,;:)}]', '<url>', 'g');
    end if;
    if position('@' in line) > 0 then
        line := regexp_replace(line, '[^[:space:]<>"''(),;:@]+@[^[:space:]<>"''(),;:@]+', '<address>', 'g');
    end if;
    if line ~ '[0-9]' then
        line := regexp_replace(line,
            '(?<![A-Za-z0-9_])('
            -- 2026-11-29T20:30:00.123Z, 2026-11-29, 2026/11/29 20:30:00
            '[0-9]{4}([-/])[0-9]{2}[-/][0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?)?'
            -- Sun, 29 Nov 2026 20:30:00, 29 Nov 2026
            '|((Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?[0-9]{1,2}[ -](Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*[ -][0-9]{4}( [0-9]{2}:[0-9]{2}(:[0-9]{2})?)?'
            -- Nov 29 20:30:00 2026, Nov 29, 2026
            '|((Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* +[0-9]{1,2}(,? [0-9]{4}( [0-9]{2}:[0-9]{2}(:[0-9]{2})?)?| [0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?)( [0-9]{4})?'
            -- 20:30:00.123
            '|[0-9]{1,2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?'
            ')( ?(Z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?)( [0-9]{4})?)?(?![A-Za-z0-9:])', '<time>', 'g');
        line := regexp_replace(line,
            '(?<![A-Za-z0-9:.])([0-9]{1,3}([.][0-9]{1,3}){3}'
            '|[[]?(?=[0-9A-Fa-f:]*[0-9])[0-9A-Fa-f]{0,4}(:[0-9A-Fa-f]{0,4}){2,7}([.][0-9]{1,3}){0,3}(%[a-z0-9]+)?[]]?'
            ')(:[0-9]+)?(?![A-Za-z0-9]|:[0-9])', '<ip>', 'g');
    end if;
    if line ~ '[A-Za-z0-9+/]{40}' then                    -- base64
        line := regexp_replace(line, '(?<![A-Za-z0-9+/_.-])(?=[A-Za-z0-9+/]*[0-9])(?=[A-Za-z0-9+/]*[a-z])(?=[A-Za-z0-9+/]*[A-Z])([A-Za-z0-9+][A-Za-z0-9+/]{39,}|[A-Za-z0-9+/]{40,}={1,2})(?![A-Za-z0-9+/=])', '#', 'g');
    end if;
    if position('/' in line) > 0 then
        line := regexp_replace(line,
            '(?<![A-Za-z0-9_./>)<])([~]|[.]{1,2})?/[A-Za-z0-9_.%~@+-]([^][:space:]"''`<>(){},;:|=]*[^][:space:]"''`<>(){},;:|=.?!])?'
            '|(?<![A-Za-z0-9_./>)<%~+-])(?=[^[:space:]]*[0-9])(?=[^[:space:]]*[A-Za-z])[A-Za-z0-9_.%~+-]+(/[A-Za-z0-9_.%~@+=-]+){2,}'
            '|(?<![A-Za-z0-9_./>)<%~+-])([A-Za-z0-9_.%~+-]+/)+[A-Za-z0-9_.%~@+=-]*[.][A-Za-z][A-Za-z0-9]{0,4}(?![A-Za-z0-9_.%/+-])', '<path>', 'g');
    end if;
    if position(E'\\' in line) > 0 then
        line := regexp_replace(line, E'((?<![A-Za-z0-9_])[A-Za-z]:|\\\\)\\\\[^][:space:]"''`<>|,;:()]+', '<path>', 'g');
    end if;
    return line;
end $$;

-- The line without its quoted values. Where the line says that a text cannot be read, everything quoted is a value, except names. Elsewhere a quoted
-- text is a value if it follows a word such as user or file, or if it is not a name. Sentences and identifiers stay.
create or replace function millrace.gist_quotes(line text) returns text
language plpgsql immutable parallel safe as $$
begin
    if line !~ '["''`]' then
        return line;
    end if;
    if lower(line) ~ '(invalid|illegal|malformed|unexpected|unknown|bad) (input|value|literal|token|character|date|time|number|format|byte|escape|string|syntax)|pars(e|ing)|convert|input string|deserializ|does not match|is not valid|is not a' then
        return regexp_replace(line,
            '(?<!(column|relation|constraint|table|type|function|field|key|property|attribute|parameter|argument|enum|module|class|method|index|role|schema|header|option|named?) )(?<![A-Za-z0-9])'
            '("[^"]*"|''[^'']*''|`[^`]*`)(?![A-Za-z0-9])', '''#''', 'g');
    end if;
    return regexp_replace(line,
        '((?<=(user|username|login|account|customer|member|person|owner|tenant|value|string|text|title|email|address|phone|host|hostname|domain|file|filename|folder|directory|path|bucket|message|token|id|identifier|object|record|document|invoice|order|item|product|name|label|key)([ =]|: ?))'
        '("[^"]*"|''[^'']*''|`[^`]*`)'
        -- empty, or with what no name has; two words with capitals
        '|(?<![A-Za-z0-9])("([^"A-Za-z0-9]*|[^"]*[^" -~][^"]*|[A-Z][a-z]+( [A-Z][a-z]*[.]?){1,3})"|''([^''A-Za-z0-9]*|[^'']*[^'' -~][^'']*|[A-Z][a-z]+( [A-Z][a-z]*[.]?){1,3})'''
        '))(?![A-Za-z0-9])', '''#''', 'g');
end $$;

create or replace function millrace.failure_gist(error text) returns text
language plpgsql immutable parallel safe as $$
declare
    line text := left(split_part(left(error, 2000), E'\n', 1), 1000);
    word text;
    short text;
begin
    if error is null then
        return 'other errors';
    elsif line like 'worker %' and line like '% while the job ran or waited there%' then
        return regexp_replace(line, '^worker .* was ', 'its worker was ');
    elsif line like 'quarantined: %' then
        return 'quarantined: it ran alone when its worker crashed, for the second time';
    end if;
    line := millrace.gist_quotes(millrace.gist_places(regexp_replace(line, '^attempt [0-9]+ of [0-9]+: ', '')));
    if line ~ '[0-9]|[a-z][A-Z]|[A-Z]{12}' then
        line := regexp_replace(line, '(?<![A-Za-z0-9_])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![A-Za-z0-9_])|(?<![A-Za-z0-9_])0x[0-9a-f]+(?![A-Za-z0-9_])', '#', 'gi');
        -- What stands behind a word that says that an identifier follows.
        line := regexp_replace(line, '(?<![A-Za-z0-9_-])(((id|ID|([A-Za-z]+)(Id|ID|[_-]id|[_-]ID))[ :=]{1,3}(?=[A-Za-z_-]*[0-9]|[A-Z]{10}|[A-Za-z]*[a-z][A-Z])|[Rr]equest:? (?=[A-Za-z_-]*[0-9]|[A-Z]{12}))([a-z]+_)*)[A-Za-z0-9-][A-Za-z0-9_-]{9,}(?![A-Za-z0-9_-])', E'\\1#', 'g');
        for word in
            select distinct m[1] from regexp_matches(line, '(?<![A-Za-z0-9_-])((?=[A-Za-z_-]*[0-9]|[A-Za-z_-]*[a-z][A-Z])[A-Za-z0-9_-]{6,})(?![A-Za-z0-9_-])', 'g') m
        loop
            short := millrace.gist_word(word);
            if short <> word then
                line := replace(line, word, short);
            end if;
        end loop;
    end if;
    line := regexp_replace(line, '(?<![A-Za-z0-9_.])([0-9]+([.][0-9]+)?(ns|us|[^ -~]s|ms|s|m|h))+(?![A-Za-z0-9_])', '<span>', 'g');
    return left(regexp_replace(line, '[0-9#]+([.,][0-9#]+)*', '#', 'g'), 120);
end $$;
