-- What happened to the fleet: a queue was paused, a worker was lost. fleet_events tells it with the samples of the past.

-- Events that no other table remembers.
create or replace function millrace.fleet_note(the_event text, the_subject text, by text default null, detail text default null) returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    insert into millrace.fleet_event (at, event, subject, by, detail) values (millrace.now(), the_event, the_subject, by, detail)
$$;
