-- Questions that may wait are asked in batches, where a provider has them.

-- As the worker said that told of the provider.
alter table millrace.ai_provider add column has_batches boolean not null default false;

create table millrace.ai_batch (
    id uuid primary key,
    provider text not null,
    remote text,                                           -- the provider's id of it
    status text not null,
    questions int not null,
    answered int not null default 0,
    opened_at timestamptz not null,
    sending_at timestamptz,                                -- since then it may be with the provider
    sent_at timestamptz,
    ended_at timestamptz,
    constraint a_batch_has_a_known_status check (status in ('open', 'sent', 'ended', 'lost', 'failed'))
);
create index ai_batch_ended on millrace.ai_batch (ended_at) where ended_at is not null;

alter table millrace.ai_question
    add column batch_of text,                              -- it may wait for a batch of this provider; null: it does not
    add column batch uuid;                                 -- the batch in which it is asked now
create index ai_question_may_wait on millrace.ai_question (batch_of, seq) where status = 'waiting' and batch_of is not null and batch is null;
create unique index ai_question_in_batch on millrace.ai_question (key) where status = 'waiting' and batch is not null;

alter table millrace.ai_call add column batch uuid;
create index ai_call_of_batch on millrace.ai_call (batch) where batch is not null and outcome = 'running';
