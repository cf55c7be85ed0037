-- Versions: which build of the workers' program gets new jobs, and which may go on with jobs that are under way. It is for workers that are
-- pinned; the others take new jobs whatever is said here. Whose a job is stands in the line of its kind (see kind_line), and claims take only
-- kinds that they name, so no worker, of whatever version, gets a job that is not for it:
--   ''          new jobs, for the build that was promoted last of those that know the kind
--   v3          new jobs whose arguments are of version 3, for workers that accept these
--   canary      new jobs that were drawn for the build that gets a percentage
--   @7f3a       jobs under way, which go on with this build
--   undo …      the undos of such jobs
-- and these together: `v3 @7f3a`.

-- What a line says besides the build: for new jobs.
create or replace function millrace.line_base(line text) returns text
language sql immutable as $$ select btrim(regexp_replace(line, '(^| )(canary|@.*)$', '')) $$;

-- The build that a line is for; null: it is for new jobs.
create or replace function millrace.line_build(line text) returns text
language sql immutable as $$ select substring(line from '@(.*)$') $$;

create or replace function millrace.line_with(line text, more text) returns text
language sql immutable as $$ select concat_ws(' ', nullif(millrace.line_base(line), ''), more) $$;

-- A job that a pinned worker has begun goes on with its build. Called before its first step or wait is recorded, in the same transaction;
-- what puts the job into a place later finds its kind in job.
create or replace function millrace.build_keeps(the_session bigint, the_job bigint) returns void
language plpgsql volatile set enable_seqscan = off as $$
declare
    own text := (select '@' || s.pin from millrace.session s where s.id = the_session and s.pin is not null);
    it record;
begin
    if own is null then
        return;
    end if;
    select k.name, k.line, millrace.line_with(k.line, own) as wanted into it from millrace.job j join millrace.kind k on k.id = j.kind where j.id = the_job;
    if it.line <> it.wanted then
        update millrace.job j set kind = millrace.kind_line(it.name, it.wanted) where j.id = the_job;
    end if;
end $$;

-- The job begins again, as a new one; its place is one that this transaction has given it.
create or replace function millrace.build_lets_go(the_job bigint) returns void
language plpgsql volatile set enable_seqscan = off as $$
declare
    it record;
    its_kind int;
begin
    select k.name, k.line into it from millrace.job j join millrace.kind k on k.id = j.kind where j.id = the_job;
    if millrace.line_build(it.line) is not null then
        its_kind := millrace.kind_line(it.name, millrace.line_base(it.line));
        update millrace.job j set kind = its_kind where j.id = the_job;
        update millrace.timer d set kind = its_kind where d.job = the_job;
        update millrace.ready r set kind = its_kind where r.job = the_job and r.seq <> r.job;
    end if;
end $$;

-- The kind to which a new job of this kind goes, while a build gets a percentage.
create or replace function millrace.kind_drawn(the_kind int, version text default null) returns int
language plpgsql volatile as $$
declare
    it record;
begin
    select k.name, coalesce('v' || version, k.line) as line, p.split into it
      from millrace.kind k join millrace.kind p on p.name = k.name and p.line = '' where k.id = the_kind;
    return millrace.kind_line(it.name, case when random() * 100 < it.split then millrace.line_with(it.line, 'canary') else millrace.line_base(it.line) end);
end $$;

-- The build that gets a kind's new jobs, and the one that gets a percentage of them; null: there is none.
create or replace function millrace.build_of_kind(the_kind int, out holder text, out canary text)
language sql stable as $$
    select (select b.name from millrace.build b where the_kind = any (b.kinds) and b.promoted_at is not null order by b.promoted_at desc limit 1),
           (select b.name from millrace.build b where the_kind = any (b.kinds) and b.percent is not null order by b.changed_at desc limit 1)
$$;

