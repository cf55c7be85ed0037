-- Flags: on for a share of all keys, the same keys here and in every process, and only ever more of them as the share grows.

-- The low 32 bits of a product of two numbers of 32 bits, which 64 bits with a sign do not hold.
create or replace function millrace.times32(a bigint, b bigint) returns bigint
language sql immutable parallel safe as $$
    select (((a & 65535) * b) + ((((a >> 16) * b) & 65535) << 16)) & 4294967295
$$;

-- MurmurHash3, x86, 32 bits, seed 0.
create or replace function millrace.murmur(the_text text) returns bigint
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
    bytes bytea := convert_to(the_text, 'UTF8');
    n int := length(bytes);
    hash bigint := 0;
    block bigint;
    i int := 0;
    k int;
begin
    while i < n loop
        block := 0;
        for k in reverse least(i + 3, n - 1) .. i loop
            block := (block << 8) | get_byte(bytes, k);
        end loop;
        block := millrace.times32(block, 3432918353);
        block := ((block << 15) | (block >> 17)) & 4294967295;
        block := millrace.times32(block, 461845907);
        hash := hash # block;
        if i + 4 <= n then
            hash := ((hash << 13) | (hash >> 19)) & 4294967295;
            hash := (hash * 5 + 3864292196) & 4294967295;
        end if;
        i := i + 4;
    end loop;
    hash := hash # n;
    hash := millrace.times32(hash # (hash >> 16), 2246822507);
    hash := millrace.times32(hash # (hash >> 13), 3266489909);
    return hash # (hash >> 16);
end $$;

create or replace function millrace.flag_on(name text, key text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select coalesce((select flag_on.key = any (f.always) or millrace.murmur(f.name || ':' || flag_on.key) % 100 < f.percent
                       from millrace.flag f where f.name = flag_on.name), false)
$$;
select millrace.door_is('providers', 'flag_on', 'client, worker', 'open', 'Whether a flag is on for a key.');

create or replace function millrace.flag_set(name text, percent int, always text[] default '{}', reason text default null, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    if flag_set.name is null or flag_set.name !~ '^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$' then
        perform millrace.refuse(format('the flag''s name %L is malformed', left(flag_set.name, 60)), 'name',
            'A name has 1 to 128 letters, digits and _ . : / - and begins with a letter or digit.');
    end if;
    if flag_set.percent is null or flag_set.percent not between 0 and 100 then
        perform millrace.refuse('percent is out of range', 'percent', 'Give 0 (off) to 100 (on for all).');
    end if;
    if flag_set.always is null or cardinality(flag_set.always) > 1000 or exists (select from unnest(flag_set.always) a where a is null or length(a) not between 1 and 128) then
        perform millrace.refuse('always must be at most 1000 keys of 1 to 128 characters', 'always');
    end if;
    insert into millrace.flag as f (name, percent, always, reason, changed_by, changed_at)
    values (flag_set.name, flag_set.percent, flag_set.always, left(flag_set.reason, 500), flag_set.caller, millrace.now())
    on conflict (name) do update
        set percent = excluded.percent, always = excluded.always, reason = excluded.reason, changed_by = excluded.changed_by, changed_at = excluded.changed_at
      where (f.percent, f.always, f.reason) is distinct from (excluded.percent, excluded.always, excluded.reason);
    if not found then
        return false;
    end if;
    perform pg_notify('millrace_providers', 'flags');
    perform millrace.audited('flag.set', flag_set.name, jsonb_build_object('percent', flag_set.percent, 'always', cardinality(flag_set.always), 'reason', flag_set.reason), caller => flag_set.caller);
    return true;
end $$;
select millrace.door_is('providers', 'flag_set', 'admin, operator', 'staff', audited => true);

create or replace function millrace.flag_list()
returns table (name text, percent int, always text[], reason text, changed_by text, changed_at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select f.name, f.percent, f.always, f.reason, f.changed_by, f.changed_at from millrace.flag f order by f.name
$$;
select millrace.door_is('providers', 'flag_list', 'worker, viewer, gateway', 'staff');
