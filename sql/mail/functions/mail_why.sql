-- Why mail does not go out, in the shape of millrace.why.

-- The message of a mail's job.
create or replace function millrace.why_message(the_job bigint) returns uuid
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    args jsonb := (select j.args from millrace.job j where j.id = the_job);
    given text := coalesce(args ->> 'message', args ->> 'id', args #>> '{options,id}');
begin
    return case when given ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' then given::uuid else md5('millrace.mail:' || the_job)::uuid end;
end $$;

-- Why no service takes mail now. A fallback that is called takes it.
create or replace function millrace.why_mail(the_message uuid, the_staff boolean default false) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $$
declare
    bound text := (select b.provider from millrace.mail m join millrace.mail_batch b on b.id = m.batch where m.id = the_message);
    r millrace.mail_route;
    said jsonb;
begin
    if bound is not null then
        return millrace.why_provider(bound, the_staff);
    end if;
    select x.* into r from millrace.mail_route x;
    if found then
        said := millrace.why_provider(r.current, the_staff);
        return case when said is null and r.current <> r.chosen then null else coalesce(said, millrace.why_provider(r.chosen, the_staff)) end;
    end if;
    return (select millrace.why_provider(c.provider, the_staff) from millrace.provider_circuit c
             where c.provider in ('resend', 'supabase', 'smtp') and c.state in ('open', 'probing', 'forced_open') order by c.changed_at desc limit 1);
end $$;

create or replace function millrace.why_parked(the_message uuid, n bigint) returns jsonb
language sql stable as $$
    select millrace.why_put('mail_parked', case when n = 1 then format('message %s waits for a human: nobody knows whether it was sent', the_message)
                else format('%s wait for a human, the oldest is %s: nobody knows whether they were sent', millrace.why_count(n, 'message'), the_message) end,
        'look it up at the mail service, then millrace mail resolve <id> accepted, refused or again', jsonb_build_object('message', the_message, 'count', n),
        format('millrace mail show %s', the_message),
        array[format('%s parked', case when n = 1 then '1 message is' else millrace.why_count(n, 'message') || ' are' end),
            coalesce((select format('the service %s was called, and its answer never came: sending again might send twice', a.provider)
                        from millrace.mail_attempt a where a.message = the_message order by a.n desc limit 1), 'a call was made, and its answer never came: sending again might send twice')])
$$;

create or replace function millrace.why_mail_room() returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $$
declare
    one uuid;
    n bigint;
begin
    select count(*), (array_agg(x.id order by x.changed_at))[1] into n, one
      from (select m.id, m.status, m.changed_at from millrace.mail m where m.status in ('unknown', 'parked') order by m.changed_at limit 10000) x where x.status = 'parked';
    return case when n > 0 then millrace.why_parked(one, n) end;
end $$;

create or replace function millrace.mail_why_queue(about jsonb) returns jsonb
language sql volatile as $$
    select case when about ->> 'queue' in ('mail', 'mail.urgent') then coalesce(millrace.why_mail_room(), '{}') end
$$;

create or replace function millrace.mail_why_later(about jsonb) returns jsonb
language sql volatile as $$
    select case when about ->> 'kind' like 'mail.%' then millrace.why_mail(millrace.why_message((about ->> 'job')::bigint), (about ->> 'staff')::boolean) end
$$;

create or replace function millrace.mail_why_ended(about jsonb) returns jsonb
language plpgsql volatile as $$
declare
    m uuid;
begin
    if about ->> 'kind' like 'mail.%' then
        select x.id into m from millrace.mail x where x.id = millrace.why_message((about ->> 'job')::bigint) and x.status = 'parked';
    end if;
    return case when m is not null then millrace.why_parked(m, 1) end;
end $$;

-- A live version of a mail template that what was handed in does not fit; null: the error is another. What a version requires is checked when a
-- message is handed in, so such a version was published later, and the one before it fits.
create or replace function millrace.why_template(the_job bigint, error text) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    the_name text := (regexp_match(left(error, 500), '^template ([A-Za-z0-9_.-]+): '))[1];
    wanted text;
    live record;
    earlier int;
    use text;
    -- A message that has failed does not come back.
    again text := case when exists (select from millrace.mail m where m.id = millrace.why_message(the_job) and m.status = 'failed')
                       then 'hand the message in again, under a new id' else format('millrace jobs retry %s', the_job) end;
begin
    if the_name is null then
        return null;
    end if;
    wanted := (select coalesce(m.locale, 'en') from millrace.mail m where m.id = millrace.why_message(the_job));
    select l.locale, l.version into live from millrace.template_live l where l.name = the_name
     order by l.locale = wanted desc, l.locale = split_part(wanted, '-', 1) desc, l.locale = 'en' desc, l.locale limit 1;
    earlier := (select max(v.version) from millrace.template_version v where v.name = the_name and v.locale = live.locale and v.version < live.version);
    if earlier is null and exists (select from millrace.template_built_in() b where b.name = the_name and b.locale = live.locale) then
        earlier := 0;
    end if;
    use := case when earlier is null then format('millrace templates show %s', millrace.why_word(the_name))
                else format('millrace templates use %s %s%s', millrace.why_word(the_name), earlier, case when live.locale <> 'en' then ' --locale ' || millrace.why_word(live.locale) else '' end) end;
    return millrace.why_put('template', format('its mail template cannot be rendered: %s', millrace.error_gist(error)),
        case when earlier is null then format('publish a version that fits; then %s', again) else format('go back to the version before with %s; then %s', use, again) end,
        jsonb_build_object('template', the_name, 'locale', live.locale, 'version', live.version), use,
        array[format('template %s is live in %s as version %s', the_name, coalesce(live.locale, '?'), coalesce(live.version::text, 'none')), millrace.error_gist(error)]);
end $$;

create or replace function millrace.mail_why_failed(about jsonb) returns jsonb
language sql volatile as $$
    select millrace.why_template((about ->> 'job')::bigint, about ->> 'error')
$$;

-- Whether something waits here, and who serves it: see rooms.
create or replace function millrace.mail_served()
returns table (room text, waiting bigint, oldest_s float8, servers int, unsure int, how text[], used boolean)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off as $$
declare
    t timestamptz := millrace.now();
    silent int := (select count(*) from millrace.session s where s.rooms is null);
begin
    room := 'mail';
    if exists (select from millrace.session s where s.rooms ? 'mail') then
        used := coalesce((select m.created_at > t - interval '1 day' from millrace.mail m order by m.seq desc limit 1), false);
        waiting := null; oldest_s := null; unsure := silent;
        select count(*), coalesce(array_agg(distinct s.rooms ->> 'mail'), '{}') into servers, how from millrace.session s where s.rooms ? 'mail';
        return next;
    end if;
end $$;

-- What collectors of metrics read of this room: see measure_rooms.
create or replace function millrace.mail_measures(t timestamptz) returns table (name text, labels text[], value float8)
language plpgsql volatile set search_path = pg_catalog, pg_temp set jit = off as $$
begin
    return query
    select 'room_workers', array['mail'], (select count(*) from millrace.session s where s.rooms ? 'mail')::float8;
    return query
    select v.name, v.labels, v.n::float8
      from millrace.mail_state() m
     cross join lateral (values ('mail_held', array['parked'], m.parked), ('mail_held', array['unknown'], m.unknown),
                                ('mail_switched', null::text[], (m.current is distinct from m.chosen)::int::bigint)) v(name, labels, n);
end $$;
