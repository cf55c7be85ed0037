-- The rest of a profile: a picture, and the map that links to places open.
alter table millrace.profile
    add column avatar text,
    add column map text check (map in ('geo', 'osm', 'apple', 'google'));

-- Who reads a message, where that is known: for erasing it with the person.
alter table millrace.mail add column person text;
create index mail_person on millrace.mail (person) where person is not null;
