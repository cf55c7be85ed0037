-- Why something of a room or of a schedule does not move, in the shape of millrace.why. Null: nothing waits there.

-- No running worker serves the room; null when one does, or may.
create or replace function millrace.why_unserved(the_room text, words text, flag text) returns jsonb
language sql volatile as $$
    select case when not exists (select from millrace.session s where s.rooms ? the_room or s.rooms is null)
        then millrace.why_put('room_unserved', format('%s, and no running worker serves %s', words, the_room), format('start a worker with %s', flag),
            jsonb_build_object('room', the_room), 'millrace workers list') end
$$;

create or replace function millrace.why_schedule(the_name text) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    s millrace.schedule;
    said jsonb;
    more jsonb;
    word text;
begin
    select x.* into s from millrace.schedule x where x.name = the_name;
    if not found then
        return null;
    end if;
    word := millrace.why_word(s.name);
    more := jsonb_build_object('schedule', s.name);
    if s.paused_at is not null then
        return millrace.why_put('schedule_paused', format('the schedule %s has been paused since %s', s.name, millrace.why_time(s.paused_at)),
            format('millrace schedules resume %s', word), more || jsonb_build_object('since', s.paused_at), format('millrace schedules resume %s', word));
    elsif s.problem is not null then
        return millrace.why_put('schedule_problem', format('the schedule %s cannot fire: %s', s.name, s.problem), 'correct it with millrace schedules add under the same name',
            more || jsonb_build_object('since', s.problem_at), format('millrace schedules show %s', word));
    elsif coalesce(s.next_at, s.planned_from) < t - interval '1 min' then
        if not exists (select from millrace.session) then
            said := millrace.why_absent(true);
            return said || more || jsonb_build_object('due', s.next_at,
                'sentence', format('the schedule %s was due at %s, and no worker is running', s.name, millrace.why_time(coalesce(s.next_at, s.planned_from))));
        end if;
        return millrace.why_put('schedule_overdue', format('the schedule %s was due at %s, and no worker has fired it', s.name, millrace.why_time(coalesce(s.next_at, s.planned_from))),
            'start a worker on a machine with time zone data (tzdata)', more || jsonb_build_object('due', s.next_at), 'millrace workers list');
    end if;
    if s.last_job is not null and s.overlap = 'skip' then
        said := millrace.why_of(s.last_job, true, 1);
        if said is not null and said ->> 'reason' not in ('dead', 'quarantined', 'cancelled') then
            return said || jsonb_build_object('schedule', s.name, 'sentence', format('job %s of the schedule %s has not ended, and the next is skipped until then: %s', s.last_job, s.name, said ->> 'sentence'));
        end if;
    end if;
    if s.last_missed_at > t - interval '1 hour' then
        return millrace.why_put('schedule_missed', format('the schedule %s missed some of its times, the last at %s: no worker fired it then, and it does not catch up', s.name,
                millrace.why_time(s.last_missed_at)),
            format('run it now with millrace schedules run %s; if each time counts, set --catch-up all', word), more || jsonb_build_object('missed', s.missed, 'due', s.next_at),
            format('millrace schedules run %s', word),
            array[format('it fires next at %s', coalesce(millrace.why_time(s.next_at), 'a time that a worker is about to compute')),
                format('%s of its times were missed in all, the last at %s', s.missed, millrace.why_time(s.last_missed_at))]);
    end if;
    return millrace.why_put('time', format('the schedule %s fires next at %s', s.name, coalesce(millrace.why_time(s.next_at), 'a time that a worker is about to compute')), null,
        more || jsonb_build_object('due', s.next_at), format('millrace schedules next %s', word));
end $$;

-- A schedule that should put jobs into this queue, and does not.
create or replace function millrace.why_feeding(the_queue text) returns jsonb
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    one text;
begin
    select s.name into one
      from (select x.name, x.queue, x.kind, x.paused_at, x.problem from millrace.schedule x order by x.id limit 5000) s
      left join millrace.kind k on k.name = s.kind and k.line = '' left join millrace.queue q on q.id = k.queue
     where (s.paused_at is not null or s.problem is not null) and coalesce(s.queue, q.name, 'default') = the_queue
     order by s.problem is not null desc, s.name limit 1;
    return case when found then millrace.why_schedule(one) end;
end $$;
