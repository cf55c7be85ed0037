-- Bounds that are counted for their owner, stored answers that are a tenant's, and who is behind what is said.

-- What a sender keeps is counted, and what reaches a job is looked for, without walking over others' signals.
create index signal_kept_of on millrace.signal (name, key, owner, tenant, seq) where state < 2;
create index signal_kept_anywhere on millrace.signal (name, key, seq) where state < 2 and anywhere;
drop index millrace.signal_kept;

-- The id of a signal is its sender's own, also where many persons call as one role.
create unique index signal_id_of_owner on millrace.signal (owner, name, id) where id is not null and tenant is null;
create unique index signal_id_of_tenant on millrace.signal (owner, tenant, name, id) where id is not null and tenant is not null;
drop index millrace.signal_id;

-- How many tokens a person may use in a day.
alter table millrace.ai_question add column person_most bigint;      -- of its purpose; null: no person is counted
alter table millrace.ai_call add column counts_for bytea;            -- the hash of the person
create index ai_call_running_of on millrace.ai_call (counts_for) where outcome = 'running' and counts_for is not null;

-- What has to be deleted at a provider.
create table millrace.ai_leftover (
    provider text not null,
    remote text not null,                                  -- its id there
    what text not null,
    batch uuid,
    since timestamptz not null,
    due_at timestamptz,                                    -- null: it is not tried any more
    tries int not null default 0,
    tried_at timestamptz,
    error text,
    primary key (provider, remote),
    constraint a_leftover_is_of_a_known_kind check (what in ('batch', 'file'))
);
create index ai_leftover_due on millrace.ai_leftover (provider, due_at) where due_at is not null;

-- They return a column more, or several.
drop function if exists millrace.ai_purposes();
drop function if exists millrace.ai_state();
drop function if exists millrace.ai_troubles();

-- What was answered is told again to the same person in the same tenant. '' stands for rows of before; it is no tenant.
alter table millrace.gateway_answer add column tenant text not null default '', drop constraint gateway_answer_pkey, add primary key (person, tenant, key);
alter table millrace.sync_done add column tenant text not null default '', drop constraint sync_done_pkey, add primary key (person, tenant, id);

-- Who was signed in to the database, beside the role and beside who the program said it was.
alter table millrace.audit add column login text;
create index audit_login on millrace.audit (login, id);
alter table millrace.operation add column login text, add column undo_login text;
drop function if exists millrace.audit_list(timestamptz, timestamptz, text, text, text, bigint, int, millrace.caller_name);