-- The kinds of which a worker takes jobs now. the_kinds: those that it knows, without builds; pin: its build, null if it is not pinned.
create or replace function millrace.kinds_taken(the_kinds int[], pin text) returns table (id int, name text)
language sql stable as $$
    with own as materialized (
        select k.id, k.name, k.line, o.holder, o.canary,
               case when kinds_taken.pin is null or o.holder = kinds_taken.pin then true
                    when o.holder is not null then false
                    else not exists (select from millrace.build b where b.name = kinds_taken.pin and (b.drained_at is not null or b.percent is not null)) end as takes_new
          from millrace.kind k
          join millrace.kind p on p.name = k.name and p.line = ''
         cross join lateral millrace.build_of_kind(p.id) o
         where k.id = any (the_kinds)
    )
    select k.id, k.name
      from own
      join millrace.kind k on k.name = own.name and millrace.line_base(k.line) = own.line
      left join millrace.build b on b.name = millrace.line_build(k.line)
     where case when k.line like '%@%' then coalesce(millrace.line_build(k.line) = kinds_taken.pin, false)
                                            or coalesce(b.heir = kinds_taken.pin, false) or (b.heir = '' and own.takes_new)
                when k.line like '%canary' then case when own.canary is null then own.takes_new else coalesce(own.canary = kinds_taken.pin, false) end
                else own.takes_new end
$$;

-- Whether a worker takes jobs of this kind now; and the kind without its build, of which its workers know whether they can take it.
create or replace function millrace.kind_is_taken(the_kind int, the_kinds int[], pin text) returns boolean
language sql stable as $$
    select case when kind_is_taken.pin is null and the_kind = any (the_kinds) then true
                else exists (select from millrace.kinds_taken(the_kinds, kind_is_taken.pin) t where t.id = the_kind) end
$$;

create or replace function millrace.kind_base(the_kind int) returns int
language sql stable as $$
    select case when k.line = '' then k.id else (select b.id from millrace.kind b where b.name = k.name and b.line = millrace.line_base(k.line)) end
      from millrace.kind k where k.id = the_kind
$$;

-- Why no running worker takes jobs of this kind although some know it, or because none reads its version; null: there is another reason.
create or replace function millrace.why_build(the_kind int, knowing bigint) returns jsonb
language plpgsql stable as $$
declare
    it record;
    owner text;
    heir text;
begin
    select k.name, k.line, p.id as plain, substring(k.line from '(?:^| )v([0-9]+)') as version into it
      from millrace.kind k join millrace.kind p on p.name = k.name and p.line = '' where k.id = the_kind;
    if it.version is not null and knowing = 0 then
        return millrace.why_put('version_unserved', format('its arguments are of version %s, which no running worker reads', it.version),
            format('start a worker whose handler of %s accepts version %s', it.name, it.version), jsonb_build_object('kind', it.name, 'version', it.version::int),
            'millrace workers list');
    elsif knowing = 0 then
        return null;
    end if;
    owner := millrace.line_build(it.line);
    if owner is not null then
        heir := (select b.heir from millrace.build b where b.name = owner);
        return millrace.why_put('build_unserved', format('it goes on with build %s, %s, and no worker of that build runs', coalesce(nullif(heir, ''), owner),
                case when heir is null then 'which began it' else 'to which it was released' end),
            format('start one, or let another build go on with it: millrace versions release %s', owner), jsonb_build_object('build', owner),
            format('millrace versions release %s', owner));
    end if;
    select coalesce(case when it.line like '%canary' then o.canary end, o.holder) into owner from millrace.build_of_kind(it.plain) o;
    if owner is null then
        return millrace.why_put('build_unserved', 'all workers that know its kind are pinned to builds that get no new jobs',
            'promote one of them: millrace versions promote <build>', '{}', 'millrace versions list');
    end if;
    return millrace.why_put('build_unserved', format('new jobs of its kind are for build %s, and no worker of it runs', owner),
        'start one, or undo the promotion: millrace versions rollback', jsonb_build_object('build', owner), 'millrace versions list');
end $$;

-- What a living worker takes now; null: there is no such session.
create or replace function millrace.session_kinds(the_session bigint) returns table (id int, name text)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select k.id, k.name
      from millrace.session s cross join lateral millrace.kinds_taken(s.kinds, s.pin) k join millrace.kind x on x.id = k.id
     where s.id = the_session order by x.line <> '', k.id     -- claims compare with one after the other
$$;
select millrace.door_is('queue', 'session_kinds', 'worker', 'staff');

-- Changes whenever session_kinds may say something else.
create or replace function millrace.versions_mark() returns text
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select (select max(k.id) from millrace.kind k)::text || ' ' || coalesce((select max(b.changed_at)::text || ' ' || count(*) from millrace.build b), '')
$$;
select millrace.door_is('queue', 'versions_mark', 'worker', 'staff');

