-- A claim of jobs with limits need not wait for the disk: one parameter more, so the function is made anew. Workers that do not ask for it
-- wait as before.
drop function if exists millrace.claim_limited(bigint, bigint, int[], int[], int[], bigint[], bigint[], int[], int, int[], int[], boolean, boolean);
