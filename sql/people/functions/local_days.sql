-- Days and times of day where a person is.

-- The first instant whose local date is that day or later. Postgres alone takes the second of two midnights, and for a midnight that a
-- clock skipped it returns an instant that may lie after the end of the gap.
create or replace function millrace.day_start(day date, zone text) returns timestamptz
language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := day::timestamp at time zone zone;
    early timestamptz := t - interval '4 hours';           -- with the offset that held then, for no change over midnight is as large
    first timestamptz := (day::timestamp - ((early at time zone zone) - (early at time zone 'UTC'))) at time zone 'UTC';
begin
    if first < t and (first at time zone zone)::date >= day then
        t := first;
    end if;
    early := t - interval '1 second';
    if (early at time zone zone)::date < day then
        return t;
    end if;
    -- A gap that began before midnight: its end is found by halving.
    early := t - interval '4 hours';
    while t - early > interval '1 second' loop
        first := date_trunc('second', early + (t - early) / 2);
        if (first at time zone zone)::date >= day then t := first; else early := first; end if;
    end loop;
    return t;
end $$;

-- The least instant at which a clock there shows this time or a later one: after a gap its end, of two the first.
create or replace function millrace.wall_start(wall timestamp, zone text) returns timestamptz
language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := wall at time zone zone;
    early timestamptz := t - interval '4 hours';
    first timestamptz := (wall - ((early at time zone zone) - (early at time zone 'UTC'))) at time zone 'UTC';
begin
    if first < t and (first at time zone zone) >= wall then
        t := first;
    end if;
    early := t - interval '1 second';
    if (early at time zone zone) < wall then
        return t;
    end if;
    early := t - interval '4 hours';
    while t - early > interval '1 second' loop
        first := date_trunc('second', early + (t - early) / 2);
        if (first at time zone zone) >= wall then t := first; else early := first; end if;
    end loop;
    return t;
end $$;

-- The greatest date that has begun: a clock that is put back over midnight does not bring yesterday back.
create or replace function millrace.day_at(at timestamptz, zone text) returns date
language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
    d date := (at at time zone zone)::date;
begin
    return case when millrace.day_start(d + 1, zone) <= at then d + 1 else d end;
end $$;
