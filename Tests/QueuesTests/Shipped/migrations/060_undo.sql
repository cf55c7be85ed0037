-- Steps that are undone if their job dies or is cancelled. Each has a job that waits for the end of its own, and for the undo of the step after
-- it.
create table millrace.undo (
    undo_job bigint primary key,
    job bigint not null,
    step text not null,
    constraint a_step_is_undone_once unique (job, step)
);
insert into millrace.trace_sweep (of, upto) values ('undo', 0);

-- 4: when the job whose step it undoes has not succeeded, and the undos before it have ended.
alter table millrace.blocked drop constraint a_start_is_known;
alter table millrace.blocked add constraint a_start_is_known check (starts between 1 and 4) not valid;
alter table millrace.blocked validate constraint a_start_is_known;
