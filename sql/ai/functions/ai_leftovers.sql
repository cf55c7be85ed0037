-- What has to be deleted at a provider: batches that have ended, and files that no batch was made of. Each stays on record until it is gone there, or was
-- tried in vain for two weeks. A job of the kind ai.forget, one for each provider, does it.

-- A job for what is due next, if there is something.
create or replace function millrace.ai_forget_enqueue(the_provider text) returns void
language plpgsql volatile as $$
declare
    the_due timestamptz := (select min(l.due_at) from millrace.ai_leftover l where l.provider = the_provider);
begin
    if the_due is not null then
        perform millrace.enqueue_one('ai.forget', jsonb_build_object('provider', the_provider), 'ai', 7, the_due, the_provider, 'replace', null, null,
            null, '{}', '{}', '{}', caller => current_user);
    end if;
end $$;

create or replace function millrace.ai_leftover_put(the_provider text, the_what text, the_remote text, the_batch uuid, the_due timestamptz) returns void
language plpgsql volatile as $$
begin
    insert into millrace.ai_leftover (provider, remote, what, batch, since, due_at) values (the_provider, left(the_remote, 200), the_what, the_batch, millrace.now(), the_due)
        on conflict do nothing;
    perform millrace.ai_forget_enqueue(the_provider);
end $$;

-- Files of a batch that has ended, or that is known not to be there, are not needed any more.
create or replace function millrace.ai_leftovers_hurry(the_batch uuid) returns void
language plpgsql volatile as $$
declare
    the_provider text;
begin
    update millrace.ai_leftover l set due_at = millrace.now() where l.batch = the_batch and l.due_at > millrace.now() and l.tries = 0 returning l.provider into the_provider;
    if found then
        perform millrace.ai_forget_enqueue(the_provider);
    end if;
end $$;

-- A file was put at the provider for this batch. Until it is known what became of the batch it may need its file: for a day, and one more.
create or replace function millrace.ai_batch_uploaded(token text, batch uuid, remote text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.ai_own_run(ai_batch_uploaded.token);
    perform millrace.ai_leftover_put(b.provider, 'file', ai_batch_uploaded.remote, b.id, millrace.now() + interval '2 days') from millrace.ai_batch b where b.id = ai_batch_uploaded.batch;
end $$;
select millrace.door_is('ai', 'ai_batch_uploaded', 'worker', 'staff');

-- What a run of ai.forget is to delete now.
create or replace function millrace.ai_leftovers_due(token text, provider text, most int default 20) returns table (remote text, what text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform millrace.ai_own_run(ai_leftovers_due.token);
    return query select l.remote, l.what from millrace.ai_leftover l
      where l.provider = ai_leftovers_due.provider and l.due_at <= millrace.now() order by l.due_at limit least(ai_leftovers_due.most, 500);
end $$;
select millrace.door_is('ai', 'ai_leftovers_due', 'worker', 'staff');

-- After a try. Without an error it is gone. With one: when it is tried again, after a minute, two, four, up to six hours; null: no more, two weeks are over.
create or replace function millrace.ai_leftover_tried(token text, provider text, remote text, error text default null) returns timestamptz
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    t timestamptz := millrace.now();
    next_at timestamptz;
begin
    perform millrace.ai_own_run(ai_leftover_tried.token);
    if ai_leftover_tried.error is null then
        delete from millrace.ai_leftover l where l.provider = ai_leftover_tried.provider and l.remote = ai_leftover_tried.remote;
        return null;
    end if;
    update millrace.ai_leftover l
       set tries = l.tries + 1, error = left(ai_leftover_tried.error, 500), tried_at = t,
           due_at = case when l.since > t - interval '14 days' then t + least(interval '6 hours', interval '1 minute' * (2 ^ least(l.tries, 12))) end
     where l.provider = ai_leftover_tried.provider and l.remote = ai_leftover_tried.remote returning l.due_at into next_at;
    return next_at;
end $$;
select millrace.door_is('ai', 'ai_leftover_tried', 'worker', 'staff');

-- The run ends: a job comes for what is left.
create or replace function millrace.ai_leftovers_later(token text, provider text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform millrace.ai_own_run(ai_leftovers_later.token);
    perform millrace.ai_forget_enqueue(ai_leftovers_later.provider);
end $$;
select millrace.door_is('ai', 'ai_leftovers_later', 'worker', 'staff');

-- Called by maintain: jobs that were cancelled or given up come again, and what was given up is forgotten after thirty days.
create or replace function millrace.ai_leftovers_check() returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
declare
    t timestamptz := millrace.now();
    gone bigint;
begin
    delete from millrace.ai_leftover l where l.due_at is null and l.tried_at < t - interval '30 days';
    get diagnostics gone = row_count;
    perform millrace.enqueue_one('ai.forget', jsonb_build_object('provider', x.provider), 'ai', 7, null, x.provider, 'skip', null, null, null, '{}', '{}', '{}', caller => current_user)
       from (select distinct l.provider from millrace.ai_leftover l where l.due_at < t - interval '15 minutes') x;
    return gone;
end $$;