-- A pinned worker starts: its build and the kinds that it knows, without builds.
create or replace function millrace.build_seen(the_build text, the_kinds int[]) returns void
language plpgsql volatile as $$
declare
    t timestamptz := millrace.now();
    plain int[] := array(select distinct p.id from millrace.kind k join millrace.kind p on p.name = k.name and p.line = '' where k.id = any (the_kinds) order by 1);
begin
    if the_build is null or the_build !~ '^[A-Za-z0-9_.-]{1,64}$' then
        perform millrace.refuse(format('the build %L is malformed', left(the_build, 80)), 'build',
            'A build has 1 to 64 letters, digits and _ . - : see MILLRACE_BUILD.');
    end if;
    insert into millrace.build as b (name, kinds, seen_at, changed_at) values (the_build, plain, t, t)
        on conflict (name) do update set kinds = array(select distinct unnest(b.kinds || excluded.kinds) order by 1), changed_at = t
     where not b.kinds @> excluded.kinds;
    if found then
        perform pg_notify('millrace', 'versions');
    end if;
    -- In the order of names, as for callers. A step makes no kind then, for which others would have to wait.
    perform millrace.kind_line(k.name, millrace.line_with(k.line, '@' || the_build))
       from (select x.name, x.line from millrace.kind x where x.id = any (the_kinds) order by x.name, x.line) k;
end $$;

-- The kinds of which a percentage of new jobs is drawn for a build: they do not take the short way of enqueue_as.
create or replace function millrace.build_split(the_kinds int[], the_percent int) returns void
language plpgsql volatile as $$
begin
    perform from millrace.kind k where k.id = any (the_kinds) order by k.id for update;
    update millrace.kind k set split = the_percent where k.id = any (the_kinds) and k.split is distinct from the_percent;
    if the_percent is not null then
        delete from millrace.route r where r.kind = any (the_kinds);
    else
        insert into millrace.route (kind_name, queue_name, kind, queue)
        select k.name, '', k.id, coalesce(k.queue, millrace.queue_id('default')) from millrace.kind k
         where k.id = any (the_kinds) and k.line = '' and not k.searchable order by k.name
            on conflict do nothing;
    end if;
end $$;

create or replace function millrace.build_alone(the_build text) returns millrace.build
language plpgsql volatile as $$
declare
    b millrace.build;
begin
    perform millrace.turns_wait('versions');
    select x.* into b from millrace.build x where x.name = the_build;
    if not found then
        perform millrace.refuse(format('no pinned worker of the build %L has been seen', left(the_build, 80)), 'build',
            'Start a worker of it with --only-build, or look at: millrace versions list', 'P0002', 'not_found');
    end if;
    return b;
end $$;

create or replace function millrace.build_workers(the_build text) returns bigint
language sql stable as $$
    select count(*) from millrace.session s join millrace.beat b on b.session = s.id
     where s.pin = the_build and b.state = 'working' and b.at >= millrace.now() - millrace.why_silence()
$$;

-- New jobs of the kinds that a build knows go to it from now on; with a percentage, only that share, and the others go where they went before.
create or replace function millrace.versions_promote(build text, percent int default null, caller millrace.caller_name default current_user) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    b millrace.build := millrace.build_alone(versions_promote.build);
begin
    if versions_promote.percent not between 1 and 99 then
        perform millrace.refuse(format('percent %s is out of range', versions_promote.percent), 'percent', 'Give 1 to 99, or none for all new jobs.');
    end if;
    if millrace.build_workers(b.name) = 0 then
        perform millrace.refuse(format('no pinned worker of the build %s runs now, and new jobs would wait', b.name), 'build',
            'Start one with --only-build first.', '55000', 'conflict');
    end if;
    if versions_promote.percent is not null and exists (
        select from unnest(b.kinds) k(id) cross join lateral millrace.build_of_kind(k.id) o where o.holder is null or o.holder = b.name) then
        perform millrace.refuse(format('the build %s cannot get a percentage: of some of its kinds it gets all new jobs, or no build is promoted that gets the rest', b.name),
            'percent', 'Promote the build that is to get the rest first.', '55000', 'conflict');
    end if;
    -- Its kinds are split no more, or otherwise.
    perform millrace.build_split(array(select distinct k from millrace.build x cross join lateral unnest(x.kinds) k
        where x.percent is not null and x.kinds && b.kinds order by 1), null);
    update millrace.build x set percent = null, changed_at = t where x.percent is not null and x.kinds && b.kinds;
    if versions_promote.percent is not null then
        perform millrace.build_split(b.kinds, versions_promote.percent);
    end if;
    update millrace.build x
       set percent = versions_promote.percent, promoted_at = case when versions_promote.percent is null then t else x.promoted_at end,
           drained_at = null, heir = null, changed_at = t
     where x.name = b.name;
    perform millrace.fleet_note('version promoted', b.name, by => versions_promote.caller, detail => versions_promote.percent || ' %');
    perform millrace.audited('versions.promote', b.name, jsonb_build_object('percent', versions_promote.percent), caller => versions_promote.caller);
    perform pg_notify('millrace', 'versions');
