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

do $$
begin
    perform millrace.hooks_are('shelf', '[{"event": "erase", "function": "shelf_erase_person", "position": 200}]');
end $$;
