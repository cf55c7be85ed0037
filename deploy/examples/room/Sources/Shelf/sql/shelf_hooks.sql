-- How many rows it handled: the answer of a hook for erasure. An error here stops the whole erasure, so that a person is forgotten wholly or not at all.
create or replace function millrace.shelf_erase_person(person text) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    gone bigint;
begin
    delete from millrace.shelf_loan l where l.person = shelf_erase_person.person;
    get diagnostics gone = row_count;
    return gone;
end $$;

-- What the room keeps of a person: a thing, its id and its data for each row. It joins in person_export.
create or replace function millrace.shelf_export_person(person text) returns table (thing text, id text, data jsonb)
language sql stable set search_path = pg_catalog, pg_temp as $$
    select 'loan', l.id::text, to_jsonb(l) from millrace.shelf_loan l where l.person = shelf_export_person.person
$$;

do $$
begin
    perform millrace.hooks_are('shelf', '[
        {"event": "erase", "function": "shelf_erase_person", "position": 200},
        {"event": "export", "function": "shelf_export_person", "position": 200}
    ]');
end $$;
