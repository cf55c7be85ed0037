-- The only clock. It is volatile, because a transaction may stay open long after it began.
create or replace function millrace.now() returns timestamptz
language sql volatile parallel safe
return pg_catalog.clock_timestamp();
select millrace.door_is('base', 'now', 'client, worker, viewer, gateway', 'open', 'The database''s time.');
