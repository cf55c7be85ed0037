-- People who are asked by a notice or a mail, each with a link of their own; when they are reminded, and whom else to ask if nobody answers.
alter table millrace.approval
    add column remind interval,                           -- how often those who were asked are reminded; null: never
    add column reminded int not null default 0,
    add column remind_at timestamptz,
    add column escalate_at timestamptz,
    add column escalate_to text[],
    add column escalated_at timestamptz,
    add column next_at timestamptz;                       -- when somebody is told next; null: nobody is
create index approval_next on millrace.approval (next_at) where next_at is not null;

create table millrace.approval_person (
    ref uuid primary key,                                 -- what stands in the link
    approval uuid not null,
    job bigint not null,
    person text not null,
    how smallint not null,                                -- 1 asked at once, 2 because nobody had answered, 3 given a link by hand
    at timestamptz not null,
    notice uuid,                                          -- the last that was sent to them
    constraint a_person_is_asked_once unique (approval, person)
);
create index approval_person_job on millrace.approval_person (job);
create index approval_person_person on millrace.approval_person (person);
insert into millrace.trace_sweep (of, upto) values ('approval_person', 0);

-- Its result has columns more.
drop function if exists millrace.approval_list(boolean, int, millrace.caller_name);
