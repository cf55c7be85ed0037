-- Creates partitions ahead and enforces retention. Every worker calls it once a minute; its turn lets one of them work.

create or replace function millrace.retention_span(class int) returns interval
language sql immutable as $$ select (array['1 day', '14 days', '365 days'])[class + 1]::interval $$;

-- A leaf of history for [lower, upper), with the unique index that guards each run's record and an index of those that did
-- not simply succeed. Attached, not created in place: that would lock the whole table against everybody.
create or replace function millrace.history_leaf(class int, lower timestamptz, upper timestamptz) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    parent text := (array['history_short', 'history_standard', 'history_long'])[class + 1];
    leaf text := parent || '_' || to_char(lower at time zone 'UTC', 'YYYYMMDD');
begin
    if to_regclass(format('millrace.%I', leaf)) is not null then
        return false;
    end if;
    execute format('create table millrace.%I (like millrace.history including constraints) with (autovacuum_vacuum_insert_scale_factor = 0.5)', leaf);
    execute format('revoke all on millrace.%I from public', leaf);    -- whatever the owner's default privileges are
    execute format('create unique index on millrace.%I (id, session, number)', leaf);
    execute format('create index on millrace.%I (outcome, id) where outcome <> 1', leaf);
    -- Runs of that time that found no leaf move in from the default one.
    execute format('with moved as (delete from millrace.%I h where h.started >= %L and h.started < %L returning *) insert into millrace.%I select * from moved',
        parent || '_default', lower, upper, leaf);
    execute format('alter table millrace.%I attach partition millrace.%I for values from (%L) to (%L)', parent, leaf, lower, upper);
    return true;
end $$;

create or replace function millrace.history_ahead(days int default 4) returns int
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    class int;
    day timestamptz;
    made int := 0;
    today timestamptz := date_trunc('day', millrace.now() at time zone 'UTC') at time zone 'UTC';
    step int;
begin
    for class in 0 .. 2 loop
        if class = 2 then                                 -- kept a year: a leaf per month
            for step in 0 .. 1 loop
                day := (date_trunc('month', today at time zone 'UTC') + make_interval(months => step)) at time zone 'UTC';
                made := made + millrace.history_leaf(class, day, (day at time zone 'UTC' + interval '1 month') at time zone 'UTC')::int;
            end loop;
        else
            for step in -1 .. days loop
                day := today + make_interval(days => step);
                made := made + millrace.history_leaf(class, day, day + interval '1 day')::int;
            end loop;
        end if;
    end loop;
    return made;
end $$;

-- The next range of job ids, when the sequence has come within half a range of the last bound.
create or replace function millrace.job_ahead() returns int
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    span constant bigint := 16777216;
    bound bigint;
    stray bigint;
    made int := 0;
    leaf text;
begin
    loop
        select coalesce(max((regexp_match(c.relname, E'^job_(\\d+)$'))[1]::bigint), 0) + span into bound
          from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relname ~ E'^job_\\d+$';
        exit when (select last_value from millrace.seq) < bound - span / 2 or made >= 4;
        select max(j.id) into stray from millrace.job_default j where j.id >= bound;
        if stray is not null then                         -- ids there stay where they are: begin above them
            bound := (greatest(stray, (select last_value from millrace.seq)) / span + 1) * span;
        end if;
        leaf := 'job_' || bound;
        execute format('create table millrace.%I (like millrace.job including constraints including indexes)', leaf);
        execute format('revoke all on millrace.%I from public', leaf);
        execute format('alter table millrace.job attach partition millrace.%I for values from (%L) to (%L)', leaf, bound, bound + span);
        made := made + 1;
    end loop;
    return made;
end $$;

create or replace function millrace.retire(out leaves int, out rows_trimmed bigint)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    leaf record;
    class int;
    keep interval;
    t timestamptz := millrace.now();
    safe bigint;
    trimmed bigint;
    spare int := 50000;                                   -- as many rows are moved or deleted an hour; the rest waits for the next
