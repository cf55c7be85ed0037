-- A claim of jobs with limits may leave it to another statement to bring the jobs: one parameter more, so the function is made anew.
-- Workers that do not ask for it are brought them as before.
drop function if exists millrace.claim_limited(bigint, bigint, int[], int[], int[], bigint[], bigint[], int[], int, int[], int[], boolean, boolean, boolean);
