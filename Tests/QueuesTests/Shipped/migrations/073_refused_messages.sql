-- Messages that came to a store's address and were not taken: a row for each store and reason, however many there are.
create table millrace.subscription_refusal (
    store text not null,
    why text not null,
    messages bigint not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    primary key (store, why),
    constraint a_refusal_is_of_a_known_store check (store in ('stripe', 'apple')),
    constraint a_refusal_says_why check (length(why) between 1 and 100)
);

-- It returns more columns.
drop function if exists millrace.subscription_state();

-- The console lists the newest first.
create index subscription_changed on millrace.subscription (changed_at, id);
