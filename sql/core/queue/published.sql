-- What a job's runs give out while they run: a stream of values, and one state. Both belong to the job and are read by its owner. A run that
-- has lost its lease adds nothing to them.

-- The run of a token. Its lease is locked until the commit, so that nobody rescues the job meanwhile. what: what is refused if it is lost.
create or replace function millrace.run_held(token text, what text, out session bigint, out number bigint, out job bigint, out attempt int)
language plpgsql volatile set enable_seqscan = off as $$
declare
    began timestamptz;
begin
    select t.session, t.number, t.job into session, number, job from millrace.read_token(token) t;
    select l.at, coalesce(l.attempts[array_position(l.ids, run_held.job)], 0) + 1 into began, attempt
      from millrace.lease l
     where l.session = run_held.session and l.number = run_held.number and run_held.job = any (l.ids) for key share;
    if not found then
        perform millrace.refuse(format('the lease is lost: %s', what), 'token', 'Roll back and stop: another run has the job, or will have it.', '55000', 'lease_lost');
    end if;
    if exists (select from millrace.history h
                where h.class = (run_held.number & 3)::smallint and h.started = began and h.id = run_held.job
                  and h.session = run_held.session and h.number = run_held.number) then
        perform millrace.refuse(format('this run has ended: %s', what), 'token', 'Do it before the run''s end.', '55000', 'conflict');
    end if;
end $$;

-- Appends a value to the stream of the token's job, and returns its number: 1, 2, 3, without gaps. With a key it is published once, whatever run
-- publishes it again; the first value stays. call: the caller's number of this call within the run; the same again, after a lost answer, is the
-- same value. At most 10,000 values and 16 MiB of a job are kept, and more are refused: a reader who comes back has missed nothing.
create or replace function millrace.publish(token text, value jsonb, key text default null, call bigint default null) returns bigint
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
declare
    given jsonb := coalesce(publish.value, 'null');
    size bigint := octet_length(given::text);
    run record;
    head millrace.output;
    place bigint;
begin
    if length(publish.key) not between 1 and millrace.most('unique_key') then
        perform millrace.refuse(format('the key of a published value has 1 to %s characters', millrace.most('unique_key')), 'key');
    end if;
    if size > 1048576 then
        perform millrace.refuse(format('the published value takes %s bytes, more than the 1048576 allowed', size), 'value',
            'Store large data elsewhere and publish a reference.', '53400', 'too_large');
    end if;
    run := millrace.run_held(publish.token, 'nothing is published');
    insert into millrace.output (job) values (run.job) on conflict (job) do nothing;
    select o.* into strict head from millrace.output o where o.job = run.job for update;
    if publish.key is not null then
        select p.n into place from millrace.published p where p.job = run.job and p.key = publish.key;
    elsif publish.call is not null then
        select p.n into place from millrace.published p
         where p.job = run.job and p.session = run.session and p.number = run.number and p.call = publish.call;
    end if;
    if place is not null then
        return place;
    end if;
    if head.kept >= millrace.counted('published') or head.bytes + size > 16777216 then
        perform millrace.refuse(format('the stream of job %s is full: %s values with %s bytes are published; at most 10000 values and 16777216 bytes are allowed', run.job, head.kept, head.bytes),
            'token', 'Publish fewer values or references; log lines and progress have no such limit.', '53400', 'too_large');
    end if;
    update millrace.output o set last = o.last + 1, kept = o.kept + 1, bytes = o.bytes + size where o.job = run.job returning o.last into place;
    insert into millrace.published (job, n, key, value, session, number, call, attempt, at)
    values (run.job, place, publish.key, given, run.session, run.number, case when publish.key is null then publish.call end, run.attempt, millrace.now());
    return place;
end $$;
select millrace.door_is('queue', 'publish', 'worker', 'staff');

-- Replaces the one state of the token's job.
create or replace function millrace.state_put(token text, value jsonb) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
declare
    given jsonb := coalesce(state_put.value, 'null');
    run record;
