-- How a person calls a contact, of which group it is, and what that contact sees of the person's watch.
alter table millrace.watch_contact
    add column name text,
    add column label text,
    add column shares text not null default 'nothing',
    add constraint a_contact_sees_something_known check (shares in ('nothing', 'state', 'times'));
