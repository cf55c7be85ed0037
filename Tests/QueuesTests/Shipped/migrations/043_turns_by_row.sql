-- Turns that must exclude are row locks here, and no advisory locks: any login can take an advisory lock, and only the schema's
-- functions can lock these rows. A row is locked and never changed, so the table does not grow. turns.sql names them.
create table millrace.turn (
    name text not null,
    bucket int not null,
    primary key (name, bucket)
);

-- What migrations have made, so that the next one notices what somebody else has put into the schema.
create table millrace.made (
    kind text not null,
    identity text not null,
    primary key (kind, identity)
);

drop function if exists millrace.gates_lock(int, bigint[]);
drop function if exists millrace.gates_lock_all(int);