begin
    if octet_length(given::text) > 1048576 then
        perform millrace.refuse(format('the state takes %s bytes, more than the 1048576 allowed', octet_length(given::text)), 'value',
            'Store large data elsewhere and give a reference.', '53400', 'too_large');
    end if;
    run := millrace.run_held(state_put.token, 'the state stays as it was');
    insert into millrace.output (job, state, state_attempt, state_at) values (run.job, given, run.attempt, millrace.now())
        on conflict (job) do update
       set state = excluded.state, state_attempt = excluded.state_attempt, state_at = excluded.state_at;
end $$;
select millrace.door_is('queue', 'state_put', 'worker', 'staff');

-- A page of a job's stream above a number, oldest first. attempt: the run that published the value.
create or replace function millrace.published(id bigint, after bigint default 0, page int default 500, caller millrace.caller_name default current_user)
returns table (n bigint, key text, value jsonb, attempt int, at timestamptz)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off as $$
declare
    size bigint;
    taken bigint := 0;
begin
    perform millrace.must_see(published.id, caller => published.caller);
    if published.page is null or published.page not between 1 and millrace.most('page') then
        perform millrace.refuse(format('page must be 1 to %s', millrace.most('page')), 'page');
    end if;
    for n, key, value, attempt, at in
        select p.n, p.key, p.value, p.attempt::int, p.at from millrace.published p
         where p.job = published.id and p.n > coalesce(published.after, 0) order by p.n limit published.page
    loop
        size := octet_length(row(n, key, value, attempt, at)::text);
        exit when not millrace.page_takes('published', taken, size);
        taken := taken + size;
        return next;
    end loop;
end $$;
select millrace.door_is('queue', 'published', 'client, worker, operator', 'tenant job',
    'What a job''s runs have published since a position.');

-- A job's state, and how many values it has published; no row: neither.
create or replace function millrace.state_value(id bigint, caller millrace.caller_name default current_user)
returns table (value jsonb, attempt int, at timestamptz, published bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off as $$
begin
    perform millrace.must_see(state_value.id, caller => state_value.caller);
    return query select o.state, o.state_attempt::int, o.state_at, o.last from millrace.output o where o.job = state_value.id;
end $$;
select millrace.door_is('queue', 'state_value', 'client, worker, operator', 'tenant job',
    'The state that a job''s runs last gave, and how many values they have published.');

create or replace function millrace.published_shown(id bigint, after bigint default 0, page int default 500)
returns table (n bigint, key text, value jsonb, attempt int, at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_kind text := (select k.name from millrace.job j join millrace.kind k on k.id = j.kind where j.id = published_shown.id);
begin
    return query
    select p.n, p.key, millrace.redact(the_kind, p.value), p.attempt, p.at from millrace.published(published_shown.id, published_shown.after, published_shown.page) p;
end $$;
select millrace.door_is('queue', 'published_shown', 'admin, viewer', 'staff');

create or replace function millrace.state_value_shown(id bigint)
returns table (value jsonb, attempt int, at timestamptz, published bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    the_kind text := (select k.name from millrace.job j join millrace.kind k on k.id = j.kind where j.id = state_value_shown.id);
begin
    return query select millrace.redact(the_kind, s.value), s.attempt, s.at, s.published from millrace.state_value(state_value_shown.id) s;
end $$;
select millrace.door_is('queue', 'state_value_shown', 'admin, viewer', 'staff');

-- For a job that does all its steps again: what it gave out is gone. Numbers go on, so that a reader who comes back finds the new values.
create or replace function millrace.output_forget(the_job bigint) returns void
language plpgsql volatile set enable_seqscan = off as $$
begin
    update millrace.output o set state = null, state_attempt = null, state_at = null, kept = 0, bytes = 0 where o.job = the_job;
    delete from millrace.published p where p.job = the_job;
end $$;
