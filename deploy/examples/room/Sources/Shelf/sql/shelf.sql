-- The number of the loan. A reminder is enqueued in the same transaction, for the time when the book is due.
create or replace function millrace.shelf_borrow(
    book text, days int default 14, actor text default null, caller millrace.caller_name default current_user
) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.actor_of(shelf_borrow.actor, caller => shelf_borrow.caller);
    t timestamptz := millrace.now();
    loan bigint;
begin
    if me is null then
        perform millrace.refuse('nobody borrows the book', 'actor', 'Name the person.');
    end if;
    if book is null or length(book) not between 1 and 200 then
        perform millrace.refuse('the book has no title, or a long one', 'book', 'Give 1 to 200 characters.');
    end if;
    if days is null or days not between 1 and 90 then
        perform millrace.refuse('a book is lent for 1 to 90 days', 'days', 'Give such a number.');
    end if;
    insert into millrace.shelf_loan as l (person, book, borrowed_at, due_at)
    values (me, shelf_borrow.book, t, t + make_interval(days => shelf_borrow.days)) returning l.id into loan;
    perform millrace.enqueue('shelf.remind', jsonb_build_object('loan', loan), queue => 'shelf', run_at => t + make_interval(days => shelf_borrow.days));
    return loan;
end $$;
select millrace.door_is('shelf', 'shelf_borrow', 'client, worker', 'actor', 'Lends a book to the person.');

-- false: it was back already, or it is somebody else's loan.
create or replace function millrace.shelf_return(
    loan bigint, actor text default null, caller millrace.caller_name default current_user
) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    me text := millrace.actor_of(shelf_return.actor, caller => shelf_return.caller);
begin
    update millrace.shelf_loan l set returned_at = millrace.now()
     where l.id = shelf_return.loan and l.person = me and l.returned_at is null;
    return found;
end $$;
select millrace.door_is('shelf', 'shelf_return', 'client, worker', 'actor', 'Takes a book back.');

-- Whether there was somebody to remind: the job may run after the book came back.
create or replace function millrace.shelf_remind(loan bigint) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    update millrace.shelf_loan l set reminded_at = millrace.now()
     where l.id = shelf_remind.loan and l.returned_at is null and l.reminded_at is null;
    return found;
end $$;
select millrace.door_is('shelf', 'shelf_remind', 'worker', 'staff');

-- The newest loans first.
create or replace function millrace.shelf_loans(most int default 50)
returns table (loan bigint, person text, book text, due timestamptz, reminded timestamptz, returned timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select l.id, l.person, l.book, l.due_at, l.reminded_at, l.returned_at
      from millrace.shelf_loan l order by l.id desc limit least(most, 500)
$$;
select millrace.door_is('shelf', 'shelf_loans', 'worker, viewer', 'staff');

-- For status: books that people have, and how many of them should be back.
create or replace function millrace.shelf_state(out lent bigint, out due bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select count(*), count(*) filter (where l.due_at < millrace.now()) from millrace.shelf_loan l where l.returned_at is null
$$;
select millrace.door_is('shelf', 'shelf_state', 'worker, viewer', 'staff');

-- For doctor: books that are late.
create or replace function millrace.shelf_late() returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select count(*) from millrace.shelf_loan l where l.returned_at is null and l.due_at < millrace.now() - interval '30 days'
$$;
select millrace.door_is('shelf', 'shelf_late', 'worker, viewer', 'staff');