end $$;
select millrace.door_is('queue', 'versions_promote', 'admin, operator', 'staff', audited => true);

-- A build gets no new jobs any more; its jobs under way go on.
create or replace function millrace.versions_drain(build text, caller millrace.caller_name default current_user) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    b millrace.build := millrace.build_alone(versions_drain.build);
begin
    if not millrace.build_stops(b) then
        return false;
    end if;
    perform millrace.audited('versions.drain', b.name, null, caller => versions_drain.caller);
    return true;
end $$;
select millrace.door_is('queue', 'versions_drain', 'admin, operator', 'staff', audited => true);

create or replace function millrace.build_stops(b millrace.build) returns boolean
language plpgsql volatile as $$
begin
    if b.drained_at is not null then
        return false;
    end if;
    if b.percent is not null then
        perform millrace.build_split(b.kinds, null);
    end if;
    update millrace.build x set percent = null, promoted_at = null, drained_at = millrace.now(), changed_at = millrace.now() where x.name = b.name;
    perform pg_notify('millrace', 'versions');
    return true;
end $$;

-- Takes the last promotion back: the build that gets a percentage gets none, else the build that was promoted last gets no new jobs any more,
-- and they go to the one before it. move: that one also goes on with its jobs under way. Answers with both.
create or replace function millrace.versions_rollback(
    move boolean default false, caller millrace.caller_name default current_user, out bad text, out good text
)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    b millrace.build;
begin
    perform millrace.turns_wait('versions');
    select x.* into b from millrace.build x where x.promoted_at is not null or x.percent is not null
     order by x.percent is null, coalesce(x.promoted_at, x.changed_at) desc limit 1;
    if not found then
        good := (select string_agg(x.name, ', ' order by x.seen_at desc) from (select y.name, y.seen_at from millrace.build y order by y.seen_at desc limit 5) x);
        perform millrace.refuse('no build is promoted, so there is nothing to take back', 'build',
            case when good is not null then format('Give an earlier build the new jobs: millrace versions promote <build>, one of %s.', good)
                 else 'No worker is pinned to its build: start the workers of the earlier program again, and stop those of this one. Builds of millrace worker --only-build are promoted and rolled back.' end,
            '55000', 'conflict');
    end if;
    select x.name into good from millrace.build x
     where x.promoted_at is not null and x.name <> b.name and x.kinds && b.kinds order by x.promoted_at desc limit 1;
    if good is null then
        perform millrace.refuse(format('no build was promoted before %s', b.name), 'build', 'Promote the one that is to get new jobs.', '55000', 'conflict');
    end if;
    bad := b.name;
    perform millrace.build_stops(b);
    if move then
        perform millrace.build_hand_on(bad, good);
    end if;
    perform millrace.fleet_note('version rolled back', bad, by => versions_rollback.caller, detail => 'to ' || good);
    perform millrace.audited('versions.rollback', bad, jsonb_build_object('to', good, 'move', nullif(move, false)), caller => versions_rollback.caller);
end $$;
select millrace.door_is('queue', 'versions_rollback', 'admin, operator', 'staff', audited => true);

create or replace function millrace.build_hand_on(the_build text, the_heir text) returns void
language plpgsql volatile as $$
begin
    update millrace.build x set heir = the_heir, changed_at = millrace.now() where x.name = the_build or x.heir = the_build;
    perform pg_notify('millrace', 'versions');