begin
    leaves := 0; rows_trimmed := 0;
    spare := spare - millrace.history_shorten(spare);
    for leaf in
        select c.oid, c.relname, p.relname as parent,
               to_timestamp((regexp_match(c.relname, E'_(\\d{8})$'))[1], 'YYYYMMDD')::timestamp at time zone 'UTC' as lower
          from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
         where p.relnamespace = 'millrace'::regnamespace and p.relname like E'history\\_%' and c.relname ~ E'_\\d{8}$'
    loop
        class := array_position(array['history_short', 'history_standard', 'history_long'], leaf.parent::text) - 1;
        keep := millrace.retention_span(class) + case class when 2 then interval '1 month' else interval '1 day' end;
        -- A lease's last finish counts the lease's other ends in its leaf, so the leaf must stay however long the lease has lived.
        continue when leaf.lower + keep >= t or exists (
            select from millrace.lease l
             where (l.number & 3) = class and l.at >= leaf.lower and l.at < leaf.lower + case class when 2 then interval '1 month' else interval '1 day' end
        );
        spare := spare - millrace.history_keep(leaf.relname, class, spare);
        if not millrace.history_is_needed(leaf.relname, class) then
            -- The retention of its jobs has passed. A small leaf's jobs are deleted here, a large one's go with their partition of job. A
            -- job that is being redriven right now is safe: the redrive waits here, and then finds no ended run.
            execute format('select from millrace.%I h where h.outcome in (2, 3) and h.outcome <> 1 for update', leaf.relname);
            execute format('delete from millrace.job j using millrace.%I h where h.id = j.id and h.outcome in (1, 2, 3)
                and (select count(*) from (select from millrace.%I limit 1000001) c) <= 1000000', leaf.relname, leaf.relname);
            get diagnostics trimmed = row_count;
            rows_trimmed := rows_trimmed + trimmed;
            execute format('drop table millrace.%I', leaf.relname);
            leaves := leaves + 1;
        end if;
    end loop;

    -- A range of jobs goes when all of it is older than the longest stay in use; those that still live move to the default.
    select max(millrace.retention_span(greatest(q.retention, q.retention_cancelled, q.retention_dead))) + interval '1 day' into keep from millrace.queue q;
    select max(w.seq) into safe from millrace.watermark w where w.at < t - keep;
    for leaf in
        select c.relname, (regexp_match(c.relname, E'^job_(\\d+)$'))[1]::bigint + 16777216 as upper
          from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relname ~ E'^job_\\d+$'
    loop
        if leaf.upper <= safe then
            execute format('alter table millrace.job detach partition millrace.%I', leaf.relname);
            execute format('insert into millrace.job select j.* from millrace.%I j
                 where exists (select from millrace.timer d where d.job = j.id)
                    or exists (select from millrace.ready r where r.queue = j.queue and r.lane = j.lane and r.seq = j.id)
                    or exists (select from millrace.ready r where r.job = j.id and r.seq <> r.job)
                    or exists (select from millrace.unique_lock u where u.next = j.id)
                    or exists (select from millrace.parked p where p.job = j.id)
                    or exists (select from millrace.blocked b where b.job = j.id)
                    or exists (select from millrace.lease l where l.lo <= j.id and l.hi >= j.id and j.id = any (l.ids))
                    or exists (select from millrace.history h where h.id = j.id and h.outcome in (2, 3))', leaf.relname);
            execute format('drop table millrace.%I', leaf.relname);
            leaves := leaves + 1;
        end if;
    end loop;

    delete from millrace.tally y where y.at < t - interval '1 day';
    delete from millrace.cancel c where c.at < t - interval '1 day';
    delete from millrace.watermark w where w.at < t - interval '400 days';
    delete from millrace.process p where p.ended_at < t - interval '400 days';
end $$;

create or replace function millrace.maintain(out ran boolean, out made int, out dropped int)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms' as $$
begin
    made := 0; dropped := 0;
    ran := millrace.turn_try('maintain');
    if not ran then
        return;
    end if;
    made := millrace.history_ahead() + millrace.job_ahead();
    if not exists (select from millrace.watermark w where w.at > millrace.now() - interval '1 hour') then
        insert into millrace.watermark (at, seq) select millrace.now(), last_value from millrace.seq;
        dropped := (millrace.retire()).leaves;
        perform millrace.unique_expire();                 -- what the workers, who go on from where they were, have left behind
        perform millrace.schedule_trim();
    end if;
    perform millrace.trace_sweep();
    perform millrace.failures_keep();
    perform millrace.fields_fill();
    perform millrace.flows_expire();
    perform millrace.signals_expire();
    perform millrace.operations_expire();
    perform millrace.audit_expire();
    -- The feed comes last: while it numbers, nobody else does.
    perform millrace.hooks_call('expire');
end $$;
select millrace.door_is('operating', 'maintain', 'worker', 'staff');
