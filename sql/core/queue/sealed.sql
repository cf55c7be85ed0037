-- Encrypted arguments. The database has no key: it knows what sealed arguments look like, which key they name, and how to put newly
-- sealed ones in their place.

create or replace function millrace.is_sealed(the_args jsonb) returns boolean
language sql immutable parallel safe as $$
    select coalesce(jsonb_typeof(the_args) = 'object' and the_args ->> '$millrace' = 'sealed' and the_args -> 'v' = '1'
        and the_args ->> 'key' ~ '^[A-Za-z0-9_-]{1,32}$' and the_args ->> 'data' ~ '^[A-Za-z0-9+/]+=*$'
        and the_args - array['$millrace', 'v', 'key', 'data'] = '{}', false)
$$;

-- The name $millrace is kept for sealed arguments, so that plain ones cannot be taken for them.
create or replace function millrace.check_sealed(the_args jsonb) returns void
language plpgsql immutable as $$
begin
    if jsonb_typeof(the_args) = 'object' and the_args ? '$millrace' and not millrace.is_sealed(the_args) then
        perform millrace.refuse('args has a field $millrace, which is kept for encrypted arguments', 'args',
            'Call the field something else; encrypted arguments come from the library or from millrace enqueue --encrypt.');
    end if;
end $$;

-- The keys that kept arguments need, by an index that holds encrypted jobs only; counts stop at `cap` a key. living: not ended.
create or replace function millrace.sealed_keys(cap int default 10000) returns table (key text, living bigint, ended bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
begin
    key := '';
    loop
        select left(j.args ->> 'key', 32) into sealed_keys.key from millrace.job j
         where j.args ->> '$millrace' = 'sealed' and left(j.args ->> 'key', 32) > sealed_keys.key
         order by left(j.args ->> 'key', 32) limit 1;
        exit when not found;
        select count(*) filter (where c.lives), count(*) filter (where not c.lives) into living, ended
          from (select millrace.job_waits(j.id)
                    or exists (select from millrace.unique_lock u where u.next = j.id)
                    or exists (select from millrace.job_running(j.id)) as lives
                  from millrace.job j
                 where j.args ->> '$millrace' = 'sealed' and left(j.args ->> 'key', 32) = sealed_keys.key limit cap) c;
        return next;
    end loop;
end $$;
select millrace.door_is('queue', 'sealed_keys', 'admin, viewer', 'staff');

-- A page of the jobs that are encrypted with another key than this one, in order of key and id, after the last of the page before.
create or replace function millrace.sealed_page(
    the_key text, after_key text default '', after_id bigint default 0, page int default 200
) returns table (id bigint, kind text, args jsonb)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
begin
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    return query
    select f.id, k.name, f.args
      from (select j.id, j.kind, j.args, left(j.args ->> 'key', 32) as key from millrace.job j
             where j.args ->> '$millrace' = 'sealed' and left(j.args ->> 'key', 32) <> the_key
               and (left(j.args ->> 'key', 32), j.id) > (after_key, after_id)
             order by left(j.args ->> 'key', 32), j.id limit page) f
      join millrace.kind k on k.id = f.kind
     order by f.key, f.id;
end $$;
select millrace.door_is('queue', 'sealed_page', 'admin', 'staff');

-- Replaces arguments with newly encrypted ones. A job is left alone if its arguments have changed meanwhile, if it is gone, or if an open
-- transaction holds it. Returns the ids that were changed.
create or replace function millrace.reseal(ids bigint[], olds jsonb[], news jsonb[], caller millrace.caller_name default current_user) returns bigint[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    done bigint[];
begin
    if cardinality(ids) <> cardinality(olds) or cardinality(ids) <> cardinality(news) then
        perform millrace.refuse('ids, olds and news have different lengths', 'ids');
    end if;
    if exists (select from unnest(olds || news) a where not millrace.is_sealed(a)) then
        perform millrace.refuse('only encrypted arguments are replaced, by encrypted ones', 'news');
    end if;
    with held as materialized (
        select j.id, u.new from unnest(ids, olds, news) u(id, old, new)
          join millrace.job j on j.id = u.id and j.args = u.old
           for update of j skip locked
    ), changed as (
        update millrace.job j set args = h.new from held h where j.id = h.id returning j.id
    )
    select coalesce(array_agg(c.id), '{}') into done from changed c;
    if done <> '{}' then
        perform millrace.audited('jobs.reseal', null, jsonb_build_object('jobs', cardinality(done)), caller => reseal.caller);
    end if;
    return done;
end $$;
select millrace.door_is('queue', 'reseal', 'admin', 'staff', audited => true);
