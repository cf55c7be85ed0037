-- Times that a phone gives. Its clock may be wrong by minutes or days, and nothing of what its person does may be lost by that.

-- How much must be added to a time by the caller's clock: what a gateway found between that clock and its own (`millrace.client_lag`, in seconds).
-- Up to two minutes count as none, because a request takes its time, too.
create or replace function millrace.client_lag() returns interval
language sql stable set search_path = pg_catalog, pg_temp as $$
    select case when s.given ~ '^-?[0-9]{1,10}([.][0-9]{1,6})?$' and abs(s.given::numeric) > 120 then make_interval(secs => s.given::float8)
                else interval '0' end
      from (select current_setting('millrace.client_lag', true) as given) s
$$;

-- When it was by the clock that counts. For what lies ahead, such as a reminder.
create or replace function millrace.by_our_clock(at timestamptz) returns timestamptz
language sql stable as $$
    select by_our_clock.at + millrace.client_lag()
$$;

-- The same for what has happened: never later than now. A time that lies ahead counts as now, so that a clock that is fast loses nothing.
create or replace function millrace.happened(at timestamptz, t timestamptz) returns timestamptz
language sql stable as $$
    select case when happened.at is not null then least(millrace.by_our_clock(happened.at), t) end
$$;

-- A time as RFC 3339 writes it; null: it is not one.
create or replace function millrace.sync_time(value jsonb) returns timestamptz
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if jsonb_typeof(value) = 'string' and value #>> '{}' ~ E'^\\d{4}-\\d\\d-\\d\\d[Tt]\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,12})?([Zz]|[+-]\\d\\d:\\d\\d)$' then
        return (value #>> '{}')::timestamptz;
    end if;
    return null;
exception when data_exception then
    return null;
end $$;

-- A time in JSON that a caller gives: null, or RFC 3339. Postgres alone would also take `yesterday`, or a time without a zone.
create or replace function millrace.time_given(value jsonb, field text) returns timestamptz
language plpgsql immutable as $$
begin
    if coalesce(time_given.value, 'null') <> 'null' and millrace.sync_time(time_given.value) is null then
        perform millrace.refuse(format('%s is malformed', field), field, 'Give for example 2026-11-27T09:30:00.123Z.');
    end if;
    return millrace.sync_time(time_given.value);
end $$;
