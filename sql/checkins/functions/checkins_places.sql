-- Places: given with a check-in or a call for help, shown to the contacts of that alarm on its page, and gone a day after its end.

-- Checks a place and gives it back without anything else; null: none was given.
create or replace function millrace.place_checked(place jsonb, t timestamptz) returns jsonb
language plpgsql stable as $$
declare
    number numeric;
    one text;
    made timestamptz;
    hint constant text := 'Give for example {"latitude": 47.8, "longitude": 13.04, "accuracy": 12, "at": "2030-01-01T12:00:00Z"}.';
begin
    if place_checked.place is null or place_checked.place = 'null' then
        return null;
    end if;
    if octet_length(place_checked.place::text) > millrace.most('place') then
        perform millrace.refuse(format('the place takes more than the %s bytes allowed', millrace.most('place')), 'place', hint, '53400', 'too_large');
    end if;
    if jsonb_typeof(place_checked.place) <> 'object' then
        perform millrace.refuse('the place is not an object', 'place', hint);
    end if;
    if exists (select from jsonb_object_keys(place_checked.place) k where k not in ('latitude', 'longitude', 'accuracy', 'at')) then
        perform millrace.refuse('the place has keys other than latitude, longitude, accuracy and at', 'place', hint);
    end if;
    foreach one in array array['latitude', 'longitude', 'accuracy'] loop
        if one = 'accuracy' and not coalesce(place_checked.place ? one and place_checked.place -> one <> 'null', false) then
            continue;
        end if;
        number := case when jsonb_typeof(place_checked.place -> one) = 'number' then (place_checked.place ->> one)::numeric end;
        if (case one when 'latitude' then number between -90 and 90 when 'longitude' then number between -180 and 180 else number between 0 and 20000000 end) is not true then
            perform millrace.refuse(format('the %s of the place is missing or out of range', one), 'place', hint);
        end if;
    end loop;
    if coalesce(place_checked.place ? 'at' and place_checked.place -> 'at' <> 'null', false) then
        made := millrace.sync_time(place_checked.place -> 'at');
        if made is null then
            perform millrace.refuse('the place''s time is not a valid time', 'place', hint);
        end if;
    end if;
    -- A clock that is ahead makes no place of the future.
    return jsonb_build_object('latitude', round((place_checked.place ->> 'latitude')::numeric, 6), 'longitude', round((place_checked.place ->> 'longitude')::numeric, 6),
        'accuracy', round((place_checked.place ->> 'accuracy')::numeric), 'at', coalesce(millrace.happened(made, t), t));
end $$;

-- A check-in and a call for help count whatever the place is worth: one that cannot be right is left out, with a warning of the class 01000.
create or replace function millrace.place_usable(place jsonb, t timestamptz) returns jsonb
language plpgsql stable as $$
begin
    return millrace.place_checked(place_usable.place, t);
exception when invalid_parameter_value then
    raise warning using message = format('%s, and it is not used', sqlerrm);
    return null;
end $$;

-- The newest place of a person: with a check-in it waits for an alarm, for a day at most.
create or replace function millrace.place_keep(the_person text, place jsonb, t timestamptz) returns void
language sql volatile as $$
    insert into millrace.place as p (person, latitude, longitude, accuracy, at, gone_at)
    select the_person, x.latitude, x.longitude, x.accuracy, x.at, t + interval '1 day'
      from jsonb_to_record(place_keep.place) x(latitude float8, longitude float8, accuracy float8, at timestamptz) where place_keep.place is not null
        on conflict (person) where person is not null do update
       set latitude = excluded.latitude, longitude = excluded.longitude, accuracy = excluded.accuracy, at = excluded.at, gone_at = excluded.gone_at
     where excluded.at >= p.at
$$;

create or replace function millrace.place_of_alarm(the_alarm uuid, place jsonb) returns void
language sql volatile as $$
    insert into millrace.place as p (alarm, latitude, longitude, accuracy, at)
    select the_alarm, x.latitude, x.longitude, x.accuracy, x.at
      from jsonb_to_record(place_of_alarm.place) x(latitude float8, longitude float8, accuracy float8, at timestamptz) where place_of_alarm.place is not null
        on conflict (alarm) do update set latitude = excluded.latitude, longitude = excluded.longitude, accuracy = excluded.accuracy, at = excluded.at
     where excluded.at >= p.at
$$;

-- A new alarm takes the place of the last check-in; an end lets it go a day later. A drill has none.
create or replace function millrace.place_follows() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if tg_op = 'INSERT' then
        insert into millrace.place (alarm, latitude, longitude, accuracy, at)
        select new.id, p.latitude, p.longitude, p.accuracy, p.at from millrace.place p
         where p.person = new.person and p.gone_at > millrace.now();
    elsif new.state = 'resolved' then
        update millrace.place p set gone_at = new.resolved_at + interval '1 day' where p.alarm = new.id;
    end if;
    return null;
end $$;

do $$
begin
    if not exists (select from pg_trigger g where g.tgrelid = 'millrace.alarm'::regclass and g.tgname = 'a_place_comes_with_an_alarm') then
        create trigger a_place_comes_with_an_alarm after insert on millrace.alarm for each row when (new.cause <> 'drill')
            execute function millrace.place_follows();
        create trigger a_place_goes_after_its_alarm after update on millrace.alarm for each row when (new.state = 'resolved' and old.state <> 'resolved')
            execute function millrace.place_follows();
    end if;
end $$;

-- What a contact sees of it on the alarm's page. It is not shown any more once its time has come, swept or not.
create or replace function millrace.place_shown(the_alarm uuid, the_person text, reader text) returns jsonb
language sql stable as $$
    select jsonb_build_object('latitude', p.latitude, 'longitude', p.longitude, 'accuracy', p.accuracy,
               'local', millrace.time_in_zone(p.at, millrace.alarm_zone(the_person, reader)), 'map', millrace.alarm_map(the_person, reader))
      from millrace.place p where p.alarm = the_alarm and (p.gone_at is null or p.gone_at > millrace.now())
$$;

-- Called by maintain.
create or replace function millrace.places_expire(most int default 20000) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off set jit = off as $$
declare
    gone bigint;
begin
    delete from millrace.place p
     where p.ctid = any (array(select x.ctid from millrace.place x where x.gone_at <= millrace.now() order by x.gone_at limit most));
    get diagnostics gone = row_count;
    return gone;
end $$;
