-- What a row of the hot tables must hold is upheld by the functions that alone may write them. Postgres reads a table's checks anew, from text,
-- in each statement that writes to it: up to a seventh of what an enqueue costs, and more of a claim of one job.
alter table millrace.job
    drop constraint a_lane_holds_a_priority,
    drop constraint attempts_are_bounded,
    drop constraint a_key_has_its_hash;
alter table millrace.lease
    drop constraint a_lease_knows_its_range,
    drop constraint a_lease_counts_its_jobs,
    drop constraint attempts_stand_beside_ids,
    drop constraint crashes_stand_beside_ids,
    drop constraint slots_have_their_jobs;
alter table millrace.history
    drop constraint an_outcome_is_known,
    drop constraint a_failed_run_says_why;
