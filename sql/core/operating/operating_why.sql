-- What the many runs say of one job, in the shape of millrace.why.

-- The newest build, where it fails at this kind in this queue and earlier builds did not; null: it does not. As `status` has it.
create or replace function millrace.why_build_fails(the_job bigint, said text) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    x record;
    command text;
begin
    select o.build, o.runs, o.failed into x
      from millrace.job j join millrace.queue q on q.id = j.queue join millrace.kind k on k.id = j.kind
     cross join lateral millrace.troubles_of(50, 1000, millrace.queue_ids(q.name)) o
     where j.id = the_job and o.trouble = 'build' and o.queue = q.name and coalesce(o.kind, k.name) = k.name
     order by o.kind nulls last limit 1;
    if not found then
        return null;
    end if;
    command := case when exists (select from millrace.build b where b.name = millrace.build_of(x.build) and (b.percent is not null
                                     or b.promoted_at > (select min(o.promoted_at) from millrace.build o where o.kinds && b.kinds)))
                    then 'millrace versions rollback' else 'millrace versions compare' end;
    return millrace.why_put('build_fails', format('the newest build, %s, fails where earlier builds did not: %s of its %s runs here failed; %s', x.build, x.failed, x.runs, said),
        case when command = 'millrace versions rollback' then command else 'start the workers of the earlier build again, and stop those of this one' end,
        jsonb_build_object('build', x.build), command,
        array[said, format('%s of %s runs on the newest build, %s, failed, and earlier builds did not fail', x.failed, x.runs, x.build)]);
end $$;

create or replace function millrace.operating_why_failed(about jsonb) returns jsonb
language sql volatile as $$
    select millrace.why_build_fails((about ->> 'job')::bigint, about ->> 'said')
$$;

-- The trouble of a run, as `run_troubles` has it.
create or replace function millrace.operating_why_running(about jsonb) returns jsonb
language sql volatile as $$
    select jsonb_build_object('trouble', x.trouble, 'crashes', x.crashes) from millrace.run_troubles(50) x
     where x.trouble in ('stuck', 'crashes') and x.job = (about ->> 'job')::bigint order by x.trouble desc limit 1
$$;
