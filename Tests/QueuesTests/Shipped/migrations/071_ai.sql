-- Questions to language models: what may be asked, what was asked, and each call with what it cost.

-- Purposes that an app has added, or put in the place of a built-in one. The prompt is the template ai.<name>, in the version named here.
create table millrace.ai_purpose (
    name text not null,
    version int not null,
    template_version int not null,
    schema jsonb not null,
    model text,                                            -- null: the provider's usual one
    limits jsonb not null,
    note text,
    put_by text not null,
    put_at timestamptz not null,
    primary key (name, version),
    constraint a_purpose_is_well_formed check (name ~ '^[a-z][a-z0-9_]{0,59}$')
);

-- Nothing is asked for a tenant or a family that is not switched on.
create table millrace.ai_switched (
    scope text not null,
    name text not null,
    is_on boolean not null,
    changed_at timestamptz not null,
    changed_by text not null,
    primary key (scope, name),
    constraint a_switch_is_of_a_known_scope check (scope in ('tenant', 'family'))
);

-- What workers last said they can ask.
create table millrace.ai_provider (
    name text primary key,
    place int not null,
    wire text not null,
    model text not null,
    told_at timestamptz not null
);

create table millrace.ai_question (
    id uuid primary key,
    seq bigint not null generated always as identity,
    purpose text not null,
    version int not null,
    tenant text,
    family text,
    actor text,
    caller text not null,                                  -- the role that asked
    account text,                                          -- whose quota it uses: the tenant, else the family
    locale text not null,
    input jsonb not null,                                  -- as it is sent: redacted
    key bytea not null,                                    -- the same for identical questions
    model text,
    room text,                                             -- what the answer is for
    ref uuid,
    job bigint,
    status text not null,
    answer jsonb,
    reason text,
    sentence text,
    provider text,
    answered_by text,
    source uuid,                                           -- answered from the store: by the answer to this question
    calls int not null default 0,
    tokens_in int not null default 0,
    tokens_out int not null default 0,
    asked_at timestamptz not null,
    ended_at timestamptz,
    constraint a_question_has_a_known_status check (status in ('waiting', 'asking', 'answered', 'refused', 'failed', 'cancelled')),
    constraint an_answer_is_there_when_answered check ((status = 'answered') = (answer is not null)),
    constraint an_ended_question_says_when check ((status in ('waiting', 'asking')) = (ended_at is null))
);
create index ai_question_answered on millrace.ai_question (key, seq) where status = 'answered';
create unique index ai_question_asking on millrace.ai_question (key) where status = 'asking';
create index ai_question_open on millrace.ai_question (asked_at) where status in ('waiting', 'asking');
create index ai_question_ended on millrace.ai_question (ended_at) where ended_at is not null;
create index ai_question_of on millrace.ai_question (actor, seq) where actor is not null;
create index ai_question_for on millrace.ai_question (room, ref) where ref is not null;
create unique index ai_question_in_order on millrace.ai_question (seq);

-- A call of a provider. While it runs, what it may cost at most is in the quota; then what it did cost.
create table millrace.ai_call (
    id uuid primary key,
    question uuid not null references millrace.ai_question on delete cascade,
    n int not null,
    account text,
    purpose text not null,
    provider text not null,
    model text not null,
    reserved int not null,
    outcome text not null,
    tokens_in int,
    tokens_out int,
    error_class text,
    error text,
    at timestamptz not null,
    ms int,
    unique (question, n),
    constraint a_call_has_a_known_outcome check (outcome in ('running', 'answered', 'unfit', 'refused', 'failed', 'unknown'))
);
create index ai_call_running on millrace.ai_call (account) where outcome = 'running';
create index ai_call_at on millrace.ai_call (at);

-- A question made of the fact, beside it; null without one.
alter table millrace.card add column question text;
-- It returns a column more.
drop function if exists millrace.cards(text, text, int, text, millrace.caller_name);

alter table millrace.quota drop constraint a_quota_has_a_known_name;
alter table millrace.quota add constraint a_quota_has_a_known_name
    check (name in ('documents', 'pages', 'bytes', 'cpu_seconds', 'messages', 'lessons', 'ai_tokens') or name ~ '^ai_tokens:[a-z][a-z0-9_]{0,59}$') not valid;
alter table millrace.quota validate constraint a_quota_has_a_known_name;
