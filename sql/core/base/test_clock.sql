-- Replaces clock.sql after `millrace migrate --test-clock`: a clock that tests can move. Views call it with the rights of the role that
-- reads them, which may not read the clock's table.
create table if not exists millrace.test_clock (
    one boolean primary key default true check (one),
    shift interval not null default '0'
);
insert into millrace.test_clock default values on conflict do nothing;

create or replace function millrace.now() returns timestamptz
language sql volatile security definer set search_path = pg_catalog, pg_temp as 'select clock_timestamp() + (select shift from millrace.test_clock)';
select millrace.door_is('base', 'now', 'client, worker, viewer, gateway', 'open', 'The database''s time.');

create or replace function millrace.test_clock_advance(by interval) returns timestamptz
language plpgsql as $$
begin
    update millrace.test_clock set shift = shift + by;
    return millrace.now();
end $$;
select millrace.door_is('base', 'test_clock_advance', 'admin', 'staff');
