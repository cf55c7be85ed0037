-- For operators: what keeps questions from being answered, and a purpose as it can be put again.

-- late: questions that are due for more than 15 minutes and have no answer. unserved: purposes whose jobs no running worker takes, while it takes those of
-- others, as workers of earlier versions do with those that an app added. serving: sessions of workers that take such jobs at all. unbounded: purposes that were
-- put before purposes said how much a person may use. undeleted: what could not be deleted at providers, since when, some of it, and why.
create or replace function millrace.ai_troubles(out providers text[], out switched bigint, out late bigint, out late_s float8, out unserved text[], out serving bigint,
    out unbounded text[], out undeleted bigint, out undeleted_s float8, out undeleted_names text[], out undeleted_error text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $$
declare
    t timestamptz := millrace.now();
    kinds_served int[];
begin
    providers := array(select p.name from millrace.ai_provider p order by p.place);
    switched := (select count(*) from millrace.ai_switched s where s.is_on);
    -- Ones that are to be asked later have a job that is not due yet.
    select count(*), coalesce(max(extract(epoch from t - x.due_at)), 0) into late, late_s
      from (select coalesce(j.run_at, q.asked_at) as due_at
              from millrace.ai_question q left join millrace.job j on j.id = q.job
             where q.status in ('waiting', 'asking') and q.asked_at < t - interval '15 minutes' order by q.asked_at limit 10000) x
     where x.due_at < t - interval '15 minutes';
    select array_agg(distinct k), count(distinct s.id) into kinds_served, serving
      from millrace.session s cross join lateral unnest(s.kinds) k
     where (s.queues is null or 'ai' = any (s.queues)) and exists (select from millrace.kind x where x.id = millrace.kind_base(k) and x.name like 'ai.%');
    unserved := array(select p.name from millrace.ai_purposes() p
                       where serving > 0 and not exists (select from millrace.kind x where x.name = millrace.ai_kind(p.name) and x.id = any (kinds_served)) order by p.name);
    unbounded := array(select p.name from millrace.ai_purposes() p where p.client_tokens is null order by p.name);
    select count(*), coalesce(max(extract(epoch from t - l.since)), 0), (array_agg(l.provider || ' ' || l.remote order by l.since, l.remote))[1:5],
           (array_agg(l.error order by l.tried_at desc))[1]
      into undeleted, undeleted_s, undeleted_names, undeleted_error from millrace.ai_leftover l where l.tries > 0;
    undeleted_names := coalesce(undeleted_names, '{}');
end $$;
select millrace.door_is('ai', 'ai_troubles', 'worker, viewer', 'staff');

-- A purpose as ai_purpose_put takes it, with its version; null: there is none.
create or replace function millrace.ai_purpose_shown(name text, version int default null) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select jsonb_build_object('name', ai_purpose_shown.name, 'purpose_version', p.version, 'built_in', p.version = 0, 'instructions', p.instructions, 'prompt', p.prompt,
        'variables', p.variables, 'schema', p.schema, 'model', p.model, 'limits', p.limits, 'note', x.note, 'put_by', x.put_by, 'put_at', x.put_at)
      from millrace.ai_purpose(ai_purpose_shown.name, ai_purpose_shown.version) p
      left join millrace.ai_purpose x on x.name = ai_purpose_shown.name and x.version = p.version
     where p.version is not null
$$;
select millrace.door_is('ai', 'ai_purpose_shown', 'admin', 'staff');

-- The kinds of this room's jobs, which name its rows.
create or replace function millrace.ai_kinds() returns setof text
language sql immutable parallel safe as 'select ''ai.%''';
