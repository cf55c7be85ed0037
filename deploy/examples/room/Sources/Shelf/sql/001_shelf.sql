-- Books that people have borrowed.
create table millrace.shelf_loan (
    id bigint generated always as identity primary key,
    person text not null,
    book text not null constraint a_book_has_a_title check (length(book) between 1 and 200),
    borrowed_at timestamptz not null,
    due_at timestamptz not null,
    reminded_at timestamptz,
    returned_at timestamptz
);
create index shelf_loan_person on millrace.shelf_loan (person, id);
create index shelf_loan_due on millrace.shelf_loan (due_at) where returned_at is null;
