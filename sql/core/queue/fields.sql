-- Search by arguments. A kind declares fields, such as order.id; their values stand in job_field, written with the job in the same
-- transaction. Jobs of kinds without fields cost nothing: the row of the kind, which is read anyway, says so. A job's values are deleted
-- with it, or by trace_sweep.

-- The value as it is indexed: text, a number without trailing zeros, true or false. Encrypted arguments have none.
create or replace function millrace.field_value(args jsonb, steps text[]) returns text
language sql immutable parallel safe as $$
    select case when args ? '$millrace' then null else
        case jsonb_typeof(args #> steps)
            when 'string' then left(args #>> steps, 200)
            when 'number' then left(trim_scale((args #>> steps)::numeric)::text, 200)
            when 'boolean' then args #>> steps end end
$$;

-- Refuses malformed paths. stars: a step may be *, any key.
create or replace function millrace.check_paths(paths text[], field text, stars boolean) returns void
language plpgsql immutable as $$
declare
    most int := case when stars then 64 else 8 end;
    one text;
begin
    if paths is null then
        return;
    end if;
    if cardinality(paths) > most then
        perform millrace.refuse(format('%s paths are more than the %s allowed', cardinality(paths), most), field);
    end if;
    foreach one in array paths loop
        if one is null or length(one) > 128 or one !~ '^[^.[:cntrl:]]+([.][^.[:cntrl:]]+)*$'
           or cardinality(string_to_array(one, '.')) > 8 or (one like '%*%' and (not stars or exists (
                select from unnest(string_to_array(one, '.')) s where s like '%*%' and s <> '*')))
        then
            perform millrace.refuse(format('%L is not a path', left(one, 60)), field, format(
                'Give the names of nested fields with dots between them, such as order.id; at most 8 names and 128 characters%s.',
                case when stars then '; * is any name' else '' end));
        end if;
    end loop;
end $$;

-- Writes the values of one job; what was there is replaced.
create or replace function millrace.fields_put(the_job bigint, the_kind int, the_args jsonb) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
    insert into millrace.job_field (job, field, value)
    select the_job, f.id, millrace.field_value(the_args, f.steps) from millrace.kind_field f
     where f.kind = millrace.kind_plain(the_kind) and f.live and millrace.field_value(the_args, f.steps) is not null
        on conflict (job, field) do update set value = excluded.value;
end $$;

-- Writes the values of jobs that were just written.
create or replace function millrace.fields_put_many(ids bigint[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
begin
    insert into millrace.job_field (job, field, value)
    select j.id, f.id, v.value
      from unnest(ids) i(id)
     cross join lateral (select * from millrace.job j where j.id = i.id offset 0) j
      join millrace.kind_field f on f.kind = millrace.kind_plain(j.kind) and f.live
     cross join lateral (select millrace.field_value(j.args, f.steps) as value) v
     where v.value is not null
        on conflict (job, field) do nothing;
end $$;

-- Makes the fields of a kind what its row says. The row is locked for update, so that nobody notes a route for it meanwhile (see route_keep): with
-- one, plain jobs would go the short way of enqueue_as, which knows no fields.
create or replace function millrace.kind_fields_apply(the_kind int) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    wanted text[];
    n int;
    changed int := 0;
begin
    select coalesce(k.fields_set, k.fields_declared, '{}') into strict wanted from millrace.kind k where k.id = the_kind for update;
    update millrace.kind_field f set live = false where f.kind = the_kind and f.live and f.path <> all (wanted);
    get diagnostics changed = row_count;
    insert into millrace.kind_field as f (kind, path, steps)
    select distinct the_kind, w, string_to_array(w, '.') from unnest(wanted) w
        on conflict (kind, path) do update set live = true, waits = null, below = null, filled = false where not f.live;
    get diagnostics n = row_count;
    changed := changed + n;
    if changed > 0 and current_setting('transaction_isolation') <> 'read committed' then
        perform millrace.refuse('the fields of a kind can be changed in a transaction that is read committed only', 'fields', code => '25001');
    end if;
    update millrace.kind k set searchable = wanted <> '{}' where k.id = the_kind and k.searchable <> (wanted <> '{}');
    if wanted <> '{}' then
        delete from millrace.route r where r.kind = the_kind;
    end if;
    return changed > 0;
end $$;

-- What a program declares for a kind is added to what others have declared: while an old and a new version of a program run side by side,
-- each start of one would otherwise undo what the other says. kind_fields_set and kind_redactions_set take things away.
create or replace function millrace.kind_declare(the_name text, fields jsonb, redactions jsonb) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    new_fields text[] := case when jsonb_typeof(fields) = 'array' then array(select jsonb_array_elements_text(fields)) else '{}' end;
    new_redactions text[] := case when jsonb_typeof(redactions) = 'array' then array(select jsonb_array_elements_text(redactions)) else '{}' end;
    old record;
begin
    perform millrace.check_paths(new_fields, 'searchable', false);
    perform millrace.check_paths(new_redactions, 'redacted', true);
    select k.id, coalesce(k.fields_declared, '{}') as fields, coalesce(k.redactions_declared, '{}') as redactions into strict old
      from millrace.kind k where k.name = the_name and k.line = '';
    if not old.redactions @> new_redactions then
        update millrace.kind k set redactions_declared = case when cardinality(u.all_paths) > 64 then new_redactions else u.all_paths end
          from (select array(select unnest(old.redactions) union select unnest(new_redactions) order by 1) as all_paths) u
         where k.id = old.id;
    end if;
    if not old.fields @> new_fields then
        -- More than there is room for: earlier versions have declared the others.
        update millrace.kind k set fields_declared = case when cardinality(u.all_fields) > 8 then new_fields else u.all_fields end
          from (select array(select unnest(old.fields) union select unnest(new_fields) order by 1) as all_fields) u
         where k.id = old.id;
        perform millrace.kind_fields_apply(old.id);
    end if;
end $$;

-- An operator's fields of a kind, in place of those that programs declare; null: theirs again, from their next start on. True: something changed.
create or replace function millrace.kind_fields_set(the_kind text, fields text[]) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    kind_id int;
    old text[];
    fallback text[];
begin
    perform millrace.check_paths(kind_fields_set.fields, 'fields', false);
    kind_id := millrace.kind_id(the_kind);
    select k.fields_set, k.fields_declared into old, fallback from millrace.kind k where k.id = kind_id for update;
    update millrace.kind k
       set fields_set = kind_fields_set.fields, fields_declared = case when kind_fields_set.fields is not null then k.fields_declared end
     where k.id = kind_id;
    return millrace.kind_fields_apply(kind_id) or old is distinct from kind_fields_set.fields or (kind_fields_set.fields is null and fallback is not null);
end $$;
select millrace.door_is('queue', 'kind_fields_set', 'admin, operator', 'staff');

-- All kinds, with what can be searched and what is hidden. filling: fields whose older jobs are still being indexed.
create or replace function millrace.kind_list()
returns table (kind text, queue text, fields text[], filling text[], fields_from text, redactions text[], redactions_set text[])
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select k.name, q.name,
           array(select f.path from millrace.kind_field f where f.kind = k.id and f.live order by f.path),
           array(select f.path from millrace.kind_field f where f.kind = k.id and f.live and not f.filled order by f.path),
           case when k.fields_set is not null then 'operator' when k.fields_declared is not null then 'program' end,
           array(select unnest(coalesce(k.redactions_declared, '{}')) union select unnest(coalesce(k.redactions_set, '{}')) order by 1),
           coalesce(k.redactions_set, '{}')
      from millrace.kind k left join millrace.queue q on q.id = k.queue where k.line = '' order by k.name
$$;
select millrace.door_is('queue', 'kind_list', 'admin, viewer', 'staff');

-- A page of the jobs of a kind whose field has this value, newest first. complete: false while older jobs are still being indexed. What
-- the index says is compared with the arguments, because they may have been replaced meanwhile, and because the index has the first 200
-- characters.
create or replace function millrace.jobs_by_field(
    the_kind text, field text, value text, after bigint default null, page int default 50,
    out ids bigint[], out next bigint, out complete boolean
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    it record;
    key text := left(jobs_by_field.value, 200);
    as_number text := key;
    raw bigint[];
begin
    if page is null or page not between 1 and 500 then
        perform millrace.refuse('page must be 1 to 500', 'page');
    end if;
    if jobs_by_field.value is null or length(jobs_by_field.value) > 10000 then
        perform millrace.refuse('value must have 0 to 10000 characters', 'value');
    end if;
    select f.id, f.steps, f.filled into it
      from millrace.kind_field f join millrace.kind k on k.id = f.kind
     where k.name = the_kind and f.path = jobs_by_field.field and f.live;
    if not found then
        perform millrace.refuse(format('the kind %s has no searchable field %s', left(the_kind, 128), left(jobs_by_field.field, 60)), 'field',
            'Declare it with static var searchable in Swift, or with millrace kinds fields.');
    end if;
    if key ~ '^-?[0-9]{1,60}([.][0-9]{1,60})?$' then       -- 5.0 finds the number 5
        as_number := trim_scale(key::numeric)::text;
    end if;
    raw := array(
        select u.job from (
            (select x.job from millrace.job_field x
              where x.field = it.id and x.value = key and x.job < coalesce(after, 9223372036854775807) order by x.job desc limit page)
            union
            (select x.job from millrace.job_field x
              where x.field = it.id and x.value = as_number and as_number <> key and x.job < coalesce(after, 9223372036854775807)
              order by x.job desc limit page)) u
         order by u.job desc limit page);
    ids := array(
        select i.id from unnest(raw) with ordinality i(id, place)
         cross join lateral (select j.args from millrace.job j where j.id = i.id offset 0) j
         where (millrace.field_value(j.args, it.steps) = key
                or jsonb_typeof(j.args #> it.steps) = 'number' and millrace.field_value(j.args, it.steps) = as_number)
           and (length(jobs_by_field.value) <= 200 or j.args #>> it.steps = jobs_by_field.value)
         order by i.place);
    next := case when cardinality(raw) = page then raw[page] end;
    complete := it.filled;
end $$;
select millrace.door_is('queue', 'jobs_by_field', 'admin, viewer', 'staff');

-- The transactions that have read a kind or a route and are still open. One that reads them later sees the fields.
create or replace function millrace.kind_readers() returns text[]
language sql volatile set search_path = pg_catalog, pg_temp as $$
    select coalesce(array_agg(distinct l.virtualtransaction), '{}') from pg_locks l
     where l.locktype = 'relation' and l.relation in ('millrace.kind'::regclass, 'millrace.route'::regclass)
       and l.database = (select d.oid from pg_database d where d.datname = current_database()) and l.pid is distinct from pg_backend_pid()
$$;

-- Indexes the jobs that were there before a field was, newest first, and deletes the values of fields that are gone: `most` rows a
-- statement, for as long as `budget` allows. Called by maintain. Returns whether something is left.
create or replace function millrace.fields_fill(budget interval default '1 s', most int default 20000) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    until timestamptz := clock_timestamp() + budget;
    top bigint;
    bottom bigint;
    one record;
    open text[];
    n int;
begin
    if not exists (select from millrace.kind_field f where not f.live or not f.filled) then
        return false;
    end if;
    if exists (select from millrace.kind_field f where f.live and f.below is null) then
        open := millrace.kind_readers();
        update millrace.kind_field f set waits = open where f.live and f.below is null and f.waits is null;
        update millrace.kind_field f set below = (select s.last_value + 1 from millrace.seq s)
         where f.live and f.below is null and not f.waits && open;
    end if;
    loop
        select max(f.below) into top from millrace.kind_field f where f.live and not f.filled;
        exit when top is null;
        -- As far as the next field that has come further: from there on they go together.
        select max(f.below) into bottom from millrace.kind_field f where f.live and not f.filled and f.below < top;
        select min(j.id), count(*) into one from (
            select j.id from millrace.job j where j.id < top and j.id >= coalesce(bottom, 0) order by j.id desc limit most) j;
        insert into millrace.job_field (job, field, value)
        select j.id, f.id, v.value
          from millrace.job j
          join millrace.kind_field f on f.kind = millrace.kind_plain(j.kind) and f.live and not f.filled and f.below = top
         cross join lateral (select millrace.field_value(j.args, f.steps) as value) v
         where j.id >= one.min and j.id < top and v.value is not null
            on conflict (job, field) do nothing;
        if one.count = most then
            update millrace.kind_field f set below = one.min where f.live and not f.filled and f.below = top;
        elsif bottom is not null then
            update millrace.kind_field f set below = bottom where f.live and not f.filled and f.below = top;
        else
            update millrace.kind_field f set filled = true where f.live and not f.filled and f.below = top;
        end if;
        exit when clock_timestamp() >= until;
    end loop;
    for one in select f.id from millrace.kind_field f where not f.live order by f.id loop
        loop
            exit when clock_timestamp() >= until;
            delete from millrace.job_field x where x.ctid = any (array(
                select y.ctid from millrace.job_field y where y.field = one.id limit most));
            get diagnostics n = row_count;
            if n < most then
                delete from millrace.kind_field f where f.id = one.id and not f.live;
                exit;
            end if;
        end loop;
    end loop;
    return exists (select from millrace.kind_field f where not f.live or not f.filled);
end $$;
