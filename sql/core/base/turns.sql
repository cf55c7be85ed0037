-- Turns: work that only one session may do at a time. sql/locks.md lists every lock, and what each decides.
-- The rule: a lock that decides something is a row of millrace.turn, held to the end of the transaction. An advisory lock, which any login
-- can take and hold, may cost at most a bounded wait or a notification.

-- Turns by their names, and how many buckets each has. Every room makes its own.
create or replace function millrace.turns_are(turns jsonb) returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
    insert into millrace.turn (name, bucket)
    select t.key, b from jsonb_each_text(turns) t cross join lateral generate_series(0, t.value::int - 1) b
        on conflict do nothing
$$;

do $$
begin
    perform millrace.turns_are('{"maintain": 1, "failures": 1, "flows": 1, "slots sweep": 1, "samples": 1, "versions": 1, "route": 64, "gate": 64, "key gate": 64, "signal": 256}');
end $$;

-- Mixed into the numbers of advisory locks that only functions take, so that nobody knows the numbers before the locks are held.
insert into millrace.setting (name, value)
values ('lock_secret', (('x' || left(md5(gen_random_uuid()::text), 16))::bit(64)::bigint)::text)
    on conflict do nothing;

-- True: the turn is ours to the end of the transaction; false: another session has it.
create or replace function millrace.turn_try(the_name text, the_bucket int default 0) returns boolean
language plpgsql volatile as $$
begin
    perform from millrace.turn t where t.name = the_name and t.bucket = the_bucket for update skip locked;
    return found;
end $$;

-- Waits until all of them are mine. In order, or two could wait for each other.
create or replace function millrace.turns_wait(the_name text, the_buckets int[] default '{0}') returns void
language plpgsql volatile as $$
begin
    perform from millrace.turn t where t.name = the_name and t.bucket = any (the_buckets) order by t.bucket for update;
end $$;
