-- In UTC where the zone is one that this server does not know any more: nothing may keep an alarm from being told.
create or replace function millrace.time_in_zone(t timestamptz, zone text) returns text
language plpgsql stable as $$
begin
    return to_char(t at time zone zone, 'YYYY-MM-DD HH24:MI') || ' (' || zone || ')';
exception when invalid_parameter_value then
    return to_char(t at time zone 'UTC', 'YYYY-MM-DD HH24:MI') || ' (UTC)';
end $$;
