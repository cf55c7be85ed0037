-- Where each job of a lease holds one slot at one gate, its ids are not written twice: slot_jobs is null, and slot_gates has a
-- place for each of the ids.
alter table millrace.lease
    drop constraint slots_have_their_jobs,
    add constraint slots_have_their_jobs check (slot_gates is null and slot_jobs is null or cardinality(slot_gates) = cardinality(coalesce(slot_jobs, ids)));
