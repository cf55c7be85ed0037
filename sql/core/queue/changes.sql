-- Changes of a handler's code, and which jobs know them.

-- Whether a run's job takes the new way of a change: it has not been under way with a build that does not ask for the change. Under way is a
-- job that recorded a step, failed, snoozed or waited. The answer is a step, so that it stays. Builds that ask are noted.
create or replace function millrace.changed(token text, name text) returns boolean
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
#variable_conflict use_variable
declare
    run record;
    own text;
    kind_name text;
    step_name text := 'changed ' || changed.name;
    recorded jsonb;
begin
    if changed.name is null or length(changed.name) not between 1 and 100 then
        perform millrace.refuse('a change''s name must have 1 to 100 characters', 'name');
    end if;
    select * into run from millrace.read_token(changed.token);
    select s.value into recorded from millrace.step s where s.job = run.job and s.name = step_name;
    if found then
        return recorded = 'true';
    end if;
    own := (select millrace.build_of(p.version) from millrace.process p where p.session = run.session);
    kind_name := (select k.name from millrace.job j join millrace.kind k on k.id = j.kind where j.id = run.job);
    if own is not null and kind_name is not null
       and not exists (select from millrace.build_change c where c.kind = kind_name and c.name = changed.name and c.build = own) then
        insert into millrace.build_change (kind, name, build, at) values (kind_name, changed.name, own, millrace.now()) on conflict do nothing;
    end if;
    recorded := to_jsonb(not exists (
        -- What a signal or an operator has recorded (session 0) is of no build.
        select from (select s.session from millrace.step s where s.job = run.job and s.session <> 0
                     union
                     select h.session from millrace.history h
                      where h.id = run.job and h.session <> 0 and (h.outcome in (3, 4, 5, 8) or h.ms is not null)) e
          left join millrace.process p on p.session = e.session
         where e.session <> run.session
           and not exists (select from millrace.build_change c
                            where c.kind = kind_name and c.name = changed.name and c.build = millrace.build_of(p.version))));
    recorded := millrace.step(changed.token, step_name, recorded);
    if recorded = 'false' then
        insert into millrace.old_way (job, change) values (run.job, changed.name) on conflict do nothing;
    end if;
    return recorded = 'true';
end $$;
select millrace.door_is('queue', 'changed', 'worker', 'staff');

-- The changes that builds ask for, the newest first: which builds do, and how many of the jobs that have not succeeded or been cancelled go the
-- old way, counted up to 1,000 for each.
create or replace function millrace.changes()
returns table (kind text, change text, builds text[], since timestamptz, old_way bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off as $$
begin
    return query
    select c.kind, c.name, array_agg(c.build order by c.at desc), min(c.at),
           (select count(*)
              from (select from millrace.old_way o
                      join millrace.job j on j.id = o.job
                      join millrace.kind k on k.id = j.kind
                     where o.change = c.name and k.name = c.kind
                       and not exists (select from millrace.history h where h.id = o.job and h.outcome in (1, 2)) limit 1000) x)
      from millrace.build_change c group by c.kind, c.name order by min(c.at) desc, c.kind, c.name limit 500;
end $$;
select millrace.door_is('queue', 'changes', 'admin, viewer', 'staff');
