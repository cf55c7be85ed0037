-- A claim where each job holds one slot may answer with its gate as a number and not as an array of one: an answer with a column more,
-- so the function is made anew. Workers that do not ask for it get the answer that they know.
drop function if exists millrace.claim_limited(bigint, bigint, int[], int[], int[], bigint[], bigint[], int[], int, int[], int[]);
