-- A claim may leave out what is as usual, and wait its turn: parameters more, so the functions are made anew. Workers that do not ask for it
-- get the answer that they know.
drop function if exists millrace.claim(bigint, bigint, int[], int[], int[], bigint[], bigint[], int[], int, int[], int[]);
drop function if exists millrace.claim_limited(bigint, bigint, int[], int[], int[], bigint[], bigint[], int[], int, int[], int[], boolean);
