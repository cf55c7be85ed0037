-- A file of a person's own is kept among its media, under the name that it gave it.
alter table millrace.media
    drop constraint media_is_of_a_known_sort,
    add constraint media_is_of_a_known_sort check (what in ('picture', 'template', 'file'));
alter table millrace.media_file add column name text;