end $$;

-- A build's jobs under way go on with another build; without one, with the one that gets new jobs. The operator
-- knows that its code knows their steps.
create or replace function millrace.versions_release(build text, heir text default null, caller millrace.caller_name default current_user) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    b millrace.build := millrace.build_alone(versions_release.build);
begin
    if versions_release.heir = b.name then
        perform millrace.refuse('a build cannot be released to itself', 'to', 'Name another build, or none.');
    elsif versions_release.heir is not null then
        perform millrace.build_alone(versions_release.heir);
        update millrace.build x set heir = null, changed_at = millrace.now() where x.name = versions_release.heir and x.heir is not null;
    end if;
    perform millrace.build_stops(b);
    perform millrace.build_hand_on(b.name, coalesce(versions_release.heir, ''));
    perform millrace.audited('versions.release', b.name, jsonb_build_object('to', versions_release.heir), caller => versions_release.caller);
end $$;
select millrace.door_is('queue', 'versions_release', 'admin, operator', 'staff', audited => true);

-- How many jobs wait for each build, with their lines of kinds: ready ones, and those that wait for their time, a limit or other jobs. Looks at
-- `span` rows of each place.
create or replace function millrace.build_jobs(span int default 200000) returns table (build text, ready bigint, waiting bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    lines int[] := array(select k.id from millrace.kind k where k.line like '%@%');
begin
    if lines = '{}' then
        return;
    end if;
    return query
    with seen as (
        select r.kind, 0 as place from (select x.kind from millrace.ready x limit span) r where r.kind = any (lines)
        union all
        select d.kind, 1 from (select x.kind from millrace.timer x limit span) d where d.kind = any (lines)
        union all
        select p.kind, 1 from (select x.kind from millrace.parked x limit span) p where p.kind = any (lines)
        union all
        select j.kind, 1 from (select x.job from millrace.blocked x limit span / 10) b join millrace.job j on j.id = b.job where j.kind = any (lines)
    )
    select millrace.line_build(k.line), count(*) filter (where s.place = 0), count(*) filter (where s.place = 1)
      from seen s join millrace.kind k on k.id = s.kind group by 1 order by 1;
end $$;

-- The builds of pinned workers, those with workers or jobs first. state: promoted, canary, drained, released, earlier (it was promoted before
-- another) or new. stranded: jobs wait for it, or it gets new ones, and no worker takes them.
create or replace function millrace.versions(span int default 200000)
returns table (build text, state text, percent int, workers int, kinds text[], ready bigint, waiting bigint, stranded boolean, seen_at timestamptz,
    promoted_at timestamptz, drained_at timestamptz, heir text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    return query
    with jobs as materialized (select * from millrace.build_jobs(span)
    ), living as materialized (
        select s.pin, count(*)::int as n from millrace.session s where s.pin is not null group by s.pin
    )
    select b.name,
           case when b.percent is not null then 'canary' when b.heir is not null then 'released' when b.drained_at is not null then 'drained'
                when exists (select from unnest(b.kinds) k(id) cross join lateral millrace.build_of_kind(k.id) o where o.holder = b.name) then 'promoted'
                when b.promoted_at is not null then 'earlier' else 'new' end,
           b.percent::int, coalesce(l.n, 0),
           array(select k.name from millrace.kind k where k.id = any (b.kinds) order by k.name),
           coalesce(j.ready, 0), coalesce(j.waiting, 0),
           l.n is null and (coalesce(j.ready + j.waiting, 0) > 0 or b.percent is not null
                            or exists (select from unnest(b.kinds) k(id) cross join lateral millrace.build_of_kind(k.id) o where o.holder = b.name))
               and not coalesce(case when b.heir = '' then exists (select from millrace.session)
                                     else exists (select from living h where h.pin = b.heir) end, false),
           b.seen_at, b.promoted_at, b.drained_at, nullif(b.heir, '')
      from millrace.build b left join jobs j on j.build = b.name left join living l on l.pin = b.name
     order by l.n is null and j.build is null, b.seen_at desc limit 500;
end $$;
select millrace.door_is('queue', 'versions', 'worker, viewer', 'staff');
